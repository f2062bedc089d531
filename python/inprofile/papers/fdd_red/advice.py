"""Paper D's advice: flows that last, and the drops of the first 20 s beside a victim taken at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ..advice import known

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

#: By title, scheme and variant.
LINES = {"RED": ("red", ""), "FDD-RED": ("fdd", ""), "Random victim": ("fdd", "random")}


#: The line of round-trip times without the queue, and its set-up, of flows that last.
WITHOUT, BASE_LONG = "FDD-RED, queue not counted", "all-drops-base-long"


def _long(report: Report) -> str:
    """The primary set-up, but of flows that last."""
    return f"{report.paper.setups[0].id}-long"


def figures(report: Report) -> dict[str, float]:
    """Jain's index of flows that last, with unequal round trips; packets dropped in 20 s, with equal ones."""
    first = report.paper.setups[0].id
    red_long, fdd_long = (report.cell(_long(report), "unequal", s)["fi"] for s in ("red", "fdd"))
    base_long = report.cell(BASE_LONG, "unequal", "fdd")["fi"]
    red, fdd, random = (report.cell(first, "equal", s, v)["drops"] for s, v in LINES.values())
    return {
        "red_long": float(red_long.mean()),
        "fdd_long": float(fdd_long.mean()),
        **known("gain_long", fdd_long - red_long),
        "base_long": float(base_long.mean()),
        **known("base_gain", base_long - red_long),
        "red_drops": float(red.mean()),
        "fdd_drops": float(fdd.mean()),
        "random_drops": float(random.mean()),
        **known("fdd_to_red", fdd / red),
        **known("random_to_red", random / red),
    }


def picture(report: Report) -> Mapping[str, Any]:
    """The index of every run of flows that last."""
    long = {title: (_long(report), *line) for title, line in LINES.items()}
    long[WITHOUT] = (BASE_LONG, "fdd", "")
    found = {title: report.cell(setup, "unequal", *line) for title, (setup, *line) in long.items()}
    rows = [draw.row(title, m["fi"], m.seeds) for title, m in found.items()]
    low = min(v for row in rows for v in row["values"])
    return draw.dots(
        rows, list(found), x="Jain's fairness index", paper={}, domain=(round(low - 0.02, 2), 1.002)
    )
