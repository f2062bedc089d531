"""Paper C's advice: delay at equal goodput with and without the marker in one queue, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts.curves import frontier
from ...metrics.measures import Array, Measures
from .. import Cell, Paper
from ..advice import known
from ..rerun import Figure
from .frontiers import MATCHED, THIRDS, least_delay, log_ratios
from .page import DELAY, GOODPUT, points
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

#: The set-up whose queue is advised: drops keep a distance. Its threshold that is advised, a lower one, and
#: higher ones.
ADVISED, AT, LOWER_AT, HIGH_AT, FULL_AT = "ns2-wait", 6, 4, 12, 24
#: What may do instead of the marker there: all IN, in that RED and in others; OUT packets placed blindly. And
#: the marker itself over the max_p that what it is compared with has.
INSTEAD = (
    ("plain", "frontier", "none"),
    ("steep", "steep", "none"),
    ("steeper", "steeper", "none"),
    ("gentle", "gentle", "none"),
    ("blind", "blind", "blind"),
    ("often", "blind-15", "blind"),
    ("marked_steep", "steep", "hard"),
    ("marked_steeper", "steeper", "hard"),
)
#: The values of max_p that were tried, by the study that has each: as many with the marker as without.
TRIED = ("frontier", "steep", "steeper")
#: What a flow's window is reckoned from: how many flows, their mean round trip without the queue in seconds,
#: bits of payload in a packet.
FLOWS, RTT, SEGMENT = 40, 0.161, 8 * 1460
#: The link's rate, in bit/s.
LINK = 6e6
#: The goodput at which today's senders are compared, whatever the marker reaches with each, in bit/s.
NEARLY_FULL = 5.82e6
#: The lowest and the highest of the matched goodputs.
LOW, HIGH = (at for words, at in THIRDS if words != "middle")


def figures(report: Report) -> dict[str, float]:
    """By how much packets wait less or longer, by flows, goodput and queue; what a marked flow gets."""
    advised, published = (ProbeRuns(report.cells, s) for s in (ADVISED, report.paper.setups[0].id))
    free = advised.frontier("free-in", "forty", "hard").points[0]
    queue = advised.points("frontier", "forty", "hard")[AT]
    goodput = float(queue["goodput"].mean())
    return {
        **_rivals(advised, AT),
        **{f"high_{name}": x for name, x in _rivals(advised, HIGH_AT).items()},
        **{f"full_{name}": x for name, x in _rivals(advised, FULL_AT).items()},
        **known("forty", 1 - _ratio(advised, "forty")),
        **known("ten", _ratio(advised, "ten") - 1),
        **known("ten_near", _ten_near(advised)),
        **known("ten_published", 1 - _ratio(published, "ten")),
        **_saved(advised, "twenty"),
        **_saved(advised, "wide"),
        **known("low", 1 - _ratio(advised, "forty", at=LOW)),
        **known("high", 1 - _ratio(advised, "forty", at=HIGH)),
        **known("udp", _ratio(advised, "forty", "udp-5") - 1),
        "out_lost": float(queue["loss_out"].mean()),
        "window": goodput / FLOWS * (RTT + float(queue["delay"].mean())) / SEGMENT,
        "bare": float(advised.points("frontier", "forty", "none")[AT]["goodput"].mean()) / 1e6,
        "wait": float(advised.points("frontier", "forty", "none")[AT]["delay"].mean()) * 1e3,
        **_published(published, goodput),
        **_ten_flows(advised),
        **known("ten_blind", _ten_blind(published)),
        **known("share", free["goodput_marked"] / free["goodput_tcp"]),
    }


def _saved(runs: ProbeRuns, study: str) -> dict[str, float]:
    """The same in a study that is run with `--full` only; nothing without it."""
    return known(study, 1 - _ratio(runs, "forty", study)) if (study, "forty", "hard") in runs else {}


def _published(runs: ProbeRuns, goodput: float) -> dict[str, float]:
    """In RED as published, at a goodput: the marker's delay, and those of what may do instead."""
    marked, plain, blind, often = (
        least_delay([runs.frontier(study, "forty", scheme)], goodput)
        for study, scheme in (
            ("frontier", "hard"),
            ("frontier", "none"),
            ("others", "blind"),
            ("blind-15", "blind"),
        )
    )
    made = {
        "published": float(marked.mean()) * 1e3,
        "published_plain": float(plain.mean()) * 1e3,
        "published_blind": float(blind.mean()) * 1e3,
        "published_often": float(often.mean()) * 1e3,
        "published_steep_most": _most(runs, "steep", "forty", "none"),
    }
    for name, other in (("blind", blind), ("plain", plain), ("often", often)):
        made |= known(f"over_{name}_published", 1e3 * (other - marked))
    return made


