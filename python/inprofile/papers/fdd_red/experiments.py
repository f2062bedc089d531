"""What is run for paper D: main runs and variants, Fig. 10 and 11, crossed readings, sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType

from .. import Batches, Cell, Entry, Job, Paper
from . import boundary

#: RED's cells with drop-tail in its place (D11): their sweep and value.
DROP_TAIL = ("drop-tail", "100 packets")


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what has to be run: nothing depends on anything else, a batch is what progress names.

    `full` adds further set-ups, Fig. 10 and 11 of all but the first, some placebos and drop-tail in steady
    state, the crossed readings, the sweeps, and where FDD-RED pays.
    """
    return [
        [*_main(paper, quick, full)],
        [*_points(paper, quick, full)],
        *([[*_crossed(paper, quick)]] if full else []),
        *([*_sweep(paper, sweep)] for sweep in paper.sweeps if full),
        *([[*boundary.jobs(paper)]] if full and boundary.NAME in paper.top else []),
    ]


def point_values(point: Entry) -> list[int]:
    """All values of a figure with several points, the main runs' among them.

    >>> from inprofile.papers import Entry
    >>> point_values(Entry({"values": [10, 200], "base": 100}, "paper.toml"))
    [10, 100, 200]
    """
    return sorted([*map(int, point.numbers("values")), point.whole("base")])


def crossed(paper: Paper) -> dict[str, dict[str, object]]:
    """What FDD-RED's queue has in each cell of the crossed readings, by the alternatives' ids, joined by `/`.

    >>> from inprofile import papers
    >>> list(crossed(papers.load("fdd-red")))[0]
    'early_and_overflow/head/base/forget'
    """
    if "crossed" not in paper.top:
        return {}
    about = paper.top.table("crossed")
    axes = [paper.find("readings", name).tables("alternatives") for name in about.words("readings")]
    return {
        "/".join(a.id for a in chosen): {k: v for a in chosen for k, v in a.changes.items()}
        for chosen in product(*axes)
    }


def _setups(paper: Paper, full: bool) -> list[Entry]:
    """The set-ups that are run: some in a full run only."""
    return [s for s in paper.setups if full or not s.flag("full")]


def _long(setup: Entry) -> bool:
    """Whether it is in steady state."""
    return setup.numbers("window")[0] > 0


def _variants(paper: Paper, setup: Entry, full: bool) -> list[str]:
    """The variants that are run in a set-up: some in a full run only."""
    about = paper.top.table("full_only")
    late = about.words("variants") if setup.id in about.words("setups") and not full else []
    return [v.id for v in paper.variants if setup.id in v.words("setups") and v.id not in late]


def _rival(paper: Paper, variant: str) -> bool:
    """Whether it is another discipline, which takes no part in the paper's figures."""
    about = paper.find("variants", variant)
    return about.flag("alone") and not about.flag("placebo")


def _main(paper: Paper, quick: bool, full: bool) -> Iterator[Job]:
    for setup in _setups(paper, full):
        kind = ("quick_long" if _long(setup) else "quick") if quick else "long" if _long(setup) else "full"
        n = paper.seeds.whole(kind)
        for topology in paper.topologies:
            for scheme in ("red", "fdd"):
                yield _job(paper, Cell(setup.id, topology.id, scheme), n)
            for variant in _variants(paper, setup, full):
                yield _job(paper, Cell(setup.id, topology.id, "fdd", variant), n)
        # Not where RED's parameters vary: it has none of them.
        if not paper.top.flag("coarse") and (full or not _long(setup)):
            queue = {"aqm": "drop_tail", "limit": DROP_TAIL[1]}
            cell = Cell(setup.id, paper.topologies[0].id, "red", "", *DROP_TAIL)
            yield _job(paper, cell, n, {"links.bottleneck.queue": queue, "monitors": []})


def _points(paper: Paper, quick: bool, full: bool) -> Iterator[Job]:
    """Fig. 10 and 11, of the first topology; of the first set-up only if quick, or not `full`."""
    topology = paper.topologies[0].id
    for setup in _setups(paper, full):
        if (quick or not full) and setup.id != paper.setups[0].id:
            continue
        n = paper.seeds.whole("quick_points" if quick else "points_long" if _long(setup) else "points")
        drawn = [v for v in _variants(paper, setup, full) if not _rival(paper, v)]
        variants = [] if quick else drawn
        lines = [("red", ""), ("fdd", ""), *(("fdd", v) for v in variants)]
        yield from _each_point(paper, setup.id, topology, lines, n)


def _each_point(
    paper: Paper,
    setup: str,
    topology: str,
    lines: list[tuple[str, str]],
    seeds: int,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Job]:
    for point in paper.top.tables("points"):
        for value in map(int, point.numbers("values")):
            written = f"{value}{point.word('unit')}" if "unit" in point else value
            made: dict[str, object] = {**more, point.word("key"): written, "monitors": []}
            for scheme, variant in lines:
                cell = Cell(setup, topology, scheme, variant, point.id, str(value))
                yield _job(paper, cell, seeds, made)


def _crossed(paper: Paper, quick: bool) -> Iterator[Job]:
    """FDD-RED in every cell of the crossed readings; RED is the set-up's own, and has no fewer seeds."""
    main, points = paper.seeds.whole("crossed"), paper.seeds.whole("crossed_points")
    if quick:
        main, points = min(main, paper.seeds.whole("quick")), min(points, paper.seeds.whole("quick_points"))
    for name, queue in crossed(paper).items():
        setup = paper.top.table("crossed").word("setup")
        for topology in paper.topologies:
            yield _job(paper, Cell(setup, topology.id, "fdd", name), main, queue)
        yield from _each_point(paper, setup, paper.topologies[0].id, [("fdd", name)], points, queue)


def _sweep(paper: Paper, sweep: Entry) -> Iterator[Job]:
    """One reading or parameter at a time, of the first set-up and its run in steady state."""
    for setup in paper.setups:
        if setup.id not in sweep.words("setups"):
            continue
        for topology in paper.topologies:
            for value in sweep.words("values"):
                written = {"true": True, "false": False}.get(value, value)
                made: dict[str, object] = {sweep.word("key"): written, "monitors": []}
                for scheme in sweep.words("schemes"):
                    cell = Cell(setup.id, topology.id, scheme, sweep=sweep.id, value=value)
                    yield _job(paper, cell, paper.seeds.whole("sweep"), made)


def _job(paper: Paper, cell: Cell, seeds: int, more: Mapping[str, object] | None = None) -> Job:
    setup = paper.find("setups", cell.setup)
    values: dict[str, object] = {**setup.changes, **_queue(paper, cell, setup), **(more or {})}
    if "apart" in setup and cell.topology != paper.topologies[0].id:
        values |= dict(setup.table("apart"))
    return Job(
        cell, seeds, paper.find("topologies", cell.topology).word("file"), values, setup.number("cost")
    )


def _queue(paper: Paper, cell: Cell, setup: Entry) -> dict[str, object]:
    """What the bottleneck's queue has of the scheme, the set-up's reading and the variant."""
    if cell.scheme == "red":
        return {}
    ledger = {**paper.find("schemes", cell.scheme).changes, **setup.table("fdd")}
    # A crossed reading's is given with it (`_crossed`).
    if not cell.variant or "/" in cell.variant:
        return ledger
    variant = paper.find("variants", cell.variant)
    return dict(variant.changes) if variant.flag("alone") else {**ledger, **variant.changes}
