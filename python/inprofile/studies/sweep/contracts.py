"""Contract measures of finished runs, as metrics among the others: columns of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...metrics.contracts import BY_RUN
from ...run.pieces import Piece

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from ...metrics.contract_figures import FlowRows

__all__ = ["RunsOf", "with_contracts"]

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
        from ...metrics.contract_figures import FlowRows, run_starts

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
