"""Reproduce a paper: run its experiments, judge its claims, write its report.

A paper's cells (set-up × topology × scheme, with and without sender jitter) are run with the same seeds, so
that schemes are compared seed by seed. Of each cell only what claims and figures need is kept; that is also
what the cache holds, so an interrupted reproduction goes on where it was.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import papers as _papers
from ._version import __version__
from .judge import Judged, judge
from .papers import Cell, Paper

if TYPE_CHECKING:
    from .results import Result
    from .scenario import Scenario

__all__ = ["Job", "Plan", "Report", "plan", "reproduce"]

#: Where measures of finished cells are kept, from the working directory.
CACHE = Path("results/cache")

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


@dataclass(frozen=True)
class Job:
    """One cell and how many seeds it is run with."""

    cell: Cell
    seeds: int


@dataclass(frozen=True)
class Plan:
    """What a reproduction will run."""

    paper: Paper
    quick: bool
    sweeps: bool
    #: Jobs of a batch run together; a batch may need the results of those before it.
    batches: Sequence[Sequence[Job]]

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
        """Roughly how much computing that is, on one core."""
        cost = {t["id"]: float(t["cost"]) for t in self.paper.topologies}
        return sum(job.seeds * cost[job.cell.topology] for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""
        return {
            "paper": self.paper.name,
            "quick": self.quick,
            "experiments": sum(1 for _ in self.jobs),
            "runs": self.runs,
            "cpu_seconds": round(self.cpu_seconds, 1),
        }


def plan(name: str, quick: bool = False, sweeps: bool = False) -> Plan:
    """List what `reproduce` would run for one paper. Raises `papers.UnknownPaperError`."""
    paper = _papers.load(name)
    seeds = paper.about["seeds"]
    full, few = (seeds["quick"], seeds["sweep_quick"]) if quick else (seeds["full"], seeds["sweep"])
    first = [s["id"] for s in paper.schemes if "after" not in s]
    later = [s["id"] for s in paper.schemes if "after" in s]
    batches: list[list[Job]] = []
    for jitter in (False, True):
        for setup in paper.setups:
            for topology in paper.topologies:
                for schemes in (first, later):
                    batches.append(
                        [Job(Cell(setup["id"], topology["id"], scheme, jitter), full) for scheme in schemes]
                    )
    for sweep in paper.sweeps:
        if sweep.get("more", False) and not sweeps:
            continue
        batches += [[Job(cell, few) for cell in group] for group in _sweep_cells(paper, sweep, sweeps)]
    return Plan(paper, quick, sweeps, batches)


def _sweep_cells(paper: Paper, sweep: Mapping[str, Any], everything: bool) -> Iterator[list[Cell]]:
    """Cells of a sweep, by set-up and topology; the first topology alone unless `everything`."""
    schemes = sweep.get("schemes") or [s["id"] for s in paper.schemes if "after" not in s]
    for setup in sweep["setups"]:
        for topology in paper.topologies if everything else paper.topologies[:1]:
            yield [
                Cell(setup, topology["id"], scheme, sweep=sweep["id"], value=str(value))
                for value in values_of(sweep, topology["id"])
                for scheme in schemes
            ]


def values_of(sweep: Mapping[str, Any], topology: str) -> list[Any]:
    """Values of a sweep: the same for every topology, or its own for each."""
    values = sweep["values"]
    return list(values[topology] if isinstance(values, Mapping) else values)


@dataclass
class Report:
    """A reproduced paper: what was measured, and the verdicts."""

    paper: Paper
    quick: bool
    #: Measures of every cell, as the paper's `measure` makes them.
    cells: dict[Cell, Any]
    #: Verdicts, one a claim and set-up; without jitter, and the same claims with jitter.
    judged: list[Judged]
    judged_with_jitter: list[Judged]
    #: Digest of each cell's effective experiment.
    digests: dict[Cell, str]
    #: Parameters that were derived from other cells' runs (a placebo's rate).
    derived: dict[Cell, Mapping[str, object]] = field(default_factory=dict)
    version: str = __version__
    #: The page, once written.
    page: Path | None = None

    @property
    def seeds(self) -> int:
        """How many seeds the verdicts rest on."""
        return int(self.paper.about["seeds"]["quick" if self.quick else "full"])

    def to_json(self) -> dict[str, Any]:
        """One entry of the `papers` list that `reproduce --json` prints."""
        from .report.data import report_json

        return report_json(self)


def reproduce(
    papers: Sequence[str] | None = None,
    quick: bool = False,
    sweeps: bool = False,
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
) -> list[Report]:
    """Reproduce `papers` (all of them if left out), write a page and its figures' data for each.

    `quick` uses fewer seeds, and the page says so; `sweeps` varies more of the assumed parameters, for
    every topology. `jobs` is the number of threads. The page is `<out>/<paper>/index.html`, beside it
    `results.json`.

    Raises `papers.UnknownPaperError`, and KeyboardInterrupt when interrupted; `cache` has what is finished.
    """
    plans = [plan(name, quick, sweeps) for name in (papers or _papers.names())]
    total = sum(p.runs for p in plans)
    before = 0
    reports = []
    for planned in plans:
        report = _run(planned, jobs, None if cache is None else Path(cache), _from(progress, before, total))
        before += planned.runs
        from .report import write

        report.page = write(report, Path(out) / planned.paper.name)
        reports.append(report)
    return reports


def _from(progress: Progress | None, before: int, total: int) -> Progress:
    """Progress of one paper as a part of all."""
    if progress is None:
        return lambda done, _, what: None
    return lambda done, _, what: progress(before + done, total, what)


def _run(planned: Plan, jobs: int | None, cache: Path | None, progress: Progress) -> Report:
    paper = planned.paper
    cells: dict[Cell, Any] = {}
    digests: dict[Cell, str] = {}
    derived: dict[Cell, Mapping[str, object]] = {}
    base: dict[tuple[str, str], Scenario] = {}
    finished = 0
    for batch in planned.batches:
        work = []
        for job in batch:
            scenario, extra = _scenario(paper, job.cell, cells, base)
            digests[job.cell] = hashlib.sha256(scenario.canonical.encode()).hexdigest()
            if extra:
                derived[job.cell] = extra
            work.append((job, scenario))
        measured = _batch(paper, work, jobs, cache, finished, planned.runs, progress)
        # In the order of the plan, not of completion: the report is the same however it was run.
        cells.update((job.cell, measured[job.cell]) for job in batch)
        finished += sum(job.seeds for job in batch)
        progress(finished, planned.runs, "")
    claims = paper.module("claims")
    return Report(
        paper,
        planned.quick,
        cells,
        judge(claims.findings(paper, cells)),
        judge(claims.findings(paper, cells, jitter=True)),
        digests,
        derived,
    )


def _scenario(
    paper: Paper, cell: Cell, cells: Mapping[Cell, Any], base: dict[tuple[str, str], Scenario]
) -> tuple[Scenario, Mapping[str, object]]:
    """Build a cell's experiment, and those of its values that were derived from other cells' runs."""
    from .scenario import load

    key = (cell.setup, cell.topology)
    if key not in base:
        base[key] = load(paper.folder / paper.find("setups", cell.setup)["scenarios"][cell.topology])
    scheme = paper.find("schemes", cell.scheme)
    values: dict[str, object] = dict(scheme.get("set", {}))
    extra: Mapping[str, object] = {}
    if "after" in scheme:
        source = Cell(cell.setup, cell.topology, scheme["after"], cell.jitter)
        extra = paper.module("claims").derived(scheme["id"], cells[source])
        values.update(extra)
    if cell.jitter:
        values["tcp.jitter"] = paper.find("topologies", cell.topology)["jitter"]
    if cell.sweep:
        sweep = paper.find("sweeps", cell.sweep)
        written = {str(v): v for v in values_of(sweep, cell.topology)}
        values[sweep["key"]] = written[cell.value]
        # A sweep needs rates and drops only.
        values["monitors"] = []
    return base[key].with_(values), extra


def _batch(
    paper: Paper,
    work: Sequence[tuple[Job, Scenario]],
    jobs: int | None,
    cache: Path | None,
    finished: int,
    total: int,
    progress: Progress,
) -> dict[Cell, Any]:
    """Measures of a batch: from the cache, or run now and put there."""
    from ._runner import run_many

    part = paper.module("measure")
    measured: dict[Cell, Any] = {}
    missing: list[tuple[Job, Scenario, Path | None]] = []
    for job, scenario in work:
        place = None if cache is None else cache / paper.name / f"{_key(paper, job, scenario)}.npz"
        kept = None if place is None else part.Measures.read(place)
        if kept is None:
            missing.append((job, scenario, place))
        else:
            measured[job.cell] = kept
            finished += job.seeds
    if not missing:
        return measured

    def done(index: int, result: Result) -> None:
        job, _, place = missing[index]
        measures = part.measure(result, paper.find("setups", job.cell.setup), paper.about["shown_seed"])
        if place is not None:
            _keep(place, measures)
        measured[job.cell] = measures

    what = _common([job.cell for job, _, _ in missing])
    run_many(
        [(scenario, job.seeds) for job, scenario, _ in missing],
        jobs=jobs,
        progress=lambda ran, _: progress(finished + ran, total, what),
        done=done,
    )
    return measured


def _common(cells: Sequence[Cell]) -> str:
    """Name what cells of one batch have in common, in words."""
    first = cells[0]
    if first.sweep:
        return f"{first.setup}, {first.topology}: sweep of {first.sweep}"
    schemes = ", ".join(cell.scheme for cell in cells)
    return f"{first.setup}, {first.topology}: {schemes}{' with jitter' if first.jitter else ''}"


def _key(paper: Paper, job: Job, scenario: Scenario) -> str:
    """Digest of all that decides a cell's measures: experiment, seeds, simulator, way of measuring."""
    from ._runner import _engine

    measuring = inspect.getsource(paper.module("measure"))
    queue = paper.find("setups", job.cell.setup).get("queue")
    parts = [
        scenario.canonical,
        job.seeds,
        __version__,
        _engine(),
        measuring,
        queue,
        paper.about["shown_seed"],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _keep(place: Path, measures: Any) -> None:
    """Write whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            measures.write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def minutes(seconds: float) -> str:
    """Say a length of time as a person says it.

    >>> minutes(42), minutes(100), minutes(3600)
    ('42 s', '1 min 40 s', '60 min')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest} s" if rest and whole < 10 else f"{whole} min"