def _ten_flows(runs: ProbeRuns) -> dict[str, float]:
    """Ten flows under what is set for forty: most goodput in Mbit/s, and delay over that with max_p 0.1."""
    made = {}
    for name, study, scheme in (
        ("plain", "frontier", "none"),
        ("often", "blind-15", "blind"),
        ("steeper", "steeper", "none"),
    ):
        if (study, "ten", scheme) in runs:
            made[f"ten_{name}_most"] = _most(runs, study, "ten", scheme)
    if "ten_often_most" in made:
        made["ten_often_lost"] = (made["ten_plain_most"] - made["ten_often_most"]) * 1e6 / LINK
    if ("steeper", "ten", "none") not in runs:
        return made
    ours, base = (runs.frontier(study, "ten", "none") for study in ("steeper", "frontier"))
    return made | known("ten_steeper", np.exp(np.asarray(log_ratios(ours, base), dtype=np.float64)) - 1)


def _most(runs: ProbeRuns, study: str, flows: str, scheme: str) -> float:
    """The most goodput that any of the thresholds of a study has, in Mbit/s."""
    return float(runs.frontier(study, flows, scheme)["goodput"].mean(axis=1).max()) / 1e6


def _rivals(runs: ProbeRuns, at: int) -> dict[str, float]:
    """The marker at a threshold, and at its goodput the least delay of what may do instead.

    Nothing of what was not run, or reaches no such goodput in some seed.
    """
    ours = runs.points("frontier", "forty", "hard")[at]
    goodput = float(ours["goodput"].mean())
    made = {
        "goodput": goodput / 1e6,
        "delay": float(ours["delay"].mean()) * 1e3,
        "out_share": 1 - float(ours["share_in"].mean()),
    }
    # Some are run with `--full` only.
    tried = [line for line in INSTEAD if (line[1], "forty", line[2]) in runs]
    if any(study == "blind" for _, study, _ in tried):
        made["blind_out_share"] = 1 - float(runs.points("blind", "forty", "blind")[at]["share_in"].mean())
    for name, study, scheme in tried:
        delay = least_delay([runs.frontier(study, "forty", scheme)], goodput)
        if not np.isnan(delay).any():
            made |= {**known(name, 1e3 * delay), **known(f"over_{name}", 1e3 * (delay - ours["delay"]))}
    return made


def _ten_blind(runs: ProbeRuns) -> Array:
    """By how much packets of ten flows wait longer with the marker than with every 90th OUT, as above."""
    ours, blind = (runs.frontier(study, "ten", s) for study, s in (("frontier", "hard"), ("others", "blind")))
    return np.exp(np.asarray(log_ratios(ours, blind), dtype=np.float64)) - 1


def _ten_near(runs: ProbeRuns) -> Array:
    """By how much packets of ten flows wait longer with the marker where the link is nearly full."""
    ours, base = (least_delay([runs.frontier("frontier", "ten", s)], NEARLY_FULL) for s in ("hard", "none"))
    return ours / base - 1


