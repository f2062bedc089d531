"""Paper C's advice: delay at equal goodput with and without the marker in one queue, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from ...metrics.measures import Array, Measures
from .. import Cell, Paper
from ..advice import known
from ..today import Figure
from .claims import THIRDS
from .frontiers import MATCHED, least_delay, log_ratios
from .page import DELAY, GOODPUT, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

#: The set-up whose queue is advised: drops keep a distance. Its threshold that is advised, and a higher one.
ADVISED, AT, HIGH_AT = "ns2-wait", 6, 12
#: What may do instead of the marker there: all IN, in that RED and in others; OUT packets placed blindly.
INSTEAD = (
    ("plain", "frontier", "none"),
    ("steep", "steep", "none"),
    ("gentle", "gentle", "none"),
    ("blind", "blind", "blind"),
    ("often", "blind-15", "blind"),
)
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
    marked_there, plain_there, blind_there = (
        least_delay([published.frontier(study, "forty", scheme)], goodput)
        for study, scheme in (("frontier", "hard"), ("frontier", "none"), ("others", "blind"))
    )
    return {
        **_rivals(advised, AT),
        **{f"high_{name}": x for name, x in _rivals(advised, HIGH_AT).items()},
        **known("forty", 1 - _ratio(advised, "forty")),
        **known("ten", _ratio(advised, "ten") - 1),
        **known("ten_published", 1 - _ratio(published, "ten")),
        **known("twenty", 1 - _ratio(advised, "forty", "twenty")),
        **known("wide", 1 - _ratio(advised, "forty", "wide")),
        **known("low", 1 - _ratio(advised, "forty", at=LOW)),
        **known("high", 1 - _ratio(advised, "forty", at=HIGH)),
        **known("udp", _ratio(advised, "forty", "udp-5") - 1),
        "out_lost": float(queue["loss_out"].mean()),
        "window": goodput / FLOWS * (RTT + float(queue["delay"].mean())) / SEGMENT,
        "bare": float(advised.points("frontier", "forty", "none")[AT]["goodput"].mean()) / 1e6,
        "wait": float(advised.points("frontier", "forty", "none")[AT]["delay"].mean()) * 1e3,
        "published": float(marked_there.mean()) * 1e3,
        "published_plain": float(plain_there.mean()) * 1e3,
        "published_blind": float(blind_there.mean()) * 1e3,
        **known("over_blind_published", 1e3 * (blind_there - marked_there)),
        **known("over_plain_published", 1e3 * (plain_there - marked_there)),
        **known("ten_blind", _ten_blind(published)),
        **known("share", free["goodput_marked"] / free["goodput_tcp"]),
    }


def _rivals(runs: ProbeRuns, at: int) -> dict[str, float]:
    """The marker at a threshold, and at its goodput the least delay of what may do instead.

    Nothing of what reaches no such goodput in some seed.
    """
    ours = runs.points("frontier", "forty", "hard")[at]
    goodput, blind = float(ours["goodput"].mean()), runs.points("blind", "forty", "blind")[at]
    made = {
        "goodput": goodput / 1e6,
        "delay": float(ours["delay"].mean()) * 1e3,
        "out_share": 1 - float(ours["share_in"].mean()),
        "blind_out_share": 1 - float(blind["share_in"].mean()),
    }
    for name, study, scheme in INSTEAD:
        delay = least_delay([runs.frontier(study, "forty", scheme)], goodput)
        if not np.isnan(delay).any():
            made |= {**known(name, 1e3 * delay), **known(f"over_{name}", 1e3 * (delay - ours["delay"]))}
    return made


def _ten_blind(runs: ProbeRuns) -> Array:
    """By how much packets of ten flows wait longer with the marker than with every 90th OUT, as above."""
    ours, blind = (runs.frontier(study, "ten", s) for study, s in (("frontier", "hard"), ("others", "blind")))
    return np.exp(np.asarray(log_ratios(ours, blind), dtype=np.float64)) - 1


def _ratio(runs: ProbeRuns, flows: str, study: str = "frontier", at: slice = slice(MATCHED)) -> Array:
    """Delay with the marker over that without, at equal goodputs, one a seed."""
    ours, base = (runs.frontier(study, flows, scheme) for scheme in ("hard", "none"))
    return np.exp(np.asarray(log_ratios(ours, base, at=at), dtype=np.float64))


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The advised thresholds with one of today's senders, with the marker and without.

    At equal thresholds; and at the marker's goodput the least delay that any threshold has without it, with a
    higher max_p or with OUT packets placed blindly, unless none reaches that goodput in some seed.
    """
    runs = ProbeRuns(cells, ADVISED)
    ours, bare = (runs.points("frontier", "forty", s)[AT] for s in ("hard", "none"))
    made = []
    for name, study, scheme, words in (
        (
            "plain",
            "frontier",
            "none",
            "queueing delay without it at the marker's goodput (–: not reached in every seed)",
        ),
        ("steep", "steep", "none", "the same with max_p 0.2"),
        ("blind", "blind-15", "blind", "the same with every 15th packet OUT, blindly"),
    ):
        delay = 1e3 * least_delay([runs.frontier(study, "forty", scheme)], float(ours["goodput"].mean()))
        if not np.isnan(delay).any():
            made.append(Figure(name, words, delay, "ms"))
    return [
        *made,
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
        "40 flows, no marker": ("frontier", "forty", "none"),
        "40 flows, probe": ("frontier", "forty", "hard"),
        "40 flows, every 21st OUT": ("blind", "forty", "blind"),
        "40 flows, max_p 0.2": ("steep", "forty", "none"),
        "10 flows, no marker": ("frontier", "ten", "none"),
        "10 flows, probe": ("frontier", "ten", "hard"),
    }
    rows = [row for title, line in lines.items() for row in points(runs.frontier(*line), title)]
    return frontier(rows, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
