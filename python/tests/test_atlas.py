"""The atlas: its design, what it answers, and that it goes on where it was."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inprofile import papers
from inprofile.cli import main
from inprofile.metrics.measures import Measures, Trace
from inprofile.papers.claim import Verdict
from inprofile.papers.factors import Factor, factors_of
from inprofile.papers.judge import earlier
from inprofile.papers.rerun import Answer
from inprofile.studies import atlas
from inprofile.studies.atlas.answers import answer, applying
from inprofile.studies.atlas.store import atlas_json, committed, stale, write
from inprofile.studies.atlas.visit import Planned, Visited, design
from inprofile.studies.reproduce.report.atlas import atlas_context
from test_papers_plain import BOX, READING

FACTORS = factors_of({"readings": [READING], "inputs": [BOX]})


def test_design() -> None:
    points = design(FACTORS, 32, "a paper")
    assert [p.kind for p in points[:4]] == ["default", "along", "along", "along"]
    assert all(p.kind == "sobol" for p in points[4:])
    assert len(points) == 32
    assert points[0].changed(FACTORS) == {}
    assert [p.changed(FACTORS) for p in points[1:4]] == [{"rtt": "with_queue"}, {"limit": 50}, {"limit": 400}]
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


def test_what_the_reading_rejects_stands_apart() -> None:
    """Run all the same: but neither in a share, nor nearest, nor best."""
    base, queue = READING["alternatives"]
    rejected = {**READING, "alternatives": [base, {**queue, "rejected": "the text has it otherwise"}]}
    factors = factors_of({"readings": [rejected], "inputs": [BOX]})
    visited = [
        Visited(p, {"X1": _by(p.point["rtt"].value == "with_queue")}, "") for p in design(factors, 100, "x")
    ]
    found = answer("X1", factors, visited)
    assert found.shares["opposite"] == 1
    assert (found.nearest, found.best) == (None, None)
    assert found.worst is not None
    assert not found.worst.planned.changed(factors).get("rtt")
    [apart] = found.apart
    assert (apart.factor, apart.value, apart.shares["holds"]) == ("rtt", "with_queue", 1)
    assert apart.points == sum(v.planned.point["rtt"].rejected != "" for v in visited[4:]) > 30


def test_a_claim_that_nothing_decides() -> None:
    everywhere = answer("X1", FACTORS, _visited(lambda p: _by(True)))
    assert everywhere.decisive == ()
    assert everywhere.shares["holds"] == 1
    assert everywhere.worst is None
    nowhere = answer("X1", FACTORS, _visited(lambda p: Answer(Verdict.NOT_SHOWN, 0, 0, 4)))
    assert nowhere.nearest is nowhere.best is None
    assert nowhere.shares["open"] == 1


def test_what_a_claims_runs_do_not_contain_does_not_apply_to_it() -> None:
    """An every-n-th marker, and UDP's packet where there is no UDP, decide nothing about C3."""
    paper = papers.load("probe")
    factors = [f for f in paper.factors if f.id in ("boundary", "udp-packet", "n-ten")]
    found = applying(paper, factors, ["C3", "C7", "C9"])
    ids = {claim: [f.id for f in of] for claim, of in found.items()}
    assert ids == {"C3": ["boundary"], "C7": ["boundary", "udp-packet"], "C9": ["boundary", "n-ten"]}


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
    planned = atlas.AtlasPlan(replace(paper), FACTORS, [], 3, ["X1"])
    visited = _visited(lambda p: _by(p.point["rtt"].value == "with_queue"))
    made = atlas.Atlas(planned, visited, [answer("X1", FACTORS, visited)], [])
    write(made, tmp_path / "atlas.json")
    assert json.loads((tmp_path / "atlas.json").read_text()) == json.loads(json.dumps(atlas_json(made)))
    # By which rules it was judged: the page says so where they were others.
    assert not earlier(atlas_json(made))
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


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> atlas.AtlasPlan:
    """Three points of paper A with two seeds each, in an empty working directory."""
    real = atlas.load_paper("ard")
    about = {**real.about, "seeds": {**real.about["seeds"], "atlas": 2}}
    monkeypatch.setattr(atlas, "load_paper", lambda _: replace(real, about=about))
    monkeypatch.chdir(tmp_path)
    return atlas.plan("ard", 3, ["A1"])


