"""Looking for settings: the same number of trials for each scheme.

The first third is what one would set by hand (`_by_hand`), then Optuna's Parzen estimator (TPE) proposes, and
the last third are small steps from the best (`near`): where most of a link is sold, what keeps the contracts
is a few hundredths of the contract wide in a marker's rate, and neither chance nor TPE hits it in 24 trials.

While the goal is met, a setting is worth what flows without a contract get under it (where there are none,
how much of the link is used, less a hundredth for ten milliseconds of queueing delay). Else it counts by
how much it falls short. Whether contracts are kept in 99 % of runs cannot be counted with eight. But the
least assurance ratio of each run is measured, and taken for normal: the mean less k standard deviations has
to reach 1, with the k that covers this share of all runs with 95 % confidence (a one-sided tolerance
limit). RunFigures are counted at the end, on fresh seeds (`contracts`).

The test of a candidate on seeds that nothing has used. As many runs as show, with at most so many failures,
that the share of runs that keep every contract is what was asked for: the exact binomial test.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...experiment.scenario import Scenario
from ...metrics.contracts import figure_over_runs
from ...metrics.stats import Estimate
from ..compare.schemes import Scheme, has_length
from ..compare.settings import rounded
from .question import Question
from .store import Bench, RunFigures

_FRESH = 1_000_001
"""The first of the seeds that nothing has used."""
CANDIDATES, LEVEL = 3, 0.05
"""So many candidates are tested at most; the answer is wrong with a probability of at most LEVEL."""
SAFEST = (0.04, 0.005, 0.005)
"""The levels where a run takes long, together LEVEL: the safest is tested first, and with fewer runs."""
_BEGUN = 16
"""A test looks after so many runs whether it has failed, and after twice as many each time."""
_LEAST_RUNS = 300
"""A share of runs is shown with at least so many."""


@dataclass(frozen=True)
class Confirmed:
    """A candidate on fresh seeds."""

    tried: Tried
    """With the runs of the selection."""
    runs: RunFigures
    """The fresh ones."""
    wanted: int
    """How many runs the test has; fewer were made where it had failed before."""
    allowed: int
    """Failures that it allows."""
    met: bool
    level: float = LEVEL / CANDIDATES
    """Of the test: the probability, at most, that it passes a share below the goal's."""

    @property
    def failures(self) -> int:
        """Fresh runs that did not keep every contract."""
        return len(self.runs.seeds) - self.runs.kept

    @property
    def lower(self) -> float:
        """Lower bound of the share of runs that keep every contract, at the level of the test."""
        from scipy.special import betaincinv

        good, n = self.runs.kept, len(self.runs.seeds)
        return 0.0 if good == 0 else float(betaincinv(good, n - good + 1, self.level))


def confirmation(share: float, level: float = LEVEL / CANDIDATES) -> tuple[int, int]:
    """How many fresh runs a test has, and how many failures it allows, at a third of 5 % or another level.

    >>> confirmation(0.99), confirmation(0.95), confirmation(0.99, SAFEST[0])
    ((408, 0), (300, 7), (321, 0))
    """
    from scipy.special import bdtr

    failures = 1.0 - share
    runs = _LEAST_RUNS
    while bdtr(0, runs, failures) > level:
        runs += 1
    allowed = 0
    while bdtr(allowed + 1, runs, failures) <= level:
        allowed += 1
    return runs, allowed


def confirmed(
    question: Question, bench: Bench, candidate: Tried, number: int, level: float, tell: Callable[[str], None]
) -> Confirmed:
    """Run a candidate on fresh seeds, until the test is decided."""
    wanted, allowed = confirmation(question.goal.kept, level)
    tell(f"{candidate.scheme.title} on {wanted} fresh seeds")
    start = _FRESH + 100_000 * number
    experiment = question.put(candidate.scheme, candidate.settings)
    end = min(_BEGUN, wanted)
    runs = bench.run([(experiment, range(start, start + end))])[0]
    # With more failures than are allowed the rest would change nothing.
    while end < wanted and end - runs.kept <= allowed:
        end = min(2 * end, wanted)
        runs = bench.run([(experiment, range(start, start + end))])[0]
    n = len(runs.seeds)
    met = n == wanted and n - runs.kept <= allowed and _others_met(question, runs)
    return Confirmed(candidate, runs, wanted, allowed, met, level)


