"""How paper D's claims are judged: FDD-RED against RED, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...metrics.measures import Measures
from ...metrics.stats import FREE, SHARE, UNLIKE, jain
from .. import Cell, Entry, Paper
from ..judge import Comparison, Finding, Number
from ..pairing import Pair
from .tables import at_point, more, rates, table

__all__ = ["findings", "more", "rests_on", "table"]

Cells = Mapping[Cell, Measures]

BOUNDS = {"fi": SHARE, "drops": (0.0, np.inf)}


class _View:
    """The cells of one set-up and variant."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, variant: str) -> None:
        self.paper, self.cells, self.setup, self.variant = paper, cells, setup, variant

    def pair(self, topology: str) -> Pair:
        red = self.cells[Cell(self.setup, topology, "red")]
        fdd = self.cells[Cell(self.setup, topology, "fdd", self.variant)]
        return Pair(red, fdd, self.paper.find("topologies", topology).title)

    def pairs(self) -> list[Pair]:
        return [self.pair(t.id) for t in self.paper.topologies]

    @property
    def ran(self) -> bool:
        """Whether the variant was run in this set-up."""
        return all(Cell(self.setup, t.id, "fdd", self.variant) in self.cells for t in self.paper.topologies)

    @property
    def long(self) -> bool:
        """Whether the start is left out: then the paper's numbers are not its."""
        return self.paper.find("setups", self.setup).numbers("window")[0] > 0

    def points(self) -> Iterator[Pair]:
        """Pairs at every point of Fig. 10 and 11 that was run beside the main runs."""
        topology = self.paper.topologies[0].id
        for point in self.paper.top.tables("points"):
            for value in point.numbers("values"):
                red, fdd = (
                    at_point(self.cells, topology, point, int(value), Cell(self.setup, topology, scheme, v))
                    for scheme, v in (("red", ""), ("fdd", self.variant))
                )
                if red and fdd:
                    yield Pair(red, fdd, f"{value:g}{point.word('unit', ' flows')}")


def _d1(v: _View) -> list[Comparison]:
    label = "fairness index, FDD-RED − RED"
    return [p.compare(label, "fi", "above", bounds=UNLIKE) for p in v.pairs()]


def _d2(v: _View) -> list[Comparison]:
    label = "packets dropped, FDD-RED − RED"
    return [p.compare(label, "drops", "below", "packets") for p in (*v.pairs(), *v.points())]


def _d3(v: _View) -> list[Comparison]:
    label = "throughput at the link, FDD-RED − RED"
    return [p.compare(label, "link", "above", "bit/s") for p in v.pairs()]


def _d4(v: _View) -> list[Comparison]:
    pair = v.pair("equal")
    return [
        pair.compare("standard deviation of the queue, FDD-RED − RED", "queue_std", "below", "packets"),
        pair.compare("mean queue, FDD-RED − RED", "queue_mean", "below", "packets"),
    ]


def _d5(v: _View) -> list[Comparison]:
    pair = v.pair("equal")
    if "full_from" not in pair.base.values:
        return []
    return [pair.compare("time from which the link stays full, FDD-RED − RED", "full_from", "below", "s")]


def _d6(v: _View) -> list[Comparison]:
    kinds = (("standard deviation", "_packets", "packets"), ("relative standard deviation", "", ""))
    of = (
        (v.pair("equal"), "drops", {"_packets": "spread_packets", "": "spread_drops"}),
        (
            v.pair("unequal"),
            "drops · RTT/avgRTT",
            {"_packets": "spread_goal_packets", "": "spread_goal"},
        ),
    )
    return [
        pair.compare(f"{words} of {what} over flows, FDD-RED − RED", names[kind], "below", unit)
        for pair, what, names in of
        for words, kind, unit in kinds
    ]


_CLAIMS: Mapping[str, Callable[[_View], list[Comparison]]] = {
    "D1": _d1,
    "D2": _d2,
    "D3": _d3,
    "D4": _d4,
    "D5": _d5,
    "D6": _d6,
}


def _obstacle(claim: str, comparisons: list[Comparison]) -> str | None:
    if claim == "D5" and not comparisons:
        return "The first 100 s, in which the link fills, are not measured here."
    return None


def _mean(m: Measures, name: str) -> float:
    return float(m[name].mean())


