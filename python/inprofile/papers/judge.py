"""How a paper's claim is judged from paired runs.

A claim is taken apart into *comparisons* (something is above or below something else, seed by seed)
and *numbers* (a value the paper prints). The rules, the same for every paper (docs/decisions/0026):

- A comparison **holds** where the 95 % interval of its mean lies wholly on the claimed side of the null
  value, is **opposite** where it lies wholly on the other, and **open** otherwise. `within` two bounds: it
  holds by two one-sided tests, and is opposite where the interval lies wholly outside them.
- Where a comparison is open because the set-up cannot decide it, with a measured reason (`obstacle`), it is
  **undecidable**. A reason never hides a clear result.
- A claim asserts all its comparisons together, an intersection: each is judged at 95 % on its own, and
  the claim's p is the largest of theirs. Holm's correction runs over the distinct claims of a set-up.
- "None holds, one is opposite" is a union: the more comparisons a claim has, the likelier one of them is
  opposite by chance. So a claim is `opposite` only where one still is after Holm's correction over the
  claim's own comparisons.
- Its verdict: see `Verdict`. Printed numbers never change it; how many lie inside our 95 % *prediction*
  interval, the range in which one more run of ours would fall, is counted beside it. A number of a scheme
  that does not act in a set-up is not counted: it would be another scheme's.
- A comparison that a claim has twice (same sample, null and side) counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..metrics.quantity import quantity
from ..metrics.stats import Interval, ci95, holm, mean, p_above, p_below, prediction95
from .claim import Comparison, Finding, Judged, JudgedComparison, JudgedNumber, Number, Outcome, Verdict
from .judge_text import reasons, summary_of

__all__ = [
    "ALPHA",
    "Comparison",
    "Finding",
    "Judged",
    "JudgedComparison",
    "JudgedNumber",
    "Number",
    "Outcome",
    "Verdict",
    "judge",
]

#: Level of every interval and test, two-sided.
ALPHA = 0.05


def _checked(what: Comparison | Number) -> list[float]:
    xs = [float(x) for x in what.values]
    if not all(map(math.isfinite, xs)):
        raise ValueError(f"{what.label}: an interval over values that are not all finite numbers: {xs}")
    return xs


def _interval(xs: Sequence[float], c: Comparison) -> Interval:
    interval = ci95(xs, c.bounds)
    if interval is None:
        raise ValueError(f"{c.label}: an interval needs at least 2 seeds")
    # Where a mechanism never acts, equal seeds give equal runs: that difference is exact, not a sample's.
    return Interval(c.null, c.null) if all(x == c.null for x in xs) else interval


def _passable(null: float, c: Comparison) -> bool:
    """Whether values can lie beyond this bound; one that they cannot pass does not count."""
    return c.bounds[0] < null < c.bounds[1]


def _p_value(xs: Sequence[float], c: Comparison) -> float:
    if c.side == "within":
        sides = ((p_above, c.null), (p_below, c.upper))
        tails = [tail(xs, null, c.bounds) for tail, null in sides if _passable(null, c)]
        if not tails:
            raise ValueError(
                f"{c.label}: within {c.null:g} and {c.upper:g} shows nothing, as values cannot leave"
                f" {c.bounds[0]:g} to {c.bounds[1]:g}"
            )
        return max(tails)
    tail = p_above if c.side == "above" else p_below
    return min(1.0, 2 * tail(xs, c.null, c.bounds))


def _weigh(comparison: Comparison) -> JudgedComparison:
    c = comparison
    xs = _checked(c)
    interval = _interval(xs, c)
    p = _p_value(xs, c)
    p_opposite = _p_opposite(xs, c)
    outcome: Outcome = "open" if c.obstacle is None else "undecidable"
    if p < ALPHA:
        outcome = "holds"
    elif p_opposite < ALPHA:
        outcome = "opposite"
    return JudgedComparison(c, mean(xs), interval, p, outcome, p_opposite)


def _p_opposite(xs: Sequence[float], c: Comparison) -> float:
    """Two-sided p of the other side; of a comparison `within`, of the side that is further out."""
    sides = {
        "above": [(p_below, c.null)],
        "below": [(p_above, c.null)],
        "within": [(p_below, c.null), (p_above, c.upper)],
    }[c.side]
    passable = [(tail, null) for tail, null in sides if c.side != "within" or _passable(null, c)]
    return min((2 * tail(xs, null, c.bounds) for tail, null in passable), default=1.0)


def _predict(number: Number) -> JudgedNumber:
    xs = _checked(number)
    prediction = prediction95(xs, number.bounds)
    if prediction is None:
        raise ValueError(f"{number.label}: an interval needs at least 2 seeds")
    inside = number.obstacle is None and number.paper in prediction
    return JudgedNumber(number, mean(xs), prediction, inside)


def _distinct(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Each comparison once: the same sample against the same null and side is the same comparison.

    Samples of one repeated value are told apart by their labels: where a mechanism never acts, all its
    differences are 0, and they are not the same comparison.
    """
    seen: dict[object, Comparison] = {}
    for c in comparisons:
        sample = tuple(float(x) for x in c.values)
        name = (c.label, c.topology) if len(set(sample)) == 1 else ()
        key = (sample, c.side, c.null, c.upper, name)
        # Of two, the one with a reason is kept: the order must not matter.
        if key not in seen or (seen[key].obstacle is None and c.obstacle is not None):
            seen[key] = c
    return list(seen.values())


