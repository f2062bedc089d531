"""The papers' advice: sentences that the committed figures bear out, for who has not read the paper."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import inprofile
from inprofile import papers
from inprofile.papers.advice import HEADINGS, committed, read, sentences
from inprofile.studies.compare import advice as comparison
from inprofile.studies.compare.brief import brief, markdown

NAMES = papers.names()


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_figures_bear_every_sentence_out(name: str) -> None:
    paper = papers.load(name)
    found = committed(paper)
    assert found is not None, "docs/renew.py copies them from a folder of reports"
    about, figures = found
    for sentence in sentences(paper, about, figures):
        assert not sentence.unmet, (sentence.id, sentence.unmet)
        assert len(sentence.text.split()) <= 60, sentence.id


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_needs_a_claims_code(name: str) -> None:
    paper = papers.load(name)
    about = read(paper)
    assert about is not None
    codes = "|".join(re.escape(claim.id) for claim in paper.claims)
    for text in (about["caption"], *(about[heading]["text"] for heading in HEADINGS)):
        assert not re.search(rf"\b({codes})\b", text), text


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_that_a_sentence_gives_is_held_to_something(name: str) -> None:
    """Where a sentence compares, it says what must hold for it to be true."""
    about = read(papers.load(name))
    assert about is not None
    for heading in HEADINGS:
        if "{" in about[heading]["text"]:
            assert about[heading].get("holds"), heading


@pytest.mark.parametrize("name", NAMES)
def test_settings_for_the_router_are_those_of_mechanisms_that_there_are(name: str) -> None:
    about = read(papers.load(name))
    assert about is not None
    for paste in about.get("pastes", ()):
        if paste["title"] != "inprofiled":
            continue
        up = tomllib.loads(paste["text"])["upstream"]
        known = {m.name: {p.name.split(".")[0] for p in m.parameters} for m in inprofile.mechanisms()}
        queue = up["queue"]
        assert queue.keys() - {"aqm", "limit"} <= known[queue["aqm"]]
        for customer in up["customers"]:
            assert customer["marker"].keys() - {"kind"} <= known[customer["marker"]["kind"]]


@pytest.mark.parametrize("file", ["README.md", "docs/index.md"])
def test_the_first_table_is_the_last_whole_comparison_in_brief(file: str) -> None:
    rows = brief(comparison.committed())
    assert 3 <= len(rows) <= 8
    text = (Path(__file__).parents[2] / file).read_text("utf-8")
    assert markdown(rows) in text, "python -m inprofile.studies.compare.brief prints it"
