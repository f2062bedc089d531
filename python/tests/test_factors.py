"""Readings and unstated inputs as data: what a `paper.toml` may say, and what it means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inprofile.papers.factors import FactorError, apply, factors_of

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
