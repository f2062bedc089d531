"""The figures that plans of a link keep of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...metrics.contracts import BY_RUN
from ...run.pieces import Piece
from ...run.pool import Backend
from ..sweep.contracts import RunsOf
from .store import Row, Store

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario

__all__ = ["FIGURES", "Bench", "RunFigures"]

Array = NDArray[np.float64]
#: What is kept of a run; missing where there is no such figure. `worst_flow` is text, `others_kept` the share
#: of the contracts that was kept of groups that are not judged.
FIGURES = (*BY_RUN, "delay_mean", "utilisation", "others_kept")


@dataclass(frozen=True)
class RunFigures:
    """Figures of the runs of one experiment, one value a seed."""

    seeds: tuple[int, ...]
    values: Mapping[str, Array]
    worst_flow: tuple[str, ...]
    """By seed."""

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    @property
    def kept(self) -> int:
        """Runs in which every contract was kept."""
        return int(self.values["all_contracts_kept"].sum())


class Bench(Store):
    """Where a link's plan has its runs made."""

    tables = ("metrics", "flows")
    columns = (*FIGURES, "worst_flow")
    texts = ("worst_flow",)

    def __init__(
        self,
        scenario: Scenario,
        place: Path | None,
        backend: Backend,
        tell: Callable[[int], None],
        groups: Sequence[str] | None = None,
    ) -> None:
        """See `Store`. Where `groups` are given, the contracts of these alone are judged."""
        self._groups = groups
        super().__init__(scenario, place, backend, tell, {} if groups is None else {"groups": sorted(groups)})

    def run(self, asked: Sequence[tuple[Scenario, Sequence[int]]]) -> list[RunFigures]:
        """The figures of these experiments with these seeds, in order; what is not known is run."""
        pairs = zip(self.rows(asked), asked, strict=True)
        return [_figures(rows, seeds) for rows, (_, seeds) in pairs]

    def reduced(self, piece: Piece) -> Iterator[Row]:
        """See `Store`."""
        others: dict[tuple[int, int], dict[str, float]] = {}
        columns = (piece.tables["metrics"][c].to_pylist() for c in ("setting", "seed", "name", "value"))
        for setting, seed, name, value in zip(*columns, strict=True):
            if name in FIGURES:
                others.setdefault((setting, seed), {})[name] = value
        flows, groups = piece.tables["flows"], self._groups
        runs = RunsOf.of(flows)
        judged = None if groups is None else np.isin(np.array(flows["group"].to_pylist()), list(groups))
        found = runs.rows.figures(runs.starts, judged)
        if judged is not None:
            found["others_kept"] = runs.rows.figures(runs.starts, ~judged)["contracts_kept"]
        worst = flows["flow"].take(runs.rows.worst(runs.starts)).to_pylist()
        for i, (setting, seed) in enumerate(zip(runs.settings.tolist(), runs.seeds.tolist(), strict=True)):
            figures: dict[str, float | None] = dict.fromkeys(FIGURES)
            figures.update({name: x for name, values in found.items() if (x := float(values[i])) == x})
            figures.update(others[setting, seed])
            yield {"setting": setting, "seed": seed, "worst_flow": worst[i], **figures}


def _figures(rows: Sequence[Row], seeds: Sequence[int]) -> RunFigures:
    values = {name: np.array([_number(row.get(name)) for row in rows]) for name in FIGURES}
    return RunFigures(tuple(seeds), values, tuple(row["worst_flow"] for row in rows))


def _number(x: float | None) -> float:
    return float("nan") if x is None else x
