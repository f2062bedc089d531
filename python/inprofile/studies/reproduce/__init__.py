"""Reproduce a paper: run its experiments, judge its claims, write its report.

A paper's cells (set-up × topology × scheme, under several conditions) are run with the same seeds, so
that schemes are compared seed by seed. Of each cell only what claims and figures need is kept; that is also
what the cache holds, so an interrupted reproduction goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import papers as _papers
from ...papers import Batches, Cell, Job, Paper, rerun, verdicts
from ...papers.experiment import Work, check_experiments, measure_work, measured_with, work_of
from ...papers.judge import judge
from ...papers.parameters import check_origins
from ...papers.report import Report
from ...papers.verdicts import Ran
from ...run.pool import Backend, Local

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario

__all__ = ["ReproductionPlan", "answered", "plan", "reproduce"]

#: Where measures of finished cells are kept, from the working directory.
CACHE = Path("results/cache")

#: Seconds of one core, as those that papers give for runs: to judge a paper's claims and to write its page.
PAGE = 7.0

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


@dataclass(frozen=True)
class ReproductionPlan:
    """The runs of a reproduction."""

    paper: Paper
    quick: bool
    full: bool
    batches: Batches

    @property
    def jobs(self) -> Iterator[Job]:
        """All of them, in order."""
        return (job for batch in self.batches for job in batch)

    @property
    def runs(self) -> int:
        """How many simulations that is."""
        return sum(job.seeds for job in self.jobs)

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core: equal runs of a batch are made once."""
        once = [{job.experiment: job for job in batch} for batch in self.batches]
        return sum(job.seeds * job.cost for jobs in once for job in jobs.values())

    @property
    def alone(self) -> float:
        """Seconds, likewise, in which other cores wait: a batch's last run, and what follows the runs."""
        return PAGE + sum(max((job.cost for job in batch), default=0.0) for batch in self.batches)

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""
        return {
            "paper": self.paper.name,
            "quick": self.quick,
            "full": self.full,
            "experiments": sum(1 for _ in self.jobs),
            "runs": self.runs,
            "cpu_seconds": round(self.cpu_seconds, 1),
        }


def plan(name: str, quick: bool = False, full: bool = False) -> ReproductionPlan:
    """List what `reproduce` would run for one paper.

    Raises `papers.UnknownPaperError`, `papers.PaperError` for a folder of your own that is no paper, and
    `ScenarioError` for one with an experiment that cannot run.
    """
    paper = _papers.load(name)
    # What judges nothing or cannot be run is refused before anything has run.
    paper.module("claims")
    planned = _plan_of(paper, quick, full)
    check_experiments(paper, [*planned.jobs])
    check_origins(paper)
    return planned


def _plan_of(paper: Paper, quick: bool, full: bool) -> ReproductionPlan:
    return ReproductionPlan(paper, quick, full, paper.module("experiments").jobs(paper, quick, full))


def reproduce(
    papers: Sequence[str] | None = None,
    quick: bool = False,
    full: bool = False,
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
    figures: str | None = None,
    atlas: bool = False,
    senders: bool = False,
    *,
    backend: Backend | None = None,
) -> list[Report]:
    """Reproduce `papers` (default: all), write a page and its figures' data for each.

    `quick` uses fewer seeds, and the page says so; `full` adds the crossed readings, further set-ups and the
    sweeps of assumed parameters. `jobs` is the number of threads; `backend` makes
    the runs elsewhere (`run.clusters`). The page is `<out>/<paper>/index.html`;
    beside it are `results.json` and `measures.csv`, and `figures` ("svg" or "pdf") adds every figure fit to
    print. `<out>/index.html` has the verdicts of all papers reproduced there. A page shows the atlas in
    the paper's folder; with `atlas` one with as many points is computed, shown, and written beside the page.
    Likewise `senders` with every scheme and claim under today's TCP senders (`papers.rerun`).

    Raises `papers.UnknownPaperError`, and KeyboardInterrupt when interrupted; `cache` has what is finished.
    """
    plans = [plan(name, quick, full) for name in (papers or _papers.names())]
    total = sum(p.runs for p in plans)
    before = 0
    where = backend or Local(jobs)
    reports = []
    for planned in plans:
        place = None if cache is None else Path(cache)
        report = _run(planned, where, place, _from(progress, before, total))
        report.atlas = _atlas(planned.paper, Path(out), where, place, progress) if atlas else report.atlas
        report.today = _today(planned, Path(out), where, place, progress) if senders else report.today
        before += planned.runs
        from .report import write, write_overview

        report.page = write(report, Path(out) / planned.paper.name, figures)
        reports.append(report)
        write_overview(Path(out))
    return reports


