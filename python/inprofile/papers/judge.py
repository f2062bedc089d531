"""How a paper's claim is judged from paired runs: from `judge` down to each test.

A claim is taken apart into *comparisons* (something is above or below something else, seed by seed)
and *numbers* (a value the paper prints): see `claim`. The rules, the same for every paper
(docs/decisions/0026):

- A comparison names the smallest effect worth the name (`Effect`). It **holds** where the 95 % interval of
  its mean lies wholly beyond that on the claimed side of the null value, is **opposite** where it lies wholly
  beyond it on the other side, has **no effect** where it lies between the two, and is **open** otherwise.
  `within` two bounds: it holds where the interval lies between them, and is opposite where it lies outside.
  Equal values have the sign test in the interval's place: six of them at least show anything.
- Where a comparison neither holds nor is opposite because the set-up cannot decide it, with a measured reason
  (`obstacle`), or because the scheme compared with, or the measure itself, leaves less to gain than the
  smallest effect (`room`), it is **undecidable**. A reason never hides a clear result.
- A claim asserts all its comparisons together, an intersection: each is judged at 95 % on its own, and
  the claim's p is the largest of theirs. Holm's correction runs over the distinct claims of a set-up. Where
  all hold, but not after it, those that do not are open for the verdict.
- "Some hold" and "some are opposite" are unions: the more comparisons a claim has, the likelier one of them
  is either by chance. So both mean after Holm's correction over the claim's own comparisons.
- A placebo does *as well* where the scheme's lead over it is shown to be smaller than the smallest effect,
  *worse* where it is shown to be larger, and is *not told apart* otherwise. A comparison that one placebo
  passes as well does not speak for the scheme: the claim is at most `in_part`. One that is not told apart
  from a placebo, and passed as well by none, is undecidable.
- Its verdict: see `Verdict`. Printed numbers never change it; how many lie inside our 95 % *prediction*
  interval, the range in which one more run of ours would fall, is counted beside it. A number of a scheme
  that does not act in a set-up is not counted: it would be another scheme's. Neither is one whose interval
  has our mean of the scheme compared with in it too, match or miss: it cannot tell the two apart.
- A comparison that a claim has twice (same sample, null and side) counts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..metrics.quantity import quantity
from ..metrics.stats import Interval, ci95, holm, mean, p_above, p_below, prediction95
from .claim import (
    Because,
    Beside,
    Comparison,
    Finding,
    Judged,
    JudgedComparison,
    JudgedNumber,
    Number,
    Outcome,
    Verdict,
)
from .judge_text import matched_words, no_end, no_room, reasons, summary_of, tells_nothing, untold

#: Level of every interval and test, two-sided.
ALPHA = 0.05
#: Which rules these are: one more with every change that can change a verdict. What is kept says by which.
RULES = 2


def earlier(found: Mapping[str, object]) -> bool:
    """Whether something kept was judged by earlier rules than these: its words may differ from today's.

    >>> earlier({"rules": RULES}), earlier({})
    (False, True)
    """
    return found.get("rules", 1) != RULES


def judge(findings: Iterable[Finding]) -> list[Judged]:
    """Verdicts on `findings`, one each, in order.

    Pass all findings of a paper at once: Holm's correction runs over the claims of each set-up.

    Raises `ValueError`, with the claim and the set-up, where a finding has neither comparisons nor an
    obstacle; where a sample has fewer than two seeds, or a value that is not finite; and where values cannot
    come to lie where a comparison has them.
    """
    findings = list(findings)
    for finding in findings:
        if bool(finding.comparisons) == (finding.obstacle is not None):
            raise ValueError(
                f"claim {finding.claim} ({finding.setup}) needs comparisons, or says why it has none"
            )
    weighed = [_weighed(finding) for finding in findings]
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


def _weighed(finding: Finding) -> list[JudgedComparison]:
    try:
        return [_weigh(c) for c in _distinct(finding.comparisons)]
    except ValueError as error:
        raise ValueError(f"claim {finding.claim} ({finding.setup}): {error}") from None


def _judge(finding: Finding, comparisons: Sequence[JudgedComparison], p_holm: float, claims: int) -> Judged:
    numbers = [_predict(number) for number in finding.numbers]
    notes = list(finding.notes)
    judged = partial(Judged, finding.claim, finding.setup, told=finding.told)
    if finding.obstacle is not None:
        summary = finding.obstacle
        why = " ".join([summary, *notes, reasons(comparisons, numbers)]).rstrip()
        return judged(Verdict.UNDECIDABLE, summary, tuple(notes), why, comparisons, numbers)
    p = max(c.p for c in comparisons)
    verdict, because = _verdict_and_why(comparisons, times=p_holm / p if p else 1.0)
    if all(c.outcome == "holds" for c in comparisons) and p < ALPHA <= p_holm:
        notes.append(
            f"Every comparison holds at 95 %, but among {claims} claims the weakest of them no longer does"
            f" (p = {quantity(p, '', 2)}, after Holm {quantity(p_holm, '', 2)}): {verdict.words}."
        )
    elif verdict in (Verdict.NOT_SHOWN, Verdict.NO_EFFECT, Verdict.OPPOSITE) and (
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
    return judged(
        verdict,
        summary,
        tuple(notes),
        why,
        comparisons,
        numbers,
        p=p,
        p_holm=p_holm,
        duplicates=len(finding.comparisons) - len(comparisons),
        because=because,
    )


def _verdict_and_why(comparisons: Sequence[JudgedComparison], times: float) -> tuple[Verdict, Because]:
    """The verdict, and why it is not the one that counts alone would give."""
    verdict = _plain_verdict(comparisons, times)
    if verdict.sound and any(c.matched for c in comparisons):
        return Verdict.IN_PART, "placebo"
    return verdict, "" if verdict is _counted(comparisons) else "correction"


def _counted(comparisons: Sequence[JudgedComparison]) -> Verdict:
    """The verdict by counts alone, without any correction for how many comparisons and claims there are."""
    sure = [replace(c, p=0.0, p_opposite=0.0) for c in comparisons]
    return _plain_verdict(sure, 1.0)


def _plain_verdict(comparisons: Sequence[JudgedComparison], times: float) -> Verdict:
    """The verdict, whatever placebos do."""
    outcomes = [c.outcome for c in comparisons]
    if all(o == "holds" for o in outcomes):
        outcomes = ["holds" if c.p * times < ALPHA else "open" for c in comparisons]
        if "open" not in outcomes:
            return Verdict.REPRODUCED
    decided = set(outcomes) - {"undecidable"}
    if not decided:
        return Verdict.UNDECIDABLE
    pairs = list(zip(comparisons, outcomes, strict=True))
    holds = _any_after_holm([c.p if o == "holds" else 1.0 for c, o in pairs])
    against = _any_after_holm([c.p_opposite if o == "opposite" else 1.0 for c, o in pairs])
    if holds and against:
        return Verdict.MIXED
    if holds:
        most = 3 * outcomes.count("holds") >= 2 * len(outcomes)
        return Verdict.MOSTLY if most and decided <= {"holds", "open"} else Verdict.IN_PART
    if against:
        return Verdict.OPPOSITE
    return Verdict.NO_EFFECT if decided == {"no_effect"} else Verdict.NOT_SHOWN


def _any_after_holm(ps: Sequence[float]) -> bool:
    """Whether any is significant after Holm's correction over the claim's comparisons."""
    return min(holm(ps)) < ALPHA


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


def _weigh(comparison: Comparison) -> JudgedComparison:
    c = comparison
    _check(c)
    xs = _checked(c)
    interval = _interval(xs, c)
    low, high = c.null - c.least, c.null + c.least
    if c.side == "within":
        p = _p_between(xs, c, c.null, c.upper)
        p_opposite = min(_p_beyond(xs, c, c.null, "below"), _p_beyond(xs, c, c.upper, "above"))
    else:
        sides = (high, "above"), (low, "below")
        claimed, other = sides if c.side == "above" else sides[::-1]
        p, p_opposite = (_p_beyond(xs, c, *end) for end in (claimed, other))
    why = c.obstacle or _no_room(c)
    outcome: Outcome = "open"
    beside: Mapping[str, Beside] = {}
    if not c.measured:
        # What stands in its place is no sample: it shows nothing, on any side.
        outcome = "undecidable"
    elif p < ALPHA:
        beside = _beside(c)
        outcome, why = _attributed(c, beside)
    elif p_opposite < ALPHA:
        outcome = "opposite"
    elif why:
        outcome = "undecidable"
    elif c.side != "within" and _p_between(xs, c, low, high) < ALPHA:
        outcome = "no_effect"
    told = (why or "") if outcome == "undecidable" else ""
    return JudgedComparison(c, mean(xs), interval, p, outcome, p_opposite, told, beside)


def _beside(c: Comparison) -> dict[str, Beside]:
    """How each placebo does, by its title."""
    sign = 1.0 if c.side == "above" else -1.0

    def how(beyond: Sequence[float]) -> Beside:
        lead = [sign * float(x) for x in beyond]
        if 2 * p_above(lead, c.least) < ALPHA:
            return "worse"
        return "as_good" if 2 * p_below(lead, c.least) < ALPHA else "not_told_apart"

    return {title: how(beyond) for title, beyond in c.placebos.items()}


def _attributed(c: Comparison, beside: Mapping[str, Beside]) -> tuple[Outcome, str]:
    """What a comparison on the claimed side shows of the scheme, and why, where it shows nothing."""
    if "as_good" in beside.values() or "not_told_apart" not in beside.values():
        return "holds", ""
    return "undecidable", untold(c, [title for title, how in beside.items() if how == "not_told_apart"])


def _no_room(c: Comparison) -> str:
    """Why there is nothing to gain; empty where there is."""
    if c.side != "within" and not _passable(c.null + (c.least if c.side == "above" else -c.least), c):
        return no_end(c)
    if c.room is None:
        return ""
    left = mean(c.room.values)
    return no_room(c, left) if left <= c.least else ""


def _predict(number: Number) -> JudgedNumber:
    xs = _checked(number)
    prediction = prediction95(xs, number.bounds)
    if prediction is None:
        raise ValueError(f"{number.label}: an interval needs at least 2 seeds")
    uncounted = number.obstacle or ""
    # Before looking at what the paper prints: else matches alone, or misses alone, would be left out.
    if not uncounted and number.rival and (other := mean(number.rival)) in prediction:
        uncounted = tells_nothing(number, other)
    inside = not uncounted and number.paper in prediction
    return JudgedNumber(number, mean(xs), prediction, inside, uncounted)


def _check(c: Comparison) -> None:
    """Raise ValueError for a comparison that asks for nothing that could be shown."""
    within = c.side == "within"
    if within and (c.least or c.room or c.placebos):
        raise ValueError(f"{c.label}: within two bounds there is no smallest effect, no room and no placebo")
    if c.least < 0:
        raise ValueError(f"{c.label}: the smallest effect is a distance, not {c.least:g}")
    nulls = (c.null, c.upper) if within else (c.null,)
    if not any(_passable(null, c) for null in nulls):
        what = f"within {c.null:g} and {c.upper:g}" if within else f"{c.side} {c.null:g}"
        raise ValueError(
            f"{c.label}: {what} shows nothing, as values cannot leave {c.bounds[0]:g} to {c.bounds[1]:g}"
        )


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


def _p_beyond(xs: Sequence[float], c: Comparison, null: float, side: str) -> float:
    """Two-sided p of "the mean lies beyond `null` on this side"; 1 where nothing can lie there."""
    if not _passable(null, c):
        return 1.0
    return min(1.0, 2 * (p_above if side == "above" else p_below)(xs, null, c.bounds))


def _p_between(xs: Sequence[float], c: Comparison, low: float, high: float) -> float:
    """Of "the mean lies between the two", the larger of both; a bound that values cannot pass is none."""
    sides = ((low, "above"), (high, "below"))
    return max((_p_beyond(xs, c, null, side) for null, side in sides if _passable(null, c)), default=1.0)
