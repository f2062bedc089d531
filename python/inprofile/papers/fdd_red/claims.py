"""How paper D's claims are judged: FDD-RED against RED, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number
from .. import Cell, Paper
from ..measures import Measures
from .experiments import point_values

__all__ = ["MEASURES", "TITLES", "at_point", "findings", "jain", "more", "table"]

Cells = Mapping[Cell, Measures]

TITLES = {"red": "RED", "fdd": "FDD-RED"}
#: Words and unit of measures that the paper prints numbers of.
MEASURES = {
    "fi": ("fairness index", ""),
    "drops": ("packets dropped", "packets"),
    "total": ("aggregate throughput", "bit/s"),
}
BOUNDS = {"fi": (0.0, 1.0), "drops": (0.0, np.inf)}
#: Table 2 of the paper: each flow's throughput in bit/s.
PRINTED: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("equal", "red"): (203056, 244312, 182320, 196576, 151216),
    ("equal", "fdd"): (186856, 195928, 185704, 219600, 199976),
    ("unequal", "red"): (295936, 202840, 161800, 244528, 89224),
    ("unequal", "fdd"): (306304, 212128, 189232, 168496, 124496),
}


def jain(x: tuple[int, ...]) -> float:
    """Jain's index of printed rates, to set beside the printed index.

    >>> round(jain(PRINTED["equal", "red"]), 4), round(jain(PRINTED["unequal", "fdd"]), 4)
    (0.9766, 0.9165)
    """
    return float(sum(x) ** 2 / (len(x) * sum(v * v for v in x)))


@dataclass(frozen=True)
class _Pair:
    """RED and FDD-RED in one place of the experiment, with the same seeds."""

    red: Measures
    fdd: Measures
    title: str

    def difference(self, name: str) -> list[float]:
        """FDD-RED less RED, one value a seed."""
        return [float(x) for x in self.fdd[name] - self.red[name]]

    def compare(self, label: str, name: str, side: str, unit: str = "") -> Comparison:
        return Comparison(
            label,
            self.difference(name),
            "above" if side == "above" else "below",
            unit=unit,
            topology=self.title,
        )


def at_point(
    cells: Cells, topology: str, point: Mapping[str, Any], value: int, cell: Cell
) -> Measures | None:
    """Measures at one value of a figure with several points: the main runs' where these stand for it."""
    base = value == point["base"]
    sweep, written = ("", "") if base else (point["id"], str(value))
    return cells.get(Cell(cell.setup, topology, cell.scheme, cell.variant, sweep, written))


