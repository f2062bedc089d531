"""How a paper's claim is judged from paired runs.

A claim is taken apart into *comparisons* (something is above or below something else, seed by seed)
and *numbers* (a value the paper prints). The rules, the same for every paper (docs/decisions/0026):

- A comparison names the smallest effect worth the name (`Effect`). It **holds** where the 95 % interval of
  its mean lies wholly beyond that on the claimed side of the null value, is **opposite** where it lies wholly
  beyond it on the other side, has **no effect** where it lies between the two, and is **open** otherwise.
  `within` two bounds: it holds by two one-sided tests, and is opposite where the interval lies outside.
- Where a comparison neither holds nor is opposite because the set-up cannot decide it, with a measured reason
  (`obstacle`), or because the scheme compared with leaves less to gain than the smallest effect (`room`), it
  is **undecidable**. A reason never hides a clear result.
- A claim asserts all its comparisons together, an intersection: each is judged at 95 % on its own, and
  the claim's p is the largest of theirs. Holm's correction runs over the distinct claims of a set-up.
- "Some hold" and "one is opposite" are unions: the more comparisons a claim has, the likelier one of them
  is either by chance. So a claim is `in_part` or `opposite` only where one still holds, or is opposite, after
  Holm's correction over the claim's own comparisons.
- A comparison that a placebo passes as well as the scheme does not speak for the scheme. Where one that holds
  is not shown to be better than each of its placebos, the claim is at most `in_part`.
- Its verdict: see `Verdict`. Printed numbers never change it; how many lie inside our 95 % *prediction*
  interval, the range in which one more run of ours would fall, is counted beside it. A number of a scheme
  that does not act in a set-up is not counted: it would be another scheme's. Neither is one in an interval
  that our mean of the scheme compared with lies in too: such a match could not have failed.
- A comparison that a claim has twice (same sample, null and side) counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..metrics.quantity import quantity
from ..metrics.stats import Interval, ci95, holm, mean, p_above, p_below, prediction95
from .claim import (
    Comparison,
    Effect,
    Finding,
    Judged,
    JudgedComparison,
    JudgedNumber,
    Number,
    Outcome,
    Room,
    Verdict,
)
from .judge_text import matched_words, no_room, reasons, summary_of, tells_nothing

__all__ = [
    "ALPHA",
    "Comparison",
    "Effect",
    "Finding",
    "Judged",
    "JudgedComparison",
    "JudgedNumber",
    "Number",
    "Outcome",
    "Room",
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
    tail, sign = (p_above, 1) if c.side == "above" else (p_below, -1)
    return min(1.0, 2 * tail(xs, c.null + sign * c.least, c.bounds))


def _weigh(comparison: Comparison) -> JudgedComparison:
    c = comparison
    if c.side == "within" and (c.least or c.room or c.placebos):
        raise ValueError(f"{c.label}: within two bounds there is no smallest effect, no room and no placebo")
    if c.least < 0:
        raise ValueError(f"{c.label}: the smallest effect is a distance, not {c.least:g}")
    xs = _checked(c)
    interval = _interval(xs, c)
    p = _p_value(xs, c)
    p_opposite = _p_opposite(xs, c)
    why = c.obstacle or _no_room(c)
    outcome: Outcome = "open"
    matched: tuple[str, ...] = ()
    if not c.measured:
        # What stands in its place is no sample: it shows nothing, on any side.
        outcome = "undecidable"
    elif p < ALPHA:
        outcome, matched = "holds", _matched(c)
    elif p_opposite < ALPHA:
        outcome = "opposite"
    elif why:
        outcome = "undecidable"
    elif c.null - c.least < interval.lo and interval.hi < c.null + c.least:
        outcome = "no_effect"
    told = why if outcome == "undecidable" else ""
    return JudgedComparison(c, mean(xs), interval, p, outcome, p_opposite, told, matched)


def _no_room(c: Comparison) -> str:
    """Why there is nothing to gain; empty where there is."""
    if c.room is None:
        return ""
    left = mean(c.room.values)
    return no_room(c, left) if left <= c.least else ""


def _matched(c: Comparison) -> tuple[str, ...]:
    """Titles of the placebos that the scheme is not shown to do better than."""
    tail = p_above if c.side == "above" else p_below
    return tuple(title for title, beyond in c.placebos.items() if 2 * tail(beyond, 0.0) >= ALPHA)


def _p_opposite(xs: Sequence[float], c: Comparison) -> float:
    """Two-sided p of the other side; of a comparison `within`, of the side that is further out."""
    sides = {
        "above": [(p_below, c.null - c.least)],
        "below": [(p_above, c.null + c.least)],
        "within": [(p_below, c.null), (p_above, c.upper)],
    }[c.side]
    passable = [(tail, null) for tail, null in sides if c.side != "within" or _passable(null, c)]
    return min((2 * tail(xs, null, c.bounds) for tail, null in passable), default=1.0)


def _predict(number: Number) -> JudgedNumber:
    xs = _checked(number)
    prediction = prediction95(xs, number.bounds)
    if prediction is None:
        raise ValueError(f"{number.label}: an interval needs at least 2 seeds")
    uncounted = number.obstacle or ""
    if not uncounted and number.paper in prediction and number.rival:
        other = mean(number.rival)
        uncounted = tells_nothing(number, other) if other in prediction else ""
    inside = not uncounted and number.paper in prediction
    return JudgedNumber(number, mean(xs), prediction, inside, uncounted)


def _distinct(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Each comparison once: of the same sample, null, side, least effect and placebos it is the same one.

    Samples of one repeated value are told apart by their labels: where a mechanism never acts, all its
    differences are 0, and they are not the same comparison.
    """
    seen: dict[object, Comparison] = {}
    for c in comparisons:
        sample = tuple(float(x) for x in c.values)
        name = (c.label, c.topology) if len(set(sample)) == 1 else ()
        key = (sample, c.side, c.null, c.upper, c.least, tuple(c.placebos), name)
        # Of two, the one with a reason is kept: the order must not matter.
        if key not in seen or (seen[key].obstacle is None and c.obstacle is not None):
            seen[key] = c
    return list(seen.values())


