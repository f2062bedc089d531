"""A paper run once more with something changed: its readings, its inputs, its senders.

What is finished stays in the cache, cell by cell. A trial whose experiment is refused, or in which something
that a claim needs cannot be measured, is *invalid* and keeps the reason; nothing else is passed over.

A paper under today's TCP: every scheme and claim of its primary set-up with Linux's CUBIC, Prague and BBR.

The paper's own TCP stands beside them, with the same seeds and the same points of figures: fewer than the
reproduction has, where a figure has many (`coarse`). A sender replaces the whole of `[tcp]` but for the sizes
of segments and headers; the window never limits it. Where flows have another TCP of their own, the trial is
invalid. Queues and markers are the paper's: they drop, and do not mark by ECN.

Kept as `today.json` in the paper's folder: verdicts, the rows of the paper's tables with intervals, and what
the page advises.

What a paper's page advises, run under today's TCP senders, Reno of Linux among them: what changes then.
`[today]` in `advice.toml` names the cells, and `today(paper, cells)` in the paper's `advice` makes figures
of one sender's. They are kept as `advised` in `today.json`, and the sentence of `[today]` has each as
`NAME_SENDER`, with the ends of its interval as `NAME_SENDER_lo` and `NAME_SENDER_hi`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..experiment.mechanisms import Sender, sender, senders
from ..experiment.scenario import Scenario, ScenarioError
from ..metrics.measures import Array, Measures
from ..metrics.stats import FREE, Bounds, estimated
from ..own.engine import __version__
from ..run.pool import Backend
from ..run.storage import record_lines, replace_text
from . import Batches, Cell, Entry, Job, Paper
from .advice import TODAY, cell_at, read
from .claim import Verdict
from .experiment import Work, measure_work, measured_with, work_of
from .judge import RULES, judge
from .report import TableRow, bounds_of, printed_rows


@dataclass(frozen=True)
class Answer:
    """A claim in a trial."""

    verdict: Verdict
    holds: int = 0
    opposite: int = 0
    total: int = 0
    #: Why it cannot be decided there.
    why: str = ""

    @property
    def score(self) -> float:
        """Share of comparisons that hold less the share that are opposite: −1 to 1."""
        return (self.holds - self.opposite) / self.total if self.total else 0.0


@dataclass
class Trial:
    """A changed paper, what is run of it, and what was measured so far."""

    paper: Paper
    batches: Batches
    #: What decides its measures beside the runs, as `measured_with` has it.
    decides: object = None
    cells: dict[Cell, Measures] = field(default_factory=dict)
    #: Why it is invalid; empty where it is not.
    invalid: str = ""

    def refuse(self, why: str) -> None:
        """Make it invalid; the first reason counts."""
        self.invalid = self.invalid or why

    def answers(self) -> dict[str, Answer]:
        """Judge every claim. Empty where the trial is invalid, or turns out to be: see `invalid`."""
        if self.invalid:
            return {}
        try:
            findings = self.paper.findings(self.cells)
        except ValueError as error:
            self.refuse(str(error))
            return {}
        return {f.claim: _answer(f) for f in findings}


def _answer(finding: Any) -> Answer:
    """Judge one claim; what cannot be judged (a measure that is not a number there) is undecidable."""
    try:
        [judged] = judge([finding])
    except ValueError as error:
        return Answer(Verdict.UNDECIDABLE, total=len(finding.comparisons), why=str(error))
    by = [c.outcome for c in judged.comparisons]
    why = judged.summary if judged.verdict is Verdict.UNDECIDABLE else ""
    return Answer(judged.verdict, by.count("holds"), by.count("opposite"), len(by), why)


def _reason(error: ScenarioError) -> str:
    """Why an experiment is refused: its first error, by key and value and not by file."""
    wrong = next(p for p in error.problems if p.severity == "error")
    return (
        f"{wrong.path} = {wrong.value}: {wrong.problem}" if wrong.value else f"{wrong.path}: {wrong.problem}"
    )


def run(
    trials: Sequence[Trial],
    *,
    first: int = 1,
    backend: Backend | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] = lambda ran: None,
) -> None:
    """Run trials side by side, each job with seeds from `first` on; `progress` is told runs finished."""
    base: dict[str, Scenario] = {}
    ran = 0
    for number in range(max((len(trial.batches) for trial in trials), default=0)):
        work: list[tuple[Trial, Job, Work]] = []
        for trial in trials:
            for job in trial.batches[number] if number < len(trial.batches) else ():
                if trial.invalid:
                    continue
                try:
                    made = work_of(trial.paper, job, trial.cells, base, range(first, first + job.seeds))
                except ScenarioError as error:
                    trial.refuse(_reason(error))
                    continue
                work.append((trial, job, made))

        def reduce(index: int, result: Any, work: list[tuple[Trial, Job, Work]] = work) -> Measures:
            trial, job, _ = work[index]
            try:
                found: Measures = trial.paper.module("measure").measure(result, job.cell, trial.paper)
            except ValueError as error:
                trial.refuse(f"{job.cell}: {error}")
                found = Measures(result.seeds, {}, {})
            return found

        measured = measure_work(
            [made for _, _, made in work],
            [[*measured_with(trial.paper, job), trial.decides] for trial, job, _ in work],
            reduce,
            backend=backend,
            cache=cache,
            progress=lambda done, ran=ran: progress(ran + done),  # type: ignore[misc]
        )
        for (trial, job, _), measures in zip(work, measured, strict=True):
            if measures.values:
                trial.cells[job.cell] = measures
            else:
                trial.refuse(f"{job.cell}: nothing could be measured")
        ran += sum(job.seeds for _, job, _ in work)


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
    trials: Mapping[str, Trial]
    #: What the page advises: nothing where it says nothing of today's senders.
    advised: Mapping[str, Trial] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How many simulations that is."""
        return sum(job.seeds for job, _ in self._jobs())

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core."""
        return sum(job.seeds * job.cost * cost for job, cost in self._jobs())

    def _jobs(self) -> list[tuple[Job, float]]:
        costs: dict[str, float] = {OWN: 1.0, **{s.id: s.cost for s in compared()}}
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
    trials = {OWN: Trial(here, own)}
    for today in senders():
        made = _sent(here, own, today)
        why = _not_replaced(here, made)
        trials[today.id] = Trial(here, [] if why else made, invalid=why)
    advised = advised_batches(paper, quick)
    under = {OWN: advised} | {s.id: _sent(paper, advised, s) for s in compared()}
    return SendersPlan(paper, trials, {sender: Trial(paper, made) for sender, made in under.items() if made})


def judged_today(paper: Paper) -> list[Entry]:
    """The claims that are judged under today's senders: those of the atlas, unless one says otherwise."""
    return [claim for claim in paper.claims if claim.flag("today", claim.flag("atlas", True))]


