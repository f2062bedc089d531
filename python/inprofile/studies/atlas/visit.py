"""Visiting points: the paper's plain cells run at each, and all claims judged there.

What is finished stays in the cache, cell by cell, so an interrupted atlas goes on where it was. Points may be
invalid: see `papers.rerun`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...papers import Job, Paper, rerun
from ...papers.factors import Factor, Point, apply
from ...papers.rerun import Answer
from ...run.pool import Backend
from .design import Planned

__all__ = ["Visited", "at", "cells_of", "visit"]

#: Runs that are under way together: enough for any machine's cores, few enough that little is lost.
TOGETHER = 64


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
    """The runs at a point, in batches: shortened as the topologies say, with at most `seeds` seeds."""
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
    backend: Backend | None = None,
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

        found += _visit(paper, factors, points[start:end], seeds, first, backend, cache, more)
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


def _visit(
    paper: Paper,
    factors: Sequence[Factor],
    points: Sequence[Planned],
    seeds: int,
    first: int,
    backend: Backend | None,
    cache: Path | None,
    progress: Callable[[int], None],
) -> list[Visited]:
    trials = [
        rerun.Trial(
            at(paper, planned.point),
            cells_of(paper, factors, planned.point, seeds),
            # The point's own tables decide what is measured.
            {k: v for choice in planned.point.values() for k, v in choice.paper.items()},
        )
        for planned in points
    ]
    place = None if cache is None else cache / paper.name
    rerun.run(trials, first=first, backend=backend, cache=place, progress=progress)
    return [
        Visited(planned, trial.answers(), trial.invalid)
        for planned, trial in zip(points, trials, strict=True)
    ]
