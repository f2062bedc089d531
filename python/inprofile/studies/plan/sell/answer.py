"""How many contracts may be sold: looked for with an estimate, and shown by packets on fresh seeds.

The share of the contracts that is kept, of those that are wanted at a time, is what each customer sees:
whether his contract is kept while he is there. First it is simulated how many customers can be served who
all send (`Room`); from that and the binomial distribution of how many are there, `Activity.kept` estimates
what any number of contracts gives. The estimate only says where to look: the answer is a number of which
runs of the customers themselves, coming and going, on seeds that nothing else has used, show with 95 %
confidence that the share is reached. Up to three numbers are tested, each at a third of 5 %. That a number
misses the share is shown the same way, at 5 % by all numbers that are run. Only contracts of the groups that
are sold count; what becomes of the others' is told beside.

Whether runs show that a share is kept: a bound that holds for any number of runs, whenever one stops. A
gambler who doubts that the share is above m bets on each run's kept − m · wanted, which has a mean of at
most 0 if she is right not to: then her capital grows by any factor 1/δ, ever, with a probability of at most
δ (Ville 1939). So runs may be made until it has; m is shown once it has. She divides her capital among bets
of several sizes, half of it on the largest, under which runs that keep everything show a share about as
soon as Clopper's and Pearson's bound (Waudby-Smith and Ramdas 2024, §4, have such bounds for means). That
the share is below m is shown by who bets on m · wanted − kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ....metrics.stats import Interval
from ....run.pool import Backend, Local
from ..search import CANDIDATES, LEVEL
from ..store import Bench, RunFigures
from .activity import Activity
from .market import Market, MarketError

#: Sizes of bets, as parts of the largest, and how the first capital is divided.
_SIZES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)
_CAPITAL = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
#: The same against a share. A run that keeps everything would take the whole of a bet of size 1.
_AGAINST = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
_RUNS = 50_000


def _capital(won: NDArray[np.float64], sizes: Sequence[float], capital: Sequence[float]) -> float:
    """The logarithm of the greatest capital on the way, of runs of which none loses more than 1."""
    with np.errstate(divide="ignore"):
        paths = [
            np.log(c) + np.log1p(np.maximum(-1.0, size * won)).cumsum()
            for size, c in zip(sizes, capital, strict=True)
        ]
    return float(np.logaddexp.reduce(np.array(paths), axis=0).max(initial=0.0))


def shows(kept: Sequence[int], wanted: Sequence[int], most: int, share: float, level: float) -> bool:
    """Whether runs show the share, wrong with a probability of `level` at most.

    >>> shows([10] * 480, [10] * 480, 10, 0.99, 0.05 / 3), shows([10] * 300, [10] * 300, 10, 0.99, 0.05 / 3)
    (True, False)
    """
    won = _beyond(kept, wanted, share) / (share * most)
    return _capital(won, _SIZES, _CAPITAL) >= -float(np.log(level))


def misses(kept: Sequence[int], wanted: Sequence[int], most: int, share: float, level: float) -> bool:
    """Whether runs show that the share is missed, wrong with a probability of `level` at most.

    >>> misses([9] * 40, [10] * 40, 10, 0.99, 0.05 / 3), misses([9, 10] * 5, [10] * 10, 10, 0.9, 0.05 / 3)
    (True, False)
    """
    won = -_beyond(kept, wanted, share) / ((1 - share) * most)
    return _capital(won, _AGAINST, [1 / len(_AGAINST)] * len(_AGAINST)) >= -float(np.log(level))


def _beyond(kept: Sequence[int], wanted: Sequence[int], share: float) -> NDArray[np.float64]:
    return np.asarray(kept, float) - share * np.asarray(wanted, float)


def lower_bound(kept: Sequence[int], wanted: Sequence[int], most: int, level: float) -> float:
    """The greatest share that is shown, to four digits."""
    low, high = 0.0, 1.0
    while high - low > 5e-5:
        middle = (low + high) / 2
        low, high = (middle, high) if shows(kept, wanted, most, middle, level) else (low, middle)
    return low


def enough(share: float, level: float) -> int:
    """How many runs that keep all contracts show the share.

    >>> enough(0.99, 0.05 / 3), enough(0.95, 0.05 / 3)
    (477, 94)
    """
    step = -np.log(share)
    return min(_RUNS, int(np.ceil((-np.log(level) - np.log(_CAPITAL[0])) / step)))


SEEDS = range(1, 41)
"""Of a point of the curves."""
_FRESH = 2_000_001
_STEPS = (0.5, 0.7, 0.85, 0.95, 1.0, 1.05, 1.15, 1.3, 1.5, 2.0)
"""Numbers that the curve has, beside the one that the estimate says."""
_AIM = 0.4
"""Of what may be missed, the part that the estimate of the first number that is tested misses."""
_LESS = 0.96
"""The next number, where one is not shown."""
_LOOK = 200
"""Runs of a test before it is first looked at."""
_LONGEST = 10
"""A test ends after so many times the runs that show the share where all of them keep everything."""


_NUMBERS = CANDIDATES + len(_STEPS) + 2
"""So many are run at most of which one may be shown to miss the share."""


@dataclass(frozen=True)
class Point:
    """A number of contracts sold, and what runs have of it."""

    sold: int
    wanted: tuple[int, ...]
    """Contracts wanted throughout the window, by seed."""
    kept: tuple[int, ...]
    """How many of these were kept, by seed."""
    delay: float
    """Mean queueing delay in s."""
    best_effort: float
    """bit/s; NaN where every flow has a contract, or customers come and go."""
    others: float = math.nan
    """The share that was kept of the contracts of groups that are not sold; NaN where there are none."""

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.wanted)

    @property
    def share(self) -> float:
        """The share that was kept of the contracts wanted at a time; 1 where none was."""
        return sum(self.kept) / sum(self.wanted) if sum(self.wanted) else 1.0

    @property
    def whole(self) -> int:
        """Runs in which every contract was kept."""
        return sum(k == w for k, w in zip(self.kept, self.wanted, strict=True))

    @property
    def interval(self) -> Interval:
        """95 % interval of the share: Student's over the runs, exact where all of them kept all, or none."""
        from scipy.special import stdtrit

        share, n = self.share, self.runs
        wanted, kept = np.array(self.wanted, float), np.array(self.kept, float)
        if n < 2 or share in (0.0, 1.0):
            return share_bounds(share, n, 0.025)
        # A ratio of two means: its deviations are those of what was kept from the share of what was wanted.
        sd = float((kept - share * wanted).std(ddof=1) / wanted.mean())
        half = float(stdtrit(n - 1, 0.975)) * sd / math.sqrt(n)
        return Interval(max(0.0, share - half), min(1.0, share + half))

    def lower(self, most: int) -> float:
        """Lower bound of the share where at most so many are there at a time, as the test has it."""
        return lower_bound(self.kept, self.wanted, most, LEVEL / CANDIDATES)

    def shows(self, share: float, most: int) -> bool:
        """Whether these runs show a share, wrong with a probability of a third of 5 % at most."""
        return shows(self.kept, self.wanted, most, share, LEVEL / CANDIDATES)

    def misses(self, share: float, most: int) -> bool:
        """Whether these runs show that a share is missed, 5 % wrong at most by all numbers that are run."""
        return misses(self.kept, self.wanted, most, share, LEVEL / _NUMBERS)


