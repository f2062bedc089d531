"""Visiting points: the paper's plain cells run at each, and all claims judged there.

What is finished stays in the cache, cell by cell, so an interrupted atlas goes on where it was. A point whose
experiment is refused, or in which something that a claim needs cannot be measured, is *invalid* and keeps the
reason; nothing else is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._measured import Experiment, measure_all
from ..judge import Verdict, judge
from ..measures import Measures
from ..papers import Cell, Job, Paper
from ..papers.experiment import measured_with, scenario_of
from ..papers.factors import Factor, Point, apply
from ..scenario import Scenario, ScenarioError
from .design import Planned

__all__ = ["Answer", "Visited", "at", "cells_of", "visit"]

#: Runs that are under way together: enough for any machine's cores, few enough that little is lost.
TOGETHER = 64


@dataclass(frozen=True)
class Answer:
    """A claim at a point."""

    verdict: Verdict
    holds: int = 0
    opposite: int = 0
    total: int = 0
    #: Why it cannot be decided there.
    why: str = ""

    @property
    def score(self) -> float:
        """Share of comparisons that hold less the share that are opposite: −1 to 1."""
        return (self.holds - self.opposite) / self.total if self.total else 0.0


@dataclass(frozen=True)
class Visited:
    """A point and what was found there."""

    planned: Planned
    #: By claim; empty where the point is invalid.
    answers: Mapping[str, Answer] = field(default_factory=dict)
    #: Why the point is invalid; empty where it is not.
    invalid: str = ""


def at(paper: Paper, point: Point) -> Paper:
    """The paper in its primary set-up at a point: no variants, no sweeps, its tables as the point says."""
    about: dict[str, Any] = {**paper.about, "setups": paper.setups[:1], "variants": [], "sweeps": []}
    # Asks `experiments` for fewer points of figures that have many.
    about["coarse"] = True
    for choice in point.values():
        about.update(choice.paper)
    return replace(paper, about=about)


def cells_of(paper: Paper, factors: Sequence[Factor], point: Point, seeds: int) -> list[list[Job]]:
    """What is run at a point, in batches: shortened as the topologies say, with at most `seeds` seeds."""
    here = at(paper, point)
    batches = here.module("experiments").jobs(here)
    return [
        [
            replace(job, seeds=min(job.seeds, seeds), values=_values(here, job, factors, point))
            for job in batch
            if not job.cell.variant
        ]
        for batch in batches
    ]


def _values(paper: Paper, job: Job, factors: Sequence[Factor], point: Point) -> dict[str, object]:
    """A job's values with the point's put after them, so that they act on whatever the job sets."""
    values = dict(job.values)
    short = paper.find("topologies", job.cell.topology).get("atlas", {})
    for path, value in {**short, **apply(point, factors, job.cell.scheme, job.cell.topology)}.items():
        values.pop(path, None)
        values[path] = value
    return values


def visit(
    paper: Paper,
    factors: Sequence[Factor],
    points: Sequence[Planned],
    *,
    seeds: int,
    first: int = 1,
    jobs: int | None = None,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Visited]:
    """Run and judge the paper at `points`, with seeds `first` to `first + seeds − 1`; answers in their order.

    `progress` is told runs finished and runs in all.
    """
    tell = progress or (lambda finished, runs: None)
    runs = [
        sum(job.seeds for batch in cells_of(paper, factors, p.point, seeds) for job in batch) for p in points
    ]
    total, finished = sum(runs), 0
    found: list[Visited] = []
    for start, end in _groups(runs):
        done = finished

        def more(ran: int, done: int = done) -> None:
            tell(done + ran, total)

        found += _visit(paper, factors, points[start:end], seeds, first, jobs, cache, more)
        finished += sum(runs[start:end])
        tell(finished, total)
    return found


def _groups(runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut points into groups of about `TOGETHER` runs."""
    start, size = 0, 0
    for index, n in enumerate(runs):
        size += n
        if size >= TOGETHER:
            yield start, index + 1
            start, size = index + 1, 0
    if start < len(runs):
        yield start, len(runs)


