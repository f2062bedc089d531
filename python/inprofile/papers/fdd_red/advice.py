"""Paper D's advice: unequal round trips where RED is unfair and where it is not, the first 20 s, the cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ...metrics.measures import Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known, where_run
from ..rerun import Figure
from . import boundary, cost
from .measure import PACKET

if TYPE_CHECKING:
    from ..report import Report

#: By title, scheme and variant.
LINES = {
    "RED": ("red", ""),
    "FDD-RED": ("fdd", ""),
    "Random victim": ("fdd", "blind"),
    "FQ-CoDel": ("fdd", "fq-codel"),
}
#: Where it pays at no point of the boundary.
NOWHERE = 1e6
#: The network in which RED is unfair; the paper's own in steady state, without the queue in round-trip times.
WIDE, LONG, BASE_LONG = "wide", "all-drops-long", "all-drops-base-long"


def figures(report: Report) -> dict[str, float]:
    """Jain's index, drops, waits and use of the link in both networks; where it pays; what a packet costs."""
    return {**_wide(report), **_own(report), **_where(report), **_by_reading(report), **_cost()}


def _wide(report: Report) -> dict[str, float]:
    """The network in which RED is unfair."""
    red, fdd, blind, fq = (report.cell(WIDE, "unequal", *line) for line in LINES.values())
    packet = 1e3 * PACKET / report.paper.find("setups", WIDE).number("rate")
    return {
        **known("red", red["fi"]),
        **known("fdd", fdd["fi"]),
        **known("gain", fdd["fi"] - red["fi"]),
        **known("lead", fdd["fi"] - blind["fi"]),
        **known("fq", fq["fi"]),
        **{
            f"{name}_delay": packet * float(m["queue_mean"].mean())
            for name, m in (("red", red), ("fdd", fdd), ("fq", fq))
        },
        **known("sooner", packet * (fdd["queue_mean"] - fq["queue_mean"])),
        **{
            f"{name}_used": float(m["utilisation"].mean())
            for name, m in (("red", red), ("fdd", fdd), ("fq", fq))
        },
        **known("fq_less_used", red["utilisation"] - fq["utilisation"]),
        **known("more_drops", fdd["drops"] / red["drops"] - 1),
        **known("fq_more_drops", fq["drops"] / red["drops"] - 1),
        **known("fq_lead", fq["fi"] - fdd["fi"]),
    }


def _own(report: Report) -> dict[str, float]:
    """The paper's own networks: its 20 s, and steady state."""
    first = report.paper.setups[0].id
    red, fdd = (report.cell(LONG, "unequal", s) for s in ("red", "fdd"))
    equal_red, equal_fdd = (report.cell(LONG, "equal", s) for s in ("red", "fdd"))
    drops = {name: report.cell(first, "equal", *LINES[name])["drops"] for name in list(LINES)[:3]}
    return {
        "red_long": float(red["fi"].mean()),
        "fdd_long": float(fdd["fi"].mean()),
        **known("gain_long", fdd["fi"] - red["fi"]),
        **where_run(lambda: _without_queue(report, red)),
        "red_drops": float(drops["RED"].mean()),
        "fdd_drops": float(drops["FDD-RED"].mean()),
        "random_drops": float(drops["Random victim"].mean()),
        **known("fdd_to_red", drops["FDD-RED"] / drops["RED"]),
        **known("random_to_fdd", drops["Random victim"] / drops["FDD-RED"]),
        "red_drops_long": float(equal_red["drops"].mean()),
        "fdd_drops_long": float(equal_fdd["drops"].mean()),
        **known("fdd_to_red_long", equal_fdd["drops"] / equal_red["drops"]),
    }


def _without_queue(report: Report, red: Measures) -> dict[str, float]:
    """The same in steady state with round-trip times that leave out the queue: run with `--full`."""
    gain = report.cell(BASE_LONG, "unequal", "fdd")["fi"] - red["fi"]
    return {"base_long": float((gain + red["fi"]).mean()), **known("base_gain", gain)}


def _where(report: Report) -> dict[str, float]:
    """At how many points of the boundary it pays, and from which spread of round trips over RED's wait on."""
    points = boundary.found(report.paper, report.cells)["points"]
    of = {boundary.ratio(p): boundary.pays(p["paper"]) for p in points}
    gain = {boundary.ratio(p): p["paper"]["over_red"][0] for p in points}
    refused, unsure = ([ratio for ratio, word in of.items() if word == w] for w in ("no", "open"))
    above = [ratio for ratio in of if ratio > max([*refused, *unsure], default=0.0)]
    between = max(unsure, default=max(refused, default=0.0))
    own = points[0]["paper"]
    return {
        "points": float(len(points)),
        "pays": float(sum(boundary.pays(p["paper"]) == "yes" for p in points)),
        "pays_linux": float(sum(boundary.pays(p["linux"]) == "yes" for p in points)),
        "pays_from": min(above, default=NOWHERE),
        "not_to": max(refused, default=0.0),
        "open_at": between,
        "open_gain": gain.get(between, 0.0),
        # The first point is the paper's own network.
        "own_ratio": boundary.ratio(points[0]),
        **{f"own_red{end}": x for end, x in zip(("", "_lo", "_hi"), own["red"], strict=True)},
        **{f"own_base{end}": x for end, x in zip(("", "_lo", "_hi"), own["base"], strict=True)},
    }


