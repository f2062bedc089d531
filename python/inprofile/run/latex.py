"""A result's tables for a paper: its metrics, and its flows or groups of flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..metrics.flow_figures import Groups
from ..metrics.latex import Column, Raw, Table, with_unit
from ..metrics.quantity import quantity
from ..metrics.stats import Estimate
from ..metrics.summary import SHOWN, Rows, heading_of, unit_of

if TYPE_CHECKING:
    from ..metrics.flow_figures import Runs

#: Up to this many flows are told one by one; beyond that, by group.
_MOST_FLOWS = 12


def tables_of(title: str, result: Runs) -> Iterator[Table]:
    """Two tables."""
    n = len(result.seeds)
    seeds = f"Mean and 95 % confidence interval of {n} seeds." if n > 1 else "One seed."
    metrics = list(result.summary().values())
    yield Table(
        f"{title}: metrics. {seeds}",
        "metrics",
        [
            Column("metric", [m.name.replace("_", " ") for m in metrics]),
            Column("", [Raw(with_unit(m.estimate, m.unit)) for m in metrics]),
        ],
    )
    names, contracts, figures = _flows(result)
    columns = [Column("", names)]
    if any(c is not None for c in contracts):
        shown = [None if c is None else quantity(c, "bit/s") for c in contracts]
        columns.append(Column("contract", shown))
    for name in SHOWN["flows"]:
        if any(name in of for of in figures):
            columns.append(Column(heading_of(name), [of.get(name) for of in figures], unit_of(name)))
    yield Table(f"{title}: what flows got. {seeds}", "flows", columns)


def _flows(
    result: Runs,
) -> tuple[list[str], list[float | None], list[Mapping[str, Estimate]]]:
    rows = Rows("flows", result.flows)
    if len(rows) <= _MOST_FLOWS:
        each = list(rows)
        return (
            [r.keys["flow"] for r in each],
            [r.given.get("contract") for r in each],
            [r.figures for r in each],
        )
    groups = list(Groups(result))
    names = [f"{g.name}, a flow of {g.flows}" for g in groups]
    return names, [None] * len(groups), [g.figures for g in groups]
