"""How claims E1–E14 are judged: what is compared with what, seed by seed.

Each claim is judged once for each set-up; those of contracts and shares are in `kept`. Contracts, capacities
and round-trip times are those of `paper.toml`, or of a point of the atlas.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm
from ...metrics.stats import UNLIKE
from .. import Cell, Paper
from ..claim import BOUND, INDEX, Comparison, Effect, Finding, Measure, Room, of_base, of_link, paired
from ..report import TableRow, row
from . import cost
from .experiments import ALONE, BASELINE, HIGH, LOW, OURS, STATIC, TOLD
from .kept import e3a, e3b, e3c, e3d, e4, e7, e12
from .measure import relative_error
from .scenarios import SCENARIOS, Cells, Load, Scenario, idle, mbit

#: Whose windows Fig. 2 and 3 show.
WINDOWS_SHOWN = ("scenario-1", "scenario-2")
#: All is sold, less is, and priority traffic comes and goes.
UNLIKE_LOADS = ("scenario-1", "scenario-2", "scenario-4")


def _windows(m: Measures, flows: Sequence[int]) -> Array:
    """Mean window of some flows, seed by seed."""
    return np.asarray(np.mean([m[f"cwnd.{i + 1}"] for i in flows], axis=0), dtype=np.float64)


def _e1a(load: Load) -> list[Comparison]:
    def window(flows: list[int]) -> Measure:
        return lambda m: _windows(m, flows)

    return [
        s.compared(
            f"mean window of flows of {mbit(contract)}, ours − baseline",
            s.difference(window(flows)),
            "above",
            unit="packets",
            effect=of_base(
                _windows(s.base, flows), 0.1, 'a tenth of the baseline\'s: "larger" in Fig. 2 and 3'
            ),
        )
        for s in map(load, WINDOWS_SHOWN)
        for contract, flows in s.groups()
    ]


def _e1b(load: Load) -> list[Comparison]:
    return [
        s.compared(
            f"slow starts per run, ours, below {none:g}", s.ours["timeouts"], "below", none, effect=BOUND
        )
        for s in map(load, SCENARIOS)
        for none in [s.bounds.number("none")]
    ]


def _e1c(load: Load) -> list[Comparison]:
    return [
        s.compared(
            "slow starts per run, ours − baseline",
            s.difference("timeouts"),
            "below",
            effect=of_base(s.base["timeouts"], 0.1, "a tenth of the baseline's"),
            room=Room([float(x) for x in s.base["timeouts"]], "slow starts per run under the baseline are"),
        )
        for s in map(load, SCENARIOS)
    ]


def _e2(load: Load) -> list[Comparison]:
    s = load("scenario-1")
    return [
        *(
            s.compared(
                f"relative error of {what}, ours − baseline",
                s.difference(measure),
                "below",
                effect=of_base(s.base[measure], 0.1, "a tenth of the baseline's"),
            )
            for what, measure in (("windows", "window_error"), ("throughputs", "rate_error"))
        ),
        # The next sentence: "Besides better utilization".
        _used(s, of_link(s.capacity)),
    ]


def _shares_error(m: Measures, contracts: Array) -> Array:
    """Relative error of windows against r/Σr of their own sum, which is Eq. (2)'s window of the path."""
    windows = np.stack([m[f"cwnd.{i}"] for i in range(1, len(contracts) + 1)], axis=1)
    wanted = windows.sum(axis=1, keepdims=True) * contracts / contracts.sum()
    return relative_error(windows, wanted)


def _e5a(load: Load) -> list[Comparison]:
    return [
        s.compared(
            f"mean queue over bandwidth times delay, ours, below {bound:g}",
            s.ours["queue.1"] / s.pipe,
            "below",
            bound,
            effect=BOUND,
        )
        for s in (load("scenario-1"), load("scenario-2"))
        for bound in [s.bounds.number("bounded")]
    ]


def _e5b(load: Load) -> list[Comparison]:
    return [
        s.compared(
            "mean queue of the first hop over bandwidth times delay, ours",
            s.ours["queue.1"] / s.pipe,
            "within",
            # "approximately"
            0.9 * low,
            upper=1.1 * high,
            effect=Effect(0.0, "the bounds are the authors', a tenth either way", stated=True),
        )
        for s in (load("scenario-1"), load("scenario-2"))
        for low, high in [s.bounds.numbers("printed")]
    ]


