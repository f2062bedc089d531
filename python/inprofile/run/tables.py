"""A table's file, judged by its footer before any of its rows is read.

A Parquet file of a few megabytes can hold billions of equal rows: what it takes in memory is known from the
number of rows and the columns' types, which stand in the footer.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .._input import check_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["TooManyRows", "in_memory", "open_table"]

SMALL = 256 << 20
"""Bytes in memory that any file may take."""
RATIO = 200
"""How many times its own size a larger one may take; series that never change take some forty times."""
TEXT = 16
"""Bytes that a value of no fixed width is taken for."""


class TooManyRows(ValueError):
    """A file whose rows would take far more memory than a result of its size can."""


def in_memory(schema: pa.Schema, rows: int) -> int:
    """Bytes that so many rows of these columns take, about."""
    return sum(_width(field.type) for field in schema) * rows // 8


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 8 * TEXT


def open_table(path: Path) -> pq.ParquetFile:
    """The file with its footer read, and nothing else.

    Raises FileNotFoundError, UnfitFile for what is no regular file, ArrowException for what is not Parquet,
    TooManyRows where reading it would take more memory than a result of this size can.
    """
    import pyarrow.parquet as pq

    check_file(path)
    file = pq.ParquetFile(path)
    rows, size = file.metadata.num_rows, path.stat().st_size
    needed = in_memory(file.schema_arrow, rows)
    if needed > max(SMALL, RATIO * size):
        file.close()
        raise TooManyRows(
            f"{path}: {rows:,} rows in {size:,} bytes would take {needed / 1e9:.2g} GB of memory, as no table"
            " does that Inprofile wrote: take the folder from where it was made, or run the experiment again"
        )
    return file
