"""Papers under today's TCP: what is run in place of what, what is kept, and where it is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inprofile import papers
from inprofile.cli import app
from inprofile.experiment.mechanisms import senders
from inprofile.papers import rerun
from inprofile.papers.experiment import work_of
from inprofile.papers.judge import Verdict
from inprofile.studies.reproduce.report.page import counts_of, today_context


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
    monkeypatch.chdir(tmp_path)
    planned = CliRunner().invoke(app, ["reproduce", "fdd-red", "--quick", "--senders", "--plan", "--json"])
    [entry] = json.loads(planned.stdout)["papers"]
    plan = rerun.plan(papers.load("fdd-red"), quick=True)
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
