"""The atlas: its design, what it answers, and that it goes on where it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inprofile import atlas
from inprofile.atlas.answers import answer
from inprofile.atlas.design import Planned, design
from inprofile.atlas.store import atlas_json, write
from inprofile.atlas.visit import Answer, Visited
from inprofile.cli import main
from inprofile.judge import Verdict
from inprofile.papers.factors import Factor, factors_of
from test_factors import BOX, READING

FACTORS = factors_of({"readings": [READING], "inputs": [BOX]})


def test_design() -> None:
    points = design(FACTORS, 32, "a paper")
    assert [p.kind for p in points[:4]] == ["default", "along", "along", "along"]
    assert all(p.kind == "sobol" for p in points[4:])
    assert len(points) == 32
    assert points[0].changed(FACTORS) == {}
    assert [p.changed(FACTORS) for p in points[1:4]] == [
        {"rtt": "with_queue"},
        {"limit": 50},
        {"limit": 400},
    ]
    assert points == design(FACTORS, 32, "a paper")
    assert points != design(FACTORS, 32, "another")


def test_larger_design_has_the_smaller() -> None:
    small, large = ([json.dumps(p.changed(FACTORS)) for p in design(FACTORS, n, "a paper")] for n in (9, 64))
    assert set(small) <= set(large)


def test_design_fills_the_box() -> None:
    """Every quarter of the box has its share of points, for both alternatives."""
    points = [p for p in design(FACTORS, 260, "a paper") if p.kind == "sobol"]
    quarter = [(p.point["rtt"].value, int(4 * FACTORS[1].unit(p.point["limit"]))) for p in points]
    for value in ("base", "with_queue"):
        assert all(28 <= quarter.count((value, n)) <= 36 for n in range(4))


@pytest.mark.parametrize(("factors", "budget"), [(FACTORS, 0), ([], 8)])
def test_nothing_to_visit(factors: list[Factor], budget: int) -> None:
    with pytest.raises(ValueError, match="nothing"):
        design(factors, budget, "a paper")


def _visited(rule: Any) -> list[Visited]:
    return [Visited(p, {"X1": rule(p)}) for p in design(FACTORS, 132, "a paper")]


def _by(holds: bool) -> Answer:
    return Answer(Verdict.REPRODUCED, 4, 0, 4) if holds else Answer(Verdict.OPPOSITE, 0, 4, 4)


def test_a_claim_that_one_reading_decides() -> None:
    found = answer("X1", FACTORS, _visited(lambda p: _by(p.point["rtt"].value == "with_queue")))
    assert found.decisive == ("rtt",)
    assert found.importance["rtt"] == pytest.approx(1, abs=0.01)
    assert abs(found.importance["limit"]) < 0.1
    assert found.shares["holds"] == pytest.approx(0.5, abs=0.02)
    assert found.shares["opposite"] == pytest.approx(0.5, abs=0.02)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.nearest is not None
    assert found.nearest.planned.changed(FACTORS) == {"rtt": "with_queue"}
    assert found.worst is not None
    assert found.worst.planned.kind == "default"


def test_a_claim_that_an_input_decides() -> None:
    found = answer("X1", FACTORS, _visited(lambda p: _by(float(p.point["limit"].value) > 200)))
    assert found.decisive == ("limit",)
    assert found.nearest is not None
    assert found.nearest.planned.kind == "sobol", "nearer than the end of the box"


def test_a_claim_that_nothing_decides() -> None:
    everywhere = answer("X1", FACTORS, _visited(lambda p: _by(True)))
    assert everywhere.decisive == ()
    assert everywhere.shares["holds"] == 1
    assert everywhere.worst is None
    nowhere = answer("X1", FACTORS, _visited(lambda p: Answer(Verdict.NOT_SHOWN, 0, 0, 4)))
    assert nowhere.nearest is nowhere.best is None
    assert nowhere.shares["open"] == 1


def test_chance_is_not_decisive() -> None:
    """A score unrelated to the factors: named decisive in few of a hundred such claims."""
    import random

    named = 0
    for n in range(25):
        rng = random.Random(n)  # noqa: S311
        named += bool(answer("X1", FACTORS, _visited(lambda p, rng=rng: _by(rng.random() < 0.5))).decisive)
    assert named <= 3


def test_invalid_points_count_nowhere() -> None:
    visited = _visited(lambda p: _by(True))
    with_invalid = [*visited[:-8], *(replace(v, answers={}, invalid="refused") for v in visited[-8:])]
    assert answer("X1", FACTORS, with_invalid).shares["holds"] == 1
    with pytest.raises(ValueError, match="every point is invalid"):
        answer("X1", FACTORS, [replace(v, answers={}, invalid="refused") for v in visited])


def test_written_is_what_is_printed(tmp_path: Path) -> None:
    paper = atlas.load_paper("ard")
    planned = atlas.Plan(replace(paper), FACTORS, [], 3, ["X1"])
    visited = _visited(lambda p: _by(p.point["rtt"].value == "with_queue"))
    made = atlas.Atlas(planned, visited, [answer("X1", FACTORS, visited)], [])
    write(made, tmp_path / "atlas.json")
    assert json.loads((tmp_path / "atlas.json").read_text()) == json.loads(json.dumps(atlas_json(made)))
    assert len((tmp_path / "atlas.json").read_text().splitlines()) > len(visited)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "0"], "--budget 0 visits no point"),
        (["none"], 'there is no paper "none"'),
        (["ard", "--claim", "Z9"], "there is no claim Z9: choose from A1"),
    ],
)
def test_bad_input(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["atlas", *arguments])
    assert left.value.code == 2
    assert says in capsys.readouterr().err


def test_kinds_are_told_apart() -> None:
    assert {p.kind for p in design(FACTORS, 16, "x")} == {"default", "along", "sobol"}
    assert Planned("default", {f.id: f.default for f in FACTORS}).changed(FACTORS) == {}
