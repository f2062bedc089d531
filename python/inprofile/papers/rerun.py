"""A paper run once more with something changed: its readings, its inputs, its senders.

What is finished stays in the cache, cell by cell. A trial whose experiment is refused, or in which something
that a claim needs cannot be measured, is *invalid* and keeps the reason; nothing else is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..experiment.scenario import Scenario, ScenarioError
from ..metrics.measures import Measures
from ..run.pool import Backend
from . import Batches, Cell, Job, Paper
from .experiment import Work, measure_work, measured_with, work_of
from .judge import Verdict, judge


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