def verdict_of(comparisons: Sequence[JudgedComparison], after_holm: bool = True) -> Verdict:
    """Verdict of a claim from what its comparisons show; `after_holm`: whether it still holds then."""
    outcomes = [c.outcome for c in comparisons]
    holds, opposite = outcomes.count("holds"), outcomes.count("opposite")
    if set(outcomes) <= {"undecidable"}:
        return Verdict.UNDECIDABLE
    if holds == len(outcomes):
        return Verdict.REPRODUCED if after_holm else Verdict.MOSTLY
    if holds:
        return Verdict.MOSTLY if not opposite and 3 * holds >= 2 * len(outcomes) else Verdict.IN_PART
    return Verdict.OPPOSITE if _shown_opposite(comparisons) else Verdict.NOT_SHOWN


def _shown_opposite(comparisons: Sequence[JudgedComparison]) -> bool:
    """Whether any is opposite after Holm's correction over the claim's comparisons."""
    return min(holm([min(1.0, c.p_opposite) for c in comparisons])) < ALPHA


def judge(findings: Iterable[Finding]) -> list[Judged]:
    """Verdicts on `findings`, one each, in order.

    Pass all findings of a paper at once: Holm's correction runs over the claims of each set-up.

    Raises `ValueError` where a finding has neither comparisons nor an obstacle; where a sample has fewer
    than two seeds, or a value that is not finite; and where values cannot leave what a comparison says they
    are `within`.
    """
    findings = list(findings)
    for finding in findings:
        if bool(finding.comparisons) == (finding.obstacle is not None):
            raise ValueError(
                f"claim {finding.claim} ({finding.setup}) needs comparisons, or says why it has none"
            )
    weighed = [[_weigh(c) for c in _distinct(f.comparisons)] for f in findings]
    family: dict[str, list[int]] = {}
    for i, finding in enumerate(findings):
        if finding.comparisons:
            family.setdefault(finding.setup, []).append(i)
    corrected: dict[int, tuple[float, int]] = {}
    for members in family.values():
        adjusted = holm([max(c.p for c in weighed[i]) for i in members])
        corrected.update((i, (p, len(members))) for i, p in zip(members, adjusted, strict=True))
    return [
        _judge(finding, comparisons, *corrected.get(i, (1.0, 0)))
        for i, (finding, comparisons) in enumerate(zip(findings, weighed, strict=True))
    ]


def _judge(finding: Finding, comparisons: Sequence[JudgedComparison], p_holm: float, claims: int) -> Judged:
    numbers = [_predict(number) for number in finding.numbers]
    notes = list(finding.notes)
    if finding.obstacle is not None:
        summary = finding.obstacle
        why = " ".join([summary, *notes, reasons(comparisons, numbers)]).rstrip()
        verdict = Verdict.UNDECIDABLE
        return Judged(finding.claim, finding.setup, verdict, summary, tuple(notes), why, comparisons, numbers)
    verdict = verdict_of(comparisons, after_holm=p_holm < ALPHA)
    p = max(c.p for c in comparisons)
    if p < ALPHA <= p_holm:
        notes.append(
            f"Every comparison holds at 95 %, but among {claims} claims the weakest of them no longer does"
            f" (p = {quantity(p, '', 2)}, after Holm {quantity(p_holm, '', 2)}): mostly."
        )
    if verdict is Verdict.NOT_SHOWN and any(c.outcome == "opposite" for c in comparisons):
        notes.append(
            f"No comparison is significantly opposite after Holm's correction over the claim's"
            f" {len(comparisons)}: not shown."
        )
    summary = summary_of(comparisons, numbers)
    why = " ".join([summary, *notes, reasons(comparisons, numbers)])
    return Judged(
        finding.claim,
        finding.setup,
        verdict,
        summary,
        tuple(notes),
        why,
        comparisons,
        numbers,
        p=p,
        p_holm=p_holm,
        duplicates=len(finding.comparisons) - len(comparisons),
    )
