"""Paper E's advice: like against like, on a link with capacity to spare and on one that is sold out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Measures
from .experiments import BASELINE, OURS, cell_of
from .measure import contracts

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

SPARE, SOLD = "scenario-2", "scenario-1"
#: Set-ups by their places: the rival's thresholds like ours, and as printed.
LIKE, PRINTED = 0, 1


def _found(report: Report, setup: int, topology: str, scheme: str) -> Measures:
    paper = report.paper
    made: Measures = report.cells[cell_of(paper, paper.setups[setup].id, topology, scheme)]
    return made


def figures(report: Report) -> dict[str, float]:
    """Jain's index of throughput over contract, use of the link and queues, ours and the baselines'."""

    def mean(what: str, setup: int, topology: str, scheme: str) -> float:
        return float(_found(report, setup, topology, scheme)[what].mean())

    capacity = report.paper.find("topologies", SPARE).number("capacity")
    ours, like, printed = (
        mean("fi", LIKE, SPARE, OURS),
        mean("fi", LIKE, SPARE, BASELINE),
        mean("fi", PRINTED, SPARE, BASELINE),
    )
    ours_full, like_full = (mean("fi", LIKE, SOLD, s) for s in (OURS, BASELINE))
    used_ours, used_like = (mean("total", LIKE, SPARE, s) / capacity for s in (OURS, BASELINE))
    queue_ours, queue_like = (mean("queue.1", LIKE, SPARE, s) for s in (OURS, BASELINE))
    return {
        "ours": ours,
        "like": like,
        "printed": printed,
        "lead": ours - like,
        "handicap": like - printed,
        "ours_full": ours_full,
        "like_full": like_full,
        "lead_full": ours_full - like_full,
        "used_ours": used_ours,
        "used_like": used_like,
        "fuller": used_ours - used_like,
        "queue_ours": queue_ours,
        "queue_like": queue_like,
        "longer": queue_ours - queue_like,
    }


def picture(report: Report) -> Mapping[str, Any]:
    """Throughput over contract, by contract: ours, the baseline like for like, and as printed."""
    topology = report.paper.find("topologies", SPARE)
    sold = contracts(report.paper, topology)
    lines = {
        "TWAM + DWRED": (LIKE, OURS),
        "TSW2CM + WRED": (LIKE, BASELINE),
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
