"""The atlas: where a paper's claims hold over the readings of its text and the inputs it does not state.

For each paper a design of points (`design`) over all factors of its `paper.toml`; at each point the
primary set-up is run with few seeds and every claim judged (`visit`). From these follow, for each claim, the
shares of the box in which it holds, is open, is opposite or undecidable, what decides it, and the nearest
point where it holds (`answers`). The best and the worst point of each claim are run again with fresh seeds.
The result, design and counts included, is kept as `atlas.json` in the paper's folder (`store`) and shown on
its page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...papers import Job, Paper
from ...papers import load as load_paper
from ...papers.experiment import check_experiments
from ...papers.factors import Factor
from ...papers.rerun import Answer
from ...run.pool import Backend, Local
from .answers import ClaimAnswer, answer, applying
from .visit import Planned, Visited, cells_of, design, visit

__all__ = ["BUDGET", "Atlas", "AtlasPlan", "Confirmed", "UnknownClaimError", "make", "plan", "plans"]

#: Where measures of finished cells are kept, from the working directory.
CACHE = Path("results/cache/atlas")
#: Points a paper, unless told.
BUDGET = 48
#: The first of the fresh seeds that confirm; atlas points have 1, 2, 3 ….
FRESH = 1001
#: Seeds a point and scheme, unless the paper says (`seeds.atlas`), and how many times as many confirm.
SEEDS, CONFIRM = 3, 2

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


class UnknownClaimError(LookupError):
    """No claim of that id in the papers asked for."""


@dataclass(frozen=True)
class Confirmed:
    """A claim's best or worst point, judged once more with fresh seeds."""

    claim: str
    #: "best" or "worst".
    which: str
    visited: Visited
    #: None where it could not be measured with the fresh seeds, for the reason `invalid`.
    fresh: Answer | None
    invalid: str = ""


@dataclass(frozen=True)
class AtlasPlan:
    """The points that an atlas of one paper will visit."""

    paper: Paper
    factors: Sequence[Factor]
    points: Sequence[Planned]
    #: Seeds a point.
    seeds: int
    #: Claims that are answered for.
    claims: Sequence[str]

    @property
    def runs(self) -> int:
        """How many simulations, those that confirm not counted: which they are is known afterwards."""
        return sum(job.seeds for job in self.jobs)

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core; shortened runs cost less."""
        return sum(job.seeds * job.cost for job in self.jobs)

    def to_json(self) -> dict[str, object]:
        """As `--plan --json` prints it."""
        return {
            "paper": self.paper.name,
            "points": len(self.points),
            "factors": len(self.factors),
            "runs": self.runs,
            "cpu_seconds": round(self.cpu_seconds, 1),
        }

    @cached_property
    def jobs(self) -> list[Job]:
        """All of them, in order."""
        return [
            job
            for point in self.points
            for batch in cells_of(self.paper, self.factors, point.point, self.seeds)
            for job in batch
        ]


@dataclass(frozen=True)
class Atlas:
    """The findings over the box."""

    plan: AtlasPlan
    visited: Sequence[Visited]
    answers: Sequence[ClaimAnswer]
    confirmed: Sequence[Confirmed]

    @property
    def invalid(self) -> list[Visited]:
        """Points that could not be run or measured, each with its reason."""
        return [v for v in self.visited if v.invalid]


def plan(name: str, budget: int = BUDGET, claims: Sequence[str] | None = None) -> AtlasPlan:
    """List what an atlas of one paper visits.

    Raises `papers.UnknownPaperError`, `papers.factors.FactorError`, `ScenarioError`, and ValueError for a
    budget below 1 or too large, or a paper without factors.
    """
    paper = load_paper(name)
    check_experiments(paper, [job for batch in paper.module("experiments").jobs(paper) for job in batch])
    factors = paper.factors
    points = design(factors, budget, name)
    ids = [c.id for c in paper.claims if c.flag("atlas", True)]
    wanted = ids if claims is None else [i for i in ids if i in claims]
    return AtlasPlan(paper, factors, points, paper.seeds.whole("atlas", SEEDS), wanted)


def plans(names: Sequence[str], budget: int = BUDGET, claims: Sequence[str] | None = None) -> list[AtlasPlan]:
    """`plan` for several papers; those without any of `claims` are skipped.

    Raises `UnknownClaimError` where a claim is in none of them, and what `plan` raises.
    """
    known = {name: [c.id for c in load_paper(name).claims] for name in names}
    for claim in claims or ():
        if not any(claim in ids for ids in known.values()):
            everywhere = ", ".join(i for ids in known.values() for i in ids)
            raise UnknownClaimError(f"there is no claim {claim}: choose from {everywhere}")
    return [plan(n, budget, claims) for n in names if claims is None or set(claims) & set(known[n])]


def make(
    planned: AtlasPlan,
    jobs: int | None = None,
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
    *,
    backend: Backend | None = None,
) -> Atlas:
    """Visit all points, answer for every claim, and confirm the best and the worst with fresh seeds.

    `jobs` is the number of threads, `backend` makes the runs elsewhere; neither changes anything.
    After KeyboardInterrupt the same call goes on where it was. Raises ValueError where every point is
    invalid, with the first reason.
    """
    paper, factors = planned.paper, planned.factors
    place = None if cache is None else Path(cache)
    where = backend or Local(jobs)

    def tell(what: str) -> Callable[[int, int], None]:
        return lambda done, total: (
            None if progress is None else progress(done, total, f"{paper.name}: {what}")
        )

    visited = visit(
        paper,
        factors,
        planned.points,
        seeds=planned.seeds,
        backend=where,
        cache=place,
        progress=tell("points"),
    )
    if all(v.invalid for v in visited):
        raise ValueError(f"{paper.name}: every point is invalid, the first because {visited[0].invalid}")
    contained = applying(paper, factors, planned.claims)
    answers = [answer(claim, contained[claim], visited) for claim in planned.claims]
    confirmed = _confirm(planned, answers, where, place, tell("confirming with fresh seeds"))
    return Atlas(planned, visited, answers, confirmed)


def _confirm(
    planned: AtlasPlan,
    answers: Sequence[ClaimAnswer],
    backend: Backend,
    cache: Path | None,
    progress: Callable[[int, int], None],
) -> list[Confirmed]:
    """Run the claims' best and worst points again, with more and fresh seeds, each of them once."""
    wanted = [
        (a.id, which, v)
        for a in answers
        for which, v in (("best", a.best), ("worst", a.worst))
        if v is not None
    ]
    points = list({id(v.planned): v.planned for _, _, v in wanted}.values())
    if not points:
        return []
    again = visit(
        planned.paper,
        planned.factors,
        points,
        seeds=CONFIRM * planned.seeds,
        first=FRESH,
        backend=backend,
        cache=cache,
        progress=progress,
    )
    fresh = {id(p): v for p, v in zip(points, again, strict=True)}
    return [
        Confirmed(claim, which, v, found.answers.get(claim), found.invalid)
        for claim, which, v in wanted
        for found in [fresh[id(v.planned)]]
    ]
