"""How many more customers of each kind fit below a node of each level, and which link breaks first.

Customers fit where the contracts below the node, those of the new ones included, and all contracts of the
experiment are kept to the share that is asked for. For each place and kind the number is looked for by
doubling and halving on a few seeds; the largest one is then run on fresh seeds, which have the answer's
figures and interval, and given up for a smaller one where they miss the share. Intervals are Student's over
the runs; where all runs keep everything, Clopper's and Pearson's of that many contracts.

The link that breaks first is the one at which those whose contracts were missed, with the least number that
does not fit, lost most of their IN packets (of all packets, where no IN packet was lost): those below the
node, or all where none was missed there.

What a tree's plan keeps of its runs: contracts kept, and losses of those whose contracts were missed. A run
serves every place of the tree: as it is, it is the same one for all of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....metrics.quantity import bracketed, quantity
from ....metrics.stats import Interval
from ....metrics.summary import text_table
from ....run.pieces import Piece
from ....run.pool import Backend, Local
from ...sweep.result import RunsOf
from ..sell.answer import Point, share_bounds
from ..store import Row, Store
from .network import Kind, Network, Place

if TYPE_CHECKING:
    import pyarrow as pa


Mask = NDArray[np.bool_]
EVERYWHERE = ""
"""The node of which all flows are below."""


class Bench(Store):
    """Where numbers of customers are tried.

    The figures of a run are, by node: how many contracts there are below it and how many were kept; and, of
    the IN packets and of all packets that the others lost, how many at each link.
    """

    tables = ("flows", "drops")
    columns = ("figures",)
    texts = ("figures",)

    def __init__(
        self, network: Network, place: Path | None, backend: Backend, tell: Callable[[int], None]
    ) -> None:
        """See `Store`."""
        self._network = network
        super().__init__(network.scenario, place, backend, tell, {"tree": network.name})

    def reduced(self, piece: Piece) -> Iterator[Row]:
        """See `Store`."""
        flows, drops = piece.tables["flows"], piece.tables["drops"]
        runs = RunsOf.of(flows)
        ends = [*runs.starts[1:].tolist(), flows.num_rows]
        settings, seeds, starts = (x.tolist() for x in (runs.settings, runs.seeds, runs.starts))
        for setting, seed, start, end in zip(settings, seeds, starts, ends, strict=True):
            mine = (drops["setting"].to_numpy() == setting) & (drops["seed"].to_numpy() == seed)
            has, kept = runs.rows.has[start:end], runs.rows.kept[start:end]
            figures = self._figures(flows.slice(start, end - start), has, kept, drops.filter(mine))
            yield {"setting": setting, "seed": seed, "figures": json.dumps(figures)}

    def _figures(self, flows: pa.Table, has: Mask, kept: Mask, drops: pa.Table) -> dict[str, Any]:
        groups = flows["group"].combine_chunks().dictionary_encode()
        names, of = groups.dictionary.to_pylist(), groups.indices.to_numpy()
        below = {p.node: np.array(self._network.below(names, p))[of] for p in self._network.places}
        below[EVERYWHERE] = np.ones(len(has), bool)
        number = {flow: i for i, flow in enumerate(flows["flow"].to_pylist())}
        whose = np.array([number[flow] for flow in drops["flow"].to_pylist()], dtype=np.intp)
        places = drops["place"].to_pylist()
        lost = {c: drops[c].to_numpy().astype(np.int64) for c in ("in", "out", "red")}
        colours = {"IN": lost["in"], "all": lost["in"] + lost["out"] + lost["red"]}
        found = {}
        for node, here in below.items():
            own = (has & ~kept & here)[whose]
            found[node] = {
                "contracts": int((has & here).sum()),
                "kept": int((kept & here).sum()),
                **{colour: _by_place(places, packets, own) for colour, packets in colours.items()},
            }
        return found


def _by_place(places: Sequence[str], packets: NDArray[np.int64], which: Mask) -> dict[str, int]:
    """How many packets were lost at each place, of these rows."""
    found: dict[str, int] = {}
    for i in np.flatnonzero(which & (packets > 0)).tolist():
        found[places[i]] = found.get(places[i], 0) + int(packets[i])
    return found


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
    place: str | Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
    count: Callable[[int], None] = lambda _: None,
) -> Answer:
    """Find how many more customers of each of these kinds fit, by default of all that have a contract.

    Runs are kept in the folder `place`, and the same question goes on from there. Raises FolderInUse where it
    has something else.
    """
    bench = Bench(network, None if place is None else Path(place), backend or Local(), count)
    asked = network.chosen(None) if kinds is None else list(kinds)
    stall, found = _Stall(network, bench, seeds), []
    try:
        for node in network.places:
            for kind in asked:
                tell(f"{kind.name} below {node.node}")
                found.append(_fit(stall, node, kind))
        bench.finish()
    finally:
        bench.close()
    return Answer(network, tuple(found), bench.made + bench.kept_before)


class _Stall:
    """Where numbers of customers are tried."""

    def __init__(self, network: Network, bench: Bench, seeds: int) -> None:
        self.network, self._bench = network, bench
        self.seeds, self.fresh = range(1, seeds + 1), range(FRESH, FRESH + 2 * seeds)

    def tried(self, place: Place, kind: Kind, more: int, seeds: range) -> Tried:
        scenario = self.network.experiment(kind, place, more)
        (rows,) = self._bench.rows([(scenario, seeds)])
        runs = [json.loads(row["figures"]) for row in rows]
        below, everywhere = ([run[node] for run in runs] for node in (place.node, EVERYWHERE))
        missed = below if any(run["kept"] < run["contracts"] for run in below) else everywhere
        return Tried(more, _point(below, more), _point(everywhere, more), _broken(self.network, missed))


def _fit(stall: _Stall, place: Place, kind: Kind) -> Fit:
    network, there = stall.network, max(1, stall.network.customers(kind, place))
    by_contract = None if kind.contract is None else int(place.free / kind.contract * (1 + 1e-12))
    step, most = max(1, round(_STEP * there)), _RUNGS * there

    def holds(more: int) -> bool:
        return stall.tried(place, kind, more, stall.seeds).fits(network.kept)

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
        fresh = stall.tried(place, kind, low, stall.fresh)
        if fresh.fits(network.kept):
            shown = fresh
            break
        too_many = fresh
        if low == 0:
            break
        low, high = max(0, low - step), low
    if too_many is None and high is not None:
        too_many = stall.tried(place, kind, high, stall.seeds)
    return Fit(place, kind, shown, too_many, by_contract)


def _point(runs: Sequence[Mapping[str, Any]], more: int) -> Point:
    wanted, kept = (tuple(run[key] for run in runs) for key in ("contracts", "kept"))
    return Point(more, wanted, kept, float("nan"), float("nan"))


def _broken(network: Network, runs: Sequence[Mapping[str, Any]]) -> Broken:
    """Where the flows whose contracts were missed, of all seeds, lost most."""
    missed = sum(run["contracts"] - run["kept"] for run in runs)
    for colour in ("IN", "all"):
        lost: Counter[str] = sum((Counter(run[colour]) for run in runs), Counter())
        if lost:
            link = min(lost, key=lambda at: (-lost[at], at))
            return Broken(link, network.level_of(link), lost[link] / lost.total(), colour, missed)
    return Broken(None, None, 0.0, "IN", missed)


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as one object."""
    network = answer.network
    return {
        "title": network.scenario.title,
        "file": network.scenario.file,
        "tree": network.name,
        "kept": network.kept,
        "met": answer.met,
        "runs": answer.runs,
        "places": [
            {
                "level": fit.place.level,
                "node": fit.place.node,
                "group": fit.kind.name,
                "there": network.customers(fit.kind, fit.place),
                "by_contract": fit.by_contract,
                "fits": None if fit.fits is None else _tried(fit.fits),
                "too_many": None if fit.too_many is None else _tried(fit.too_many),
            }
            for fit in answer.fits
        ],
    }


