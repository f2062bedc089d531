"""Units of the tables' columns, in the metadata of their fields: `table.field("rtt").metadata[b"unit"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .summary import unit_of

if TYPE_CHECKING:
    import pyarrow as pa

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
