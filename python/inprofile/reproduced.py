"""A reproduced paper: what was measured of it, and the verdicts. `reproduce` makes it, `report` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._version import __version__
from .judge import Judged
from .papers import Cell, Entry, Job, Paper

__all__ = ["Report"]


@dataclass
class Report:
    """A reproduced paper: what was measured, and the verdicts."""

    paper: Paper
    quick: bool
    #: With the crossed readings, further set-ups and sweeps.
    full: bool
    #: Measures of every cell, as the paper's `measure` makes them.
    cells: dict[Cell, Any]
    #: Verdicts, one a claim and set-up; and the same under each of the paper's variants, by its id.
    judged: list[Judged]
    variants: dict[str, list[Judged]]
    #: What each cell was run from.
    jobs: dict[Cell, Job]
    #: Digest of each cell's effective experiment.
    digests: dict[Cell, str]
    #: Parameters that were derived from other cells' runs (a placebo's rate).
    derived: dict[Cell, Mapping[str, object]] = field(default_factory=dict)
    version: str = __version__
    #: Its `atlas.json`: where each claim holds over the paper's readings and unstated inputs.
    atlas: dict[str, Any] | None = None
    #: The page, once written.
    page: Path | None = None

    @property
    def setups(self) -> list[Entry]:
        """The set-ups that were judged, in the paper's order."""
        judged = {j.setup for j in self.judged}
        return [s for s in self.paper.setups if s.id in judged]

    @property
    def seeds(self) -> int:
        """How many seeds the verdicts rest on; the most, where experiments differ."""
        return max(job.seeds for job in self.jobs.values())

    def cell(
        self, setup: str, topology: str, scheme: str, variant: str = "", sweep: str = "", value: str = ""
    ) -> Any:
        """Measures of one cell. Raises `KeyError`."""
        return self.cells[Cell(setup, topology, scheme, variant, sweep, value)]
