"""`inprofile list`, `glossary`, `schema`: what there is to set, and what words and files say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..experiment.mechanisms import Mechanism, Parameter, mechanisms
from ..experiment.mechanisms import schema as the_schema
from ..experiment.senders import Law, laws
from ..metrics.glossary import Entry, entries, lookup
from .common import Json, Own, Refused, emit, guarded, say, show
from .output import output_schema

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


_KINDS = {"marker": "Markers", "aqm": "Queue disciplines", "scheduler": "Schedulers (set of each class)"}


@guarded
def list_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]…", help="What to list; default: all.", show_default=False),
    ] = None,
    mechanism: Own = None,
    json_: Json = False,
) -> None:
    """List every marker, queue discipline and scheduler: parameters, units, bounds, defaults, source.

    TCP's congestion controls follow.
    """
    every = mechanisms()
    tcp = laws()
    known = {m.name for m in every} | {law.name for law in tcp}
    for name in names or []:
        if name not in known:
            raise Refused(
                f'no mechanism or control is called "{name}"; there are: {", ".join(sorted(known))}'
            )
    chosen = [m for m in every if not names or m.name in names]
    of_tcp = [law for law in tcp if not names or law.name in names]
    if json_:
        emit({"mechanisms": [asdict(m) for m in chosen], "tcp": [asdict(law) for law in of_tcp]})
    else:
        show(_layout(chosen, of_tcp))


def _layout(chosen: list[Mechanism], of_tcp: list[Law]) -> Group:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for kind, heading in _KINDS.items():
        of_kind = [m for m in chosen if m.kind == kind]
        if of_kind:
            parts.append(Text(heading, style="bold underline"))
        for m in of_kind:
            parts.append(Text.assemble("\n", (m.name, "bold"), f": {m.summary}"))
            parts.append(Text(f"Source: {m.source}", style="dim"))
            parts += [line for p in m.parameters for line in _parameter(p)]
        if of_kind:
            parts.append(Text())
    if of_tcp:
        parts.append(Text("TCP (set in [tcp], or of a group of flows)", style="bold underline"))
    for law in of_tcp:
        parts.append(Text.assemble("\n", (law.name, "bold"), f": {law.summary}"))
        parts.append(Text(f"Source: {law.source}", style="dim"))
        parts.append(Text.assemble("  ", (law.written, "cyan")))
    if of_tcp:
        parts.append(Text())
    return Group(*parts[:-1])


def _parameter(p: Parameter) -> Iterator[RenderableType]:
    """The value as written, the values allowed, and below them their meaning."""
    from rich.padding import Padding
    from rich.text import Text

    value = {None: "…", "derived": "(derived)"}.get(p.default, p.default)
    takes = ", ".join(part for part in (p.unit or p.kind, p.bounds) if part)
    needed = "; required" if p.default is None else ""
    written = Text.assemble((p.name, "cyan"), f" = {value}", (f"  ({takes}{needed})", "dim"))
    yield Padding(written, (0, 0, 0, 2))
    yield Padding(Text(p.doc), (0, 0, 0, 6))


@guarded
def glossary(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]…", help="Only these. Default: all.", show_default=False),
    ] = None,
    json_: Json = False,
) -> None:
    """Define every metric, column and word that is printed: unit, where it is measured, what counts."""
    chosen = list(entries())
    if words:
        chosen = [entry for word in words for entry in _defined(word)]
    if json_:
        emit({"glossary": [asdict(entry) for entry in chosen]})
    else:
        show(_entries(chosen))


def _defined(word: str) -> list[Entry]:
    found = lookup(word)
    if not found:
        from difflib import get_close_matches

        near = get_close_matches(word, [known for entry in entries() for known in entry.words], 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Refused(f'the glossary has no "{word}"{hint} `inprofile glossary` lists every word.')
    return found


def _entries(chosen: list[Entry]) -> Group:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    section = ""
    for entry in chosen:
        if entry.section != section:
            section = entry.section
            parts.append(Text(f"\n{section}" if parts else section, style="bold underline"))
        details = f"  ({entry.details})" if entry.details else ""
        parts.append(Text.assemble((", ".join(entry.words), "cyan"), (details, "dim")))
        parts.append(Padding(Text(entry.meaning.replace("`", "").replace("**", "")), (0, 0, 0, 4)))
    return Group(*parts)


@guarded
def schema(
    mechanism: Own = None,
    output: Annotated[
        bool, typer.Option("--output", help="Print the schema of what commands print with --json instead.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Accepted for consistency; the schema is always JSON.")
    ] = False,
) -> None:
    """Print the JSON Schema of the experiment file, or of what --json prints."""
    say(json.dumps(output_schema() if output else the_schema(), ensure_ascii=False, indent=2))
