"""How long each group's packets wait in the measured queue: with two queues behind one link, they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...metrics.measures import Array

if TYPE_CHECKING:
    from ...run.results import Result

__all__ = ["waits"]

_FIGURES = {"delay_mean": "mean", "delay_p50": "p50", "delay_p99": "p99"}


def waits(result: Result) -> dict[str, Array]:
    """Mean, median and 99th percentile of queueing delay (s) by group, a value a seed, as `delay_p99:web`."""
    seeds = result.seeds
    at = {seed: i for i, seed in enumerate(seeds)}
    link = result.provenance.effective["measure"]["at"]
    values: dict[str, Array] = {}
    for row in result.delays.to_pylist():
        here = row["measure"] == "queueing_delay" and row["point"] == link
        if not here or row["group"] is None or row["colour"] is not None:
            continue
        for name, figure in _FIGURES.items():
            if row[figure] is not None:
                key = f"{name}:{row['group']}"
                values.setdefault(key, np.full(len(seeds), np.nan))[at[row["seed"]]] = row[figure]
    return values
