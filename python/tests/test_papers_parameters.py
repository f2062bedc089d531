"""Every parameter of a paper's scenario files is quoted from the paper or listed as assumed.

`papers.parameters` has what is listed. `[[readings]]` and `[[inputs]]` vary what is open, and nothing else.
"""

from __future__ import annotations

import pytest

from inprofile import papers
from inprofile.experiment.scenario import load
from inprofile.papers import Job, Paper
from inprofile.papers.factors import Factor
from inprofile.papers.parameters import is_about, parameters, unlisted

#: Papers whose parameters are listed.
LISTED = [name for name in [*papers.names(), *papers.gallery()] if "quoted" in papers.load(name).about]
TABLES = (("quoted", "where"), ("assumed", "why"))


@pytest.mark.parametrize("name", LISTED)
def test_every_parameter_is_quoted_or_assumed(name: str) -> None:
    paper = papers.load(name)
    assert not unlisted(paper)


@pytest.mark.parametrize("name", LISTED)
def test_every_entry_is_of_a_parameter_and_says_where_or_why(name: str) -> None:
    paper = papers.load(name)
    there = list(parameters(paper))
    for table, key in TABLES:
        for entry in paper.about.get(table, []):
            assert entry.keys() - {"files"} == {"path", key}
            assert entry[key]
            assert any(is_about(entry, file, leaf) for file, leaf in there), entry["path"]


@pytest.mark.parametrize("name", LISTED)
def test_no_parameter_is_both(name: str) -> None:
    paper = papers.load(name)
    both = {
        (file, leaf)
        for file, leaf in parameters(paper)
        if all(any(is_about(e, file, leaf) for e in paper.about.get(table, [])) for table, _ in TABLES)
    }
    assert not both


@pytest.mark.parametrize("name", LISTED)
def test_an_input_varies_nothing_that_the_paper_states(name: str) -> None:
    paper = papers.load(name)
    files = {job.file for job in _primary(paper)}
    stated = {
        leaf
        for file, leaf in parameters(paper)
        if file in files and any(is_about(e, file, leaf) for e in paper.about["quoted"])
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
