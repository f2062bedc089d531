"""What a `paper.toml` may say: a paper of a user's own, readings and unstated inputs, and what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from inprofile import papers
from inprofile.cli import app
from inprofile.papers import PaperError
from inprofile.papers.checks import check
from inprofile.papers.factors import FactorError, apply, factors_of
from inprofile.studies.reproduce.pilot import pilot

ABOUT = """
name    = "tiny"
title   = "Shorter Queues Wait Less"
short   = "Short queues"
authors = ["Ada Example", "Bert Sample"]
year    = 2025
source  = "made up for a test"
summary = "A short buffer gives less delay."
seeds   = { full = 6, quick = 3 }

[[topologies]]
id    = "one-link"
title = "one link"

[[setups]]
id    = "as-printed"
title = "As printed"
text  = "Four flows on a link of 2 Mbit/s."
scenarios = { one-link = "link.toml" }

[[schemes]]
id    = "long"
title = "100 packets"
text  = "The buffer of the file."

[[schemes]]
id    = "short"
title = "10 packets"
text  = "A tenth of it."
set   = { "links.slow.queue.limit" = "10 packets" }

[[claims]]
id      = "X1"
text    = "Delay is lower with the short buffer."
says    = "§1"
numbers = [{ topology = "one-link", scheme = "long", measure = "delay_mean", value = 0.4, where = "Table 1" }]
"""
CLAIMS = '''"""The claim of a paper that is made up."""

from inprofile.papers.claim import Finding, Pair
from inprofile.papers import Cell


def findings(paper, cells, variant=""):
    """Delay, short less long."""
    found = []
    for setup in paper.setups:
        runs = [cells[Cell(setup.id, "one-link", scheme, variant)] for scheme in ("long", "short")]
        pair = Pair(*runs, "one link")
        compared = pair.compare("delay, short − long", "delay_mean", "below", "s")
        found.append(Finding("X1", setup.id, [compared]))
    return found
'''
LINK = """
title = "One link"
duration = "10 s"
measure = { from = "2 s" }
[[links]]
name = "slow"
from = "a"
to = "b"
rate = "2 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[flows]]
name = "tcp"
count = 4
from = "H*"
join = { node = "a", rate = "100 Mbit/s" }
to = "b"
rtt = "30 ms"
start = "uniform 0..1 s"
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "paper.toml").write_text(ABOUT)
    (folder / "claims.py").write_text(CLAIMS)
    (folder / "link.toml").write_text(LINK)
    monkeypatch.chdir(tmp_path)
    return folder


def test_one_toml_and_a_short_file_of_claims_are_a_paper(tiny: Path) -> None:
    answer = CliRunner().invoke(app, ["reproduce", str(tiny), "--json"])
    assert answer.exit_code == 0, answer.stderr
    (found,) = json.loads(answer.stdout)["papers"]
    (claim,) = found["claims"]
    assert (claim["id"], claim["verdict"]) == ("X1", "reproduced")
    assert claim["paper"]["numbers"] == [
        {"topology": "one-link", "scheme": "long", "measure": "delay_mean", "value": 0.4, "where": "Table 1"}
    ]
    # Its printed number beside ours, and what the text does not print.
    assert {r["label"]: r["paper"] for r in found["tables"]} == {
        "one link, 100 packets": 0.4,
        "one link, 10 packets": None,
    }
    measured = {m["scheme"]: m["mean"] for m in found["measures"]}
    assert measured["long"]["delay_mean"] > 0.2 > measured["short"]["delay_mean"]
    assert measured["short"]["slow.dropped_overflow"] > 0
    assert measured["short"]["tcp.throughput"] > 0.4e6
    page = Path("reports/tiny/index.html").read_text("utf-8")
    assert "Ada Example, Bert Sample, “Shorter Queues Wait Less”" in page
    assert ">Figures</a>" in page
    assert len((tiny / "claims.py").read_text().splitlines()) < 20


def test_it_has_a_pilot(tiny: Path) -> None:
    (found,) = pilot(papers.load(str(tiny)), seeds=(101, 102, 103))
    assert (found.claim, found.seeds) == ("X1", 2)
    assert found.mean < -0.1


