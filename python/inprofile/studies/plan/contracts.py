"""The answer to a plan: the scheme and its settings that keep the contracts at the least cost to the others.

Every scheme gets the same number of trials (`search`). The best are run with 40 other seeds, and the best of
these is put to the test on seeds that nothing has used: as many runs as show, with at most so many failures,
that the share of runs that keep every contract is what was asked for. Up to three candidates are tested, each
at a third of 5 %, so that the answer as a whole is wrong with a probability of at most 5 %.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...experiment.scenario import Scenario
from ...metrics.contracts import figure_over_runs
from ...metrics.stats import Estimate
from ...run.pool import Backend, Local
from ..compare.schemes import Scheme
from ..compare.settings import rounded
from .bench import Bench, RunFigures
from .question import Question
from .search import STEPS, Judged, Tried, first_look, judge, near, ranges_of, runs_of, search, selected
from .smaller import scale_of, smaller
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
CHOSEN = range(1001, 1017)
"""Seeds that candidates are chosen by where a run takes long."""
TODAY = range(1001, 1009)
_RACED, _WHOLE, _LOOKED = 3, 2, 4
"""Then so many schemes are searched, and so many settings tried on the network itself at a time, of so many
that are best on the smaller one."""
SAFEST = (0.04, 0.005, 0.005)
"""The levels of the candidates then, together LEVEL: the safest is tested first, and with fewer runs."""
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
    scale: int = 1
    """Settings were looked for on a network with one in so many flows; 1: on the network itself."""
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


def expected_runs(question: Question, trials: int = TRIALS, scale: int | None = None) -> tuple[int, float]:
    """About how many runs a plan takes, and how many packets they send."""
    each, schemes = question.scenario.expected_packets(seeds=1), len(question.schemes)
    k = scale_of(question) if scale is None else scale
    shown = confirmation(question.goal.kept, *([] if k == 1 else SAFEST[:1]))[0]
    if k == 1:
        runs = schemes * trials * 6 + _FINALISTS * len(SELECTED) + shown + 400
        return runs, runs * each
    raced = min(_RACED, schemes)
    small = (schemes - raced) * (trials // 3) * 3 + raced * trials * 6 + _LOOKED * len(CHOSEN) + 150
    whole = shown + _WHOLE * len(CHOSEN) + len(TODAY)
    return small + whole, (small / k + whole) * each


def plan(
    question: Question,
    *,
    trials: int = TRIALS,
    scale: int | None = None,
    jobs: int | None = None,
    place: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    count: Callable[[int], None] | None = None,
    backend: Backend | None = None,
) -> Answer:
    """Find settings that meet the goal at the least cost to the others.

    Every scheme gets `trials` settings. Where a run takes long they are looked for on a network with one in
    `scale` flows (`smaller`; default: `scale_of`, 1: never), and then only the schemes that do best with what
    is set by hand get all of them. Runs are kept in the folder `place`, and the same plan goes on from
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
        found = _found(question, bench, trials, scale_of(question) if scale is None else scale, tell)
        bench.finish()
        return found
    finally:
        bench.close()


def _found(question: Question, bench: Bench, trials: int, scale: int, tell: Callable[[str], None]) -> Answer:
    today = bench.run([(question.scenario.with_(monitors=[]), AROUND if scale == 1 else TODAY)])[0]
    searched = smaller(question, scale)
    if scale > 1:
        tell(f"settings are looked for on a network with one in {scale} flows")
    tried = _tried(searched, bench, trials, scale, tell)
    tell(f"the best settings with {len(SELECTED if scale == 1 else CHOSEN)} other seeds")
    everything = [t for found in tried.values() for t in found]
    seeds, most = (SELECTED, _FINALISTS) if scale == 1 else (CHOSEN, _LOOKED)
    finalists = selected(searched, bench, everything, seeds, most, _EACH)
    if scale > 1:
        finalists = _on_the_network(question, bench, finalists, tell)
    tested: list[Confirmed] = []
    candidates = _candidates(finalists)
    if scale > 1:
        # Chosen by few seeds, and a test that fails costs as long as one that does not: the safest first.
        candidates.sort(key=lambda t: -t.judged.margin)
    for candidate in candidates:
        level = LEVEL / CANDIDATES if scale == 1 else SAFEST[len(tested)]
        tell(f"{candidate.scheme.title} on {confirmation(question.goal.kept, level)[0]} fresh seeds")
        tested.append(_confirmed(question, bench, candidate, len(tested), level))
        if tested[-1].met:
            break
    answer = Answer(question, tried, finalists, tested, today, scale=scale)
    if answer.chosen is not None:
        tell("settings around it, and more customers")
        near = _around(searched, bench, answer.chosen.tried, AROUND if scale == 1 else TODAY)
        room = _room(searched, bench, answer.chosen.tried, scale)
        return _with(answer, bench, near=near, room=room)
    tell("no setting meets the goal: what would have to change")
    nearest = answer.nearest
    return _with(answer, bench, changes=changed(searched, bench, nearest, AROUND, trials, tell))


