"""Paper D's advice: unequal round trips where RED is unfair and where it is not, and the first 20 s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ...metrics.measures import Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known
from ..advice_today import Figure
from .measure import RATE

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture", "today"]

#: By title, scheme and variant.
LINES = {
    "RED": ("red", ""),
    "FDD-RED": ("fdd", ""),
    "Random victim": ("fdd", "blind"),
    "FQ-CoDel": ("fdd", "fq-codel"),
}
#: The network in which RED is unfair; the paper's own in steady state, without the queue in round-trip times.
WIDE, LONG, BASE_LONG = "wide", "all-drops-long", "all-drops-base-long"
#: Bits of a packet on the link.
PACKET = 8 * 540


def figures(report: Report) -> dict[str, float]:
    """Jain's index of unequal round trips, both networks; how long packets wait; drops of the first 20 s."""
    first = report.paper.setups[0].id
    red, fdd, blind, fq = (report.cell(WIDE, "unequal", *line) for line in LINES.values())
    rate = report.paper.find("setups", WIDE).number("rate")
    red_long, fdd_long = (report.cell(LONG, "unequal", s) for s in ("red", "fdd"))
    base_gain = report.cell(BASE_LONG, "unequal", "fdd")["fi"] - red_long["fi"]
    drops = {name: report.cell(first, "equal", *LINES[name])["drops"] for name in list(LINES)[:3]}
    return {
        **known("red", red["fi"]),
        **known("fdd", fdd["fi"]),
        **known("blind", blind["fi"]),
        **known("gain", fdd["fi"] - red["fi"]),
        **known("lead", fdd["fi"] - blind["fi"]),
        **known("fq", fq["fi"]),
        "fq_delay": 1e3 * float(fq["queue_mean"].mean()) * PACKET / rate,
        "fdd_delay": 1e3 * float(fdd["queue_mean"].mean()) * PACKET / rate,
        **known("sooner", 1e3 * (fdd["queue_mean"] - fq["queue_mean"]) * PACKET / rate),
        "wide_wait": 1e3 * float(red["queue_mean"].mean()) * PACKET / rate,
        **known("more_drops", 100 * (fdd["drops"] / red["drops"] - 1)),
        "red_short": float(report.cell(first, "unequal", "red")["fi"].mean()),
        "fdd_short": float(report.cell(first, "unequal", "fdd")["fi"].mean()),
        "wait": float(red_long["queue_mean"].mean()) * PACKET / RATE,
        "red_long": float(red_long["fi"].mean()),
        "fdd_long": float(fdd_long["fi"].mean()),
        **known("gain_long", fdd_long["fi"] - red_long["fi"]),
        "base_long": float((base_gain + red_long["fi"]).mean()),
        **known("base_gain", base_gain),
        "red_drops": float(drops["RED"].mean()),
        "fdd_drops": float(drops["FDD-RED"].mean()),
        "random_drops": float(drops["Random victim"].mean()),
        **known("fdd_to_red", drops["FDD-RED"] / drops["RED"]),
        **known("random_to_red", drops["Random victim"] / drops["RED"]),
    }


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The network in which RED is unfair, with one of today's senders."""
    red, fdd = (cells[Cell(WIDE, "unequal", scheme)] for scheme in ("red", "fdd"))
    index = "Jain's fairness index"
    return [
        Figure("red", f"{index}, RED", red["fi"], bounds=SHARE),
        Figure("fdd", f"{index}, FDD-RED (advised)", fdd["fi"], bounds=SHARE),
        Figure("gain", "what FDD-RED adds to the index", fdd["fi"] - red["fi"]),
    ]


def picture(report: Report) -> Mapping[str, Any]:
    """The index of every run in the network in which RED is unfair."""
    found = {title: report.cell(WIDE, "unequal", *line) for title, line in LINES.items()}
    rows = [draw.row(title, m["fi"], m.seeds) for title, m in found.items()]
    low = min(v for row in rows for v in row["values"])
    return draw.dots(
        rows, list(found), x="Jain's fairness index", paper={}, domain=(round(low - 0.02, 2), 1.002)
    )
