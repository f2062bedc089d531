"""Paper E's advice: like against like, on a link with capacity to spare and on one that is sold out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Array, Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known
from ..advice_today import Figure
from ..judge import Verdict
from .experiments import ALONE, BASELINE, HIGH, OURS, cell_of
from .measure import contracts, fairness

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture", "today"]

#: TWAM without DWRED, with the thresholds that are printed.
ALONE_LOW = "twam-wred"
#: The other reading of Eq. (3), among the variants.
WEIGHTED = "weighted"
SPARE, SOLD = "scenario-2", "scenario-1"
#: Set-ups by their places: the rival's thresholds like ours, and as printed.
LIKE, PRINTED = 0, 1


def _found(report: Report, setup: int, topology: str, scheme: str) -> Measures:
    paper = report.paper
    made: Measures = report.cells[cell_of(paper, paper.setups[setup].id, topology, scheme)]
    return made


def figures(report: Report) -> dict[str, float]:
    """Jain's index of throughput over contract, use of the link and waits: the paper's and its rivals'.

    Alone: TWAM, with thresholds of WRED under which packets wait as under DWRED; tuned: TSW2CM, likewise.
    """
    topology = report.paper.find("topologies", SPARE)
    capacity, sold = topology.number("capacity"), contracts(report.paper, topology)
    ours, like, tuned, alone, low = (
        _found(report, LIKE, SPARE, s) for s in (OURS, BASELINE, HIGH, ALONE, ALONE_LOW)
    )
    printed = _found(report, PRINTED, SPARE, BASELINE)
    ours_full, like_full = (_found(report, LIKE, SOLD, s) for s in (OURS, BASELINE))

    def mean(m: Measures, what: str, unit: float = 1.0) -> float:
        return float(m[what].mean()) / unit

    def least(name: str, m: Measures) -> dict[str, float]:
        each = [known(name, m[f"x.{i}"] / rate) for i, rate in enumerate(sold, 1)]
        return min(each, key=lambda found: found[name])

    def got(m: Measures, rate: float) -> float:
        """What a flow of a contract gets, in Mbit/s."""
        return float(np.mean([m[f"x.{i + 1}"] for i in np.flatnonzero(sold == rate)])) / 1e6

    small, large, left = float(sold.min()), float(sold.max()), capacity - float(sold.sum())
    way, way_tuned = (_of_the_way(m, sold, capacity) for m in (alone, tuned))
    paths = report.paper.find("topologies", "two-paths").id
    one, turns = (_found(report, LIKE, paths, scheme) for scheme in ("one-queue", "drr"))
    return {
        "ours": mean(ours, "fi"),
        "alone": mean(alone, "fi"),
        "low": mean(low, "fi"),
        **known("way", way),
        **known("way_tuned", way_tuned),
        **_lost(report),
        **known("gain", alone["fi"] - tuned["fi"]),
        **known("less", alone["fi"] - ours["fi"]),
        **least("least_alone", alone),
        "small": got(alone, small),
        "large": got(alone, large),
        "small_tuned": got(tuned, small),
        "large_tuned": got(tuned, large),
        "small_fair": small * capacity / float(sold.sum()) / 1e6,
        "large_fair": large * capacity / float(sold.sum()) / 1e6,
        # What the index is where all get the same beyond their contracts.
        "even": float(fairness((sold + left / len(sold)) / sold)),
        "one_queue": mean(one, "fi"),
        "turns": mean(turns, "fi"),
        **known("by_turns", turns["fi"] - one["fi"]),
        **least("full_ours", ours_full),
        **least("full_like", like_full),
        "wait_alone": mean(alone, "delay", 1e-3),
        "wait_low": mean(low, "delay", 1e-3),
        **known("longer", (ours["delay"] - alone["delay"]) * 1e3),
        "used_low": mean(low, "total", capacity),
        "used_alone": mean(alone, "total", capacity),
        **known("unused", (alone["total"] - low["total"]) / capacity),
        **known("as_fair", alone["fi"] - low["fi"]),
        "rto_ours": mean(ours, "timeouts"),
        "rto_alone": mean(alone, "timeouts"),
        "like": mean(like, "fi"),
        "tuned": mean(tuned, "fi"),
        "printed": mean(printed, "fi"),
        **known("lead", ours["fi"] - tuned["fi"]),
        **known("handicap", like["fi"] - printed["fi"]),
        **least("least_ours", ours),
        **least("least_like", like),
        **least("least_tuned", tuned),
        "used_like": mean(like, "total", capacity),
        **known("fuller", (alone["total"] - tuned["total"]) / capacity),
        "wait_ours": mean(ours, "delay", 1e-3),
        "wait_like": mean(like, "delay", 1e-3),
        **known("waits", (ours["delay"] - like["delay"]) * 1e3),
        "ours_full": mean(ours_full, "fi"),
        "like_full": mean(like_full, "fi"),
        **known("lead_full", ours_full["fi"] - like_full["fi"]),
    }


def _of_the_way(m: Measures, sold: Array, capacity: float) -> Array:
    """How far shares of what is not sold lie from equal ones (0) towards those in proportion (1), by seed.

    The slope of what each flow gets beyond its contract over what it would get in proportion (least squares).
    """
    left = capacity - float(sold.sum())
    wanted = left * sold / sold.sum() - left / len(sold)
    beyond = np.stack([m[f"x.{i}"] for i in range(1, len(sold) + 1)], axis=1) - sold
    return np.asarray(beyond @ wanted / (wanted @ wanted))


def _lost(report: Report) -> dict[str, float]:
    """How many claims are reproduced in the first set-up, and how many of them not so with Σ(r·W)."""
    first = report.paper.setups[0].id
    other = {j.claim: j.verdict for j in report.variants.get(WEIGHTED, ()) if j.setup == first}
    sound = {j.claim for j in report.judged if j.setup == first and j.verdict is Verdict.REPRODUCED}
    under = {c: other.get(c) or report.kept_under(c, first).get(WEIGHTED) for c in sound}
    told = {c: verdict for c, verdict in under.items() if verdict is not None}
    lost = sum(verdict is not Verdict.REPRODUCED for verdict in told.values())
    return {"reproduced": float(len(told)), "lost": float(lost)}


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The same of one of today's senders, with 30 of 50 Mbit/s sold."""
    topology = paper.find("topologies", SPARE)
    sold = contracts(paper, topology)
    alone, tuned, ours = (
        cells[cell_of(paper, paper.setups[LIKE].id, SPARE, scheme)] for scheme in (ALONE, HIGH, OURS)
    )
    index = "Jain's index of throughput over contract"

    def least(m: Measures) -> Array:
        return np.asarray(np.min([m[f"x.{i}"] / rate for i, rate in enumerate(sold, 1)], axis=0))

    return [
        Figure("alone", f"{index}, TWAM + WRED (advised)", alone["fi"], bounds=SHARE),
        Figure("tuned", f"{index}, TSW2CM + WRED that lets packets wait as long", tuned["fi"], bounds=SHARE),
        Figure("ours", f"{index}, TWAM + DWRED", ours["fi"], bounds=SHARE),
        Figure("gain", "what TWAM adds to the index, both with WRED", alone["fi"] - tuned["fi"]),
        Figure("less", "what WRED adds to DWRED's index, both with TWAM", alone["fi"] - ours["fi"]),
        Figure("least", "the least kept of a contract, TWAM + WRED", least(alone)),
        Figure("least_tuned", "the least kept of a contract, TSW2CM + WRED", least(tuned)),
        Figure("wait", "wait in the queues, TWAM + WRED", alone["delay"] * 1e3, "ms"),
        Figure("used", "use of the link, TWAM + WRED", alone["total"] / topology.number("capacity")),
    ]


def picture(report: Report) -> Mapping[str, Any]:
    """Throughput over contract: TWAM with WRED and with DWRED, the baseline tuned and as printed."""
    topology = report.paper.find("topologies", SPARE)
    sold = contracts(report.paper, topology)
    lines = {
        "TWAM + WRED": (LIKE, ALONE),
        "TWAM + DWRED": (LIKE, OURS),
        "TSW2CM + WRED": (LIKE, HIGH),
        "TSW2CM + WRED as printed": (PRINTED, BASELINE),
    }
    rows = []
    for title, (setup, scheme) in lines.items():
        m = _found(report, setup, SPARE, scheme)
        for rate in np.unique(sold):
            of_it = [m[f"x.{i + 1}"] / rate for i in np.flatnonzero(sold == rate)]
            rows.append(draw.row(title, np.mean(of_it, axis=0), x=float(rate) / 1e6))
    fair = topology.number("capacity") / float(sold.sum())
    rows += [
        {"scheme": "In proportion", "x": float(rate) / 1e6, "mean": fair, "lo": fair, "hi": fair}
        for rate in np.unique(sold)
    ]
    return curve(rows, [*lines, "In proportion"], x="contract (Mbit/s)", y="throughput / contract")
