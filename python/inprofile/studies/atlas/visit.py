"""Visiting points: the paper's plain cells run at each, and all claims judged there.

What is finished stays in the cache, cell by cell, so an interrupted atlas goes on where it was. Points may be
invalid: see `papers.rerun`.

Which points an atlas visits: the default, each factor changed alone, and a Sobol design over the box. The
points along each factor give the nearest place where a claim changes; the Sobol points (scrambled, from a
seed that depends on the paper's name only) fill the box evenly and are what shares are taken over. A larger
budget has all points of a smaller one, and goes on from what is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from ..._input import MOST_POINTS
from ...papers import Job, Paper, rerun
from ...papers.factors import Factor, Point, apply
from ...papers.rerun import Answer
from ...run.pool import Backend
from ..sweep.axes import sobol

Kind = Literal["default", "along", "sobol"]


@dataclass(frozen=True)
class Planned:
    """A point of the design."""

    kind: Kind
    point: Point

    def changed(self, factors: Sequence[Factor]) -> dict[str, str | float]:
        """The differences from the default, by factor."""
        return {f.id: self.point[f.id].value for f in factors if self.point[f.id].value != f.default.value}


def design(factors: Sequence[Factor], budget: int, name: str) -> list[Planned]:
    """List `budget` points of the box of `factors`: at most half of them along the axes.

    Raises ValueError where there is nothing to vary, and for a budget of none or too large.
    """
    if budget < 1:
        raise ValueError(f"a budget of {budget} points visits nothing: give 1 or more")
    if budget > MOST_POINTS:
        raise ValueError(f"a budget of more than {MOST_POINTS} points: give fewer; 48 to 256 will do")
    if not factors:
        raise ValueError("there is nothing to vary: no reading and no input is listed")
    default = {f.id: f.default for f in factors}
    planned = [Planned("default", default)]
    # First one change of every factor, then another: a small budget still sees each factor.
    rounds = zip_longest(*([(f.id, c) for c in f.others()] for f in factors))
    along = [change for changes in rounds for change in changes if change is not None]
    planned += [Planned("along", {**default, **dict([change])}) for change in along[: (budget - 1) // 2]]
    rest = budget - len(planned)
    planned += [
        Planned("sobol", {f.id: f.at(u) for f, u in zip(factors, row, strict=True)})
        for row in sobol(len(factors), rest, f"atlas {name}")
    ]
    return planned


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
