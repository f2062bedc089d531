"""A comparison's tables for a paper: every scheme at its best setting, and all at equal delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...metrics.latex import Column, Table
from ...metrics.quantity import quantity
from ...metrics.stats import POSITIVE, SHARE, Estimate, estimate
from .comparison import Compared, Comparison
from .measure import MEASURES

__all__ = ["tables_of"]

_BEST = ("kept", "fairness", "best_effort", "utilisation", "delay")


def tables_of(comparison: Comparison) -> Iterator[Table]:
    """Of each experiment two tables."""
    for one in comparison.outcomes:
        yield _best(comparison, one)
        if table := _equal(comparison, one):
            yield table


def _best(comparison: Comparison, one: Compared) -> Table:
    found = comparison.tuned(one)
    points = []
    for best in found:
        frontier = one.frontiers[best.scheme.id]
        points.append(frontier.points[list(frontier.settings).index(best.length)].values)
    columns = [
        Column("scheme", [best.scheme.title for best in found]),
        Column("T", [quantity(best.length, "s", 3) for best in found]),
    ]
    for name in _BEST:
        cells = [
            estimate(p[name].tolist(), POSITIVE if name == "delay" else SHARE) if name in p else None
            for p in points
        ]
        if any(cells):
            columns.append(_column(name, cells))
    return Table(
        f"{_where(one)}: every scheme at the setting that keeps contracts best. {_seeds(one)}",
        f"compare-{one.study.id}-best",
        columns,
    )


def _equal(comparison: Comparison, one: Compared) -> Table | None:
    there = [s.id for s in comparison.plan.schemes if s.id in one.reaching]
    columns = [Column("scheme", [comparison.title(s) for s in there])]
    for name in MEASURES:
        if found := one.at_equal_delay(name):
            columns.append(_column(name, [estimate(found[s], SHARE) if s in found else None for s in there]))
    if not there or len(columns) == 1:
        return None
    delays = ", ".join(f"{1e3 * d:.3g}" for d in one.delays)
    return Table(
        f"{_where(one)}: schemes at equal mean queueing delay ({delays} ms). {_seeds(one)}",
        f"compare-{one.study.id}-equal-delay",
        columns,
    )


def _column(name: str, cells: Sequence[Estimate | None]) -> Column:
    if name == "delay":
        return Column("Queueing delay", cells, "s")
    return Column(MEASURES[name].title, cells, percent=MEASURES[name].percent)


def _where(one: Compared) -> str:
    return f"{one.study.title}, {one.study.tcp_title}"


def _seeds(one: Compared) -> str:
    return f"Mean and 95 % confidence interval of {len(one.seeds)} seeds."
