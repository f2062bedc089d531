"""How a paper's claim is judged from paired runs.

A claim is taken apart into *comparisons* (something is above or below something else, seed by seed)
and *numbers* (a value the paper prints). The rules, the same for every paper:

- **Direction**: the 95 % interval of the mean (Student's t over seeds) lies wholly on the claimed side of the
  null value, and still does after Holm's correction over all comparisons of the paper.
- **Number**: the paper's value lies inside our 95 % *prediction* interval, the range in which one more run of
  ours would fall, because papers mostly report one run.
- All comparisons and all numbers: ``reproduced``. All comparisons but not all numbers: ``in_part``.
  A comparison that does not hold: ``not_reproduced``, and the reason says which do.
  No comparison fails but one cannot be decided in the set-up: ``undecidable``, with the measured reason.
- **Equivalence** (a comparison ``within`` two bounds): the mean is shown to lie above the lower and below
  the upper one, by two one-sided tests.

A comparison may be of a kind that is half answered where neither side is shown (`Comparison.partial`): then
the claim is ``in_part``. A comparison counts as undecidable only where its set-up gives a measured reason
*and* neither side is shown: a reason never hides a clear result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from .quantity import quantity, scale
from .stats import Interval, ci95, holm, mean, prediction95

__all__ = [
    "ALPHA",
    "Comparison",
    "Finding",
    "Judged",
    "JudgedComparison",
    "JudgedNumber",
    "Number",
    "Verdict",
    "judge",
]

#: Level of every interval and test, two-sided.
ALPHA = 0.05


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    IN_PART = "in_part"
    NOT_REPRODUCED = "not_reproduced"
    UNDECIDABLE = "undecidable"

    @property
    def words(self) -> str:
        """As a person reads it."""
        return {"in_part": "in part", "not_reproduced": "not reproduced"}.get(self.value, self.value)


@dataclass(frozen=True)
class Comparison:
    """One statement about a mean: `values`, one per seed, lie `side` of `null`, or from it to `upper`.

    Paired differences have null 0; ratios against a bound have the bound as null.
    """

    label: str
    values: Sequence[float]
    side: Literal["above", "below", "within"]
    null: float = 0.0
    unit: str = ""
    topology: str = ""
    #: Why the set-up may be unable to decide it, with the measured figure; None where it can.
    obstacle: str | None = None
    #: The upper bound, of a comparison `within` two.
    upper: float = math.inf
    #: Whether "neither side shown" answers the claim in part rather than not at all.
    partial: bool = False


@dataclass(frozen=True)
class Number:
    """A value the paper prints beside ours, one per seed."""

    label: str
    values: Sequence[float]
    paper: float
    where: str
    unit: str = ""
    topology: str = ""
    #: Values outside cannot occur, so the prediction interval is cut there (a fairness index ends at 1).
    bounds: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Finding:
    """Everything measured about one claim in one set-up."""

    claim: str
    setup: str
    comparisons: Sequence[Comparison]
    numbers: Sequence[Number] = ()
    #: Measured circumstances that a reader needs to understand the verdict; they do not change it.
    notes: Sequence[str] = ()
    #: Why the set-up cannot decide the claim at all; then there are no comparisons.
    obstacle: str | None = None


#: What a comparison shows; `open`: neither side, which answers a `partial` one in part.
Outcome = Literal["holds", "fails", "open", "undecidable"]


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison with its interval and what it shows."""

    comparison: Comparison
    mean: float
    interval: Interval
    p: float
    p_holm: float
    outcome: Outcome
    #: Whether the opposite of what is claimed is shown.
    opposite: bool


@dataclass(frozen=True)
class JudgedNumber:
    """A number with the interval in which one more run of ours would fall."""

    number: Number
    mean: float
    prediction: Interval
    inside: bool


@dataclass(frozen=True)
class Judged:
    """A claim's verdict in one set-up, and why."""

    claim: str
    setup: str
    verdict: Verdict
    #: In a few words: how many comparisons came out as claimed, how many numbers match.
    summary: str
    #: What was measured beside it and explains it.
    notes: Sequence[str]
    #: Summary, notes, and every comparison and number with its figures.
    why: str
    comparisons: Sequence[JudgedComparison]
    numbers: Sequence[JudgedNumber] = ()


def _checked(values: Sequence[float]) -> list[float]:
    xs = [float(x) for x in values]
    if not all(map(math.isfinite, xs)):
        raise ValueError("an interval over values that are not all finite numbers")
    return xs


