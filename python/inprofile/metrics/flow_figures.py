"""Figures of flows over the seeds: contracts for each row of `flows`, and groups of flows as rows.

Contracts for each row of a table `flows`, and the figures of whole runs that follow. A run's figures take a
sweep of ten thousand runs a hundredth of the time that an object a run would: everything is computed for
all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .quantity import pm
from .stats import Estimate, estimate
from .summary import SHOWN, bounds_of, heading_of, html_table, text_table, unit_of

if TYPE_CHECKING:
    import pyarrow as pa

    from .summary import Summary


class Runs(Protocol):
    """Runs of one experiment: `Result` is one, and so is anything else with these tables."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds it was run with."""

    @property
    def flows(self) -> pa.Table:
        """A row a flow and seed."""

    @property
    def series(self) -> pa.Table:
        """The samples of monitors."""

    def summary(self) -> Summary:
        """Every metric over the seeds."""


Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Traffic whose rate over a window is no rate of its own.
_FINITE = ("transfer",)
#: Traffic that does not fill what it is given.
_OFFERED = ("cbr", "poisson", "on_off")


class FlowRows:
    """Rows of a table `flows`, in its order."""

    def __init__(self, flows: pa.Table, order: NDArray[np.intp] | None = None) -> None:
        """From a result's or a piece's table; its rows in this order, where one is given."""
        wanted = ("throughput", "contract", "traffic", "dropped")
        flows = flows.select([name for name in wanted if name in flows.column_names])
        if order is not None:
            flows = flows.take(order)
        self.got: Array = _numbers(flows, "throughput")
        """bit/s on the wire."""
        contract = _numbers(flows, "contract")
        #: Flows that nothing was promised: best effort.
        self.free: Mask = np.isnan(contract)
        self.promised: Array = contract
        """bit/s; NaN where there is no contract to keep."""
        keeps: Mask = self.got >= contract
        if "traffic" in flows.column_names:
            self.promised = np.where(_is_in(flows, "traffic", _FINITE), np.nan, contract)
            offers_less = _is_in(flows, "traffic", _OFFERED)
            keeps = keeps | (offers_less & (_numbers(flows, "dropped") == 0))
        self.has: Mask = np.isfinite(self.promised)
        self.kept: Mask = keeps & self.has
        self.ratio: Array = np.divide(
            self.got, self.promised, out=np.full_like(contract, np.inf), where=self.has
        )
        """Throughput over contract; infinite where there is none to keep."""
        # Rates beyond the contracts, those of transfers among them: they take from the same link.
        self.beyond: Array = np.maximum(0.0, self.got - np.where(self.has, self.promised, 0.0))

    def figures(self, starts: NDArray[np.intp], of: Mask | None = None) -> dict[str, Array]:
        """The figures of `contracts.BY_RUN`, a value a run; NaN where a run has no such figure.

        Where `of` says which rows are judged, the first three are of their contracts alone.

        `starts` has the first row of each run; rows of a run stand together. `contracts_kept` is the share of
        the contracts that the run kept, `all_contracts_kept` 1 where that is all of them, `assurance_worst`
        the least assurance ratio (a kept contract's counts as 1 where less was offered), `best_effort` the
        throughput of flows without a contract, `excess_share` the part of what lies beyond the contracts that
        flows with a contract got (nothing where nothing does).
        """
        judged = self.has if of is None else self.has & of
        contracts, kept = _sums(judged, starts), _sums(self.kept & judged, starts)
        # A kept contract's ratio counts as 1 at least.
        ratio = np.where(self.kept, np.maximum(self.ratio, 1.0), self.ratio)
        ratio = np.where(judged, ratio, np.inf)
        worst = np.minimum.reduceat(ratio, starts)
        all_beyond = _sums(self.beyond, starts)
        excess = _sums(np.where(self.has, self.beyond, 0.0), starts)
        best_effort = _sums(np.where(self.free, self.got, 0.0), starts)
        any_contract = contracts > 0
        return {
            "contracts_kept": _divided(kept, contracts),
            "all_contracts_kept": np.where(any_contract, (kept == contracts).astype(np.float64), np.nan),
            "assurance_worst": np.where(any_contract, worst, np.nan),
            "best_effort": np.where(_sums(self.free, starts) > 0, best_effort, np.nan),
            "excess_share": np.where(any_contract, _divided(excess, all_beyond), np.nan),
        }

    def worst(self, starts: NDArray[np.intp]) -> NDArray[np.intp]:
        """The row of each run whose throughput is least beside its contract.

        Raises ValueError for a run without contracts.
        """
        runs = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(self.got)))
        least = np.flatnonzero(self.has & (self.ratio == np.minimum.reduceat(self.ratio, starts)[runs]))
        found, first = np.unique(runs[least], return_index=True)
        if len(found) != len(starts):
            raise ValueError("no flow has a contract")
        return np.asarray(least[first])


