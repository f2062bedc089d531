"""Runs of a plan: made once, kept in a folder, and taken from there when the same plan goes on.

A run is kept as one row of figures, under the digest of its experiment and its seed (`run.ledger` has the
folder). `Bench` has the rows of a link's plans, `tree.answer` those of a tree's.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...metrics.contracts import BY_RUN
from ...own.engine import __version__, engine_digest
from ...run.ledger import Ledger, check_head
from ...run.pieces import Piece
from ...run.pool import Backend, Task
from ...run.storage import ResultError
from ...run.tables import Room, TooManyRows
from ..sweep.result import RunsOf, parquet, part_files

if TYPE_CHECKING:
    import pyarrow as pa

    from ...experiment.scenario import Scenario


Row = dict[str, Any]
"""Of one run: its setting, seed and digest, and the figures that are kept of it."""
HEAD = "plan.json"
SAYS = {
    "format": "another format",
    "version": "another version of Inprofile",
    "engine": "another build of the simulator",
    "experiment": "another experiment",
    "groups": "contracts of other groups",
    "tree": "another tree",
}
_TABLE = "runs"
_FIRST = ("setting", "seed", "digest")


class Store(ABC):
    """The runs of variants of an experiment, each a row."""

    tables: Sequence[str]
    """What is needed of a run."""
    columns: Sequence[str]
    """What is kept of it: numbers, and `texts`."""
    texts: Sequence[str]

    def __init__(
        self,
        scenario: Scenario,
        place: Path | None,
        backend: Backend,
        tell: Callable[[int], None],
        also: Mapping[str, Any],
    ) -> None:
        """Kept in `place`, or nowhere. `tell` is told how many runs are made; `also` is what rows depend on.

        Raises FolderInUse where `place` has runs of something else, or holds other things.
        """
        head: dict[str, Any] = {
            "format": 1,
            "version": __version__,
            "engine": engine_digest(),
            "experiment": scenario.canonical,
            **also,
        }
        self._backend = backend
        self._tell = tell
        self._known: dict[tuple[str, int], Row] = {}
        self._numbers: dict[str, int] = {}
        self._ledger: Ledger | None = None
        self.made = 0
        if place is not None:
            check_head(place, HEAD, head, {key: text for key, text in SAYS.items() if key in head})
            self._ledger = Ledger(place, HEAD, head)
            self._take_up(place)

    def _take_up(self, place: Path) -> None:
        import pyarrow as pa

        assert self._ledger is not None  # noqa: S101
        room = Room()
        try:
            tables = [room.read(path) for path in part_files(place, _TABLE)]
        except (pa.ArrowException, OSError, TooManyRows) as error:
            raise ResultError(f"{place / _TABLE} cannot be read: {error}") from None
        tables += [piece.tables[_TABLE] for piece in self._ledger.pieces.values()]
        for table in tables:
            for row in table.to_pylist():
                self._numbers[row["digest"]] = row["setting"]
                self._known[row["digest"], row["seed"]] = row

    @property
    def kept_before(self) -> int:
        """Runs that were there already."""
        return len(self._known) - self.made

    @abstractmethod
    def reduced(self, piece: Piece) -> Iterator[Row]:
        """A row a run, with its setting and seed."""

    def rows(self, asked: Sequence[tuple[Scenario, Sequence[int]]]) -> list[list[Row]]:
        """The rows of these experiments with these seeds, in order; what is not known is run."""
        tasks: dict[int, Task] = {}
        digests = []
        for scenario, seeds in asked:
            digest = hashlib.sha256(scenario.canonical.encode()).hexdigest()[:32]
            digests.append(digest)
            number = self._number_of(digest)
            there = tasks[number].seeds if number in tasks else ()
            missing = tuple(s for s in seeds if (digest, s) not in self._known and s not in there)
            if missing:
                tasks[number] = Task(number, scenario, there + missing, scenario.expected_packets(seeds=1))
        if tasks:
            self._make(list(tasks.values()))
        pairs = zip(digests, asked, strict=True)
        return [[self._known[digest, seed] for seed in seeds] for digest, (_, seeds) in pairs]

    def _make(self, tasks: Sequence[Task]) -> None:
        by_number = {number: digest for digest, number in self._numbers.items()}
        asked = [(task.setting, by_number[task.setting], task.seeds) for task in tasks]
        parts = [asked, __version__, engine_digest()]

        def done(piece: Piece) -> None:
            self._keep(piece, by_number)

        self._backend.begin(hashlib.sha256(json.dumps(parts).encode()).hexdigest(), done)
        missing = [
            replace(task, seeds=left)
            for task in tasks
            if (left := tuple(s for s in task.seeds if (by_number[task.setting], s) not in self._known))
        ]
        if missing:
            self._backend.run(missing, self.tables, done, self._beat)
        self._backend.end()

    def _number_of(self, digest: str) -> int:
        """A setting's number. Those that are kept may have gaps: runs finish in any order until a kill."""
        if digest not in self._numbers:
            self._numbers[digest] = 1 + max(self._numbers.values(), default=-1)
        return self._numbers[digest]

    def _keep(self, piece: Piece, by_number: Mapping[int, str]) -> None:
        import pyarrow as pa

        rows = [{**row, "digest": by_number[row["setting"]]} for row in self.reduced(piece)]
        self.made += len(rows)
        for row in rows:
            self._known[row["digest"], row["seed"]] = row
        if self._ledger is not None:
            self._ledger.keep(Piece(piece.runs, {_TABLE: pa.Table.from_pylist(rows, schema=self._schema())}))

    def _beat(self, _: int) -> None:
        if self._ledger is not None:
            self._ledger.beat()
        self._tell(self.made)

    def finish(self) -> None:
        """All runs are made: they become one Parquet file."""
        import pyarrow as pa

        if self._ledger is None or not self._ledger.take_all():
            return
        runs: dict[int, list[int]] = {}
        rows = sorted(self._known.values(), key=lambda row: (row["setting"], row["seed"]))
        for row in rows:
            runs.setdefault(row["setting"], []).append(row["seed"])
        table = pa.Table.from_pylist(rows, schema=self._schema())
        # A new file, then the ledger, then the old file goes: what ends this in between loses no run.
        old = list(self._ledger.parts)
        number = next(n for n in count() if n not in old)
        self._ledger.add_part(number, list(runs.items()), {_TABLE: parquet(table, {})})
        self._ledger.finish(without=old)

    def close(self) -> None:
        """Put what is finished onto the disk, and let go of the folder."""
        if self._ledger is not None:
            try:
                self._ledger.flush()
            finally:
                self._ledger.close()

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        first = zip(_FIRST, (pa.uint32(), pa.uint64(), pa.string()), strict=True)
        figures = [(name, pa.string() if name in self.texts else pa.float64()) for name in self.columns]
        return pa.schema([*first, *figures])