def _atlas(
    paper: Paper, out: Path, backend: Backend, cache: Path | None, progress: Progress | None
) -> dict[str, Any]:
    """Recompute the paper's atlas, with as many points as the one in its folder has."""
    from .. import atlas as work
    from ..atlas.store import NAME, atlas_json, committed, write

    before = committed(paper)
    planned = work.plan(paper.name, work.BUDGET if before is None else before["points"])
    found = work.make(planned, None, None if cache is None else cache / "atlas", progress, backend=backend)
    folder = out / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    write(found, folder / NAME)
    return atlas_json(found)


def _today(
    planned: ReproductionPlan, out: Path, backend: Backend, cache: Path | None, progress: Progress | None
) -> dict[str, Any]:
    """Run the paper under today's TCP senders, and write what was found beside the page."""
    paper, work = planned.paper, rerun.plan(planned.paper, planned.quick)
    tell = progress or (lambda finished, runs, what: None)
    found = rerun.make(
        work,
        backend,
        None if cache is None else cache / paper.name,
        lambda done: tell(done, work.runs, f"{paper.name} under today's TCP"),
    )
    folder = out / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    rerun.write(found, folder / rerun.NAME)
    return found


def _from(progress: Progress | None, before: int, total: int) -> Progress:
    """Progress of one paper as a part of all."""
    if progress is None:
        return lambda done, _, what: None
    return lambda done, _, what: progress(before + done, total, what)


def _run(planned: ReproductionPlan, backend: Backend, cache: Path | None, progress: Progress) -> Report:
    paper = planned.paper
    cells: dict[Cell, Any] = {}
    digests: dict[Cell, str] = {}
    derived: dict[Cell, Sequence[Mapping[str, object]]] = {}
    base: dict[str, Scenario] = {}
    finished = 0
    for batch in planned.batches:
        work = []
        for job in batch:
            made = work_of(paper, job, cells, base)
            digests[job.cell] = made.digest
            if made.derived:
                derived[job.cell] = made.derived
            work.append((job, made))
        measured = _batch(paper, work, backend, cache, finished, planned.runs, progress)
        # In the order of the plan, not of completion: the report is the same however it was run.
        cells.update((job.cell, measured[job.cell]) for job in batch)
        finished += sum(job.seeds for job in batch)
        progress(finished, planned.runs, "")
    return answered(planned, cells, digests, derived)


def answered(
    planned: ReproductionPlan,
    cells: dict[Cell, Any],
    digests: dict[Cell, str],
    derived: dict[Cell, Sequence[Mapping[str, object]]],
) -> Report:
    """Judge what was measured; claims of which not all was run get their committed verdicts."""
    from ..atlas.store import committed as atlas_of

    paper = planned.paper
    ran = Ran(paper, planned.batches, _plan_of(paper, planned.quick, True).batches)
    # All that can be judged is, so that Holm's correction is over as many claims as there are.
    judged = judge(paper.findings(cells))
    return Report(
        paper,
        planned.quick,
        planned.full,
        cells,
        ran.whole(judged),
        {v: ran.whole(judge(paper.findings(cells, v)), v) for v in _variants(paper, cells)},
        {job.cell: job for job in planned.jobs},
        digests,
        derived,
        atlas=atlas_of(paper),
        today=rerun.committed(paper),
        committed=verdicts.committed(paper),
    )


def _variants(paper: Paper, cells: Mapping[Cell, Any]) -> list[str]:
    """The paper's variants that were run, or are judged from the plain runs."""
    ran = {cell.variant for cell in cells}
    return [v.id for v in paper.variants if v.id in ran or v.flag("same_runs")]


def _batch(
    paper: Paper,
    work: Sequence[tuple[Job, Work]],
    backend: Backend,
    cache: Path | None,
    finished: int,
    total: int,
    progress: Progress,
) -> dict[Cell, Any]:
    """Measures of a batch: from the cache, or run now and put there."""
    measure = paper.module("measure").measure
    cells = [job.cell for job, _ in work]
    what = _common(cells)
    measured = measure_work(
        [made for _, made in work],
        [measured_with(paper, job) for job, _ in work],
        lambda index, result: measure(result, cells[index], paper),
        backend=backend,
        cache=None if cache is None else cache / paper.name,
        progress=lambda done: progress(finished + done, total, what),
    )
    return dict(zip(cells, measured, strict=True))


def _common(cells: Sequence[Cell]) -> str:
    """Name what cells of one batch have in common, in words."""
    first = cells[0]
    if first.sweep:
        return f"{first.setup}, {first.topology}: {first.sweep}"
    schemes = ", ".join(dict.fromkeys(cell.scheme for cell in cells))
    return f"{first.setup}, {first.topology}: {schemes}{first.variant and f', {first.variant}'}"