def test_its_first_line_says_who_and_what(tiny: Path) -> None:
    answer = CliRunner().invoke(app, ["reproduce", str(tiny), "--quick"])
    assert answer.exit_code == 0, answer.exception
    # Its file tells no cost of a run: that is no reason to foretell months.
    assert "min on" not in answer.stderr
    assert answer.stdout.splitlines()[0] == (
        "Short queues (Example and Sample 2025, “Shorter Queues Wait Less”), 3 seeds per scheme"
    )


def test_a_paper_without_claims_is_refused(tiny: Path) -> None:
    (tiny / "claims.py").unlink()
    answer = CliRunner().invoke(app, ["reproduce", str(tiny)])
    assert answer.exit_code == 2
    assert (
        "has no claims.py, and claim X1 states no comparisons: write comparisons = [ … ] in the claim"
        in answer.stderr
    )


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (('year    = 2025', 'year    = "2025"'), "paper.toml:6: year = '2025': write a whole number"),
        (('year    = 2025', ''), "paper.toml lacks year: write year = … there"),
        (('authors = ["Ada Example", "Bert Sample"]', 'authors = []'), "authors = []: write at least one"),
        (('name    = "tiny"', 'name    = "Tiny/1"'), "name = 'Tiny/1': write small letters"),
        (('quick = 3', 'quick = 1'), "seeds.quick = 1: an interval needs 2 seeds or more"),
        (('seeds   = { full = 6, quick = 3 }', 'seeds   = { full = 6 }'), "seeds lacks quick"),
        (('text  = "A tenth of it."', 'txt   = "A tenth of it."'), "schemes.short lacks text"),
        (('text  = "A tenth of it."', 'text = ""\nfited = true'), "schemes.short.fited is an unknown key"),
        (('says    = "§1"', 'say     = "§1"'), "claims.X1.say is an unknown key: did you mean says?"),
        (('id    = "short"', 'id    = "long"'), "schemes: two are called long; give each its own id"),
        (('scheme = "long", measure', 'scheme = "longer", measure'), "write one of long, short"),
        (('value = 0.4', 'value = "0.4 s"'), "value = '0.4 s': write a number"),
        ((', where = "Table 1" }', ' }'), "lacks where"),
        (('[[claims]]', '[claims]'), "paper.toml:32: claims = {"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_toml_is_named(tiny: Path, edit: tuple[str, str], says: str) -> None:
    assert edit[0] in ABOUT
    (tiny / "paper.toml").write_text(ABOUT.replace(*edit))
    answer = CliRunner().invoke(app, ["reproduce", str(tiny), "--plan"])
    assert answer.exit_code == 2, answer.output
    assert says in answer.stderr


def test_what_is_no_toml_is_named(tiny: Path) -> None:
    (tiny / "paper.toml").write_text("name = \n")
    answer = CliRunner().invoke(app, ["reproduce", str(tiny), "--plan"])
    assert (answer.exit_code, "paper.toml: Invalid value" in answer.stderr) == (2, True)


def test_what_a_paper_needs_alone_is_declared() -> None:
    about = tomllib.loads(ABOUT)
    about["topologies"][0]["hops"] = 3
    with pytest.raises(PaperError, match=r"topologies\.one-link\.hops is an unknown key: name it in \[own\]"):
        check(about, "paper.toml")
    check({**about, "own": {"topologies": ["hops"]}}, "paper.toml")


@pytest.mark.parametrize("name", papers.names())
def test_every_paper_says_who_wrote_it_and_where_it_stands(name: str) -> None:
    paper = papers.load(name)
    assert str(paper.top.whole("year")) in paper.reference
    assert paper.top.word("title") in paper.reference
    assert len(paper.top.word("source")) > 20


READING: dict[str, Any] = {
    "id": "rtt",
    "title": "RTT",
    "where": "§3",
    "quote": "its RTT",
    "why": "the text",
    "default": "base",
    "schemes": ["fdd"],
    "alternatives": [
        {"id": "base", "set": {"links.b.queue.rtt": "base"}},
        {"id": "with_queue", "title": "with the queue", "set": {"links.b.queue.rtt": "with_queue"}},
    ],
}
BOX: dict[str, Any] = {
    "id": "limit",
    "title": "Buffer",
    "why": "the year",
    "default": "100 packets",
    "low": 50,
    "high": 400.0,
    "scale": "log",
    "set": {"links.b.queue.limit": "{} packets", "links.c.queue.limit": "{} packets"},
}


def test_what_is_rejected_is_no_default() -> None:
    base, queue = READING["alternatives"]
    rejected = {**READING, "alternatives": [{**base, "rejected": "the text has it otherwise"}, queue]}
    with pytest.raises(FactorError, match="the reading rtt has a default that it rejects: base"):
        factors_of({"readings": [rejected]})


def test_list() -> None:
    [factor] = factors_of({"readings": [READING]})
    assert factor.default.value == "base"
    assert [c.value for c in factor.others()] == ["with_queue"]
    assert [factor.at(u).value for u in (0.0, 0.49, 0.5, 0.999)] == [
        "base",
        "base",
        "with_queue",
        "with_queue",
    ]
    assert factor.distance(factor.at(0.0)) == 0
    assert factor.distance(factor.at(0.9)) == 1
    with pytest.raises(KeyError):
        factor.find("none")


def test_box() -> None:
    [factor] = factors_of({"inputs": [BOX]})
    assert factor.default.value == 100
    assert factor.default.set == {}, "the file has the default"
    assert factor.at(0.0).set == dict.fromkeys(("links.b.queue.limit", "links.c.queue.limit"), "50 packets")
    assert factor.at(1 / 3).value == pytest.approx(100, rel=1e-3)
    assert factor.distance(factor.find(400.0)) == pytest.approx(2 / 3)


def test_bare_template_is_a_number() -> None:
    [factor] = factors_of(
        {"inputs": [{**BOX, "default": 0.002, "low": 0.001, "high": 0.5, "set": {"w_q": "{}"}}]}
    )
    assert factor.find(0.25).set == {"w_q": 0.25}


@given(st.floats(0, 1, exclude_max=True), st.booleans(), st.booleans())
def test_box_stays_in_its_bounds(u: float, log: bool, integer: bool) -> None:
    entry = {**BOX, "scale": "log" if log else "linear", "integer": integer}
    [factor] = factors_of({"inputs": [entry]})
    choice = factor.at(u)
    assert 50 <= float(choice.value) <= 400
    assert not integer or float(choice.value).is_integer()
    assert 0 <= factor.unit(choice) <= 1


def test_whole_numbers_of_a_linear_box_are_equally_likely() -> None:
    entry = {**BOX, "default": 2, "low": 1, "high": 4, "scale": "linear", "integer": True}
    [factor] = factors_of({"inputs": [entry]})
    found = [factor.at(i / 400).value for i in range(400)]
    assert [found.count(n) for n in (1, 2, 3, 4)] == [100] * 4


def test_apply_respects_schemes() -> None:
    factors = factors_of({"readings": [READING], "inputs": [BOX]})
    point = {f.id: f.at(0.9) for f in factors}
    assert "links.b.queue.rtt" in apply(point, factors, "fdd", "any")
    assert "links.b.queue.rtt" not in apply(point, factors, "red", "any")
    assert "links.b.queue.limit" in apply(point, factors, "red", "any")


@pytest.mark.parametrize(
    ("entry", "kind", "says"),
    [
        ({k: v for k, v in READING.items() if k != "quote"}, "readings", "the reading rtt lacks quote"),
        ({**READING, "sets": {}}, "readings", "unknown keys: sets"),
        ({**READING, "default": "neither"}, "readings", "no alternative neither"),
        ({**READING, "alternatives": READING["alternatives"][:1]}, "readings", "two alternatives or more"),
        ({**READING, "alternatives": [{"id": "base", "value": 1}] * 2}, "readings", "unknown keys: value"),
        ({**BOX, "scale": "sqrt"}, "inputs", "scale sqrt: write linear or log"),
        ({**BOX, "low": 0}, "inputs", "no box from 0 to 400 on a log scale"),
        ({**BOX, "default": "10 packets"}, "inputs", "outside 50 to 400"),
        ({**BOX, "default": "many"}, "inputs", "which is no number"),
        ({**BOX, "set": {"limit": "100 packets"}}, "inputs", "write {} where the value goes"),
        ({k: v for k, v in BOX.items() if k != "high"}, "inputs", "neither a list nor a box"),
    ],
)
def test_bad_entries_are_named(entry: dict[str, Any], kind: str, says: str) -> None:
    with pytest.raises(FactorError, match=says.replace("{", r"\{").replace("}", r"\}")):
        factors_of({kind: [entry]})


def test_an_id_stands_once() -> None:
    with pytest.raises(FactorError, match="two readings or inputs are called rtt"):
        factors_of({"readings": [READING, READING]})
