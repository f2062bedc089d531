"""What is run for paper A: set-up × topology × scheme, with and without sender jitter, and the sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["VARIANTS", "jobs", "values_of"]

#: Without and with sender jitter.
VARIANTS = ("", "jitter")


def jobs(paper: Paper, quick: bool = False, sweeps: bool = False) -> Batches:
    """List what `reproduce` runs; derived schemes come after those they are derived from."""
    seeds = paper.about["seeds"]
    full, few = (seeds["quick"], seeds["sweep_quick"]) if quick else (seeds["full"], seeds["sweep"])
    first = [s["id"] for s in paper.schemes if "after" not in s]
    later = [s["id"] for s in paper.schemes if "after" in s]
    batches = [
        [_job(paper, Cell(setup["id"], topology["id"], scheme, variant), full) for scheme in schemes]
        for variant in VARIANTS
        for setup in paper.setups
        for topology in paper.topologies
        for schemes in (first, later)
    ]
    for sweep in paper.sweeps:
        if sweeps or not sweep.get("more", False):
            batches += [[_job(paper, c, few) for c in group] for group in _sweep_cells(paper, sweep, sweeps)]
    return batches


def values_of(sweep: Mapping[str, Any], topology: str) -> list[Any]:
    """Values of a sweep: the same for every topology, or its own for each."""
    values = sweep["values"]
    return list(values[topology] if isinstance(values, Mapping) else values)


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


def _job(paper: Paper, cell: Cell, seeds: int) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    values: dict[str, object] = dict(scheme.get("set", {}))
    if cell.variant == "jitter":
        values["tcp.jitter"] = topology["jitter"]
    if cell.sweep:
        sweep = paper.find("sweeps", cell.sweep)
        written = {str(v): v for v in values_of(sweep, cell.topology)}
        values[sweep["key"]] = written[cell.value]
        # A sweep needs rates and drops only.
        values["monitors"] = []
    after = Cell(cell.setup, cell.topology, scheme["after"], cell.variant) if "after" in scheme else None
    file = paper.find("setups", cell.setup)["scenarios"][cell.topology]
    return Job(cell, seeds, file, values, topology["cost"], after)
