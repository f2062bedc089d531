"""Contract measures of finished runs, as metrics among the others: columns of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..contracts import BY_RUN, Contracts
from .pieces import Piece

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["contracts_of", "with_contracts"]

_POINT, _HEADER = "receivers", "wire"


def contracts_of(flows: pa.Table) -> Iterator[tuple[int, Contracts]]:
    """The contracts of every setting in a piece's table `flows`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for setting in pc.unique(flows["setting"]).to_pylist():
        rows = flows.filter(pc.equal(flows["setting"], pa.scalar(setting, pa.uint32())))
        yield setting, Contracts.of(rows, tuple(pc.unique(rows["seed"]).to_pylist()))


def with_contracts(piece: Piece) -> Piece:
    """The piece with the contract measures of its runs in its table `metrics`."""
    import pyarrow as pa

    metrics = piece.tables["metrics"]
    columns: dict[str, list[object]] = {name: [] for name in metrics.column_names}
    for setting, contracts in contracts_of(piece.tables["flows"]):
        if not contracts:
            continue
        for name, values in contracts.by_run().items():
            for seed, value in zip(contracts.seeds, values.tolist(), strict=True):
                row = {
                    "setting": setting,
                    "seed": seed,
                    "name": name,
                    "unit": BY_RUN[name],
                    "value": None if value != value else value,
                    "point": _POINT,
                    "header": _HEADER,
                }
                for column, entries in columns.items():
                    entries.append(row[column])
    if not columns["setting"]:
        return piece
    more = pa.table([pa.array(columns[f.name], f.type) for f in metrics.schema], schema=metrics.schema)
    return Piece(piece.runs, {**piece.tables, "metrics": pa.concat_tables([metrics, more])})
