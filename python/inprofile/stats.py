"""The statistics of seeds: means with intervals, paired differences, Holm's correction, Jain's index.

Runs with different seeds are independent draws from one distribution; nothing else is assumed to be.
Sums are exact (`math.fsum`), so a result does not depend on the order of the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "Estimate",
    "Interval",
    "Paired",
    "ci95",
    "estimate",
    "estimated",
    "holm",
    "jain",
    "mean",
    "paired",
    "prediction95",
]


class Interval(NamedTuple):
    """From `lo` to `hi`, both included."""

    lo: float
    hi: float

    def __contains__(self, x: object) -> bool:
        return isinstance(x, (int, float)) and self.lo <= x <= self.hi


class Estimate(NamedTuple):
    """A mean over seeds and how well it is known."""

    mean: float
    """The arithmetic mean."""
    ci95: Interval | None
    """Its 95 % confidence interval; `None` where one seed cannot tell."""
    n: int
    """How many values it is the mean of."""

    @property
    def half(self) -> float | None:
        """Half the interval's width: the figure after ±."""
        return None if self.ci95 is None else (self.ci95.hi - self.ci95.lo) / 2


class Paired(NamedTuple):
    """How two schemes differ on the same seeds."""

    difference: Estimate
    """Of the differences a − b, seed by seed."""
    p: float | None
    """Two-sided p-value of the paired t-test; `None` with fewer than two seeds in common."""
    seeds: tuple[int, ...]
    """The seeds both have."""


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean.

    >>> mean([1.0, 2.0, 6.0])
    3.0

    Raises ValueError without values.
    """
    xs = list(values)
    if not xs:
        raise ValueError("the mean of no values")
    return math.fsum(xs) / len(xs)


def _deviation(xs: Sequence[float], centre: float) -> float:
    """Standard deviation of a sample (n − 1)."""
    return math.sqrt(math.fsum((x - centre) ** 2 for x in xs) / (len(xs) - 1))


def _student(df: int, probability: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def ci95(values: Iterable[float]) -> Interval | None:
    """95 % confidence interval of the mean, by Student's t; `None` with fewer than two values.

    >>> lo, hi = ci95([1.0, 2.0, 3.0])
    >>> round(lo, 3), round(hi, 3)
    (-0.484, 4.484)
    """
    xs = list(values)
    if len(xs) < 2:
        return None
    m = mean(xs)
    half = _student(len(xs) - 1, 0.975) * _deviation(xs, m) / math.sqrt(len(xs))
    return Interval(m - half, m + half)


def prediction95(values: Iterable[float]) -> Interval | None:
    """Where one more run's value lies with 95 % probability; `None` with fewer than two values.

    A paper that reports one run is compared with this, not with the interval of the mean. Normal
    values are assumed: x̄ ± t(n−1)·s·√(1 + 1/n).

    >>> lo, hi = prediction95([1.0, 2.0, 3.0])
    >>> round(lo, 3), round(hi, 3)
    (-2.968, 6.968)
    """
    xs = list(values)
    if len(xs) < 2:
        return None
    m = mean(xs)
    half = _student(len(xs) - 1, 0.975) * _deviation(xs, m) * math.sqrt(1 + 1 / len(xs))
    return Interval(m - half, m + half)


def estimate(values: Iterable[float]) -> Estimate:
    """Mean and interval together.

    >>> estimate([4.0])
    Estimate(mean=4.0, ci95=None, n=1)
    """
    xs = list(values)
    return Estimate(mean(xs), ci95(xs), len(xs))


def paired(a: Mapping[int, float], b: Mapping[int, float]) -> Paired:
    """Compare two schemes by the seeds they share: values by seed, difference a − b.

    >>> paired({1: 2.0, 2: 3.0, 3: 4.0}, {1: 1.0, 2: 2.0, 3: 3.0}).difference
    Estimate(mean=1.0, ci95=Interval(lo=1.0, hi=1.0), n=3)

    Raises ValueError where no seed is in both.
    """
    seeds = tuple(sorted(a.keys() & b.keys()))
    if not seeds:
        raise ValueError("no seed is in both results: run them with the same seeds")
    xs = [a[s] - b[s] for s in seeds]
    d = estimate(xs)
    return Paired(d, _p_of_zero(xs, d.mean), seeds)


def _p_of_zero(xs: Sequence[float], m: float) -> float | None:
    """Two-sided p-value of a mean of zero."""
    if len(xs) < 2:
        return None
    s = _deviation(xs, m)
    if s == 0:
        return 1.0 if m == 0 else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(len(xs) - 1, -abs(m) / (s / math.sqrt(len(xs)))))


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values of tests made together (Holm 1979), in their own order.

    Rejecting where the adjusted value is below α keeps the chance of any false rejection below α.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted = [0.0] * len(ps)
    least = 0.0
    for rank, i in enumerate(order):
        if not 0 <= ps[i] <= 1:
            raise ValueError(f"{ps[i]} is not a p-value: it lies outside 0 to 1")
        least = max(least, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = least
    return adjusted


def jain(xs: Iterable[float]) -> float:
    """Jain's fairness index (Σx)² / (n·Σx²): 1 where all are equal, 1/n where one has everything.

    >>> jain([1.0, 1.0, 1.0, 1.0]), jain([1.0, 0.0, 0.0, 0.0])
    (1.0, 0.25)

    Raises ValueError without values, or where all are zero.
    """
    values = list(xs)
    squares = math.fsum(x * x for x in values)
    if squares == 0:
        raise ValueError("Jain's index of nothing: no values, or all of them zero")
    return math.fsum(values) ** 2 / (len(values) * squares)


def estimated(values: Sequence[float]) -> dict[str, Any]:
    """Mean, 95 % interval and every seed's value."""
    e = estimate(values)
    return {
        "mean": e.mean,
        "ci95": None if e.ci95 is None else [e.ci95.lo, e.ci95.hi],
        "n": e.n,
        "values": [float(v) for v in values],
    }
