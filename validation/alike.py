"""Laws with chance in them: Linux's one run against many of ours over the same arrivals."""

from __future__ import annotations

import math
import random
import statistics
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

import replayed
from replayed import Arrivals
from scipy.stats import chi2
from uml import Seen

from inprofile.studies.validate.distribution import same_distribution

SEEDS = 100
"""Runs of ours."""

FAR = 3.29
"""Standard deviations beyond which one in a thousand lies, if they are normal. Not all are: so no run of ours
may lie there either."""

CLOSE = 10.0
"""Bytes within which an average is not told from a threshold: Linux's is in whole numbers."""

SLOW = 6
"""A w_q of 2 to the power of minus this and less: an average that stamps are good enough for."""

LOW = 0.001
"""A p as small is not chance's, if gaps are independent. Those of one run are not quite: so no run of ours
may have so small a p among the others either."""


@dataclass(frozen=True)
class Figures:
    """The figures of a run that are compared."""

    drops: int
    """Marks included."""
    sojourn: float
    """Mean over the packets that left, in milliseconds."""
    gaps: tuple[int, ...]
    """Packets let by between two drops or marks, by number."""
    by_flow: dict[int, int]
    """Packets that left, by flow."""


@dataclass(frozen=True)
class Alike:
    """Linux's run among those of one reading of ours."""

    reading: str
    drops: float
    """Ours, mean."""
    drops_z: float
    """How many standard deviations of a run of ours Linux's lies off."""
    sojourn: float
    sojourn_z: float
    gaps_p: float
    """Kolmogorov-Smirnov: that the gaps of both are distributed alike."""
    flows_z: float
    """The largest of the flows' packets that left; 0 with one flow."""
    differs: tuple[str, ...]
    """The figures that are far off, and farther than in any run of ours."""

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return not self.differs


def figures(seen: Seen, came: Arrivals, left: dict[int, float], marked: set[int]) -> Figures:
    """Of a run, given when packets left."""
    gaps, since = [], 0
    flows: Counter[int] = Counter()
    for number, packet in enumerate(seen.planned):
        flows[packet.flow] += number in left
        if number in left and number not in marked:
            since += 1
        else:
            gaps.append(since)
            since = 0
    sojourn = statistics.fmean(left[n] - came.at[n] for n in left) / 1e6
    return Figures(len(gaps), sojourn, tuple(gaps), dict(flows))


def linux(seen: Seen, came: Arrivals) -> Figures:
    """Of Linux's."""
    left = {n: float(at) for n, at in enumerate(came.left) if at is not None}
    return figures(seen, came, left, {n for n in left if came.marked[n] and seen.planned[n].ect})


def ours(seen: Seen, came: Arrivals, table: str, ahead: bool, text: str, seed: int) -> Figures:
    """Of one of ours."""
    left, marked = {}, set()
    when = "ahead" if ahead else "asked"
    for line in replayed.replay("free", table, when, str(seed), text=text).splitlines():
        number, what, at = line.split()
        if what != "dropped":
            left[int(number)] = float(at)
        if what == "marked":
            marked.add(int(number))
    return figures(seen, came, left, marked)


ABOUT = (1_000_000, 100_000)
"""A departure of Linux's is that of ours if ours has its tokens no more than so many nanoseconds before it,
or after it."""


class Link:
    """The guest's link, a token bucket of 8 Mbit/s and 30 kB, which stalls when the guest does.

    A packet for which there are tokens leaves when Linux's left, if one did about then: its timer is late
    now and then.
    """

    def __init__(self, text: str) -> None:
        """Full; `text` has the events."""
        stalls = (line.split()[1:] for line in text.splitlines() if line[0] == "s")
        self.stalls = sorted((int(start), int(end)) for start, end in stalls)
        self.starts = [start for start, _ in self.stalls]
        self.left = sorted(int(line.split()[1]) for line in text.splitlines() if line[0] == "l")
        self.tokens, self.at, self.changed = 30_000.0, 0.0, 0.0

    def ready(self, size: int) -> float:
        """When a packet can leave, in nanoseconds: a byte takes a microsecond."""
        at = max(self.at + max(0.0, size - self.tokens) * 1000, self.changed)
        place = bisect_left(self.starts, at) - 1
        if place >= 0 and at < self.stalls[place][1]:
            at = float(self.stalls[place][1])
        place = bisect_left(self.left, at - ABOUT[1])
        if place < len(self.left) and self.left[place] < at + ABOUT[0]:
            return max(self.changed, float(self.left[place]))
        return at

    def send(self, size: int, at: float) -> float:
        """It leaves then."""
        self.tokens = min(30_000.0, self.tokens + (at - self.at) / 1000) - size
        self.at = self.changed = at
        return at


