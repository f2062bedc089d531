"""The answer to a plan: the scheme and its settings that keep the contracts at the least cost to the others.

Every scheme gets the same number of trials (`search`). The best are run with 40 other seeds, and the best of
these is put to the test on seeds that nothing has used: as many runs as show, with at most so many failures,
that the share of runs that keep every contract is what was asked for. Up to three candidates are tested, each
at a third of 5 %, so that the answer as a whole is wrong with a probability of at most 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...experiment.scenario import Scenario
from ...metrics.contracts import figure_over_runs
from ...metrics.stats import Estimate
from ...run.pool import Backend, Local
from .bench import Bench, RunFigures
from .question import Question
from .search import Judged, Tried, judge, search, selected
from .variants import Change, changed, with_more

__all__ = ["Answer", "Confirmed", "Near", "Room", "confirmation", "expected_runs", "plan"]

SELECTED = range(1001, 1041)
"""Seeds that candidates are chosen by."""
AROUND = range(1001, 1021)
"""Seeds of what is looked at around the answer: the first of the same."""
_FRESH = 1_000_001
"""The first of the seeds that nothing has used."""
CANDIDATES, LEVEL = 3, 0.05
TRIALS = 24
_FINALISTS, _EACH = 8, 2
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

    @property
    def failures(self) -> int:
        """Fresh runs that did not keep every contract."""
        return len(self.runs.seeds) - self.runs.kept

    @property
    def lower(self) -> float:
        """Lower bound of the share of runs that keep every contract, at the level of the test."""
        from scipy.special import betaincinv

        good, n = self.runs.kept, len(self.runs.seeds)
        return 0.0 if good == 0 else float(betaincinv(good, n - good + 1, LEVEL / CANDIDATES))


@dataclass(frozen=True)
class Near:
    """The answer with one of its settings changed."""

    key: str
    value: float
    factor: float
    judged: Judged
    runs: RunFigures


@dataclass(frozen=True)
class Room:
    """The answer's settings with more customers in a group."""

    group: str
    more: int
    judged: Judged
    runs: RunFigures


@dataclass(frozen=True)
class Answer:
    """The outcome of the search."""

    question: Question
    tried: Mapping[str, Sequence[Tried]]
    """All settings that were tried, by scheme."""
    finalists: Sequence[Tried]
    """The best of them, with the runs of the selection, best first."""
    tested: Sequence[Confirmed]
    """Candidates on fresh seeds, in the order of the tests."""
    today: RunFigures
    """The network as its file has it."""
    near: Sequence[Near] = ()
    room: Sequence[Room] = ()
    changes: Sequence[Change] = ()
    """Where nothing meets the goal: what would."""
    runs: int = 0
    """Runs in all."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Files that were written, by what they are."""

    @property
    def chosen(self) -> Confirmed | None:
        """The candidate that met the goal on fresh seeds; None where none did."""
        return next((one for one in self.tested if one.met), None)

    @property
    def nearest(self) -> Tried:
        """The setting nearest to the goal, where none meets it."""
        return min(self.finalists, key=lambda t: (t.judged.violation, -t.judged.score))

    def experiment(self) -> Scenario:
        """The experiment of the answer, or of what comes nearest to it."""
        best = self.chosen.tried if self.chosen else self.nearest
        return self.question.put(best.scheme, best.settings)


def confirmation(share: float) -> tuple[int, int]:
    """How many fresh runs a test has, and how many failures it allows, at a third of 5 %.

    >>> confirmation(0.99), confirmation(0.95)
    ((408, 0), (300, 7))
    """
    from scipy.special import bdtr

    level, failures = LEVEL / CANDIDATES, 1.0 - share
    runs = _LEAST_RUNS
    while bdtr(0, runs, failures) > level:
        runs += 1
    allowed = 0
    while bdtr(allowed + 1, runs, failures) <= level:
        allowed += 1
    return runs, allowed


def expected_runs(question: Question, trials: int = TRIALS) -> int:
    """About how many runs a plan takes."""
    return (
        len(question.schemes) * trials * 6
        + _FINALISTS * len(SELECTED)
        + confirmation(question.goal.kept)[0]
        + 400
    )


def plan(
    question: Question,
    *,
    trials: int = TRIALS,
    jobs: int | None = None,
    place: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    count: Callable[[int], None] | None = None,
    backend: Backend | None = None,
) -> Answer:
    """Find settings that meet the goal at the least cost to the others.

    Every scheme gets `trials` settings. Runs are kept in the folder `place`, and the same plan goes on from
    there. `jobs` is the number of threads, `backend` makes the runs elsewhere (`run.clusters`); neither
    changes the answer. `progress` is told in words what is done, `count` how many runs have been made.

    Raises FolderInUse where `place` has something else, KeyboardInterrupt when interrupted.
    """
    tell = progress or (lambda _: None)
    where = backend or Local(jobs)
    bench = Bench(question.scenario, None if place is None else Path(place), where, count or (lambda _: None))
    if bench.kept_before:
        tell(f"{bench.kept_before:,} runs are there already")
    try:
        found = _found(question, bench, trials, tell)
        bench.finish()
        return found
    finally:
        bench.close()


