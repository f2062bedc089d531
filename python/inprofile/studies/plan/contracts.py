"""The answer to a plan: the scheme and its settings that keep the contracts at the least cost to the others.

Every scheme gets the same number of trials (`search`). The best are run with 40 other seeds, and the best of
these is put to the test on seeds that nothing has used (`search`). Up to three candidates are tested, at
levels that together are 5 %, so that the answer as a whole is wrong with a probability of at most 5 %.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...experiment.scenario import Scenario
from ...run.pool import Backend, Local
from ..compare.schemes import Scheme
from ..compare.settings import rounded
from .question import Question
from .search import (
    CANDIDATES,
    LEVEL,
    SAFEST,
    STEPS,
    Confirmed,
    Judged,
    Tried,
    confirmation,
    confirmed,
    first_look,
    judge,
    near,
    ranges_of,
    runs_of,
    search,
    selected,
)
from .store import Bench, RunFigures
from .variants import Change, changed, scale_of, smaller, with_more

SELECTED = range(1001, 1041)
"""Seeds that candidates are chosen by."""
AROUND = range(1001, 1021)
"""Seeds of what is looked at around the answer: the first of the same."""
TRIALS = 24
_FINALISTS, _EACH = 8, 2
CHOSEN = range(1001, 1017)
"""Seeds that candidates are chosen by where a run takes long."""
TODAY = range(1001, 1009)
_RACED, _WHOLE, _LOOKED = 3, 2, 4
"""Then so many schemes are searched, and so many settings tried on the network itself at a time, of so many
that are best on the smaller one."""


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
    `scale` flows (default: `scale_of`, 1: never), and then only the schemes that do best with what
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
        tested, finalists = _on_the_network(question, bench, finalists, tell)
    else:
        tested = []
        for candidate in _candidates(finalists):
            tested.append(confirmed(question, bench, candidate, len(tested), LEVEL / CANDIDATES, tell))
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
) -> tuple[list[Confirmed], list[Tried]]:
    """The tests, and all that were run on the network itself for them, best first.

    Chosen by few seeds, and a test that fails costs as long as one that does not: the safest is tested first.
    Runs in which it failed are held against it, and the others are looked at again.
    """
    left, made = list(found), list[Tried]()
    tested: list[Confirmed] = []
    while len(tested) < CANDIDATES:
        untested = _meeting(question, bench, left, made, [one.tried for one in tested], tell)
        if not untested:
            break
        candidate = max(untested, key=lambda t: t.judged.margin)
        tested.append(confirmed(question, bench, candidate, len(tested), SAFEST[len(tested)], tell))
        if tested[-1].met:
            break
        seeds = [*CHOSEN, *tested[-1].runs.seeds]
        failed = _judged(question, bench, [(candidate.scheme, candidate.settings)], seeds)
        made = [*(t for t in made if t is not candidate), *failed]
    return tested, sorted(made, key=lambda t: -t.judged.score)


def _meeting(
    question: Question,
    bench: Bench,
    left: list[Tried],
    made: list[Tried],
    tested: Sequence[Tried],
    tell: Callable[[str], None],
) -> list[Tried]:
    """Those of `made` that meet the goal on the network itself and are not tested yet.

    While there is none, the best of the smaller network that are `left` join them, then steps from the best.
    """
    done = [(t.scheme.id, t.settings) for t in tested]

    def found() -> list[Tried]:
        return [t for t in made if t.judged.violation == 0 and (t.scheme.id, t.settings) not in done]

    while left and not found():
        tell(f"the best of these on the network itself, {_WHOLE} at a time")
        made += _judged(question, bench, [(t.scheme, t.settings) for t in left[:_WHOLE]])
        del left[:_WHOLE]
    chance = random.Random(1 + len(tested))  # noqa: S311 - what is drawn is no secret
    for step in STEPS:
        if found():
            break
        best = max(made, key=lambda t: t.judged.score)
        tell(f"{best.scheme.title} falls short by {best.judged.violation:.2f} there: steps from it")
        ranges = list(ranges_of(question, best.scheme))
        points = [near(question, best.scheme, ranges, best.settings, step / 2, chance) for _ in range(_WHOLE)]
        settings = [(best.scheme, {key: rounded(x) for key, x in point.items()}) for point in points]
        made += _judged(question, bench, settings)
    return found()


def _judged(
    question: Question,
    bench: Bench,
    wanted: Sequence[tuple[Scheme, Mapping[str, float]]],
    seeds: Sequence[int] = CHOSEN,
) -> list[Tried]:
    runs = bench.run([(question.put(scheme, settings), seeds) for scheme, settings in wanted])
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
