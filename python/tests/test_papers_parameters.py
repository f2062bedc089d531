"""Every parameter of a paper's scenario files is quoted from the paper or listed as assumed."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from inprofile import papers

#: Papers whose parameters are listed.
LISTED = [name for name in papers.names() if "quoted" in papers.load(name).about]


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of a scenario file's values; tables of a list by name or, without one, by number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{inner.get('name', index)}")
    else:
        yield path


def _listed(paper: papers.Paper) -> list[str]:
    return [entry["path"] for table in ("quoted", "assumed") for entry in paper.about.get(table, [])]


def _parameters(paper: papers.Paper) -> set[str]:
    files = sorted(path for path in paper.folder.glob("*.toml") if path.name != "paper.toml")
    return {leaf for path in files for leaf in _leaves(tomllib.loads(path.read_text("utf-8")))}


@pytest.mark.parametrize("name", LISTED)
def test_every_parameter_is_quoted_or_assumed(name: str) -> None:
    paper = papers.load(name)
    listed = _listed(paper)
    unlisted = {leaf for leaf in _parameters(paper) if not any(fnmatchcase(leaf, path) for path in listed)}
    assert not unlisted


@pytest.mark.parametrize("name", LISTED)
def test_every_entry_is_of_a_parameter_and_says_where_or_why(name: str) -> None:
    paper = papers.load(name)
    leaves = _parameters(paper)
    idle = {path for path in _listed(paper) if not any(fnmatchcase(leaf, path) for leaf in leaves)}
    assert not idle
    for table, key in (("quoted", "where"), ("assumed", "why")):
        for entry in paper.about.get(table, []):
            assert entry.keys() == {"path", key}
            assert entry[key]


@pytest.mark.parametrize("name", LISTED)
def test_no_parameter_is_both(name: str) -> None:
    paper = papers.load(name)
    tables = {table: [e["path"] for e in paper.about.get(table, [])] for table in ("quoted", "assumed")}
    both = {
        leaf
        for leaf in _parameters(paper)
        if all(any(fnmatchcase(leaf, path) for path in paths) for paths in tables.values())
    }
    assert not both