@dataclass(frozen=True)
class Room:
    """How many customers can be served who all send: the share of the contracts that so many keep."""

    points: tuple[Point, ...]

    def of(self, customers: int) -> float:
        """Between the numbers that were run in proportion; nothing is kept beyond them."""
        at = [p.sold for p in self.points]
        return float(np.interp(customers, [0, *at], [1.0, *(p.share for p in self.points)], right=0.0))


@dataclass(frozen=True)
class Answer:
    """How many contracts may be sold."""

    market: Market
    activity: Activity
    margin: float
    """The share by which demand may be above what is assumed."""
    room: Room
    curve: tuple[Point, ...]
    """What is kept of so many contracts sold, each with `SEEDS`."""
    tested: tuple[Point, ...]
    """On fresh seeds, in the order of the tests."""
    runs: int

    @property
    def shown(self) -> Point | None:
        """The largest number of which fresh runs show that the share is kept; None where none does."""
        return next((p for p in self.tested if p.shows(self.market.kept, self.crowd(p))), None)

    def crowd(self, point: Point) -> int:
        """The most contracts that count at a time of a point."""
        return self.activity.crowd(point.sold, self.market.window)

    @property
    def missed(self) -> int | None:
        """The least number above the one shown of which runs show that it misses the share; None: none."""
        shown, share = 0 if self.shown is None else self.shown.sold, self.market.kept
        points = (p for p in (*self.curve, *self.tested) if p.sold > shown)
        return min((p.sold for p in points if p.misses(share, self.crowd(p))), default=None)

    @property
    def sell(self) -> int:
        """The number that leaves the margin."""
        # As decimals: 33 / (1 + 0.1) in binary is a little less than 30.
        return 0 if self.shown is None else int(self.shown.sold / (1 + Fraction(str(self.margin))))

    def estimated(self, sold: int, share: float | None = None) -> float:
        """What the estimate says of so many, in the busiest hour or with this share of customers there."""
        return self.activity.kept(sold, self.room.of, share)


