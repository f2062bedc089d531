"""The results of runs: tables, their summary, and how they are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import visible
from ..metrics.quantity import in_seconds
from ..metrics.summary import Rows, Summary, with_units
from ..own.engine import __version__
from ..own.registry import Source
from .storage import TABLES, FolderInUse, ResultError, read_folder, write_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from .. import _internal
    from ..charts.plot import Plots
    from ..metrics.contracts import Contracts
    from ..metrics.flow_figures import Groups
    from ..metrics.times import Delays, FlowTimes

__all__ = ["FolderInUse", "Provenance", "Result", "ResultError", "read"]

_MOST_DRAWN = 24
"""Flows whose throughput a notebook shows as a picture."""


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from: enough to get the same bytes again, and nothing that would change them."""

    title: str
    experiment: str
    """The effective experiment, canonical JSON."""
    effective: Mapping[str, Any]
    """The same for a reader: nodes, links, flows and routes with every value filled in."""
    seeds: tuple[int, ...]
    version: str = __version__
    live: tuple[Mapping[str, Any], ...] | None = None
    """Of runs with real hosts: how each kept time (seconds late at the median, the 99th percentile and at
    most), and what the kernel does otherwise. None of simulations, whose every byte follows from the rest."""
    text: str | None = field(default=None, compare=False, repr=False)
    """The experiment as it was written (TOML), to run it again with something changed; older results lack it.
    Two texts of one experiment have equal provenance."""
    overrides: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The values changed by `--set`."""
    sources: tuple[Source, ...] = field(default=(), compare=False, repr=False)
    """The code of its mechanisms in Python."""

    @property
    def digest(self) -> str:
        """SHA-256 of the experiment."""
        return hashlib.sha256(self.experiment.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        stored: dict[str, Any] = {
            "title": self.title,
            "digest": self.digest,
            "version": self.version,
            "seeds": list(self.seeds),
            "conservation": True,
            "experiment": self.experiment,
            "effective": self.effective,
        }
        if self.live is not None:
            stored["live"] = list(self.live)
        if self.text is not None:
            stored["text"] = self.text
            stored["set"] = [list(pair) for pair in self.overrides]
        if self.sources:
            stored["sources"] = [source.to_json() for source in self.sources]
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Provenance:
        """As it was stored; raise ResultError where it does not fit together."""
        try:
            made = cls(
                str(stored["title"]),
                stored["experiment"],
                stored["effective"],
                tuple(stored["seeds"]),
                stored["version"],
                tuple(stored["live"]) if "live" in stored else None,
                stored.get("text"),
                tuple((str(key), str(value)) for key, value in stored.get("set", ())),
                tuple(Source.from_json(source) for source in stored.get("sources", ())),
            )
        except KeyError as missing:
            raise ResultError(f"the provenance lacks {missing}") from None
        except (AttributeError, TypeError, ValueError):
            raise ResultError(
                "the provenance is of another kind than is written: it was changed by hand"
            ) from None
        if not isinstance(made.experiment, str) or made.digest != stored.get("digest"):
            raise ResultError("the stored experiment is not the one that was run: its digest differs")
        return made


class Result:
    """The result of an experiment's runs, a row a seed in each table.

    Tables are Arrow's; `.to_pandas()`, polars and DuckDB take them as they are.

    >>> import inprofile
    >>> result = inprofile.parse(inprofile.STARTER).with_(duration="30 s", seeds=2).run()
    >>> result.flows.column_names[:4]
    ['seed', 'flow', 'group', 'contract']
    >>> result.summary()["fi"].unit
    '1'
    """

    def __init__(self, tables: Mapping[str, pa.Table], provenance: Provenance) -> None:
        """From tables by name (see `storage.TABLES`); usually `Scenario.run` or `read` makes one."""
        self._tables = {name: with_units(name, table) for name, table in tables.items()}
        self.provenance = provenance

    @classmethod
    def from_engine(cls, raw: _internal.Results, provenance: Provenance) -> Result:
        """Take over what the simulator left, without a copy."""
        import pyarrow as pa

        if not raw.conservation:
            raise ArithmeticError(
                f"{provenance.title}: packets were lost without a cause; this is an error of ours"
            )
        made = raw.take(list(TABLES))
        return cls({name: pa.table(table) for name, table in zip(TABLES, made, strict=True)}, provenance)

    @property
    def title(self) -> str:
        """The experiment's title."""
        return self.provenance.title

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds it was run with."""
        return self.provenance.seeds

    @property
    def metrics(self) -> pa.Table:
        """One figure a row, some for each seed: `seed`, `name`, `unit`, `value`.

        `value` is in `unit` (`bit/s`, `s`, `packets`, `1`), missing where a run has none. `point` is where it
        was measured (`receivers`, `senders`, `edges`, or a link), `header` whether headers count (`wire`) or
        not (`payload`).
        """
        return self._tables["metrics"]

    @property
    def flows(self) -> pa.Table:
        """A row a `seed` and `flow`, in the file's order, with its `group` and `traffic`.

        Over the measured window, in bit/s: `throughput` (with headers), `goodput`, `received_in_rate` and
        `received_out_rate`; in packets: `sent_in`, `sent_out`, `received_in` and `received_out` by colour,
        `dropped_…` by cause. Over the whole run, in packets: `sent`, `received`, `dropped`, `in_flight` and
        `retransmissions`; how many: `timeouts` and `fast_retransmits`. In s: `rtt` (without queueing),
        `start`, `completed` (when), `startup`. `contract` is in bit/s, `size` (of a transfer) in bytes; both
        are missing for a flow that has none.
        """
        return self._tables["flows"]

    @property
    def drops(self) -> pa.Table:
        """Packets lost over the whole run: a row a `seed`, `flow`, `place` and `cause` that has any.

        `in`, `out` and `red` are packets by colour; `place` is the link or marker that lost them.
        """
        return self._tables["drops"]

    @property
    def queues(self) -> pa.Table:
        """A row a `seed` and link's `queue`, also of a link's class.

        Over the measured window, in packets: `arrived_in`, `arrived_out`, `arrived_red`, and likewise
        `sent_…` and `dropped_…` by colour, `dropped_…` by cause, `marked` (ECN), and `queue_mean`, the length
        averaged over time; in bit/s: `arrived_in_rate`, `arrived_out_rate`, `sent_rate`. `utilisation` is a
        share (0 to 1). Over the whole run, in packets: `total_arrived`, `total_sent`, `total_dropped`, and
        `waiting` at its end. `stats` is JSON of the discipline's own counters.
        """
        return self._tables["queues"]

    @property
    def markers(self) -> pa.Table:
        """A row a `seed` and marker: its `place` (a flow, or an edge's node) and `kind`.

        Over the measured window, in packets: `arrived_in`, `arrived_out`, `left_in`, `left_out` and
        `dropped`; in bit/s: `arrived_in_rate`, `arrived_out_rate`, `left_in_rate`, `left_out_rate`. `stats`
        is JSON of the marker's own counters.
        """
        return self._tables["markers"]

    @property
    def signals(self) -> pa.Table:
        """A row a pair of mechanisms that `[[signals]]` connects and seed: `seed`, `from`, `to`.

        `delay` (s) and `loss` (a share) are as written; `sent`, `lost` and `delivered` count messages.
        """
        return self._tables["signals"]

    @property
    def series(self) -> pa.Table:
        """Samples of `[[monitors]]`: a row a `seed`, `monitor`, `what` and time `t` (s), with its `value`.

        Of each seed, monitor and quantity one sample after the other, in the order of time.
        """
        return self._tables["series"]

    @property
    def verdicts(self) -> pa.Table:
        """Every verdict, where `trace` was asked for: a row a `seed` and decision, in the order of time.

        `time_ps` is in picoseconds, `packet` a number within the run; `flow`, `point` (a marker or link),
        `verdict`, `cause` of a drop, and `why`, JSON of the figures behind it.
        """
        return self._tables["verdicts"]

    @property
    def downloads(self) -> pa.Table:
        """Pages of the web and chunks of video that arrived whole: `seed`, `flow`, `group`, `number`.

        `asked` and `completed` are when (s), `size` is in bytes. `flow` is the video's, or the first of a
        page's connections; `number` counts, from 0, a client's pages or a flow's chunks; `stalled` is how
        long playback stalled for a chunk (s).
        """
        return self._tables["downloads"]

    @property
    def delays(self) -> pa.Table:
        """Distributions that `measure.distributions` asks for.

        A row a `seed`, `measure`, `point`, `group` and `colour`: how many (`count`, packets), and in s
        `mean`, `min`, `p50`, `p90`, `p99`, `p99_9`, `max`. A point is a link, `receivers`, or a class of
        either (`receivers/af`). An empty group or colour means all of them.
        """
        return self._tables["delays"]

    @property
    def cdf(self) -> pa.Table:
        """The same as cumulative distributions: by `seed`, `measure`, `point` and `group`.

        Up to `value` (s) are a `share` (0 to 1) of them.
        """
        return self._tables["cdf"]

    def summary(self) -> Summary:
        """Every metric's mean over the seeds with its 95 % interval."""
        measure = self.provenance.effective["measure"]
        marked = self.markers.num_rows > 0
        return Summary(self.metrics, {"from": measure["from"], "to": measure["to"]}, marked)

    def distributions(self) -> Delays:
        """The table `delays` over the seeds: each distribution's figures with their 95 % intervals."""
        from ..metrics.times import Delays

        return Delays(self.delays)

    def flow_times(self) -> FlowTimes:
        """Completion times of transfers and, with `measure.distributions`, start-up times of TCP flows.

        By group, over the measured window and the seeds: how many, how many unfinished, mean and quantiles.
        """
        from ..metrics.times import FlowTimes

        measure = self.provenance.effective["measure"]
        window = (in_seconds(measure["from"]), in_seconds(measure["to"]))
        measured = bool(measure.get("distributions")) and self.provenance.live is None
        return FlowTimes(self.flows, self.seeds, window, measured)

    def rows(self, table: str) -> Rows:
        """`flows`, `queues` or `markers` with each figure's mean and interval over the seeds."""
        return Rows(table, self._tables[table])

    @property
    def contracts(self) -> Contracts:
        """How well contracts were kept, by flow, group and experiment, and who got the excess."""
        from ..metrics.contracts import Contracts

        return Contracts(self)

    def groups(self) -> Groups:
        """Groups of flows: what a flow of each got on average, over the seeds."""
        from ..metrics.flow_figures import Groups

        return Groups(self)

    @property
    def plot(self) -> Plots:
        """Figures: `.cwnd()`, `.queue()`, `.tokens()`, `.throughput()`, `.dots()`."""
        from ..charts.plot import Plots

        return Plots(self)

    def to_pandas(self, table: str = "flows") -> Any:
        """A table by name as a pandas DataFrame, whose `attrs["units"]` has its columns' units."""
        from .tables import pandas_frame

        return pandas_frame(self._tables[table])

    def to_polars(self, table: str = "flows") -> Any:
        """The same as a polars DataFrame, the units in the names of its columns: `goodput [bit/s]`."""
        from .tables import polars_frame

        return polars_frame(self._tables[table])

    def latex(self) -> str:
        """Metrics and flows as tables for a paper, with their intervals (booktabs, siunitx)."""
        from ..metrics.latex import latex, tables_of

        return latex(tables_of(self.title, self))

    def write(self, folder: str | Path) -> None:
        """Write Parquet files into `folder`, whole or not at all; an earlier result there is replaced.

        Raises FolderInUse where the folder holds something else.
        """
        write_folder(folder, self._tables, self.provenance.to_json())

    def __repr__(self) -> str:
        n = len(self.seeds)
        head = f"Result({self.title!r}, {n} seed{'s' * (n != 1)})\n{self.summary()}"
        contracts = self.contracts
        return f"{head}\n\n{contracts}" if contracts else head

    def _repr_html_(self) -> str:
        from html import escape

        n = len(self.seeds)
        head = f"<p><b>{escape(visible(self.title))}</b>, {n} seed{'s' * (n != 1)}</p>"
        contracts = self.contracts
        kept = contracts._repr_html_() if contracts else ""
        flows = self.rows("flows")
        drawn = self.plot.dots("throughput") if 0 < len(flows) <= _MOST_DRAWN else None
        parts = (head, self.summary()._repr_html_(), kept, flows._repr_html_())
        from ..charts.plot import styled

        return styled("".join(parts), drawn)


def read(folder: str | Path) -> Result:
    """Take back what `Result.write` wrote.

    Raises FileNotFoundError where there is nothing, `ResultError` where it is not one whole result.
    """
    tables, manifest = read_folder(folder)
    return Result(tables, Provenance.from_json(manifest))
