"""`inprofile list`: every mechanism with what can be set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..mechanisms import Mechanism, Parameter, mechanisms
from .common import Json, Own, Refused, emit, guarded, show

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_KINDS = {"marker": "Markers", "aqm": "Queue disciplines", "scheduler": "Schedulers (set of each class)"}


@guarded
def list_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]…", help="Mechanisms to list; default: all.", show_default=False),
    ] = None,
    mechanism: Own = None,
    json_: Json = False,
) -> None:
    """List every marker, queue discipline and scheduler: parameters, units, bounds, defaults, source."""
    every = mechanisms()
    known = {m.name for m in every}
    for name in names or []:
        if name not in known:
            raise Refused(f'no mechanism is called "{name}"; there are: {", ".join(sorted(known))}')
    chosen = [m for m in every if not names or m.name in names]
    if json_:
        emit({"mechanisms": [asdict(m) for m in chosen]})
    else:
        show(_layout(chosen))


def _layout(chosen: list[Mechanism]) -> Group:
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
    return Group(*parts[:-1])


def _parameter(p: Parameter) -> Iterator[RenderableType]:
    """What is written, what may be written, and below it what that means."""
    from rich.padding import Padding
    from rich.text import Text

    value = {None: "…", "derived": "(derived)"}.get(p.default, p.default)
    takes = ", ".join(part for part in (p.unit or p.kind, p.bounds) if part)
    needed = "; required" if p.default is None else ""
    written = Text.assemble((p.name, "cyan"), f" = {value}", (f"  ({takes}{needed})", "dim"))
    yield Padding(written, (0, 0, 0, 2))
    yield Padding(Text(p.doc), (0, 0, 0, 6))
