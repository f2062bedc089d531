"""Frontiers: what each setting of a scheme gives at which mean queueing delay; and schemes at equal delay.

A setting moves a scheme along its frontier, so equal settings compare nothing: one scheme may buy its
fairness with delay. Schemes are therefore compared at the same delays, seed by seed, each interpolated
between its own settings, inside the widest range of delays that most of them reach with every seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...metrics.measures import Array, Measures

__all__ = ["MATCHED", "Frontier", "common_delays"]

#: How many delays schemes are compared at, evenly spread on a logarithmic scale.
MATCHED = 5
#: A range narrower than this ratio of its ends is a point, no range.
NARROW = 1.25


@dataclass(frozen=True)
class Frontier:
    """One scheme's points, in the order of its settings."""

    #: T in seconds.
    settings: Sequence[float]
    points: Sequence[Measures]

    def __contains__(self, name: object) -> bool:
        return all(name in m.values for m in self.points)

    def __getitem__(self, name: str) -> Array:
        """A measure as settings × seeds."""
        return np.stack([m[name] for m in self.points])

    @property
    def reach(self) -> tuple[float, float]:
        """Delays (s) that lie between its settings with every seed; the lower may be above the upper."""
        delay = self["delay"]
        return float(delay.min(axis=0).max()), float(delay.max(axis=0).min())

    def at(self, delays: Array, name: str) -> list[float]:
        """A measure's mean over `delays` (s), one a seed, each between the settings that enclose it.

        >>> def point(delay, kept):
        ...     return Measures((1, 2), {"delay": np.array(delay), "kept": np.array(kept)}, {})
        >>> f = Frontier((1, 2), (point([0.01, 0.01], [1.0, 0.5]), point([0.04, 0.01 * 2**4], [0.0, 0.1])))
        >>> [round(x, 9) for x in f.at(np.array([0.02]), "kept")]  # half and a quarter of the way
        [0.5, 0.4]

        Raises ValueError where it does not reach one of them.
        """
        low, high = self.reach
        if delays.min() < low * (1 - 1e-9) or delays.max() > high * (1 + 1e-9):
            raise ValueError(f"delays of {delays.min()} to {delays.max()} s are not inside {low} to {high} s")
        found = []
        for x, y in zip(self["delay"].T, self[name].T, strict=True):
            order = np.argsort(x, kind="stable")
            between = np.interp(np.log(delays), np.log(x[order]), y[order])
            # What differs in the last bits only is the same: schemes that meet every contract are equal.
            found.append(round(float(between.mean()), 12))
        return found


def common_delays(reach: Mapping[str, tuple[float, float]]) -> tuple[Array, list[str]]:
    """Choose the delays to compare at, and say which schemes reach them.

    Of all ranges, the one that most schemes reach, and of those the widest; none where no two share one.

    >>> delays, schemes = common_delays({"a": (1, 10), "b": (2, 20), "c": (30, 40)})
    >>> [round(float(d), 2) for d in delays], schemes
    ([2.0, 2.99, 4.47, 6.69, 10.0], ['a', 'b'])
    """
    lows, highs = {lo for lo, _ in reach.values()}, {hi for _, hi in reach.values()}
    best: tuple[int, float, float, float] | None = None
    for low, high in itertools.product(sorted(lows), sorted(highs)):
        if low <= 0 or high < low * NARROW:
            continue
        inside = sum(lo <= low and high <= hi for lo, hi in reach.values())
        if inside >= 2 and (best is None or (inside, high / low) > best[:2]):
            best = inside, high / low, low, high
    if best is None:
        return np.empty(0), []
    low, high = best[2:]
    delays = np.geomspace(low, high, MATCHED)
    return delays, [name for name, (lo, hi) in reach.items() if lo <= low and high <= hi]
