"""Paper D's tables beside ours, what the ledger adds over each placebo, and the crossed readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

import numpy as np

from ...metrics.measures import Measures
from ...metrics.stats import FREE, SHARE, UNLIKE, ci95, estimate
from .. import Cell, Entry, Paper
from ..claim import paired
from ..judge import judge
from ..report import TableRow, row
from .experiments import crossed, point_values

Cells = Mapping[Cell, Measures]

#: What FDD-RED is compared with its placebos by: words, unit, and whether more is better (1) or less (−1).
ADDED: Mapping[str, tuple[str, str, int]] = {
    "fi": ("fairness index", "", 1),
    "drops": ("packets dropped", "packets", -1),
    "link": ("throughput at the link", "bit/s", 1),
    "queue_std": ("standard deviation of the queue", "packets", -1),
    "spread_packets": ("standard deviation of drops over flows", "packets", -1),
}
BOUNDS = {"fi": SHARE, "drops": (0.0, np.inf)}


def rates(paper: Paper, topology: str, scheme: str) -> list[float]:
    """Each flow's throughput in bit/s as Table 2 prints it.

    >>> from inprofile import papers
    >>> from inprofile.metrics.stats import jain
    >>> round(jain(rates(papers.load("fdd-red"), "equal", "red")), 4)
    0.9766
    """
    there = (topology, scheme)
    [entry] = [e for e in paper.top.tables("printed") if (e.word("topology"), e.word("scheme")) == there]
    return entry.numbers("throughput")


def placebos(paper: Paper) -> list[str]:
    """Variants in which no ledger decides."""
    return [v.id for v in paper.variants if v.flag("placebo")]


def at_point(cells: Cells, topology: str, point: Entry, value: int, cell: Cell) -> Measures | None:
    """Measures at one value of a figure with several points: the main runs' where these stand for it."""
    base = value == point.whole("base")
    sweep, written = ("", "") if base else (point.id, str(value))
    return cells.get(Cell(cell.setup, topology, cell.scheme, cell.variant, sweep, written))


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Tables 1 and 2 beside ours: one row a figure, set-up, scheme and variant."""
    return [found for cell, m in cells.items() if not cell.sweep for found in _rows(paper, cell, m)]


def _rows(paper: Paper, cell: Cell, m: Measures) -> Iterator[TableRow]:
    titles = (paper.find("topologies", cell.topology).title, paper.find("schemes", cell.scheme).title)
    sent = rates(paper, cell.topology, cell.scheme)
    figures: list[tuple[str, str, str, str, float | None]] = [
        ("Table 2", "fairness index", "fi", "", paper.printed("fi", cell.topology, cell.scheme)),
        ("Table 2", "aggregate throughput at the link", "link", "bit/s", float(sum(sent))),
        ("Table 2", "aggregate throughput at receivers", "total", "bit/s", float(sum(sent))),
        (
            "Table 1",
            "packets dropped",
            "drops",
            "packets",
            paper.printed("drops", cell.topology, cell.scheme),
        ),
        *(("Table 2", f"throughput, Flow{i}", f"flow{i}", "bit/s", x) for i, x in enumerate(sent)),
    ]
    # The paper's numbers are of 20 s from the start.
    printed = paper.find("setups", cell.setup).numbers("window")[0] == 0
    for where, what, name, unit, value in figures:
        yield row(
            cell,
            m.seeds,
            m[name],
            table=where,
            what=what,
            label=", ".join(titles),
            unit=unit,
            paper=value if printed else None,
            bounds=BOUNDS.get(name, FREE),
        )


class Added(TypedDict):
    """FDD-RED less a placebo in one measure."""

    setup: str
    topology: str
    placebo: str
    measure: str
    mean: float
    ci95: list[float] | None
    #: 1, 0 or −1: FDD-RED is shown to be better, neither is, the placebo is.
    better: int


def added(paper: Paper, cells: Cells) -> list[Added]:
    """What the ledger adds over every placebo: FDD-RED less the placebo, seed by seed.

    One entry a set-up, topology, placebo and measure. RED itself is the placebo `tail`.
    """
    made: list[Added] = []
    for setup in paper.setups:
        for topology in paper.topologies:
            fdd = cells.get(Cell(setup.id, topology.id, "fdd"))
            if fdd is None:
                continue
            beside = {"tail": cells[Cell(setup.id, topology.id, "red")]}
            for name in placebos(paper):
                if m := cells.get(Cell(setup.id, topology.id, "fdd", name)):
                    beside[name] = m
            for name, placebo in beside.items():
                for measure, (_, _, good) in ADDED.items():
                    difference = paired(fdd, placebo, measure)
                    interval = ci95(difference, UNLIKE if measure == "fi" else FREE)
                    side = 0 if interval is None else (interval.lo > 0) - (interval.hi < 0)
                    made.append(
                        {
                            "setup": setup.id,
                            "topology": topology.id,
                            "placebo": name,
                            "measure": measure,
                            "mean": estimate(difference).mean,
                            "ci95": None if interval is None else list(interval),
                            "better": good * side,
                        }
                    )
    return made


def crossing(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Verdicts of every claim in every cell of the crossed readings that was run, with its main figures."""
    made = []
    for name, values in crossed(paper).items():
        judged = judge(paper.findings(_paired(paper, cells, name), name))
        if not judged:
            continue
        about = paper.top.table("crossed")
        main = {t.id: cells[Cell(about.word("setup"), t.id, "fdd", name)] for t in paper.topologies}
        made.append(
            {
                "readings": dict(zip(about.words("readings"), name.split("/"), strict=True)),
                "set": values,
                "verdicts": {j.claim: j.verdict.value for j in judged},
                "inside": sum(n.inside for j in judged for n in j.numbers),
                "numbers": sum(len(j.numbers) for j in judged),
                **{f"{what}_{t}": _mean(m, what) for t, m in main.items() for what in ("drops", "fi")},
            }
        )
    return made


def _paired(paper: Paper, cells: Cells, name: str) -> Cells:
    """The cells of a crossed reading, and those of RED cut to the same seeds."""
    setup = paper.top.table("crossed").word("setup")
    mine = {c: m for c, m in cells.items() if c.setup == setup and c.variant == name}
    red = {
        (key := Cell(setup, c.topology, "red", "", c.sweep, c.value)): cells[key].first(len(m.seeds))
        for c, m in mine.items()
    }
    return {**red, **mine}


def _mean(m: Measures, name: str) -> float:
    return float(m[name].mean())


def more(paper: Paper, cells: Cells) -> dict[str, Any]:
    """What `results.json` has beside claims and tables: both readings of Eq. (1), and the estimates."""
    shown = [
        ({"setup": c.setup, "topology": c.topology, "scheme": c.scheme, "variant": c.variant}, m)
        for c, m in cells.items()
        if not c.sweep
    ]
    return {
        "spreads": [
            {**place, **{name: _mean(m, name) for name in ("spread_drops", "spread_eq1", "spread_goal")}}
            for place, m in shown
        ],
        "estimates": [
            {
                "setup": place["setup"],
                "topology": place["topology"],
                "relative_error": _mean(m, "rtt_error"),
                "flows_known": _mean(m, "rtt_known"),
            }
            for place, m in shown
            if "rtt_error" in m.values
        ],
        "ledger_adds": added(paper, cells),
        "crossed": crossing(paper, cells),
        "points": [{"point": p.id, "values": point_values(p)} for p in paper.top.tables("points")],
    }