def test_interrupted_it_goes_on_where_it_was(small: atlas.AtlasPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is not run again, and the outcome is that of an uninterrupted run."""
    monkeypatch.setattr(sys.modules["inprofile.studies.atlas.visit"], "TOGETHER", 8)
    whole = atlas_json(atlas.make(small, cache=None))

    def interrupt(done: int, total: int, what: str) -> None:
        if done >= small.runs // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atlas.make(small, progress=interrupt)
    kept = {p: p.stat().st_mtime_ns for p in Path("results/cache/atlas/ard").iterdir()}
    assert kept
    assert not any(p.name.endswith(".part") for p in kept)
    assert atlas_json(atlas.make(small)) == whole
    assert {p: p.stat().st_mtime_ns for p in kept} == kept

    def never(*_: object, **__: object) -> None:
        raise AssertionError("what is in the cache was run again")

    monkeypatch.setattr("inprofile.run.pool.run_each", never)
    assert atlas_json(atlas.make(small)) == whole


def test_a_damaged_cell_is_run_again_and_told(
    small: atlas.AtlasPlan, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = atlas_json(atlas.make(small))
    first, second, third, *_ = sorted(Path("results/cache/atlas/ard").iterdir())
    good = first.read_bytes()
    middle = len(good) // 2
    first.write_bytes(good[:middle] + bytes(64) + good[middle + 64 :])
    second.write_bytes(second.read_bytes()[:100])
    third.write_bytes(b"")
    capfd.readouterr()
    assert atlas_json(atlas.make(small)) == whole
    told = capfd.readouterr().err
    for place in (first, second, third):
        assert f"{place} is damaged" in told
    assert first.read_bytes() == good
    assert atlas_json(atlas.make(small)) == whole
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("seed", range(3))
def test_no_damage_of_a_cell_is_an_error(seed: int, tmp_path: Path) -> None:
    """Bytes changed and ends cut off, anywhere: nothing is read, or what was written."""
    import random

    def trace() -> Trace:
        return Trace(*(np.arange(4.0) for _ in range(5)))

    written = Measures((1, 2), {"fi": np.array([0.1, 0.2])}, {"queue": trace()}, {"goodput": np.ones((2, 3))})
    place = tmp_path / "cell.npz"
    with place.open("wb") as file:
        written.write(file)
    good = place.read_bytes()
    rng = random.Random(seed)  # noqa: S311
    whole = 0
    for _ in range(300):
        data = bytearray(good[: rng.randrange(len(good))] if rng.random() < 0.3 else good)
        for _ in range(rng.randrange(4) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        place.write_bytes(data)
        found = Measures.read(place)
        if found is not None:
            whole += 1
            assert found.seeds == (1, 2)
            assert found.values.keys() == {"fi"}
            assert found["fi"].tolist() == [0.1, 0.2]
    assert 0 < whole < 300


def test_arrays_that_do_not_fit_each_other_are_not_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays: dict[str, dict[str, Any]] = {
        "seeds": {"value:fi": np.ones(2)},
        "shape": {"seeds": np.arange(2), "value:fi": np.ones(3)},
        "kind": {"seeds": np.arange(2), "other:fi": np.ones(2)},
        "parts": {"seeds": np.arange(2), "trace:q:line": np.ones(2)},
    }
    for name, found in arrays.items():
        np.savez(tmp_path / f"{name}.npz", **found)
        assert Measures.read(tmp_path / f"{name}.npz") is None
        assert f"{name}.npz is damaged" in capsys.readouterr().err
    assert Measures.read(tmp_path / "none.npz") is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("budget", [-5, 0, 4097, 10**30])
def test_a_budget_out_of_bounds(budget: int) -> None:
    with pytest.raises(ValueError, match="a budget of"):
        design(FACTORS, budget, "a paper")


@pytest.mark.parametrize("name", papers.names())
def test_the_committed_atlas_is_of_this_paper(name: str) -> None:
    paper = papers.load(name)
    found = committed(paper)
    assert found is not None, f"{name} has no atlas: make renew"
    assert stale(paper, found) == "", f"the atlas of {name} is of other {stale(paper, found)}: make renew"
    # What others build on; more keys may stand beside them.
    assert {"paper", "points", "invalid", "claims"} <= set(found)
    for claim in found["claims"]:
        assert {"id", "decisive", "nearest"} <= set(claim)
        assert all(isinstance(name, str) for name in claim["decisive"])
        shares = [claim[f"share_{k}"] for k in ("holds", "open", "opposite", "undecidable")]
        assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert len(found["design"]) == found["points"]
    assert atlas_context(found, paper)["claims"]
