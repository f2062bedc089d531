"""Delays, and flows' completion and start-up times (RFC 7928 §2.1 and §2.2), over the seeds, as tables.

A group of flows is a size, unless its sizes are drawn: compare groups to compare sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .quantity import pm, quantity
from .stats import POSITIVE, Estimate, estimate
from .summary import MOST_ROWS, html_table, text_table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


DELAY_FIGURES = ("mean", "p50", "p90", "p99", "p99_9", "max")
"""The columns of a distribution; all in seconds."""

_DELAY_HEADINGS = {"p99_9": "p99.9"}


@dataclass(frozen=True)
class Delay:
    """One distribution: each figure's value by seed, in seconds."""

    measure: str
    """`queueing_delay`, `one_way_delay`, `excess_delay`, `delay_variation` or `loss_interval`."""
    point: str
    """A link, `receivers`, or a class of either, such as `bottleneck/af` and `receivers/af`."""
    group: str | None
    """The group of flows; None: all."""
    colour: str | None
    """`in`, `out` or `red`; None: all. Where all are of one colour there is no other row."""
    values: Mapping[str, Sequence[float]]
    """By figure: `count`, `min`, and those of `FIGURES`."""

    def __getitem__(self, figure: str) -> Estimate:
        """Mean over the seeds with its 95 % interval."""
        return estimate(self.values[figure], POSITIVE)

    @property
    def name(self) -> str:
        """Its subject, in words."""
        parts = [self.measure.replace("_", " "), self.point if self.point != "receivers" else "", self.group]
        of = [part for part in parts if part] + ([self.colour.upper()] if self.colour else [])
        return ", ".join(of)

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        figures = {}
        for name, values in self.values.items():
            found = self[name]
            figures[name] = {
                "unit": "1" if name == "count" else "s",
                "mean": found.mean,
                "ci95": list(found.ci95 or (None, None)),
                "n": found.n,
                "values": list(values),
            }
        return {
            "measure": self.measure,
            "point": self.point,
            "group": self.group,
            "colour": self.colour,
            **figures,
        }


