"""The committed verdicts: of the papers as they are, and what README says of them."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from inprofile import papers
from inprofile.papers import Paper, verdicts
from inprofile.papers.judge import Verdict
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