def _e6(_: Load) -> list[Comparison]:
    measured = cost.measured()
    return [
        Comparison(
            "CPU time of a decision, TWAM (RTT known, packets counted) − TSW2CM, by rounds",
            measured.differences("twam_rtt_known"),
            "below",
            unit="ns",
            topology=f"{measured.flows} flows",
            effect=of_base(
                measured.tsw2cm,
                0.1,
                "10 % of TSW2CM's, which code's layout alone moves; §6 has \"much lower\"",
            ),
        )
    ]


def _used(s: Scenario, effect: Effect) -> Comparison:
    return s.compared(
        "sum of throughputs, ours − baseline",
        s.difference("total"),
        "above",
        unit="bit/s",
        effect=effect,
        room=idle(s),
    )


def _e8(load: Load) -> list[Comparison]:
    """E8: in scenario 1 "better" (§5.2), in general "much higher" (§1)."""
    first, *others = map(load, SCENARIOS)
    return [_used(first, of_link(first.capacity)), *(_used(s, _much(s)) for s in others)]


def _much(s: Scenario) -> Effect:
    return Effect(0.05 * s.capacity, '5 % of the link: "much higher"')


def _e9(load: Load) -> list[Comparison]:
    s = load("scenario-1")
    return [
        s.compared(
            "variation of a window over time, mean over flows, ours − baseline",
            s.difference("cwnd_varies"),
            "below",
            effect=of_base(s.base["cwnd_varies"], 0.1, "a tenth of the baseline's"),
        )
    ]


def _e10(load: Load) -> list[Comparison]:
    s, beside = load("scenario-2"), load.beside("scenario-2", LOW, HIGH)
    if not beside:
        return []
    low, high = beside
    return [
        s.compared(
            "sum of throughputs, static thresholds of 10 and 40 less DWRED's",
            paired(low, s.ours, "total"),
            "below",
            unit="bit/s",
            effect=of_link(s.capacity),
        ),
        s.compared(
            "sum of throughputs, static thresholds of 10 and 40 less the printed ones",
            paired(low, s.base, "total"),
            "below",
            unit="bit/s",
            effect=of_link(s.capacity),
        ),
        s.compared(
            "mean queue of the first hop, static thresholds of 120 and 480 over the printed ones",
            high["queue.1"] / s.base["queue.1"],
            "above",
            1.0,
            effect=Effect(0.1, "a tenth: what is dropped too late stays in the queue"),
        ),
        s.compared(
            "index of throughput over contract, static thresholds of 120 and 480 less DWRED's",
            paired(high, s.ours, "fi"),
            "below",
            bounds=UNLIKE,
            effect=INDEX,
        ),
    ]


def _e11(load: Load) -> list[Comparison]:
    beside, title = load.beside("two-paths", "one-queue", "drr"), load.title("two-paths")
    if not beside:
        return []
    one, turns = beside
    near, far = (np.mean([one[f"x.{i}"] for i in half], axis=0) for half in (range(1, 6), range(6, 11)))
    return [
        Comparison(
            "throughput of the flows of 90 ms over that of the flows of 30 ms, in one queue",
            [float(x) for x in far / near],
            "below",
            1.0,
            topology=title,
            effect=Effect(0.1, "a tenth: unfair"),
        ),
        Comparison(
            "index of throughput over contract, in one queue less by turns",
            paired(one, turns, "fi"),
            "below",
            topology=title,
            bounds=UNLIKE,
            effect=INDEX,
        ),
    ]


