"""How many more customers of each kind fit below a node of each level, and which link breaks first.

Customers fit where the contracts below the node, those of the new ones included, and all contracts of the
experiment are kept to the share that is asked for. For each place and kind the number is looked for by
doubling and halving on a few seeds; the largest one is then run on fresh seeds, which have the answer's
figures and interval, and given up for a smaller one where they miss the share. Intervals are Student's over
the runs; where all runs keep everything, Clopper's and Pearson's of that many contracts.

The link that breaks first is the one at which those whose contracts were missed, with the least number that
does not fit, lost most of their IN packets (of all packets, where no IN packet was lost): those below the
node, or all where none was missed there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....experiment.scenario import Scenario
from ....metrics.contract_figures import FlowRows
from ....metrics.stats import Interval
from ....run.experiments import run_many
from ....run.pool import Backend, Local
from ....run.results import Result
from ..sell.answer import Point, share_bounds
from .network import Kind, Network, Place

__all__ = ["SEEDS", "Answer", "Broken", "Fit", "Tried", "expected_runs", "fits"]

Mask = NDArray[np.bool_]

SEEDS = 3
"""Runs of a number that is tried, seeds from 1; of the answer twice as many, fresh ones."""
FRESH = 2_000_001
"""The first fresh seed."""
_RUNGS = 4
"""Of times as many customers as there are, so many are tried at most."""
_STEP = 0.1
"""Numbers are told apart by this part of the customers that are there, at least one."""
_TRIES = 3
"""So many numbers are run on fresh seeds."""


@dataclass(frozen=True)
class Broken:
    """Where those whose contracts were missed lost packets."""

    link: str | None
    """Where they lost most; None: they lost none."""
    level: str | None
    share: float
    """Of all that they lost, the part there."""
    colour: str
    """`IN`, or `all` where no IN packet was lost."""
    missed: int
    """Contracts missed, over the runs."""


@dataclass(frozen=True)
class Tried:
    """So many more customers, and what runs have of them."""

    more: int
    below: Point
    """Contracts below the place."""
    everywhere: Point
    """All contracts."""
    broken: Broken

    def fits(self, share: float) -> bool:
        """Whether the runs kept as much, below the place and everywhere."""
        return self.below.share >= share and self.everywhere.share >= share

    @property
    def interval(self) -> Interval:
        """95 % interval of the share below the place."""
        point = self.below
        if point.share in (0.0, 1.0):
            return share_bounds(point.share, max(1, sum(point.wanted)), 0.025)
        return point.interval


@dataclass(frozen=True)
class Fit:
    """The answer of one place and kind."""

    place: Place
    kind: Kind
    fits: Tried | None
    """The most that fit, on fresh seeds; None: the share is not kept as it is."""
    too_many: Tried | None
    """The least number run that does not; None: as many as were tried fit."""
    by_contract: int | None
    """How many more the file lets be promised; None of a kind that is promised nothing."""


@dataclass(frozen=True)
class Answer:
    """Of each place, from the leaves up, and kind."""

    network: Network
    fits: tuple[Fit, ...]
    runs: int

    @property
    def met(self) -> bool:
        """Whether contracts are kept as they are, everywhere."""
        return all(fit.fits is not None for fit in self.fits)


def expected_runs(network: Network, kinds: Sequence[Kind], seeds: int = SEEDS) -> int:
    """About how many runs an answer takes."""
    cells = len(network.places) * len(kinds)
    return cells * 7 * seeds


def fits(
    network: Network,
    kinds: Sequence[Kind] | None = None,
    *,
    seeds: int = SEEDS,
    backend: Backend | None = None,
    tell: Callable[[str], None] = lambda _: None,
    count: Callable[[int], None] = lambda _: None,
) -> Answer:
    """Find how many more customers of each of these kinds fit, by default of all that have a contract."""
    bench = _Bench(network, seeds, backend or Local(), count)
    asked = network.chosen(None) if kinds is None else list(kinds)
    found = []
    for place in network.places:
        for kind in asked:
            tell(f"{kind.name} below {place.node}")
            found.append(_fit(bench, place, kind))
    return Answer(network, tuple(found), bench.runs)


class _Bench:
    """Where numbers of customers are tried; a number that was run is not run again."""

    def __init__(self, network: Network, seeds: int, backend: Backend, count: Callable[[int], None]) -> None:
        self.network, self.runs = network, 0
        self.seeds, self.fresh = range(1, seeds + 1), range(FRESH, FRESH + 2 * seeds)
        self._backend, self._count = backend, count
        self._known: dict[tuple[str, str, int, int], Tried] = {}
        self._as_it_is: dict[int, Result] = {}

    def tried(self, place: Place, kind: Kind, more: int, seeds: range) -> Tried:
        key = (place.node, kind.name, more, seeds.start)
        if key not in self._known:
            self._known[key] = _reduced(self.network, place, more, self._run(place, kind, more, seeds))
        return self._known[key]

    def _run(self, place: Place, kind: Kind, more: int, seeds: range) -> Result:
        if more == 0 and seeds.start in self._as_it_is:
            return self._as_it_is[seeds.start]
        scenario: Scenario = self.network.experiment(kind, place, more)
        (result,) = run_many([(scenario, tuple(seeds))], self._backend)
        self.runs += len(seeds)
        self._count(self.runs)
        if more == 0:
            self._as_it_is[seeds.start] = result
        return result


def _fit(bench: _Bench, place: Place, kind: Kind) -> Fit:
    network, there = bench.network, max(1, bench.network.customers(kind, place))
    by_contract = None if kind.contract is None else int(place.free / kind.contract * (1 + 1e-12))
    step, most = max(1, round(_STEP * there)), _RUNGS * there

    def holds(more: int) -> bool:
        return bench.tried(place, kind, more, bench.seeds).fits(network.kept)

    low, high = 0, None
    if holds(0):
        reach = max(step, min(by_contract or there, most))
        while high is None and low < most:
            more = min(reach, most)
            low, high = (more, None) if holds(more) else (low, more)
            reach = 2 * more
    else:
        high = 0
    while high is not None and high - low > step:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    # What fits on the seeds that it was chosen by is told by others.
    shown = too_many = None
    for _ in range(_TRIES if high != 0 else 0):
        fresh = bench.tried(place, kind, low, bench.fresh)
        if fresh.fits(network.kept):
            shown = fresh
            break
        too_many = fresh
        if low == 0:
            break
        low, high = max(0, low - step), low
    if too_many is None and high is not None:
        too_many = bench.tried(place, kind, high, bench.seeds)
    return Fit(place, kind, shown, too_many, by_contract)


def _reduced(network: Network, place: Place, more: int, result: Result) -> Tried:
    table, seeds = result.flows, result.seeds
    rows = FlowRows(table, None)
    groups = table["group"].combine_chunks().dictionary_encode()
    here = np.array(network.below(groups.dictionary.to_pylist(), place))[groups.indices.to_numpy()]
    below, everywhere = (_point(rows, seeds, more, which) for which in (here, np.ones(len(here), bool)))
    missed = rows.has & ~rows.kept
    if (missed & here).any():
        missed &= here
    return Tried(more, below, everywhere, _broken(network, result, missed))


def _point(rows: FlowRows, seeds: Sequence[int], more: int, which: Mask) -> Point:
    has, kept = ((of & which).reshape(len(seeds), -1) for of in (rows.has, rows.kept))
    wanted = tuple(map(int, has.sum(axis=1)))
    return Point(more, wanted, tuple(map(int, kept.sum(axis=1))), float("nan"), float("nan"))


def _broken(network: Network, result: Result, missed: Mask) -> Broken:
    """Where the flows whose contracts were missed, of all seeds, lost most."""
    import pyarrow as pa

    lost = result.drops
    if not missed.any() or lost.num_rows == 0:
        return Broken(None, None, 0.0, "IN", int(missed.sum()))
    keys = pa.table({key: result.flows[key] for key in ("seed", "flow")}).filter(pa.array(missed))
    own = lost.join(keys, ["seed", "flow"], join_type="inner")
    for colour, columns in (("IN", ("in",)), ("all", ("in", "out", "red"))):
        packets = sum(own[c].to_numpy().astype("int64") for c in columns) if own.num_rows else np.zeros(0)
        if packets.sum() == 0:
            continue
        places = own["place"].combine_chunks().dictionary_encode()
        at = np.bincount(places.indices.to_numpy(), weights=packets)
        link = places.dictionary[int(at.argmax())].as_py()
        share = float(at.max() / at.sum())
        return Broken(link, network.level_of(link), share, colour, int(missed.sum()))
    return Broken(None, None, 0.0, "IN", int(missed.sum()))