class _Place:
    """A point while its cells are run."""

    def __init__(self, paper: Paper, factors: Sequence[Factor], planned: Planned, seeds: int) -> None:
        self.planned = planned
        self.paper = at(paper, planned.point)
        self.tables = {k: v for choice in planned.point.values() for k, v in choice.paper.items()}
        self.batches = cells_of(paper, factors, planned.point, seeds)
        self.cells: dict[Cell, Measures] = {}
        self.invalid = ""

    def refuse(self, why: str) -> None:
        self.invalid = self.invalid or why

    def answers(self) -> Visited:
        if self.invalid:
            return Visited(self.planned, invalid=self.invalid)
        try:
            findings = self.paper.module("claims").findings(self.paper, self.cells)
        except ValueError as error:
            return Visited(self.planned, invalid=str(error))
        return Visited(self.planned, {f.claim: _answer(f) for f in findings})


def _answer(finding: Any) -> Answer:
    """Judge one claim; what cannot be judged (a measure that is not a number there) is undecidable."""
    try:
        [judged] = judge([finding])
    except ValueError as error:
        return Answer(Verdict.UNDECIDABLE, total=len(finding.comparisons), why=str(error))
    by = [c.outcome for c in judged.comparisons]
    why = judged.summary if judged.verdict is Verdict.UNDECIDABLE else ""
    return Answer(judged.verdict, by.count("holds"), by.count("opposite"), len(by), why)


def _reason(error: ScenarioError) -> str:
    """Why an experiment is refused: its first error, by key and value and not by file."""
    wrong = next(p for p in error.problems if p.severity == "error")
    return (
        f"{wrong.path} = {wrong.value}: {wrong.problem}" if wrong.value else f"{wrong.path}: {wrong.problem}"
    )


def _visit(
    paper: Paper,
    factors: Sequence[Factor],
    points: Sequence[Planned],
    seeds: int,
    first: int,
    jobs: int | None,
    cache: Path | None,
    progress: Callable[[int], None],
) -> list[Visited]:
    places = [_Place(paper, factors, planned, seeds) for planned in points]
    measure = paper.module("measure").measure
    base: dict[str, Scenario] = {}
    ran = 0
    for number in range(max(len(place.batches) for place in places)):
        work: list[tuple[_Place, Job, Scenario]] = []
        for place in places:
            for job in place.batches[number] if number < len(place.batches) else ():
                if place.invalid:
                    continue
                try:
                    scenario, _ = scenario_of(place.paper, job, place.cells, base)
                except ScenarioError as error:
                    place.refuse(_reason(error))
                    continue
                work.append((place, job, scenario))

        def reduce(index: int, result: Any, work: list[tuple[_Place, Job, Scenario]] = work) -> Measures:
            place, job, _ = work[index]
            try:
                found: Measures = measure(result, job.cell, place.paper)
            except ValueError as error:
                place.refuse(f"{job.cell}: {error}")
                found = Measures(result.seeds, {}, {})
            return found

        experiments = [
            Experiment(
                scenario,
                range(first, first + job.seeds),
                # The point's own tables decide what is measured.
                [*measured_with(place.paper, job), place.tables],
            )
            for place, job, scenario in work
        ]
        measured = measure_all(
            experiments,
            reduce,
            jobs=jobs,
            cache=None if cache is None else cache / paper.name,
            progress=lambda done, ran=ran: progress(ran + done),  # type: ignore[misc]
        )
        for (place, job, _), measures in zip(work, measured, strict=True):
            if measures.values:
                place.cells[job.cell] = measures
            else:
                place.refuse(f"{job.cell}: nothing could be measured")
        ran += sum(job.seeds for _, job, _ in work)
    return [place.answers() for place in places]