def _notes(claim: str, v: _View) -> list[str]:
    """Circumstances behind a verdict."""
    equal, unequal = v.pair("equal"), v.pair("unequal")
    if claim == "D1":
        spread = float(equal.base["fi"].std(ddof=1))
        notes = [
            f"RED's own index, {equal.title}, is {_mean(equal.base, 'fi'):.3f} with a standard deviation of"
            f" {spread:.3f} from seed to seed."
        ]
        if not v.long:
            odd = [(k, jain(rates(v.paper, *k))) for k in (("equal", "red"), ("unequal", "fdd"))]
            words = " and ".join(
                f"{x:.4f} ({v.paper.find('schemes', s).title}, {v.paper.find('topologies', t).title})"
                for (t, s), x in odd
            )
            notes.append(
                f"Two of the four printed indices disagree with the printed rates, which give {words}."
            )
        return notes
    if claim == "D2":
        over, all_ = _mean(equal.base, "drops_overflow"), _mean(equal.base, "drops")
        return [
            f"With {equal.title}, {over:.0f} of RED's {all_:.0f} drops are overflow,"
            " not decided by RED's average.",
            *_placebo_drops(v, equal),
        ]
    if claim == "D3":
        used = 100 * _mean(equal.base, "utilisation")
        got = " and ".join(
            f"{(_mean(p.ours, 'total') - _mean(p.base, 'total')) / 1e3:+.1f} kbit/s ({p.title})".replace(
                "-", "−"
            )
            for p in (equal, unequal)
        )
        return [
            f"Under RED the link's utilisation is already {used:.1f} %, {equal.title}.",
            f"Counted at the receivers, in order and without repeated packets, the sum changes by {got}.",
        ]
    if claim == "D6":
        eq1, goal = (
            f"{_mean(unequal.base, name):.2f} under RED and {_mean(unequal.ours, name):.2f} under FDD-RED"
            for name in ("spread_eq1", "spread_goal")
        )
        return [
            "Fig. 2 evens out penalties, not drops: a flow is charged for every decision at its own arrivals"
            " and for every time it is the partner. A flow at whose arrivals RED decides more often goes on"
            " losing more.",
            "Eq. (1) as printed would even out drops · avgRTT/RTT, and so give short round-trip times"
            f" fewer drops; the text and Fig. 2 do the opposite. With {unequal.title} its variation over"
            f" flows is {eq1}; that of drops · RTT/avgRTT {goal}.",
        ]
    return []


def _placebo_drops(v: _View, equal: Pair) -> list[str]:
    """What the placebos drop beside the ledger, where they were run."""
    topology = v.paper.topologies[0].id
    shown = [
        f"{variant.title.removeprefix('placebo: ')} {_mean(m, 'drops'):.1f}"
        for variant in v.paper.variants
        if variant.flag("placebo") and (m := v.cells.get(Cell(v.setup, topology, "fdd", variant.id)))
    ]
    if v.variant or not shown:
        return []
    return [
        f"Most of the fall is due to which packet is dropped. Without any ledger, {equal.title}:"
        f" {', '.join(shown)} drops; FDD-RED {_mean(equal.ours, 'drops'):.1f}."
    ]


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict in a set-up needs this cell: D2 alone is about Fig. 10 and 11 too."""
    return claim == "D2" or not cell.sweep


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables.

    `variant` is one of the paper's, or a cell of the crossed readings; set-ups without its runs are skipped.
    """
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            view = _View(paper, cells, setup.id, variant)
            if not view.ran:
                continue
            comparisons = _CLAIMS[claim.id](view)
            # The paper's numbers are of 20 s.
            numbers = [] if view.long else [_number(view, entry) for entry in claim.tables("numbers")]
            obstacle = _obstacle(claim.id, comparisons)
            found.append(Finding(claim.id, setup.id, comparisons, numbers, _notes(claim.id, view), obstacle))
    return found


def _number(view: _View, entry: Entry) -> Number:
    measure, scheme = entry.word("measure"), entry.word("scheme")
    pair = view.pair(entry.word("topology"))
    m = pair.base if scheme == "red" else pair.ours
    about = view.paper.top.table("measures").table(measure)
    return Number(
        f"{about.word('words')}, {view.paper.find('schemes', scheme).title}",
        [float(x) for x in m[measure]],
        entry.number("value"),
        entry.where,
        about.word("unit"),
        pair.title,
        BOUNDS.get(measure, FREE),
    )
