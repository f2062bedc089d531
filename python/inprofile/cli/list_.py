"""`inprofile list`: every mechanism with what can be set, and TCP's congestion controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..experiment.mechanisms import Mechanism, Parameter, mechanisms
from ..experiment.transports import Law, laws
from .common import Json, Own, Refused, emit, guarded, show

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