Array = NDArray[np.float64]
#: What is kept of a run; missing where there is no such figure. `worst_flow` is text, `others_kept` the share
#: of the contracts that was kept of groups that are not judged.
FIGURES = (*BY_RUN, "delay_mean", "utilisation", "others_kept")


@dataclass(frozen=True)
class RunFigures:
    """Figures of the runs of one experiment, one value a seed."""

    seeds: tuple[int, ...]
    values: Mapping[str, Array]
    worst_flow: tuple[str, ...]
    """By seed."""

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    @property
    def kept(self) -> int:
        """Runs in which every contract was kept."""
        return int(self.values["all_contracts_kept"].sum())


class Bench(Store):
    """Where a link's plan has its runs made."""

    tables = ("metrics", "flows")
    columns = (*FIGURES, "worst_flow")
    texts = ("worst_flow",)

    def __init__(
        self,
        scenario: Scenario,
        place: Path | None,
        backend: Backend,
        tell: Callable[[int], None],
        groups: Sequence[str] | None = None,
    ) -> None:
        """See `Store`. Where `groups` are given, the contracts of these alone are judged."""
        self._groups = groups
        super().__init__(scenario, place, backend, tell, {} if groups is None else {"groups": sorted(groups)})

    def run(self, asked: Sequence[tuple[Scenario, Sequence[int]]]) -> list[RunFigures]:
        """The figures of these experiments with these seeds, in order; what is not known is run."""
        pairs = zip(self.rows(asked), asked, strict=True)
        return [_figures(rows, seeds) for rows, (_, seeds) in pairs]

    def reduced(self, piece: Piece) -> Iterator[Row]:
        """See `Store`."""
        others: dict[tuple[int, int], dict[str, float]] = {}
        columns = (piece.tables["metrics"][c].to_pylist() for c in ("setting", "seed", "name", "value"))
        for setting, seed, name, value in zip(*columns, strict=True):
            if name in FIGURES:
                others.setdefault((setting, seed), {})[name] = value
        flows, groups = piece.tables["flows"], self._groups
        runs = RunsOf.of(flows)
        judged = None if groups is None else np.isin(np.array(flows["group"].to_pylist()), list(groups))
        found = runs.rows.figures(runs.starts, judged)
        if judged is not None:
            found["others_kept"] = runs.rows.figures(runs.starts, ~judged)["contracts_kept"]
        worst = flows["flow"].take(runs.rows.worst(runs.starts)).to_pylist()
        for i, (setting, seed) in enumerate(zip(runs.settings.tolist(), runs.seeds.tolist(), strict=True)):
            figures: dict[str, float | None] = dict.fromkeys(FIGURES)
            figures.update({name: x for name, values in found.items() if (x := float(values[i])) == x})
            figures.update(others[setting, seed])
            yield {"setting": setting, "seed": seed, "worst_flow": worst[i], **figures}


def _figures(rows: Sequence[Row], seeds: Sequence[int]) -> RunFigures:
    values = {name: np.array([_number(row.get(name)) for row in rows]) for name in FIGURES}
    return RunFigures(tuple(seeds), values, tuple(row["worst_flow"] for row in rows))


def _number(x: float | None) -> float:
    return float("nan") if x is None else x
