"""What a paper's claim is taken apart into, and what becomes of it. `judge` has the rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ..metrics.stats import FREE, Bounds, Interval

__all__ = [
    "Comparison",
    "Finding",
    "Judged",
    "JudgedComparison",
    "JudgedNumber",
    "Number",
    "Outcome",
    "Verdict",
]


class Verdict(StrEnum):
    """What became of a claim in a set-up."""

    #: All comparisons hold, and the claim does after Holm's correction over the claims.
    REPRODUCED = "reproduced"
    #: Two thirds or more hold, none is opposite.
    MOSTLY = "mostly"
    #: Some hold, otherwise.
    IN_PART = "in_part"
    #: None holds, and none is opposite after Holm's correction over the claim's comparisons.
    NOT_SHOWN = "not_shown"
    #: None holds, and at least one is opposite after that correction.
    OPPOSITE = "opposite"
    #: No comparison can be decided, for a measured reason.
    UNDECIDABLE = "undecidable"

    @property
    def words(self) -> str:
        """As a person reads it."""
        return {"in_part": "in part", "not_shown": "not shown"}.get(self.value, self.value)

    @property
    def sound(self) -> bool:
        """Whether the claim can be said to hold: reproduced or mostly."""
        return self in (Verdict.REPRODUCED, Verdict.MOSTLY)


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
    #: What the values cannot leave, and so neither the interval: `stats.SHARE`, `stats.UNLIKE`.
    bounds: Bounds = FREE
    #: Whether `values` were measured: with an `obstacle` there may be none, and null takes their place.
    measured: bool = True


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
    bounds: Bounds = FREE
    #: Why ours is not what the paper measured (its scheme does not act here); then it is not counted.
    obstacle: str | None = None


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


#: What a comparison shows.
Outcome = Literal["holds", "opposite", "open", "undecidable"]


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison with its interval and what it shows."""

    comparison: Comparison
    mean: float
    #: 95 %, of the mean.
    interval: Interval
    #: Of the claimed side: twice the one-sided p; of a comparison `within`, the larger of two one-sided ones.
    p: float
    outcome: Outcome
    #: Of the other side, two-sided.
    p_opposite: float = 1.0


@dataclass(frozen=True)
class JudgedNumber:
    """A number with the interval in which one more run of ours would fall."""

    number: Number
    mean: float
    prediction: Interval
    #: Whether the paper's lies in it; never where it is not counted.
    inside: bool


@dataclass(frozen=True)
class Judged:
    """A claim's verdict in one set-up, and why."""

    claim: str
    setup: str
    verdict: Verdict
    #: In a few words: how many comparisons hold, how many numbers match.
    summary: str
    #: What was measured beside it and explains it.
    notes: Sequence[str]
    #: Summary, notes, and every comparison and number with its figures.
    why: str
    comparisons: Sequence[JudgedComparison]
    numbers: Sequence[JudgedNumber] = ()
    #: The largest p of its comparisons, and the same after Holm over the set-up's claims; 1 without any.
    p: float = 1.0
    p_holm: float = 1.0
    #: How many comparisons were left out as duplicates.
    duplicates: int = 0

    def count(self, outcome: Outcome) -> int:
        """How many of its comparisons came out so."""
        return sum(c.outcome == outcome for c in self.comparisons)

    @property
    def inside(self) -> int:
        """How many printed numbers lie inside our prediction intervals."""
        return sum(n.inside for n in self.numbers)

    @property
    def counted(self) -> int:
        """How many printed numbers are counted at all."""
        return sum(n.number.obstacle is None for n in self.numbers)
