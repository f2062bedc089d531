"""The committed verdicts: of the papers as they are, and what README says of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inprofile import papers
from inprofile.judge import Verdict
from inprofile.papers import verdicts

README = Path(__file__).parents[2] / "README.md"


def committed() -> list[verdicts.Verdicts]:
    found = [verdicts.committed(papers.load(name)) for name in papers.names()]
    return [f for f in found if f is not None]


@pytest.mark.parametrize("name", papers.names())
def test_they_are_of_this_paper(name: str) -> None:
    paper = papers.load(name)
    found = verdicts.committed(paper)
    assert found is not None
    assert verdicts.stale(paper, found) == "", f"{name}: other {verdicts.stale(paper, found)}; make renew"
    # Other set-ups may lack what a claim needs without `--full`.
    primary = [c["id"] for c in found["claims"] if c["setup"] == found["setups"][0]]
    assert primary == [claim.id for claim in paper.claims]


def test_readme_says_as_many_of_each() -> None:
    counts = verdicts.counts(committed())
    said = re.search(
        r"of the (\d+) answers in the papers' primary set-ups(.*?)\. ", README.read_text("utf-8"), re.S
    )
    assert said is not None
    assert int(said[1]) == sum(counts.values())
    told = {v: re.search(rf"(\d+) (?:is |are )?{v.words}\b", said[2]) for v in Verdict}
    assert {v: int(m[1]) for v, m in told.items() if m} == {v: n for v, n in counts.items() if n}


def test_another_claim_set_up_or_variant_makes_them_stale() -> None:
    paper = papers.load("ard")
    [found] = [f for f in committed() if f["paper"] == "ard"]
    assert verdicts.stale(paper, {**found, "setups": found["setups"][:1]}) == "set-ups"
    assert verdicts.stale(paper, {**found, "claims": found["claims"][1:]}) == "claims"
    other = {**found["claims"][0], "variants": {"nobody's": "mostly"}}
    assert verdicts.stale(paper, {**found, "claims": [other, *found["claims"][1:]]}) == "variants"  # type: ignore[list-item]


def test_results_become_verdicts_that_are_read_back(tmp_path: Path) -> None:
    [found] = [f for f in committed() if f["paper"] == "probe"]
    verdicts.write(found, tmp_path)
    assert json.loads((tmp_path / verdicts.NAME).read_text("utf-8")) == found


def test_results_of_a_quick_run_are_refused() -> None:
    with pytest.raises(ValueError, match="the results of ard are of a quick run: reproduce it without"):
        verdicts.taken({"paper": "ard", "quick": True})
