"""A cell's experiment, and what decides its measures beside the runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from . import Cell, Job, Paper

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario

__all__ = ["examples", "measured_with", "scenario_of"]


def scenario_of(
    paper: Paper, job: Job, cells: Mapping[Cell, Any], base: dict[str, Scenario]
) -> tuple[Scenario, Mapping[str, object]]:
    """Build a cell's experiment, and those of its values that were derived from other cells' runs."""
    from ..experiment.scenario import load

    if job.file not in base:
        base[job.file] = load(paper.folder / job.file)
    extra: Mapping[str, object] = {}
    if job.after is not None:
        extra = paper.module("claims").derived(job.cell.scheme, cells[job.after])
    return base[job.file].with_({**job.values, **extra}), extra


def examples(papers: Sequence[tuple[Paper, Sequence[Job]]]) -> list[tuple[Scenario, float]]:
    """A few of their jobs' experiments, with the seconds of one core that a run of each is said to take."""
    from ..experiment.scenario import load
    from ..run.pace import sampled

    every = [(paper, job) for paper, jobs in papers for job in jobs if job.after is None]
    return [(load(paper.folder / job.file).with_(job.values), job.cost) for paper, job in sampled(every)]


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
