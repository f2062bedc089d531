"""The runs of paper E that a claim compares: of one scenario in one set-up, the baseline's and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...metrics.measures import Array, Measures
from .. import Cell, Paper
from ..claim import Comparison, Measure, Room, paired, same_seeds
from .experiments import BASELINE, OURS, cell_of
from .measure import PACKET, contracts

Cells = Mapping[Cell, Measures]
SCENARIOS = ("scenario-1", "scenario-2", "scenario-3", "scenario-4")


class Scenario:
    """The runs of one scenario in one set-up: the baseline's and ours."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, topology: str, variant: str) -> None:
        self.about = paper.find("topologies", topology)
        self.title = self.about.title
        self.bounds = paper.top.table("bounds")
        self.contracts = contracts(paper, self.about)
        self.capacity = self.about.number("capacity")
        self.base = cells[cell_of(paper, setup, topology, BASELINE, variant)]
        self.ours = cells[cell_of(paper, setup, topology, OURS, variant)]
        #: Bandwidth times propagation delay, in packets.
        self.pipe = self.about.number("capacity") * paper.top.number("rtt") / PACKET
        same_seeds(self.base, self.ours)

    def difference(self, measure: Measure) -> list[float]:
        """Ours − baseline, seed by seed."""
        return paired(self.ours, self.base, measure)

    def shares(self, measures: Measures, what: str = "x") -> Array:
        """Throughput over contract: seeds × flows."""
        rates = [measures[f"{what}.{i}"] for i in range(1, len(self.contracts) + 1)]
        shares: Array = np.stack(rates, axis=1) / self.contracts
        return shares

    def groups(self) -> list[tuple[float, list[int]]]:
        """Contracts in order, and the flows that have each."""
        return [(float(r), list(np.flatnonzero(self.contracts == r))) for r in np.unique(self.contracts)]

    def compared(
        self, label: str, values: Array | Sequence[float], side: Any, null: float = 0.0, **more: Any
    ) -> Comparison:
        """A comparison that names this scenario."""
        return Comparison(label, [float(v) for v in values], side, null=null, topology=self.title, **more)


class Load:
    """The runs of a set-up, by scenario."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, variant: str) -> None:
        self._paper, self._cells, self._setup, self._variant = paper, cells, setup, variant

    def __call__(self, topology: str) -> Scenario:
        """The runs of one scenario."""
        return Scenario(self._paper, self._cells, self._setup, topology, self._variant)

    def has(self, topologies: Sequence[str]) -> bool:
        """Whether the baseline and ours were run of all these that the paper compares."""
        about = [self._paper.find("topologies", t) for t in topologies]
        return all(
            cell_of(self._paper, self._setup, t.id, scheme, self._variant) in self._cells
            for t in about
            for scheme in t.get("schemes", ())
        )

    def beside(self, topology: str, *schemes: str) -> list[Measures]:
        """What was run of a network in this set-up beside ours and the baseline; none where one was not."""
        cells = [cell_of(self._paper, self._setup, topology, scheme) for scheme in schemes]
        return [self._cells[c] for c in cells] if all(c in self._cells for c in cells) else []

    def title(self, topology: str) -> str:
        """A network's title."""
        return self._paper.find("topologies", topology).title


def mbit(contract: float) -> str:
    """A contract in words."""
    return f"{contract / 1e6:g} Mbit/s"


def idle(s: Scenario) -> Room:
    """What the baseline leaves of the link."""
    return Room([s.capacity - float(x) for x in s.base["total"]], "the baseline leaves idle")
