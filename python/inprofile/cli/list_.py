"""`inprofile list`: every mechanism with what can be set."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..mechanisms import Mechanism, Parameter, mechanisms
from .common import Json, Refused, emit, guarded, stdout

if TYPE_CHECKING:
    from rich.console import Console

_KINDS = {"marker": "Markers", "aqm": "Queue disciplines"}


@guarded
def list_(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]…", help="Only these; all if left out.", show_default=False),
    ] = None,
    json_: Json = False,
) -> None:
    """List every marker and queue discipline: parameters, units, bounds, defaults, source."""
    every = mechanisms()
    known = {m.name for m in every}
    for name in names or []:
        if name not in known:
            raise Refused(f'no mechanism is called "{name}"; there are: {", ".join(sorted(known))}')
    chosen = [m for m in every if not names or m.name in names]
    if json_:
        emit({"mechanisms": [asdict(m) for m in chosen]})
    else:
        _show(chosen)


def _show(chosen: list[Mechanism]) -> None:
    from rich.text import Text

    console = stdout()
    for kind, heading in _KINDS.items():
        of_kind = [m for m in chosen if m.kind == kind]
        if not of_kind:
            continue
        console.print(Text(heading, style="bold underline"))
        for m in of_kind:
            console.print(Text.assemble("\n", (m.name, "bold"), f": {m.summary}"))
            console.print(Text(f"Source: {m.source}", style="dim"))
            for p in m.parameters:
                _parameter(console, p)
        console.print()


def _parameter(console: Console, p: Parameter) -> None:
    """What is written, what may be written, and below it what that means."""
    from rich.padding import Padding
    from rich.text import Text

    value = {None: "…", "derived": "(derived)"}.get(p.default, p.default)
    takes = ", ".join(part for part in (p.unit or p.kind, p.bounds) if part)
    needed = "; required" if p.default is None else ""
    console.print(
        Padding(Text.assemble((p.name, "cyan"), f" = {value}", (f"  ({takes}{needed})", "dim")), (0, 0, 0, 2))
    )
    console.print(Padding(Text(p.doc), (0, 0, 0, 6)))
