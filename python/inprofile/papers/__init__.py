"""The papers that are reproduced: one folder each, with scenario files, claims and the paper's numbers.

A paper's folder holds `paper.toml` (what was run, claimed, assumed and printed; see `entry`) and its scenario
files: a paper whose claims state their comparisons needs no code (`stated`). `gallery` has papers of that
kind. What else one needs it may have of its own; `defaults` has it for a paper that doesn't:

- `claims`: `findings(paper, cells, variant)`, how each claim is judged; where it has one,
  `table(paper, cells)`, the paper's tables beside ours (else the printed numbers), and
  `rests_on(paper, claim, cell)`, whether a claim's verdict needs a cell of its set-up (else all do);
- `experiments`: `jobs(paper, quick, full)`, what is run, in batches; `full` adds crossed cells, further
  set-ups and sweeps;
- `measure`: `measure(result, cell, paper)`, what is kept of a cell's runs
  (`inprofile.metrics.measures.Measures`);
- `page`: `context(report, charts)`, its part of the report, shown by `page.html.j2`;
- `advice.toml` and `advice`: `figures(report)`, `picture(report)`, the first screen of its page, and
  `advice.json`, the figures of the last whole run (see `advice` here); `today(paper, cells)`, what it advises
  under today's senders (see `today`);
- `atlas.json`: where each claim holds over the paper's readings and unstated inputs
  (`inprofile.studies.atlas`).
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .checks import check
from .entry import Entry, PaperError
from .factors import Factor, FactorError, factors_of

if TYPE_CHECKING:
    from .claim import Finding

__all__ = [
    "Batches",
    "Cell",
    "Entry",
    "Job",
    "Paper",
    "PaperError",
    "UnknownPaperError",
    "gallery",
    "load",
    "names",
]

_HERE = Path(__file__).parent
#: Parts that a paper need not have of its own, and what serves those that do not.
_DEFAULTS = {"experiments": "defaults", "measure": "defaults", "page": "defaults", "claims": "stated"}


class UnknownPaperError(LookupError):
    """No paper of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'there is no paper "{name}" here: choose from {", ".join(names())},'
            " or give a folder that has a paper.toml"
        )


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

    @property
    def experiment(self) -> tuple[object, ...]:
        """What is run: equal for two cells whose runs are the same."""
        values = json.dumps(self.values, sort_keys=True, default=str)
        return self.file, values, self.seeds, self.after and self.cell


#: Jobs of a batch run together; a batch may need the measures of those before it.
Batches = Sequence[Sequence[Job]]


