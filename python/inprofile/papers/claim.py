"""What a paper's claim is taken apart into, and what becomes of it. `judge` has the rules.

And what the `comparisons` of a claim, and the `set` of what is compared, may say; `stated` judges them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from ..metrics.stats import FREE, Bounds, Interval
from .entry import Entry, PaperError


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


@dataclass(frozen=True)
class Effect:
    """The smallest distance from the null value that is worth the name, and why this one.

    0 where the null value is itself the bound that the claim, or a reader of it, needs.
    """

    size: float
    why: str
    #: Whether the paper's words or numbers say it; else it is ours.
    stated: bool = False


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


_KEYS = frozenset({"measure", "of", "on", "side", "than", "to", "against", "least", "why", "label", "unit"})
_AGAINST = frozenset({"of", "on", "measure", "by"})
_SIDES = ("above", "below", "within")


def check_changes(top: Entry) -> None:
    """Refuse a table in `set` that is neither a network's nor a path of the experiment."""
    topologies = [e.id for e in top.tables("topologies")]
    for table in ("setups", "schemes", "variants", "sweeps"):
        for entry in top.tables(table):
            for key, value in entry.changes.items():
                if isinstance(value, Mapping) and "." not in key and key not in topologies:
                    raise PaperError(
                        f"{entry.place('set')}: {key} is no network ({', '.join(topologies)}); for all write"
                        f' paths, such as "{key}.{next(iter(value), "key")}"'
                    )


def check_comparisons(top: Entry) -> None:
    """Refuse a comparison that lacks something, or is of a scheme or network that is not there."""
    schemes, topologies = ([e.id for e in top.tables(t)] for t in ("schemes", "topologies"))
    for claim in top.tables("claims"):
        for c in claim.tables("comparisons"):
            _known(c, _KEYS)
            for key in ("measure", "of", "side"):
                c.word(key)
            _one_of(c, "of", schemes)
            _one_of(c, "side", _SIDES)
            if "on" in c and not listed(c, "on"):
                raise PaperError(f"{c.place('on')} = []: name a network, or remove it for all")
            for topology in listed(c, "on"):
                if topology not in topologies:
                    raise PaperError(f"{c.place('on')} = {topology!r}: write one of {', '.join(topologies)}")
            for key in ("than", "to", "least"):
                if key in c and not math.isfinite(c.number(key)):
                    raise PaperError(f"{c.place(key)} = {c[key]}: write a finite number")
            _bounded(c)
            if ("least" in c) != ("why" in c):
                raise PaperError(f"{c.place()} has one of least and why: write both, effect and reason")
            if "against" in c:
                other = c.table("against")
                _known(other, _AGAINST)
                if "of" in other:
                    _one_of(other, "of", schemes)
                if "on" in other:
                    _one_of(other, "on", topologies)
                if "by" in other:
                    _one_of(other, "by", ("difference", "ratio"))
                _differs(c, other, topologies)


def _bounded(c: Entry) -> None:
    """Refuse a side whose bounds are not there, or are none."""
    if c.word("side") != "within":
        if "to" in c:
            raise PaperError(
                f'{c.place("to")} is the upper bound of side = "within": remove it, or write that'
            )
        return
    for key in ("than", "to"):
        if key not in c:
            raise PaperError(f'{c.place()} lacks {key}: side = "within" has both bounds, than and to')
    if c.number("to") <= c.number("than"):
        raise PaperError(f"{c.place('to')} = {c['to']}: write an upper bound above than, {c['than']}")
    if "least" in c:
        raise PaperError(
            f'{c.place("least")}: side = "within" has no smallest effect, as its bounds say what counts:'
            " remove least and why"
        )


def _differs(c: Entry, other: Entry, topologies: Sequence[str]) -> None:
    """Refuse a comparison of something with itself."""
    same = all(other.get(key, c[key]) == c[key] for key in ("of", "measure"))
    if same and ("on" not in other or other.word("on") in (listed(c, "on") or topologies)):
        raise PaperError(f"{c.place('against')} is what is compared: write another of, on or measure")


def _known(entry: Entry, known: frozenset[str]) -> None:
    for key in entry:
        if key not in known:
            raise PaperError(f"{entry.place(key)} is an unknown key: write one of {', '.join(sorted(known))}")


def _one_of(entry: Entry, key: str, there: Sequence[str]) -> None:
    if entry.word(key) not in there:
        raise PaperError(f"{entry.place(key)} = {entry[key]!r}: write one of {', '.join(there)}")


def listed(entry: Entry, key: str) -> list[str]:
    """A text or a list of them, as a list; empty where there is none."""
    if key not in entry:
        return []
    return [entry.word(key)] if isinstance(entry[key], str) else entry.words(key)
