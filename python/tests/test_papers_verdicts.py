"""The committed verdicts: of the papers as they are, and what README says of them.

Every parameter of a paper's scenario files is quoted from the paper or listed as assumed.
`papers.parameters` has what is listed. `[[readings]]` and `[[inputs]]` vary what is open, and nothing else.
"""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from inprofile import papers
from inprofile.experiment.scenario import load
from inprofile.papers import Job, Paper, verdicts
from inprofile.papers.claim import Verdict
from inprofile.papers.factors import Factor
from inprofile.papers.parameters import is_about, parameters, unlisted
from inprofile.papers.verdicts import Answered, Verdicts

README = Path(__file__).parents[2] / "README.md"


def results(paper: Paper) -> dict[str, object]:
    """A `results.json` in which every claim is reproduced in every set-up."""
    return {
        "paper": paper.name,
        "quick": False,
        "full": True,
        "seeds": 6,
        "version": "0.1.0",
        "setups": [{"id": s.id} for s in paper.setups],
        "claims": [
            {
                "id": claim.id,
                "setup": setup.id,
                "verdict": "reproduced",
                "because": "",
                "comparisons": {
                    "holds": 2,
                    "opposite": 0,
                    "no_effect": 0,
                    "open": 0,
                    "undecidable": 0,
                    "total": 2,
                },
                "numbers": {"inside": 1, "total": 3},
                "variants": {v.id: {"verdict": "mostly", "why": ""} for v in paper.variants},
            }
            for claim in paper.claims
            for setup in paper.setups
        ],
    }


@pytest.mark.parametrize("name", [*papers.names(), *papers.gallery()])
def test_they_are_of_this_paper(name: str, tmp_path: Path) -> None:
    paper = papers.load(name)
    made = verdicts.taken(results(paper), "2026-11-23")
    verdicts.write(made, tmp_path)
    assert json.loads((tmp_path / verdicts.NAME).read_text("utf-8")) == made
    for found in filter(None, (made, verdicts.committed(paper))):
        assert date.fromisoformat(found["date"]).isoformat() == found["date"]
        assert verdicts.stale(paper, found) == "", f"{name}: other {verdicts.stale(paper, found)}; make renew"
        # Other set-ups may lack what a claim needs without `--full`.
        primary = [c["id"] for c in found["claims"] if c["setup"] == found["setups"][0]]
        assert primary == [claim.id for claim in paper.claims]


def test_readme_says_as_many_of_each() -> None:
    """Its numbers add up to the claims there are, and are those of the verdicts once all papers have them."""
    said = re.search(
        r"of the (\d+) claims in the papers' primary set-ups(.*?); of the ([\d,]+) comparisons that they"
        r" rest on"
        r"\s+([\d,]+)\s+hold and\s+([\d,]+) are opposite\. ",
        README.read_text("utf-8"),
        re.S,
    )
    assert said is not None
    told = {
        v: re.search(rf"(\d+) (?:is |are |has |have )?{v.words}\b", " ".join(said[2].split()))
        for v in Verdict
    }
    counts = {v: int(m[1]) for v, m in told.items() if m}
    known = [papers.load(name) for name in papers.names()]
    assert int(said[1]) == sum(counts.values()) == sum(len(paper.claims) for paper in known)
    kept = [found for paper in known if (found := verdicts.committed(paper))]
    if len(kept) == len(known):
        assert counts == {v: n for v, n in verdicts.counts(kept).items() if n}
        compared = {"all": said[3], "holds": said[4], "opposite": said[5]}
        assert {key: int(n.replace(",", "")) for key, n in compared.items()} == verdicts.compared(kept)


def test_they_are_counted_in_the_primary_set_up() -> None:
    one = verdicts.taken(results(papers.load("ard")), "2026-11-23")
    claims: list[Answered] = [
        {**c, "verdict": "opposite"} for c in one["claims"] if c["setup"] != one["setups"][0]
    ]
    first = [c for c in one["claims"] if c["setup"] == one["setups"][0]]
    counted = verdicts.counts([Verdicts({**one, "claims": [*first, *claims]})])
    assert {v: n for v, n in counted.items() if n} == {Verdict.REPRODUCED: len(first)}


def test_another_claim_set_up_or_variant_makes_them_stale() -> None:
    paper = papers.load("ard")
    found = verdicts.taken(results(paper), "2026-11-23")
    assert verdicts.stale(paper, Verdicts({**found, "setups": found["setups"][:1]})) == "set-ups"
    fewer = [c for c in found["claims"] if c["id"] != "A1"]
    assert verdicts.stale(paper, Verdicts({**found, "claims": fewer})) == "claims"
    other = Answered({**found["claims"][0], "variants": {"nobody's": "mostly"}})
    changed = Verdicts({**found, "claims": [other, *found["claims"][1:]]})
    assert verdicts.stale(paper, changed) == "variants"


def test_results_of_a_quick_run_are_refused() -> None:
    with pytest.raises(ValueError, match="the results of ard are of a quick run: reproduce it without"):
        verdicts.taken({"paper": "ard", "quick": True}, "2026-11-23")
    # What that did not run it has from the committed verdicts: they are not renewed from themselves.
    with pytest.raises(ValueError, match="a run without --full: reproduce it with --full"):
        verdicts.taken({"paper": "ard", "quick": False, "full": False}, "2026-11-23")


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
