"""Samples made by hand, and what they are judged to be: for the tests of the rules and of their laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inprofile.papers.judge import Comparison, Effect, Finding, Judged, Number, Verdict, judge

UP = [1.0, 1.2, 0.9, 1.1, 1.0, 1.05]
MORE = [2.0, 2.2, 1.9, 2.1, 2.0, 2.05]
NOISE = [0.4, -0.5, 0.1, -0.2, 0.3, -0.1]
ZERO = [0.0] * 6


def comparison(values: Sequence[float], side: str = "above", **options: Any) -> Comparison:
    return Comparison("ours above theirs", values, side, **options)  # type: ignore[arg-type]


def number(paper: float, values: list[float] = UP, **options: Any) -> Number:
    return Number("ours", values, paper, "Table 1", **options)


def one(*comparisons: Comparison, numbers: Sequence[Number] = ()) -> Judged:
    return judge([Finding("A1", "here", comparisons, numbers)])[0]


def verdict(*comparisons: Comparison, numbers: Sequence[Number] = ()) -> Verdict:
    return one(*comparisons, numbers=numbers).verdict


HOLDS, OPPOSITE, OPEN = comparison(UP), comparison(UP, "below"), comparison(NOISE)
STUCK = comparison(ZERO, obstacle="the queue is empty")


def several(kind: Comparison, n: int) -> list[Comparison]:
    """Distinct comparisons of one outcome."""
    if kind is STUCK:
        return [Comparison(f"{i}", ZERO, "above", obstacle="empty") for i in range(n)]
    return [Comparison(f"{i}", [x * (1 + 0.01 * i) for x in kind.values], kind.side) for i in range(n)]


def least(size: float) -> Effect:
    return Effect(size, "for the test")


def outcome(values: Sequence[float], side: str = "above", **options: Any) -> str:
    return one(comparison(values, side, **options)).comparisons[0].outcome
