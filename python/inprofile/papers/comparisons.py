"""What the `comparisons` of a claim, and the `set` of what is compared, may say; `stated` judges them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .entry import Entry, PaperError

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
