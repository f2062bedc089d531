"""Advice on what to use when: drawn from a comparison, with what it costs those without a contract.

For each experiment and way of doing TCP: of the schemes that are shown to keep the contracts as well as the
best one, to within a margin, those shown to leave best effort as much as the one of them that leaves it most,
again to within a margin (`MARGINS`). Shown is a one-sided test at 2.5 % of the paired difference against the
margin, after Holm's correction over the schemes (non-inferiority); that a difference is not significant shows
nothing. A scheme of which neither that nor the contrary is shown is named as undecided. Where nobody has a
contract, the fairest; where two schemes never reach the same delay, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from ...metrics.stats import SHARE, UNLIKE, Paired, estimate, holm, mean, p_below, paired
from ...papers.judge import ALPHA
from .comparison import Compared, Comparison
from .measure import ENOUGH, MEASURES

#: As good is what is shown to be less than the best by no more than this: of contracts kept what a contract
#: may lack and still count as met, of Jain's index half as much, of best effort's part 1 % of the link.
MARGINS = {"kept": round(1 - ENOUGH, 6), "fairness": 0.01, "best_effort": 0.01}

#: The advice of the last whole comparison: `make renew` takes it from `reports/compare/results.json`.
COMMITTED = Path(__file__).parent / "advice.json"
#: And of four senders side by side: `docs/guides/contracts/run.py` takes it.
MIXED = Path(__file__).parent / "mixed.json"


class Figure(TypedDict):
    """A mean over seeds with its 95 % interval."""

    mean: float
    ci95: list[float] | None


class Advised(TypedDict):
    """A scheme with what it keeps of the contracts (or its fairness), and what best effort gets beside it."""

    scheme: str
    value: Figure
    #: How much less it keeps than the best, seed by seed.
    less: Figure
    best_effort: NotRequired[Figure]
    #: How much less best effort gets than under the one of the shown schemes that leaves it most.
    less_best_effort: NotRequired[Figure]


class Advice(TypedDict):
    """One row: an experiment and a TCP."""

    when: str
    tcp: str
    delays_ms: list[float]
    seeds: int
    measure: str
    percent: bool
    #: What is as good: at most so much less than the best, of the measure and of best effort's part.
    margin: float
    margin_best_effort: float
    #: Any of these, in the order of the schemes' file: shown to be as good in both.
    use: list[Advised]
    #: Shown to be as good for the contracts, but not to leave best effort as much.
    costlier: list[Advised]
    #: Neither shown to keep as much as the best nor shown to keep less.
    undecided: list[Advised]
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
    good = _as_good(ranking.values, MARGINS[name], one.seeds)
    shown = [s for s in ranking.values if good[s].shown]
    left = _as_good({s: others[s] for s in shown if s in others}, MARGINS["best_effort"], one.seeds)
    # Where nobody is without a contract, there is no price.
    best = [s for s in shown if s not in left or left[s].shown]
    order = [s.id for s in comparison.plan.schemes]

    def advised(scheme: str) -> Advised:
        made = Advised(
            scheme=comparison.title(scheme),
            value=_figure(ranking.values[scheme]),
            less=_less(good[scheme].less),
        )
        if scheme in others:
            made["best_effort"] = _figure(others[scheme])
        if scheme in left:
            made["less_best_effort"] = _less(left[scheme].less)
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
        margin=MARGINS[name],
        margin_best_effort=MARGINS["best_effort"],
        use=[advised(s) for s in order if s in best],
        costlier=[advised(s) for s in order if s in shown and s not in best],
        undecided=[advised(s) for s in order if s in ranking.first and s not in shown],
        best_effort_most=None if most is None else advised(most),
        last=advised(ranking.order[-1]),
    )


@dataclass(frozen=True)
class _Good:
    """Whether a scheme is shown to be as good as the best, and how much less than it."""

    shown: bool
    less: Paired


def _as_good(values: Mapping[str, Sequence[float]], margin: float, seeds: Sequence[int]) -> dict[str, _Good]:
    """Which schemes are shown to be less than the best by no more than `margin`; the best always is.

    The best is the scheme with the greatest mean, which is not tested.
    `values`: by scheme, one a seed, more being better.
    """
    if not values:
        return {}
    best = max(values, key=lambda s: mean(values[s]))
    top = dict(zip(seeds, values[best], strict=True))
    others = {s: dict(zip(seeds, xs, strict=True)) for s, xs in values.items() if s != best}
    adjusted = iter(holm([_p_within(top, xs, margin) for xs in others.values()]))
    found = {s: _Good(next(adjusted) < ALPHA / 2, paired(top, xs, UNLIKE)) for s, xs in others.items()}
    return {best: _Good(True, paired(top, top, UNLIKE)), **found}


def _p_within(top: Mapping[int, float], xs: Mapping[int, float], margin: float) -> float:
    """One-sided p of "less than the best by no more than `margin`"."""
    less = [top[seed] - xs[seed] for seed in top]
    if not any(less):
        # Equal seeds gave equal runs: as good exactly, not by a sample.
        return 0.0
    # One seed tells nothing of chance.
    return p_below(less, margin, UNLIKE) if len(less) > 1 else 1.0


def _less(found: Paired) -> Figure:
    e = found.difference
    interval = None if e.ci95 is None else [round(e.ci95.lo, 5), round(e.ci95.hi, 5)]
    return Figure(mean=round(e.mean, 5), ci95=interval)


def _figure(values: Sequence[float]) -> Figure:
    e = estimate(values, SHARE)
    interval = None if e.ci95 is None else [round(e.ci95.lo, 5), round(e.ci95.hi, 5)]
    return Figure(mean=round(e.mean, 5), ci95=interval)


def committed() -> list[Advice]:
    """The advice of the last whole comparison, and with mixed senders; empty where there has been none."""
    kept = [place.read_text("utf-8") for place in (COMMITTED, MIXED) if place.exists()]
    found: list[Advice] = [row for text in kept for row in json.loads(text)]
    return found