def _e13(load: Load) -> list[Comparison]:
    compared = []
    for s in map(load, UNLIKE_LOADS):
        beside = load.beside(s.about.id, ALONE)
        if not beside:
            return []
        [static] = beside
        compared += [
            s.compared(
                "index of throughput over contract, TWAM with DWRED − with static WRED",
                paired(s.ours, static, "fi"),
                "above",
                bounds=UNLIKE,
                effect=INDEX,
                room=Room([1 - float(x) for x in static["fi"]], "from static WRED's index to 1 there are"),
            ),
            s.compared(
                "sum of throughputs, TWAM with DWRED − with static WRED",
                paired(s.ours, static, "total"),
                "above",
                unit="bit/s",
                effect=of_link(s.capacity),
                room=Room([s.capacity - float(x) for x in static["total"]], "static WRED leaves idle"),
            ),
            s.compared(
                "wait in the queues, TWAM with DWRED over that with static WRED",
                s.ours["delay"] / static["delay"],
                "below",
                1.0,
                effect=Effect(0.1, "a tenth of the wait"),
            ),
        ]
    return compared


def _e14(load: Load) -> list[Comparison]:
    compared = []
    for s in map(load, WINDOWS_SHOWN):
        beside = load.beside(s.about.id, STATIC, TOLD)
        if not beside:
            return []
        static, told = beside
        compared += [
            s.compared(
                f"sum of throughputs behind {marker}, DWRED − static WRED",
                paired(dynamic, fixed, "total"),
                "above",
                unit="bit/s",
                effect=_much(s),
                room=Room([s.capacity - float(x) for x in fixed["total"]], "static WRED leaves idle"),
            )
            for marker, dynamic, fixed in (("TWAM", s.ours, static), ("TSW2CM", told, s.base))
        ]
    return compared


_CLAIMS = {
    "E1a": _e1a, "E1b": _e1b, "E1c": _e1c, "E2": _e2, "E3a": e3a, "E3b": e3b, "E3c": e3c, "E3d": e3d,
    "E4": e4, "E5a": _e5a, "E5b": _e5b, "E6": _e6, "E7": e7, "E8": _e8, "E9": _e9, "E10": _e10,
    "E11": _e11, "E12": e12, "E13": _e13, "E14": _e14,
}  # fmt: skip


#: The scenarios that a claim is about; E6 runs nothing, it is of committed measurements.
_ABOUT = {
    "E1a": WINDOWS_SHOWN, "E1b": SCENARIOS, "E1c": SCENARIOS, "E2": ("scenario-1",),
    "E3a": ("scenario-2",), "E3b": ("scenario-3",), "E3c": ("scenario-4",), "E3d": ("scenario-4",),
    "E4": ("scenario-4",),
    "E5a": ("scenario-1", "scenario-2"), "E5b": ("scenario-1", "scenario-2"), "E6": (), "E7": SCENARIOS,
    "E8": SCENARIOS, "E9": ("scenario-1",), "E10": ("scenario-2",), "E11": ("two-paths",),
    "E12": SCENARIOS[1:], "E13": UNLIKE_LOADS, "E14": WINDOWS_SHOWN,
}  # fmt: skip
#: Schemes that a claim compares, where they are not the baseline and ours.
_OF = {
    "E1b": (OURS,), "E3a": (OURS,), "E3c": (OURS,), "E3d": (OURS,), "E5a": (OURS,), "E5b": (OURS,),
    "E7": (OURS,), "E10": (BASELINE, OURS, LOW, HIGH), "E11": ("one-queue", "drr"), "E12": (BASELINE,),
    "E13": (OURS, ALONE), "E14": (BASELINE, OURS, STATIC, TOLD),
}  # fmt: skip


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict needs this cell: of its own scenarios what it compares."""
    return cell.topology in _ABOUT[claim] and cell.scheme in _OF.get(claim, (BASELINE, OURS))


def _notes(claim: str, load: Load) -> list[str]:
    """Circumstances behind a verdict."""
    if claim == "E5a":
        return [
            f"{s.title.capitalize()}: {float((s.ours['queue.1'] / s.pipe).mean()):.2f} of bandwidth times"
            f" delay; {100 * float(s.ours['overflow'].mean()):.3f} % of arrivals find a queue full."
            for s in (load("scenario-1"), load("scenario-2"))
        ]
    if claim == "E1a":
        return [note for s in map(load, WINDOWS_SHOWN) for note in (_waits(s), *_fallen(s))]
    if claim in ("E1b", "E1c"):
        each = "; ".join(
            f"{s.title} {s.ours['timeouts'].mean():.1f} under ours and {s.base['timeouts'].mean():.1f} under"
            " the baseline"
            for s in map(load, SCENARIOS)
        )
        return [f"Slow starts per run: {each}."]
    if claim == "E2":
        s = load("scenario-1")
        ours, base = (float(m["window_error_queued"].mean()) for m in (s.ours, s.base))
        own = [float(_shares_error(m, s.contracts).mean()) for m in (s.ours, s.base)]
        return [
            "RTT is the propagation; with the measured time in queues added to it, the relative error of"
            f" windows is {ours:.3f} under ours and {base:.3f} under the baseline.",
            "Against r/Σr of the windows' own sum, as Eq. (2) has it, the error is"
            f" {own[0]:.3f} under ours and {own[1]:.3f} under the baseline.",
        ]
    if claim == "E3b":
        s = load("scenario-3")
        ours, base = (float(m["fi"].mean()) for m in (s.ours, s.base))
        return [
            f"Jain's index of throughput over contract is {ours:.3f} under ours and {base:.3f} under the"
            " baseline."
        ]
    if claim == "E6":
        return [cost.measured().words]
    if claim == "E8":
        told = [
            f"{s.title}: {s.ours['total'].mean() / 1e6:.1f} Mbit/s under ours,"
            f" {s.base['total'].mean() / 1e6:.1f} under the baseline"
            for s in map(load, SCENARIOS)
        ]
        return [f"Sums of throughputs: {'; '.join(told)}."]
    return []


def _told(claim: str, compared: Sequence[Comparison]) -> str:
    """What is gained of the link, beside E8's and E14's words; E6's two times and what would count."""
    if claim == "E6":
        return cost.measured().told
    if claim not in ("E8", "E14"):
        return ""
    gains = [
        f"{mean_pm(c.values, 1e6)} Mbit/s in {c.topology}{_behind(c.label)}".replace("-", "−")
        for c in compared
    ]
    return f"gains {'; '.join(gains)}" if gains else ""


