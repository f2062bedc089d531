"""The figures kept of an experiment's runs: a few figures per seed, and the traces that plots show.

The runs of one experiment fill tens of millions of values; a claim, a comparison or a contract needs a few
per seed. Also the shapes in which a result's tables are read for it: monitors' samples, rows by name,
columns by flow.
"""

from __future__ import annotations

import struct
import sys
import tokenize
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from .._input import visible

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """A quantity over time: one seed's line, and where the others lie."""

    #: Seconds, the end of each step.
    t: Array
    #: The seed fixed beforehand.
    line: Array
    #: Tenth percentile, median and ninetieth percentile over all seeds.
    low: Array
    mid: Array
    high: Array


@dataclass(frozen=True)
class Measures:
    """One experiment's figures: each an array over seeds, in the order of `seeds`."""

    seeds: tuple[int, ...]
    #: One value a seed; rates in bit/s, counts in packets over the window.
    values: Mapping[str, Array]
    #: Empty where the runs kept no series (sweeps).
    traces: Mapping[str, Trace]
    #: What is kept of every flow, seeds × flows in the order of the scenario; often nothing.
    by_flow: Mapping[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    def first(self, seeds: int) -> Measures:
        """The figures of the first `seeds` seeds, without traces: to pair with runs of fewer."""
        values = {name: x[:seeds] for name, x in self.values.items()}
        return Measures(self.seeds[:seeds], values, {})

    def write(self, file: BinaryIO) -> None:
        """Write them as NumPy's npz; `read` takes them back."""
        arrays: dict[str, NDArray[Any]] = {"seeds": np.asarray(self.seeds, dtype=np.uint64)}
        arrays.update({f"value:{name}": x for name, x in self.values.items()})
        arrays.update({f"flows:{name}": x for name, x in self.by_flow.items()})
        for name, trace in self.traces.items():
            arrays.update({f"trace:{name}:{f.name}": getattr(trace, f.name) for f in fields(Trace)})
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @staticmethod
    def read(place: Path) -> Measures | None:
        """Take back what `write` wrote; None where there is nothing, or nothing whole.

        What is not whole is told on standard error: its runs are made again.
        """
        try:
            data = place.read_bytes()
        except FileNotFoundError:
            return None
        try:
            with np.load(BytesIO(data), allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
            return _from_arrays(found)
        except _NOT_WHOLE as error:
            why = str(error) or type(error).__name__
            sys.stderr.write(visible(f"{place} is damaged ({why}): it is made again.\n"))
            return None


#: What reading a damaged file leads to, depending on where the damage is: in the archive, in the compressed
#: data, in an array's head (which NumPy parses), or in what arrays there are.
_NOT_WHOLE = (
    AttributeError, BadZipFile, EOFError, LookupError, MemoryError, OSError, OverflowError, RuntimeError,
    SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError, zlib.error,
)  # fmt: skip


def _from_arrays(found: Mapping[str, NDArray[Any]]) -> Measures:
    """The measures of these arrays; KeyError, TypeError or ValueError where `write` wrote no such."""
    seeds = tuple(int(s) for s in found["seeds"])
    kinds: dict[str, dict[str, Array]] = {"value": {}, "flows": {}, "trace": {}}
    for key, array in found.items():
        if key != "seeds":
            kind, _, name = key.partition(":")
            kinds[kind][name] = array
    for name, array in (*kinds["value"].items(), *kinds["flows"].items()):
        if array.shape[:1] != (len(seeds),):
            raise ValueError(f"{name} has the shape {array.shape} for {len(seeds)} seeds")
    traces: dict[str, dict[str, Array]] = {}
    for key, array in kinds["trace"].items():
        name, _, part = key.partition(":")
        traces.setdefault(name, {})[part] = array
    return Measures(
        seeds, kinds["value"], {name: Trace(**parts) for name, parts in traces.items()}, kinds["flows"]
    )


class Series:
    """A result's monitor samples, by monitor and quantity, as seeds × times."""

    def __init__(self, table: pa.Table, seeds: tuple[int, ...]) -> None:
        """Sort `table` (seed, monitor, what, t, value) once."""
        self._seeds = seeds
        monitor, monitors = _codes(table, "monitor")
        what, whats = _codes(table, "what")
        self._t = table["t"].to_numpy()
        self._value = table["value"].to_numpy()
        seed = table["seed"].to_numpy()
        key = monitor * max(1, len(whats)) + what
        self._order = np.lexsort((self._t, seed, key))
        ends = np.searchsorted(key[self._order], np.arange(len(monitors) * len(whats) + 1))
        self._slices = {
            (m, w): (int(ends[i * len(whats) + j]), int(ends[i * len(whats) + j + 1]))
            for i, m in enumerate(monitors)
            for j, w in enumerate(whats)
        }

    def get(self, monitor: str, what: str) -> tuple[Array, Array] | None:
        """Give times, and values as seeds × times; None where nothing of the kind was sampled."""
        start, end = self._slices.get((monitor, what), (0, 0))
        if start == end:
            return None
        rows = self._order[start:end]
        values = self._value[rows].reshape(len(self._seeds), -1)
        return self._t[rows][: values.shape[1]], values


def _codes(table: pa.Table, column: str) -> tuple[NDArray[np.int64], list[str]]:
    encoded = table[column].combine_chunks()
    if hasattr(encoded, "dictionary_encode"):
        encoded = encoded.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def rows(table: pa.Table, seeds: tuple[int, ...], **where: str) -> dict[str, Any]:
    """Rows where every column has its value, one a seed, in the order of `seeds`."""
    import pyarrow.compute as pc

    for column, value in where.items():
        table = table.filter(pc.equal(table[column], value))
    columns: dict[str, Any] = {}
    found = table["seed"].to_numpy()
    if sorted(found.tolist()) != sorted(seeds):
        raise ValueError(f"{where}: {len(found)} rows for {len(seeds)} seeds")
    order = np.argsort(found)
    rank = np.argsort(np.argsort(seeds))
    for column in table.column_names:
        kind = table.schema.field(column).type
        if column not in where and str(kind) in ("double", "uint64", "int64", "uint32", "float"):
            columns[column] = np.asarray(table[column].to_numpy(), dtype=np.float64)[order][rank]
    return columns


def by_flow(flows: pa.Table, seeds: tuple[int, ...], column: str) -> Array:
    """Shape a column of `flows` as seeds × flows, the flows in the order of the scenario."""
    order = in_order_of_seeds(flows, seeds)
    return np.asarray(flows[column].to_numpy(), dtype=np.float64)[order].reshape(len(seeds), -1)


def in_order_of_seeds(flows: pa.Table, seeds: tuple[int, ...]) -> NDArray[np.intp]:
    """The rows of `flows` by their seeds, in the order of these; the rows of a seed stay in theirs."""
    # By arrays: there may be a million flows.
    asked = np.asarray(seeds, dtype=np.uint64)
    places = np.argsort(asked, kind="stable")
    ranks = places[np.searchsorted(asked[places], flows["seed"].to_numpy())]
    return np.argsort(ranks, kind="stable")
