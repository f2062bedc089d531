"""Paper C's advice: delay at equal goodput where all mark, where not, and where drops keep a distance.

The last is of the same law of RED, with and without `wait`: ns-2's differs in more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from ..advice import known
from .claims import THIRDS
from .frontiers import MATCHED, log_ratio
from .page import DELAY, GOODPUT, changed, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

#: The set-up in which drops keep a distance.
WAIT = "floyd93-wait"


def figures(report: Report) -> dict[str, float]:
    """How much less packets wait, and a marked flow's part of a fair share."""
    runs = ProbeRuns(report.cells, report.paper.setups[0].id)
    free = runs.frontier("free-in", "ten", "hard")
    least, most = changed(runs, "ten", "hard") or (float("nan"),) * 2
    wait = ProbeRuns(report.cells, WAIT)
    thirds = {words: _change(f"wait_{words}", wait, at) for words, at in THIRDS}
    return {
        "least": -least,
        "most": -most,
        **_less(_change("less", runs)),
        **thirds["low"],
        **thirds["middle"],
        **_less(thirds["high"]),
        **known("share", (free["goodput_marked"] / free["goodput_tcp"]).mean(axis=0)),
    }


def _change(name: str, runs: ProbeRuns, at: slice = slice(MATCHED)) -> dict[str, float]:
    """By which part the delay of ten flows changes at equal goodput, with the interval over the seeds."""
    ours, base = (runs.frontier("frontier", "ten", s) for s in ("hard", "none"))
    found = known(name, log_ratio(ours, base, at=at) or ())
    return {key: float(np.expm1(x)) for key, x in found.items()}


def _less(found: Mapping[str, float]) -> dict[str, float]:
    """A change downwards: as a positive part, its ends changed over."""
    name = next(iter(found))
    return {name: -found[name], f"{name}_lo": -found[f"{name}_hi"], f"{name}_hi": -found[f"{name}_lo"]}


def picture(report: Report) -> Mapping[str, Any]:
    """Delay over goodput, with and without the marker."""
    runs = ProbeRuns(report.cells, report.paper.setups[0].id)
    lines = {"No marker": "none", "Probe": "hard"}
    rows = [row for title, s in lines.items() for row in points(runs.frontier("frontier", "ten", s), title)]
    return frontier(rows, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