def _others_met(question: Question, runs: RunFigures) -> bool:
    """Whether delay and best effort are what was asked for, by their intervals."""
    goal = question.goal
    delay = figure_of(runs, "delay_mean")
    if goal.delay is not None and (delay.ci95 is None or delay.ci95.hi > goal.delay):
        return False
    if goal.best_effort > 0:
        got = figure_of(runs, "best_effort")
        return got.ci95 is not None and got.ci95.lo >= goal.best_effort
    return True


def figure_of(runs: RunFigures, name: str) -> Estimate:
    """A figure's mean over runs with its 95 % interval."""
    return figure_over_runs(name, runs[name].tolist())


FIRST = range(1, 4)
"""Seeds of a first look."""
SEARCHED = range(1, 9)
"""Seeds of a setting that the first look did not rule out."""
HOPELESS = 0.15
"""A setting that would miss the goal by more, if all seeds were like the first, gets no more."""
TOGETHER = 4
"""Settings that are asked for at a time: as many threads have work. The same for any number of threads."""
RATES = (1.15, 1.0, 1.1, 1.25)
"""A marker's rate by hand, in contracts; closer to 1 where together they would be more than the link."""
LENGTHS = (0.5, 0.85)
"""T by hand: these shares of the way from the shortest to the longest, in equal ratios."""
STEPS = (0.25, 0.12, 0.06)
"""Steps from the best, in shares of a range: wide first, and narrower at the end."""


Range = tuple[str, float, float, bool]
"""A key with its ends, and whether on a logarithmic scale."""


@dataclass(frozen=True)
class Judged:
    """How runs stand beside the goal."""

    margin: float
    """Of the least assurance ratio: its tolerance limit less 1."""
    delay: float
    """Mean queueing delay in s."""
    best_effort: float
    """bit/s; 0 where every flow has a contract."""
    violation: float
    """By how much the goal is missed, in shares of it, added up; 0 where it is met."""
    score: float
    """The objective to maximise."""


@dataclass(frozen=True)
class Tried:
    """A scheme with settings, and its runs."""

    scheme: Scheme
    settings: Mapping[str, float]
    """By key; `T` in seconds."""
    runs: RunFigures
    judged: Judged


def tolerance(n: int, share: float) -> float:
    """The k of a one-sided tolerance limit: mean − k·s is below this share of a normal population, 95 % sure.

    >>> round(tolerance(40, 0.99), 2), round(tolerance(8, 0.99), 2)
    (2.94, 4.35)
    """
    from scipy.special import nctdtrit, ndtri

    # By the noncentral t distribution with √n·z as its noncentrality.
    return float(nctdtrit(n - 1, math.sqrt(n) * float(ndtri(share)), 0.95)) / math.sqrt(n)


def judge(question: Question, runs: RunFigures, seeds: int | None = None) -> Judged:
    """Hold runs against the goal: these alone, or as so many `seeds` of which these are a sample."""
    goal = question.goal
    worst = runs["assurance_worst"]
    n = len(worst)
    margin = float(worst.mean() - tolerance(seeds or n, goal.kept) * worst.std(ddof=1) - 1.0)
    if runs.kept < n:
        # What was missed in one of a few runs is missed, however far the others are above.
        margin = min(margin, float(worst.min()) - 1.0)
    delay = float(runs["delay_mean"].mean())
    others = bool(question.place.free)
    best_effort = float(runs["best_effort"].mean()) if others else 0.0
    violation = max(0.0, -margin)
    if goal.delay is not None:
        violation += max(0.0, delay / goal.delay - 1)
    if goal.best_effort > 0:
        violation += max(0.0, 1 - best_effort / goal.best_effort)
    # Without best effort, a hundredth of the link is worth ten milliseconds.
    worth = best_effort / question.whole_rate if others else float(runs["utilisation"].mean()) - delay
    return Judged(margin, delay, best_effort, violation, -violation if violation > 0 else worth)


