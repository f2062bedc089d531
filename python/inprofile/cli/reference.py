"""`inprofile new`, `list`, `glossary`, `schema`: what to start from, what there is to set, what words say.

`new` writes an experiment, `new-mechanism` a crate, `new-paper` a paper to start from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..experiment.dump import starter
from ..experiment.mechanisms import Law, Mechanism, Parameter, laws, mechanisms
from ..experiment.mechanisms import schema as the_schema
from ..metrics.glossary import Entry, entries, lookup
from .common import Json, Own, Refused, argument, emit, guarded, option, say, show
from .output import output_schema

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


@guarded
def new(
    name: Annotated[str, argument("Name of the experiment; written to NAME.toml.", "NAME")],
    plan: Annotated[
        bool, typer.Option("--plan", help="One for inprofile plan: a provider's link with 30 customers.")
    ] = False,
    json_: Json = False,
) -> None:
    """Write a commented experiment file, ready to run."""
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(str(path), plan))
    except FileExistsError:
        raise Refused(f"{path} already exists and was not changed: choose another name") from None
    if json_:
        emit({"file": str(path)})
    else:
        then = "plan" if plan else "run"
        say(f"Wrote {path}. Look at it, then:\n  inprofile check {path}\n  inprofile {then} {path}")


class Kind(StrEnum):
    """The files written."""

    MARKER = "marker"
    AQM = "aqm"


@guarded
def new_mechanism(
    name: Annotated[
        str,
        argument(
            "The mechanism's name in experiment files; the crate is written to the folder NAME.", "NAME"
        ),
    ],
    kind: Annotated[Kind, typer.Option(help="A marker, or a queue discipline.")] = Kind.MARKER,
    crates: Annotated[
        Path | None,
        option(
            "A checkout of Inprofile; default: the one that this command runs from, or that it runs in.",
            "DIR",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Write a crate with a mechanism of your own in Rust, to be built into a wheel of its own."""
    from ..own.crate import NoCrates, find_crates, write_crate

    folder = Path(name)
    try:
        found = find_crates(crates)
        files = write_crate(name, kind.value, folder, found)
    except (NoCrates, ValueError) as error:
        raise Refused(str(error)) from None
    except FileExistsError:
        raise Refused(f"{folder} already exists and was not changed: choose another name") from None
    if json_:
        emit({"folder": str(folder), "crates": str(found), "files": [str(file) for file in files]})
    else:
        say(
            f"Wrote {folder}, with a law to start from in {folder / 'src' / 'law.rs'}. In that folder:\n"
            "  cargo test\n"
            "  maturin develop --release\n"
            f"  inprofile run {name}.toml"
        )


@guarded
def new_paper(
    key: Annotated[str, argument("The paper's name; its folder is written to KEY.", "KEY")],
    json_: Json = False,
) -> None:
    """Write a folder in which a paper is answered claim by claim: experiments and claims as data."""
    from ..papers.starter import write_paper

    folder = Path(key)
    try:
        files = write_paper(folder)
    except ValueError as error:
        raise Refused(str(error)) from None
    except FileExistsError:
        raise Refused(f"{folder} already exists and was not changed: choose another name") from None
    if json_:
        emit({"folder": str(folder), "files": [str(file) for file in files]})
    else:
        there = str(folder) if folder.is_absolute() else f"./{folder}"
        say(
            f"Wrote {folder}: a small paper to be changed line by line, from {folder / 'paper.toml'}.\n"
            f"  inprofile reproduce {there}\n"
            f"  inprofile atlas {there}"
        )


_KINDS = {"marker": "Markers", "aqm": "Queue disciplines", "scheduler": "Schedulers (set of each class)"}


@guarded
def list_(
    names: Annotated[list[str] | None, argument("What to list; default: all.", "[NAME]…")] = None,
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
    words: Annotated[list[str] | None, argument("Only these. Default: all.", "[WORD]…")] = None,
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
