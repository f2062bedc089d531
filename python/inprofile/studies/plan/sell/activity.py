"""When customers want what they bought: always, with a probability (by hour), or coming and going.

Customers come and go by themselves, so of N of them K want their rate at a time, and K has a binomial
distribution: also where on- and off-times alternate, whatever their distributions, with a = on / (on + off)
(the stationary state of a renewal process depends on the means alone). What K leaves of each contract is the
simulation's to say; `most` and `kept` are the estimate that the search begins with.
"""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ...._input import read_file
from ....metrics.quantity import in_seconds

HOURS = 24
PERIODS = ("exponential", "pareto", "fixed")
_SHAPE = 1.5
"""Of Pareto's distribution, as traffic of experiments has it."""
_MOST = 100_000
"""More contracts are not looked at."""


class ActivityError(ValueError):
    """An activity that cannot be read; the text says where, what, and what to write."""


@dataclass(frozen=True)
class Stay:
    """A customer who is there, from `start` to `stop` in seconds; None: from before the run, beyond it."""

    customer: int
    start: float | None = None
    stop: float | None = None

    def spans(self, begin: float, end: float) -> bool:
        """Whether the customer is there all of this time."""
        return (self.start is None or self.start <= begin) and (self.stop is None or self.stop >= end)


@dataclass(frozen=True)
class Activity:
    """How often customers want what they bought."""

    by_hour: tuple[float, ...] = (1.0,)
    """The share of customers who do, one for the day or one an hour."""
    on: float | None = None
    """Mean time in s that a customer stays; None: longer than a run lasts."""
    off: float | None = None
    """Mean time in s between."""
    periods: str = "exponential"
    """The distribution of both."""

    @property
    def busiest(self) -> float:
        """The share of the busiest hour: contracts are kept there, or not at all."""
        return max(self.by_hour)

    @property
    def always(self) -> bool:
        """Whether every customer sends all the time."""
        return self.busiest == 1.0 and self.on is None

    @classmethod
    def shares(cls, text: str) -> Activity:
        """Read `"20 %"`, 24 of these with commas between, or a CSV file with the columns hour and active.

        Raises ActivityError, OSError.
        """
        if text.endswith(".csv"):
            return cls(_of_file(Path(text)))
        found = tuple(share_of(part, f'--active "{text}"') for part in text.split(","))
        if len(found) not in (1, HOURS):
            raise ActivityError(
                f'--active "{text}": {len(found)} shares: write one, or {HOURS}, for the hours 0 to 23'
            )
        return _at_least_somebody(found, f'--active "{text}"')

    @classmethod
    def stays(cls, on: str, off: str, periods: str = "exponential") -> Activity:
        """Customers who stay for a time and leave for a time: `"60 s"`, `"240 s"` on average.

        Raises ActivityError.
        """
        if periods not in PERIODS:
            raise ActivityError(f'--periods "{periods}": write {", ".join(PERIODS[:-1])} or {PERIODS[-1]}')
        times = []
        for name, text in (("on", on), ("off", off)):
            try:
                seconds = in_seconds(text)
            except (KeyError, ValueError):
                seconds = 0.0
            if not 0 < seconds <= 1e6:
                raise ActivityError(
                    f'--{name} "{text}": this is no time: write a number and its unit, "60 s"'
                )
            times.append(seconds)
        return cls((times[0] / sum(times),), times[0], times[1], periods)

    def draw(self, customers: int, seed: int, group: str, end: float) -> Iterator[Stay]:
        """Who is there in the run with this seed, until `end`; customer i the same however many there are."""
        for customer in range(customers):
            chance = random.Random(f"{seed} {group} {customer}")  # noqa: S311 - what is drawn is no secret
            there = chance.random() < self.busiest
            if self.on is None or self.off is None:
                if there:
                    yield Stay(customer)
                continue
            time, start = self._rest(self.on if there else self.off, chance), None
            while True:
                if there:
                    yield Stay(customer, start, time if time < end else None)
                if time >= end:
                    break
                there, start = not there, time
                time += self._period(self.on if there else self.off, chance)

    def _period(self, mean: float, chance: random.Random) -> float:
        """A time that begins."""
        if self.periods == "fixed":
            return mean
        if self.periods == "exponential":
            return chance.expovariate(1 / mean)
        return mean * (_SHAPE - 1) / _SHAPE * chance.paretovariate(_SHAPE)

    def _rest(self, mean: float, chance: random.Random) -> float:
        """What is left of a time at the begin of a run, which is likelier to meet a long one."""
        if self.periods == "fixed":
            return mean * chance.random()
        if self.periods == "exponential":
            return chance.expovariate(1 / mean)
        least = (_SHAPE - 1) / _SHAPE
        if chance.random() < least:
            return mean * least * chance.random()
        # Beyond the least time the rest's distribution is Pareto's with a shape of one less.
        return mean * least * chance.paretovariate(_SHAPE - 1)

    def most(self, capacity: int, share: float) -> int:
        """The most customers of whom as many as have `capacity` at a time keep this share of the contracts.

        Where more than `capacity` want their rates at a time, nobody counts as served: by a customer who is
        there, of the n − 1 others at most capacity − 1 are. P(Bin(n − 1, a) ≤ capacity − 1) ≥ share.
        """
        from scipy.special import bdtr

        if self.busiest == 1.0:
            return capacity
        return _greatest(capacity, lambda n: n == 0 or bool(bdtr(capacity - 1, n - 1, self.busiest) >= share))

    def stay_through(self, window: float) -> float:
        """The share of customers who are there throughout a window of so many seconds."""
        if self.on is None:
            return self.busiest
        part = window / self.on
        if self.periods == "fixed":
            left = max(0.0, 1 - part)
        elif self.periods == "exponential":
            left = math.exp(-part)
        else:
            least = (_SHAPE - 1) / _SHAPE
            left = 1 - part if part <= least else (1 - least) * (least / part) ** (_SHAPE - 1)
        return self.busiest * left

    def crowd(self, sold: int, window: float) -> int:
        """The most of so many who are there throughout a window, but for one time in a million."""
        from scipy.stats import binom

        share = self.stay_through(window)
        return sold if share == 1.0 else max(1, int(binom.ppf(1 - 1e-6, sold, share)))

    def kept(self, sold: int, of: Callable[[int], float], share: float | None = None) -> float:
        """The share of wanted contracts that is kept where `of` says which share K customers at a time keep.

        Each of K customers counts: Σ P(K) K of(K) / Σ P(K) K. `share` is the activity, the busiest hour's by
        default.
        """
        from scipy.stats import binom

        active = self.busiest if share is None else share
        if active == 1.0 or sold == 0:
            return of(sold)
        counts = range(1, sold + 1)
        weights = binom.pmf(counts, sold, active) * counts
        return float(sum(w * of(k) for k, w in zip(counts, weights, strict=True) if w > 1e-12)) / float(
            weights.sum()
        )


