"""What the parts of paper A's page share: schemes' titles, a row of a chart, which side of 0 a mean is on."""

from __future__ import annotations

from typing import Any

from ...stats import ci95, estimate
from ..measures import Measures

__all__ = ["SCHEMES", "row", "side"]

#: Titles by the names of `paper.toml`, in the order of every chart and table.
SCHEMES = {"rio": "RIO", "arm": "ARM", "ard": "ARD", "placebo": "Placebo"}


def row(scheme: str, measures: Measures, values: Any) -> dict[str, Any]:
    """Make a row of a chart: every seed's value, their mean and its 95 % interval."""
    e = estimate(float(v) for v in values)
    lo, hi = e.ci95 or (e.mean, e.mean)
    return {
        "scheme": SCHEMES[scheme],
        "seeds": list(measures.seeds),
        "values": [float(v) for v in values],
        "mean": e.mean,
        "lo": lo,
        "hi": hi,
    }


def side(values: list[float]) -> int:
    """On which side of 0 the 95 % interval of the mean lies; 0 where it holds 0."""
    interval = ci95(values)
    if interval is None or 0.0 in interval:
        return 0
    return 1 if interval.lo > 0 else -1
