"""The token bucket that agrees best with what passed and what was dropped.

Fill the bucket at rate r and let what passed take its tokens. What is missing from a full bucket just
before a packet comes, D, is a queue of what passed that is served at r, however deep the bucket is. A packet
of s bytes passes a policer of burst b if and only if D + s ≤ b. So for each rate the packets that passed
bound the burst from below, and those that were dropped from above; the rate and burst are those that break
the fewest of these bounds. Where it is known only between which moments one was dropped, it found the bucket
no fuller than at the emptiest of them.

Flach et al. (SIGCOMM 2016, §3) ask at the rate between the first and the last loss whether the bucket was
about empty at losses and was not at other packets. Here rate and burst are found together, so that a bucket
that fills up between losses does not lower the rate, and both come with the set of values that agree.

A drop-tail queue of rate r and limit b decides alike. It differs in delay: see `verdict`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .traffic import Traffic

Array = np.ndarray[Any, np.dtype[Any]]
_NEAR = 0.1
_GUESSED, _GAPS = 0.2, 6
_TRAIN = 2
_GRID = 120
_FAR, _FAR_GRID = 300.0, 60
"""Times the mean rate that a policer's may be: TCP gets a fraction of the rate where the burst is small."""
_CANDIDATES = 160
_ZOOMS = (3e-2, 3e-3, 3e-4, 3e-5)
_STEPS = 41
_WIDEST = 7.0
"""How far rates are looked at from the best, as a logarithm: a factor of 1,100."""
_MOST = 60_000
"""Packets that the search looks at; the rest is used once it has a rate."""


@dataclass(frozen=True)
class Fit:
    """A bucket, and how well it agrees."""

    rate: float
    """bit/s, from the IP header on."""
    burst: float
    """Bytes."""
    rates: tuple[float, float]
    """Rates that agree as well."""
    bursts: tuple[float, float]
    broken: int
    """Bounds that it breaks."""
    passed: int
    dropped: int
    consistency: float
    """1: it explains every packet; 0: no better than a bucket that drops nothing or everything."""
    tolerant: float
    """The same, where a packet or a tenth of the burst either way is not counted as broken."""
    episodes: int
    """Times that drops began, a round trip or more after those before."""
    gain: float
    """How much likelier the losses are with the bucket than at random, in nats; an episode counts once."""


def deficit(time: Array, size: Array, passed: Array, rate: float) -> Array:
    """D, bytes missing from a full bucket before each packet; `rate` in bytes a second."""
    took = np.cumsum(np.where(passed, size, 0))
    before = rate * time - np.concatenate([[0], took[:-1]])
    return np.asarray(np.maximum.accumulate(before) - before)


def _broken(needs: Array, dropped: Array, least: float) -> tuple[int, float, float]:
    """The fewest bounds that a burst of `least` or more breaks, and between which values it lies.

    A burst of b breaks those that passed and needed more, and those that were dropped and needed no more.
    """
    order = np.argsort(needs, kind="stable")
    sorted_needs, lost = needs[order], dropped[order]
    # Dropped among the first k, and passed among the rest.
    below = np.concatenate([[0], np.cumsum(lost)])
    above = np.concatenate([[0], np.cumsum(~lost)])
    cost = below + (above[-1] - above)
    # Between equal needs no burst lies.
    apart = np.concatenate([[True], np.diff(sorted_needs) > 0, [True]])
    high_enough = np.concatenate([sorted_needs, [np.inf]]) > least
    cost = np.where(apart & high_enough, cost, len(needs) + 1)
    best = int(cost.argmin())
    low = float(sorted_needs[best - 1]) if best else 0.0
    high = float(sorted_needs[best]) if best < len(needs) else low
    return int(cost[best]), low, high


