"""Carries a sweep out: finds the runs that are needed next, has them made, and writes finished parts."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...metrics.contracts import figure_over_runs
from ...metrics.stats import Estimate
from ...run.ledger import Ledger
from ...run.pieces import Piece
from ...run.pool import Backend, Task
from .plan import SweepPlan, looks
from .result import TABLES, Columns, parquet, with_contracts

#: Settings whose figures are kept for whoever looks on.
_RECENT = 64


class State:
    """How far a sweep is, for whoever looks on, and what decides how many seeds a setting gets."""

    def __init__(self, plan: SweepPlan, ledger: Ledger, watched: Sequence[str]) -> None:
        """`watched` are metrics that are kept besides those of `--until`."""
        import pyarrow as pa

        self.plan = plan
        self.metrics = tuple(dict.fromkeys([*(u.metric for u in plan.until), *watched]))
        self._wanted = pa.array(self.metrics, pa.string())
        self.saved = 0
        """Runs that need not be made as settings have had enough."""
        self._recent: dict[int, dict[str, dict[int, float]]] = {}
        self.units: dict[str, str] = {}
        """Of those metrics; empty for plain numbers."""
        self._ledger = ledger
        self._values: dict[int, dict[str, dict[int, float]]] = {}
        for entry in ledger.parts.values():
            self.saved += sum(len(plan.seeds) - len(seeds) for _, seeds in entry["runs"])
        for piece in ledger.pieces.values():
            self.take(piece)

    @property
    def finished(self) -> int:
        """Runs that are done."""
        return len(self._ledger.done)

    @property
    def runs(self) -> int:
        """Runs in all, as far as is known."""
        return self.plan.runs - self.saved

    def take(self, piece: Piece) -> None:
        """Note the figures of finished runs."""
        import pyarrow.compute as pc

        table = piece.tables["metrics"]
        table = table.filter(pc.is_in(table["name"], value_set=self._wanted))
        columns = (table[c].to_pylist() for c in ("setting", "seed", "name", "unit", "value"))
        for setting, seed, name, unit, value in zip(*columns, strict=True):
            if value is not None:
                self.units[name] = unit.removesuffix("1")
                self._values.setdefault(setting, {}).setdefault(name, {})[seed] = value

    def needed(self, setting: int) -> tuple[int, ...]:
        """Seeds that have to be run next; none where the setting has all that it needs."""
        plan, done = self.plan, self._ledger.done
        for look in looks(len(plan.seeds)) if plan.until else [len(plan.seeds)]:
            asked = plan.seeds[:look]
            missing = tuple(seed for seed in asked if (setting, seed) not in done)
            if missing:
                return missing
            if plan.until and self._enough(setting, asked):
                break
        return ()

    def _enough(self, setting: int, seeds: Sequence[int]) -> bool:
        values = self._values.get(setting, {})
        return all(
            u.met([x for seed in seeds if (x := values.get(u.metric, {}).get(seed)) is not None])
            for u in self.plan.until
        )

    def seeds_of(self, setting: int) -> tuple[int, ...]:
        """The seeds that a setting has."""
        return tuple(seed for seed in self.plan.seeds if (setting, seed) in self._ledger.done)

    def shown(self, most: int) -> list[tuple[int, int, dict[str, Estimate]]]:
        """Setting, number of seeds and figures of the last settings that have any, at most so many."""
        found = {**self._recent, **{n: self._values[n] for n in sorted(self._values)[:most]}}
        return [(n, len(self.seeds_of(n)), _estimates(found[n])) for n in sorted(found)[-most:]]

    def close(self, setting: int) -> None:
        """A setting is finished: its figures stay a while for whoever looks on."""
        self.saved += len(self.plan.seeds) - len(self.seeds_of(setting))
        self._recent[setting] = self._values.pop(setting, {})
        while len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]


def _estimates(values: Mapping[str, Mapping[int, float]]) -> dict[str, Estimate]:
    return {name: figure_over_runs(name, found.values()) for name, found in values.items() if found}


def carry_out(
    plan: SweepPlan, ledger: Ledger, backend: Backend, state: State, watch: Callable[[State], None]
) -> None:
    """Make all runs that the ledger does not have, and write the dataset.

    However it ends, what is finished is kept. `watch` is called a few times a second.
    """
    columns = Columns(plan)
    digest = hashlib.sha256(json.dumps(plan.head(), sort_keys=True).encode()).hexdigest()
    metadata = {"inprofile": json.dumps({"title": plan.base.title, "sweep": digest})}

    def done(piece: Piece) -> None:
        piece = with_contracts(piece)
        state.take(piece)
        ledger.keep(piece)

    def beat(_: int = 0) -> None:
        ledger.beat()
        watch(state)

    beat()
    try:
        backend.begin(digest, done)
        for group in _groups(plan, ledger, backend.together):
            settings = [setting for _, part in group for setting in part]
            while wanted := [(n, seeds) for n in settings if (seeds := state.needed(n))]:
                tasks = [Task(n, plan.scenario(n), seeds, plan.packets_by[n]) for n, seeds in wanted]
                backend.run(tasks, TABLES, done, beat)
            for number, part in group:
                runs = [(n, state.seeds_of(n)) for n in part]
                tables = ledger.rows(part)
                files = {name: parquet(columns.put(table), metadata) for name, table in tables.items()}
                ledger.add_part(number, runs, files)
                for setting in part:
                    state.close(setting)
            beat()
        ledger.finish()
        backend.end()
    except BaseException:
        # What has finished is kept however this ends; a disk that refused once has said so.
        with contextlib.suppress(OSError):
            ledger.flush()
        raise


def _groups(plan: SweepPlan, ledger: Ledger, runs: int) -> Iterator[list[tuple[int, range]]]:
    """The parts that are missing, as many together as have about so many runs."""
    group: list[tuple[int, range]] = []
    size = 0
    for number, part in plan.parts():
        if number in ledger.parts:
            continue
        group.append((number, part))
        size += len(part) * len(plan.seeds)
        if size >= runs:
            yield group
            group, size = [], 0
    if group:
        yield group
