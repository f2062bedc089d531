"""Tables of runs, reduced over the seeds: metrics, and rows by flow, queue or marker.

Units of the tables' columns are in the metadata of their fields: `table.field("rtt").metadata[b"unit"]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

from .._input import visible
from .quantity import pm, quantity
from .stats import POSITIVE, Bounds, Estimate, estimate

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


KEYS: Mapping[str, tuple[str, ...]] = {
    "flows": ("flow", "group"),
    "queues": ("queue",),
    "markers": ("place", "kind"),
}
"""The columns that identify a row of each table."""

GIVEN = ("contract", "rtt")
"""The columns that the experiment fixes for every seed; everything else is a figure."""

_BLOCK = 128
"""Rows that are taken from columns at a time."""

MOST_ROWS = 40
"""At most this many rows are shown; the tables have all."""

SHOWN: Mapping[str, tuple[str, ...]] = {
    "flows": ("contract", "throughput", "goodput", "sent_in", "sent_out", "dropped", "timeouts"),
    "queues": ("utilisation", "queue_mean", "dropped_early", "dropped_forced", "dropped_overflow"),
    "markers": ("arrived_in_rate", "arrived_out_rate", "left_in_rate", "left_out_rate", "dropped"),
}
"""The figures shown where there is no room for all."""

_UNITS = {
    "contract": "bit/s",
    "throughput": "bit/s",
    "goodput": "bit/s",
    "rtt": "s",
    "start": "s",
    "completed": "s",
    "startup": "s",
    "size": "B",
    "utilisation": "",
    "timeouts": "",
    "fast_retransmits": "",
}


_SHARES = (
    "fi",
    "utilisation",
    "loss_synchronisation",
    "loss_synchronisation_random",
    "contracts_kept",
    "all_contracts_kept",
    "excess_share",
)
_OF_COLOURS = ("lambda_in", "lambda_out")
_HEADINGS = {"sent_in": "sent IN", "sent_out": "sent OUT", "timeouts": "RTOs"}


def _floats(values: NDArray[Any]) -> list[float]:
    found: list[float] = values.astype("float64").tolist()
    return found


@cache
def unit_of(column: str) -> str:
    """Unit of a column of flows, queues or markers.

    >>> unit_of("received_in_rate"), unit_of("rtt"), unit_of("dropped_early")
    ('bit/s', 's', 'packets')
    """
    return _UNITS.get(column, "bit/s" if column.endswith("_rate") else "packets")


def heading_of(column: str) -> str:
    """A column as tables head it.

    >>> heading_of("sent_in"), heading_of("dropped_early"), heading_of("timeouts")
    ('sent IN', 'dropped early', 'RTOs')
    """
    return _HEADINGS.get(column, column.replace("_", " "))


def bounds_of(name: str, values: Iterable[float]) -> Bounds:
    """The bounds of a figure of this name; wider where `values` exceed them, as in older results.

    >>> bounds_of("utilisation", [0.98, 1.0]), bounds_of("goodput", [494e3]), bounds_of("fi", [])
    ((0.0, 1.0), (0.0, inf), (0.0, 1.0))
    """
    if name in _SHARES or name.startswith("loss_"):
        return 0.0, max((1.0, *values))
    return POSITIVE


@dataclass(frozen=True)
class Metric:
    """One figure over the seeds."""

    name: str
    unit: str
    """`bit/s`, `s`, `packets`, or `1`."""
    values: Mapping[int, float]
    """By seed; a seed where it is undefined (a loss rate of nothing) is omitted."""
    point: str
    """Where it is measured."""
    header: str
    """`wire` where headers count, `payload` where not."""
    window: Mapping[str, str]
    """The time it is over: `from` (included) `to` (excluded)."""

    @property
    def estimate(self) -> Estimate:
        """Mean and 95 % interval."""
        return estimate(self.values.values(), bounds_of(self.name, self.values.values()))

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return self.estimate.mean

    def __str__(self) -> str:
        return pm(self.estimate, "" if self.unit == "1" else self.unit)

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it, with the seeds that have a value."""
        return {
            "unit": self.unit,
            **_json(self.estimate),
            "values": list(self.values.values()),
            "seeds": list(self.values),
            "point": self.point,
            "window": dict(self.window),
            "header": self.header,
        }


