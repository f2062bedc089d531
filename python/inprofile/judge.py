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

A comparison counts as undecidable only where its set-up gives a measured reason *and* neither side is shown:
a reason never hides a clear result.
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
    """One directional statement: `values`, one per seed, lie `side` of `null`.

    Paired differences have null 0; ratios against a bound have the bound as null.
    """

    label: str
    values: Sequence[float]
    side: Literal["above", "below"]
    null: float = 0.0
    unit: str = ""
    topology: str = ""
    #: Why the set-up may be unable to decide it, with the measured figure; None where it can.
    obstacle: str | None = None


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


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison with its interval and what it shows."""

    comparison: Comparison
    mean: float
    interval: Interval
    p: float
    p_holm: float
    outcome: Literal["holds", "fails", "undecidable"]
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


def _p_value(values: Sequence[float], null: float) -> float:
    """Two-sided p of a one-sample t test; exact for samples without spread."""
    from scipy.special import stdtr

    xs = _checked(values)
    _sure(ci95(xs))
    centre = mean(xs)
    spread = math.sqrt(math.fsum((x - centre) ** 2 for x in xs) / (len(xs) - 1))
    # A sample that does not vary (a marker that never acts gives differences of exactly 0) has no t.
    if spread <= 1e-12 * max(1.0, abs(centre)):
        return 1.0 if math.isclose(centre, null, rel_tol=1e-12, abs_tol=1e-12) else 0.0
    t = (centre - null) / (spread / math.sqrt(len(xs)))
    return 2 * float(stdtr(len(xs) - 1, -abs(t)))


def _weigh(comparison: Comparison, p: float, p_holm: float) -> JudgedComparison:
    xs = _checked(comparison.values)
    centre, interval = mean(xs), _sure(ci95(xs))
    # Holm's adjusted p is at least p, so "shown" implies that the plain 95 % interval excludes the null too.
    shown = p_holm < ALPHA
    on_side = centre > comparison.null if comparison.side == "above" else centre < comparison.null
    outcome: Literal["holds", "fails", "undecidable"]
    if shown and on_side:
        outcome = "holds"
    elif comparison.obstacle is not None and not shown:
        outcome = "undecidable"
    else:
        outcome = "fails"
    return JudgedComparison(comparison, centre, interval, p, p_holm, outcome, opposite=shown and not on_side)


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
    same = all(x == c.null for x in c.values)
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
    by = {o: sum(c.outcome == o for c in comparisons) for o in ("holds", "undecidable")}
    text = f"{_share(by['holds'], len(comparisons), 'comparison')} as claimed"
    opposite = sum(c.opposite for c in comparisons)
    if opposite:
        text += f", {opposite} the other way round"
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

    Raises `ValueError` where a finding has no comparison, or a sample fewer than two seeds.
    """
    findings = list(findings)
    for finding in findings:
        if not finding.comparisons:
            raise ValueError(f"claim {finding.claim} ({finding.setup}) compares nothing")
    raw = [[_p_value(c.values, c.null) for c in f.comparisons] for f in findings]
    adjusted = iter(holm([p for row in raw for p in row]))

    judged = []
    for finding, row in zip(findings, raw, strict=True):
        comparisons = [_weigh(c, p, next(adjusted)) for c, p in zip(finding.comparisons, row, strict=True)]
        numbers = [_predict(number) for number in finding.numbers]
        outcomes = {c.outcome for c in comparisons}
        if "fails" in outcomes:
            verdict = Verdict.NOT_REPRODUCED
        elif "undecidable" in outcomes:
            verdict = Verdict.UNDECIDABLE
        elif all(n.inside for n in numbers):
            verdict = Verdict.REPRODUCED
        else:
            verdict = Verdict.IN_PART
        summary, notes = _summary(comparisons, numbers), tuple(finding.notes)
        why = " ".join([summary, *notes, _why(comparisons, numbers)])
        judged.append(
            Judged(finding.claim, finding.setup, verdict, summary, notes, why, comparisons, numbers)
        )
    return judged
