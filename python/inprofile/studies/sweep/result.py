"""A finished sweep: its tables, and every setting's figures with their intervals.

Contract measures of finished runs, as metrics among the others: columns of a sweep.

The finished dataset: Parquet files of some settings each, the values of the axes in every row.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._input import read_file, visible
from ...experiment.scenario import Scenario
from ...metrics.contracts import BY_RUN, figure_over_runs
from ...metrics.quantity import pm
from ...metrics.stats import Estimate
from ...metrics.summary import html_table, text_table
from ...own.registry import Source
from ...run.ledger import LEDGER
from ...run.pieces import Piece
from ...run.storage import LARGEST_MANIFEST, ResultError
from ...run.tables import Room, TooManyRows, pandas_frame, polars_frame
from .axes import DEFAULT_METRICS, SweepError, column_of, named_settings, short_keys
from .plan import HEAD, scenario_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ...charts.plot import AnyChart
    from ...metrics.flow_figures import FlowRows
    from .plan import SweepPlan


TABLES = ("metrics", "flows", "queues", "markers")
"""The tables kept of every run, as `inprofile.run.results.Result` has it: of series and verdicts there is
too much."""


class Columns:
    """The axes' columns: names of values, or numbers in base units where all are of one kind, or texts."""

    def __init__(self, plan: SweepPlan) -> None:
        """Of all settings of a plan."""
        import pyarrow as pa

        self._made: list[tuple[pa.Field, pa.Array]] = []
        for i, key in enumerate(plan.keys):
            values, unit = column_of([setting[i] for setting in plan.shown])
            array = pa.array(values)
            self._made.append((pa.field(key, array.type, metadata={"unit": unit} if unit else None), array))

    def put(self, table: pa.Table) -> pa.Table:
        """The table with its settings' values after its first column."""
        for i, (field, array) in enumerate(self._made):
            table = table.add_column(i + 1, field, array.take(table["setting"].combine_chunks()))
        return table


def parquet(table: pa.Table, metadata: Mapping[str, str]) -> bytes:
    """A table as the bytes of a Parquet file; the same for the same rows."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    whole = table.combine_chunks().replace_schema_metadata(dict(metadata))
    pq.write_table(whole, sink, compression="zstd")
    return sink.getvalue()


def part_files(place: Path, name: str) -> Iterator[Path]:
    """The files of a table in order."""
    yield from sorted((place / name).glob("part-*.parquet"))


_POINT, _HEADER = "receivers", "wire"


@dataclass(frozen=True)
class RunsOf:
    """The runs in a piece's table `flows`, which has the rows of each together."""

    settings: NDArray[np.uint32]
    seeds: NDArray[np.uint64]
    starts: NDArray[np.intp]
    """The first row of each."""
    rows: FlowRows

    @classmethod
    def of(cls, flows: pa.Table) -> RunsOf:
        """All of them, in the table's order."""
        from ...metrics.flow_figures import FlowRows, run_starts

        starts = run_starts(flows, "setting", "seed")
        setting, seed = (flows[column].to_numpy()[starts] for column in ("setting", "seed"))
        return cls(setting, seed, starts, FlowRows(flows))


def with_contracts(piece: Piece) -> Piece:
    """The piece with the contract measures of its runs in its table `metrics`."""
    import numpy as np
    import pyarrow as pa

    runs = RunsOf.of(piece.tables["flows"])
    if not runs.rows.has.any():
        return piece
    found = runs.rows.figures(runs.starts)
    with_any = ~np.isnan(found["contracts_kept"])
    # What has no value in a run with contracts is missing there; best effort may be nobody's.
    which = {
        name: np.flatnonzero(with_any & ~np.isnan(values) if name == "best_effort" else with_any)
        for name, values in found.items()
    }
    runs_of = np.concatenate(list(which.values()))
    figures = np.concatenate([found[name][at] for name, at in which.items()])
    columns = {
        "setting": pa.array(runs.settings[runs_of]),
        "seed": pa.array(runs.seeds[runs_of]),
        "value": pa.array(figures, from_pandas=True),
        "point": pa.repeat(_POINT, len(figures)),
        "header": pa.repeat(_HEADER, len(figures)),
        "name": pa.concat_arrays([pa.repeat(name, len(at)) for name, at in which.items()]),
        "unit": pa.concat_arrays([pa.repeat(BY_RUN[name], len(at)) for name, at in which.items()]),
    }
    metrics = piece.tables["metrics"]
    more = pa.table([columns[c] for c in metrics.column_names], schema=metrics.schema)
    return Piece(piece.runs, {**piece.tables, "metrics": pa.concat_tables([metrics, more])})