def own_title(paper: Paper) -> str:
    """The senders of the paper's own experiments, by the first of them: most papers name less than that.

    >>> from inprofile import papers
    >>> own_title(papers.load("fdd-red"))
    "ns-2's SACK, as above"
    """
    from ..experiment.scenario import load

    job = paper.module("experiments").jobs(paper)[0][0]
    tcp = load(paper.folder / job.file).with_(job.values).check().effective["tcp"]
    control: str = tcp["congestion"]
    named = {"reno": "Reno", "newreno": "NewReno", "copa": "Copa"}.get(control, control.upper())
    return f"ns-2's {named}, as above" if tcp["profile"] == "ns2" else f"{named}, as above"


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


def _not_replaced(paper: Paper, batches: Batches) -> str:
    """Which flows keep a TCP of their own, whatever `[tcp]` has; empty where none does."""
    from ..experiment.scenario import load

    first = {job.file: job for batch in batches for job in reversed(batch)}
    for job in first.values():
        effective = load(paper.folder / job.file).with_(job.values).check().effective
        sent = effective["tcp"]
        for group in effective["flows"]:
            own = group["tcp"]
            if any(own[key] != sent[key] for key in ("profile", "congestion")):
                who = f"flows.{group['name']} of {job.file}"
                return f"{who} have a TCP of their own, {own['congestion']}, which no sender replaces"
    return ""


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
    run(every, backend=backend, cache=cache, progress=progress)
    titles = {OWN: own_title(paper), **{s.id: s.title for s in compared()}}
    advised = kept(planned.advised, titles)
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


def _rows(trials: Mapping[str, Trial]) -> list[dict[str, Any]]:
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


def _table(trial: Trial) -> Sequence[TableRow]:
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
    if ("advised" in found) != bool(advised_batches(paper)):
        return "advice"
    if found["setup"] != paper.setups[0].id:
        return "primary set-up"
    if [s["id"] for s in found["senders"]] != [OWN, *(s.id for s in senders())]:
        return "senders"
    return ""


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


def advised_batches(paper: Paper, quick: bool = False) -> Batches:
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


def kept(trials: Mapping[str, Trial], titles: Mapping[str, str]) -> dict[str, Any] | None:
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