def search(
    question: Question, bench: Bench, scheme: Scheme, trials: int, tell: Callable[[str], None]
) -> list[Tried]:
    """Try settings of one scheme, so many of them; all that were tried."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    ranges = list(ranges_of(question, scheme))
    by_hand = _by_hand(question, scheme, ranges)[: max(1, trials // 3)]
    sampler = optuna.samplers.TPESampler(
        seed=1, multivariate=True, constant_liar=True, n_startup_trials=max(4, len(by_hand))
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for point in by_hand:
        study.enqueue_trial(point)
    chance = random.Random(1)  # noqa: S311 - what is drawn is no secret
    close = max(len(by_hand), trials - trials // 3)
    found: list[Tried] = []
    while len(found) < trials:
        if len(found) >= close:
            best = max(found, key=lambda t: t.judged.score).settings
            step = STEPS[min(len(STEPS) - 1, len(STEPS) * (len(found) - close) // (trials - close))]
            for _ in range(min(TOGETHER, trials - len(found))):
                study.enqueue_trial(near(question, scheme, ranges, best, step, chance))
        end = close if len(found) < close else trials
        asked = [study.ask() for _ in range(min(TOGETHER, end - len(found)))]
        settings = [
            {k: rounded(t.suggest_float(k, lo, hi, log=log)) for k, lo, hi, log in ranges} for t in asked
        ]
        made = measured(question, bench, [(scheme, s) for s in settings])
        for trial, one in zip(asked, made, strict=True):
            study.tell(trial, one.judged.score)
        found += made
    best_found = max(found, key=lambda t: t.judged.score)
    short = best_found.judged.violation
    met = "meets the goal" if short == 0 else f"falls short by {short:.2f}"
    tell(f"{scheme.title}: {len(found)} settings, the best {met}")
    return found


def _by_hand(question: Question, scheme: Scheme, ranges: Sequence[Range]) -> list[dict[str, float]]:
    """The settings to try first: rates at and above the contract, two lengths, all else in the middle."""
    middle = {key: math.sqrt(lo * hi) if log else (lo + hi) / 2 for key, lo, hi, log in ranges}
    ends = {key: (lo, hi) for key, lo, hi, _ in ranges}
    shortest, longest = ends["T"]
    if question.goal.delay is not None:
        longest = min(longest, max(shortest, question.goal.delay))
    closer = _headroom(question) / (max(RATES) - 1)
    rates = [1 + (rate - 1) * closer for rate in RATES]
    points = []
    for i in range(len(rates) * len(LENGTHS)):
        share = LENGTHS[(i + i // len(rates)) % len(LENGTHS)]
        point = {**middle, "T": shortest * (longest / shortest) ** share}
        for key in _marker_rates(scheme):
            point[key] = min(max(rates[i % len(rates)], ends[key][0]), ends[key][1])
        if point not in points:
            points.append(point)
    return points


def _headroom(question: Question) -> float:
    """By how much all contracts may be marked higher, in shares of them, before the link is full of IN."""
    return max(0.0, min(max(RATES) - 1, question.link_rate / question.bought - 1))


def _marker_rates(scheme: Scheme) -> list[str]:
    return [s.key for s in scheme.settings if s.of_contract and not s.unit]


def near(
    question: Question,
    scheme: Scheme,
    ranges: Sequence[Range],
    best: Mapping[str, float],
    step: float,
    chance: random.Random,
) -> dict[str, float]:
    """A setting a step from the best; of a marker's rate the range is what one would try by hand."""
    rates = _marker_rates(scheme)
    point = {}
    for key, lo, hi, log in ranges:
        moved = chance.gauss(0, step)
        if key in rates:
            x = best[key] + moved * max(_headroom(question), 0.02)
        else:
            x = best[key] * (hi / lo) ** moved if log else best[key] + moved * (hi - lo)
        point[key] = min(max(x, lo), hi)
    return point


