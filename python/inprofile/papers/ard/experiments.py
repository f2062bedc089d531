"""What is run for paper A: set-up × topology × scheme, with and without sender jitter, and the sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["VARIANTS", "jobs", "sweep_jobs", "values_of"]

#: Without and with sender jitter.
VARIANTS = ("", "jitter")
#: Where everything that the edge marker is set to begins: the placebo has none of it.
_EDGE = "edges.ER.marker"


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs; derived schemes come after those they are derived from."""
    seeds = paper.about["seeds"]["quick" if quick else "full"]
    batches = [
        [_job(paper, Cell(setup["id"], topology["id"], scheme, variant), seeds) for scheme in schemes]
        for variant in VARIANTS
        for setup in paper.setups
        for topology in paper.topologies
        for schemes in _turns(paper, None)
    ]
    return batches + (list(sweep_jobs(paper, quick)) if full else [])


def sweep_jobs(paper: Paper, quick: bool = False) -> Iterator[list[Job]]:
    """Batches of all sweeps: one parameter varied at a time, on the first topology, few seeds."""
    seeds = paper.about["seeds"]["sweep_quick" if quick else "sweep"]
    topology = paper.topologies[0]["id"]
    for sweep in paper.sweeps:
        for setup in sweep["setups"]:
            for schemes in _turns(paper, sweep):
                yield [
                    _job(paper, Cell(setup, topology, scheme, sweep=sweep["id"], value=value), seeds)
                    for value in values_of(sweep)
                    for scheme in schemes
                ]


def values_of(sweep: Mapping[str, Any]) -> list[str]:
    """Values of a sweep as cells name them."""
    return [str(value) for value in sweep["values"]]


def _turns(paper: Paper, sweep: Mapping[str, Any] | None) -> list[list[str]]:
    """Schemes that run at once, and those that are derived from them."""
    wanted = None if sweep is None else sweep.get("schemes")
    schemes = [s for s in paper.schemes if wanted is None or s["id"] in wanted]
    return [[s["id"] for s in schemes if ("after" in s) == later] for later in (False, True)]


def _job(paper: Paper, cell: Cell, seeds: int) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    setup = paper.find("setups", cell.setup)
    values: dict[str, object] = {**setup.get("set", {}).get(cell.topology, {}), **scheme.get("set", {})}
    if cell.variant == "jitter":
        values["tcp.jitter"] = topology["jitter"]
    if cell.sweep:
        sweep = paper.find("sweeps", cell.sweep)
        values[sweep["key"]] = dict(zip(values_of(sweep), sweep["values"], strict=True))[cell.value]
        # A sweep needs rates and drops only.
        values["monitors"] = []
    after = None
    if "after" in scheme:
        after = Cell(cell.setup, cell.topology, scheme["after"], cell.variant, cell.sweep, cell.value)
        values = {path: value for path, value in values.items() if not path.startswith(_EDGE)}
    return Job(cell, seeds, setup["scenarios"][cell.topology], values, topology["cost"], after)