class _Search:
    """The packets whose fate is known, and the cost of a rate."""

    def __init__(self, found: Traffic, most: int, least: float, ceiling: float) -> None:
        self.time, self.size = found.time[:most], found.size[:most].astype(np.float64)
        self.least, self.ceiling = least, ceiling
        self.passed, self.dropped = found.passed[:most], found.dropped[:most]
        self.known = found.fate[:most] != -1
        # What passed from the one before the drop on until it must have come.
        self.loose = np.flatnonzero(self.dropped & (found.until[:most] > self.time))
        from_ = np.maximum(0, np.cumsum(self.passed)[self.loose] - 1)
        to = np.searchsorted(self.time[self.passed], found.until[self.loose], side="left")
        self.spans = np.column_stack([from_, np.maximum(to, from_ + 1)]).ravel()

    def needs(self, rate: float) -> Array:
        needs = deficit(self.time, self.size, self.passed, rate) + self.size
        if len(self.loose):
            after = np.concatenate([needs[self.passed], [-np.inf]])
            needs[self.loose] = np.maximum.reduceat(after, self.spans)[::2] + self.size[self.loose]
        return needs

    def cost(self, rate: float) -> tuple[int, float, float]:
        if rate > self.ceiling:
            return len(self.time), self.least, self.least
        return _broken(self.needs(rate)[self.known], self.dropped[self.known], self.least)

    def far(self, rate: float) -> int:
        """Bounds that are broken by more than two packets, or a tenth of the burst."""
        cost, low, high = self.cost(rate)
        if rate > self.ceiling:
            return cost
        needs, burst = self.needs(rate), (low + high) / 2
        room = max(2 * float(self.size.max()), _NEAR * burst)
        wrong = (self.dropped & (needs <= burst - room)) | (self.passed & (needs > burst + room))
        return int((wrong & self.known).sum())

    def best(self, rates: Array) -> tuple[int, float]:
        costs = np.array([self.cost(float(rate))[0] for rate in rates])
        least = costs.min()
        # Of a plateau its middle.
        near = np.flatnonzero(costs == least)
        runs = np.split(near, np.flatnonzero(np.diff(near) > 1) + 1)
        middle = max(runs, key=len)
        return int(least), float(rates[middle[len(middle) // 2]])


def _candidates(time: Array, size: Array, passed: Array, dropped: Array) -> Array:
    """Rates from one drop to another: between two moments at which it was empty, what came in also passed."""
    rows = np.flatnonzero(dropped)
    took = np.cumsum(np.where(passed, size, 0))
    starts = rows[np.concatenate([[True], np.diff(time[rows]) > 0])]
    found = []
    step = 1
    while step < len(starts):
        span = time[starts[step:]] - time[starts[:-step]]
        amount = took[starts[step:]] - took[starts[:-step]]
        sane = (span > 0) & (amount > 3000)
        found.append(amount[sane] / span[sane])
        step *= 2
    span = time[starts[-1]] - time[starts[0]]
    if span > 0:
        found.append(np.array([(took[starts[-1]] - took[starts[0]]) / span]))
    rates = np.concatenate(found) if found else np.empty(0)
    if len(rates) > _CANDIDATES:
        rates = np.quantile(rates, np.linspace(0, 1, _CANDIDATES))
    return rates


def fit(found: Traffic) -> Fit | None:
    """The bucket that agrees best; None where nothing was dropped, or nothing passed."""
    if not found.dropped.any() or found.dropped.all():
        return None
    # Behind the limiter a drop may have followed what passed before it: a bucket of a packet at the
    # rate of the link would explain any loss.
    least, ceiling = 0.0, np.inf
    if found.side == "after":
        size = found.size.astype(np.float64)
        least, ceiling = 2.5 * float(size.max()), 0.9 * _fastest(found.time[found.passed], size[found.passed])
    whole = _Search(found, len(found.time), least, ceiling)
    search = _Search(found, _MOST, least, ceiling)
    if not search.dropped.any():
        search = whole
    seconds = max(1e-6, float(found.time[-1] - found.time[0]))
    mean = float(whole.size[whole.passed].sum()) / seconds
    first = _candidates(search.time, search.size, search.passed, search.dropped)
    top = max(4 * mean, float(first.max(initial=0)) * 1.2)
    far = np.geomspace(top, max(_FAR * mean, top), _FAR_GRID)
    rates = np.sort(np.concatenate([first, np.geomspace(0.5 * mean, top, _GRID), far]))
    starts = [search.best(rates)]
    if found.side == "after":
        # Where drops are placed by a guess, that of a link may contradict as few packets, but by more.
        wide = np.array([search.far(float(rate)) for rate in rates])
        close = float(rates[wide.argmin()])
        starts.append((search.cost(close)[0], close))
    fits = [_judged(whole, _zoomed(search, whole, *start), found.rtt) for start in starts]
    return max(fits, key=lambda one: (round(one.tolerant, 2), one.consistency))


def _zoomed(search: _Search, whole: _Search, cost: int, rate: float) -> float:
    """The best rate near this one."""
    for width in _ZOOMS:
        around = rate * (1 + width * np.linspace(-1, 1, _STEPS))
        better, where = whole.best(around) if width == _ZOOMS[-1] else search.best(around)
        if better <= cost or width == _ZOOMS[-1]:
            cost, rate = better, where
    return rate


def _fastest(time: Array, size: Array) -> float:
    """Bytes a second at which packets came when they came fastest, over a train of them."""
    if len(time) <= _TRAIN:
        return np.inf
    span = time[_TRAIN:] - time[:-_TRAIN]
    took = np.cumsum(size)
    return float(np.quantile((took[_TRAIN:] - took[:-_TRAIN]) / np.maximum(span, 1e-9), 0.999))


def _judged(search: _Search, rate: float, rtt: float | None) -> Fit:
    cost = search.cost(rate)[0]
    (low, high), _ = _agreeing(search, rate, cost)
    rate = (low + high) / 2
    cost, least, most = search.cost(rate)
    needs = search.needs(rate)
    passed, dropped = search.passed & search.known, search.dropped
    count = int(min(passed.sum(), dropped.sum()))
    packet = float(np.median(search.size[dropped]))
    # Behind the limiter it is a guess when a drop came: more may be contradicted by it.
    share, gaps = (_GUESSED, _GAPS) if search.least else (0.02, 2)
    rates, bursts = _agreeing(search, rate, cost + max(2, round(share * count)), gaps)
    burst = (least + most) / 2 if most > least else least
    near = max(packet, _NEAR * burst)
    far = (dropped & (needs <= burst - near)) | (passed & (needs > burst + near))
    rows = search.time[dropped]
    apart = max(rtt or 0.0, 0.01)
    episodes = 1 + int((np.diff(rows) > apart).sum())
    return Fit(
        8 * rate,
        burst,
        (8 * rates[0], 8 * rates[1]),
        bursts,
        cost,
        int(passed.sum()),
        int(dropped.sum()),
        1 - cost / max(1, count),
        1 - int(far.sum()) / max(1, count),
        episodes,
        _gain(cost, int(passed.sum()), int(dropped.sum())) * episodes / max(1, int(dropped.sum())),
    )


def _gain(broken: int, passed: int, dropped: int) -> float:
    """Log-likelihood of all fates by a bucket that errs in so many, less that by the share of losses."""
    packets = passed + dropped

    def entropy(count: int) -> float:
        p = min(max(count / packets, 1e-12), 1 - 1e-12)
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    return packets * (entropy(dropped) - entropy(min(broken, packets // 2)))


def _agreeing(
    search: _Search, rate: float, most: int, gaps: int = 0
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Rates around this one, and bursts, that break no more bounds than `most`.

    Beyond rates that break more there may be others that do not: they are looked for `gaps` steps further.
    """
    ends = []
    bursts = [search.cost(rate)[1:]]
    for sign in (-1, 1):
        good, step, missed = 0.0, 1e-6, 0
        bad = step
        while step < _WIDEST and missed <= gaps:
            cost, low, high = search.cost(rate * math.exp(sign * step))
            if cost <= most:
                good, missed = step, 0
                bursts.append((low, high))
            else:
                bad = bad if missed else step
                missed += 1
            step *= 1.25 if missed else 2
        bad = max(bad, good)
        for _ in range(8):
            middle = (good + bad) / 2
            cost, low, high = search.cost(rate * math.exp(sign * middle))
            if cost > most:
                bad = middle
            else:
                good = middle
                bursts.append((low, high))
        ends.append(rate * math.exp(sign * good))
    return (ends[0], ends[1]), (min(b[0] for b in bursts), max(b[1] for b in bursts))