def _sure(interval: Interval | None) -> Interval:
    if interval is None:
        raise ValueError("an interval needs at least 2 seeds")
    return interval


def _p_value(comparison: Comparison) -> float:
    """Give p: two-sided against `null`, or the larger of two one-sided ones where it is `within`."""
    xs = _checked(comparison.values)
    if comparison.side != "within":
        return min(1.0, 2 * min(_tail(xs, comparison.null), _tail([-x for x in xs], -comparison.null)))
    return max(_tail(xs, comparison.null), _tail([-x for x in xs], -comparison.upper))


def _tail(xs: Sequence[float], null: float) -> float:
    """One-sided p of a t test that the mean lies above `null`; exact for samples without spread."""
    from scipy.special import stdtr

    _sure(ci95(xs))
    centre = mean(xs)
    spread = math.sqrt(math.fsum((x - centre) ** 2 for x in xs) / (len(xs) - 1))
    # A sample that does not vary (a marker that never acts gives differences of exactly 0) has no t.
    if spread <= 1e-12 * max(1.0, abs(centre)):
        if math.isclose(centre, null, rel_tol=1e-12, abs_tol=1e-12):
            return 0.5
        return 0.0 if centre > null else 1.0
    t = (centre - null) / (spread / math.sqrt(len(xs)))
    return float(stdtr(len(xs) - 1, -t))


def _weigh(comparison: Comparison, p: float, p_holm: float) -> JudgedComparison:
    xs = _checked(comparison.values)
    centre, interval = mean(xs), _sure(ci95(xs))
    # Holm's adjusted p is at least p, so "shown" implies that the plain 95 % interval excludes the null too.
    shown = p_holm < ALPHA
    low, high = comparison.null, comparison.upper
    if comparison.side == "within":
        on_side, opposite = low < centre < high, interval.hi < low or interval.lo > high
    else:
        on_side = centre > low if comparison.side == "above" else centre < low
        opposite = shown and not on_side
    outcome: Outcome
    if shown and on_side:
        outcome = "holds"
    elif comparison.obstacle is not None and not opposite:
        outcome = "undecidable"
    elif comparison.partial and not opposite:
        outcome = "open"
    else:
        outcome = "fails"
    return JudgedComparison(comparison, centre, interval, p, p_holm, outcome, opposite)


def per(unit: str, size: float) -> tuple[float, str]:
    """Factor and unit to write a value of this size in: rates never smaller than kbit/s.

    >>> per("bit/s", 93.0), per("packets", 0.0)
    ((1000.0, 'kbit/s'), (1.0, 'packets'))
    """
    return scale(unit, max(size, 1e3)) if unit == "bit/s" else scale(unit, size)


def aligned(*values: float) -> list[str]:
    """Write values that belong together with as many decimals as the largest deserves, true minus signs.

    >>> aligned(0.0005223, 0.0000958, 0.0009488), aligned(-19.9, -24.02)
    (['0.000522', '0.000096', '0.000949'], ['−19.90', '−24.02'])
    """
    size = max(map(abs, values))
    decimals = min(6, max(0, 3 - math.floor(math.log10(size)))) if size > 0 else 0
    # Adding 0.0 makes a rounded −0 a plain 0.
    return [f"{round(x, decimals) + 0.0:.{decimals}f}".replace("-", "−") for x in values]


def _range(interval: Interval, unit: str, centre: float | None = None) -> str:
    """`0.012 [0.010, 0.014] kbit/s`: one unit for all."""
    shown = (*interval, interval.lo if centre is None else centre)
    factor, name = per(unit, max(map(abs, shown)))
    lo, hi, mid = aligned(*(x / factor for x in shown))
    figures = f"[{lo}, {hi}] {name}".rstrip()
    return figures if centre is None else f"{mid} {figures}"


def _place(topology: str) -> str:
    return f" ({topology})" if topology else ""


def _describe(judged: JudgedComparison) -> str:
    c = judged.comparison
    same = c.side != "within" and all(x == c.null for x in c.values)
    figures = "the same in every seed" if same else _range(judged.interval, c.unit, judged.mean)
    text = f"{c.label}{_place(c.topology)}: "
    if judged.outcome == "holds":
        return text + figures
    if judged.outcome == "undecidable":
        return f"{text}{figures}; {c.obstacle}"
    if same:
        return text + figures
    if judged.opposite:
        return f"{text}the opposite is shown, {figures}"
    if c.side == "within":
        bounds = f"{quantity(c.null, c.unit)} and {quantity(c.upper, c.unit)}"
        return f"{text}not shown to lie between {bounds}, {figures}"
    excluded = c.null not in judged.interval and (judged.mean > c.null) == (c.side == "above")
    return f"{text}not shown{' after Holm' if excluded else ''}, {figures}"