MOST_ROWS = 40


@dataclass(frozen=True)
class Figure:
    """A metric over the seeds of a setting."""

    unit: str
    values: tuple[float, ...]
    estimate: Estimate

    def __str__(self) -> str:
        return pm(self.estimate, "" if self.unit == "1" else self.unit)

    def to_json(self) -> dict[str, Any]:
        """As `inprofile sweep --json` prints it; `values` are in the dataset."""
        e = self.estimate
        return {"unit": self.unit, "mean": e.mean, "ci95": list(e.ci95 or (None, None)), "n": e.n}


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep."""

    number: int
    values: Mapping[str, str]
    """By key, as `--set` takes them."""
    shown: Mapping[str, str]
    """By key, the names of those values that have one; else the values."""
    seeds: int
    """How many seeds it was run with."""
    metrics: Mapping[str, Figure]

    def to_json(self) -> dict[str, Any]:
        """As `inprofile sweep --json` prints it."""
        return {
            "setting": self.number,
            "values": dict(self.values),
            "names": {key: name for key, name in self.shown.items() if name != self.values[key]},
            "seeds": self.seeds,
            "metrics": {name: figure.to_json() for name, figure in self.metrics.items()},
        }


class Sweep(Sequence[Setting]):
    """A finished sweep in a folder; as a sequence, its settings in order.

    `table` gives the runs themselves. DuckDB, polars and pandas read them from `<folder>/metrics/*.parquet`
    too.
    """

    def __init__(self, folder: str | Path) -> None:
        """Of a folder that `inprofile.sweep` or `inprofile sweep` has filled.

        Raises FileNotFoundError where there is none, ResultError where it is no finished sweep.
        """
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder}: there is no such folder of results")
        try:
            self.head: Mapping[str, Any] = json.loads(read_file(self.folder / HEAD, LARGEST_MANIFEST))
            lines = read_file(self.folder / LEDGER, 1 << 30).splitlines()
            entries = [json.loads(line) for line in lines]
            runs = {int(n): len(seeds) for e in entries if "part" in e for n, seeds in e["runs"]}
            self.keys: tuple[str, ...] = tuple(self.head["keys"])
            self._values: list[tuple[str, ...]] = [tuple(v) for v in self.head["settings"]]
            self._shown = named_settings(self.keys, self._values, self.head.get("names", {}))
        except FileNotFoundError as error:
            raise ResultError(f"{folder} holds no sweep: {Path(error.filename).name} is missing") from None
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ResultError(f"{folder} holds no sweep that can be read: {error}") from None
        if sorted(runs) != list(range(len(self._values))):
            raise ResultError(
                f"{folder} has {len(runs):,} of {len(self._values):,} settings finished:"
                " the command that filled it goes on from there"
            )
        self._seeds = runs
        self._metrics: list[Mapping[str, Figure]] | None = None

    @property
    def title(self) -> str:
        """The experiment's title."""
        return str(self.head["title"])

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return sum(self._seeds.values())

    def table(self, name: str = "metrics", columns: Sequence[str] | None = None) -> pa.Table:
        """`metrics`, `flows`, `queues` or `markers` of all runs: setting, axes, seed, and a result's columns.

        An axis is a column called as its key: a value's name where it has one, a number in its base unit,
        which the field's metadata names, or text.
        """
        import pyarrow as pa

        if name not in TABLES:
            raise KeyError(f"a sweep has no table {name!r}; there are: {', '.join(TABLES)}")
        room = Room()
        try:
            parts = [room.read(path, columns) for path in part_files(self.folder, name)]
            return pa.concat_tables(parts, promote_options="default")
        except (pa.ArrowException, OSError, TooManyRows) as error:
            raise ResultError(f"{self.folder / name} cannot be read: {error}") from None

    def scenario(self, setting: int) -> Scenario:
        """The experiment of a setting, to run it once more or to look closer.

        Raises ResultError where a mechanism in Python is not registered with the code that ran.
        """
        return scenario_of(self.head, setting)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The code of its mechanisms in Python: `inprofile.own.write_sources` writes it out."""
        return tuple(Source.from_json(source) for source in self.head.get("sources", ()))

    def axis(self, key: str) -> tuple[list[float] | list[str], str]:
        """Every setting's value of a key: its name, numbers in the base unit, with the unit, or texts."""
        at = self.keys.index(key)
        return column_of([values[at] for values in self._shown])

    @property
    def metrics(self) -> list[str]:
        """Metrics that any run has."""
        return list(dict.fromkeys(name for figures in self._figures() for name in figures))

    def check_metrics(self, names: Sequence[str]) -> None:
        """Raise SweepError for a metric that no run has."""
        for name in names:
            if name not in self.metrics:
                raise SweepError(f'no run has the metric "{name}": there are {", ".join(self.metrics)}')

    def _figures(self) -> list[Mapping[str, Figure]]:
        if self._metrics is None:
            table = self.table("metrics", ["setting", "name", "unit", "value"])
            found: list[dict[str, tuple[str, list[float]]]] = [{} for _ in self._values]
            columns = (table[c].to_pylist() for c in table.column_names)
            for setting, name, unit, value in zip(*columns, strict=True):
                if value is not None:
                    found[setting].setdefault(name, (unit, []))[1].append(value)
            self._metrics = [
                {
                    name: Figure(unit, tuple(xs), figure_over_runs(name, xs))
                    for name, (unit, xs) in figures.items()
                }
                for figures in found
            ]
        return self._metrics

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        values, shown = (dict(zip(self.keys, of[number], strict=True)) for of in (self._values, self._shown))
        return Setting(number, values, shown, self._seeds[number], self._figures()[number])

    def __iter__(self) -> Iterator[Setting]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self._values)

    def rows(self, metrics: Sequence[str] | None = None) -> tuple[list[str], list[list[str]]]:
        """Heading and rows as text, a row a setting."""
        shown = metrics or [m for m in DEFAULT_METRICS if m in self.metrics]
        body = [
            [*s.shown.values(), str(s.seeds), *(str(s.metrics[m]) if m in s.metrics else "–" for m in shown)]
            for s in self[:MOST_ROWS]
        ]
        if len(self) > MOST_ROWS:
            body.append([f"… {len(self) - MOST_ROWS} more", *("" for _ in body[0][1:])])
        return [*short_keys(self.keys), "seeds", *shown], body

    def latex(self, metrics: Sequence[str] | None = None) -> str:
        """The same, all settings of it, as a table for a paper (booktabs, siunitx)."""
        from ...metrics.latex import Column, Table, latex

        self.check_metrics(metrics or ())
        shown = metrics or [m for m in DEFAULT_METRICS if m in self.metrics]
        settings = list(self)
        columns = [
            Column(short.replace("_", " "), [s.shown[key] for s in settings])
            for key, short in zip(self.keys, short_keys(self.keys), strict=True)
        ]
        counts = sorted({s.seeds for s in settings})
        seeds = f"{counts[0]} seed{'s' * (counts[0] != 1)}" if len(counts) == 1 else "the seeds"
        if len(counts) > 1:
            columns.append(Column("seeds", [str(s.seeds) for s in settings]))
        for name in shown:
            found = [s.metrics.get(name) for s in settings]
            unit = next(f.unit for f in found if f is not None)
            columns.append(
                Column(name.replace("_", " "), [None if f is None else f.estimate for f in found], unit)
            )
        caption = f"{self.title}. Mean and 95 % confidence interval of {seeds}."
        return latex([Table(caption, f"sweep-{self.folder.name}", columns)])

    @property
    def plot(self) -> AnyChart:
        """A first figure: metrics along the axes, and the frontier of goodput and delay."""
        from .figure import figure

        return figure(self)

    def __repr__(self) -> str:
        head = f"Sweep({self.title!r}, {len(self):,} settings, {self.runs:,} runs)"
        return f"{visible(head)}\n{text_table(*self.rows())}"

    def _repr_html_(self) -> str:
        from ...charts.plot import styled

        head = f"<p><b>{escape(visible(self.title))}</b>, {len(self):,} settings, {self.runs:,} runs</p>"
        return styled(head + html_table(*self.rows()), self.plot if len(self) > 1 else None)

    def to_pandas(self, table: str = "metrics") -> Any:
        """A table of all runs as a pandas DataFrame, whose `attrs["units"]` has its columns' units."""
        return pandas_frame(self.table(table))

    def to_polars(self, table: str = "metrics") -> Any:
        """The same as a polars DataFrame, the units in the names of its columns: `goodput [bit/s]`."""
        return polars_frame(self.table(table))


def read_sweep(folder: str | Path) -> Sweep:
    """Take back a finished sweep; see `Sweep`."""
    return Sweep(folder)
