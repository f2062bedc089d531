"""What a paper leaves open, as data: readings of its text, and inputs that it does not state.

A *reading* is one of several ways to understand a place of the text (`[[readings]]` in `paper.toml`); an
*input* is a parameter of the experiment that the paper does not give, with the box of values that are
plausible for its year and simulator (`[[inputs]]`). Both are factors: each has a default, and each choice
says what it sets in the experiment. A *point* gives a choice for every factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .entry import PaperError


class FactorError(PaperError):
    """A `[[readings]]` or `[[inputs]]` entry that cannot be used; says which and what to write instead."""


@dataclass(frozen=True)
class Choice:
    """One value of a factor."""

    #: The id of an alternative, or a number of the box.
    value: str | float
    title: str
    #: Paths of the experiment and what they are set to, as `Scenario.with_` takes them.
    set: Mapping[str, object] = field(default_factory=dict)
    #: Entries of the paper's own tables that it replaces, by top-level key (`contracts`).
    paper: Mapping[str, Any] = field(default_factory=dict)
    #: Why the reading rejects it, if so: it was run all the same, and is no part of what a claim holds over.
    rejected: str = ""


#: A choice for every factor, by the factor's id.
Point = Mapping[str, Choice]


@dataclass(frozen=True)
class Factor:
    """A reading or an input."""

    id: str
    title: str
    #: "reading" or "input".
    kind: str
    default: Choice
    #: All choices of a list; empty for a box.
    choices: Sequence[Choice] = ()
    #: Bounds of a box, both included; unused for a list.
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    integer: bool = False
    #: `set` of a box, with {} where the value goes.
    template: Mapping[str, str] = field(default_factory=dict)
    #: Schemes and topologies it applies to; empty: all.
    schemes: frozenset[str] = frozenset()
    topologies: frozenset[str] = frozenset()
    #: Claims that a way of judging is for; empty: all (see `atlas.applies`).
    claims: frozenset[str] = frozenset()

    @property
    def unit_name(self) -> str:
        """What the numbers of a box are in, as its template writes it; empty for a list, and without one.

        >>> Factor("a", "A", "input", Choice(1.0, "1"), template={"tcp.window": "{} packets"}).unit_name
        'packets'
        """
        units = {text.rpartition("{}")[2].strip() for text in self.template.values()}
        return units.pop() if len(units) == 1 else ""

    def at(self, u: float) -> Choice:
        """Give the choice at `u`, from 0 up to but not including 1: uniform over the list or the box."""
        if not 0 <= u < 1:
            raise ValueError(f"{u} is not from 0 up to 1")
        if self.choices:
            return self.choices[int(u * len(self.choices))]
        if self.log:
            return self._boxed(self.low * (self.high / self.low) ** u)
        if self.integer:
            # Every whole number gets the same share of the box, the first and the last included.
            return self._boxed(math.floor(self.low + (self.high + 1 - self.low) * u))
        return self._boxed(self.low + (self.high - self.low) * u)

    def others(self) -> list[Choice]:
        """The choices that differ from the default: of a list all others, of a box its two ends."""
        if self.choices:
            return [c for c in self.choices if c.value != self.default.value]
        ends = [self._boxed(self.low), self._boxed(self.high)]
        return [c for c in ends if c.value != self.default.value]

    def distance(self, choice: Choice) -> float:
        """Distance of a choice from the default: 0 to 1 in a box (in its own scale), 0 or 1 in a list."""
        if self.choices:
            return float(choice.value != self.default.value)
        return abs(self.unit(choice) - self.unit(self.default))

    def unit(self, choice: Choice) -> float:
        """Where a choice lies in the box, 0 to 1 (its place in the list, for a list)."""
        if self.choices:
            values = [c.value for c in self.choices]
            return values.index(choice.value) / max(1, len(values) - 1)
        x = float(choice.value)
        if self.log:
            return math.log(x / self.low) / math.log(self.high / self.low)
        return (x - self.low) / (self.high - self.low)

    def find(self, value: str | float) -> Choice:
        """Give the choice of this value. Raises KeyError for an alternative that is not in the list."""
        for choice in self.choices:
            if choice.value == value:
                return choice
        if self.choices or isinstance(value, str):
            raise KeyError(f"{self.id} has no alternative {value}")
        return self.default if value == self.default.value else self._boxed(value)

    def _boxed(self, value: float) -> Choice:
        # Four digits: what a person would write, and the same text on every machine.
        value = round(value) if self.integer else float(f"{value:.4g}")
        text = f"{value:g}"
        return Choice(value, text, {path: _filled(t, value, text) for path, t in self.template.items()})


def _filled(template: str, value: float, text: str) -> object:
    """Put a value into its template; a bare {} is the number itself."""
    if template == "{}":
        return int(value) if float(value).is_integer() else value
    return template.replace("{}", text)


def factors_of(about: Mapping[str, Any]) -> list[Factor]:
    """All factors that a `paper.toml` lists, readings first. Raises `FactorError`."""
    found = [_factor(entry, "reading", "alternatives") for entry in about.get("readings", [])]
    found += [_factor(entry, "input", "values") for entry in about.get("inputs", [])]
    ids = [f.id for f in found]
    for twice in {i for i in ids if ids.count(i) > 1}:
        raise FactorError(f"two readings or inputs are called {twice}: give each its own id")
    return found


_KNOWN = {
    "alternatives", "claims", "default", "high", "id", "integer", "low", "quote", "scale", "schemes", "set",
    "title", "topologies", "values", "where", "why",
}  # fmt: skip


def _factor(entry: Mapping[str, Any], kind: str, listed: str) -> Factor:
    name = str(entry.get("id", "without an id"))
    needed = {"id", "title", "default", "why"} | ({"where", "quote"} if kind == "reading" else set())
    if missing := sorted(needed - entry.keys()):
        raise FactorError(f"the {kind} {name} lacks {', '.join(missing)}")
    if unknown := sorted(entry.keys() - _KNOWN):
        raise FactorError(f"the {kind} {name} has unknown keys: {', '.join(unknown)}")
    common: dict[str, Any] = {
        "id": name,
        "title": str(entry["title"]),
        "kind": kind,
        "schemes": frozenset(entry.get("schemes", ())),
        "topologies": frozenset(entry.get("topologies", ())),
        "claims": frozenset(entry.get("claims", ())),
    }
    if listed in entry:
        choices = [_choice(name, c) for c in entry[listed]]
        defaults = [c for c in choices if c.value == entry["default"]]
        if len(choices) < 2 or len({c.value for c in choices}) < len(choices):
            raise FactorError(f"the {kind} {name} needs two {listed} or more, each with its own id")
        if defaults and defaults[0].rejected:
            raise FactorError(f"the {kind} {name} has a default that it rejects: {defaults[0].value}")
        if not defaults:
            raise FactorError(f"the {kind} {name} has no {listed[:-1]} {entry['default']}, its default")
        return Factor(default=defaults[0], choices=choices, **common)
    return _box(entry, kind, common)


def _choice(name: str, entry: Mapping[str, Any]) -> Choice:
    if unknown := sorted(entry.keys() - {"id", "title", "set", "paper", "rejected"}):
        raise FactorError(f"an alternative of {name} has unknown keys: {', '.join(unknown)}")
    value = str(entry["id"])
    title, why = str(entry.get("title", value)), str(entry.get("rejected", ""))
    return Choice(value, title, entry.get("set", {}), entry.get("paper", {}), why)


def _box(entry: Mapping[str, Any], kind: str, common: Mapping[str, Any]) -> Factor:
    name = common["id"]
    if missing := sorted({"low", "high", "set"} - entry.keys()):
        raise FactorError(f"the {kind} {name} has neither a list nor a box: it lacks {', '.join(missing)}")
    low, high, scale = float(entry["low"]), float(entry["high"]), entry.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise FactorError(f"the {kind} {name} has scale {scale}: write linear or log")
    if not low < high or (scale == "log" and low <= 0):
        raise FactorError(f"the {kind} {name} has no box from {low:g} to {high:g} on a {scale} scale")
    template = {str(path): str(text) for path, text in entry["set"].items()}
    if not template or not all("{}" in text for text in template.values()):
        raise FactorError(f"the {kind} {name} sets nothing to its value: write {{}} where the value goes")
    written = entry["default"]
    try:
        value = float(written if isinstance(written, (int, float)) else str(written).split()[0])
    except ValueError:
        raise FactorError(f"the {kind} {name} has the default {written}, which is no number") from None
    if not low <= value <= high:
        raise FactorError(f"the {kind} {name} has its default {value:g} outside {low:g} to {high:g}")
    return Factor(
        # The experiment file has the default already: there nothing is set.
        default=Choice(value, f"{value:g}"),
        low=low,
        high=high,
        log=scale == "log",
        integer=bool(entry.get("integer", False)),
        template=template,
        **common,
    )


def apply(point: Point, factors: Iterable[Factor], scheme: str, topology: str) -> dict[str, object]:
    """What a point sets in the experiment of a scheme on a topology.

    A factor at its default sets nothing where it is a box (the file has the value); a list's default may
    set something, and then does. Later factors win where two set the same path.
    """
    values: dict[str, object] = {}
    for factor in factors:
        if factor.schemes and scheme not in factor.schemes:
            continue
        if factor.topologies and topology not in factor.topologies:
            continue
        values.update(point[factor.id].set)
    return values