class _View:
    """The cells of one set-up and variant."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, variant: str) -> None:
        self.paper, self.cells, self.setup, self.variant = paper, cells, setup, variant

    def pair(self, topology: str) -> _Pair:
        red = self.cells[Cell(self.setup, topology, "red")]
        fdd = self.cells[Cell(self.setup, topology, "fdd", self.variant)]
        return _Pair(red, fdd, self.paper.find("topologies", topology)["title"])

    def pairs(self) -> Iterator[_Pair]:
        return (self.pair(t["id"]) for t in self.paper.topologies)

    def points(self) -> Iterator[tuple[Mapping[str, Any], int, _Pair]]:
        """Pairs at every point of Fig. 10 and 11 that was run beside the main runs."""
        topology = self.paper.topologies[0]["id"]
        for point in self.paper.about["points"]:
            for value in point["values"]:
                red, fdd = (
                    at_point(self.cells, topology, point, value, Cell(self.setup, topology, scheme, variant))
                    for scheme, variant in (("red", ""), ("fdd", self.variant))
                )
                if red and fdd:
                    yield point, value, _Pair(red, fdd, f"{value}{point.get('unit', ' flows')}")


def _d1(v: _View) -> list[Comparison]:
    return [p.compare("fairness index, FDD-RED − RED", "fi", "above") for p in v.pairs()]


def _d2(v: _View) -> list[Comparison]:
    pairs = [*v.pairs(), *(p for _, _, p in v.points())]
    return [p.compare("packets dropped, FDD-RED − RED", "drops", "below", "packets") for p in pairs]


def _d3(v: _View) -> list[Comparison]:
    return [p.compare("aggregate throughput, FDD-RED − RED", "total", "above", "bit/s") for p in v.pairs()]


def _d4(v: _View) -> list[Comparison]:
    pair = v.pair("equal")
    return [pair.compare("standard deviation of the queue, FDD-RED − RED", "queue_std", "below", "packets")]


def _d5(v: _View) -> list[Comparison]:
    if "full_from" not in v.pair("equal").red.values:
        return []
    return [
        v.pair("equal").compare(
            "time from which the link stays full, FDD-RED − RED", "full_from", "below", "s"
        )
    ]


def _d6(v: _View) -> list[Comparison]:
    equal, unequal = v.pair("equal"), v.pair("unequal")
    return [
        equal.compare("variation of drops over flows, FDD-RED − RED", "spread_drops", "below"),
        unequal.compare("variation of drops · RTT/avgRTT over flows, FDD-RED − RED", "spread_goal", "below"),
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
        return "The first 100 s, in which the link fills, are left out here."
    return None


def _mean(m: Measures, name: str) -> float:
    return float(m[name].mean())


def _notes(claim: str, v: _View) -> list[str]:
    """Circumstances behind a verdict."""
    equal, unequal = v.pair("equal"), v.pair("unequal")
    if claim == "D1":
        spread = float(equal.red["fi"].std(ddof=1))
        notes = [
            f"RED's own index, {equal.title}, is {_mean(equal.red, 'fi'):.3f} with a standard deviation of"
            f" {spread:.3f} from seed to seed."
        ]
        if v.setup == "twenty-seconds":
            odd = [(k, jain(PRINTED[k])) for k in (("equal", "red"), ("unequal", "fdd"))]
            words = " and ".join(
                f"{x:.4f} ({TITLES[s]}, {v.paper.find('topologies', t)['title']})" for (t, s), x in odd
            )
            notes.append(
                f"Two of the four printed indices disagree with the printed rates, which give {words}."
            )
        return notes
    if claim == "D2":
        over, all_ = _mean(equal.red, "drops_overflow"), _mean(equal.red, "drops")
        return [
            f"With {equal.title}, {over:.0f} of RED's {all_:.0f} drops are for want of room,"
            " which RED's average does not decide."
        ]
    if claim == "D3":
        used = 100 * _mean(equal.red, "utilisation")
        return [f"Under RED the link is used to {used:.1f} % already, {equal.title}."]
    if claim == "D6":
        eq1, goal = (
            f"{_mean(unequal.red, name):.2f} under RED and {_mean(unequal.fdd, name):.2f} under FDD-RED"
            for name in ("spread_eq1", "spread_goal")
        )
        return [
            "The ledger of Fig. 2 evens out what flows owe, not what they lose: a flow loses a packet for"
            " every decision at its own arrivals and for every time it is charged as partner, each in its"
            " share, less what all owe alike. Whose arrivals draw RED's decisions goes on losing most.",
            "Eq. (1) as printed would even out drops · avgRTT/RTT, and so give short round-trip times"
            f" fewer drops; the text and Fig. 2 do the opposite. With {unequal.title} its variation over"
            f" flows is {eq1}; that of drops · RTT/avgRTT {goal}.",
        ]
    return []


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            view = _View(paper, cells, setup["id"], variant)
            comparisons = _CLAIMS[claim["id"]](view)
            # The paper's numbers are of 20 s.
            numbers = claim.get("numbers", ()) if setup["id"] == "twenty-seconds" else ()
            found.append(
                Finding(
                    claim["id"],
                    setup["id"],
                    comparisons,
                    [_number(view, entry) for entry in numbers],
                    _notes(claim["id"], view),
                    _obstacle(claim["id"], comparisons),
                )
            )
    return found


def _number(view: _View, entry: Mapping[str, Any]) -> Number:
    words, unit = MEASURES[entry["measure"]]
    pair = view.pair(entry["topology"])
    measures = pair.red if entry["scheme"] == "red" else pair.fdd
    return Number(
        f"{words}, {TITLES[entry['scheme']]}",
        [float(x) for x in measures[entry["measure"]]],
        entry["value"],
        entry["where"],
        unit,
        pair.title,
        BOUNDS.get(entry["measure"], (-np.inf, np.inf)),
    )


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Tables 1 and 2 beside ours: one row a figure, set-up, scheme and variant."""
    made = []
    for cell, m in cells.items():
        if cell.sweep:
            continue
        title = f"{paper.find('topologies', cell.topology)['title']}, {TITLES[cell.scheme]}"
        rates = PRINTED[cell.topology, cell.scheme]
        rows: list[tuple[str, str, str, str, float | None]] = [
            ("Table 2", "fairness index", "fi", "", _printed(paper, "fi", cell)),
            ("Table 2", "aggregate throughput", "total", "bit/s", float(sum(rates))),
            ("Table 1", "packets dropped", "drops", "packets", _printed(paper, "drops", cell)),
        ]
        rows += [
            ("Table 2", f"throughput, Flow{i}", f"flow{i}", "bit/s", float(x)) for i, x in enumerate(rates)
        ]
        for where, what, name, unit, value in rows:
            made.append(
                {
                    "table": where,
                    "what": what,
                    "label": title,
                    "unit": unit,
                    "setup": cell.setup,
                    "topology": cell.topology,
                    "scheme": cell.scheme,
                    "variant": cell.variant,
                    "paper": value if cell.setup == "twenty-seconds" else None,
                    "values": [float(x) for x in m[name]],
                    "seeds": list(m.seeds),
                }
            )
    return made


def _printed(paper: Paper, measure: str, cell: Cell) -> float | None:
    for claim in paper.claims:
        for n in claim.get("numbers", ()):
            if (n["measure"], n["topology"], n["scheme"]) == (measure, cell.topology, cell.scheme):
                return float(n["value"])
    return None


def more(paper: Paper, cells: Cells) -> dict[str, Any]:
    """What `results.json` has beside claims and tables: both readings of Eq. (1), and the estimates."""
    return {
        "spreads": [
            {
                "setup": cell.setup,
                "topology": cell.topology,
                "scheme": cell.scheme,
                "variant": cell.variant,
                **{name: _mean(m, name) for name in ("spread_drops", "spread_eq1", "spread_goal")},
            }
            for cell, m in cells.items()
            if not cell.sweep
        ],
        "estimates": [
            {
                "setup": cell.setup,
                "topology": cell.topology,
                "relative_error": _mean(m, "rtt_error"),
                "flows_known": _mean(m, "rtt_known"),
            }
            for cell, m in cells.items()
            if not cell.sweep and "rtt_error" in m.values
        ],
        "points": [{"point": point["id"], "values": point_values(point)} for point in paper.about["points"]],
    }
