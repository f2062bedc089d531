"""Whether packets waited, and at which rate they were let go: a shaper, or a slower link with its queue.

With the capture before the limiter a queue shows in round-trip times, and acknowledgements come at the rate
at which it is served. Behind it packets come evenly spaced at that rate. A shaper's burst is what passes
before anything waits: a packet that finds D bytes missing from its bucket waits (D − burst) / rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .bucket import deficit
from .traffic import Traffic

Array = np.ndarray[Any, np.dtype[Any]]
_WINDOW = 24
"""Packets over which a rate is measured."""
_BUSY = 0.3
"""Of the greatest wait: from this share on a queue stood."""
_EVEN = 0.05
"""Rates of windows this close to one another are one rate."""
_BLOCKS = 12


@dataclass(frozen=True)
class Slope:
    """By how much delay grows for each second that a queue at the rate would add: 1 if there is one."""

    mean: float
    ci95: tuple[float, float]
    level: float
    """How long packets waited when most was missing from the bucket, over how long such a queue is."""
    samples: int


@dataclass(frozen=True)
class Queue:
    """A queue that is served at one rate."""

    rate: float
    """bit/s, from the IP header on."""
    rates: tuple[float, float]
    """A 95 % interval of the median over the windows."""
    burst: float | None
    """Bytes that pass before anything waits; None where it cannot be told."""
    bursts: tuple[float, float] | None
    longest: float | None
    """The longest wait, seconds; None where delays are not known."""
    even: float
    """The share of windows, while a queue stood, within 5 % of the rate."""
    windows: int


def waits_as(found: Traffic, rate: float) -> Slope | None:
    """How delay goes with the deficit at a rate (bit/s); None where there are no delays, or D hardly varies.

    Differences within stretches of time, so that a round trip that changes by itself does not count; the
    interval is a jackknife over the stretches.
    """
    rows = np.flatnonzero(np.isfinite(found.delay))
    if len(rows) < 40:
        return None
    wait = deficit(found.time, found.size, found.passed, rate / 8)[rows] / (rate / 8)
    delay = found.delay[rows]
    sums = []
    for block in np.array_split(np.arange(len(rows)), _BLOCKS):
        x, y = wait[block] - wait[block].mean(), delay[block] - delay[block].mean()
        sums.append((float((x * y).sum()), float((x * x).sum())))
    xy, xx = np.array(sums).T
    if xx.sum() <= len(rows) * 1e-10:
        return None
    mean = xy.sum() / xx.sum()
    without = (xy.sum() - xy) / np.maximum(xx.sum() - xx, 1e-30)
    half = 2.2 * float(np.sqrt((_BLOCKS - 1) / _BLOCKS * ((without - without.mean()) ** 2).sum()))
    top = wait > 0.8 * float(np.quantile(wait, 0.99))
    level = float(np.median(delay[top]) / np.median(wait[top]))
    return Slope(float(mean), (float(mean - half), float(mean + half)), level, len(rows))


def queue(found: Traffic) -> Queue | None:
    """The queue that packets waited in at one rate; None where there was none, or its rate varied."""
    return _by_delay(found) if found.side != "after" else _by_spacing(found)


def _by_delay(found: Traffic) -> Queue | None:
    rows = np.flatnonzero(np.isfinite(found.delay))
    if len(rows) < 4 * _WINDOW or not found.rtt:
        return None
    delay = found.delay[rows]
    top = float(np.quantile(delay, 0.99))
    if top < max(0.05 * found.rtt, 3 * float(np.quantile(delay, 0.02)), 1e-3):
        return None
    took = np.cumsum(np.where(found.passed, found.size, 0))[rows]
    leaves = found.time[rows] + delay
    # Windows throughout which a queue stood.
    low = np.lib.stride_tricks.sliding_window_view(delay, _WINDOW + 1).min(axis=1)
    span = leaves[_WINDOW:] - leaves[:-_WINDOW]
    amount = (took[_WINDOW:] - took[:-_WINDOW]).astype(float)
    busy = (low > _BUSY * top) & (span > 0)
    made = _one_rate(amount[busy] / span[busy], len(span))
    if made is None:
        return None
    rate, rates, even, windows = made
    missing = deficit(found.time, found.size, found.passed, rate / 8)[rows]
    standing = delay > _BUSY * top
    before = missing[standing] - delay[standing] * rate / 8
    burst, bursts = None, None
    # D goes back to the last time at which the bucket was full: where that is never, the burst is not told.
    if (missing[~standing] < 0.5 * np.median(missing[standing])).any():
        burst = max(0.0, float(np.median(before)))
        lo, hi = np.quantile(before, (0.1, 0.9))
        bursts = (max(0.0, float(lo)), max(0.0, float(hi)))
        # One burst, unless the deficit went astray.
        if bursts[1] - bursts[0] > max(0.5 * burst, 8.0 * found.mss):
            burst, bursts = None, None
    return Queue(rate, rates, burst, bursts, top, even, windows)


def _by_spacing(found: Traffic) -> Queue | None:
    passed = found.passed
    time, size = found.time[passed], found.size[passed].astype(float)
    if len(time) < 8 * _WINDOW:
        return None
    took = np.cumsum(size)
    span = time[_WINDOW:] - time[:-_WINDOW]
    amount = took[_WINDOW:] - took[:-_WINDOW]
    good = span > 0
    if not good.any():
        return None
    rates = amount[good] / span[good]
    # A queue lets nothing through faster: the greatest rates are all one.
    top = float(np.quantile(rates, 0.9))
    made = _one_rate(rates[rates > 0.8 * top], len(span))
    if made is None or (rates > 1.1 * made[0] / 8).mean() > 0.02:
        return None
    known = found.delay[np.isfinite(found.delay)]
    longest = float(np.quantile(known, 0.99)) if len(known) else None
    return Queue(made[0], made[1], None, None, longest, made[2], made[3])


def _one_rate(rates: Array, of: int) -> tuple[float, tuple[float, float], float, int] | None:
    """Median (bit/s) with its interval, the share near it and how many, if the rates are one."""
    if len(rates) < max(_WINDOW, 0.02 * of):
        return None
    middle = float(np.median(rates))
    even = float((np.abs(rates / middle - 1) < _EVEN).mean())
    if even < 0.7:
        return None
    near = rates[np.abs(rates / middle - 1) < _EVEN]
    # Windows overlap: as many are independent as there are without a packet in common.
    half = 2 * 1.2533 * float(near.std()) / max(1.0, len(near) / _WINDOW) ** 0.5
    half = max(half, 1e-4 * middle)
    return 8 * middle, (8 * (middle - half), 8 * (middle + half)), even, len(rates)