def share_bounds(share: float, runs: int, level: float) -> Interval:
    """Bounds of a mean of values from 0 to 1, one a run, each wrong with this probability.

    Of all such values those that are 0 or 1 vary most, and for those Clopper's and Pearson's bounds are
    exact. Where runs keep a part of their contracts, they are too wide rather than too narrow.

    >>> lo, hi = share_bounds(1.0, 300, 0.025)
    >>> round(lo, 4), hi
    (0.9878, 1.0)
    """
    from scipy.special import betaincinv

    good = share * runs
    bad = runs - good
    lo = 0.0 if good <= 0 else float(betaincinv(good, bad + 1, level))
    hi = 1.0 if bad <= 1e-9 else float(betaincinv(good + 1, bad, 1 - level))
    return Interval(lo, hi)


def expected_runs(market: Market, activity: Activity) -> int:
    """About how many runs an answer takes."""
    curves = len(_STEPS) * (1 if activity.always else 2)
    return len(SEEDS) * curves + 2 * enough(market.kept, LEVEL / CANDIDATES) + 60


def sell(
    market: Market,
    activity: Activity | None = None,
    *,
    margin: float = 0.1,
    jobs: int | None = None,
    place: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    count: Callable[[int], None] | None = None,
    backend: Backend | None = None,
) -> Answer:
    """Find how many contracts may be sold; by default to customers who always send.

    Runs are kept in the folder `place`, and the same question goes on from there. `jobs` is the number of
    threads, `backend` makes the runs elsewhere; neither changes the answer.

    Raises MarketError for what cannot be sold so, FolderInUse where `place` has something else.
    """
    who = activity or Activity()
    if who.on is not None and (other := next((g for g in market.groups if g.traffic != "bulk"), None)):
        raise MarketError(
            f"{market.scenario.file}: the customers of {other.name} have {other.traffic} traffic, and"
            " --on and --off are for bulk TCP: write --active with the share of them that is there"
        )
    tell = progress or (lambda _: None)
    where = backend or Local(jobs)
    folder = None if place is None else Path(place)
    bench = Bench(market.scenario, folder, where, count or (lambda _: None), [g.name for g in market.groups])
    try:
        found = _found(Stall(market, who, bench), margin, tell)
        bench.finish()
        return replace(found, runs=bench.made + bench.kept_before)
    finally:
        bench.close()


