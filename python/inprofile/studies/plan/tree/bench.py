"""What a tree's plan keeps of its runs: contracts kept, and losses of those whose contracts were missed.

A run serves every place of the tree: as it is, it is the same one for all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....run.pieces import Piece
from ....run.pool import Backend
from ...sweep.contracts import RunsOf
from ..store import Row, Store
from .network import Network

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EVERYWHERE", "Bench"]

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
