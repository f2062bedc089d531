"""Frontiers of delay against goodput, and how two of them are compared: seed by seed, at equal goodputs.

A threshold moves a point along a frontier, so equal thresholds compare nothing: one scheme may buy its lower
delay with goodput. Over the goodputs that both reach, ten of them evenly spread, the log of the ratio is
taken and averaged. A point that another one of its scheme beats in goodput and in delay is of no threshold
that anyone would choose, and is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...metrics.measures import Array, Measures

#: How many goodputs are compared.
MATCHED = 10
#: Thirds of the matched goodputs, by which a gain is shown along a frontier: low, middle, high.
THIRDS = (("low", slice(0, 3)), ("middle", slice(3, 7)), ("high", slice(7, 10)))


@dataclass(frozen=True)
class Frontier:
    """One scheme's points, in the order of thresholds."""

    values: Sequence[int]
    points: Sequence[Measures]

    @staticmethod
    def of(points: Mapping[int, Measures]) -> Frontier:
        """From measures by threshold, in whatever order."""
        ordered = sorted(points)
        return Frontier(ordered, [points[value] for value in ordered])

    def above(self, value: int) -> Frontier:
        """The part at thresholds above one."""
        return self.only([at for at in self.values if at > value])

    def only(self, values: Sequence[int]) -> Frontier:
        """The part at these thresholds: between other points, lines lie elsewhere."""
        kept = [i for i, at in enumerate(self.values) if at in values]
        return Frontier([self.values[i] for i in kept], [self.points[i] for i in kept])

    def first(self, seeds: int) -> Frontier:
        """The same with so many seeds."""
        few = [
            Measures(m.seeds[:seeds], {k: x[:seeds] for k, x in m.values.items()}, {}) for m in self.points
        ]
        return Frontier(self.values, few)

    def __getitem__(self, name: str) -> Array:
        """A measure as thresholds × seeds."""
        return np.stack([m[name] for m in self.points])


def log_ratio(
    a: Frontier, b: Frontier, name: str = "delay", at: slice = slice(MATCHED)
) -> list[float] | None:
    """`log_ratios` of the seeds that have one; None if no seed has.

    >>> import numpy as np
    >>> def at(goodput, delay):
    ...     return Measures((1,), {"goodput": np.array([goodput]), "delay": np.array([delay])}, {})
    >>> slow = Frontier.of({1: at(1.0, 2.0), 2: at(2.0, 8.0)})
    >>> fast = Frontier.of({1: at(1.0, 1.0), 2: at(3.0, 16.0)})
    >>> [round(x, 6) for x in log_ratio(fast, slow)]  # ln ½ in the middle of both and at both ends
    [-0.693147]
    """
    return [x for x in log_ratios(a, b, name, at) if not np.isnan(x)] or None


def log_ratios(a: Frontier, b: Frontier, name: str = "delay", at: slice = slice(MATCHED)) -> list[float]:
    """Mean ln(a / b) at ten matched goodputs, or those that `at` names, one a seed.

    NaN of a seed in which the two reach no goodput both.
    """
    found = []
    for seed in range(a["goodput"].shape[1]):
        lines = [_line(f, name, seed) for f in (a, b)]
        found.append(_apart(lines, at))
    return found


def _apart(lines: Sequence[tuple[Array, Array]], at: slice = slice(MATCHED)) -> float:
    """How far the first line is above the second, on the mean of places evenly spread over both; or NaN."""
    low, high = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    if not low < high:
        return float("nan")
    places = np.linspace(low, high, MATCHED)[at]
    ours, theirs = (np.interp(places, x, y) for x, y in lines)
    return float(np.mean(ours - theirs))


def along(a: Frontier, b: Frontier, name: str = "delay") -> tuple[Array, Array] | None:
    """Ten goodputs that all seeds of both reach, and ln(a / b) at each of them, goodputs × seeds.

    None where there are none.

    >>> import numpy as np
    >>> def at(goodput, delay):
    ...     return Measures((1,), {"goodput": np.array([goodput]), "delay": np.array([delay])}, {})
    >>> slow = Frontier.of({1: at(1.0, 2.0), 2: at(2.0, 4.0)})
    >>> fast = Frontier.of({1: at(1.0, 2.0), 2: at(2.0, 2.0)})
    >>> goodputs, ratios = along(fast, slow)
    >>> goodputs[[0, -1]].tolist(), ratios[[0, -1], 0].round(3).tolist()
    ([1.0, 2.0], [0.0, -0.693])
    """
    seeds = range(a["goodput"].shape[1])
    ours, theirs = ([_line(f, name, seed) for seed in seeds] for f in (a, b))
    low = max(x[0] for x, _ in (*ours, *theirs))
    high = min(x[-1] for x, _ in (*ours, *theirs))
    if not low < high:
        return None
    goodputs = np.linspace(low, high, MATCHED)
    found = [
        np.interp(goodputs, *mine) - np.interp(goodputs, *other)
        for mine, other in zip(ours, theirs, strict=True)
    ]
    return goodputs, np.stack(found, axis=1)


