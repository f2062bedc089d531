"""Round-trip times behind a policer: what is asked, and what each run has of it.

No path has one exact round-trip time, and a TCP connection by itself depends on it: a burst that is enough
at 20 ms may be too small at 20.5, as the window then meets the bucket at another moment. So a round-trip
time is a range here, a tenth to either side where one value is given, and each run has times of its own.

    >>> [str(one) for one in (of("20 ms"), of("20..80 ms"), of("20 ms").times(2))]
    ['18..22 ms', '20..80 ms', '36..44 ms']
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SPREAD = 0.1
"""To either side of one value that is given, as a share of it."""
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_LEAST, _MOST = 1e-6, 100.0
_GOLDEN = (math.sqrt(5) - 1) / 2
"""The fractions of its multiples fill 0..1 evenly, any number of them in a row."""


@dataclass(frozen=True)
class RoundTrips:
    """From `lo` to `hi`, in seconds."""

    lo: float
    hi: float

    @property
    def middle(self) -> float:
        """In seconds."""
        return (self.lo + self.hi) / 2

    def at(self, part: float) -> float:
        """The time at this part of the range, 0 to 1."""
        return self.lo + part * (self.hi - self.lo)

    @property
    def possible(self) -> bool:
        """Whether a network has such times."""
        return self.lo >= _LEAST and self.hi <= _MOST

    def times(self, factor: float) -> RoundTrips:
        """All of it so many times as long."""
        return RoundTrips(factor * self.lo, factor * self.hi)

    def __str__(self) -> str:
        """As an experiment file has it."""
        if self.lo == self.hi:
            return text(self.lo)
        return f"{1e3 * self.lo:.6g}..{text(self.hi)}"


def text(seconds: float) -> str:
    """One time as an experiment file has it."""
    return f"{1e3 * seconds:.6g} ms"


def of(asked: str) -> RoundTrips:
    """Read `20 ms` or `20..80 ms`; `20..20 ms` is that time exactly.

    Raises ValueError for what is no round-trip time.
    """
    low, between, high = asked.partition("..")
    try:
        hi, unit = _read(high if between else low, "")
        lo = _read(low, unit)[0] if between else hi
    except (KeyError, ValueError):
        raise ValueError(
            f'rtt {asked!r} is no round-trip time: write a number and its unit, such as "20 ms",'
            ' or a range, "20..80 ms"'
        ) from None
    if lo > hi:
        raise ValueError(f'rtt {asked!r}: write the smaller time first, such as "20..80 ms"')
    if not RoundTrips(lo, hi).possible:
        raise ValueError(f"rtt {asked!r}: give times from 1 us to 100 s")
    return RoundTrips(lo, hi) if between else RoundTrips((1 - SPREAD) * lo, (1 + SPREAD) * hi)


def _read(amount: str, unit: str) -> tuple[float, str]:
    """A time in seconds and its unit, which may stand at the range's end alone."""
    words = amount.split()
    unit = words[1] if len(words) == 2 else unit
    if len(words) not in (1, 2):
        raise ValueError
    return float(words[0]) * _SECONDS[unit], unit


def drawn(asked: Sequence[RoundTrips], flows: int, seed: int) -> list[float]:
    """The flows' times in seconds in the run with this seed: evenly over the range, and over the seeds."""
    if len(asked) == 1:
        part = seed * _GOLDEN % 1
        return [asked[0].at((flow + part) / flows) for flow in range(flows)]
    return [one.at((seed + flow) * _GOLDEN % 1) for flow, one in enumerate(asked)]
