"""A reproduced paper: what was measured of it, the verdicts, a chart on its page, and rows of its tables.

`studies.reproduce` makes and shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from ..metrics.measures import Measures
from ..metrics.stats import FREE, SHARE, Bounds
from ..own.engine import __version__
from . import Cell, Entry, Job, Paper
from .claim import Judged, Verdict
from .verdicts import Answered, Verdicts


@dataclass(frozen=True)
class Figure:
    """A chart by its name among the page's, what it shows, and what is said of it."""

    chart: str
    #: Of what: a set-up, a number of flows, a scheme.
    what: str
    #: Which figure of the paper, or what is drawn.
    title: str = ""
    #: Figures beside it, as a sentence or part of one.
    words: str = ""


@dataclass(frozen=True)
class Panels:
    """Charts that stand side by side under a heading."""

    title: str
    panels: list[Figure]


@dataclass
class Report:
    """A reproduced paper: what was measured, and the verdicts."""

    paper: Paper
    quick: bool
    #: With the crossed readings, further set-ups and sweeps.
    full: bool
    #: Measures of every cell, as the paper's `measure` makes them.
    cells: dict[Cell, Any]
    #: Verdicts, one a claim and set-up whose experiments were all run (see `papers.verdicts`); and the
    #: same under each of the paper's variants, by its id.
    judged: list[Judged]
    variants: dict[str, list[Judged]]
    #: What each cell was run from.
    jobs: dict[Cell, Job]
    #: Digest of each cell's effective experiment.
    digests: dict[Cell, str]
    #: Parameters that were derived from other cells' runs (a placebo's rate), a seed each.
    derived: dict[Cell, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    version: str = __version__
    #: Its `atlas.json`: where each claim holds over the paper's readings and unstated inputs.
    atlas: dict[str, Any] | None = None
    #: Its `today.json`: every claim and scheme under today's TCP senders.
    today: dict[str, Any] | None = None
    #: Its `verdicts.json`: the verdicts of the last `--full`, for what was not run here or only in part.
    committed: Verdicts | None = None
    #: The page, once written.
    page: Path | None = None

    @property
    def setups(self) -> list[Entry]:
        """The set-ups that were judged here, in the paper's order."""
        judged = {j.setup for j in self.judged}
        return [s for s in self.paper.setups if s.id in judged]

    @property
    def shown(self) -> list[Entry]:
        """The set-ups of which there is a verdict, of this run or committed, in the paper's order."""
        known = {j.setup for j in self.judged} | {setup for _, setup in self.kept}
        return [s for s in self.paper.setups if s.id in known]

    @property
    def kept(self) -> dict[tuple[str, str], Answered]:
        """Committed verdicts of what was not run here, or only in part, by claim and set-up."""
        ran = {(j.claim, j.setup) for j in self.judged}
        return {key: found for key, found in self.known.items() if key not in ran}

    @property
    def known(self) -> dict[tuple[str, str], Answered]:
        """All committed verdicts of the paper's claims and set-ups, whether run here or not."""
        setups = [s.id for s in self.paper.setups]
        judged = {c.id: setups[:1] if c.flag("once") else setups for c in self.paper.claims}
        answers = [] if self.committed is None else self.committed["claims"]
        return {(a["id"], a["setup"]): a for a in answers if a["setup"] in judged.get(a["id"], ())}

    def kept_under(self, claim: str, setup: str) -> dict[str, Verdict]:
        """Committed verdicts under variants that were not run here, or only in part, by the variant's id."""
        ran = {
            v
            for v, found in self.variants.items()
            if any((j.claim, j.setup) == (claim, setup) for j in found)
        }
        answer = self.known.get((claim, setup))
        return (
            {} if answer is None else {v: Verdict(x) for v, x in answer["variants"].items() if v not in ran}
        )

    @property
    def seeds(self) -> int:
        """How many seeds the verdicts rest on; the most, where experiments differ."""
        return max(job.seeds for job in self.jobs.values())

    def cell(
        self, setup: str, topology: str, scheme: str, variant: str = "", sweep: str = "", value: str = ""
    ) -> Any:
        """Measures of one cell. Raises `KeyError`."""
        return self.cells[Cell(setup, topology, scheme, variant, sweep, value)]


class TableRow(TypedDict):
    """One row; all that differ in the set-up only stand in one line."""

    table: str
    what: str
    label: str
    #: bit/s, s, packets, or empty.
    unit: str
    setup: str
    topology: str
    scheme: str
    variant: str
    #: What the paper prints; None where it prints nothing.
    paper: float | None
    values: list[float]
    seeds: list[int]
    #: What the values cannot leave, where their unit and name do not say it.
    bounds: NotRequired[Bounds]


def row(
    cell: Cell,
    seeds: Iterable[int],
    values: Iterable[float],
    *,
    table: str,
    what: str,
    label: str,
    unit: str = "",
    paper: float | None = None,
    bounds: Bounds | None = None,
) -> TableRow:
    """Make the row of a cell's `values`, one a seed."""
    made = TableRow(
        table=table,
        what=what,
        label=label,
        unit=unit,
        setup=cell.setup,
        topology=cell.topology,
        scheme=cell.scheme,
        variant=cell.variant,
        paper=paper,
        values=[float(x) for x in values],
        seeds=[int(s) for s in seeds],
    )
    if bounds is not None:
        made["bounds"] = bounds
    return made


def bounds_of(row: TableRow) -> Bounds:
    """What a row's values cannot leave: its own `bounds`, else those of an index, a share or a loss.

    >>> from inprofile.papers import Cell
    >>> bounds_of(row(Cell("", "", ""), [1], [1.0], table="", what="fairness index", label=""))
    (0.0, 1.0)
    """
    if "bounds" in row:
        lo, hi = row["bounds"]
        return float(lo), float(hi)
    what = row["what"].replace("_", " ").split(",")[0].split()
    return SHARE if not row["unit"] and {"index", "share", "loss"} & set(what) else FREE


def printed_rows(paper: Paper, cells: Mapping[Cell, Measures]) -> Iterator[TableRow]:
    """A row a printed number and cell, where the paper has no table of its own: see `plain`."""
    numbers = [n for claim in paper.claims for n in claim.tables("numbers")]
    for measure in dict.fromkeys(n.word("measure") for n in numbers):
        for cell, m in cells.items():
            if cell.sweep or measure not in m.values:
                continue
            titles = [paper.find("topologies", cell.topology).title, paper.find("schemes", cell.scheme).title]
            yield row(
                cell,
                m.seeds,
                m[measure],
                table=next(n.word("where") for n in numbers if n["measure"] == measure),
                what=measure,
                label=", ".join(titles),
                paper=paper.printed(measure, cell.topology, cell.scheme),
            )
