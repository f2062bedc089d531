"""The papers that are reproduced: one folder each, with scenario files, claims and the paper's numbers.

A paper's folder holds `paper.toml` (what was run, claimed and printed), its scenario files, and the code
special to it:

- `experiments`: `jobs(paper, quick, full)`, what is run, in batches; `full` adds crossed cells, further
  set-ups and sweeps;
- `measure`: `measure(result, cell, paper)`, what is kept of a cell's runs (`papers.measures.Measures`);
- `claims`: `findings(paper, cells, variant)`, how each claim is judged, and `table(paper, cells)`, the
  paper's tables beside ours, whose rows may give the `bounds` of their values;
- `page`: `context(report, charts)`, its part of the report, shown by `page.html.j2`;
- `atlas.json`: where each claim holds over the paper's readings and unstated inputs (`inprofile.atlas`).
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from .factors import Factor, factors_of

__all__ = ["Batches", "Cell", "Job", "Paper", "UnknownPaperError", "load", "names"]

_HERE = Path(__file__).parent


class UnknownPaperError(LookupError):
    """No paper of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f'there is no paper "{name}" here: choose from {", ".join(names())}')


@dataclass(frozen=True, order=True)
class Cell:
    """One experiment of a paper, run with many seeds."""

    setup: str
    topology: str
    scheme: str
    #: Another condition (sender jitter, CUBIC): an id among the paper's `variants`, or empty.
    variant: str = ""
    #: Sweep (or the figure with several points) and value, as written in the file; both empty outside.
    sweep: str = ""
    value: str = ""

    def __str__(self) -> str:
        parts = (self.setup, self.topology, self.scheme, self.variant, f"{self.sweep} {self.value}".strip())
        return " / ".join(p for p in parts if p)


@dataclass(frozen=True)
class Job:
    """A cell, its experiment, and how many seeds it is run with."""

    cell: Cell
    #: Seeds 1 to this one.
    seeds: int
    #: The scenario file, in the paper's folder.
    file: str
    #: What differs from the file, by path.
    values: Mapping[str, object] = field(default_factory=dict)
    #: CPU seconds a run, roughly: for the estimate of `--plan` only.
    cost: float = 0.0
    #: The cell, of an earlier batch, from whose measures `claims.derived` makes more values.
    after: Cell | None = None


#: Jobs of a batch run together; a batch may need the measures of those before it.
Batches = Sequence[Sequence[Job]]


@dataclass(frozen=True)
class Paper:
    """A paper as its `paper.toml` describes it."""

    name: str
    folder: Path
    #: The whole file; its tables are used by their names below.
    about: dict[str, Any]

    def _list(self, key: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.about.get(key, [])
        return entries

    @property
    def setups(self) -> list[dict[str, Any]]:
        """Whole ways to read the paper, each with a scenario file for each topology."""
        return self._list("setups")

    @property
    def topologies(self) -> list[dict[str, Any]]:
        """Networks, by the paper's own figures."""
        return self._list("topologies")

    @property
    def schemes(self) -> list[dict[str, Any]]:
        """What is compared: overrides of a scenario file, or derived `after` another scheme has run."""
        return self._list("schemes")

    @property
    def claims(self) -> list[dict[str, Any]]:
        """What the paper says, in our words, with its numbers."""
        return self._list("claims")

    @property
    def variants(self) -> list[dict[str, Any]]:
        """Conditions under which every claim is judged once more: id and title ("with sender jitter")."""
        return self._list("variants")

    @property
    def sweeps(self) -> list[dict[str, Any]]:
        """Assumed parameters to vary, one at a time."""
        return self._list("sweeps")

    @property
    def factors(self) -> list[Factor]:
        """What the text leaves open and what it does not state: see `factors`. Raises `FactorError`."""
        return factors_of(self.about)

    def find(self, table: str, identity: str) -> dict[str, Any]:
        """Find the entry of `table` with this id. Raises `KeyError`."""
        for entry in self._list(table):
            if entry["id"] == identity:
                return entry
        raise KeyError(f"{self.name}: no {identity} among its {table}")

    def module(self, part: str) -> ModuleType:
        """Import the paper's own code: `experiments`, `measure`, `claims` or `page`."""
        return importlib.import_module(f"{__name__}.{self.folder.name}.{part}")


def names() -> list[str]:
    """Papers there are, by the names that commands take.

    >>> "ard" in names()
    True
    """
    return sorted(_about(path)["name"] for path in _HERE.glob("*/paper.toml"))


def load(name: str) -> Paper:
    """Load a paper by its name. Raises `UnknownPaperError`."""
    for path in _HERE.glob("*/paper.toml"):
        about = _about(path)
        if about["name"] == name:
            return Paper(name, path.parent, about)
    raise UnknownPaperError(name)


def _about(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)
