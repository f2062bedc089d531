"""A judged claim in words: comparisons and printed numbers with their figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..metrics.quantity import quantity, scale, together
from ..metrics.stats import Interval
from .claim import Comparison, JudgedComparison, JudgedNumber, Number, Outcome


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
    return [text.replace("-", "−") for text in together(*values, decimals=decimals)]


def _range(interval: Interval, unit: str, centre: float | None = None) -> str:
    """`0.012 [0.010, 0.014] kbit/s`: one unit for all."""
    shown = (*interval, interval.lo if centre is None else centre)
    factor, name = per(unit, max(map(abs, shown)))
    lo, hi, mid = aligned(*(x / factor for x in shown))
    figures = f"[{lo}, {hi}] {name}".rstrip()
    return figures if centre is None else f"{mid} {figures}"


def _place(topology: str) -> str:
    return f" ({topology})" if topology else ""


def no_room(c: Comparison, left: float) -> str:
    """Why there is no ailment to cure, with what the scheme compared with leaves to gain."""
    words = "" if c.room is None else c.room.words
    return (
        f"{words} {_signed(left, c.unit)}, less than the {quantity(c.least, c.unit)} from which on a"
        " difference counts: there is nothing to cure"
    )


def no_end(c: Comparison) -> str:
    """Why no difference can count: the measure ends before."""
    end = c.bounds[1] if c.side == "above" else c.bounds[0]
    return (
        f"from {_signed(c.null, c.unit)} to {_signed(end, c.unit)}, where the measure ends, is no more than"
        f" the {quantity(c.least, c.unit)} from which on a difference counts"
    )


def untold(c: Comparison, titles: Sequence[str]) -> str:
    """Why a difference on the claimed side is not shown to be the scheme's."""
    return f"not told apart from {listed(titles)} by the {quantity(c.least, c.unit)} that count"


def tells_nothing(n: Number, other: float) -> str:
    """Why a printed number tells nothing, whether it lies in our interval or not."""
    return f"{n.rival_words}, {_signed(other, n.unit)}, lies in ours too, which cannot tell the two apart"


def _signed(value: float, unit: str) -> str:
    return quantity(value, unit).replace("-", "−")


def least_words(c: Comparison) -> str:
    """From which size on a difference counts, and why; empty where it has no reason of its own."""
    if c.effect is None:
        return ""
    by = "" if c.effect.stated else " (ours)"
    size = f"counts from {quantity(c.least, c.unit)} on: " if c.least else ""
    return f"{size}{c.effect.why}{by}"


def claimed_words(c: Comparison) -> str:
    """Where the mean is claimed to lie.

    >>> claimed_words(Comparison("a", [1.0], "within", -1.0, upper=1.0))
    'from −1 to 1'
    """
    null = _signed(c.null, c.unit)
    return f"from {null} to {_signed(c.upper, c.unit)}" if c.side == "within" else f"{c.side} {null}"


def matched_words(comparisons: Sequence[JudgedComparison]) -> str:
    """Which placebos do as well, as a sentence; empty where none does."""
    by: dict[str, int] = {}
    for c in comparisons:
        for title in c.matched:
            by[title] = by.get(title, 0) + 1
    if not by:
        return ""
    total = sum(c.outcome == "holds" for c in comparisons)
    which = listed([f"{title} (in {n} of the {total} that hold)" for title, n in by.items()])
    return f"A placebo is shown to do as well as the scheme, so at most in part: {which}."


def describe(judged: JudgedComparison) -> str:
    """One comparison with its figures, as a phrase."""
    c = judged.comparison
    if not c.measured and judged.outcome == "undecidable":
        return f"{c.label}{_place(c.topology)}: {judged.why}"
    figures = _range(judged.interval, c.unit, judged.mean)
    if all(x == c.values[0] for x in c.values):
        value = quantity(judged.mean, c.unit).replace("-", "−")
        figures = f"{value} in all {len(c.values)} seeds" if c.values[0] else "the same in every seed"
    text = f"{c.label}{_place(c.topology)}: {figures}"
    if judged.outcome == "undecidable":
        return f"{text}; {judged.why}"
    if c.side == "within" and judged.outcome != "holds":
        return f"{text}, claimed {claimed_words(c)}"
    if judged.outcome != "holds" and any(x != c.values[0] for x in c.values):
        by = f" by {quantity(c.least, c.unit)} or more" if c.least else ""
        return f"{text}, claimed {claimed_words(c)}{by}"
    return text


def _beside(judged: JudgedNumber) -> str:
    n = judged.number
    return (
        f"{n.label}{_place(n.topology)} {quantity(n.paper, n.unit)}, ours {_range(judged.prediction, n.unit)}"
    )


def _share(of: int, what: str) -> str:
    return f"{of} {what}{'s' * (of != 1)}"


def summary_of(comparisons: Sequence[JudgedComparison], numbers: Sequence[JudgedNumber]) -> str:
    """How many comparisons hold and how many printed numbers match, as a sentence."""

    def count(outcome: Outcome) -> int:
        return sum(c.outcome == outcome for c in comparisons)

    held = count("holds")
    verb = "holds" if 1 in (held, len(comparisons)) else "hold"
    text = f"{held} of {_share(len(comparisons), 'comparison')} {verb}"
    if n := count("opposite"):
        text += f", {n} significantly opposite"
    if n := count("no_effect"):
        text += f", {n} without effect"
    if n := count("open"):
        text += f", {n} open"
    if n := count("undecidable"):
        text += f", {n} undecidable in this set-up"
    counted = [n for n in numbers if not n.uncounted]
    if counted:
        inside = sum(n.inside for n in counted)
        text += f"; {inside} of {_share(len(counted), 'printed number')} in our prediction intervals"
    if n := len(numbers) - len(counted):
        text += f"; {_share(n, 'printed number')} not counted, match or miss"
    return text + "."


def reasons(comparisons: Sequence[JudgedComparison], numbers: Sequence[JudgedNumber]) -> str:
    """Every comparison and number with its figures, by outcome."""
    parts: list[str] = []
    for outcome, lead in (
        ("opposite", "Significantly opposite"),
        ("no_effect", "No effect: smaller than what is worth the name, on either side"),
        ("open", "Open: neither side is significant"),
        ("undecidable", "Cannot be decided"),
        ("holds", "Holds"),
    ):
        found = [describe(c) for c in comparisons if c.outcome == outcome]
        if found:
            parts.append(f"{lead}: {'; '.join(found)}.")
    for inside, lead in (
        (False, "The paper's number lies outside our 95 % prediction interval"),
        (True, "The paper's number lies in our 95 % prediction interval"),
    ):
        found = [_beside(n) for n in numbers if n.inside == inside and not n.uncounted]
        if found:
            parts.append(f"{lead}: {'; '.join(found)}.")
    if found := [f"{_beside(n)} ({n.uncounted})" for n in numbers if n.uncounted]:
        parts.append(f"The paper's number is not counted: {'; '.join(found)}.")
    return " ".join(parts)


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["A1"]), listed(["A1", "A2"]), listed(["A1", "A2", "A3"])
    ('A1', 'A1 and A2', 'A1, A2 and A3')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