@dataclass(frozen=True)
class Paper:
    """A paper as its `paper.toml` describes it."""

    name: str
    folder: Path
    #: The whole file, as it is written.
    about: Mapping[str, Any]

    @property
    def top(self) -> Entry:
        """The whole file, its values by type."""
        return Entry(self.about, str(self.folder / "paper.toml"))

    @property
    def short(self) -> str:
        """What it is called in tables."""
        return self.top.word("short")

    @property
    def reference(self) -> str:
        """First author, year and title: `Hur 2006, “Performance Analysis …”`."""
        authors = self.top.words("authors")
        name = authors[0].split()[-1]
        first = {1: name, 2: f"{name} and {authors[-1].split()[-1]}"}.get(len(authors), f"{name} et al.")
        return f"{first} {self.top.whole('year')}, “{self.top.word('title')}”"

    @property
    def seeds(self) -> Entry:
        """How many seeds each kind of run has."""
        return self.top.table("seeds")

    @property
    def setups(self) -> list[Entry]:
        """Whole ways to read the paper, each with a scenario file for each topology."""
        return self.top.tables("setups")

    @property
    def topologies(self) -> list[Entry]:
        """Networks, by the paper's own figures."""
        return self.top.tables("topologies")

    @property
    def schemes(self) -> list[Entry]:
        """What is compared: overrides of a scenario file, or derived `after` another scheme has run."""
        return self.top.tables("schemes")

    @property
    def claims(self) -> list[Entry]:
        """What the paper says, in our words, with its numbers."""
        return self.top.tables("claims")

    @property
    def variants(self) -> list[Entry]:
        """Conditions under which every claim is judged once more: id and title ("with sender jitter")."""
        return self.top.tables("variants")

    @property
    def sweeps(self) -> list[Entry]:
        """Assumed parameters to vary, one at a time."""
        return self.top.tables("sweeps")

    @property
    def factors(self) -> list[Factor]:
        """What the text leaves open and what it does not state: see `factors`. Raises `FactorError`."""
        try:
            return factors_of(self.about)
        except FactorError as error:
            raise FactorError(f"{self.folder / 'paper.toml'}: {error}") from None

    def find(self, table: str, identity: str) -> Entry:
        """Find the entry of `table` with this id. Raises `KeyError`."""
        for entry in self.top.tables(table):
            if entry.id == identity:
                return entry
        raise KeyError(f"{self.name}: no {identity} among its {table}")

    def printed(self, measure: str, topology: str, scheme: str) -> float | None:
        """The number that the paper prints of a measure; None where it prints none."""
        for claim in self.claims:
            for n in claim.tables("numbers"):
                if (n["measure"], n["topology"], n["scheme"]) == (measure, topology, scheme):
                    return n.number("value")
        return None

    def module(self, part: str) -> ModuleType:
        """Import a part of the paper's code, or the common one in `defaults` where it has none of its own.

        Raises `PaperError` for a paper without claims.
        """
        if (self.folder / f"{part}.py").exists():
            return importlib.import_module(f"{self._package()}.{part}")
        if part not in _DEFAULTS:
            raise PaperError(f"{self.folder} has no {part}.py")
        if part == "claims":
            self._all_stated()
        return importlib.import_module(f"{__name__}.{_DEFAULTS[part]}")

    def _all_stated(self) -> None:
        """Refuse a paper without code for its claims where one of them states no comparisons."""
        bare = [claim.id for claim in self.claims if "comparisons" not in claim]
        if bare or not self.claims:
            which = f"claim {bare[0]} states no comparisons" if bare else "paper.toml has no claims"
            raise PaperError(
                f"{self.folder} has no claims.py, and {which}: write comparisons = [ … ] in the claim, or a"
                " claims.py with findings(paper, cells, variant)"
            )

    def findings(self, cells: Mapping[Cell, Any], variant: str = "") -> list[Finding]:
        """What was measured about every claim and set-up, as the paper's `claims` have it.

        A claim that does not depend on the set-up (`once`) is in the first one's alone, and in no variant's.
        """
        once = {claim.id for claim in self.claims if claim.flag("once")}
        found: list[Finding] = self.module("claims").findings(self, cells, variant)
        first = "" if variant else self.setups[0].id
        return [f for f in found if f.claim not in once or f.setup == first]

    def rests_on(self, claim: str, cell: Cell) -> bool:
        """Whether a claim's verdict in a set-up needs this cell: all, unless the paper's `claims` say so."""
        rule = getattr(self.module("claims"), "rests_on", None)
        return rule is None or bool(rule(self, claim, cell))

    def _package(self) -> str:
        """The package that the folder is; a folder of a user's own becomes one."""
        if self.folder.is_relative_to(_HERE):
            return ".".join([__name__, *self.folder.relative_to(_HERE).parts])
        name = f"inprofile_paper_{hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(self.folder)]
            sys.modules[name] = package
        return name


def names() -> list[str]:
    """Papers there are, by the names that commands take.

    >>> "ard" in names()
    True
    """
    return sorted(_about(path)["name"] for path in _HERE.glob("*/paper.toml"))


def gallery() -> list[str]:
    """Results published since, answered the same way, by the names that commands take."""
    return sorted(_about(path)["name"] for path in _HERE.glob("gallery/*/paper.toml"))


def load(name: str) -> Paper:
    """Load a paper by its name, or from a folder of your own that has a `paper.toml`.

    The code in such a folder is run: load only what you trust.

    Raises `UnknownPaperError`, and `PaperError` for a `paper.toml` that cannot be used.
    """
    own = Path(name)
    inside = [*_HERE.glob("*/paper.toml"), *_HERE.glob("gallery/*/paper.toml")]
    for path in [own / "paper.toml"] if (own / "paper.toml").is_file() else inside:
        about = _about(path)
        if about.get("name") == name or path.parent == own:
            check(about, path)
            return Paper(about["name"], path.parent.resolve(), about)
    raise UnknownPaperError(name)


def _about(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        try:
            return tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise PaperError(f"{path}: {error}") from None
