"""The statistics of seeds: means with intervals, paired differences, Holm's correction, Jain's index.

Runs with different seeds are independent draws from one distribution; nothing else is assumed to be.
Sums are exact (`math.fsum`), so a result does not depend on the order of the seeds.

A measure that cannot leave its `bounds` (a share, an index) has intervals inside them: Student's t on the
logit scale where both ends are known, cut at the bound where one is (docs/decisions/0026).

How many seeds a paired comparison needs: the power of the t test, from a pilot's differences. A pilot runs
with seeds of its own, so that what it says of the effect is not used twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

Bounds = tuple[float, float]
"""The range of a measure: least and greatest value, ±inf where there is none."""
FREE: Bounds = (-math.inf, math.inf)
SHARE: Bounds = (0.0, 1.0)
"""A share, a loss rate, a utilisation, a fairness index."""
UNLIKE: Bounds = (-1.0, 1.0)
"""A difference of two of those."""
POSITIVE: Bounds = (0.0, math.inf)
"""A rate, a count, a delay."""

ENOUGH_ALIKE = 6
"""This many equal values rule out at 95 % that half of all runs lie above them, or below: 2 · 2⁻⁶ < 0.05."""


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


@cache
def _student(df: int, probability: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, probability))


def _checked(values: Iterable[float], bounds: Bounds) -> list[float]:
    """The values, those beyond a bound by no more than rounding put on it."""
    lo, hi = bounds
    xs = [float(x) for x in values]
    for i, x in enumerate(xs):
        if not lo <= x <= hi:
            inside = min(max(x, lo), hi)
            if abs(x - inside) > 1e-9 * max(1.0, abs(inside)):
                raise ValueError(f"{x} is outside {lo:g} to {hi:g}, which this measure cannot leave")
            xs[i] = inside
    return xs


def _logit(x: float, bounds: Bounds) -> tuple[float, float]:
    """The logit of a value inside two bounds, and its derivative there."""
    # By the distances from both bounds, which are not 0 however near the value is to one of them.
    below, above = x - bounds[0], bounds[1] - x
    return math.log(below) - math.log(above), 1 / below + 1 / above


def _around(m: float, half: float, bounds: Bounds) -> Interval:
    """From `m − half` to `m + half` without bounds; with two, the same on the logit scale; else cut."""
    lo, hi = bounds
    if not (math.isfinite(lo) and math.isfinite(hi)) or not lo < m < hi:
        return Interval(max(lo, m - half), min(hi, m + half))
    at, slope = _logit(m, bounds)
    low, high = (lo + (hi - lo) * _expit(at + sign * half * slope) for sign in (-1, 1))
    # Rounding must not put the mean outside.
    return Interval(min(low, m), max(high, m))


def _expit(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def _same(xs: Sequence[float]) -> bool:
    """Whether values differ by no more than rounding."""
    # Below the second of these a square underflows.
    return max(xs) - min(xs) <= max(1e-12 * max(map(abs, xs)), 1e-150)


def _alike(x: float, n: int, bounds: Bounds) -> Interval:
    """The interval of the mean after `n` equal values.

    From six on, the interval from the least to the greatest has 95 % confidence for the middle of the runs,
    and it has no width. With fewer, what may have been missed counts: a share of 1 − 0.05^(1/n) of all runs,
    which may lie anywhere inside the bounds. Without bounds nothing is known about those.
    """
    lo, hi = bounds
    if n >= ENOUGH_ALIKE or not (math.isfinite(lo) and math.isfinite(hi)):
        return Interval(x, x)
    missed = 1 - 0.05 ** (1 / n)
    return Interval(x - missed * (x - lo), x + missed * (hi - x))


def ci95(values: Iterable[float], bounds: Bounds = FREE) -> Interval | None:
    """95 % confidence interval of the mean, by Student's t; `None` with fewer than two values.

    >>> lo, hi = ci95([1.0, 2.0, 3.0])
    >>> round(lo, 3), round(hi, 3)
    (-0.484, 4.484)
    >>> lo, hi = ci95([0.95, 0.97, 0.999], SHARE)
    >>> round(lo, 3), round(hi, 3)
    (0.778, 0.997)

    Raises ValueError for a value outside `bounds`.
    """
    xs = _checked(values, bounds)
    if len(xs) < 2:
        return None
    m = mean(xs)
    if _same(xs):
        return _alike(m, len(xs), bounds)
    half = _student(len(xs) - 1, 0.975) * _deviation(xs, m) / math.sqrt(len(xs))
    return _around(m, half, bounds)


def prediction95(values: Iterable[float], bounds: Bounds = FREE) -> Interval | None:
    """Where one more run's value lies with 95 % probability; `None` with fewer than two values.

    A paper that reports one run is compared with this, not with the interval of the mean. Normal values are
    assumed: x̄ ± t(n−1)·s·√(1 + 1/n), cut at the bounds, beyond which no value can lie.

    >>> lo, hi = prediction95([1.0, 2.0, 3.0])
    >>> round(lo, 3), round(hi, 3)
    (-2.968, 6.968)
    """
    xs = _checked(values, bounds)
    if len(xs) < 2:
        return None
    m = mean(xs)
    half = _student(len(xs) - 1, 0.975) * _deviation(xs, m) * math.sqrt(1 + 1 / len(xs))
    return Interval(max(bounds[0], m - half), min(bounds[1], m + half))


def p_above(values: Iterable[float], null: float, bounds: Bounds = FREE) -> float:
    """One-sided p-value of "the mean lies above `null`", by the test that `ci95` inverts.

    Equal values have no t. Their p-value is the sign test's: 2⁻ⁿ for n values above, ½ where they are `null`.

    >>> round(p_above([1.0, 2.0, 3.0], 0.0), 4), p_above([0.5] * 5, 0.0), p_above([0.0] * 5, 0.0)
    (0.0371, 0.03125, 0.5)

    Raises ValueError with fewer than two values, and for a `null` that is not inside the bounds.
    """
    from scipy.special import stdtr

    lo, hi = bounds
    if not lo < null < hi:
        raise ValueError(f"nothing to compare with {null:g}: the measure cannot leave {lo:g} to {hi:g}")
    xs = _checked(values, bounds)
    if len(xs) < 2:
        raise ValueError("a test needs at least 2 seeds")
    m = mean(xs)
    if _same(xs):
        if math.isclose(m, null, rel_tol=1e-12, abs_tol=1e-12):
            return 0.5
        tail: float = 0.5 ** len(xs)
        return tail if m > null else 1 - tail
    error = _deviation(xs, m) / math.sqrt(len(xs))
    if math.isfinite(lo) and math.isfinite(hi) and lo < m < hi:
        at, slope = _logit(m, bounds)
        t = (at - _logit(null, bounds)[0]) / (error * slope)
    else:
        t = (m - null) / error
    return float(stdtr(len(xs) - 1, -t))


def p_below(values: Iterable[float], null: float, bounds: Bounds = FREE) -> float:
    """The same of "the mean lies below `null`"."""
    return p_above([-x for x in values], -null, (-bounds[1], -bounds[0]))


def estimate(values: Iterable[float], bounds: Bounds = FREE) -> Estimate:
    """Mean and interval together.

    >>> estimate([4.0])
    Estimate(mean=4.0, ci95=None, n=1)
    """
    xs = list(values)
    if not any(xs):
        return _of_zeros(len(xs), bounds)
    return Estimate(mean(xs), ci95(xs, bounds), len(xs))


@cache
def _of_zeros(n: int, bounds: Bounds) -> Estimate:
    """Of `n` zeros, as most counts of a large table are."""
    xs = [0.0] * n
    return Estimate(mean(xs), ci95(xs, bounds), n)


def paired(a: Mapping[int, float], b: Mapping[int, float], bounds: Bounds = FREE) -> Paired:
    """Compare two schemes by the seeds they share: values by seed, difference a − b (inside `bounds`).

    >>> paired({1: 2.0, 2: 3.0, 3: 4.0}, {1: 1.0, 2: 2.0, 3: 3.0}).difference
    Estimate(mean=1.0, ci95=Interval(lo=1.0, hi=1.0), n=3)

    Raises ValueError where no seed is in both.
    """
    seeds = tuple(sorted(a.keys() & b.keys()))
    if not seeds:
        raise ValueError("no seed is in both results: run them with the same seeds")
    xs = [a[s] - b[s] for s in seeds]
    difference = estimate(xs, bounds)
    if difference.ci95 is not None and not any(xs):
        # Equal seeds gave equal runs: this zero is exact, not a sample's.
        difference = Estimate(0.0, Interval(0.0, 0.0), len(xs))
    return Paired(difference, _p_of_zero(xs, bounds), seeds)


def _p_of_zero(xs: Sequence[float], bounds: Bounds) -> float | None:
    """Two-sided p-value of a mean of zero."""
    if len(xs) < 2:
        return None
    return min(1.0, 2 * min(p_above(xs, 0.0, bounds), p_below(xs, 0.0, bounds)))


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


def estimated(values: Sequence[float], bounds: Bounds = FREE) -> dict[str, Any]:
    """Mean, 95 % interval and every seed's value."""
    e = estimate(values, bounds)
    return {
        "mean": e.mean,
        "ci95": None if e.ci95 is None else [e.ci95.lo, e.ci95.hi],
        "n": e.n,
        "values": [float(v) for v in values],
    }