def run_starts(table: pa.Table, *columns: str) -> NDArray[np.intp]:
    """The first row of each run: where one of these columns changes."""
    changes = np.zeros(table.num_rows, dtype=bool)
    changes[:1] = True
    for column in columns:
        values = table[column].to_numpy()
        changes[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(changes)


def _sums(values: NDArray[np.bool_] | Array, starts: NDArray[np.intp]) -> Array:
    return np.asarray(np.add.reduceat(values.astype(np.float64), starts))


def _divided(a: Array, b: Array) -> Array:
    """Elementwise a / b; NaN where b is 0."""
    return np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)


def _numbers(flows: pa.Table, column: str) -> Array:
    """A column; what is missing becomes NaN."""
    return np.asarray(flows[column].to_numpy(), dtype=np.float64)


def _is_in(flows: pa.Table, column: str, words: tuple[str, ...]) -> Mask:
    """Which entries of a column of texts are one of these."""
    import pyarrow.compute as pc

    found = pc.is_in(flows[column].combine_chunks(), value_set=_texts(words))
    return np.asarray(found.to_numpy(zero_copy_only=False))


@cache
def _texts(words: tuple[str, ...]) -> pa.Array:
    """As Arrow has them: made once, as pyarrow looks for pandas each time that it makes an array."""
    import pyarrow as pa

    return pa.array(words)


#: What is shown of a group: a flow's figures but its own contract.
COLUMNS = tuple(column for column in SHOWN["flows"] if column != "contract")


@dataclass(frozen=True)
class Group:
    """One group; figures are means over its flows."""

    name: str
    flows: int
    figures: dict[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        return {
            "group": self.name,
            "flows": self.flows,
            **{
                name: {"unit": unit_of(name), "mean": e.mean, "ci95": list(e.ci95 or (None, None)), "n": e.n}
                for name, e in self.figures.items()
            },
        }


class Groups(Sequence[Group]):
    """All groups, in the order of the experiment; shown as a table."""

    def __init__(self, result: Runs) -> None:
        """From the table `flows`."""
        from .measures import by_flow

        table = result.flows
        columns = {c: by_flow(table, result.seeds, c) for c in COLUMNS if c in table.column_names}
        n = table.num_rows // len(result.seeds)
        names = np.asarray([str(g) for g in table.slice(0, n)["group"].to_pylist()], dtype=object)
        self._rows = []
        for group in dict.fromkeys(names):
            own = names == group
            means = {c: x[:, own].mean(axis=1).tolist() for c, x in columns.items()}
            figures = {c: estimate(values, bounds_of(c, values)) for c, values in means.items()}
            self._rows.append(Group(str(group), int(own.sum()), figures))

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text."""
        body = [
            [g.name, str(g.flows), *(pm(e, unit_of(c).removesuffix("packets")) for c, e in g.figures.items())]
            for g in self._rows
        ]
        shown = self._rows[0].figures if self._rows else {}
        return ["group (a flow)", "flows", *map(heading_of, shown)], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())