def _tried(
    question: Question, bench: Bench, trials: int, scale: int, tell: Callable[[str], None]
) -> dict[str, list[Tried]]:
    """The settings that are tried of each scheme: as many of all, or of those alone that do best by hand."""
    if scale == 1:
        return {scheme.id: search(question, bench, scheme, trials, tell) for scheme in question.schemes}
    tried = {scheme.id: first_look(question, bench, scheme, trials) for scheme in question.schemes}
    order = sorted(question.schemes, key=lambda s: -max(t.judged.score for t in tried[s.id]))
    tell(f"{len(order)} schemes as one would set them; the best {min(_RACED, len(order))} are searched")
    for scheme in order[:_RACED]:
        tried[scheme.id] = search(question, bench, scheme, trials, tell)
    return tried


def _on_the_network(
    question: Question, bench: Bench, found: Sequence[Tried], tell: Callable[[str], None]
) -> list[Tried]:
    """The best of the smaller network on the network itself; steps from the best where none is enough."""
    made: list[Tried] = []
    for begin in range(0, len(found), _WHOLE):
        tell(f"the best of these on the network itself, {_WHOLE} at a time")
        made += _judged(question, bench, [(t.scheme, t.settings) for t in found[begin : begin + _WHOLE]])
        if any(t.judged.violation == 0 for t in made):
            break
    chance = random.Random(1)  # noqa: S311 - what is drawn is no secret
    for step in STEPS:
        best = max(made, key=lambda t: t.judged.score)
        if best.judged.violation == 0:
            break
        tell(f"it falls short by {best.judged.violation:.2f} there: steps from the best")
        ranges = list(ranges_of(question, best.scheme))
        points = [near(question, best.scheme, ranges, best.settings, step / 2, chance) for _ in range(_WHOLE)]
        settings = [(best.scheme, {key: rounded(x) for key, x in point.items()}) for point in points]
        made += _judged(question, bench, settings)
    return sorted(made, key=lambda t: -t.judged.score)


def _judged(
    question: Question, bench: Bench, wanted: Sequence[tuple[Scheme, Mapping[str, float]]]
) -> list[Tried]:
    runs = bench.run([(question.put(scheme, settings), CHOSEN) for scheme, settings in wanted])
    return [
        Tried(scheme, settings, r, judge(question, r))
        for (scheme, settings), r in zip(wanted, runs, strict=True)
    ]


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


def _confirmed(question: Question, bench: Bench, candidate: Tried, number: int, level: float) -> Confirmed:
    """Run a candidate on fresh seeds, until the test is decided."""
    wanted, allowed = confirmation(question.goal.kept, level)
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


def _around(question: Question, bench: Bench, chosen: Tried, seeds: Sequence[int]) -> list[Near]:
    """Each setting lower and higher, all else as it is."""
    wanted = []
    for key, value in chosen.settings.items():
        limits = _limits(question, chosen, key)
        for factor in _factors(key, chosen):
            moved = min(max(value * factor, limits[0]), limits[1])
            if abs(moved / value - 1) > 0.01:
                wanted.append((key, moved))
    experiments = [question.put(chosen.scheme, {**chosen.settings, key: x}) for key, x in wanted]
    runs = runs_of(question, bench, [(e, seeds) for e in experiments])
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


def _room(question: Question, bench: Bench, chosen: Tried, scale: int) -> list[Room]:
    """One, two, four … more customers in each group, until contracts are no longer kept.

    One more of a smaller network is `scale` more of the network that it stands for.
    """
    found = []
    for group in question.place.contracted:
        for more in (1, 2, 4, 8, 16) if scale == 1 else (1, 2):
            fuller = with_more(question, group, more)
            asked = [(fuller.put(chosen.scheme, chosen.settings), SELECTED if scale == 1 else CHOSEN)]
            runs = runs_of(question, bench, asked)[0]
            found.append(Room(group, scale * more, judge(fuller, runs), runs))
            if found[-1].judged.violation > 0:
                break
    return found
