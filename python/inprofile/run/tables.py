"""Tables of a result, judged by their footers before any of their rows is read.

A Parquet file of a few megabytes can hold billions of equal rows, and one of a few kilobytes twenty thousand
times the same text of a megabyte. What numbers take in memory is known from the footer. What texts take is
not: they are read as the dictionary that they are stored as, weighed, and spelled out only then.

Tables as pandas and polars take them, with the units of their columns. An Arrow table says a column's unit
in its field's metadata, which neither of the two keeps. pandas has `attrs`, which follow a frame through
selections and groupings; polars has nothing of the kind, and there a column's unit is in its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import check_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


_CGROUP = Path("/sys/fs/cgroup/memory.max")


def physical() -> float:
    """Bytes of memory that this process may have: the machine's, or less in its control group."""
    bytes_ = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _CGROUP.read_text().strip()
    except OSError:
        # Outside Linux, or without cgroup v2: no such limit.
        return bytes_
    return min(bytes_, float(limit)) if limit.isdigit() else bytes_


def units_of(table: pa.Table) -> dict[str, str]:
    """The unit of each column that has one: `bit/s`, `s`, `B`, `packets`, `1` for a plain number."""
    return {f.name: f.metadata[b"unit"].decode() for f in table.schema if b"unit" in (f.metadata or {})}


def pandas_frame(table: pa.Table) -> Any:
    """A pandas DataFrame; `attrs["units"]` has the units by column."""
    frame = table.to_pandas()
    frame.attrs["units"] = units_of(table)
    return frame


def polars_frame(table: pa.Table) -> Any:
    """A polars DataFrame; a column with a unit is called so: `goodput [bit/s]`."""
    import polars

    units = {name: unit for name, unit in units_of(table).items() if unit != "1"}
    frame: Any = polars.from_arrow(table)
    return frame.rename({name: f"{name} [{unit}]" for name, unit in units.items()})


SMALL = 256 << 20
"""Bytes in memory that the tables of any result may take."""
RATIO = 200
"""How many times their own size larger ones may take; series that never change take some forty times."""
SHARE = 0.5
"""Of the machine's memory, at most: tables are worked on, not only read."""
TEXT = 8
"""Bytes that a value of no fixed width takes beside its own: its number in a dictionary, then its place."""


class TooManyRows(ValueError):
    """Rows that would take far more memory than a result of that size can, or than there is."""


def in_memory(schema: pa.Schema, rows: int) -> int:
    """Bytes that so many rows of these columns take, about, before texts are spelled out."""
    return sum(_width(field.type) for field in schema) * rows // 8


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 8 * TEXT


class Room:
    """The memory that the tables of one result may take together."""

    def __init__(self) -> None:
        self._files = 0
        self._size = 0
        self._needed = 0

    def read(
        self,
        path: Path,
        columns: Sequence[str] | None = None,
        check: Callable[[Mapping[bytes, bytes]], None] = lambda metadata: None,
    ) -> pa.Table:
        """These columns of a file, or all; `check` is told its metadata first and may raise.

        Raises FileNotFoundError, UnfitFile for what is no regular file, ArrowException for what is not
        Parquet, TooManyRows where reading it would take more memory than a result of this size can.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        check_file(path)
        size = path.stat().st_size
        with pq.ParquetFile(path) as file:
            footer, schema = file.metadata, file.schema_arrow
        check(schema.metadata or {})
        rows = _rows(footer)
        if any(pa.types.is_nested(field.type) for field in schema):
            raise TooManyRows(
                f"{path} has columns of lists or records, as no table has that Inprofile wrote: take the"
                " folder from where it was made, or run the experiment again"
            )
        self._files += 1
        self._size += size
        self._take(path, rows, size, max(in_memory(schema, rows), _uncompressed(footer)))
        with pq.ParquetFile(path, metadata=footer, read_dictionary=_texts(footer)) as file:
            table = file.read(columns=None if columns is None else list(columns))
        self._take(path, rows, size, sum(_spelled_out(column) for column in table.itercolumns()))
        return table.cast(_as_stored(table.schema, schema))

    def _take(self, path: Path, rows: int, size: int, needed: int) -> None:
        self._needed += needed
        what = (
            f"{path}: its {rows:,} rows in {size:,} bytes{', with the tables before it,' * (self._files > 1)}"
            f" would take {self._needed / 1e9:.2g} GB of memory"
        )
        if self._needed > max(SMALL, RATIO * self._size):
            raise TooManyRows(
                f"{what}, as no table does that Inprofile wrote: take the folder from where it was made,"
                " or run the experiment again"
            )
        if self._needed > SHARE * physical():
            raise TooManyRows(
                f"{what}; this machine has {physical() / 1e9:.2g} GB, and half of it is for tables: read them"
                " on a larger one, or run the experiment again with fewer seeds or monitors"
            )


def _rows(footer: pq.FileMetaData) -> int:
    """How many will be read: a footer says it of the file, of each group of rows and of each column."""
    groups = (footer.row_group(i) for i in range(footer.num_row_groups))
    columns = range(footer.num_columns)
    read = sum(max([g.num_rows, *(g.column(c).num_values for c in columns)]) for g in groups)
    return int(max(footer.num_rows, read))


def _uncompressed(footer: pq.FileMetaData) -> int:
    return int(sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)))


def _texts(footer: pq.FileMetaData) -> list[str]:
    """Columns of values without a fixed width, whatever type the schema gives them."""
    columns = (footer.schema.column(i) for i in range(footer.num_columns))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _spelled_out(column: pa.ChunkedArray) -> int:
    """Bytes that a dictionary's texts take once they stand in every row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return 0
    lengths = (pc.binary_length(c.dictionary).cast(pa.int64()).take(c.indices) for c in column.chunks)
    return sum(pc.sum(of).as_py() or 0 for of in lengths)


def _as_stored(read: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """The types that these columns have in the file, where texts were read as a dictionary."""
    import pyarrow as pa

    fields = [stored.field(stored.get_all_field_indices(name)[0]) for name in read.names]
    return pa.schema(fields, metadata=stored.metadata)
