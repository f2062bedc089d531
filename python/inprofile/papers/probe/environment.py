"""Paper C under each RED: which law and whether it waits, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...stats import estimate
from .. import Paper
from .frontiers import log_ratio
from .runs import Runs

if TYPE_CHECKING:
    from ...reproduce import Report

__all__ = ["laws", "paper_says"]

#: The thresholds whose goodput is shown.
LOW, MIDDLE = 8, 24
FLOWS = ("ten", "forty")
HOW = ("soft", "hard")


def paper_says(paper: Paper) -> dict[str, Any]:
    """What the paper prints of what the set-ups are compared by (§4); it prints no goodput and no delay."""
    printed = paper.top.table("printed")
    return {
        "share": {flows: printed.table("says_share").word(flows) for flows in FLOWS},
        "loss": printed.word("says_loss"),
        "cuts": {(flows, how): printed.word("says_delay") for flows in FLOWS for how in HOW},
    }


def laws(report: Report) -> list[dict[str, Any]]:
    """A row a set-up: goodput of all IN at two thresholds, change of delay, share of IN, loss of OUT."""
    rows = []
    for setup in report.paper.setups:
        runs = Runs(report.cells, setup.id)
        if ("frontier", "ten", "soft") in runs:
            rows.append({"title": setup.title, **_row(runs)})
    return rows


def _row(runs: Runs) -> dict[str, Any]:
    none = runs.points("frontier", "ten", "none")
    soft = {flows: runs.frontier("frontier", flows, "soft") for flows in FLOWS}
    return {
        "goodput": [f"{none[at]['goodput'].mean() / 1e6:.2f}" for at in (LOW, MIDDLE)],
        "cuts": {(flows, how): _cut(runs, flows, how) for flows in FLOWS for how in HOW},
        "share": {flows: _span([100 * x for x in f["share_in"].mean(axis=1)]) for flows, f in soft.items()},
        "loss": _span([100 * x for x in soft["ten"]["loss_out"].mean(axis=1)]),
    }


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _cut(runs: Runs, flows: str, how: str) -> Mapping[str, str]:
    """Change of delay at equal goodput, in per cent, with its interval; which side is shown."""
    ratio = log_ratio(runs.frontier("frontier", flows, how), runs.frontier("frontier", flows, "none"))
    if ratio is None:
        return {"text": "no common goodput", "side": ""}
    e = estimate(ratio)
    if e.ci95 is None:
        return {"text": _percent(e.mean), "side": ""}
    lo, hi = e.ci95
    side = "less" if hi < 0 else "more" if lo > 0 else ""
    return {"text": f"{_percent(e.mean)} [{_percent(lo)}, {_percent(hi)}]", "side": side}


def _percent(log: float) -> str:
    return f"{100 * np.expm1(log):+.0f}".replace("-", "−")
