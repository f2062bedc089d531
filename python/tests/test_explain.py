"""The causal sentence of an explanation: what it names, when it is silent, what removing the cause does."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import causes
import pytest

from forked import SHORT as BRIEF
from forked import inprofile_
from inprofile import STARTER, parse
from inprofile.cli import app
from inprofile.experiment.scenario import Scenario
from inprofile.run.results import Result
from inprofile.studies.explain import explain
from inprofile.studies.explain.cause import KINDS
from inprofile.studies.explain.removal import removed, without

SHORT = {"duration": "20 s", "measure.from": "5 s"}
BEST_EFFORT = """
[[flows]]
name = "free"
count = 6
from = "H*"
join = { node = "edge", rate = "100 Mbit/s" }
to = "server"
rtt = "40 ms"
marker = { kind = "colour", colour = "out" }
"""
DROP_TAIL = {"aqm": "drop_tail", "limit": "40 packets"}
CUT = {"links.bottleneck.queue.out": {"min_th": "10 packets", "max_th": "30 packets", "max_p": 0.5}}

#: What is wrong in each, and the flow that it starves.
WRONG: dict[str, tuple[dict[str, object], str]] = {
    "absence": ({"flows.assured.start": ["0 s", "0 s", "0 s", "13 s"]}, "assured.3"),
    "receiver's window": ({"flows.assured.tcp.window": "3 packets"}, "assured.3"),
    "access link": ({"flows.assured.join.rate": "500 kbit/s"}, "assured.3"),
    "offered rate": ({"flows.assured.traffic": {"kind": "cbr", "rate": "300 kbit/s"}}, "assured.3"),
    "oversold link": (
        {"links.bottleneck.rate": "1500 kbit/s", "flows.assured.contract": "700 kbit/s"},
        "assured.0",
    ),
    "shallow bucket": ({"flows.assured.marker.depth": "1 packets", **CUT}, "assured.3"),
    "shared queue": ({"links.bottleneck.queue": DROP_TAIL}, "assured.3"),
}


def run(scenario: Scenario, seeds: Sequence[int]) -> Result:
    return scenario.run(seeds)


def wrong(kind: str) -> Scenario:
    return parse(STARTER + BEST_EFFORT).with_(SHORT).with_(WRONG[kind][0])


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_named_and_without_it_the_flow_gets_its_contract(kind: str) -> None:
    scenario, flow = wrong(kind), WRONG[kind][1]
    found = explain(scenario.run(2), flow)
    assert kind in {cause.kind for cause in found.causes}, found.because
    assert found.because.startswith(f"{flow} got ")
    assert found.because.count("because") == 1
    outcome = removed(scenario, found, run)
    assert any(one.mended for one in outcome), [one.words() for one in outcome]
    assert found.to_json()["causes"][0]["kind"] in KINDS


def test_a_flow_that_ends_within_the_window_is_absent() -> None:
    scenario = parse(STARTER).with_(SHORT).with_({"flows.assured.stop": ["20 s", "20 s", "20 s", "8 s"]})
    found = explain(scenario.run(2), "assured.3")
    assert [cause.kind for cause in found.causes] == ["absence"]
    assert "because it sent for 3 of the 15 s measured" in found.because
    assert removed(scenario, found, run)[0].mended
    for flow in ("assured.0", "assured.1"):
        assert explain(scenario.run(2), flow).because == ""


@pytest.mark.parametrize("flow", ["assured.0", "assured.3"])
def test_a_link_that_is_slowed_within_the_window_is_named_with_its_mean_rate(flow: str) -> None:
    slow = {"links.bottleneck.capacity": {"steps": [{"at": "6 s", "rate": "600 kbit/s"}]}}
    scenario = parse(STARTER).with_(SHORT).with_(slow)
    found = explain(scenario.run(2), flow)
    assert [cause.kind for cause in found.causes] == ["oversold link"], found.because
    assert "a link of 3 Mbit/s that has 760 kbit/s on average in the measured window" in found.because
    assert removed(scenario, found, run)[0].mended


def test_the_sentence_counts_losses_and_says_who_held_the_buffer() -> None:
    found = explain(wrong("shared queue").run(2), "assured.3")
    assert re.search(
        r": 20 of its 20 losses were overflow there while free held 6\d % of the buffer\.$", found.because
    )
    assert "bottleneck drops what was bought as it drops all else" in found.because


def test_flows_of_its_own_group_are_the_rest_of_it() -> None:
    contracts = {"flows.assured.count": 8, "flows.assured.contract": ["350 kbit/s"] * 7 + ["500 kbit/s"]}
    scenario = parse(STARTER).with_(SHORT).with_({"links.bottleneck.queue": DROP_TAIL, **contracts})
    assert "while the rest of assured held 8" in explain(scenario.run(2), "assured.7").because


def test_nothing_is_said_where_nothing_is_amiss() -> None:
    result = parse(STARTER).with_(SHORT).run(2)
    for flow in ("assured.0", "assured.3", "assured"):
        found = explain(result, flow)
        assert (found.because, found.causes, found.goal) == ("", (), None)


def test_best_effort_beside_kept_contracts_is_not_called_starved() -> None:
    result = parse(STARTER + BEST_EFFORT).with_(SHORT).run(2)
    assert explain(result, "free.0").because == ""


def test_a_longer_rtt_is_named_where_the_queue_is_fair() -> None:
    rtts = ["20 ms", "20 ms", "20 ms", "200 ms"]
    free = parse(STARTER).with_(SHORT).with_({"flows.assured.rtt": rtts, "links.bottleneck.queue": DROP_TAIL})
    text = free._text.replace('contract = ["200 kbit/s", "400 kbit/s", "600 kbit/s", "800 kbit/s"]', "")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("marker"))
    scenario = Scenario(text, "experiment", free._overrides)
    found = explain(scenario.run(2), "assured.3")
    assert [cause.kind for cause in found.causes] == ["long RTT"]
    assert "of what the others got because its RTT is 200 ms and the others' 20 ms" in found.because
    assert removed(scenario, found, run)[0].mended


def test_two_bounds_have_to_go_together() -> None:
    changes = {
        "flows.assured.join.rate": "250 kbit/s",
        "links.bottleneck.queue": DROP_TAIL,
        "flows.free.count": 20,
    }
    scenario = parse(STARTER + BEST_EFFORT).with_(SHORT).with_(changes)
    found = explain(scenario.run(2), "assured.3")
    assert found.together
    assert {cause.kind for cause in found.causes} == {"access link", "shared queue"}
    assert "; and besides, " in found.because
    (outcome,) = removed(scenario, found, run)
    assert outcome.mended
    for cause in found.causes:
        alone = explain(without(scenario, (cause,)).run(2), "assured.3")
        assert alone.because, f"without {cause.kind} alone it still starves"


def test_the_command_ends_in_the_sentence_and_tries_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong("shared queue").run(2).write(tmp_path / "r")
    with pytest.raises(SystemExit) as ended:
        app(["explain", str(tmp_path / "r"), "--flow", "assured.3"])
    assert ended.value.code == 0
    sentence, hint = capsys.readouterr().out.strip().splitlines()[-2:]
    assert sentence.startswith("assured.3 got ")
    assert hint.startswith(
        "To see it with room of its own in the queue, by colours, add --try, or run it with --set "
    )
    with pytest.raises(SystemExit):
        app(["explain", str(tmp_path / "r"), "--flow", "assured.3", "--try", "--json"])
    made = json.loads(capsys.readouterr().out)
    assert made["because"] == sentence
    assert made["tried"][0]["mended"]
    with pytest.raises(SystemExit):
        app(["explain", str(tmp_path / "r"), "--flow", "assured.3", "--try"])
    assert "% of the gap closed." in capsys.readouterr().out.strip().splitlines()[-1]
    with pytest.raises(SystemExit):
        app(["explain", str(tmp_path / "r"), "--flow", "assured.0", "--try"])
    assert "nothing was run again for assured.0: it got what it should." in capsys.readouterr().err


def test_run_offers_to_explain_the_flow_that_fell_shortest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(STARTER)
    queue = 'links.bottleneck.queue={aqm = "drop_tail", limit = "40 packets"}'
    with pytest.raises(SystemExit):
        app(
            ["run", str(tmp_path / "mine.toml"), "--seeds", "1", "--set", queue, "--out", str(tmp_path / "r")]
        )
    assert capsys.readouterr().out.strip().endswith("--flow assured.3")


def test_the_drawn_cases_are_the_same_every_time_and_can_run() -> None:
    first, again = ([s.canonical for s in itertools.islice(causes.drawn(35), 30)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 30
    assert next(causes.drawn(36)).canonical not in first


def test_explain_says_in_words_and_a_picture_why(starter: Path) -> None:
    out, err = inprofile_("explain", "r", "--flow", "assured.3", cwd=starter)
    assert err == ""
    assert out.startswith("assured.3, 3 seeds\n")
    assert "Its contract is 800 kbit/s; it got" in out
    assert re.search(r"^  delivered +█{40} 9\d\.\d % +\d+", out, re.MULTILINE)
    assert "Congestion window of seed 1" in out
    assert inprofile_("explain", "r", "--flow", "3", cwd=starter)[0] == out


def test_explain_as_json_accounts_for_every_packet(starter: Path) -> None:
    found: dict[str, Any] = json.loads(inprofile_("explain", "r", "--flow", "0", "--json", cwd=starter)[0])
    assert found["flow"] == "assured.0"
    assert sum(part["share"] for part in found["packets"]) == pytest.approx(1)
    assert len(found["findings"]) >= 4


def test_explain_of_a_file_runs_it_and_has_the_figures_behind_losses(starter: Path) -> None:
    out = inprofile_("explain", "e.toml", *BRIEF, "--flow", "3", cwd=starter)[0]
    assert out.startswith("assured.3, seed 1\n")
    assert "Values behind its losses" in out
    assert re.search(r"bottleneck, early: avg \d", out)
