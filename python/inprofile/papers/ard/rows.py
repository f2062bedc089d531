"""What the parts of paper A's page share: schemes' titles, which side of 0 a mean is on."""

from __future__ import annotations

from ...metrics.stats import ci95
from .. import Paper


def titles(paper: Paper) -> dict[str, str]:
    """Titles of schemes by id, in the order of every chart and table."""
    return {scheme.id: scheme.title for scheme in paper.schemes}


def side(values: list[float]) -> int:
    """On which side of 0 the 95 % interval of the mean lies; 0 where it holds 0."""
    interval = ci95(values)
    if interval is None or 0.0 in interval:
        return 0
    return 1 if interval.lo > 0 else -1
