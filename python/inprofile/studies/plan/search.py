"""Looking for settings: the same number of trials for each scheme, by Optuna's Parzen estimator (TPE).

While the goal is met, a setting is worth what flows without a contract get under it (where there are none,
how much of the link is used, less a hundredth for ten milliseconds of queueing delay). Else it counts by
how much it falls short. Whether contracts are kept in 99 % of runs cannot be counted with eight. But the
least assurance ratio of each run is measured, and taken for normal: the mean less k standard deviations has
to reach 1, with the k that covers this share of all runs with 95 % confidence (a one-sided tolerance
limit). Runs are counted at the end, on fresh seeds (`contracts`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..compare.schemes import Scheme, has_length
from ..compare.settings import rounded
from .bench import Bench, RunFigures
from .question import Question

__all__ = ["FIRST", "SEARCHED", "Judged", "Tried", "best_of", "judge", "measured", "search", "tolerance"]

FIRST = range(1, 4)
"""Seeds of a first look."""
SEARCHED = range(1, 9)
"""Seeds of a setting that the first look did not rule out."""
HOPELESS = 0.15
"""A setting that misses the goal by more after the first look gets no more seeds."""
TOGETHER = 4
"""Settings that are asked for at a time: as many threads have work. The same for any number of threads."""


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
    """What is maximised."""


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


def judge(question: Question, runs: RunFigures) -> Judged:
    """Hold runs against the goal."""
    goal = question.goal
    worst = runs["assurance_worst"]
    n = len(worst)
    margin = float(worst.mean() - tolerance(n, goal.kept) * worst.std(ddof=1) - 1.0)
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
    worth = best_effort / question.link_rate if others else float(runs["utilisation"].mean()) - delay
    return Judged(margin, delay, best_effort, violation, -violation if violation > 0 else worth)


def search(
    question: Question, bench: Bench, scheme: Scheme, trials: int, tell: Callable[[str], None]
) -> list[Tried]:
    """Try settings of one scheme, so many of them; all that were tried."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(
        seed=1, multivariate=True, constant_liar=True, n_startup_trials=min(10, max(4, trials // 3))
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    ranges = list(_ranges(question, scheme))
    study.enqueue_trial({key: math.sqrt(lo * hi) if log else (lo + hi) / 2 for key, lo, hi, log in ranges})
    found: list[Tried] = []
    while len(found) < trials:
        asked = [study.ask() for _ in range(min(TOGETHER, trials - len(found)))]
        settings = [
            {k: rounded(t.suggest_float(k, lo, hi, log=log)) for k, lo, hi, log in ranges} for t in asked
        ]
        made = measured(question, bench, [(scheme, s) for s in settings])
        for trial, one in zip(asked, made, strict=True):
            study.tell(trial, one.judged.score)
        found += made
    best = max(found, key=lambda t: t.judged.score)
    met = "meets the goal" if best.judged.violation == 0 else f"falls short by {best.judged.violation:.2f}"
    tell(f"{scheme.title}: {len(found)} settings, the best {met}")
    return found


def measured(
    question: Question, bench: Bench, wanted: Sequence[tuple[Scheme, Mapping[str, float]]]
) -> list[Tried]:
    """Run settings: all with the first seeds, and those that are not hopeless with the others."""
    experiments = [question.put(scheme, settings) for scheme, settings in wanted]
    first = bench.run([(e, FIRST) for e in experiments])
    promising = [judge(question, runs).violation <= HOPELESS for runs in first]
    more = iter(bench.run([(e, SEARCHED) for e, p in zip(experiments, promising, strict=True) if p]))
    made = []
    for (scheme, settings), runs, again in zip(wanted, first, promising, strict=True):
        seen = next(more) if again else runs
        made.append(Tried(scheme, settings, seen, judge(question, seen)))
    return made


def _ranges(question: Question, scheme: Scheme) -> Iterator[tuple[str, float, float, bool]]:
    """What is searched: keys with their ends, and whether on a logarithmic scale."""
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
