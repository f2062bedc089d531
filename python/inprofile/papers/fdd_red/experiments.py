"""What is run for paper D: the main runs and their variants, the points of Fig. 10 and 11, and the sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["jobs", "point_values"]


def jobs(paper: Paper, quick: bool, sweeps: bool) -> Batches:
    """List what has to be run: nothing depends on anything else, a batch is what progress names."""
    return [
        [*_main(paper, quick)],
        [*_points(paper, quick)],
        *([*_sweep(paper, sweep)] for sweep in paper.sweeps if sweeps),
    ]


def point_values(point: Mapping[str, Any]) -> list[int]:
    """All values of a figure with several points, the main runs' among them.

    >>> point_values({"values": [10, 200], "base": 100})
    [10, 100, 200]
    """
    return sorted([*point["values"], point["base"]])


def _main(paper: Paper, quick: bool) -> Iterator[Job]:
    seeds = paper.about["seeds"]
    for setup in paper.setups:
        n = seeds["full"] if not quick else seeds["quick_long" if setup["id"] == "long" else "quick"]
        for topology in paper.topologies:
            for scheme in ("red", "fdd"):
                yield _job(paper, Cell(setup["id"], topology["id"], scheme), n)
            for variant in paper.variants:
                yield _job(paper, Cell(setup["id"], topology["id"], "fdd", variant["id"]), n)


def _points(paper: Paper, quick: bool) -> Iterator[Job]:
    """Fig. 10 and 11, of the first topology; quick: only where the paper has them, in 20 s."""
    seeds = paper.about["seeds"]
    topology = paper.topologies[0]["id"]
    for setup in paper.setups:
        if quick and setup["id"] == "long":
            continue
        n = seeds["quick_points"] if quick else seeds["points_long" if setup["id"] == "long" else "points"]
        lines = [("red", ""), ("fdd", ""), *(("fdd", v["id"]) for v in paper.variants if not quick)]
        for point in paper.about["points"]:
            for value in point["values"]:
                written = f"{value}{point['unit']}" if "unit" in point else value
                made: dict[str, object] = {point["key"]: written, "monitors": []}
                for scheme, variant in lines:
                    cell = Cell(setup["id"], topology, scheme, variant, point["id"], str(value))
                    yield _job(paper, cell, n, made)


def _sweep(paper: Paper, sweep: Mapping[str, Any]) -> Iterator[Job]:
    for setup in paper.setups:
        for topology in paper.topologies:
            for value in sweep["values"]:
                made = {sweep["key"]: {"true": True, "false": False}.get(value, value), "monitors": []}
                for scheme in sweep["schemes"]:
                    cell = Cell(setup["id"], topology["id"], scheme, sweep=sweep["id"], value=value)
                    yield _job(paper, cell, paper.about["seeds"]["sweep"], made)


def _job(paper: Paper, cell: Cell, seeds: int, more: Mapping[str, object] | None = None) -> Job:
    setup = paper.find("setups", cell.setup)
    values: dict[str, object] = dict(setup.get("set", {}))
    values.update(paper.find("schemes", cell.scheme).get("set", {}))
    if cell.variant:
        values.update(paper.find("variants", cell.variant)["set"])
    values.update(more or {})
    return Job(cell, seeds, paper.find("topologies", cell.topology)["file"], values, setup["cost"])
