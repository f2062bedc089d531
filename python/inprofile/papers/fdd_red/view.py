"""The cells of one set-up, as paper D's claims look at them: FDD-RED beside RED, and its placebos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...metrics.measures import Measures
from .. import Cell, Entry, Paper
from ..claim import Pair
from .measure import RATE
from .tables import at_point, placebos

Cells = Mapping[Cell, Measures]


class View:
    """The cells of one set-up and variant."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, variant: str) -> None:
        self.paper, self.cells, self.setup, self.variant = paper, cells, setup, variant

    def pair(self, topology: str) -> Pair:
        """RED and FDD-RED in one network, with the placebos that were run."""
        red = self.cells[Cell(self.setup, topology, "red")]
        fdd = self.cells[Cell(self.setup, topology, "fdd", self.variant)]
        found = {title: self._placebo(topology, name) for title, name in self.placebos}
        blind = {title: m for title, m in found.items() if m is not None}
        return Pair(red, fdd, self.paper.find("topologies", topology).title, blind)

    def _placebo(self, topology: str, name: str) -> Measures | None:
        """A placebo's runs: the set-up's own, or those of another one where no reading of it changes them."""
        setup = self.paper.find("setups", self.setup)
        if (own := Cell(self.setup, topology, "fdd", name)) in self.cells:
            return self.cells[own]
        if "placebos" not in setup or not self.paper.find("variants", name).flag("alike"):
            return None
        return self.cells.get(Cell(setup.word("placebos"), topology, "fdd", name))

    @property
    def rate(self) -> float:
        """The link's rate in bit/s."""
        return self.paper.find("setups", self.setup).number("rate", RATE)

    @property
    def placebos(self) -> list[tuple[str, str]]:
        """Titles and ids of what needs no ledger; none where one is itself judged in FDD-RED's place."""
        beside = {v.id: not v.flag("placebo") for v in self.paper.variants}
        if self.variant and not beside.get(self.variant):
            return []
        titles = [(self.paper.find("variants", name).title, name) for name in placebos(self.paper)]
        return [(title.removeprefix("placebo: "), name) for title, name in titles]

    def pairs(self) -> list[Pair]:
        """The same in every network."""
        return [self.pair(t.id) for t in self.paper.topologies]

    @property
    def ran(self) -> bool:
        """Whether the variant was run in this set-up."""
        return all(Cell(self.setup, t.id, "fdd", self.variant) in self.cells for t in self.paper.topologies)

    @property
    def long(self) -> bool:
        """Whether the start is left out: then the paper's numbers are not its."""
        return self.paper.find("setups", self.setup).numbers("window")[0] > 0

    def points(self) -> Iterator[Pair]:
        """Pairs at every point of Fig. 10 and 11 that was run beside the main runs."""
        topology = self.paper.topologies[0].id
        for point in self.paper.top.tables("points"):
            for value in point.numbers("values"):
                red, fdd = (self._at(topology, point, int(value), *s) for s in self._judged)
                others = {t: self._at(topology, point, int(value), "fdd", v) for t, v in self.placebos}
                if red and fdd:
                    blind = {title: m for title, m in others.items() if m}
                    yield Pair(red, fdd, f"{value:g}{point.word('unit', ' flows')}", blind)

    @property
    def _judged(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return ("red", ""), ("fdd", self.variant)

    def _at(self, topology: str, point: Entry, value: int, scheme: str, variant: str) -> Measures | None:
        return at_point(self.cells, topology, point, value, Cell(self.setup, topology, scheme, variant))