class Summary(Mapping[str, Metric]):
    """Metrics by name; shown as a table."""

    def __init__(self, metrics: pa.Table, window: Mapping[str, str], marked: bool = True) -> None:
        """From a result's `metrics` table, all of them measured over `window`.

        Where nothing marks (`marked` is false), the table that is shown has no rates by colour: every packet
        is IN then, and `loss_in` the loss rate.
        """
        self._marked = marked
        rows: dict[str, dict[str, Any]] = {}
        for row in metrics.to_pylist():
            kept = rows.setdefault(row["name"], {**row, "values": {}})
            if _known(row["value"]):
                kept["values"][row["seed"]] = row["value"]
        self._metrics = {
            name: Metric(name, r["unit"], r["values"], r["point"], r["header"], window)
            for name, r in rows.items()
            if r["values"]
        }

    def __getitem__(self, name: str) -> Metric:
        try:
            return self._metrics[name]
        except KeyError:
            known = ", ".join(self._metrics) or "none"
            raise KeyError(f"no metric is called {name!r} here; there are: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text."""
        return ["metric", "mean ± 95 %", "seeds", "at", "counts"], [
            [m.name, str(m), str(len(m.values)), m.point, m.header]
            for m in self.values()
            if self._marked or m.name not in _OF_COLOURS
        ]

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


@dataclass(frozen=True)
class Row:
    """One flow, queue or marker, its figures over the seeds."""

    keys: Mapping[str, str]
    given: Mapping[str, float | None]
    figures: Mapping[str, Estimate]
    values: Mapping[str, Sequence[float]]

    def text(self, column: str) -> str:
        """One of its figures; a count of packets without its unit."""
        unit = unit_of(column).removesuffix("packets")
        given = self.given.get(column)
        if given is not None:
            return quantity(given, unit)
        return pm(self.figures[column], unit) if column in self.figures else "–"

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        figures = {
            name: {"unit": unit_of(name), **_json(figure), "values": list(self.values[name])}
            for name, figure in self.figures.items()
        }
        return {**self.keys, **self.given, **figures}


class Rows(Sequence[Row]):
    """Rows of `flows`, `queues` or `markers`, in the order of the experiment; shown as a table."""

    def __init__(self, kind: str, table: pa.Table) -> None:
        """From a result's table of that name. A row is made when it is asked for: there may be a million."""
        import numpy as np

        self.kind = kind
        keys = KEYS[kind]
        self._keys = {n: table.column(n).combine_chunks() for n in keys}
        given = [n for n in GIVEN if n in table.column_names]
        named = {"seed", *keys, *given}
        figures = [n for n in table.column_names if n not in named and _numeric(table, n)]
        # What is missing becomes NaN.
        numbers_of = {n: table.column(n).to_numpy() for n in (*given, *figures)}
        self._given = {n: numbers_of[n] for n in given}
        self._figures = {n: numbers_of[n] for n in figures}
        # Rows with the same keys have the same number; numbers are in the order of their first rows.
        codes = np.zeros(table.num_rows, dtype=np.int64)
        for key in keys:
            column = self._keys[key].dictionary_encode()
            codes = codes * (len(column.dictionary) + 1) + column.indices.fill_null(-1).to_numpy() + 1
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        numbers = rank[numbers]
        self._at = np.argsort(numbers, kind="stable")
        self._starts = np.searchsorted(numbers[self._at], np.arange(len(first) + 1))
        self._which = np.arange(len(first))

    def _rows(self, numbers: NDArray[np.intp]) -> Iterator[Row]:
        """These rows, from columns that are taken together for all of them."""
        import numpy as np

        starts, ends = self._starts[numbers], self._starts[numbers + 1]
        at = np.concatenate([self._at[a:b] for a, b in zip(starts, ends, strict=True)] or [self._at[:0]])
        last = np.cumsum(ends - starts)
        firsts = at[last - (ends - starts)]
        keys = {n: column.take(firsts).to_pylist() for n, column in self._keys.items()}
        given = {n: _floats(column[firsts]) for n, column in self._given.items()}
        figures = [(n, _floats(column[at])) for n, column in self._figures.items()]
        start = 0
        for i, end in enumerate(last.tolist()):
            values = {n: [v for v in column[start:end] if v == v] for n, column in figures}
            known = {n: vs for n, vs in values.items() if vs}
            yield Row(
                {n: column[i] for n, column in keys.items()},
                {n: column[i] if _known(column[i]) else None for n, column in given.items()},
                {n: estimate(vs, bounds_of(n, vs)) for n, vs in known.items()},
                known,
            )
            start = end

    def _row(self, number: int) -> Row:
        import numpy as np

        return next(self._rows(np.array([number])))

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _BLOCK):
            yield from self._rows(self._which[start : start + _BLOCK])

    def names(self) -> list[str]:
        """The subject of each row: the flow, queue or place."""
        firsts = self._at[self._starts[self._which]]
        return list(self._keys[KEYS[self.kind][0]].take(firsts).to_pylist())

    def where(self, wanted: Callable[[Row], bool]) -> Rows:
        """Only the rows that are `wanted`."""
        return self._only([wanted(row) for row in self])

    def named(self, wanted: Callable[[str], bool]) -> Rows:
        """Only the rows whose name is `wanted`."""
        return self._only([wanted(name) for name in self.names()])

    def _only(self, wanted: list[bool]) -> Rows:
        import numpy as np

        part = copy(self)
        part._which = self._which[np.array(wanted, dtype=bool)]
        return part

    def __getitem__(self, index: Any) -> Any:
        found = self._which[index]
        return list(self._rows(found)) if isinstance(index, slice) else self._row(int(found))

    def __len__(self) -> int:
        return len(self._which)

    def text(self, most: int = MOST_ROWS) -> str:
        """The table, of at most this many rows."""
        return text_table(*self.table(most=most))

    def table(
        self, columns: Sequence[str] | None = None, most: int = MOST_ROWS
    ) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text; `columns` are by default those that tell most. Counts are packets."""
        rows: list[Row] = self[:most]
        wanted = columns or [*SHOWN[self.kind], *self._other_causes(rows)]
        shown = [c for c in wanted if any(c in row.figures or row.given.get(c) is not None for row in rows)]
        first = KEYS[self.kind][0]
        body = [[row.keys[first], *(row.text(c) for c in shown)] for row in rows]
        if len(self) > len(rows):
            body.append([f"… {len(self) - len(rows)} more", *("" for _ in shown)])
        return [first, *map(heading_of, shown)], body

    def _other_causes(self, rows: Sequence[Row]) -> list[str]:
        """Causes of a queue's drops that are not always shown, where there were such drops."""
        if self.kind != "queues":
            return []
        causes = [c for c in self._figures if c.startswith("dropped_") and c not in SHOWN[self.kind]]
        return [c for c in causes if any(c in r.figures and r.figures[c].mean > 0 for r in rows)]

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def text_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right.

    >>> print(text_table(["flow", "goodput"], [["tcp.0", "1"], ["x", "22"]]))
    flow   goodput
    tcp.0        1
    x           22
    """
    lines = [[visible(cell, lines=False) for cell in row] for row in (heading, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as HTML, without markup from the cells."""
    head = "".join(f"<th>{escape(visible(cell))}</th>" for cell in heading)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _numeric(table: pa.Table, column: str) -> bool:
    import pyarrow as pa

    kind = table.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _json(figure: Estimate) -> dict[str, Any]:
    """Mean, interval (null where one seed cannot tell) and count."""
    return {"mean": figure.mean, "ci95": list(figure.ci95 or (None, None)), "n": figure.n}