def _by_reading(report: Report) -> dict[str, float]:
    """The index in the network in which RED is unfair where Fig. 2 is read otherwise."""
    points = boundary.found(report.paper, report.cells)["points"]
    last, ends = points[-1]["paper"], ("", "_lo", "_hi")
    # Of those at which it is shown not to pay, the one with the widest spread for RED's wait.
    near = max((p for p in points if boundary.pays(p["paper"]) == "no"), key=boundary.ratio)["paper"]
    figures = {line: last[line] for line in boundary.READINGS}
    figures |= {
        "near_red": near["red"],
        "near_literal": near[boundary.LITERAL],
        "near_gain": near["over_red"],
        "near_literal_gain": near[f"{boundary.LITERAL}_over_red"],
    }
    figures |= {
        f"least_fq_lead{who}": min(
            ([-x for x in (p[at][f"over_{boundary.FQ}"][i] for i in (0, 2, 1))] for p in points),
            key=lambda f: f[0],
        )
        for who, at in (("", "paper"), ("_cubic", "linux"))
    }
    return {
        f"{name}{end}": x for name, figure in figures.items() for end, x in zip(ends, figure, strict=True)
    }


def _cost() -> dict[str, float]:
    """CPU time of a packet in ns, in our code."""
    found = cost.measured()
    return {
        "cpu_red": float(found[cost.FEW].red.mean()),
        "cpu_few": float(found[cost.FEW].fdd.mean()),
        "cpu_many": float(found[cost.MANY].fdd.mean()),
    }


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """With one of today's senders: the network in which RED is unfair; the paper's two, 20 s and 1,000 s."""
    index, first, steady = "Jain's fairness index", paper.setups[0].id, "1,000 s without the first 100"
    places = {
        "": (WIDE, "unequal", "round trips of 20 to 400 ms on 4 Mbit/s"),
        "_equal": (first, "equal", "the paper's network, equal round trips, first 20 s"),
        "_unequal": (first, "unequal", "the paper's network, round trips of 20 to 100 ms, first 20 s"),
        "_equal_long": (LONG, "equal", f"the paper's network, equal round trips, {steady}"),
        "_unequal_long": (LONG, "unequal", f"the paper's network, round trips of 20 to 100 ms, {steady}"),
    }
    made = []
    for name, (setup, topology, where) in places.items():
        red, fdd = (cells[Cell(setup, topology, scheme)] for scheme in ("red", "fdd"))
        made += [
            Figure(f"red{name}", f"{index}, RED: {where}", red["fi"], bounds=SHARE),
            Figure(f"fdd{name}", f"{index}, FDD-RED: {where}", fdd["fi"], bounds=SHARE),
            Figure(f"gain{name}", f"what FDD-RED adds to the index: {where}", fdd["fi"] - red["fi"]),
        ]
        if name == "":
            fq = cells[Cell(setup, topology, "fdd", boundary.FQ)]
            every = (("red", "RED", red), ("fdd", "FDD-RED", fdd), ("fq", "FQ-CoDel", fq))
            made += [
                Figure("fq", f"{index}, FQ-CoDel: {where}", fq["fi"], bounds=SHARE),
                Figure("fq_lead", f"what FQ-CoDel adds to FDD-RED's index: {where}", fq["fi"] - fdd["fi"]),
                *(
                    Figure(f"{who}_drops", f"packets dropped, {title}: {where}", m["drops"], "packets")
                    for who, title, m in every
                ),
                *(
                    Figure(
                        f"{name}drops",
                        f"packets dropped beyond RED's, over RED's, {title}: {where}",
                        m["drops"] / red["drops"] - 1,
                    )
                    for name, title, m in (("more_", "FDD-RED", fdd), ("fq_more_", "FQ-CoDel", fq))
                ),
                *(
                    Figure(f"{who}_used", f"use of the link, {title}: {where}", m["utilisation"])
                    for who, title, m in every
                ),
            ]
    return made


def picture(report: Report) -> Mapping[str, Any]:
    """The index of every run in the network in which RED is unfair."""
    found = {title: report.cell(WIDE, "unequal", *line) for title, line in LINES.items()}
    rows = [draw.row(title, m["fi"], m.seeds) for title, m in found.items()]
    low = min(v for row in rows for v in row["values"])
    return draw.dots(
        rows, list(found), x="Jain's fairness index", paper={}, domain=(round(low - 0.02, 2), 1.002)
    )
