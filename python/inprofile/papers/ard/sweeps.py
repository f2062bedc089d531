"""When ARD helps and when it hurts, and what assumed parameters do: sweeps, kept in `sweeps.json`.

Sweeps run with `inprofile reproduce ard --full`. Without it the page shows the last ones that were kept:
`python -m inprofile.papers.ard.sweeps` runs them and writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from ...charts import kinds as draw
from ...metrics.measures import Array, Measures
from ...metrics.quantity import number
from ...metrics.stats import ci95
from .. import Cell, Entry, Paper
from ..defaults import sweep_jobs, value_named, values_of

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]

FILE = Path(__file__).parent / "sweeps.json"
#: Shown of every sweep: measure, label, unit.
SHOWN: tuple[tuple[Literal["fi", "lambda_in"], str, float], ...] = (
    ("fi", "fairness index", 1.0),
    ("lambda_in", "IN rate (kbit/s)", 1e3),
)
#: Pairs whose difference in fairness is told, and what they ask.
PAIRS = (("ard", "rio"), ("ard", "placebo"))
#: Of each flow, in the sweep of round-trip times.
BY_FLOW = ("rtt", "throughput", "in_share", "edge_loss")


class Figures(TypedDict):
    """A scheme's figures at one value: mean and 95 % interval, and each flow's means in the sweep of RTTs."""

    fi: list[float]
    lambda_in: list[float]
    by_flow: NotRequired[dict[str, list[float]]]


class Point(TypedDict):
    """One value of what was swept."""

    value: str
    #: By scheme.
    schemes: dict[str, Figures]
    #: By pair of schemes, `ard-rio`: 1, 0 or −1, the sign of the difference in fairness where it is shown.
    sides: dict[str, int]


class Panel(TypedDict):
    """A sweep in a set-up."""

    sweep: str
    setup: str
    points: list[Point]


class Kept(TypedDict):
    """What is kept of all sweeps."""

    topology: str
    seeds: int
    panels: list[Panel]


def shown(paper: Paper) -> list[Entry]:
    """What varies a parameter: what `set`s more is an experiment of its own, a claim's."""
    return [sweep for sweep in paper.sweeps if "set" not in sweep]


def reduce(paper: Paper, cells: Mapping[Cell, Measures]) -> Kept:
    """What is kept of swept cells: means with intervals, the sign of paired differences, figures by flow."""
    panels: list[Panel] = []
    topology = paper.topologies[0].id
    for sweep in shown(paper):
        for setup in sweep.words("setups"):
            found = {
                (cell.value, cell.scheme): m
                for cell, m in cells.items()
                if (cell.sweep, cell.setup, cell.topology) == (sweep.id, setup, topology)
            }
            if found:
                points = _points(paper, sweep, setup, found, cells)
                panels.append({"sweep": sweep.id, "setup": setup, "points": points})
    return {"topology": topology, "seeds": paper.seeds.whole("sweep"), "panels": panels}


def _points(
    paper: Paper,
    sweep: Entry,
    setup: str,
    found: Mapping[tuple[str, str], Measures],
    cells: Mapping[Cell, Measures],
) -> list[Point]:
    return [
        {
            "value": value,
            "schemes": {
                s.id: _figures(found[value, s.id], sweep) for s in paper.schemes if (value, s.id) in found
            },
            "sides": {
                f"{a}-{b}": side([float(x) for x in pair[0]["fi"] - pair[1]["fi"]])
                for a, b in PAIRS
                if (pair := _pair(paper, setup, value, a, b, found, cells)) is not None
            },
        }
        for value in values_of(sweep)
    ]


def _pair(
    paper: Paper,
    setup: str,
    value: str,
    a: str,
    b: str,
    found: Mapping[tuple[str, str], Measures],
    cells: Mapping[Cell, Measures],
) -> tuple[Measures, Measures] | None:
    """Both schemes at a value; where RIO has no such parameter, RIO as in the scenario file."""
    ours, theirs = found.get((value, a)), found.get((value, b))
    if theirs is None:
        first = paper.sweeps[0]
        as_it_stands = first.table("assumed").word(paper.topologies[0].id)
        theirs = cells.get(Cell(setup, paper.topologies[0].id, b, sweep=first["id"], value=as_it_stands))
    if ours is None or theirs is None or ours.seeds != theirs.seeds:
        return None
    return ours, theirs


def _figures(m: Measures, sweep: Entry) -> Figures:
    made = Figures(fi=_figure(m["fi"]), lambda_in=_figure(m["lambda_in"]))
    if sweep.id == "rtt":
        made["by_flow"] = {name: [_short(x) for x in m.by_flow[name].mean(axis=0)] for name in BY_FLOW}
    return made


def _figure(measured: Array) -> list[float]:
    """Mean and 95 % interval."""
    values = [float(x) for x in measured]
    lo, hi = ci95(values) or (values[0], values[0])
    return [_short(x) for x in (measured.mean(), lo, hi)]


def _short(x: float) -> float:
    return float(f"{x:.5g}")


def kept() -> Kept:
    """The sweeps that were kept last."""
    found: Kept = json.loads(FILE.read_text("utf-8"))
    return found


