"""What a `paper.toml` must satisfy before anything is run: tables, keys, ids, comparisons, experiments.

A wrong value is refused with its place, its line and what to write instead (`PaperError`).

Every paper has the same tables with the same keys (`KEYS`). What one paper needs beyond them it declares in
its `[own]`, so that a misspelt key is an error and not a default.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .entry import Entry, PaperError
from .quotes import check_quotes

#: What each table may hold in every paper, and what it must.
KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    table: (frozenset(known.split()) | frozenset(needed.split()), frozenset(needed.split()))
    for table, needed, known in (
        ("setups", "id title text", "fitted full scenarios set"),
        ("topologies", "id title", "text where file set seeds cost atlas"),
        ("schemes", "id title text", "set after"),
        # `same_runs`: judged from other measures of the plain runs, so nothing of its own is run.
        # `always`: the schemes that are run without `--full`, where not all are.
        ("variants", "id title", "set same_runs always"),
        # `atlas = false`: of the set-ups alone. The committed atlas lacks it; so does `today.json`, but where
        # `today = true`.
        # `once`: it does not depend on the set-up, and is judged in the first.
        ("claims", "id text", "says numbers atlas today once quote part comparisons"),
        # Computed from the others, and drawn on the page; `share`: from 0 to 1.
        ("computed", "id title value", "unit share schemes"),
        ("at_hand", "id title where", "file"),
        ("sweeps", "id title values", "key setups schemes assumed set always every_seed"),
        ("quoted", "path where", "files"),
        ("assumed", "path why", "files"),
    )
}
#: At the top of every paper's file.
_TOP = frozenset({"name", "title", "short", "authors", "year", "source", "summary", "seeds"})
#: Tables without which nothing is run.
_ONE_AT_LEAST = ("topologies", "setups", "schemes")
#: `quick`, `today`: what is shortened there, for the page.
_KNOWN_TOP = _TOP | KEYS.keys() | {"own", "quick", "today", "shown_seed", "readings", "inputs"}
#: A number that the paper prints.
_NUMBER = frozenset({"topology", "scheme", "measure", "value", "where"})
#: A comparison that a claim states, and what it is against.
_COMPARISON = frozenset(
    {"measure", "of", "on", "side", "than", "to", "against", "least", "why", "label", "unit"}
)
_AGAINST = frozenset({"of", "on", "measure", "by"})
_SIDES = ("above", "below", "within")
#: Where reports and caches are kept is called so.
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def is_name(text: str) -> bool:
    """Whether a paper can be called so."""
    return _NAME.fullmatch(text) is not None


def check(about: Mapping[str, Any], file: str | Path) -> None:
    """Refuse a `paper.toml` that lacks something, has a key that nothing reads, or an id twice.

    Raises `PaperError`.
    """
    top = Entry(about, str(file))
    _keys(top, _known(about, "paper", _KNOWN_TOP), _TOP)
    if not is_name(top.word("name")):
        raise PaperError(f"{top.place('name')} = {top['name']!r}: write small letters, digits and hyphens")
    for key in ("title", "short", "source", "summary"):
        top.word(key)
    if not top.words("authors"):
        raise PaperError(f"{top.place('authors')} = []: write at least one")
    top.whole("year")
    seeds = top.table("seeds")
    _keys(seeds, frozenset(seeds), frozenset({"full", "quick"}))
    for key in seeds:
        if seeds.whole(key) < 2:
            raise PaperError(f"{seeds.place(key)} = {seeds[key]}: an interval needs 2 seeds or more")
    for table, (known, needed) in KEYS.items():
        entries = top.tables(table)
        for entry in entries:
            _keys(entry, _known(about, table, known), needed)
        if table in _ONE_AT_LEAST and not entries:
            keys = ", ".join(sorted(needed))
            raise PaperError(f"{top.place()} has no [[{table}]]: write at least one, with {keys}")
        ids = [entry.id for entry in entries] if "id" in needed else []
        for twice in (i for i in ids if ids.count(i) > 1):
            raise PaperError(f"{top.place(table)}: two are called {twice}; give each its own id")
    for claim in top.tables("claims"):
        for number in claim.tables("numbers"):
            _number(top, number)
    _check_changes(top)
    _check_comparisons(top)
    check_quotes(top, Path(file).parent)
    _check_files(top, Path(file).parent)


def _known(about: Mapping[str, Any], table: str, common: frozenset[str]) -> frozenset[str]:
    """The keys of a table: everybody's, and the paper's own."""
    return common | frozenset(about.get("own", {}).get(table, ()))


def _keys(entry: Entry, known: frozenset[str], needed: frozenset[str]) -> None:
    if missing := sorted(needed - entry.keys()):
        remedy = f"write {' = …, '.join(missing)} = … there"
        raise PaperError(f"{entry.place()} lacks {', '.join(missing)}: {remedy}")
    for key in entry:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else "name it in [own] if this paper's code reads it"
            raise PaperError(f"{entry.place(key)} is an unknown key: {hint}")


def _number(top: Entry, number: Entry) -> None:
    """A printed number is of a topology and a scheme that exist."""
    _keys(number, _NUMBER, _NUMBER)
    number.number("value")
    for key, table in (("topology", "topologies"), ("scheme", "schemes")):
        _one_of(number, key, [e.id for e in top.tables(table)])


def _check_changes(top: Entry) -> None:
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


def _check_comparisons(top: Entry) -> None:
    """Refuse a comparison that lacks something, or is of a scheme or network that is not there."""
    schemes, topologies = ([e.id for e in top.tables(t)] for t in ("schemes", "topologies"))
    for claim in top.tables("claims"):
        for c in claim.tables("comparisons"):
            _only(c, _COMPARISON)
            for key in ("measure", "of", "side"):
                c.word(key)
            _one_of(c, "of", schemes)
            _one_of(c, "side", _SIDES)
            if "on" in c and not c.listed("on"):
                raise PaperError(f"{c.place('on')} = []: name a network, or remove it for all")
            for topology in c.listed("on"):
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
                _only(other, _AGAINST)
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
    if same and ("on" not in other or other.word("on") in (c.listed("on") or topologies)):
        raise PaperError(f"{c.place('against')} is what is compared: write another of, on or measure")


def _only(entry: Entry, known: frozenset[str]) -> None:
    for key in entry:
        if key not in known:
            raise PaperError(f"{entry.place(key)} is an unknown key: write one of {', '.join(sorted(known))}")


def _one_of(entry: Entry, key: str, there: Sequence[str]) -> None:
    if entry.word(key) not in there:
        raise PaperError(f"{entry.place(key)} = {entry[key]!r}: write one of {', '.join(there)}")


def _check_files(top: Entry, folder: Path) -> None:
    """Refuse a network whose experiment is not in the folder."""
    for topology in top.tables("topologies"):
        if "file" in topology and not (folder / topology.word("file")).is_file():
            file = folder / topology.word("file")
            raise PaperError(f"{topology.place('file')}: {file} is not there: write that experiment")
