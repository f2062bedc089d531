"""A cell's experiment, and what decides its measures beside the runs.

An experiment with what its paper sets in it: a value that cannot be is told where the paper says it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import Cell, Entry, Job, Paper
from .factors import Factor

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario
    from ..metrics.measures import Measures
    from ..run.pool import Backend, Seeds
    from ..run.results import Result


def changed(paper: Paper, job: Job, scenario: Scenario) -> Scenario:
    """A job's file with what network, set-up, scheme, variant and sweep set. Raises `ScenarioError`."""
    return _with(scenario, job.values, list(_setters(paper, job.cell)))


def check_experiments(paper: Paper, jobs: Sequence[Job]) -> None:
    """Refuse a paper with an experiment that cannot be run, or a reading or an input that cannot be set.

    A choice that goes with some others only is left to the atlas: refused is what has none that can be.
    Raises `ScenarioError`.
    """
    from ..experiment.scenario import load

    files: dict[str, Scenario] = {}
    plain: list[tuple[Job, Scenario]] = []
    for job in jobs:
        if job.file not in files:
            files[job.file] = load(paper.folder / job.file)
        if job.after is None:
            plain.append((job, changed(paper, job, files[job.file])))
    entries = [*paper.top.tables("readings"), *paper.top.tables("inputs")]
    for factor, entry in zip(paper.factors, entries, strict=True):
        first = next(
            (
                scenario
                for job, scenario in plain
                if (not factor.schemes or job.cell.scheme in factor.schemes)
                and (not factor.topologies or job.cell.topology in factor.topologies)
            ),
            None,
        )
        if first is not None:
            _settable(first, factor, entry)


def _settable(scenario: Scenario, factor: Factor, entry: Entry) -> None:
    """Refuse a factor none of whose choices can be set. Raises `ScenarioError`."""
    from ..experiment.scenario import ScenarioError

    by = [entry, *entry.tables("alternatives"), *entry.tables("values")]
    choices = [choice for choice in factor.others() if choice.set]
    refused: list[ScenarioError] = []
    for choice in choices:
        try:
            _with(scenario, choice.set, by)
        except ScenarioError as error:
            refused.append(error)
    if refused and len(refused) == len(choices):
        raise refused[0]


def _with(scenario: Scenario, values: Mapping[str, object], entries: Sequence[Entry]) -> Scenario:
    """The experiment with these values; what is wrong with one has the place of the entry that sets it."""
    from ..experiment.scenario import ScenarioError

    try:
        return scenario.with_(values)
    except ScenarioError as error:
        told = [replace(p, file=_place(entries, p.path) or p.file) for p in error.problems]
        text = "\n".join(str(problem) for problem in told)
        raise ScenarioError(text, json.dumps([asdict(problem) for problem in told])) from None


def _setters(paper: Paper, cell: Cell) -> Iterator[Entry]:
    """What sets something in a cell, what goes before the others first."""
    named = (
        ("sweeps", cell.sweep),
        ("variants", cell.variant),
        ("schemes", cell.scheme),
        ("setups", cell.setup),
        ("topologies", cell.topology),
    )
    for table, wanted in named:
        yield from (entry for entry in paper.top.tables(table) if entry.id == wanted)


def _place(entries: Sequence[Entry], path: str) -> str:
    """Where one of them sets a path, for all networks or for one; empty where none does."""
    for entry in entries:
        for key, value in entry.changes.items():
            if key == path or (isinstance(value, Mapping) and path in value):
                return entry.place("set")
        if entry.get("key") == path:
            return entry.place("values")
    return ""


@dataclass(frozen=True)
class Work:
    """A job as it is run: one experiment for all seeds, or one a seed where its values follow from others."""

    parts: Sequence[tuple[Scenario, Seeds]]
    #: Values that were derived from another cell's run of the same seed, a seed each; empty where none are.
    derived: Sequence[Mapping[str, object]] = ()

    @property
    def digest(self) -> str:
        """Of its effective experiments."""
        return hashlib.sha256("".join(scenario.canonical for scenario, _ in self.parts).encode()).hexdigest()


def work_of(
    paper: Paper,
    job: Job,
    cells: Mapping[Cell, Measures],
    base: dict[str, Scenario],
    seeds: Sequence[int] | None = None,
) -> Work:
    """Build a cell's experiment for its seeds: 1 to the job's number, or `seeds`.

    What is made from another cell's runs (`job.after`) is made seed by seed, so that pairs stay pairs.
    """
    from ..experiment.scenario import load

    if job.file not in base:
        base[job.file] = load(paper.folder / job.file)
    if job.after is None:
        return Work([(changed(paper, job, base[job.file]), job.seeds if seeds is None else seeds)])
    wanted = range(1, job.seeds + 1) if seeds is None else seeds
    source = cells[job.after]
    derive = paper.module("claims").derived
    made = [derive(job.cell.scheme, _of(source, seed)) for seed in wanted]
    parts = [
        (base[job.file].with_({**job.values, **extra}), (seed,))
        for seed, extra in zip(wanted, made, strict=True)
    ]
    return Work(parts, made)