def _found(question: Question, bench: Bench, trials: int, tell: Callable[[str], None]) -> Answer:
    today = bench.run([(question.scenario.with_(monitors=[]), AROUND)])[0]
    tried = {scheme.id: search(question, bench, scheme, trials, tell) for scheme in question.schemes}
    tell(f"the best settings with {len(SELECTED)} other seeds")
    everything = [t for found in tried.values() for t in found]
    finalists = selected(question, bench, everything, SELECTED, _FINALISTS, _EACH)
    tested: list[Confirmed] = []
    for candidate in _candidates(finalists):
        words = f"{candidate.scheme.title} on {confirmation(question.goal.kept)[0]} fresh seeds"
        tell(words)
        tested.append(_confirmed(question, bench, candidate, len(tested)))
        if tested[-1].met:
            break
    answer = Answer(question, tried, finalists, tested, today)
    if answer.chosen is not None:
        tell("settings around it, and more customers")
        near = _around(question, bench, answer.chosen.tried)
        room = _room(question, bench, answer.chosen.tried)
        return _with(answer, bench, near=near, room=room)
    tell("no setting meets the goal: what would have to change")
    nearest = answer.nearest
    return _with(answer, bench, changes=changed(question, bench, nearest, AROUND, trials, tell))


def _with(answer: Answer, bench: Bench, **more: Any) -> Answer:
    from dataclasses import replace

    return replace(answer, runs=bench.made + bench.kept_before, **more)


def _candidates(finalists: Sequence[Tried]) -> list[Tried]:
    """Which are tested: those that cost the others least, and at last the one with the widest margin."""
    met = [t for t in finalists if t.judged.violation == 0]
    if len(met) <= CANDIDATES:
        return met
    first = met[: CANDIDATES - 1]
    return [*first, max(met[CANDIDATES - 1 :], key=lambda t: t.judged.margin)]


def _confirmed(question: Question, bench: Bench, candidate: Tried, number: int) -> Confirmed:
    """Run a candidate on fresh seeds, until the test is decided."""
    wanted, allowed = confirmation(question.goal.kept)
    start = _FRESH + 100_000 * number
    experiment = question.put(candidate.scheme, candidate.settings)
    step = max(1, wanted // 4)
    runs = None
    for end in [*range(step, wanted, step), wanted]:
        runs = bench.run([(experiment, range(start, start + end))])[0]
        # More failures than are allowed: the rest would change nothing.
        if end - runs.kept > allowed:
            break
    assert runs is not None  # noqa: S101
    n = len(runs.seeds)
    met = n == wanted and n - runs.kept <= allowed and _others_met(question, runs)
    return Confirmed(candidate, runs, wanted, allowed, met)


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


def _around(question: Question, bench: Bench, chosen: Tried) -> list[Near]:
    """Each setting lower and higher, all else as it is."""
    wanted = []
    for key, value in chosen.settings.items():
        limits = _limits(question, chosen, key)
        for factor in _factors(key, chosen):
            moved = min(max(value * factor, limits[0]), limits[1])
            if abs(moved / value - 1) > 0.01:
                wanted.append((key, moved))
    experiments = [question.put(chosen.scheme, {**chosen.settings, key: x}) for key, x in wanted]
    runs = bench.run([(e, AROUND) for e in experiments])
    return [
        Near(key, x, x / chosen.settings[key], judge(question, r), r)
        for (key, x), r in zip(wanted, runs, strict=True)
    ]


def _factors(key: str, chosen: Tried) -> tuple[float, float]:
    """Half and twice; a rate by a tenth."""
    linear = {s.key for s in chosen.scheme.settings if not s.log}
    return (0.9, 1.1) if key in linear else (0.5, 2.0)


def _limits(question: Question, chosen: Tried, key: str) -> tuple[float, float]:
    """The bounds of a setting: probabilities and weights end at 1."""
    if key == "T":
        return question.shortest, 2 * question.longest
    plain = next(s for s in chosen.scheme.settings if s.key == key)
    return 0.0, 1.0 if key.rsplit(".", 1)[-1] in ("max_p", "w_q", "p") and not plain.times else float("inf")


def _room(question: Question, bench: Bench, chosen: Tried) -> list[Room]:
    """One, two, four … more customers in each group, until contracts are no longer kept."""
    found = []
    for group in question.place.contracted:
        for more in (1, 2, 4, 8, 16):
            fuller = with_more(question, group, more)
            runs = bench.run([(fuller.put(chosen.scheme, chosen.settings), SELECTED)])[0]
            found.append(Room(group, more, judge(fuller, runs), runs))
            if found[-1].judged.violation > 0:
                break
    return found