def _greatest(least: int, holds: Callable[[int], bool]) -> int:
    """The greatest n from `least` on for which it holds, where it holds up to some n and no further."""
    low, high = least, max(1, 2 * least)
    while holds(high) and high < _MOST:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def share_of(text: str, where: str) -> float:
    """`20 %` or `0.2`."""
    plain = text.strip()
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)", plain)
    # Decimal: a hundredth of 12.3 is 0.123.
    value = -1.0 if number is None else float(Decimal(number[1]) / (100 if number[2] else 1))
    if not 0 <= value <= 1:
        raise ActivityError(f'{where}: "{plain}" is no share: write one from 0 to 100 %, such as "20 %"')
    return value


def _at_least_somebody(shares: tuple[float, ...], where: str) -> Activity:
    if max(shares) == 0:
        raise ActivityError(f"{where}: nobody is ever there: write a share above 0 %")
    return Activity(shares)


def _of_file(path: Path) -> tuple[float, ...]:
    """The shares of 24 hours, in any order."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ActivityError(f"{path}: this is not UTF-8 text: save it as UTF-8") from None
    rows = csv.reader(io.StringIO(text))
    if next(rows, None) != ["hour", "active"]:
        raise ActivityError(f"{path}:1: the first line is not the columns: write hour,active")
    found: dict[int, float] = {}
    for row in rows:
        where = f"{path}:{rows.line_num}"
        if not row:
            continue
        if len(row) != 2 or not re.fullmatch(r"\s*(0?[0-9]|1[0-9]|2[0-3])\s*", row[0], re.ASCII):
            raise ActivityError(
                f'{where}: "{",".join(row)}": write an hour from 0 to 23 and a share: 20,35 %'
            )
        if (hour := int(row[0])) in found:
            raise ActivityError(f"{where}: hour {hour} is there twice: write each hour once")
        found[hour] = share_of(row[1], where)
    if missing := [str(hour) for hour in range(HOURS) if hour not in found]:
        raise ActivityError(
            f"{path}: hour {', '.join(missing)} is missing: write a line for each hour, 0 to 23"
        )
    return _at_least_somebody(tuple(found[hour] for hour in range(HOURS)), str(path)).by_hour
