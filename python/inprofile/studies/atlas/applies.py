"""Which readings and inputs a claim's experiments contain: nothing else can decide it.

A factor applies to a claim where one of its choices changes a run that the claim rests on
(`claims.rests_on`): another experiment, another set of them. A value of flows that are not there changes
nothing. Where a choice changes no run of the paper at all, it says how runs are judged (whose throughput
counts): then it applies to the `claims` that the paper's file names, or to all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...experiment.scenario import load
from ...papers import Cell, Job, Paper
from ...papers.factors import Factor
from .visit import cells_of

__all__ = ["applying"]

#: What is run of a claim: by cell, the file and what is set in it.
_Runs = Mapping[Cell, tuple[str, Mapping[str, object]]]


def applying(paper: Paper, factors: Sequence[Factor], claims: Collection[str]) -> dict[str, list[Factor]]:
    """The factors that apply to each of `claims`, in their order."""
    default = {f.id: f.default for f in factors}
    plain = _runs(paper, cells_of(paper, factors, default, 1))
    of = {claim: {cell for cell in plain if paper.rests_on(claim, cell)} for claim in claims}
    found: dict[str, list[Factor]] = {claim: [] for claim in claims}
    for factor in factors:
        changed = [
            _runs(paper, cells_of(paper, factors, {**default, factor.id: choice}, 1))
            for choice in factor.others()
        ]
        touches_none = all(runs == plain for runs in changed)
        for claim in claims:
            if touches_none:
                applies = claim in factor.claims if factor.claims else True
            else:
                applies = any(_differ(paper, claim, of[claim], plain, runs) for runs in changed)
            if applies:
                found[claim].append(factor)
    return found


def _differ(paper: Paper, claim: str, cells: Collection[Cell], plain: _Runs, other: _Runs) -> bool:
    """Whether two points run different things for a claim."""
    there = {cell for cell in other if paper.rests_on(claim, cell)}
    return there != set(cells) or any(plain[cell] != other[cell] for cell in cells)


def _runs(paper: Paper, batches: Sequence[Sequence[Job]]) -> _Runs:
    return {job.cell: (job.file, _effective(paper, job)) for batch in batches for job in batch}


def _effective(paper: Paper, job: Job) -> Mapping[str, object]:
    """The settings of a job, without those of flows that are not there."""
    counts = {**_counts(paper.folder / job.file)}
    for path, value in job.values.items():
        if path.startswith("flows.") and path.endswith(".count"):
            counts[path.split(".")[1]] = value
    absent = tuple(f"flows.{name}." for name, count in counts.items() if count == 0)
    return {path: value for path, value in job.values.items() if not path.startswith(absent)}


@cache
def _counts(place: Path) -> Mapping[str, Any]:
    """How many flows each group of a scenario file has."""
    return {group["name"]: group.get("count", 1) for group in load(place).as_written["flows"]}
