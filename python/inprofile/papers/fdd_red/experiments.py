"""What is run for paper D: main runs and variants, Fig. 10 and 11, crossed readings, sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["crossed", "jobs", "point_values"]


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what has to be run: nothing depends on anything else, a batch is what progress names.

    `full` adds further set-ups and Fig. 10 and 11 in steady state, the crossed readings, and the sweeps.
    """
    return [
        [*_main(paper, quick, full)],
        [*_points(paper, quick, full)],
        *([[*_crossed(paper)]] if full else []),
        *([*_sweep(paper, sweep)] for sweep in paper.sweeps if full),
    ]


def point_values(point: Mapping[str, Any]) -> list[int]:
    """All values of a figure with several points, the main runs' among them.

    >>> point_values({"values": [10, 200], "base": 100})
    [10, 100, 200]
    """
    return sorted([*point["values"], point["base"]])


def crossed(paper: Paper) -> dict[str, dict[str, object]]:
    """What FDD-RED's queue has in each cell of the crossed readings, by the alternatives' ids, joined by `/`.

    >>> from inprofile import papers
    >>> list(crossed(papers.load("fdd-red")))[0]
    'early_and_overflow/head/base/forget'
    """
    about = paper.about.get("crossed")
    if about is None:
        return {}
    axes = [paper.find("readings", name)["alternatives"] for name in about["readings"]]
    return {
        "/".join(a["id"] for a in chosen): {k: v for a in chosen for k, v in a["set"].items()}
        for chosen in product(*axes)
    }


def _setups(paper: Paper, full: bool) -> list[dict[str, Any]]:
    """The set-ups that are run: some in a full run only."""
    return [s for s in paper.setups if full or not s.get("full")]


def _of_setup(variant: Mapping[str, Any], setup: Mapping[str, Any]) -> bool:
    return setup["id"] in variant["setups"]


def _main(paper: Paper, quick: bool, full: bool) -> Iterator[Job]:
    seeds = paper.about["seeds"]
    for setup in _setups(paper, full):
        long = setup["window"][0] > 0
        n = seeds["quick_long" if long else "quick"] if quick else seeds["long" if long else "full"]
        for topology in paper.topologies:
            for scheme in ("red", "fdd"):
                yield _job(paper, Cell(setup["id"], topology["id"], scheme), n)
            for variant in paper.variants:
                if _of_setup(variant, setup):
                    yield _job(paper, Cell(setup["id"], topology["id"], "fdd", variant["id"]), n)


def _points(paper: Paper, quick: bool, full: bool) -> Iterator[Job]:
    """Fig. 10 and 11, of the first topology; quick: of the first set-up; in steady state only if `full`."""
    seeds = paper.about["seeds"]
    topology = paper.topologies[0]["id"]
    for setup in _setups(paper, full):
        long = setup["window"][0] > 0
        if (quick and setup is not paper.setups[0]) or (long and not full):
            continue
        n = seeds["quick_points"] if quick else seeds["points_long" if long else "points"]
        variants = [v["id"] for v in paper.variants if _of_setup(v, setup) and not quick]
        lines = [("red", ""), ("fdd", ""), *(("fdd", v) for v in variants)]
        yield from _each_point(paper, setup["id"], topology, lines, n)


def _each_point(
    paper: Paper, setup: str, topology: str, lines: list[tuple[str, str]], seeds: int
) -> Iterator[Job]:
    for point in paper.about["points"]:
        for value in point["values"]:
            written = f"{value}{point['unit']}" if "unit" in point else value
            made: dict[str, object] = {point["key"]: written, "monitors": []}
            for scheme, variant in lines:
                cell = Cell(setup, topology, scheme, variant, point["id"], str(value))
                yield _job(paper, cell, seeds, made)


def _crossed(paper: Paper) -> Iterator[Job]:
    """FDD-RED in every cell of the crossed readings; RED is the set-up's own."""
    seeds = paper.about["seeds"]
    for name in crossed(paper):
        setup = paper.about["crossed"]["setup"]
        for topology in paper.topologies:
            yield _job(paper, Cell(setup, topology["id"], "fdd", name), seeds["crossed"])
        lines = [("fdd", name)]
        yield from _each_point(paper, setup, paper.topologies[0]["id"], lines, seeds["crossed_points"])


def _sweep(paper: Paper, sweep: Mapping[str, Any]) -> Iterator[Job]:
    """One reading or parameter at a time, of the first set-up and its run in steady state."""
    for setup in paper.setups:
        if setup["id"] not in sweep["setups"]:
            continue
        for topology in paper.topologies:
            for value in sweep["values"]:
                made = {sweep["key"]: {"true": True, "false": False}.get(value, value), "monitors": []}
                for scheme in sweep["schemes"]:
                    cell = Cell(setup["id"], topology["id"], scheme, sweep=sweep["id"], value=value)
                    yield _job(paper, cell, paper.about["seeds"]["sweep"], made)


def _job(paper: Paper, cell: Cell, seeds: int, more: Mapping[str, object] | None = None) -> Job:
    setup = paper.find("setups", cell.setup)
    values: dict[str, object] = {**setup.get("set", {}), **_queue(paper, cell, setup), **(more or {})}
    return Job(cell, seeds, paper.find("topologies", cell.topology)["file"], values, setup["cost"])


def _queue(paper: Paper, cell: Cell, setup: Mapping[str, Any]) -> dict[str, object]:
    """What the bottleneck's queue has of the scheme, the set-up's reading and the variant."""
    if cell.scheme == "red":
        return {}
    ledger = {**paper.find("schemes", cell.scheme)["set"], **setup["fdd"]}
    if not cell.variant:
        return ledger
    cells = crossed(paper)
    if cell.variant in cells:
        return {**ledger, **cells[cell.variant]}
    variant = paper.find("variants", cell.variant)
    return dict(variant["set"]) if variant.get("alone") else {**ledger, **variant["set"]}