def _ratio(runs: ProbeRuns, flows: str, study: str = "frontier", at: slice = slice(MATCHED)) -> Array:
    """Delay with the marker over that without, at equal goodputs, one a seed."""
    ours, base = (runs.frontier(study, flows, scheme) for scheme in ("hard", "none"))
    return np.exp(np.asarray(log_ratios(ours, base, at=at), dtype=np.float64))


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The advised thresholds with one of today's senders, with the marker and without.

    At equal thresholds; and the least delay that any threshold has, with the marker, without it, and with OUT
    packets placed blindly, at the marker's goodput, and at one goodput for all senders. Nothing of what does
    not reach that goodput in some seed.
    """
    runs, published = ProbeRuns(cells, ADVISED), ProbeRuns(cells, paper.setups[0].id)
    ours, bare = (runs.points("frontier", "forty", s)[AT] for s in ("hard", "none"))
    goodput = float(ours["goodput"].mean())
    return [
        *_delays(runs, goodput, "", OTHERS),
        Figure(
            "goodput",
            "goodput with the marker, at IN thresholds of 6 and 18 packets",
            ours["goodput"] / 1e6,
            "Mbit/s",
        ),
        Figure("bare", "goodput without it", bare["goodput"] / 1e6, "Mbit/s"),
        Figure(
            "more", "what the marker adds to goodput", (ours["goodput"] - bare["goodput"]) / 1e6, "Mbit/s"
        ),
        Figure("delay", "queueing delay with the marker", 1e3 * ours["delay"], "ms"),
        Figure("wait", "queueing delay without it", 1e3 * bare["delay"], "ms"),
        Figure("sooner", "what the marker takes from the delay", 1e3 * (bare["delay"] - ours["delay"]), "ms"),
        *_set(runs),
        *_delays(runs, NEARLY_FULL, "near_", (*MARKED, *OTHERS)),
        *_leads(runs),
        *_delays(published, NEARLY_FULL, "published_", (MARKED[0], OTHERS[0], OTHERS[-1])),
        *_ten_today(runs),
    ]


def _set(runs: ProbeRuns) -> list[Figure]:
    """What forty flows get of the very settings that are pasted, and of RED with lower thresholds."""
    made = []
    for at, prefix, (name, study, scheme, words) in (
        (AT, "set_", OTHERS[2]),
        (AT, "set_", MARKED[2]),
        (AT, "set_", OTHERS[3]),
        (LOWER_AT, "lower_", OTHERS[2]),
    ):
        made += _at(runs.points(study, "forty", scheme)[at], f"{prefix}{name}", "", words, at)
    return made


def _ten_today(runs: ProbeRuns) -> list[Figure]:
    """What ten flows get under what is set for forty, at the advised thresholds."""
    made = []
    for name, study, scheme, words in (OTHERS[0], MARKED[0], OTHERS[2], OTHERS[3]):
        made += _at(runs.points(study, "ten", scheme)[AT], f"ten_{name}", " of ten flows", words, AT)
    plain, blind = (runs.points(line[1], "ten", line[2])[AT]["goodput"] for line in (OTHERS[0], OTHERS[3]))
    made.append(
        Figure("ten_blind_less", "what every 15th packet OUT costs them of the link", (plain - blind) / LINK)
    )
    return made


def _at(found: Measures, name: str, whose: str, words: str, at: int) -> list[Figure]:
    """Goodput and delay at one threshold."""
    told = f"{whose} {words}, at IN thresholds of {at} and {3 * at} packets"
    return [
        Figure(name, f"goodput{told}", found["goodput"] / 1e6, "Mbit/s"),
        Figure(f"{name}_delay", f"queueing delay{told}", 1e3 * found["delay"], "ms"),
    ]


#: The marker by max_p, and what may do instead of it, in the words of the table: name, study, scheme, words.
MARKED = (
    ("marked", "frontier", "hard", "with the marker"),
    ("marked_steep", "steep", "hard", "with the marker, max_p 0.2"),
    ("marked_steeper", "steeper", "hard", "with the marker, max_p 0.3"),
)
OTHERS = (
    ("plain", "frontier", "none", "without it"),
    ("steep", "steep", "none", "without it, max_p 0.2"),
    ("steeper", "steeper", "none", "without it, max_p 0.3"),
    ("blind", "blind-15", "blind", "with every 15th packet OUT, blindly"),
)
#: At which goodput the rows of a prefix are, in words.
WHERE = {
    "": "at the marker's goodput",
    "near_": "at 5.82 Mbit/s",
    "published_": "at 5.82 Mbit/s, in RED as published",
}


def _delays(
    runs: ProbeRuns, goodput: float, prefix: str, lines: Sequence[tuple[str, str, str, str]]
) -> list[Figure]:
    """The least delay that any threshold of a line has at a goodput; lines that reach it in every seed."""
    made = []
    for name, study, scheme, words in lines:
        delay = 1e3 * least_delay([runs.frontier(study, "forty", scheme)], goodput)
        if not np.isnan(delay).any():
            made.append(Figure(f"{prefix}{name}", f"queueing delay {words}, {WHERE[prefix]}", delay, "ms"))
    return made


def _leads(runs: ProbeRuns) -> list[Figure]:
    """The marker at the best of three values of max_p, and how much of what it gains is had without it."""
    best = 1e3 * least_delay([runs.frontier(study, "forty", "hard") for study in TRIED], NEARLY_FULL)
    if np.isnan(best).any():
        return []
    words = "with the marker, at the best of three max_p"
    made = [Figure("near_best", f"queueing delay {words}, {WHERE['near_']}", best, "ms")]
    plain, *others = (
        1e3 * least_delay([runs.frontier(study, "forty", scheme)], NEARLY_FULL)
        for _, study, scheme, _ in OTHERS
    )
    for (name, _, _, without), delay in zip(OTHERS[1:], others, strict=True):
        if not np.isnan(delay).any():
            made.append(Figure(f"behind_{name}", f"{without}: more than that", delay - best, "ms"))
        part = (plain - delay) / (plain - best)
        if not np.isnan(part).any():
            told = f"{without}: its part of what the marker takes from the delay"
            made.append(Figure(f"part_{name}", told, part))
    return made


#: What the picture shows of the frontiers: where the link is nearly full, in Mbit/s.
DRAWN_FROM = 5.6


def picture(report: Report) -> Mapping[str, Any]:
    """Delay over goodput in ns-2's RED with `wait`: the marker, what may do instead, and neither."""
    runs = ProbeRuns(report.cells, ADVISED)
    lines = {
        "40 flows, RED": ("frontier", "forty", "none"),
        "40 flows, probe": ("frontier", "forty", "hard"),
        "40 flows, every 15th OUT": ("blind-15", "forty", "blind"),
        "40 flows, RED, max_p 0.2": ("steep", "forty", "none"),
        "10 flows, RED": ("frontier", "ten", "none"),
        "10 flows, probe": ("frontier", "ten", "hard"),
    }
    rows = [row for title, line in lines.items() for row in points(runs.frontier(*line), title)]
    shown = [row for row in rows if row["x"] >= DRAWN_FROM]
    return frontier(shown, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
