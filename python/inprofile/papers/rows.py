"""Rows of a paper's tables: its printed value beside ours, a row a figure, set-up, scheme and variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NotRequired, TypedDict

from ..metrics.measures import Measures
from ..metrics.stats import FREE, SHARE, Bounds
from . import Cell, Paper


class TableRow(TypedDict):
    """One row; all that differ in the set-up only stand in one line."""

    table: str
    what: str
    label: str
    #: bit/s, s, packets, or empty.
    unit: str
    setup: str
    topology: str
    scheme: str
    variant: str
    #: What the paper prints; None where it prints nothing.
    paper: float | None
    values: list[float]
    seeds: list[int]
    #: What the values cannot leave, where their unit and name do not say it.
    bounds: NotRequired[Bounds]


def row(
    cell: Cell,
    seeds: Iterable[int],
    values: Iterable[float],
    *,
    table: str,
    what: str,
    label: str,
    unit: str = "",
    paper: float | None = None,
    bounds: Bounds | None = None,
) -> TableRow:
    """Make the row of a cell's `values`, one a seed."""
    made = TableRow(
        table=table,
        what=what,
        label=label,
        unit=unit,
        setup=cell.setup,
        topology=cell.topology,
        scheme=cell.scheme,
        variant=cell.variant,
        paper=paper,
        values=[float(x) for x in values],
        seeds=[int(s) for s in seeds],
    )
    if bounds is not None:
        made["bounds"] = bounds
    return made


def bounds_of(row: TableRow) -> Bounds:
    """What a row's values cannot leave: its own `bounds`, else those of an index, a share or a loss.

    >>> from inprofile.papers import Cell
    >>> bounds_of(row(Cell("", "", ""), [1], [1.0], table="", what="fairness index", label=""))
    (0.0, 1.0)
    """
    if "bounds" in row:
        lo, hi = row["bounds"]
        return float(lo), float(hi)
    what = row["what"].replace("_", " ").split(",")[0].split()
    return SHARE if not row["unit"] and {"index", "share", "loss"} & set(what) else FREE


def printed_rows(paper: Paper, cells: Mapping[Cell, Measures]) -> Iterator[TableRow]:
    """A row a printed number and cell, where the paper has no table of its own: see `plain`."""
    numbers = [n for claim in paper.claims for n in claim.tables("numbers")]
    for measure in dict.fromkeys(n.word("measure") for n in numbers):
        for cell, m in cells.items():
            if cell.sweep or measure not in m.values:
                continue
            titles = [paper.find("topologies", cell.topology).title, paper.find("schemes", cell.scheme).title]
            yield row(
                cell,
                m.seeds,
                m[measure],
                table=next(n.word("where") for n in numbers if n["measure"] == measure),
                what=measure,
                label=", ".join(titles),
                paper=paper.printed(measure, cell.topology, cell.scheme),
            )
