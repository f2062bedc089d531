"""What to use when: drawn from a comparison, with what it costs those without a contract.

For each experiment and way of doing TCP: of the schemes that keep the contracts best (the best mean and those
statistically tied with it), the one that leaves best effort most. Where nobody has a contract, the fairest;
where two schemes never reach the same delay, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..stats import SHARE, estimate, mean
from .measure import MEASURES
from .run import Compared, Comparison

__all__ = ["COMMITTED", "advice", "committed"]

#: The advice of the last whole comparison: `make renew` takes it from `reports/compare/results.json`.
COMMITTED = Path(__file__).parent / "advice.json"


def advice(comparison: Comparison) -> list[dict[str, Any]]:
    """Give a row for each experiment and TCP: when, what to use, what is as good, what it costs."""
    return [row for one in comparison.outcomes for row in _row(comparison, one)]


def _row(comparison: Comparison, one: Compared) -> Iterator[dict[str, Any]]:
    name = "kept" if "kept" in one.rankings else "fairness"
    if name not in one.rankings:
        return
    ranking = one.rankings[name]
    others = one.at_equal_delay("best_effort") if name == "kept" else {}
    # `max` takes the first of equals: the better by mean.
    use = max(ranking.first, key=lambda s: mean(others[s])) if others else ranking.best
    low, high = (1e3 * d for d in (min(one.delays), max(one.delays)))
    yield {
        "when": one.study.title,
        "tcp": one.study.tcp_title,
        "delays_ms": [round(low, 3), round(high, 3)],
        "seeds": len(one.seeds),
        "use": comparison.title(use),
        "measure": MEASURES[name].title,
        "percent": MEASURES[name].percent,
        "value": _figure(ranking.values[use]),
        "tied": [comparison.title(s) for s in ranking.first if s != use],
        "best_effort": _figure(others[use]) if use in others else None,
        "best_effort_most": _most(comparison, others),
        "last": {
            "scheme": comparison.title(ranking.order[-1]),
            "value": _figure(ranking.values[ranking.order[-1]]),
        },
    }


def _most(comparison: Comparison, others: Mapping[str, Sequence[float]]) -> dict[str, Any] | None:
    """The scheme under which best effort gets most, whatever becomes of the contracts."""
    if not others:
        return None
    best = max(others, key=lambda s: mean(others[s]))
    return {"scheme": comparison.title(best), "value": _figure(others[best])}


def _figure(values: Sequence[float]) -> dict[str, Any]:
    e = estimate(values, SHARE)
    return {
        "mean": round(e.mean, 5),
        "ci95": None if e.ci95 is None else [round(e.ci95.lo, 5), round(e.ci95.hi, 5)],
    }


def committed() -> list[dict[str, Any]]:
    """The advice of the last whole comparison; empty where there has been none."""
    if not COMMITTED.exists():
        return []
    found: list[dict[str, Any]] = json.loads(COMMITTED.read_text("utf-8"))
    return found