@dataclass(frozen=True)
class Efficient:
    """RED as Linux has it, in Python: Floyd and Jacobson 1993's efficient form, one random number a gap.

    A packet is dropped when count · p_b reaches a number that was drawn after the last drop. `forced` is what
    the count is after a drop above max_th: 0, or -1, with which the next packet is let by.
    """

    min_th: float
    max_th: float
    max_p: float
    wlog: int
    forced: int

    def run(self, seen: Seen, came: Arrivals, text: str, seed: int) -> Figures:
        """Over the same events."""
        rng = random.Random(seed)  # noqa: S311
        avg, count, drawn = 0.0, -1, 0.0
        queue: deque[int] = deque()
        link = Link(text)
        left: dict[int, float] = {}
        backlog = 0
        for number, at in enumerate(came.at):
            while queue and (leaves := link.ready(seen.planned[queue[0]].size)) <= at:
                left[queue[0]] = link.send(seen.planned[queue[0]].size, leaves)
                backlog -= seen.planned[queue.popleft()].size
            avg += (backlog - avg) / 2**self.wlog
            dropped = False
            if avg < self.min_th:
                count = -1
            elif avg >= self.max_th:
                count, dropped = self.forced, True
                drawn = rng.random() if self.forced == 0 else drawn
            else:
                count += 1
                p_b = self.max_p * (avg - self.min_th) / (self.max_th - self.min_th)
                if count == 0:
                    drawn = rng.random()
                elif count * p_b >= drawn:
                    count, drawn, dropped = 0, rng.random(), True
            if not dropped:
                queue.append(number)
                backlog += seen.planned[number].size
                link.changed = max(link.changed, at)
        for number in queue:
            left[number] = link.send(seen.planned[number].size, link.ready(seen.planned[number].size))
        return figures(seen, came, left, set())


def among(reading: str, theirs: Figures, runs: Sequence[Figures]) -> Alike:
    """Where one run lies among others.

    >>> normal = [Figures(drops, 1.0, (drops,), {0: 1}) for drops in range(100)]
    >>> among("", Figures(120, 1.0, (50,), {0: 1}), normal).holds
    True
    >>> among("", Figures(150, 1.0, (50,), {0: 1}), normal).differs
    ('drops',)
    """
    drops = Place.of(theirs.drops, [r.drops for r in runs])
    sojourn = Place.of(theirs.sojourn, [r.sojourn for r in runs])
    flows = [Place.of(n, [r.by_flow.get(f, 0) for r in runs]) for f, n in theirs.by_flow.items()]
    p = same_gaps(theirs, runs)
    odd = p < LOW and all(p < same_gaps(r, [*runs[:n], *runs[n + 1 :]]) for n, r in enumerate(runs))
    differs = {
        "drops": drops.differs,
        "sojourn": sojourn.differs,
        "flows": any(flow.differs for flow in flows),
        "gaps": odd,
    }
    far = max((flow.z for flow in flows), key=abs) if len(flows) > 1 else 0.0
    named = tuple(name for name, differ in differs.items() if differ)
    return Alike(reading, drops.mean, drops.z, sojourn.mean, sojourn.z, p, far, named)


@dataclass(frozen=True)
class Place:
    """Where a figure of Linux's lies among ours."""

    mean: float
    z: float
    """How many standard deviations of a run of ours it lies off."""
    differs: bool
    """Whether that is far, and beyond every one of ours."""

    @classmethod
    def of(cls, one: float, others: Sequence[float]) -> Place:
        """Among the others."""
        mean, spread = statistics.fmean(others), statistics.stdev(others)
        if spread == 0.0:
            return cls(mean, 0.0 if one == mean else math.inf, one != mean)
        z = (one - mean) / (spread * math.sqrt(1 + 1 / len(others)))
        return cls(mean, z, abs(z) >= FAR and not min(others) <= one <= max(others))


def same_gaps(one: Figures, others: Sequence[Figures]) -> float:
    """Kolmogorov-Smirnov's p of a run's gaps among those of the others."""
    return same_distribution(
        [float(gap) for gap in one.gaps], [float(gap) for run in others for gap in run.gaps]
    )


