"""Every parameter of a paper's scenario files is quoted from the paper or listed as assumed.

A paper's `paper.toml` lists `[[quoted]]` (path, where: section, short quote) and `[[assumed]]` (path, why).
A path is dotted as in `Scenario.with_`, with globs; `files`, globs too, names the scenario files that an
entry is about where it is not all. `[[readings]]` and `[[inputs]]` vary what is open, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from inprofile import papers
from inprofile.experiment.scenario import load
from inprofile.papers import Job, Paper
from inprofile.papers.factors import Factor

#: Papers whose parameters are listed.
LISTED = [name for name in papers.names() if "quoted" in papers.load(name).about]
TABLES = (("quoted", "where"), ("assumed", "why"))
#: Words for people and names of parts: they may be listed, and need not be.
NAMES = ("title", "name", "node")


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of a scenario file's values; tables of a list by name or node, else by number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and all(isinstance(x, dict) for x in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{inner.get('name', inner.get('node', index))}")
    else:
        yield path


def _parameters(paper: Paper) -> Iterator[tuple[str, str]]:
    """Every scenario file of the paper's folder with each of its parameters."""
    for place in sorted(paper.folder.glob("*.toml")):
        # What experiments have in common is none by itself.
        if place.name not in ("advice.toml", "network.toml", "paper.toml"):
            for leaf in dict.fromkeys(_leaves(load(place).as_written)):
                yield place.name, leaf


def _about(entry: Mapping[str, Any], file: str, leaf: str) -> bool:
    named = any(fnmatchcase(file, pattern) for pattern in entry.get("files", ["*"]))
    return named and fnmatchcase(leaf, entry["path"])


@pytest.mark.parametrize("name", LISTED)
def test_every_parameter_is_quoted_or_assumed(name: str) -> None:
    paper = papers.load(name)
    entries = [entry for table, _ in TABLES for entry in paper.about.get(table, [])]
    unlisted = {
        (file, leaf)
        for file, leaf in _parameters(paper)
        if leaf.rpartition(".")[2] not in NAMES and not any(_about(e, file, leaf) for e in entries)
    }
    assert not unlisted


@pytest.mark.parametrize("name", LISTED)
def test_every_entry_is_of_a_parameter_and_says_where_or_why(name: str) -> None:
    paper = papers.load(name)
    parameters = list(_parameters(paper))
    for table, key in TABLES:
        for entry in paper.about.get(table, []):
            assert entry.keys() - {"files"} == {"path", key}
            assert entry[key]
            assert any(_about(entry, file, leaf) for file, leaf in parameters), entry["path"]


@pytest.mark.parametrize("name", LISTED)
def test_no_parameter_is_both(name: str) -> None:
    paper = papers.load(name)
    both = {
        (file, leaf)
        for file, leaf in _parameters(paper)
        if all(any(_about(e, file, leaf) for e in paper.about.get(table, [])) for table, _ in TABLES)
    }
    assert not both


@pytest.mark.parametrize("name", LISTED)
def test_an_input_varies_nothing_that_the_paper_states(name: str) -> None:
    paper = papers.load(name)
    files = {job.file for job in _primary(paper)}
    stated = {
        leaf
        for file, leaf in _parameters(paper)
        if file in files and any(_about(e, file, leaf) for e in paper.about["quoted"])
    }
    for factor in paper.factors:
        if factor.kind == "input":
            for choice in (factor.default, *factor.others()):
                for path in choice.set:
                    assert not [s for s in stated if s == path or s.startswith(f"{path}.")], factor.id


@pytest.mark.parametrize("name", LISTED)
def test_readings_and_inputs_are_experiments(name: str) -> None:
    """Every alternative of every reading and input makes a scenario of each cell it applies to."""
    paper = papers.load(name)
    jobs = {(job.cell.topology, job.cell.scheme): job for job in _primary(paper) if job.after is None}
    assert jobs
    for factor in paper.factors:
        meant = [job for job in jobs.values() if _applies(factor, job)]
        assert meant, factor.id
        for choice in (factor.default, *factor.others()):
            for job in meant:
                load(paper.folder / job.file).with_({**job.values, **choice.set}).check()


def _primary(paper: Paper) -> list[Job]:
    """What is run of the primary set-up, without variants."""
    first = paper.setups[0]["id"]
    jobs = (job for batch in paper.module("experiments").jobs(paper) for job in batch)
    return [job for job in jobs if job.cell.setup == first and not job.cell.variant]


def _applies(factor: Factor, job: Job) -> bool:
    scheme, topology = job.cell.scheme, job.cell.topology
    return scheme in (factor.schemes or [scheme]) and topology in (factor.topologies or [topology])
