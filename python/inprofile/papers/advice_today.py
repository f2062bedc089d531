"""What a paper's page advises, run under today's TCP senders, Reno of Linux among them: what changes then.

`[today]` in `advice.toml` names the cells, and `today(paper, cells)` in the paper's `advice` makes figures of
one sender's. They are kept as `advised` in `today.json`, and the sentence of `[today]` has each as
`NAME_SENDER`, with the ends of its interval as `NAME_SENDER_lo` and `NAME_SENDER_hi`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..experiment.senders import Sender, sender, senders
from ..metrics.measures import Array
from ..metrics.stats import FREE, Bounds, estimated
from . import Batches, Paper, rerun
from .advice import TODAY, cell_at, read

__all__ = ["Figure", "batches", "compared", "kept"]


@dataclass(frozen=True)
class Figure:
    """A figure of what is advised, one value per seed."""

    name: str
    words: str
    values: Array
    unit: str = ""
    bounds: Bounds = FREE


def compared() -> list[Sender]:
    """Under whom it is run beside the paper's own TCP."""
    return [*senders(), sender("reno")]


def batches(paper: Paper, quick: bool = False) -> Batches:
    """What is run under each of them; nothing for a paper whose advice says nothing of today's senders."""
    about = read(paper) or {}
    wanted = {cell_at(paper, written) for written in about.get(TODAY, {}).get("cells", ())}
    if not wanted:
        return []
    every = paper.module("experiments").jobs(paper, quick, full=True)
    # What a placebo is made from comes before it.
    wanted |= {job.after for batch in every for job in batch if job.cell in wanted and job.after is not None}
    made = [[job for job in batch if job.cell in wanted] for batch in every]
    return [batch for batch in made if batch]


def kept(trials: Mapping[str, rerun.Trial], titles: Mapping[str, str]) -> dict[str, Any] | None:
    """Each figure under each sender, as `today.json` keeps it; None where nothing was to be run."""
    if not trials:
        return None
    rows: dict[str, dict[str, Any]] = {}
    for name, trial in trials.items():
        if trial.invalid:
            continue
        for f in trial.paper.module("advice").today(trial.paper, trial.cells):
            row = rows.setdefault(f.name, {"name": f.name, "words": f.words, "unit": f.unit, "senders": {}})
            figure = estimated([float(x) for x in f.values], f.bounds)
            row["senders"][name] = {key: figure[key] for key in ("mean", "ci95", "n")}
    return {
        "senders": [{"id": name, "title": titles[name]} for name in trials],
        "invalid": {name: trial.invalid for name, trial in trials.items() if trial.invalid},
        "rows": list(rows.values()),
    }
