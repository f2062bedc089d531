"""`inprofile list`: every mechanism with what can be set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..mechanisms import Mechanism, mechanisms
from .common import Json, Refused, emit, guarded

_KINDS = {"marker": "Markers", "aqm": "Queue disciplines"}


@guarded
def list_(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these; all if left out.", show_default=False)
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
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    for kind, heading in _KINDS.items():
        of_kind = [m for m in chosen if m.kind == kind]
        if of_kind:
            console.print(Text(heading, style="bold underline"))
        for m in of_kind:
            console.print()
            console.print(Text.assemble((m.name, "bold"), f"  {m.summary}"))
            console.print(Text(f"  Source: {m.source}", style="dim"))
            if not m.parameters:
                console.print("  Nothing to set.")
                continue
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
            for column in ("parameter", "takes", "default"):
                table.add_column(column, no_wrap=True)
            table.add_column("meaning", overflow="fold")
            for p in m.parameters:
                default = "required" if p.default is None else p.default
                table.add_row(p.name, _takes(p.kind, p.unit, p.bounds), default, p.doc)
            console.print(Padding(table, (0, 0, 0, 2)))
        if of_kind:
            console.print()


def _takes(kind: str, unit: str | None, bounds: str | None) -> str:
    """What may be written: unit or kind, and bounds."""
    return ", ".join(part for part in (unit or kind, bounds) if part)