def measure_work(
    work: Sequence[Work],
    also: Sequence[Sequence[object]],
    measure: Callable[[int, Result], Measures],
    *,
    backend: Backend | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Measures]:
    """Measures of each, all its seeds together. `also` decides them beside the runs: see `measure_all`."""
    from ..run.experiments import Experiment, measure_all

    owners = [index for index, one in enumerate(work) for _ in one.parts]
    parts = [part for one in work for part in one.parts]
    found = measure_all(
        [Experiment(scenario, seeds, also[i]) for i, (scenario, seeds) in zip(owners, parts, strict=True)],
        lambda index, result: measure(owners[index], result),
        backend=backend,
        cache=cache,
        progress=progress,
    )
    return [
        _joined([m for owner, m in zip(owners, found, strict=True) if owner == index])
        for index in range(len(work))
    ]


def _of(cell: Measures, seed: int) -> Measures:
    """The figures of one seed alone, without traces."""
    i = cell.seeds.index(seed)
    values, by_flow = (
        {name: x[i : i + 1] for name, x in found.items()} for found in (cell.values, cell.by_flow)
    )
    return replace(cell, seeds=(seed,), values=values, traces={}, by_flow=by_flow)


def _joined(parts: Sequence[Measures]) -> Measures:
    """Seeds that were run apart as one experiment's: without traces, which are over all seeds of one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if any(not part.values for part in parts):
        return replace(first, seeds=sum((part.seeds for part in parts), ()), values={}, traces={}, by_flow={})
    return replace(
        first,
        seeds=sum((part.seeds for part in parts), ()),
        values={name: np.concatenate([part.values[name] for part in parts]) for name in first.values},
        traces={},
        by_flow={name: np.concatenate([part.by_flow[name] for part in parts]) for name in first.by_flow},
    )


@dataclass(frozen=True)
class Example:
    """A job's experiment, whose runs are measured as the paper's are: what `run.pace` begins and times."""

    paper: Paper
    job: Job
    scenario: Scenario

    def expected_packets(self, seeds: Any = None) -> float:
        """How many data packets are to be expected."""
        return self.scenario.expected_packets(seeds)

    def check(self) -> Any:
        """Its effective values."""
        return self.scenario.check()

    def with_(self, changes: Any) -> Example:
        """The same with other values."""
        return replace(self, scenario=self.scenario.with_(changes))

    def run(self, seeds: int, jobs: int) -> None:
        """Make so many runs and measure them."""
        result = self.scenario.run(seeds=seeds, jobs=jobs)
        # What a moment's run lacks says nothing of the whole one, which tells its own errors.
        with warnings.catch_warnings(action="ignore"), suppress(ArithmeticError, LookupError, ValueError):
            self.paper.module("measure").measure(result, self.job.cell, self.paper)


def examples(papers: Sequence[tuple[Paper, Sequence[Job]]]) -> list[tuple[Example, float]]:
    """A few of their jobs, drawn by what all runs of each are said to take, with the seconds of one run."""
    from ..experiment.scenario import load
    from ..run.pace import weighted

    every = [((paper, job), job.cost * job.seeds) for paper, jobs in papers for job in jobs if not job.after]
    return [
        (Example(paper, job, load(paper.folder / job.file).with_(job.values)), job.cost)
        for paper, job in weighted(every)
    ]


#: Words for people, and estimates of time: they decide no measure, so changing them keeps the cache.
_WORDS = frozenset({"title", "text", "where", "fitted", "cost"})


def measured_with(paper: Paper, job: Job) -> list[object]:
    """What decides a cell's measures beside its runs: how it is measured, and what that reads."""
    from ..metrics import measures

    return [
        inspect.getsource(measures),
        inspect.getsource(paper.module("measure")),
        # A cell's place decides what is measured of it; so may anything else in the paper's own file.
        astuple(job.cell),
        {
            key: [_without_words(entry) for entry in paper.top.tables(key)]
            for key in ("setups", "topologies", "schemes", "variants")
        },
        paper.about.get("shown_seed"),
        *([_without_words(m) for m in paper.top.tables("computed")]),
    ]


def _without_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in _WORDS}