def _beside(judged: JudgedNumber) -> str:
    n = judged.number
    return (
        f"{n.label}{_place(n.topology)} {quantity(n.paper, n.unit)}, ours {_range(judged.prediction, n.unit)}"
    )


def _share(n: int, of: int, what: str) -> str:
    return f"{n} of {of} {what}{'s' * (of != 1)}"


def _summary(comparisons: Sequence[JudgedComparison], numbers: Sequence[JudgedNumber]) -> str:
    by = {o: sum(c.outcome == o for c in comparisons) for o in ("holds", "open", "undecidable")}
    text = f"{_share(by['holds'], len(comparisons), 'comparison')} as claimed"
    opposite = sum(c.opposite for c in comparisons)
    if opposite:
        text += f", {opposite} the other way round"
    if by["open"]:
        text += f", {by['open']} with neither side shown"
    if by["undecidable"]:
        text += f", {by['undecidable']} not decidable here"
    if numbers:
        inside = sum(n.inside for n in numbers)
        text += f"; {_share(inside, len(numbers), 'printed number')} in our prediction intervals"
    return text + "."


def _why(comparisons: Sequence[JudgedComparison], numbers: Sequence[JudgedNumber]) -> str:
    parts: list[str] = []
    for outcome, lead in (
        ("fails", "Does not hold"),
        ("open", "Neither side is shown"),
        ("undecidable", "Cannot be decided"),
        ("holds", "Holds"),
    ):
        found = [_describe(c) for c in comparisons if c.outcome == outcome]
        if found:
            parts.append(f"{lead}: {'; '.join(found)}.")
    for inside, lead in (
        (False, "The paper's number is not one our runs give"),
        (True, "The paper's number lies in our 95 % prediction interval"),
    ):
        found = [_beside(n) for n in numbers if n.inside == inside]
        if found:
            parts.append(f"{lead}: {'; '.join(found)}.")
    return " ".join(parts)


def _predict(number: Number) -> JudgedNumber:
    xs = _checked(number.values)
    free = _sure(prediction95(xs))
    low, high = number.bounds
    prediction = Interval(max(free.lo, low), min(free.hi, high))
    return JudgedNumber(number, mean(xs), prediction, inside=number.paper in prediction)


def judge(findings: Iterable[Finding]) -> list[Judged]:
    """Verdicts on `findings`, one each, in order.

    Pass all findings of a paper at once: Holm's correction runs over every comparison among them.

    Raises `ValueError` where a finding has neither comparisons nor an obstacle, or a sample fewer than two
    seeds.
    """
    findings = list(findings)
    for finding in findings:
        if bool(finding.comparisons) == (finding.obstacle is not None):
            raise ValueError(
                f"claim {finding.claim} ({finding.setup}) needs comparisons, or says why it has none"
            )
    raw = [[_p_value(c) for c in f.comparisons] for f in findings]
    adjusted = iter(holm([p for row in raw for p in row]))
    return [_judge(f, row, [next(adjusted) for _ in row]) for f, row in zip(findings, raw, strict=True)]


def _judge(finding: Finding, ps: Sequence[float], adjusted: Sequence[float]) -> Judged:
    comparisons = [_weigh(c, p, h) for c, p, h in zip(finding.comparisons, ps, adjusted, strict=True)]
    numbers = [_predict(number) for number in finding.numbers]
    notes = tuple(finding.notes)
    if finding.obstacle is not None:
        why = " ".join([finding.obstacle, *notes])
        return Judged(
            finding.claim,
            finding.setup,
            Verdict.UNDECIDABLE,
            finding.obstacle,
            notes,
            why,
            comparisons,
            numbers,
        )
    outcomes = {c.outcome for c in comparisons}
    if "fails" in outcomes:
        verdict = Verdict.NOT_REPRODUCED
    elif "undecidable" in outcomes:
        verdict = Verdict.UNDECIDABLE
    elif "open" not in outcomes and all(n.inside for n in numbers):
        verdict = Verdict.REPRODUCED
    else:
        verdict = Verdict.IN_PART
    summary = _summary(comparisons, numbers)
    why = " ".join([summary, *notes, _why(comparisons, numbers)])
    return Judged(finding.claim, finding.setup, verdict, summary, notes, why, comparisons, numbers)
