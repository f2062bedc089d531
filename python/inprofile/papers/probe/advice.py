"""Paper C's advice: delay with and without the marker, each in the queue that serves it best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from ...metrics.measures import Array
from ..advice import known
from .frontiers import Frontier, least_delay, log_ratio
from .page import DELAY, GOODPUT, HOW, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

#: The set-up whose queue is advised: drops keep a distance. Its lowest threshold of those advised.
ADVISED, AT = "ns2-wait", 6
#: At which goodput delays are compared, in bit/s: 96 % of the link are payload and headers' share of it.
GOAL = 5.75e6


def figures(report: Report) -> dict[str, float]:
    """By how much packets wait less or longer, with today's senders too; what a marked flow gets."""
    laws = [ProbeRuns(report.cells, setup.id) for setup in report.setups]
    best = {
        (flows, scheme): least_delay(
            [runs.frontier("frontier", flows, s) for runs in laws for s in schemes], GOAL
        )
        for flows in ("ten", "forty")
        for scheme, schemes in (("none", ("none",)), ("probe", HOW))
    }
    advised = ProbeRuns(report.cells, ADVISED)
    free = advised.frontier("free-in", "forty", "hard").points[0]
    queue = advised.points("frontier", "forty", "hard")[AT]
    own = advised.frontier("frontier", "forty", "hard"), advised.frontier("frontier", "forty", "none")
    today = {
        name: [advised.frontier(name, "forty", s) for s in ("hard", "none")] for name in ("linux", "bbr")
    }
    return {
        "goal": GOAL / 1e6,
        **known("forty", 1 - best["forty", "probe"] / best["forty", "none"]),
        **known("ten", best["ten", "probe"] / best["ten", "none"] - 1),
        "goodput": float(queue["goodput"].mean()) / 1e6,
        "delay": float(queue["delay"].mean()) * 1e3,
        **known("share", free["goodput_marked"] / free["goodput_tcp"]),
        **known("reno", -np.expm1(_compared(own))),
        **known("linux", -np.expm1(_compared(today["linux"]))),
        **known("bbr", np.expm1(_compared(today["bbr"]))),
    }


def _compared(lines: Sequence[Frontier]) -> Array:
    """ln(delay, probe / no marker) at equal goodput, one a seed."""
    ours, base = lines
    return np.asarray(log_ratio(ours, base) or ())


def picture(report: Report) -> Mapping[str, Any]:
    """Delay over goodput in the advised queue, with and without the marker, by number of flows."""
    runs = ProbeRuns(report.cells, ADVISED)
    lines = {
        f"{title}, {words}": (flows, scheme)
        for flows, title in (("forty", "40 flows"), ("ten", "10 flows"))
        for words, scheme in (("no marker", "none"), ("probe", "hard"))
    }
    rows = [row for title, line in lines.items() for row in points(runs.frontier("frontier", *line), title)]
    return frontier(rows, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