@dataclass(frozen=True)
class Certain:
    """RED decision by decision, by the average and the count that Linux's own verdicts led to.

    Between the thresholds a decision is by chance: what is passed at count · p_b = x has a random number
    above x, so each arrival has a probability given all before it, and drops can be compared with their sum.
    """

    slow: bool
    """Whether a packet more or less moves the average by less than a step of count · p_b."""
    below: int
    """Arrivals with an average below min_th."""
    below_dropped: int
    above: int
    """Arrivals with an average above max_th."""
    above_passed: int
    first: int
    """Arrivals between the thresholds that come next after a drop above max_th."""
    first_dropped: int
    first_expected: float
    """How many of them would be dropped if the count were 0 after such a drop."""
    between: int
    """Arrivals between the thresholds, but for those that come first after a drop above max_th."""
    early: int
    """Those dropped."""
    expected: float
    """The sum of their probabilities."""
    z: float
    """Standard deviations between the two."""
    bins_p: float
    """Chi-squared test of the same by tenths of the probability."""


def certain(seen: Seen, came: Arrivals, red: Efficient) -> Certain:
    """Every arrival but those with an average on a threshold, as far as can be told."""
    avg, backlog, forced = 0.0, 0, False
    count: int | None = -1
    """Since the last drop; None where it isn't known."""
    passed_at = 0.0
    """The lower bound known of the random number."""
    counts: Counter[str] = Counter()
    expected = 0.0
    given: list[tuple[float, bool]] = []
    leaving = deque(came.order)
    for number, at in enumerate(came.at):
        while leaving and (came.left[leaving[0]] or 0) <= at and leaving[0] < number:
            backlog -= seen.planned[leaving.popleft()].size
        avg += (backlog - avg) / 2**red.wlog
        passed = came.left[number] is not None
        if min(abs(avg - red.min_th), abs(avg - red.max_th)) < CLOSE:
            forced, count = False, None
        elif avg < red.min_th:
            counts["below"] += 1
            counts["below_dropped"] += not passed
            forced, count = False, -1
        elif avg >= red.max_th:
            counts["above"] += 1
            counts["above_passed"] += passed
            forced, count = not passed, -1
        else:
            p_b = red.max_p * (avg - red.min_th) / (red.max_th - red.min_th)
            if forced:
                counts["first"] += 1
                counts["first_dropped"] += not passed
                expected += p_b
            elif count == -1:
                given.append((0.0, not passed))
            elif count is not None:
                reached = min(1.0, (count + 1) * p_b)
                chance = max(0.0, reached - passed_at) / (1.0 - passed_at) if passed_at < 1.0 else 1.0
                given.append((chance, not passed))
                passed_at = max(passed_at, reached)
            forced = False
            if not passed:
                count, passed_at = 0, 0.0
            elif count is not None:
                passed_at = 0.0 if count == -1 else passed_at
                count += 1
        if passed:
            backlog += seen.planned[number].size
    sums, bins = conditional(given)
    return Certain(
        slow=red.wlog >= SLOW,
        below=counts["below"],
        below_dropped=counts["below_dropped"],
        above=counts["above"],
        above_passed=counts["above_passed"],
        first=counts["first"],
        first_dropped=counts["first_dropped"],
        first_expected=expected,
        between=len(given),
        early=sum(dropped for _, dropped in given),
        expected=sum(chance for chance, _ in given),
        z=sums,
        bins_p=bins,
    )


def conditional(given: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Drops against their probabilities: in standard deviations all together, and chi-squared's p by tenths.

    >>> half = [(0.5, n % 2 == 0) for n in range(1000)]
    >>> conditional(half)[0], round(conditional(half)[1], 2)
    (0.0, 1.0)
    >>> conditional([(0.1, True)] * 100)[0] > FAR
    True
    """
    tenths: dict[int, list[float]] = {}
    for chance, dropped in given:
        found = tenths.setdefault(min(9, int(chance * 10)), [0.0, 0.0])
        found[0] += dropped - chance
        found[1] += chance * (1.0 - chance)
    spread = math.sqrt(sum(variance for _, variance in tenths.values()))
    off = sum(difference for difference, _ in tenths.values())
    # Fewer than five to expect: not normal.
    told = [difference**2 / variance for difference, variance in tenths.values() if variance >= 5.0]
    p = float(chi2.sf(sum(told), len(told))) if told else 1.0
    return off / spread if spread else 0.0, p