def runs_of(
    question: Question, bench: Bench, asked: Sequence[tuple[Scenario, Sequence[int]]]
) -> list[RunFigures]:
    """Runs of the question's network; rates of a smaller one are those of the network that it stands for."""
    found = bench.run(asked)
    if question.scale == 1.0:
        return found
    return [replace(r, values={**r.values, "best_effort": question.scale * r["best_effort"]}) for r in found]


def first_look(question: Question, bench: Bench, scheme: Scheme, trials: int) -> list[Tried]:
    """What a search of so many trials begins with: the settings by hand."""
    ranges = list(ranges_of(question, scheme))
    points = _by_hand(question, scheme, ranges)[: max(1, trials // 3)]
    return measured(question, bench, [(scheme, {k: rounded(p[k]) for k, *_ in ranges}) for p in points])


def measured(
    question: Question, bench: Bench, wanted: Sequence[tuple[Scheme, Mapping[str, float]]]
) -> list[Tried]:
    """Run settings: all with the first seeds, and those that are not hopeless with the others."""
    experiments = [question.put(scheme, settings) for scheme, settings in wanted]
    first = runs_of(question, bench, [(e, FIRST) for e in experiments])
    looked = [judge(question, runs, len(SEARCHED)) for runs in first]
    promising = [judged.violation <= HOPELESS for judged in looked]
    again_asked = [(e, SEARCHED) for e, p in zip(experiments, promising, strict=True) if p]
    more = iter(runs_of(question, bench, again_asked))
    made = []
    for (scheme, settings), runs, judged, again in zip(wanted, first, looked, promising, strict=True):
        seen = next(more) if again else runs
        made.append(Tried(scheme, settings, seen, judge(question, seen) if again else judged))
    return made


def ranges_of(question: Question, scheme: Scheme) -> Iterator[Range]:
    """The space searched: keys with their ends, and whether on a logarithmic scale."""
    t = question.shortest, question.longest
    # A scheme without lengths has no T to look for.
    yield "T", t[0] if has_length(scheme) else t[1] * 0.999, t[1], True
    for setting in scheme.settings:
        yield setting.key, setting.low, setting.high, setting.log


def best_of(tried: Iterable[Tried], most: int, each: int) -> list[Tried]:
    """The best by score, whether they meet the goal or not: at most so many, and `each` of a scheme."""
    counts: dict[str, int] = {}
    found: list[Tried] = []
    for one in sorted(tried, key=lambda t: -t.judged.score):
        if counts.get(one.scheme.id, 0) < each and len(found) < most:
            counts[one.scheme.id] = counts.get(one.scheme.id, 0) + 1
            found.append(one)
    return found


def selected(
    question: Question, bench: Bench, tried: Sequence[Tried], seeds: Sequence[int], most: int, each: int
) -> list[Tried]:
    """The best with other seeds, best first; where none meets the goal, the safest of the rest too.

    What scores best has been lucky: with eight seeds it met the goal narrowly.
    """
    first = best_of(tried, most, each)
    found = _with_seeds(question, bench, first, seeds)
    if all(t.judged.violation > 0 for t in found):
        rest = [t for t in tried if t.judged.violation == 0 and all(t is not one for one in first)]
        safest = sorted(rest, key=lambda t: -t.judged.margin)[:most]
        found += _with_seeds(question, bench, safest, seeds)
    return sorted(found, key=lambda t: -t.judged.score)


def _with_seeds(
    question: Question, bench: Bench, tried: Sequence[Tried], seeds: Sequence[int]
) -> list[Tried]:
    runs = runs_of(question, bench, [(question.put(t.scheme, t.settings), seeds) for t in tried])
    return [Tried(t.scheme, t.settings, r, judge(question, r)) for t, r in zip(tried, runs, strict=True)]