def _tried(tried: Tried) -> dict[str, Any]:
    below, everywhere, broken = tried.below, tried.everywhere, tried.broken
    return {
        "more": tried.more,
        "runs": below.runs,
        "share_kept": {"mean": below.share, "ci95": list(tried.interval), "n": below.runs},
        "share_kept_everywhere": everywhere.share,
        "missed": broken.missed,
        "breaks_first": None
        if broken.link is None
        else {"link": broken.link, "level": broken.level, "share": broken.share, "packets": broken.colour},
    }


def as_text(answer: Answer) -> str:
    """The goal, a row for each place and kind, and a sentence for each link that breaks."""
    network = answer.network
    head = (
        f"{network.scenario.title}\nThe tree {network.name}: how many more customers fit, where"
        f" {100 * network.kept:g} % of the contracts are kept. {answer.runs:,} runs."
    )
    heading = ["more below", "group", "there", "sold by contract", "fit", "contracts kept"]
    heading += ["do not fit", "then kept"]
    table = text_table(heading, [_row(answer, fit) for fit in answer.fits])
    return "\n\n".join([head, table, "\n".join(map(_sentence, answer.fits))])


def _row(answer: Answer, fit: Fit) -> list[str]:
    fits, too_many = fit.fits, fit.too_many
    return [
        fit.place.node,
        fit.kind.name,
        f"{answer.network.customers(fit.kind, fit.place):,}",
        "–" if fit.by_contract is None else f"{fit.by_contract:,}",
        "none: not kept as it is" if fits is None else f"{fits.more:,}",
        "–" if fits is None else _share(fits),
        "–" if too_many is None else f"{too_many.more:,}",
        "–" if too_many is None else _share(too_many),
    ]


def _share(tried: Tried) -> str:
    return bracketed(tried.below.share, tried.interval, 2, "%", 0.01)


def _sentence(fit: Fit) -> str:
    """What breaks, with how many."""
    tried = fit.too_many
    if tried is None:
        more = 0 if fit.fits is None else fit.fits.more
        return f"Below {fit.place.node} nothing breaks with {more:,} more {fit.kind.name}."
    rate = f" ({quantity(tried.more * fit.kind.contract, 'bit/s')} of contracts)" if fit.kind.contract else ""
    return f"With {tried.more:,} more {fit.kind.name}{rate} below {fit.place.node} {_breaks(tried.broken)}."


def _breaks(broken: Broken) -> str:
    if not broken.missed:
        return "contracts elsewhere are missed"
    if broken.link is None:
        return f"{broken.missed:,} contracts are missed without a packet lost: round trips are too long"
    what = "IN packets" if broken.colour == "IN" else "packets"
    contracts = "contract" if broken.missed == 1 else "contracts"
    return (
        f"{broken.link} breaks first: {broken.missed:,} {contracts} missed, of whose {what} that were lost"
        f" {100 * broken.share:.0f} % were lost there"
    )
