"""Tables as pandas and polars take them, with the units of their columns.

An Arrow table says a column's unit in its field's metadata, which neither of the two keeps. pandas has
`attrs`, which follow a frame through selections and groupings; polars has nothing of the kind, and there a
column's unit is in its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["pandas_frame", "polars_frame", "units_of"]


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
