"""The verdicts of a paper's last reproduction, as `verdicts.json` in its folder keeps them.

`make renew` takes them from `reports/PAPER/results.json`. The documentation shows them, and a test holds
README's counts to them.

Whether a run had all experiments that a verdict rests on. Without `--full` a set-up may be run in part:
fewer points of a figure, shorter runs. A claim judged there rests on other experiments than its verdict of
`--full`, and may come out otherwise. So it is not shown as a verdict, unless the set-up is the paper's
first: what is run of that without `--full` is meant to be judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from ..run.storage import record_lines, replace_text
from . import Batches, Cell, Job, Paper
from .claim import Judged, Verdict

#: The file in a paper's folder.
NAME = "verdicts.json"
#: `claim.Because` as a page says it.
BECAUSE = {"placebo": "in some of them a placebo does as well", "correction": "fewer after Holm's correction"}


class Answered(TypedDict):
    """A claim in a set-up: its verdict, and how many comparisons and printed numbers came out how."""

    id: str
    setup: str
    verdict: str
    #: Why it is not the word that the counts alone would give (`claim.Because`); earlier ones do not say.
    because: NotRequired[str]
    holds: int
    opposite: int
    no_effect: int
    open: int
    undecidable: int
    #: Printed numbers inside our prediction intervals, of how many.
    inside: int
    numbers: int
    #: Verdicts under the paper's variants, by id.
    variants: dict[str, str]
    #: Figures that stand beside the verdict in a table; none of most claims.
    told: NotRequired[str]


class Verdicts(TypedDict):
    """A reproduction of a paper."""

    paper: str
    #: With `--full`: with crossed readings, further set-ups and variants.
    full: bool
    #: The most seeds that a scheme had.
    seeds: int
    #: The version of Inprofile that ran it, and the day on which its verdicts were put here (ISO 8601).
    version: str
    date: str
    #: Set-ups that were judged, the primary one first.
    setups: list[str]
    claims: list[Answered]


def taken(results: Mapping[str, Any], date: str) -> Verdicts:
    """What is kept of a `results.json`, as of a day (ISO 8601).

    Raises `ValueError` for one of a quick run, and for one without `--full`: what that did not run, it has
    from here.
    """
    if results["quick"]:
        raise ValueError(
            f"the results of {results['paper']} are of a quick run: reproduce it without --quick"
        )
    if not results["full"]:
        raise ValueError(
            f"the results of {results['paper']} are of a run without --full: reproduce it with --full"
        )
    return Verdicts(
        paper=results["paper"],
        full=results["full"],
        seeds=results["seeds"],
        version=results["version"],
        date=date,
        setups=[s["id"] for s in results["setups"]],
        claims=[_answered(c) for c in results["claims"]],
    )


def _answered(claim: Mapping[str, Any]) -> Answered:
    """What is kept of a claim of a `results.json`."""
    made = Answered(
        id=claim["id"],
        setup=claim["setup"],
        verdict=claim["verdict"],
        holds=claim["comparisons"]["holds"],
        opposite=claim["comparisons"]["opposite"],
        no_effect=claim["comparisons"]["no_effect"],
        open=claim["comparisons"]["open"],
        undecidable=claim["comparisons"]["undecidable"],
        inside=claim["numbers"]["inside"],
        numbers=claim["numbers"]["total"],
        variants={name: other["verdict"] for name, other in claim["variants"].items()},
    )
    # What an earlier version judged does not say.
    if claim.get("because") is not None:
        made["because"] = claim["because"]
    if claim.get("told"):
        made["told"] = claim["told"]
    return made


def write(found: Verdicts, folder: Path) -> None:
    """Write it into a paper's folder, a line a claim and set-up."""
    replace_text(folder / NAME, record_lines(found))


def committed(paper: Paper) -> Verdicts | None:
    """What the paper's folder has; None where there is none (a paper of a user's own)."""
    place = paper.folder / NAME
    if not place.exists():
        return None
    found: Verdicts = json.loads(place.read_text("utf-8"))
    return found


def stale(paper: Paper, found: Verdicts) -> str:
    """Say what of the paper has changed since; empty where nothing has."""
    if found["setups"] != [s.id for s in paper.setups]:
        return "set-ups"
    if list(dict.fromkeys(c["id"] for c in found["claims"])) != [c.id for c in paper.claims]:
        return "claims"
    if {v for c in found["claims"] for v in c["variants"]} - {v.id for v in paper.variants}:
        return "variants"
    return ""


def total(answered: Answered) -> int:
    """How many comparisons a committed verdict rests on."""
    return sum(answered[outcome] for outcome in ("holds", "opposite", "no_effect", "open", "undecidable"))


def compared(found: Sequence[Verdicts]) -> dict[str, int]:
    """How many comparisons those rest on in all, and how many of these hold and are opposite."""
    primary = [c for f in found for c in f["claims"] if c["setup"] == f["setups"][0]]
    return {
        "all": sum(map(total, primary)),
        "holds": sum(c["holds"] for c in primary),
        "opposite": sum(c["opposite"] for c in primary),
    }


def counts(found: Sequence[Verdicts]) -> dict[Verdict, int]:
    """How many claims have which verdict in the papers' primary set-ups."""
    primary = [c["verdict"] for f in found for c in f["claims"] if c["setup"] == f["setups"][0]]
    return {verdict: primary.count(verdict.value) for verdict in Verdict}


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
