"""A sweep as the page sees it: every run's figures, and every setting's with their intervals.

What is finished of an interrupted sweep is shown, and so is what is left where a part of it can't be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.contracts import figure_over_runs
from ..run.tables import Room, TooManyRows
from ..studies.sweep.axes import column_of, named_settings, short_keys
from ..studies.sweep.result import part_files
from .answers import Arrays, pack
from .folder import Folder, Unknown, sweep_head

if TYPE_CHECKING:
    import pyarrow as pa

MEANS = (
    "contracts_kept",
    "assurance_worst",
    "best_effort",
    "goodput",
    "fi",
    "utilisation",
    "delay_mean",
    "loss_in",
    "loss_out",
)
"""The metrics of the table of means, as far as runs have them; where they have none, their first six."""

Array = NDArray[np.float64]


def sweep(folder: Folder, id_: str) -> bytes:
    """All runs: setting, seed, and each metric, NaN where a run has none."""
    entry = folder.entry(id_)
    head = _head(folder, id_)
    runs = _Runs(entry.place)
    arrays = Arrays()
    settings = named_settings(head["keys"], head["settings"], head.get("names", {}))
    axes = []
    for i, key in enumerate(head["keys"]):
        values, unit = column_of([values[i] for values in settings])
        numeric = bool(values) and isinstance(values[0], float)
        axes.append(
            {
                "key": key,
                "short": short_keys(head["keys"])[i],
                "unit": unit,
                "values": arrays.put(np.array(values)) if numeric else None,
                "texts": [str(values[i]) for values in settings],
            }
        )
    return pack(
        {
            "id": id_,
            "title": head["title"],
            "version": head["version"],
            "digest": hashlib.sha256(str(head["experiment"]).encode()).hexdigest(),
            "text": head["text"],
            "set": head["set"],
            "seeds": head["seeds"],
            "design": head.get("design", ""),
            "axes": axes,
            "settings": len(settings),
            "problems": [text for text in (entry.problem, *runs.problems) if text],
            "setting": arrays.put(runs.setting),
            "seed": arrays.put(runs.seed),
            "metrics": [
                {"name": name, "unit": unit, "values": arrays.put(values)}
                for name, (unit, values) in runs.metrics.items()
            ],
        },
        arrays,
    )


def curve(folder: Folder, id_: str, metric: str) -> bytes:
    """A metric by setting: mean, 95 % interval and number of seeds; NaN where there is none."""
    entry = folder.entry(id_)
    n = len(_head(folder, id_)["settings"])
    runs = _Runs(entry.place)
    if metric not in runs.metrics:
        raise LookupError(f"no run has the metric {metric}: there are {', '.join(runs.metrics)}")
    arrays = Arrays()
    return pack(_by_setting(runs, n, metric, arrays), arrays)


def means(folder: Folder, id_: str) -> bytes:
    """The result of `curve` for each metric of the table of means."""
    entry = folder.entry(id_)
    n = len(_head(folder, id_)["settings"])
    runs = _Runs(entry.place)
    names = [name for name in MEANS if name in runs.metrics] or list(runs.metrics)[:6]
    arrays = Arrays()
    return pack({"curves": [_by_setting(runs, n, name, arrays) for name in names]}, arrays)


def _by_setting(runs: _Runs, n: int, metric: str, arrays: Arrays) -> dict[str, Any]:
    unit, values = runs.metrics[metric]
    mean, lo, hi = (np.full(n, np.nan) for _ in range(3))
    count = np.zeros(n)
    there = ~np.isnan(values)
    by: dict[int, list[float]] = {}
    for setting, value in zip(runs.setting[there].astype(int).tolist(), values[there].tolist(), strict=True):
        by.setdefault(setting, []).append(value)
    for setting, xs in by.items():
        found = figure_over_runs(metric, xs)
        mean[setting], count[setting] = found.mean, found.n
        if found.ci95 is not None:
            lo[setting], hi[setting] = found.ci95
    numbers = {k: arrays.put(v) for k, v in {"mean": mean, "lo": lo, "hi": hi, "n": count}.items()}
    return {"metric": metric, "unit": unit, **numbers}


def metric_names(folder: Folder, id_: str) -> list[str]:
    """The metrics that any run has."""
    return list(_Runs(folder.entry(id_).place).metrics)


def _head(folder: Folder, id_: str) -> Mapping[str, Any]:
    entry = folder.entry(id_)
    if entry.kind != "sweep":
        raise Unknown(f"{id_} is no sweep: {entry.problem or entry.kind}")
    return sweep_head(entry.place)


class _Runs:
    """The finished runs, in the order of the dataset."""

    def __init__(self, place: Path) -> None:
        self.problems: list[str] = []
        metrics = self._read(place, "metrics", ["setting", "seed", "name", "unit", "value"])
        self.metrics: dict[str, tuple[str, Array]] = {}
        if metrics is None:
            self.setting, self.seed = np.empty(0), np.empty(0)
            return
        setting = metrics["setting"].to_numpy().astype(np.int64)
        seed = metrics["seed"].to_numpy()
        # Rows of a run follow each other.
        new = np.ones(len(setting), dtype=bool)
        new[1:] = (setting[1:] != setting[:-1]) | (seed[1:] != seed[:-1])
        run = np.cumsum(new) - 1
        self.setting, self.seed = setting[new].astype(float), seed[new].astype(float)
        names = metrics["name"].combine_chunks().dictionary_encode()
        units = metrics["unit"].to_pylist()
        code, values = names.indices.to_numpy(), metrics["value"].to_numpy(zero_copy_only=False)
        for i, name in enumerate(names.dictionary.to_pylist()):
            own = code == i
            column = np.full(len(self.setting), np.nan)
            column[run[own]] = values[own].astype(float)
            self.metrics[name] = (units[int(np.argmax(own))], column)

    def _read(self, place: Path, name: str, columns: list[str]) -> pa.Table | None:
        """The parts of a table that can be read; the others are problems."""
        import pyarrow as pa

        parts, room = [], Room()
        for path in part_files(place, name):
            try:
                parts.append(room.read(path, columns))
            except (pa.ArrowException, OSError, TooManyRows) as error:
                self.problems.append(f"{path.relative_to(place)} cannot be read: {error}")
        return pa.concat_tables(parts) if parts else None