def renew(jobs: int | None = None) -> None:
    """Run all sweeps and keep them."""
    from ... import papers
    from ...run.pool import Local
    from ..experiment import measure_work, measured_with, work_of
    from .measure import measure

    paper = papers.load("ard")
    cells: dict[Cell, Measures] = {}
    base: dict[str, Scenario] = {}
    for batch in sweep_jobs(paper):
        places = [job.cell for job in batch]
        found = measure_work(
            [work_of(paper, job, cells, base) for job in batch],
            [measured_with(paper, job) for job in batch],
            lambda i, r, places=places: measure(r, places[i], paper),  # type: ignore[misc]
            backend=Local(jobs),
        )
        cells.update(zip(places, found, strict=True))
    text = json.dumps(reduce(paper, cells), ensure_ascii=False, indent=None, separators=(",", ":"))
    FILE.write_text(text.replace('{"sweep"', '\n{"sweep"').replace('{"value"', '\n {"value"') + "\n", "utf-8")


def sweeps(report: Report, charts: Charts) -> dict[str, Any]:
    """Charts and a sentence for each sweep, from this run's cells or from those kept; figures by flow."""
    ran = report.full and any(cell.sweep for cell in report.cells)
    found = reduce(report.paper, report.cells) if ran else kept()
    known = {setup.id for setup in report.paper.setups}
    found["panels"] = [panel for panel in found["panels"] if panel["setup"] in known]
    swept = (len(m.seeds) for c, m in report.cells.items() if c.sweep)
    seeds = max(swept, default=0) if ran else found["seeds"]
    when: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for sweep in shown(report.paper):
        panels = [
            _panel(report.paper, sweep, panel, found["topology"], charts)
            for panel in found["panels"]
            if panel["sweep"] == sweep.id
        ]
        if panels:
            (when if sweep.flag("when") else rest).append({"sweep": sweep, "panels": panels})
    return {"when": when, "rest": rest, "seeds": seeds, "ran": ran, "by_flow": _by_flow(report.paper, found)}


def _panel(paper: Paper, sweep: Entry, panel: Panel, topology: str, charts: Charts) -> dict[str, Any]:
    setup = paper.find("setups", panel["setup"])
    points = [
        Point(value=value_named(paper, sweep, p["value"]), schemes=p["schemes"], sides=p["sides"])
        for p in panel["points"]
    ]
    values = [p["value"] for p in points]
    named = titles(paper)
    schemes = [title for s, title in named.items() if any(s in p["schemes"] for p in points)]
    shown = {}
    for measure, label, factor in SHOWN[:1] if sweep.flag("when") else SHOWN:
        rows = [
            {"scheme": named[s], "value": p["value"], **dict(zip(("mean", "lo", "hi"), figures, strict=True))}
            for p in points
            for s, f in p["schemes"].items()
            for figures in [[x / factor for x in f[measure]]]
        ]
        name = f"sweep-{sweep.id}-{setup.id}-{measure}"
        assumed = sweep.table("assumed").get(topology) if "assumed" in sweep else None
        charts[name] = draw.response(rows, values, schemes, x=sweep.title, y=label, assumed=assumed)
        shown[measure] = name
    return {
        "setup": setup,
        "topology": paper.find("topologies", topology),
        "charts": shown,
        "words": words(points),
    }


def words(points: Sequence[Mapping[str, Any]]) -> str:
    """Where ARD is fairer or less fair than RIO and than the placebo, by paired 95 % intervals.

    >>> words([{"value": "a", "sides": {"ard-rio": 1}}, {"value": "b", "sides": {"ard-rio": -1}}])
    'Against no edge marker, ARD is fairer at a and less fair at b.'
    """
    parts = []
    for pair, base in (("ard-rio", "no edge marker"), ("ard-placebo", "the placebo")):
        told = [(p["value"], p["sides"][pair]) for p in points if pair in p["sides"]]
        if not told:
            continue
        fairer, less = ([str(v) for v, s in told if s == sign] for sign in (1, -1))
        said = [f"fairer at {_list(fairer)}"] * bool(fairer) + [f"less fair at {_list(less)}"] * bool(less)
        parts.append(f"Against {base}, ARD is {' and '.join(said) or 'statistically tied everywhere'}.")
    return " ".join(parts)


def _list(values: Sequence[str]) -> str:
    return ", ".join(values)


def _by_flow(paper: Paper, found: Kept) -> list[dict[str, Any]]:
    """Rates, IN share and edge loss of each flow at the widest spread of round-trip times."""
    shown = []
    for panel in found["panels"]:
        if panel["sweep"] != "rtt":
            continue
        point = panel["points"][-2]
        by = {s: f["by_flow"] for s, f in point["schemes"].items()}
        shown.append(
            {
                "setup": paper.find("setups", panel["setup"]),
                "value": point["value"],
                "rows": [
                    {
                        "rtt": number(1e3 * by["rio"]["rtt"][i], 3),
                        **{s: number(by[s]["throughput"][i] / 1e3, 3) for s in titles(paper)},
                        "in_share": f"{100 * by['ard']['in_share'][i]:.0f}",
                        "ard_loss": f"{100 * by['ard']['edge_loss'][i]:.2f}",
                        "placebo_loss": f"{100 * by['placebo']['edge_loss'][i]:.2f}",
                    }
                    for i in range(len(by["rio"]["rtt"]))
                ],
            }
        )
    return shown


def titles(paper: Paper) -> dict[str, str]:
    """Titles of schemes by id, in the order of every chart and table."""
    return {scheme.id: scheme.title for scheme in paper.schemes}


def side(values: list[float]) -> int:
    """On which side of 0 the 95 % interval of the mean lies; 0 where it holds 0."""
    interval = ci95(values)
    if interval is None or 0.0 in interval:
        return 0
    return 1 if interval.lo > 0 else -1


if __name__ == "__main__":
    renew()