#: So many seeds a comparison may have; a pilot's lie beyond.
MOST = 40
#: The pilot's spread is taken at this upper confidence limit: few seeds easily show too little of it.
SURE = 0.8


def power_of(n: int, effect: float, alpha: float = 0.05) -> float:
    """Power of the two-sided paired t test with `n` seeds; `effect` in standard deviations of a difference.

    >>> round(power_of(34, 0.5), 3)
    0.808
    """
    from scipy.special import stdtrit
    from scipy.stats import nct

    critical = float(stdtrit(n - 1, 1 - alpha / 2))
    return float(nct.sf(critical, n - 1, abs(effect) * math.sqrt(n)))


def seeds_needed(
    pilot: Mapping[int, float], power: float = 0.9, margin: float = 0.0, most: int = MOST
) -> int | None:
    """How many seeds show with this `power` that the difference is not `margin`; None: more than `most`.

    `pilot` has the paired difference of each of its seeds. Its standard deviation is taken at the upper 80 %
    limit (Browne 1995), s·√((n − 1)/χ²), and the effect as it is.

    >>> seeds_needed({101: 1.2, 102: 0.7, 103: 1.1, 104: 0.9})
    4
    >>> seeds_needed({101: 0.4, 102: -0.5, 103: 0.3, 104: -0.1}) is None
    True

    Raises ValueError for seeds among 1 to `most`, fewer than two of them, and a power that is none.
    """
    from scipy.special import chdtri

    if not 0.05 < power < 1:
        raise ValueError(f"a power of {power:g} is none: give more than 0.05 and less than 1, such as 0.9")
    if len(pilot) < 2:
        raise ValueError("a pilot needs at least 2 seeds")
    if used := sorted(seed for seed in pilot if 1 <= seed <= most):
        raise ValueError(
            f"the pilot's seed {used[0]} is one that will be judged: take seeds above {most}, such as 101"
        )
    xs = [pilot[seed] for seed in sorted(pilot)]
    m, n = mean(xs), len(xs)
    spread = math.sqrt(math.fsum((x - m) ** 2 for x in xs) / float(chdtri(n - 1, SURE)))
    if m == margin:
        return None
    if spread == 0:
        # Equal differences: the sign test's six.
        return 6 if most >= 6 else None
    effect = (m - margin) / spread
    return next((k for k in range(2, most + 1) if power_of(k, effect) >= power), None)