def _behind(label: str) -> str:
    """Behind which marker a gain of DWRED's is; nothing of others."""
    return "".join(f" behind {marker}" for marker in ("TWAM", "TSW2CM") if f"behind {marker}," in label)


def _waits(s: Scenario) -> str:
    """How long packets wait, which is part of a window, and how far the link is used."""
    ours, base = (float(m["delay"].mean()) * 1e3 for m in (s.ours, s.base))
    return (
        f"{s.title.capitalize()}: packets wait {ours:.0f} ms under ours and {base:.0f} ms under the baseline,"
        f" and what waits is part of a window; throughputs add up to {s.ours['total'].mean() / 1e6:.1f} and"
        f" {s.base['total'].mean() / 1e6:.1f} Mbit/s."
    )


def _fallen(s: Scenario) -> list[str]:
    """Where mean windows are smaller than the baseline's: what those flows get, over C·r/Σr."""
    fair = s.about.number("capacity") / s.contracts.sum()
    phrases = []
    for contract, flows in s.groups():
        change = np.mean([s.difference(f"cwnd.{i + 1}") for i in flows])
        ours, base = (s.shares(m)[:, flows].mean() / fair for m in (s.ours, s.base))
        if change < 0:
            phrases.append(
                f"flows of {mbit(contract)} get {ours:.2f} times C·r/Σr, {base:.2f} under the baseline"
            )
    return [f"Where windows are smaller there, {'; '.join(phrases)}."] if phrases else []


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            load = Load(paper, cells, setup.id, variant)
            if not load.has(_ABOUT[claim.id]):
                continue
            compared = _CLAIMS[claim.id](load)
            nothing = None if compared else "What this is compared with was not run here."
            notes, told = _notes(claim.id, load), _told(claim.id, compared)
            found.append(Finding(claim.id, setup.id, compared, (), notes, nothing, told))
    return found


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Shares of every cell: the paper prints no table, so there is nothing beside ours."""
    return [
        row(
            cell,
            m.seeds,
            m["fi"],
            table=topology.where,
            what="Jain's index of throughput over contract",
            label=f"{topology.title}, {paper.find('schemes', cell.scheme).title}",
        )
        for cell, m in cells.items()
        if not cell.sweep
        for topology in [paper.find("topologies", cell.topology)]
    ]
