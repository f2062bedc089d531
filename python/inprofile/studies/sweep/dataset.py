"""The finished dataset: Parquet files of some settings each, the values of the axes in every row."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .axes import column_of

if TYPE_CHECKING:
    import pyarrow as pa

    from .plan import SweepPlan

__all__ = ["TABLES", "Columns", "parquet", "part_files"]

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
