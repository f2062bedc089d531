"""Which parameters of a paper's experiments it neither quotes nor assumes.

`[[quoted]]` has path and where (section, short quote), `[[assumed]]` path and why. A path is dotted as in
`Scenario.with_`, with globs; `files`, globs too, names the experiment files that an entry is about where it
is not all.

What a paper leaves open, as its page tells it: ambiguous passages, and inputs that it does not state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from . import Entry, Paper, PaperError

#: Words for people and names of parts: they may be listed, and need not be.
_NAMES = ("title", "name", "node")
#: Files of a paper that are no experiments: what experiments have in common is none by itself.
_OTHERS = ("advice.toml", "network.toml", "paper.toml")


def parameters(paper: Paper) -> Iterator[tuple[str, str]]:
    """Every experiment file of the paper's folder with each of its parameters."""
    from ..experiment.scenario import load

    for place in sorted(paper.folder.glob("*.toml")):
        if place.name not in _OTHERS:
            for leaf in dict.fromkeys(_leaves(load(place).as_written)):
                yield place.name, leaf


def unlisted(paper: Paper) -> list[tuple[str, str]]:
    """File and path of parameters that are neither quoted nor assumed."""
    entries = [*paper.top.tables("quoted"), *paper.top.tables("assumed")]
    return [
        (file, leaf)
        for file, leaf in parameters(paper)
        if leaf.rpartition(".")[2] not in _NAMES and not any(is_about(e, file, leaf) for e in entries)
    ]


def check_origins(paper: Paper) -> None:
    """Refuse a `[[quoted]]` or `[[assumed]]` path that no experiment has. Raises `PaperError`."""
    entries = [*paper.top.tables("quoted"), *paper.top.tables("assumed")]
    there = list(parameters(paper)) if entries else []
    tables = ("topologies", "setups", "schemes", "variants", "sweeps")
    also = {key for table in tables for e in paper.top.tables(table) for key in _leaves(dict(e.changes))}
    for entry in entries:
        path = entry.word("path")
        if any(is_about(entry, *one) for one in there) or any(fnmatchcase(key, path) for key in also):
            continue
        near = get_close_matches(path, dict.fromkeys(leaf for _, leaf in there), 3)
        hint = f"write {' or '.join(near)}" if near else "inprofile check shows what an experiment has"
        raise PaperError(f"{entry.place('path')} = {path!r}: no experiment has such a parameter: {hint}")


def is_about(entry: Mapping[str, Any], file: str, leaf: str) -> bool:
    """Whether an entry of `[[quoted]]` or `[[assumed]]` is about a parameter of a file."""
    named = any(fnmatchcase(file, pattern) for pattern in entry.get("files", ["*"]))
    return named and fnmatchcase(leaf, entry["path"])


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of an experiment's values; tables of a list by name or node, else by number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{inner.get('name', inner.get('node', index))}")
    else:
        yield path


@dataclass(frozen=True)
class LeftOpen:
    """A question that the text leaves open, what we took, and what else was tried."""

    title: str
    #: Section and phrase that it rests on; empty for what the paper does not state.
    passage: str
    default: str
    #: The other choices, or the bounds of the box.
    others: str
    why: str


def readings(paper: Paper) -> list[LeftOpen]:
    """Passages that can be read in more than one way."""
    return [
        _left_open(entry, "alternatives", f"{entry.where}: “{entry.word('quote')}”")
        for entry in paper.top.tables("readings")
    ]


def inputs(paper: Paper) -> list[LeftOpen]:
    """What the paper does not state."""
    return [_left_open(entry, "values", "") for entry in paper.top.tables("inputs")]


def _left_open(entry: Entry, listed: str, passage: str) -> LeftOpen:
    titles = {choice.id: choice.title or choice.id for choice in entry.tables(listed)}
    written = str(entry["default"])
    default = titles.pop(written, written)
    others = "; ".join(titles.values())
    if "low" in entry:
        others = f"{entry.number('low'):g} to {entry.number('high'):g}"
    return LeftOpen(entry.title, passage, default, others, entry.word("why"))
