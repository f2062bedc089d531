"""Paper C under each RED: which law and whether it waits, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...metrics.stats import estimate
from .. import Paper
from .frontiers import log_ratio
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

#: The thresholds whose goodput is shown.
LOW, MIDDLE = 8, 24
FLOWS = ("ten", "forty")
HOW = ("soft", "hard")


@dataclass(frozen=True)
class Cut:
    """Change of delay at equal goodput, in words, and which side is shown: "less", "more" or neither."""

    text: str
    side: str = ""


@dataclass(frozen=True)
class Printed:
    """What the paper prints of what the set-ups are compared by (§4); it prints no goodput and no delay."""

    #: By number of flows.
    share: Mapping[str, str]
    loss: str
    #: By number of flows and differentiation.
    cuts: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Law:
    """A set-up: all IN's goodput at two thresholds, share of IN, loss of OUT, change of delay."""

    title: str
    goodput: Sequence[str]
    share: Mapping[str, str]
    loss: str
    cuts: Mapping[tuple[str, str], Cut]


def paper_says(paper: Paper) -> Printed:
    """What is run beside the set-ups."""
    printed = paper.top.table("printed")
    return Printed(
        {flows: printed.table("says_share").word(flows) for flows in FLOWS},
        printed.word("says_loss"),
        {(flows, how): printed.word("says_delay") for flows in FLOWS for how in HOW},
    )


def laws(report: Report) -> list[Law]:
    """A row a set-up in which both numbers of flows were run."""
    return [
        _law(setup.title, runs)
        for setup in report.paper.setups
        if ("frontier", "ten", "soft") in (runs := ProbeRuns(report.cells, setup.id))
    ]


def _law(title: str, runs: ProbeRuns) -> Law:
    none = runs.points("frontier", "ten", "none")
    soft = {flows: runs.frontier("frontier", flows, "soft") for flows in FLOWS}
    return Law(
        title,
        [f"{none[at]['goodput'].mean() / 1e6:.2f}" for at in (LOW, MIDDLE)],
        {flows: _span([100 * x for x in f["share_in"].mean(axis=1)]) for flows, f in soft.items()},
        _span([100 * x for x in soft["ten"]["loss_out"].mean(axis=1)]),
        {(flows, how): _cut(runs, flows, how) for flows in FLOWS for how in HOW},
    )


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _cut(runs: ProbeRuns, flows: str, how: str) -> Cut:
    """Change of delay at equal goodput, in per cent, with its interval."""
    ratio = log_ratio(runs.frontier("frontier", flows, how), runs.frontier("frontier", flows, "none"))
    if ratio is None:
        return Cut("no common goodput")
    e = estimate(ratio)
    if e.ci95 is None:
        return Cut(_percent(e.mean))
    lo, hi = e.ci95
    side = "less" if hi < 0 else "more" if lo > 0 else ""
    return Cut(f"{_percent(e.mean)} [{_percent(lo)}, {_percent(hi)}]", side)


def _percent(log: float) -> str:
    return f"{100 * np.expm1(log):+.0f}".replace("-", "−")