def verdict_of(comparisons: Sequence[JudgedComparison], after_holm: bool = True) -> Verdict:
    """Verdict of a claim from what its comparisons show; `after_holm`: whether it still holds then."""
    verdict = _plain_verdict(comparisons, after_holm)
    return Verdict.IN_PART if verdict.sound and any(c.matched for c in comparisons) else verdict


def _plain_verdict(comparisons: Sequence[JudgedComparison], after_holm: bool) -> Verdict:
    """The verdict, whatever placebos do."""
    outcomes = [c.outcome for c in comparisons]
    decided = set(outcomes) - {"undecidable"}
    holds = outcomes.count("holds")
    if not decided:
        return Verdict.UNDECIDABLE
    if holds == len(outcomes):
        return Verdict.REPRODUCED if after_holm else Verdict.MOSTLY
    if _any_after_holm([c.p for c in comparisons]):
        against = decided & {"opposite", "no_effect"}
        return Verdict.MOSTLY if not against and 3 * holds >= 2 * len(outcomes) else Verdict.IN_PART
    if _any_after_holm([c.p_opposite for c in comparisons]):
        return Verdict.OPPOSITE
    return Verdict.NO_EFFECT if decided == {"no_effect"} else Verdict.NOT_SHOWN


def _any_after_holm(ps: Sequence[float]) -> bool:
    """Whether any is significant after Holm's correction over the claim's comparisons."""
    return min(holm([min(1.0, p) for p in ps])) < ALPHA


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
    if verdict in (Verdict.NOT_SHOWN, Verdict.NO_EFFECT, Verdict.OPPOSITE) and (
        weak := [c.outcome for c in comparisons if c.outcome in ("holds", "opposite")]
    ):
        said = "holds" if "holds" in weak else "is significantly opposite"
        if verdict is not Verdict.OPPOSITE or said == "holds":
            notes.append(
                f"No comparison {said} after Holm's correction over the claim's {len(comparisons)}:"
                f" {verdict.words}."
            )
    if words := matched_words(comparisons):
        notes.append(words)
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
