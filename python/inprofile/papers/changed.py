"""An experiment with what its paper sets in it: a value that cannot be is told where the paper says it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from . import Cell, Entry, Job, Paper
from .factors import Factor

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario

__all__ = ["changed", "check_experiments"]


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
