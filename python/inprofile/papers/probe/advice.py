"""Paper C's advice: delay at equal goodput with and without the marker in one queue, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from ...metrics.measures import Array, Measures
from .. import Cell, Paper
from ..advice import known
from ..advice_today import Figure
from .claims import THIRDS
from .frontiers import MATCHED, least_delay, log_ratios
from .page import DELAY, GOODPUT, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture", "today"]

#: The set-up whose queue is advised: drops keep a distance. Its threshold that is advised.
ADVISED, AT = "ns2-wait", 6
#: What a flow's window is reckoned from: how many flows, their mean round trip without the queue in seconds,
#: bits of payload in a packet.
FLOWS, RTT, SEGMENT = 40, 0.161, 8 * 1460
#: The lowest and the highest of the matched goodputs.
LOW, HIGH = (at for words, at in THIRDS if words != "middle")


def figures(report: Report) -> dict[str, float]:
    """By how much packets wait less or longer, by flows, goodput and queue; what a marked flow gets."""
    advised, published = (ProbeRuns(report.cells, s) for s in (ADVISED, report.paper.setups[0].id))
    free = advised.frontier("free-in", "forty", "hard").points[0]
    queue = advised.points("frontier", "forty", "hard")[AT]
    goodput = float(queue["goodput"].mean())
    plain, marked_there, plain_there, blind_there = (
        least_delay([runs.frontier(study, "forty", scheme)], goodput)
        for runs, study, scheme in (
            (advised, "frontier", "none"),
            (published, "frontier", "hard"),
            (published, "frontier", "none"),
            (published, "others", "every-nth"),
        )
    )
    return {
        **_blind(advised, goodput),
        **known("forty", 1 - _ratio(advised, "forty")),
        **known("ten", _ratio(advised, "ten") - 1),
        **known("ten_published", 1 - _ratio(published, "ten")),
        **known("twenty", 1 - _ratio(advised, "forty", "twenty")),
        **known("wide", 1 - _ratio(advised, "forty", "wide")),
        **known("low", 1 - _ratio(advised, "forty", at=LOW)),
        **known("high", 1 - _ratio(advised, "forty", at=HIGH)),
        "window": goodput / FLOWS * (RTT + float(queue["delay"].mean())) / SEGMENT,
        "goodput": goodput / 1e6,
        "delay": float(queue["delay"].mean()) * 1e3,
        "plain": float(plain.mean()) * 1e3,
        **known("sooner", 1e3 * (plain - queue["delay"])),
        "published": float(marked_there.mean()) * 1e3,
        "published_plain": float(plain_there.mean()) * 1e3,
        **known("published_blind", 1e3 * blind_there),
        **known("slower", 1e3 * (marked_there - queue["delay"])),
        **known("slower_plain", 1e3 * (plain_there - plain)),
        **known("larger", queue["delay"] / plain - marked_there / plain_there),
        **known("share", free["goodput_marked"] / free["goodput_tcp"]),
    }


def _blind(runs: ProbeRuns, goodput: float) -> dict[str, float]:
    """What every n-th packet OUT does in the advised queue: delay at the probe's goodput, shares of OUT.

    The delay is left out where some seed reaches no such goodput.
    """
    frontier, ours = (
        runs.frontier("blind", "forty", "every-nth"),
        runs.points("frontier", "forty", "hard")[AT],
    )
    delay = least_delay([frontier], goodput)
    share, there = (
        1 - float(m["share_in"].mean()) for m in (ours, runs.points("blind", "forty", "every-nth")[AT])
    )
    reached = (
        {}
        if np.isnan(delay).any()
        else {**known("blind", 1e3 * delay), **known("sooner_blind", 1e3 * (delay - ours["delay"]))}
    )
    most = frontier["goodput"].max(axis=0) / 1e6
    return {"out_share": share, "blind_out_share": there, **known("blind_most", most), **reached}


def _ratio(runs: ProbeRuns, flows: str, study: str = "frontier", at: slice = slice(MATCHED)) -> Array:
    """Delay with the marker over that without, at equal goodputs, one a seed."""
    ours, base = (runs.frontier(study, flows, scheme) for scheme in ("hard", "none"))
    return np.exp(np.asarray(log_ratios(ours, base, at=at), dtype=np.float64))


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The advised thresholds with one of today's senders, with the marker and without.

    At equal thresholds; and at the marker's goodput the least delay that any threshold without it has, unless
    none reaches that goodput in some seed.
    """
    runs = ProbeRuns(cells, ADVISED)
    ours, bare = (runs.points("frontier", "forty", s)[AT] for s in ("hard", "none"))
    plain = 1e3 * least_delay([runs.frontier("frontier", "forty", "none")], float(ours["goodput"].mean()))
    equal = (
        []
        if np.isnan(plain).any()
        else [Figure("plain", "queueing delay without it at the marker's goodput", plain, "ms")]
    )
    return [
        *equal,
        Figure("goodput", "goodput with the marker (advised)", ours["goodput"] / 1e6, "Mbit/s"),
        Figure("bare", "goodput without it", bare["goodput"] / 1e6, "Mbit/s"),
        Figure(
            "more", "what the marker adds to goodput", (ours["goodput"] - bare["goodput"]) / 1e6, "Mbit/s"
        ),
        Figure("delay", "queueing delay with the marker", 1e3 * ours["delay"], "ms"),
        Figure("wait", "queueing delay without it", 1e3 * bare["delay"], "ms"),
        Figure("sooner", "what the marker takes from the delay", 1e3 * (bare["delay"] - ours["delay"]), "ms"),
    ]


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
