"""What to use when: drawn from a comparison, with what it costs those without a contract.

For each experiment and way of doing TCP: of the schemes that keep the contracts best (the best mean and those
statistically tied with it), those that leave best effort most, again with all that are statistically tied.
Several schemes may stand in one row: then the runs do not tell them apart, and any of them may be used. Where
nobody has a contract, the fairest; where two schemes never reach the same delay, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from ..stats import SHARE, estimate, mean
from .comparison import Compared, Comparison
from .measure import MEASURES
from .winners import rank

__all__ = ["COMMITTED", "Advice", "Advised", "Figure", "advice", "committed"]

#: The advice of the last whole comparison: `make renew` takes it from `reports/compare/results.json`.
COMMITTED = Path(__file__).parent / "advice.json"


class Figure(TypedDict):
    """A mean over seeds with its 95 % interval."""

    mean: float
    ci95: list[float] | None


class Advised(TypedDict):
    """A scheme with what it keeps of the contracts (or its fairness), and what best effort gets beside it."""

    scheme: str
    value: Figure
    best_effort: NotRequired[Figure]


class Advice(TypedDict):
    """One row: an experiment and a TCP."""

    when: str
    tcp: str
    delays_ms: list[float]
    seeds: int
    measure: str
    percent: bool
    #: Any of these, in the order of the schemes' file: they are statistically tied.
    use: list[Advised]
    #: As good for the contracts, but best effort gets significantly less.
    costlier: list[Advised]
    #: The scheme under which best effort gets most, whatever becomes of the contracts.
    best_effort_most: Advised | None
    last: Advised


def advice(comparison: Comparison) -> list[Advice]:
    """Give a row for each experiment and TCP: when, what to use, what it costs."""
    return [row for one in comparison.outcomes for row in _row(comparison, one)]


def _row(comparison: Comparison, one: Compared) -> Iterator[Advice]:
    name = "kept" if "kept" in one.rankings else "fairness"
    if name not in one.rankings:
        return
    ranking = one.rankings[name]
    others = one.at_equal_delay("best_effort") if name == "kept" else {}
    best = _most_left(ranking.first, others, one.seeds)
    order = [s.id for s in comparison.plan.schemes]

    def advised(scheme: str) -> Advised:
        made = Advised(scheme=comparison.title(scheme), value=_figure(ranking.values[scheme]))
        if scheme in others:
            made["best_effort"] = _figure(others[scheme])
        return made

    low, high = (1e3 * d for d in (min(one.delays), max(one.delays)))
    most = max(others, key=lambda s: mean(others[s]), default=None)
    yield Advice(
        when=one.study.title,
        tcp=one.study.tcp_title,
        delays_ms=[round(low, 3), round(high, 3)],
        seeds=len(one.seeds),
        measure=MEASURES[name].title,
        percent=MEASURES[name].percent,
        use=[advised(s) for s in order if s in best],
        costlier=[advised(s) for s in order if s in ranking.first and s not in best],
        best_effort_most=None if most is None else advised(most),
        last=advised(ranking.order[-1]),
    )


def _most_left(
    first: Sequence[str], others: Mapping[str, Sequence[float]], seeds: Sequence[int]
) -> Sequence[str]:
    """Of the schemes that keep contracts best, those that leave best effort most: the best mean and its ties.

    All of them where nobody is without a contract.
    """
    left = {s: others[s] for s in first if s in others}
    if not left:
        return first
    return rank({"best_effort": left}, {"best_effort": True}, seeds)["best_effort"].first


def _figure(values: Sequence[float]) -> Figure:
    e = estimate(values, SHARE)
    interval = None if e.ci95 is None else [round(e.ci95.lo, 5), round(e.ci95.hi, 5)]
    return Figure(mean=round(e.mean, 5), ci95=interval)


def committed() -> list[Advice]:
    """The advice of the last whole comparison; empty where there has been none."""
    if not COMMITTED.exists():
        return []
    found: list[Advice] = json.loads(COMMITTED.read_text("utf-8"))
    return found
