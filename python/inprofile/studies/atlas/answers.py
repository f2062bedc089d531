"""The answers of an atlas: in which share of the box a claim holds, what decides it, where it holds nearest.

- **Shares** are over the Sobol points that are valid and under no alternative that the reading rejects; what
  a claim comes to under such a one stands apart. In them *holds* is reproduced or mostly, *open* is in part,
  mixed, not shown or no effect. They add up to 1.
- **Importance** of a factor: the share of the variance of a claim's score (comparisons that hold less those
  that are opposite, over all) that the factor's choice explains alone,
  ε² = (SS_between − (k − 1)·MS_within) / SS_total, over its alternatives or, for a box, over bins of equal
  count. It is corrected for chance and may be a little below 0. A factor is *decisive* where a permutation
  test over its labels gives p < 0.01 after Holm over the factors, and it explains a twentieth or more.
- **Nearest**: the valid point at the least distance from the default (a changed alternative counts 1, a
  number the part of its box by which it differs) at which the claim holds.

Importance and distance are over the factors that the claim's own experiments contain: see `applies`.

Which readings and inputs a claim's experiments contain: nothing else can decide it. A factor applies to a
claim where one of its choices changes a run that the claim rests on (`claims.rests_on`): another
experiment, another set of them. A value of flows that are not there changes nothing. Where a choice changes
no run of the paper at all, it says how runs are judged (whose throughput counts): then it applies to the
`claims` that the paper's file names, or to all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...experiment.scenario import load
from ...metrics.stats import holm
from ...papers import Cell, Job, Paper
from ...papers.claim import Verdict
from ...papers.factors import Factor
from ...papers.rerun import Answer
from .visit import Visited, cells_of

#: What is run of a claim: by cell, the file and what is set in it.
_Runs = Mapping[Cell, tuple[str, Mapping[str, object]]]


def applying(paper: Paper, factors: Sequence[Factor], claims: Collection[str]) -> dict[str, list[Factor]]:
    """The factors that apply to each of `claims`, in their order."""
    default = {f.id: f.default for f in factors}
    plain = _runs(paper, cells_of(paper, factors, default, 1))
    of = {claim: {cell for cell in plain if paper.rests_on(claim, cell)} for claim in claims}
    found: dict[str, list[Factor]] = {claim: [] for claim in claims}
    for factor in factors:
        changed = [
            _runs(paper, cells_of(paper, factors, {**default, factor.id: choice}, 1))
            for choice in factor.others()
        ]
        touches_none = all(runs == plain for runs in changed)
        for claim in claims:
            if touches_none:
                applies = claim in factor.claims if factor.claims else True
            else:
                applies = any(_differ(paper, claim, of[claim], plain, runs) for runs in changed)
            if applies:
                found[claim].append(factor)
    return found


def _differ(paper: Paper, claim: str, cells: Collection[Cell], plain: _Runs, other: _Runs) -> bool:
    """Whether two points run different things for a claim."""
    there = {cell for cell in other if paper.rests_on(claim, cell)}
    return there != set(cells) or any(plain[cell] != other[cell] for cell in cells)


def _runs(paper: Paper, batches: Sequence[Sequence[Job]]) -> _Runs:
    return {job.cell: (job.file, _effective(paper, job)) for batch in batches for job in batch}


def _effective(paper: Paper, job: Job) -> Mapping[str, object]:
    """The settings of a job, without those of flows that are not there."""
    counts = {**_counts(paper.folder / job.file)}
    for path, value in job.values.items():
        if path.startswith("flows.") and path.endswith(".count"):
            counts[path.split(".")[1]] = value
    absent = tuple(f"flows.{name}." for name, count in counts.items() if count == 0)
    return {path: value for path, value in job.values.items() if not path.startswith(absent)}


@cache
def _counts(place: Path) -> Mapping[str, Any]:
    """How many flows each group of a scenario file has."""
    return {group["name"]: group.get("count", 1) for group in load(place).as_written["flows"]}


#: What a verdict counts as.
GROUPS = {
    Verdict.REPRODUCED: "holds",
    Verdict.MOSTLY: "holds",
    Verdict.IN_PART: "open",
    Verdict.MIXED: "open",
    Verdict.NOT_SHOWN: "open",
    Verdict.NO_EFFECT: "open",
    Verdict.OPPOSITE: "opposite",
    Verdict.UNDECIDABLE: "undecidable",
}
#: From which share of a score's variance on a factor may be called decisive, and at which level.
DECISIVE, LEVEL = 0.05, 0.01
#: Random relabellings of the test.
PERMUTATIONS = 1999
#: Bins of a box, at most, and points a bin, at least.
BINS, PER_BIN = 6, 6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Apart:
    """One claim over the points under an alternative that the reading rejects."""

    #: The factor's id, and the alternative's.
    factor: str
    value: str
    points: int
    shares: dict[str, float]


@dataclass(frozen=True)
class ClaimAnswer:
    """One claim over the box."""

    id: str
    #: Shares of "holds", "open", "opposite", "undecidable", adding up to 1.
    shares: dict[str, float]
    #: Importance of every factor, most important first.
    importance: dict[str, float]
    decisive: tuple[str, ...]
    nearest: Visited | None
    #: The factors that its experiments contain, which alone count above: by id.
    applies: tuple[str, ...]
    #: Where it holds best and worst, to be confirmed with fresh seeds.
    best: Visited | None
    worst: Visited | None
    #: What it comes to where an alternative is rejected.
    apart: tuple[Apart, ...] = ()


def sampled(visited: Sequence[Visited]) -> list[Visited]:
    """The points that shares are taken over: the valid Sobol points; all valid ones without any."""
    valid = [v for v in visited if not v.invalid]
    return [v for v in valid if v.planned.kind == "sobol"] or valid


def accepted(factors: Sequence[Factor], visited: Visited) -> bool:
    """Whether a point is under no alternative of these factors that the reading rejects."""
    return not any(visited.planned.point[f.id].rejected for f in factors)


def grouped(answer: Answer) -> str:
    """The class of an answer: holds, open, opposite or undecidable."""
    return GROUPS[answer.verdict]


def distance(factors: Sequence[Factor], visited: Visited) -> float:
    """How far a point is from the default, over all factors."""
    return sum(f.distance(visited.planned.point[f.id]) for f in factors)


def answer(claim: str, factors: Sequence[Factor], visited: Sequence[Visited]) -> ClaimAnswer:
    """Answer for one claim, over the factors that apply to it; ValueError where every point is invalid."""
    valid = [v for v in visited if not v.invalid and accepted(factors, v)]
    over = sampled(valid)
    if not over:
        raise ValueError("every point is invalid")
    by = sorted(valid, key=lambda v: distance(factors, v))
    holding = [v for v in by if grouped(v.answers[claim]) == "holds"]
    decided = [v for v in by if grouped(v.answers[claim]) != "undecidable"]
    # `max` and `min` take the first of equals: the nearest to the default.
    best = max(holding, key=lambda v: v.answers[claim].score, default=None)
    worst = min(decided, key=lambda v: v.answers[claim].score, default=None)
    importance, decisive = _importance(claim, factors, over)
    return ClaimAnswer(
        claim,
        _shares(claim, over),
        importance,
        decisive,
        holding[0] if holding else None,
        tuple(f.id for f in factors),
        best,
        None if worst is None or grouped(worst.answers[claim]) == "holds" else worst,
        tuple(_apart(claim, factors, visited)),
    )


def _shares(claim: str, over: Sequence[Visited]) -> dict[str, float]:
    counts = dict.fromkeys(("holds", "open", "opposite", "undecidable"), 0)
    for v in over:
        counts[grouped(v.answers[claim])] += 1
    return {name: n / len(over) for name, n in counts.items()}


def _apart(claim: str, factors: Sequence[Factor], visited: Sequence[Visited]) -> Iterator[Apart]:
    for factor in factors:
        for choice in factor.choices:
            under = [v for v in sampled(visited) if v.planned.point[factor.id].value == choice.value]
            if choice.rejected and under:
                yield Apart(factor.id, str(choice.value), len(under), _shares(claim, under))


def bins(factor: Factor, over: Sequence[Visited]) -> NDArray[np.int64]:
    """Label points by a factor: its alternative, or the bin of equal count that its value lies in."""
    units = np.array([factor.unit(v.planned.point[factor.id]) for v in over])
    if factor.choices:
        places: NDArray[np.int64] = np.rint(units * (len(factor.choices) - 1)).astype(np.int64)
        return places
    count = max(1, min(BINS, len(over) // PER_BIN))
    edges = np.quantile(units, np.linspace(0, 1, count + 1)[1:-1])
    labels: NDArray[np.int64] = np.searchsorted(edges, units, side="right").astype(np.int64)
    return labels


def _explained(y: Array, labels: NDArray[np.int64]) -> Array:
    """ε² of a one-way layout, for each row of `y`; 0 where nothing varies."""
    values, index = np.unique(labels, return_inverse=True)
    k, n = len(values), y.shape[1]
    if k < 2 or n <= k:
        return np.zeros(len(y))
    centred = y - y.mean(axis=1, keepdims=True)
    total = (centred**2).sum(axis=1)
    members = np.eye(k)[index]
    between = ((centred @ members) ** 2 / members.sum(axis=0)).sum(axis=1)
    within = (total - between) / (n - k)
    return np.where(total > 1e-12, (between - (k - 1) * within) / np.maximum(total, 1e-12), 0.0)


def _importance(
    claim: str, factors: Sequence[Factor], over: Sequence[Visited]
) -> tuple[dict[str, float], tuple[str, ...]]:
    y = np.array([v.answers[claim].score for v in over])
    # Seeded by what is tested: the same points give the same answer.
    digest = hashlib.sha256(repr((claim, y.tolist())).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    rows = np.stack([y, *(rng.permutation(y) for _ in range(PERMUTATIONS))])
    found: list[tuple[str, float, float]] = []
    for factor in factors:
        shares = _explained(rows, bins(factor, over))
        # Scores take few values: what differs by rounding alone is as much.
        as_much = int((shares >= shares[0] - 1e-12).sum())
        found.append((factor.id, float(shares[0]), as_much / len(rows)))
    adjusted = holm([p for _, _, p in found])
    # As many digits as are kept: factors that explain as much stay in their order on any machine.
    ranked = sorted(zip(found, adjusted, strict=True), key=lambda f: -round(f[0][1], 4))
    return (
        {name: round(share, 4) for (name, share, _), _ in ranked},
        tuple(name for (name, share, _), p in ranked if p < LEVEL and share >= DECISIVE),
    )
