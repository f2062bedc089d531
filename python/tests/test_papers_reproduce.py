"""Reproducing as a whole, with the simulator: plan, run, cache, interruption, report."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile import papers
from inprofile.cli import app
from inprofile.papers import Paper
from inprofile.studies import reproduce as work


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Paper A with two set-ups, few seeds and one sweep, in an empty working directory."""
    real = papers.load("ard")
    about = copy.deepcopy(real.about)
    about["seeds"] = {"full": 3, "quick": 2, "sweep": 2, "sweep_quick": 2}
    about["setups"] = [s for s in about["setups"] if s["id"] in ("as-described", "tail-drop-edge")]
    about["sweeps"] = [s for s in about["sweeps"] if s["id"] == "window"]
    about["sweeps"][0].update(values=["20 packets", "40 packets"], setups=["as-described", "tail-drop-edge"])
    monkeypatch.setattr(papers, "load", lambda _: Paper("ard", real.folder, about))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_plan_to_page_and_again_from_the_cache(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    reports = work.reproduce(
        ["ard"], quick=True, full=True, progress=lambda done, total, _: told.append((done, total))
    )
    page = small / "reports" / "ard" / "index.html"
    assert reports[0].page == Path("reports/ard/index.html")
    first, data = page.read_bytes(), json.loads((page.parent / "results.json").read_text("utf-8"))
    planned = work.plan("ard", quick=True, full=True)
    assert told[-1] == (planned.runs, planned.runs)
    assert told == sorted(told)
    assert len(data["claims"]) == 27
    sweeps = [m for m in data["measures"] if m["sweep"]]
    assert [m["value"] for m in sweeps if m["scheme"] == "ard"] == ["20 packets", "40 packets"] * 2
    assert [m["value"] for m in sweeps if m["scheme"] == "placebo"] == ["20 packets", "40 packets"] * 2
    # The swept value that is the file's own gives the file's own result.
    alike = [
        m
        for m in data["measures"]
        if (m["setup"], m["topology"], m["scheme"]) == ("as-described", "four-flows", "rio")
    ]
    plain, swept = (
        next(m for m in alike if (m["value"] == v) and not m["variant"]) for v in (None, "20 packets")
    )
    assert plain["mean"]["fi"] == swept["mean"]["fi"]
    # The passive bucket meters and changes nothing; with the drop-tail edge there is nothing in the core.
    assert plain["mean"]["drops_marker"] == plain["mean"]["remarked"] == 0

    def never(*_: object, **__: object) -> None:
        raise AssertionError("what is in the cache was run again")

    monkeypatch.setattr("inprofile.run.pool.run_each", never)
    work.reproduce(["ard"], quick=True, full=True)
    assert page.read_bytes() == first


def test_interrupted_it_keeps_what_is_done_and_goes_on(small: Path) -> None:
    runner = CliRunner()

    def interrupt(done: int, total: int, what: str) -> None:
        if done >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.reproduce(["ard"], quick=True, progress=interrupt)
    kept = {p.name for p in (small / "results" / "cache" / "ard").iterdir()}
    assert kept
    assert not any(name.endswith(".part") for name in kept)
    assert not (small / "reports").exists()
    answer = runner.invoke(app, ["reproduce", "ard", "--quick", "--json"])
    assert answer.exit_code == 0, answer.stderr
    found = json.loads(answer.stdout)["papers"][0]
    assert (found["paper"], len(found["claims"])) == ("ard", 27)
    assert kept <= {p.name for p in (small / "results" / "cache" / "ard").iterdir()}


def test_the_command_says_how_to_go_on(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **options: object) -> None:
        options["progress"](7, 100, "")  # type: ignore[operator]
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "reproduce", stopped)
    answer = CliRunner().invoke(app, ["reproduce", "ard"])
    assert answer.exit_code == 130
    assert "Interrupted after 7 of 100 runs" in answer.stderr
    assert "the same command goes on from there" in answer.stderr


def test_plan_runs_nothing(small: Path) -> None:
    answer = CliRunner().invoke(app, ["reproduce", "--plan"])
    assert answer.exit_code == 0
    assert answer.stdout.startswith("ard: 32 experiments, 96 runs, about ")
    as_json = CliRunner().invoke(app, ["reproduce", "ard", "--plan", "--json"])
    assert json.loads(as_json.stdout)["papers"][0]["runs"] == 96
    assert not any(small.iterdir())


def test_sweeps_are_part_of_full_and_the_old_word_says_so(small: Path) -> None:
    answer = CliRunner().invoke(app, ["reproduce", "ard", "--sweeps", "--plan"])
    assert answer.exit_code == 2
    assert "--sweeps is now part of --full: write --full" in answer.stderr
    plain, full = (
        json.loads(CliRunner().invoke(app, ["reproduce", "ard", *more, "--plan", "--json"]).stdout)["papers"][
            0
        ]
        for more in ([], ["--full"])
    )
    assert (plain["full"], full["full"]) == (False, True)
    assert plain["runs"] < full["runs"]


def test_an_unknown_paper_is_refused() -> None:
    answer = CliRunner().invoke(app, ["reproduce", "adr"])
    assert answer.exit_code == 2
    assert 'there is no paper "adr" here: choose from ard' in answer.stderr


def test_words_of_a_paper_are_no_part_of_the_cache_key() -> None:
    real = papers.load("ard")
    job = work.plan("ard").batches[0][0]
    before = work.measured_with(real, job)
    for table in ("setups", "topologies", "schemes"):
        for word in ("title", "text", "where", "fitted", "cost"):
            about = copy.deepcopy(real.about)
            about[table][0][word] = "in other words"
            assert work.measured_with(Paper("ard", real.folder, about), job) == before, (table, word)
    # What is measured by is.
    about = copy.deepcopy(real.about)
    about["topologies"][0]["stated"]["window"] = [50.0, 200.0]
    assert work.measured_with(Paper("ard", real.folder, about), job) != before