@dataclass(frozen=True)
class Stall:
    """Where numbers of contracts are tried."""

    market: Market
    activity: Activity
    bench: Bench

    def run(self, sold: Sequence[int], seeds: Sequence[int], activity: Activity | None = None) -> list[Point]:
        """So many contracts each, with these seeds."""
        who = activity or self.activity
        if who.always:
            made = [[(*self.market.experiment(n, who, 0), list(seeds))] for n in sold]
        else:
            made = [[(*self.market.experiment(n, who, seed), [seed]) for seed in seeds] for n in sold]
        asked = [one for of_one in made for one in of_one if one[1] > 0]
        figures = iter(self.bench.run([(scenario, which) for scenario, _, which in asked]))
        points = []
        for n, of_one in zip(sold, made, strict=True):
            wanted: list[int] = []
            kept: list[int] = []
            seen: list[RunFigures] = []
            for _, contracts, which in of_one:
                wanted += [contracts] * len(which)
                if contracts == 0:
                    kept += [0] * len(which)
                    continue
                seen.append(next(figures))
                kept += [round(share * contracts) for share in seen[-1]["contracts_kept"].tolist()]
            points.append(
                Point(
                    n,
                    tuple(wanted),
                    tuple(kept),
                    *(_mean(seen, name) for name in ("delay_mean", "best_effort", "others_kept")),
                )
            )
        return points


def _mean(seen: Sequence[RunFigures], name: str) -> float:
    values = np.concatenate([figures[name] for figures in seen]) if seen else np.array([])
    return float(values.mean()) if values.size else float("nan")


def _found(stall: Stall, margin: float, tell: Callable[[str], None]) -> Answer:
    market, who = stall.market, stall.activity
    tell("how many customers can be served who all send")
    room = _room(stall)
    # A part of what may be missed is left to what the estimate does not know.
    aim = 1 - _AIM * (1 - market.kept)
    first = _most(lambda n: who.kept(n, room.of) >= aim, max(1, room.points[-1].sold))
    answer = Answer(market, who, margin, room, (), (), 0)
    tell(f"the curve around {first} contracts")
    numbers = sorted({max(1, round(step * max(1, first))) for step in _STEPS})
    curve = room.points if who.always else tuple(stall.run(numbers, SEEDS))
    answer = replace(answer, curve=curve)
    tested: list[Point] = []
    sold = first
    while sold >= 1 and len(tested) < CANDIDATES:
        tell(f"{sold} contracts on fresh seeds")
        tested.append(_test(stall, sold, len(tested)))
        answer = replace(answer, tested=tuple(tested))
        if answer.shown is not None:
            break
        sold = min(sold - 1, round(_LESS * sold))
    return answer


def _test(stall: Stall, sold: int, number: int) -> Point:
    """So many contracts on fresh seeds, until the share is shown, shown to be missed, or not shown soon."""
    start, kept = _FRESH + 100_000 * number, stall.market.kept
    most, runs = stall.activity.crowd(sold, stall.market.window), enough(kept, LEVEL / CANDIDATES)
    step = max(_LOOK, runs // 2)
    for end in range(step, _LONGEST * runs + step, step):
        (point,) = stall.run([sold], range(start, start + end))
        if point.shows(kept, most) or point.misses(kept, most):
            break
    return point


def _room(stall: Stall) -> Room:
    """Numbers of customers who all send, from all of whom are served to none of whom can be."""
    market, always = stall.market, Activity()
    first_look = SEEDS[:8]

    def served(n: int) -> bool:
        (point,) = stall.run([n], first_look, always)
        return point.whole == point.runs

    most = _most(served, max(1, market.at_most), tries=12)
    numbers = sorted({max(1, round(step * max(1, most))) for step in _STEPS} | {most + 1, most + 2})
    return Room(tuple(stall.run(numbers, SEEDS, always)))


def _most(holds: Callable[[int], bool], guess: int, tries: int = 40) -> int:
    """The greatest n for which it holds, where it holds up to some n: 0 where it holds for none."""
    low, high = 0, guess
    while high < 100_000 and tries > 0 and holds(high):
        low, high, tries = high, 2 * high, tries - 1
    while high - low > 1 and tries > 0:
        middle = (low + high) // 2
        low, high, tries = (middle, high, tries - 1) if holds(middle) else (low, middle, tries - 1)
    return low
