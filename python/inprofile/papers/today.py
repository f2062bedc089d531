"""A paper under today's TCP: every scheme and claim of its primary set-up with Linux's CUBIC, Prague and BBR.

The paper's own TCP stands beside them, with the same seeds and the same points of figures: fewer than the
reproduction has, where a figure has many (`coarse`). A sender replaces the whole of `[tcp]` but for the sizes
of segments and headers; the window never limits it. Queues and markers are the paper's: they drop, and do
not mark by ECN.

Kept as `today.json` in the paper's folder: verdicts, the rows of the paper's tables with intervals, and what
the page advises (`advice_today`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..experiment.senders import Sender, senders
from ..metrics.stats import estimated
from ..own.engine import __version__
from ..run.pool import Backend
from ..run.records import record_lines
from ..run.storage import replace_text
from . import Batches, Entry, Job, Paper, advice_today, rerun
from .judge import RULES
from .rows import TableRow, bounds_of, printed_rows

__all__ = ["NAME", "OWN", "SendersPlan", "committed", "judged_today", "make", "plan", "stale", "write"]

#: The file in a paper's folder.
NAME = "today.json"
#: The paper's own TCP, among the senders.
OWN = "paper"
#: The receiver limits none of today's senders.
_WINDOW = "1000 packets"


@dataclass(frozen=True)
class SendersPlan:
    """What is run of a paper: by sender, its own first."""

    paper: Paper
    trials: Mapping[str, rerun.Trial]
    #: What the page advises: nothing where it says nothing of today's senders.
    advised: Mapping[str, rerun.Trial] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many simulations that is."""
        return sum(job.seeds for job, _ in self._jobs())

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core."""
        return sum(job.seeds * job.cost * cost for job, cost in self._jobs())

    def _jobs(self) -> list[tuple[Job, float]]:
        costs: dict[str, float] = {OWN: 1.0, **{s.id: s.cost for s in advice_today.compared()}}
        return [
            (job, costs[sender])
            for sender, trial in (*self.trials.items(), *self.advised.items())
            for batch in trial.batches
            for job in batch
        ]


def plan(paper: Paper, quick: bool = False) -> SendersPlan:
    """List what is run; `quick` with the seeds of a quick reproduction."""
    about = {**paper.about, "setups": paper.setups[:1], "variants": [], "sweeps": [], "coarse": True}
    here = replace(paper, about=about)
    own: Batches = here.module("experiments").jobs(here, quick)
    batches = {OWN: own} | {s.id: _sent(here, own, s) for s in senders()}
    trials = {sender: rerun.Trial(here, made) for sender, made in batches.items()}
    advised = advice_today.batches(paper, quick)
    under = {OWN: advised} | {s.id: _sent(paper, advised, s) for s in advice_today.compared()}
    return SendersPlan(
        paper, trials, {sender: rerun.Trial(paper, made) for sender, made in under.items() if made}
    )


def judged_today(paper: Paper) -> list[Entry]:
    """The claims that are judged under today's senders: those of the atlas, unless one says otherwise."""
    return [claim for claim in paper.claims if claim.flag("today", claim.flag("atlas", True))]


def _sent(paper: Paper, batches: Batches, sender: Sender) -> Batches:
    """The jobs with another sender's `[tcp]` in place of theirs."""
    from ..experiment.scenario import load

    files = {job.file for batch in batches for job in batch}
    written = {file: load(paper.folder / file).check().effective["tcp"] for file in files}

    def job_of(job: Job) -> Job:
        tcp: dict[str, object] = {**sender.tcp, "window": _WINDOW}
        for key in ("segment", "header"):
            tcp[key] = job.values.get(f"tcp.{key}", written[job.file][key])
        others = {key: value for key, value in job.values.items() if not key.startswith("tcp.")}
        return replace(job, values={**others, "tcp": tcp})

    return [[job_of(job) for job in batch] for batch in batches]


def make(
    planned: SendersPlan,
    backend: Backend | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] = lambda ran: None,
) -> dict[str, Any]:
    """Run it, and return what `today.json` keeps. `progress` is told runs finished."""
    paper = planned.paper
    trials = planned.trials
    every = [*trials.values(), *planned.advised.values()]
    rerun.run(every, backend=backend, cache=cache, progress=progress)
    titles = {OWN: "The paper's TCP", **{s.id: s.title for s in advice_today.compared()}}
    advised = advice_today.kept(planned.advised, titles)
    answers = {name: trial.answers() for name, trial in trials.items()}
    return {
        "paper": paper.name,
        "setup": paper.setups[0].id,
        "version": __version__,
        "rules": RULES,
        "seeds": max(job.seeds for trial in trials.values() for batch in trial.batches for job in batch),
        "senders": [{"id": name, "title": titles[name]} for name in (OWN, *(s.id for s in senders()))],
        "invalid": {name: trial.invalid for name, trial in trials.items() if trial.invalid},
        "claims": [
            {
                "id": claim.id,
                "verdicts": {
                    name: [a.verdict.value, a.holds, a.opposite, a.total]
                    for name, found in answers.items()
                    if (a := found.get(claim.id)) is not None
                },
            }
            for claim in judged_today(paper)
        ],
        "rows": _rows(trials),
        **({} if advised is None else {"advised": advised}),
    }


def _rows(trials: Mapping[str, rerun.Trial]) -> list[dict[str, Any]]:
    """The paper's tables, a row a figure and scheme, with the mean under each sender."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for name, trial in trials.items():
        if trial.invalid:
            continue
        for row in _table(trial):
            key = (row["table"], row["what"], row["label"])
            about = {k: row[k] for k in ("table", "what", "label", "unit", "paper")}
            entry = found.setdefault(key, {**about, "senders": {}})
            figure = estimated(row["values"], bounds_of(row))
            entry["senders"][name] = {key: figure[key] for key in ("mean", "ci95", "n")}
    return list(found.values())


def _table(trial: rerun.Trial) -> Sequence[TableRow]:
    claims = trial.paper.module("claims")
    if hasattr(claims, "table"):
        made: list[TableRow] = claims.table(trial.paper, trial.cells)
        return made
    return list(printed_rows(trial.paper, trial.cells))


def write(found: Mapping[str, Any], path: Path) -> None:
    """Write it, whole or not at all: a line a claim and a row."""
    replace_text(path, record_lines(found))


def committed(paper: Paper) -> dict[str, Any] | None:
    """What the paper's folder has; None where there is nothing."""
    place = paper.folder / NAME
    if not place.exists():
        return None
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    return found


def stale(paper: Paper, found: Mapping[str, Any]) -> str:
    """Say what has changed since it was made; empty where nothing has."""
    if [c["id"] for c in found["claims"]] != [c.id for c in judged_today(paper)]:
        return "claims"
    if ("advised" in found) != bool(advice_today.batches(paper)):
        return "advice"
    if found["setup"] != paper.setups[0].id:
        return "primary set-up"
    if [s["id"] for s in found["senders"]] != [OWN, *(s.id for s in senders())]:
        return "senders"
    return ""