def at_equal_delay(a: Frontier, b: Frontier, name: str) -> list[float]:
    """Mean of `a` less `b` at ten delays evenly spread (by their logarithm) over what both reach, one a seed.

    NaN of a seed in which they share none.

    >>> import numpy as np
    >>> def at(delay, utilisation):
    ...     values = {"delay": np.array([delay]), "utilisation": np.array([utilisation])}
    ...     return Measures((1,), values, {})
    >>> early = Frontier.of({1: at(1.0, 0.75), 2: at(4.0, 1.0)})
    >>> late = Frontier.of({1: at(1.0, 0.5), 2: at(4.0, 0.75)})
    >>> at_equal_delay(early, late, "utilisation")
    [0.25]
    """
    found = []
    for seed in range(a["delay"].shape[1]):
        lines = []
        for f in (a, b):
            delay = np.log(f["delay"][:, seed])
            order = np.argsort(delay, kind="stable")
            lines.append((delay[order], f[name][:, seed][order]))
        found.append(_apart(lines))
    return found


def beyond(a: Frontier, base: Frontier, c: Frontier, at: slice) -> list[float]:
    """Mean ln(a / c) of the delay at the goodputs `at` of `log_ratios(a, base)` that `c` reaches, one a seed.

    NaN of a seed in which `c` reaches none of them, or the first two share none.
    """
    found = []
    for seed in range(a["goodput"].shape[1]):
        ours, theirs, third = (_line(f, "delay", seed) for f in (a, base, c))
        low, high = max(ours[0][0], theirs[0][0]), min(ours[0][-1], theirs[0][-1])
        places = np.linspace(low, high, MATCHED)[at] if low < high else np.array([])
        places = places[places <= third[0][-1]]
        if len(places):
            found.append(float(np.mean(np.interp(places, *ours) - np.interp(places, *third))))
        else:
            found.append(float("nan"))
    return found


def least_delay(frontiers: Sequence[Frontier], goodput: float) -> Array:
    """The least delay that any threshold of any of the frontiers has at this goodput or above, one a seed.

    NaN of a seed in which none reaches it.

    >>> import numpy as np
    >>> def at(goodput, delay):
    ...     return Measures((1,), {"goodput": np.array([goodput]), "delay": np.array([delay])}, {})
    >>> one = Frontier.of({1: at(1.0, 2.0), 2: at(3.0, 8.0)})
    >>> two = Frontier.of({1: at(2.5, 3.0)})
    >>> [float(least_delay([one, two], g)[0].round(3)) for g in (2.0, 2.75, 4.0)]
    [3.0, 6.727, nan]
    """
    found = []
    for seed in range(frontiers[0]["goodput"].shape[1]):
        delays = [float("inf")]
        for x, y in (_line(f, "delay", seed) for f in frontiers):
            if goodput <= x[-1]:
                delays.append(float(np.exp(np.interp(goodput, x, y))))
        found.append(min(delays))
    return np.where(np.isinf(found), np.nan, found)


def _line(frontier: Frontier, name: str, seed: int) -> tuple[Array, Array]:
    """Goodputs in rising order, and the logarithm of the measure at each."""
    at = _chosen(frontier, seed)
    return frontier["goodput"][at, seed], np.log(frontier[name][at, seed])


def _chosen(frontier: Frontier, seed: int) -> Sequence[int]:
    """Which points no other one beats in both goodput and delay, by rising goodput and so by rising delay."""
    goodput, delay = frontier["goodput"][:, seed], frontier["delay"][:, seed]
    found: list[int] = []
    for at in np.lexsort((-delay, goodput))[::-1]:
        if not found or delay[at] <= delay[found[-1]]:
            found.append(int(at))
    return found[::-1]