_OF: Final = {
    "drops": {"in": "packets", "out": "packets", "red": "packets"},
    "signals": {"delay": "s", "loss": "1", "sent": "1", "lost": "1", "delivered": "1"},
    "series": {"t": "s"},
    "verdicts": {"time_ps": "ps"},
    "downloads": {"size": "B", "asked": "s", "completed": "s", "stalled": "s"},
    "delays": {
        "count": "packets",
        **dict.fromkeys(("mean", "min", "p50", "p90", "p99", "p99_9", "max"), "s"),
    },
    "cdf": {"share": "1", "value": "s"},
}
#: Tables whose columns have the same units wherever they stand.
_FIGURES: Final = ("flows", "queues", "markers")
_NUMBERS: Final = ("seed", "setting")


def unit_in(table: str, column: str) -> str | None:
    """The unit of a table's column of numbers; None where it has none, or a row says it.

    >>> unit_in("flows", "rtt"), unit_in("queues", "utilisation"), unit_in("flows", "seed")
    ('s', '1', None)
    """
    if table in _FIGURES and column not in _NUMBERS:
        return unit_of(column) or "1"
    return _OF.get(table, {}).get(column)


def with_units(name: str, table: pa.Table) -> pa.Table:
    """The same table, its fields with their units; a unit that is there already stays."""
    import pyarrow as pa

    fields = []
    for field in table.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        known = field.metadata is not None and b"unit" in field.metadata
        unit = unit_in(name, field.name) if number and not known else None
        fields.append(
            field if unit is None else field.with_metadata({**(field.metadata or {}), b"unit": unit})
        )
    return table.cast(pa.schema(fields, table.schema.metadata))
