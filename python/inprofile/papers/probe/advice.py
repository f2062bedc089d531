"""Paper C's advice: delay at equal goodput where all mark, where not, and where drops keep a distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from .frontiers import log_ratio
from .page import DELAY, GOODPUT, changed, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

#: The set-up in which drops keep a distance.
WAIT = "ns2-wait"


def figures(report: Report) -> dict[str, float]:
    """How much less packets wait, and a marked flow's part of a fair share."""
    runs = ProbeRuns(report.cells, report.paper.setups[0].id)
    free = runs.frontier("free-in", "ten", "hard")
    least, most = changed(runs, "ten", "hard") or (float("nan"),) * 2
    return {
        "least": -least,
        "most": -most,
        "wait": _change(ProbeRuns(report.cells, WAIT)),
        "share": float((free["goodput_marked"] / free["goodput_tcp"]).mean()),
    }


def _change(runs: ProbeRuns) -> float:
    """By which part the delay of ten flows changes at equal goodput; the mean over goodputs and seeds."""
    ratio = log_ratio(runs.frontier("frontier", "ten", "hard"), runs.frontier("frontier", "ten", "none"))
    return float("nan") if ratio is None else float(np.expm1(np.mean(ratio)))


def picture(report: Report) -> Mapping[str, Any]:
    """Delay over goodput, with and without the marker."""
    runs = ProbeRuns(report.cells, report.paper.setups[0].id)
    lines = {"No marker": "none", "Probe": "hard"}
    rows = [row for title, s in lines.items() for row in points(runs.frontier("frontier", "ten", s), title)]
    return frontier(rows, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
