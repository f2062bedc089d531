"""What a claim is taken apart into, seed by seed, and the words that `judge` finds for it.

A paper's `claims.py`, or the `comparisons` in its `paper.toml` (`stated`), pair the runs of two schemes with
the same seeds, and say on which side of a value the mean of what they differ by has to lie (`Comparison`),
from which size on that counts (`Effect`), and what the paper prints (`Number`). All of that about a claim in
a set-up is a `Finding`; what `judge` makes of it is `Judged`, with a `Verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np

from ..metrics.measures import Array, Measures
from ..metrics.stats import FREE, Bounds, Interval, mean


@dataclass(frozen=True)
class Effect:
    """The smallest distance from the null value that is worth the name, and why this one.

    0 where the null value is itself the bound that the claim, or a reader of it, needs.
    """

    size: float
    why: str
    #: Whether the paper's words or numbers say it; else it is ours.
    stated: bool = False


#: Differences of Jain's index.
INDEX = Effect(0.01, "a hundredth of Jain's index, by which schemes are told apart throughout")
#: Throughput over contract, beside the bound of 98 % from which a contract counts as kept.
CONTRACT = Effect(0.02, "2 % of the contract: what is within them counts as kept")
#: Where the null value is the claim's own bound.
BOUND = Effect(0.0, "the bound is the claim's")


def of_base(base: Iterable[float], share: float, why: str, stated: bool = False) -> Effect:
    """A share of what the scheme compared with has on the mean of its seeds.

    >>> of_base([90.0, 110.0], 0.1, "a tenth").size
    10.0
    """
    return Effect(share * abs(mean(base)), why, stated)


def of_link(rate: float, share: float = 0.01) -> Effect:
    """A share of the link's rate, in bit/s.

    >>> of_link(6e6).why
    '1 % of the link, by which schemes are told apart throughout'
    """
    return Effect(share * rate, f"{100 * share:g} % of the link, by which schemes are told apart throughout")


@dataclass(frozen=True)
class Room:
    """What the scheme compared with leaves to gain, one value per seed: on its mean no effect can be larger.

    Where that is less than the smallest effect worth the name, there is no ailment to cure.
    """

    values: Sequence[float]
    #: What it is, to stand before its figure: "from RIO's index to 1 there are".
    words: str


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
    #: From which size on a difference counts; None: any does. `within` has its bounds instead.
    effect: Effect | None = None
    #: What there is to gain; None where that is not limited.
    room: Room | None = None
    #: How far the scheme is above each placebo in the same measure, one value per seed, by its title.
    placebos: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def least(self) -> float:
        """Size of the smallest effect worth the name."""
        return 0.0 if self.effect is None else self.effect.size


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
    #: What would be as well if the claim were not so, one per seed: a match that this is too tells nothing.
    rival: Sequence[float] = ()
    rival_words: str = "the scheme that it is compared with"


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
    #: The figures that a table of verdicts gives beside the word, as it says them.
    told: str = ""


#: A measure by its name, or made from several (a share of a sum).
Measure = str | Callable[[Measures], Array]


def same_seeds(*cells: Measures) -> tuple[int, ...]:
    """The seeds that all `cells` were run with, in their order. Raises `ValueError` where they differ."""
    first, *others = cells
    for other in others:
        if other.seeds != first.seeds:
            raise ValueError(
                f"nothing to pair: one was run with seeds {_listed(first)}, the other with {_listed(other)}"
            )
    return first.seeds


def paired(a: Measures, b: Measures, measure: Measure) -> list[float]:
    """`a` − `b`, one value a seed. Raises `ValueError` where the seeds differ.

    >>> fast = Measures((1, 2), {"fi": np.array([0.9, 0.8])}, {})
    >>> slow = Measures((1, 2), {"fi": np.array([0.5, 0.5])}, {})
    >>> [round(x, 9) for x in paired(fast, slow, "fi")]
    [0.4, 0.3]
    """
    same_seeds(a, b)
    return [float(x) for x in _of(a, measure) - _of(b, measure)]


def ratios(a: Measures, b: Measures, measure: Measure) -> list[float]:
    """`a` / `b`, one value a seed. Raises `ValueError` where the seeds differ or a value of `b` is 0."""
    same_seeds(a, b)
    below = _of(b, measure)
    if not np.all(below):
        raise ValueError("a ratio to a measure that is 0 with some seed")
    return [float(x) for x in _of(a, measure) / below]


@dataclass(frozen=True)
class Pair:
    """A scheme beside the one that it is compared with: measures of the same seeds, in a network."""

    base: Measures
    ours: Measures
    title: str = ""
    #: What acts as often as `ours`, but blindly, by its title.
    placebos: Mapping[str, Measures] = field(default_factory=dict)

    def difference(self, measure: Measure) -> list[float]:
        """`ours` − `base`, one value a seed."""
        return paired(self.ours, self.base, measure)

    def compare(
        self,
        label: str,
        measure: Measure,
        side: Literal["above", "below"],
        unit: str = "",
        *,
        bounds: Bounds = FREE,
        obstacle: str | None = None,
        effect: Effect | None = None,
        room: Room | None = None,
    ) -> Comparison:
        """The difference as a comparison with 0, and how far `ours` is above each placebo."""
        return Comparison(
            label,
            self.difference(measure),
            side,
            0.0,
            unit,
            self.title,
            obstacle,
            bounds=bounds,
            effect=effect,
            room=room,
            placebos={title: paired(self.ours, other, measure) for title, other in self.placebos.items()},
        )


def _of(cell: Measures, measure: Measure) -> Array:
    return cell[measure] if isinstance(measure, str) else measure(cell)


def _listed(cell: Measures) -> str:
    seeds = cell.seeds
    if seeds == tuple(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


class Verdict(StrEnum):
    """What became of a claim in a set-up.

    That some hold, or are opposite, is said after Holm's correction over the claim's comparisons.
    """

    #: All comparisons hold, and the claim does after Holm's correction over the claims.
    REPRODUCED = "reproduced"
    #: Two thirds or more hold, the rest is open or undecidable.
    MOSTLY = "mostly"
    #: Some hold and none is opposite, otherwise; or as above, and in some a placebo does as well.
    IN_PART = "in_part"
    #: Some hold and some are opposite.
    MIXED = "mixed"
    #: None holds and none is opposite.
    NOT_SHOWN = "not_shown"
    #: Every comparison that can be decided is shown to be smaller than its smallest effect worth the name.
    NO_EFFECT = "no_effect"
    #: None holds, and at least one is opposite.
    OPPOSITE = "opposite"
    #: No comparison can be decided, for a measured reason.
    UNDECIDABLE = "undecidable"

    @property
    def words(self) -> str:
        """As a person reads it."""
        return self.value.replace("_", " ")

    @property
    def sound(self) -> bool:
        """Whether the claim can be said to hold: reproduced or mostly."""
        return self in (Verdict.REPRODUCED, Verdict.MOSTLY)


#: Why a claim's word is not the one that the counts of its comparisons alone would give: a placebo does as
#: well, or Holm's correction leaves less than they show one by one; empty where it is that one.
Because = Literal["", "placebo", "correction"]
#: What a comparison shows.
Outcome = Literal["holds", "opposite", "no_effect", "open", "undecidable"]
#: How a placebo does beside the scheme: by the smallest effect worse, by less than that, or not told apart.
Beside = Literal["worse", "as_good", "not_told_apart"]


@dataclass(frozen=True)
class JudgedComparison:
    """A comparison with its interval and what it shows."""

    comparison: Comparison
    mean: float
    #: 95 %, of the mean.
    interval: Interval
    #: Of the claimed side, two-sided; of a comparison `within`, the larger of the two bounds'.
    p: float
    outcome: Outcome
    #: Of the other side, two-sided.
    p_opposite: float = 1.0
    #: Why it is undecidable, where it is.
    why: str = ""
    #: How each placebo does, by its title, where the difference is on the claimed side.
    beside: Mapping[str, Beside] = field(default_factory=dict)

    @property
    def matched(self) -> list[str]:
        """Titles of the placebos that do as well, where the comparison holds."""
        return [title for title, how in self.beside.items() if how == "as_good" and self.outcome == "holds"]


@dataclass(frozen=True)
class JudgedNumber:
    """A number with the interval in which one more run of ours would fall."""

    number: Number
    mean: float
    prediction: Interval
    #: Whether the paper's lies in it; never where it is not counted.
    inside: bool
    #: Why it is not counted; empty where it is.
    uncounted: str = ""


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
    because: Because = ""
    told: str = ""

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
        return sum(not n.uncounted for n in self.numbers)
