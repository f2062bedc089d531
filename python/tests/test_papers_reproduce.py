"""Reproducing as a whole, with the simulator: plan, run, cache, interruption, report; with today's TCP."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inprofile import papers
from inprofile.cli import app
from inprofile.experiment.mechanisms import senders
from inprofile.papers import Paper, rerun
from inprofile.papers.claim import Verdict
from inprofile.papers.experiment import work_of
from inprofile.studies import reproduce as work
from inprofile.studies.reproduce.report.page import counts_of, today_context


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
    assert len(data["claims"]) == 29
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
    assert (found["paper"], len(found["claims"])) == ("ard", 29)
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


def test_all_five_are_foretold_seven_minutes_on_two_cores() -> None:
    plans = [work.plan(name) for name in papers.names()]
    assert len(plans) == 5
    assert sum(p.cpu_seconds / 2 + p.alone for p in plans) <= 7 * 60


def test_plan_runs_nothing(small: Path) -> None:
    answer = CliRunner().invoke(app, ["reproduce", "--plan"])
    assert answer.exit_code == 0
    assert answer.stdout.startswith("ard: 10 experiments, 30 runs, about ")
    as_json = CliRunner().invoke(app, ["reproduce", "ard", "--plan", "--json"])
    assert json.loads(as_json.stdout)["papers"][0]["runs"] == 30
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


@pytest.mark.parametrize("name", papers.names())
def test_a_sender_replaces_tcp_and_nothing_else(name: str) -> None:
    paper = papers.load(name)
    planned = rerun.plan(paper)
    own = [job for batch in planned.trials[rerun.OWN].batches for job in batch]
    assert {job.cell.setup for job in own} <= {paper.setups[0].id}
    for sender in senders():
        jobs = [job for batch in planned.trials[sender.id].batches for job in batch]
        assert [(j.cell, j.seeds, j.after) for j in jobs] == [(j.cell, j.seeds, j.after) for j in own]
        pairs = list(zip(own, jobs, strict=True))
        for before, after in [pairs[0], pairs[len(pairs) // 2], pairs[-1]]:
            made = [
                work_of(paper, replace(job, after=None), {}, {}).parts[0][0].check().effective
                for job in (before, after)
            ]
            tcp = [effective.pop("tcp") for effective in made]
            assert comparable(made[0]) == comparable(made[1])
            for key in ("segment", "header"):
                assert tcp[0][key] == tcp[1][key]
            assert {key: tcp[1][key] for key in sender.tcp} == dict(sender.tcp)


def comparable(effective: dict[str, Any]) -> dict[str, Any]:
    """An effective experiment without its flows' TCP, and without how drop-tail counts.

    That follows the TCP profile: ns-2's has a packet less. Here such queues never overflow, or hold
    datagrams.
    """
    for flows in effective["flows"]:
        flows.pop("tcp")
    queues = [flows["join"]["queue"] for flows in effective["flows"] if "join" in flows]
    queues += [link["queue"] for link in effective["links"]]
    queues += [one for queue in queues for one in queue.get("classes", ())]
    for queue in queues:
        if queue.pop("limit_rule_from", None) == "tcp.profile":
            assert queue["limit"]["packets"] >= 1000 or queue["name"] == "ef"
        queue.pop("limit_rule", None)
    return effective


@pytest.mark.parametrize("name", papers.names())
def test_what_is_kept_is_of_this_paper(name: str) -> None:
    paper = papers.load(name)
    found = rerun.committed(paper)
    assert found is not None, f"{name} has no {rerun.NAME}: make renew"
    assert rerun.stale(paper, found) == "", f"{name}: other {rerun.stale(paper, found)}; make renew"
    shown = today_context(found, paper)
    assert not shown["invalid"]
    assert shown["rows"]
    assert all(None not in claim["answers"] for claim in shown["claims"])
    names = {rerun.OWN, *(s.id for s in senders())}
    # A figure may not exist under one of them: two frontiers that never reach the same goodput.
    assert all(set(row["senders"]) <= names for row in found["rows"])
    assert sum(set(row["senders"]) == names for row in found["rows"]) > 0.9 * len(found["rows"])
    for sender in counts_of(found):
        assert sum(n for _, n in sender["counts"]) == len(found["claims"])


def test_run_written_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two seeds are the fewest that a paper is judged with; nothing here rests on how many there are.
    real = papers.load("fdd-red")
    few = Paper("fdd-red", real.folder, {**real.about, "seeds": dict.fromkeys(real.about["seeds"], 2)})
    monkeypatch.setattr(papers, "load", lambda _: few)
    monkeypatch.chdir(tmp_path)
    planned = CliRunner().invoke(app, ["reproduce", "fdd-red", "--quick", "--senders", "--plan", "--json"])
    [entry] = json.loads(planned.stdout)["papers"]
    plan = rerun.plan(few, quick=True)
    assert entry["senders"] == {"runs": plan.runs, "cpu_seconds": round(plan.cpu_seconds, 1)}
    ran = CliRunner().invoke(app, ["reproduce", "fdd-red", "--quick", "--senders", "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads((tmp_path / "reports" / "fdd-red" / rerun.NAME).read_text("utf-8"))
    [paper] = json.loads(ran.stdout)["papers"]
    assert paper["today"] == found
    assert [c["id"] for c in found["claims"]] == ["D1", "D2", "D3", "D4", "D5", "D6"]
    # The paper's own TCP is what was reproduced: the same cells, seed by seed.
    drops = {row["label"]: row for row in found["rows"] if row["what"] == "packets dropped"}
    table = {
        row["label"]: row["measured"]["mean"]
        for row in paper["tables"]
        if row["what"] == "packets dropped" and row["setup"] == found["setup"] and not row["variant"]
    }
    assert {label: row["senders"][rerun.OWN]["mean"] for label, row in drops.items()} == table
    # And another sender is another result.
    assert all(row["senders"]["bbr"] != row["senders"][rerun.OWN] for row in drops.values())
    page = (tmp_path / "reports" / "fdd-red" / "index.html").read_text("utf-8")
    assert "Under today’s TCP" in page
    assert "BBR version 3" in (tmp_path / "reports" / "index.html").read_text("utf-8")


def test_flows_with_a_tcp_of_their_own_are_not_said_to_have_another() -> None:
    kept = rerun.plan(papers.load("policing"), quick=True).trials
    assert kept["linux"].invalid == "", "they have Linux's CUBIC"
    for name in ("prague", "bbr"):
        assert kept[name].invalid == (
            "flows.video of policed.toml have a TCP of their own, cubic, which no sender replaces"
        )
    for name in papers.names():
        assert not any(trial.invalid for trial in rerun.plan(papers.load(name), quick=True).trials.values())


def test_a_trial_that_is_refused_says_why_and_the_others_stand() -> None:
    planned = rerun.plan(papers.load("fdd-red"), quick=True)
    few = {
        name: rerun.Trial(trial.paper, [[replace(job, seeds=2) for job in trial.batches[0]]])
        for name, trial in planned.trials.items()
    }
    wrong = few["bbr"].batches[0][0]
    few["bbr"].batches = [[replace(wrong, values={**wrong.values, "tcp": {"profile": "none"}})]]
    found = rerun.make(rerun.SendersPlan(planned.paper, few))
    assert set(found["invalid"]) == {"bbr"}
    assert "tcp.profile" in found["invalid"]["bbr"]
    assert all(set(c["verdicts"]) == {rerun.OWN, "linux", "prague"} for c in found["claims"])
    assert all("bbr" not in row["senders"] for row in found["rows"])
    context = today_context(found, planned.paper)
    assert [title for title, _ in context["invalid"]] == ["BBR version 3"]
    assert not context["earlier"]
    assert today_context({**found, "rules": 1}, planned.paper)["earlier"]
    assert all(c["answers"][-1] is None for c in context["claims"])
    assert {a["verdict"] for c in context["claims"] for a in c["answers"][:-1]} <= set(Verdict)