class Delays(Sequence[Delay]):
    """Every distribution of a result; shown as a table."""

    def __init__(self, table: pa.Table) -> None:
        """From a result's table `delays`."""
        rows: dict[tuple[str, str, str | None, str | None], dict[str, list[float]]] = {}
        for row in table.to_pylist():
            key = (row["measure"], row["point"], row["group"], row["colour"])
            found = rows.setdefault(key, {name: [] for name in ("count", "min", *DELAY_FIGURES)})
            for name, values in found.items():
                values.append(float(row[name]))
        self._rows = [Delay(*key, values) for key, values in rows.items()]

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Delay]:
        return iter(self._rows)

    def find(
        self, measure: str, point: str | None = None, group: str | None = None, colour: str | None = None
    ) -> Delay | None:
        """The distribution of this measure, point (None: whichever is first), group and colour."""
        for row in self:
            if (row.measure, row.group, row.colour) == (measure, group, colour) and point in (
                None,
                row.point,
            ):
                return row
        return None

    def table(self, wanted: Sequence[Delay] | None = None) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text."""
        body = [
            [row.name, *(pm(row[figure], "s") for figure in DELAY_FIGURES)]
            for row in (self._rows if wanted is None else wanted)
        ]
        return ["delays", *(_DELAY_HEADINGS.get(figure, figure) for figure in DELAY_FIGURES)], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

FIGURES = ("count", "unfinished", "mean", *_QUANTILES)
"""The columns of each seed: number of flows, then seconds."""

_CONNECTIONS = ("bulk", "transfer", "web", "video")
"""Traffic that starts with a handshake."""
_TITLES = {"completion": "completion", "startup": "start-up"}
_HEADINGS = {"count": "flows"}


@dataclass(frozen=True)
class FlowTime:
    """The times of one group."""

    measure: str
    """`completion`: from a transfer's start until its receiver has all of it, of those that completed within
    the window. `startup`: from a flow's start to its first data leaving, of those where it left within the
    window; TCP, with `measure.distributions`."""
    group: str
    traffic: str
    """`transfer`; of start-up times also `bulk`, `web` or `video`."""
    size: float | None
    """Payload of each of its transfers, in bytes; None where sizes are drawn or nothing is transferred."""
    times: Mapping[int, NDArray[np.float64]]
    """By seed: every flow's time in seconds, in increasing order."""
    unfinished: Mapping[int, int]
    """By seed: flows that began before the end of the window and had not got there by then. Their times are
    longer than they have lasted, and in no figure: where there are many, the others were the quick ones."""

    @property
    def values(self) -> dict[str, dict[int, float]]:
        """Each figure by seed; a seed where no flow got there has no times.

        A quantile is the least time that at least this share of the flows did not exceed.
        """
        import numpy as np

        some = {seed: found for seed, found in self.times.items() if len(found)}
        quantiles = {
            name: {s: float(np.quantile(x, share, method="inverted_cdf")) for s, x in some.items()}
            for name, share in _QUANTILES.items()
        }
        return {
            "count": {seed: float(len(found)) for seed, found in self.times.items()},
            "unfinished": {seed: float(count) for seed, count in self.unfinished.items()},
            "mean": {seed: float(np.mean(found)) for seed, found in some.items()},
            **quantiles,
        }

    def __getitem__(self, figure: str) -> Estimate | None:
        """Mean over the seeds with its 95 % interval; None where no seed has a value."""
        found = self.values[figure]
        return estimate(found.values(), POSITIVE) if found else None

    @property
    def name(self) -> str:
        """Its subject, in words."""
        size = "" if self.size is None else f" ({quantity(self.size, 'B')})"
        return f"{_TITLES[self.measure]}, {self.group}{size}"

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it: every figure with the seeds that have a value."""
        figures: dict[str, Any] = {}
        for name, found in self.values.items():
            over = estimate(found.values(), POSITIVE) if found else None
            figures[name] = {
                "unit": "1" if name in ("count", "unfinished") else "s",
                "mean": over.mean if over else None,
                "ci95": list(over.ci95 if over and over.ci95 else (None, None)),
                "n": len(found),
                "values": list(found.values()),
                "seeds": list(found),
            }
        of = {"measure": self.measure, "group": self.group, "traffic": self.traffic, "size": self.size}
        return {**of, **figures}


class FlowTimes(Sequence[FlowTime]):
    """The times of every group, in the order of the experiment; shown as a table."""

    def __init__(
        self, flows: pa.Table, seeds: Sequence[int], window: tuple[float, float], startup: bool
    ) -> None:
        """From a result's table `flows`, over `window` (s: from, included, to, excluded).

        `startup`: whether the runs measured start-up times, `measure.distributions`.
        """
        import pyarrow.compute as pc

        self._rows: list[FlowTime] = []
        # Older results, and experiments without a transfer, have nothing to tell.
        if not {"traffic", "size", "completed", "startup"} <= set(flows.column_names):
            return
        present = set(pc.unique(flows["traffic"]).to_pylist())
        if "transfer" in present or (startup and present & set(_CONNECTIONS)):
            self._rows = list(_rows(flows, seeds, window, startup))

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[FlowTime]:
        return iter(self._rows)

    def find(self, measure: str, group: str) -> FlowTime | None:
        """The row of this measure (`completion` or `startup`) and group."""
        return next((row for row in self if (row.measure, row.group) == (measure, group)), None)

    def table(
        self, wanted: Sequence[FlowTime] | None = None, most: int = MOST_ROWS
    ) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text; at most this many rows."""
        rows = self._rows if wanted is None else wanted
        body = [[row.name, *_cells(row)] for row in rows[:most]]
        if len(rows) > most:
            body.append([f"… {len(rows) - most} more", *("" for _ in FIGURES)])
        return ["flow times", *(_HEADINGS.get(name, name) for name in FIGURES)], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def _cells(row: FlowTime) -> Iterator[str]:
    for name, found in row.values.items():
        unit = "" if name in ("count", "unfinished") else "s"
        yield pm(estimate(found.values(), POSITIVE), unit) if found else "–"


def _rows(
    flows: pa.Table, seeds: Sequence[int], window: tuple[float, float], startup: bool
) -> Iterator[FlowTime]:
    """Completion times of every group of transfers, then start-up times of every group with connections."""
    import numpy as np
    import pyarrow as pa

    begins, ends = window
    seed, sent = (flows[name].to_numpy() for name in ("seed", "sent"))
    # What is empty becomes NaN.
    start, size, completed, started = (
        flows[name].cast(pa.float64()).to_numpy() for name in ("start", "size", "completed", "startup")
    )
    # What never begins sends nothing: a flow that was to start after its stop, a page that nobody asked for.
    began = (sent > 0) & (start < ends)
    # Groups are numbered in the order in which they appear: that of the experiment.
    group = flows["group"].combine_chunks().dictionary_encode()
    codes, names = group.indices.to_numpy(), group.dictionary.to_pylist()
    order = np.argsort(codes, kind="stable")
    own = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    traffic = [flows["traffic"][int(rows[0])].as_py() for rows in own]
    taken = {"completion": completed - start, "startup": started}
    # NaN is neither within the window nor before its end.
    reached = {"completion": completed, "startup": start + started}
    of = {"completion": ("transfer",), "startup": _CONNECTIONS if startup else ()}
    for measure, kinds in of.items():
        at = reached[measure]
        within = (begins <= at) & (at < ends)
        late = began & ~(at < ends)
        for name, rows, kind in zip(names, own, traffic, strict=True):
            if kind not in kinds:
                continue
            by_seed = {s: rows[seed[rows] == s] for s in seeds}
            times = {s: np.sort(taken[measure][one[within[one]]]) for s, one in by_seed.items()}
            unfinished = {s: int(late[one].sum()) for s, one in by_seed.items()}
            sizes = size[rows]
            alike = float(sizes[0]) if (sizes == sizes[0]).all() else None
            yield FlowTime(measure, name, kind, alike, times, unfinished)
