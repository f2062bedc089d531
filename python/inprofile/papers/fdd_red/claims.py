"""How paper D's claims are judged: FDD-RED against RED, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number, judge
from ...stats import FREE, SHARE, UNLIKE, ci95, estimate
from .. import Cell, Paper
from ..measures import Measures
from .experiments import crossed, point_values

__all__ = [
    "ADDED",
    "MEASURES",
    "PLACEBOS",
    "TITLES",
    "added",
    "at_point",
    "crossing",
    "findings",
    "jain",
    "more",
    "table",
]

Cells = Mapping[Cell, Measures]

TITLES = {"red": "RED", "fdd": "FDD-RED"}
#: Words and unit of measures that the paper prints numbers of.
MEASURES = {
    "fi": ("fairness index", ""),
    "drops": ("packets dropped", "packets"),
    "link": ("aggregate throughput at the link", "bit/s"),
}
#: Variants in which no ledger decides.
PLACEBOS = ("front", "random", "own", "blind")
#: What FDD-RED is compared with its placebos by: words, unit, and whether more is better (1) or less (−1).
ADDED: Mapping[str, tuple[str, str, int]] = {
    "fi": ("fairness index", "", 1),
    "drops": ("packets dropped", "packets", -1),
    "link": ("throughput at the link", "bit/s", 1),
    "queue_std": ("standard deviation of the queue", "packets", -1),
    "spread_packets": ("standard deviation of drops over flows", "packets", -1),
}
BOUNDS = {"fi": SHARE, "drops": (0.0, np.inf)}
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
            bounds=UNLIKE if name == "fi" else FREE,
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

    @property
    def ran(self) -> bool:
        """Whether the variant was run in this set-up."""
        return all(
            Cell(self.setup, t["id"], "fdd", self.variant) in self.cells for t in self.paper.topologies
        )

    @property
    def long(self) -> bool:
        """Whether the start is left out: then the paper's numbers are not its."""
        return bool(self.paper.find("setups", self.setup)["window"][0] > 0)

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
    label = "throughput at the link, FDD-RED − RED"
    return [p.compare(label, "link", "above", "bit/s") for p in v.pairs()]


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
        equal.compare(
            "standard deviation of drops over flows, FDD-RED − RED", "spread_packets", "below", "packets"
        ),
        equal.compare(
            "relative standard deviation of drops over flows, FDD-RED − RED", "spread_drops", "below"
        ),
        unequal.compare(
            "standard deviation of drops · RTT/avgRTT over flows, FDD-RED − RED",
            "spread_goal_packets",
            "below",
            "packets",
        ),
        unequal.compare(
            "relative standard deviation of drops · RTT/avgRTT over flows, FDD-RED − RED",
            "spread_goal",
            "below",
        ),
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
        spread = float(equal.red["fi"].std(ddof=1))
        notes = [
            f"RED's own index, {equal.title}, is {_mean(equal.red, 'fi'):.3f} with a standard deviation of"
            f" {spread:.3f} from seed to seed."
        ]
        if not v.long:
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
            f"With {equal.title}, {over:.0f} of RED's {all_:.0f} drops are overflow,"
            " not decided by RED's average.",
            *_placebo_drops(v, equal),
        ]
    if claim == "D3":
        used = 100 * _mean(equal.red, "utilisation")
        got = " and ".join(
            f"{(_mean(p.fdd, 'total') - _mean(p.red, 'total')) / 1e3:+.1f} kbit/s ({p.title})".replace(
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
            f"{_mean(unequal.red, name):.2f} under RED and {_mean(unequal.fdd, name):.2f} under FDD-RED"
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


def _placebo_drops(v: _View, equal: _Pair) -> list[str]:
    """What the placebos drop beside the ledger, where they were run."""
    topology = v.paper.topologies[0]["id"]
    shown = [
        f"{variant['title'].removeprefix('placebo: ')} {_mean(m, 'drops'):.1f}"
        for variant in v.paper.variants
        if variant["id"] in PLACEBOS and (m := v.cells.get(Cell(v.setup, topology, "fdd", variant["id"])))
    ]
    if v.variant or not shown:
        return []
    return [
        f"Most of the fall is due to which packet is dropped. Without any ledger, {equal.title}:"
        f" {', '.join(shown)} drops; FDD-RED {_mean(equal.fdd, 'drops'):.1f}."
    ]


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables.

    `variant` is one of the paper's, or a cell of the crossed readings; set-ups without its runs are left out.
    """
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            view = _View(paper, cells, setup["id"], variant)
            if not view.ran:
                continue
            comparisons = _CLAIMS[claim["id"]](view)
            # The paper's numbers are of 20 s.
            numbers = () if view.long else claim.get("numbers", ())
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
            ("Table 2", "aggregate throughput at the link", "link", "bit/s", float(sum(rates))),
            ("Table 2", "aggregate throughput at receivers", "total", "bit/s", float(sum(rates))),
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
                    "paper": None if _View(paper, cells, cell.setup, "").long else value,
                    "values": [float(x) for x in m[name]],
                    "bounds": BOUNDS.get(name, FREE),
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


def added(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """What the ledger adds over every placebo: FDD-RED less the placebo, seed by seed.

    One entry a set-up, topology, placebo and measure, with `mean`, `ci95` and `better` (1, 0 or −1: FDD-RED
    is shown to be better, neither is, the placebo is). RED itself is the placebo `tail`.
    """
    made = []
    for setup in paper.setups:
        for topology in paper.topologies:
            fdd = cells.get(Cell(setup["id"], topology["id"], "fdd"))
            if fdd is None:
                continue
            placebos = [("tail", cells[Cell(setup["id"], topology["id"], "red")])]
            placebos += [
                (name, m)
                for name in PLACEBOS
                if (m := cells.get(Cell(setup["id"], topology["id"], "fdd", name)))
            ]
            for name, placebo in placebos:
                for measure, (_, _, good) in ADDED.items():
                    difference = [float(x) for x in fdd[measure] - placebo[measure]]
                    e = estimate(difference)
                    interval = ci95(difference, UNLIKE if measure == "fi" else FREE)
                    side = 0 if interval is None else (interval.lo > 0) - (interval.hi < 0)
                    made.append(
                        {
                            "setup": setup["id"],
                            "topology": topology["id"],
                            "placebo": name,
                            "measure": measure,
                            "mean": e.mean,
                            "ci95": None if interval is None else list(interval),
                            "better": good * side,
                        }
                    )
    return made


def crossing(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Verdicts of every claim in every cell of the crossed readings that was run, with its main figures."""
    made = []
    for name, values in crossed(paper).items():
        judged = judge(findings(paper, _paired(paper, cells, name), name))
        if not judged:
            continue
        setup = paper.about["crossed"]["setup"]
        main = {t["id"]: cells[Cell(setup, t["id"], "fdd", name)] for t in paper.topologies}
        made.append(
            {
                "readings": dict(zip(paper.about["crossed"]["readings"], name.split("/"), strict=True)),
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
    setup = paper.about["crossed"]["setup"]
    mine = {c: m for c, m in cells.items() if c.setup == setup and c.variant == name}
    red = {
        (key := Cell(setup, c.topology, "red", "", c.sweep, c.value)): cells[key].first(len(m.seeds))
        for c, m in mine.items()
    }
    return {**red, **mine}


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
        "ledger_adds": added(paper, cells),
        "crossed": crossing(paper, cells),
        "points": [{"point": point["id"], "values": point_values(point)} for point in paper.about["points"]],
    }
