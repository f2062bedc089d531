"""Whether a run had all experiments that a verdict rests on.

Without `--full` a set-up may be run in part: fewer points of a figure, shorter runs. A claim judged there
rests on other experiments than its verdict of `--full`, and may come out otherwise. So it is not shown as a
verdict, unless the set-up is the paper's first: what is run of that without `--full` is meant to be judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import Batches, Cell, Job, Paper
from .judge import Judged

__all__ = ["Ran"]


class Ran:
    """What was run of a paper beside what `--full` runs of it."""

    def __init__(self, paper: Paper, run: Batches, whole: Batches) -> None:
        """`run` is what was run, `whole` what `--full` runs, equally quick or not."""
        self._first = paper.setups[0].id
        self._lacking = _lacking(paper, run, whole)
        self._paper = paper

    def all_of(self, claim: str, setup: str, variant: str = "") -> bool:
        """Whether nothing is lacking that the claim rests on in a set-up, under a variant."""
        kinds = {"", variant} if setup != self._first else {variant} - {""}
        return not any(
            cell.setup == setup and cell.variant in kinds and self._paper.rests_on(claim, cell)
            for cell in self._lacking
        )

    def whole(self, judged: Sequence[Judged], variant: str = "") -> list[Judged]:
        """Those of them that rest on all their experiments."""
        return [j for j in judged if self.all_of(j.claim, j.setup, variant)]


def _lacking(paper: Paper, run: Batches, whole: Batches) -> list[Cell]:
    """Cells that `whole` has and `run` has not, or in part; none that vary an assumption."""
    ran: Mapping[Cell, Job] = {job.cell: job for batch in run for job in batch}
    sweeps = {sweep.id for sweep in paper.sweeps}
    return [
        job.cell
        for batch in whole
        for job in batch
        # A paper may call a swept value's cells `sweep: value`.
        if job.cell.sweep.split(": ")[0] not in sweeps and not _as_much(ran.get(job.cell), job)
    ]


def _as_much(ran: Job | None, whole: Job) -> bool:
    return ran is not None and ran.seeds >= whole.seeds and ran.values == whole.values
