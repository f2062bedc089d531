"""Plans of fast links: settings are looked for on a smaller network, and tested on the network itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inprofile import Scenario, parse
from inprofile.run.pool import Local
from inprofile.studies.plan import Question, contracts, plan
from inprofile.studies.plan.contracts import CHOSEN, expected_runs
from inprofile.studies.plan.question import question_of
from inprofile.studies.plan.search import LEVEL, SAFEST, Confirmed, Tried, confirmation, measured, runs_of
from inprofile.studies.plan.store import Bench
from inprofile.studies.plan.variants import scale_of, smaller
from inprofile.studies.plan.words import as_text

FILE = """\
title = "Many customers"
duration = "12 s"
measure = { from = "4 s", to = "12 s" }
tcp = { profile = "linux" }

[[links]]
name = "uplink"
from = "edge"
to = "core"
rate = "40 Mbit/s"
delay = "2 ms"
queue = { aqm = "drop_tail", limit = "400 packets" }

[[flows]]
name = "gold"
count = 16
from = "H*"
join = { node = "edge", rate = "100 Mbit/s" }
to = "core"
rtt = "15..60 ms"
start = "uniform 0..1 s"
contract = "1 Mbit/s"

[[flows]]
name = "free"
count = 16
from = "H*"
join = { node = "edge", rate = "100 Mbit/s" }
to = "core"
rtt = "20..40 ms"
start = "uniform 0..1 s"

[plan]
kept = "80 %"
best_effort = "5 %"
schemes = ["drop-tail", "rio"]
"""
SETTINGS = {
    "T": 0.03,
    "flows.depth": 0.3,
    "flows.rate": 1.05,
    "queue.out.*_th": 0.4,
    "queue.out.max_p": 0.1,
    "queue.w_q": 0.002,
}


@pytest.fixture(scope="module")
def question() -> Question:
    return question_of(parse(FILE))


def test_the_smaller_network_is_the_networks_with_fewer_flows(question: Question) -> None:
    small = smaller(question, 4)
    effective = small.scenario.check().effective
    assert [g["count"] for g in effective["flows"]] == [4, 4]
    assert small.scale == 4
    assert small.bought / small.link_rate == question.bought / question.link_rate
    link = next(one for one in effective["links"] if one["name"] == "uplink")
    assert (link["rate"], link["queue"]["limit"]["packets"]) == ("10 Mbit/s", 100)
    assert link["queue"]["limit"]["ms"] == 120, "the buffer in time"
    rtts = [float(x.split()[0]) for x in effective["flows"][0]["rtt"]]
    assert rtts == pytest.approx([21, 33, 45, 57]), "from all of the range"
    rio = next(s for s in question.schemes if s.id == "rio")
    queues = [
        next(one for one in q.put(rio, SETTINGS).check().effective["links"] if one["name"] == "uplink")[
            "queue"
        ]
        for q in (question, small)
    ]
    assert queues[0]["in"]["min_th"]["ms"] == pytest.approx(queues[1]["in"]["min_th"]["ms"]), "T is a time"
    assert queues[1]["w_q"] == pytest.approx(1 - (1 - 0.002) ** 4)


def test_the_smaller_network_says_what_the_network_says(question: Question) -> None:
    bench = Bench(question.scenario, None, Local(), lambda _: None)
    rio = next(s for s in question.schemes if s.id == "rio")
    seen = {}
    for name, changed in (("kept", {}), ("lower", {"flows.rate": 0.8}), ("long", {"T": 0.06})):
        settings = {**SETTINGS, **changed}
        pair = [
            runs_of(q, bench, [(q.put(rio, settings), range(1, 9))])[0]
            for q in (question, smaller(question, 4))
        ]
        whole, small = ({n: float(np.mean(r[n])) for n in r.values} for r in pair)
        assert small["best_effort"] == pytest.approx(whole["best_effort"], rel=0.12), name
        assert small["delay_mean"] == pytest.approx(whole["delay_mean"], rel=0.15), name
        # The least of four is above the least of sixteen: what is found is tested on the network itself.
        assert (
            whole["assurance_worst"] - 0.05 <= small["assurance_worst"] <= whole["assurance_worst"] + 0.2
        ), name
        seen[name] = (pair[0].kept, pair[1].kept)
    assert seen["kept"] == (8, 8)


def test_the_promise_is_shown_on_the_network_itself(question: Question) -> None:
    told: list[str] = []
    answer = plan(question, trials=6, scale=4, progress=told.append)
    chosen = answer.chosen
    assert chosen is not None
    assert chosen.level == SAFEST[len(answer.tested) - 1], "the safest has most of the level"
    assert sum(SAFEST) == pytest.approx(LEVEL)
    assert len(chosen.runs.seeds) == confirmation(0.8, chosen.level)[0]
    again = answer.experiment().run(seeds=chosen.runs.seeds[:2])
    assert again.contracts.by_run()["best_effort"].tolist() == chosen.runs["best_effort"].tolist()[:2]
    assert answer.experiment().check().effective["flows"][0]["count"] == 16
    assert len(chosen.tried.runs.seeds) == len(CHOSEN), "chosen by runs of the network"
    assert "settings are looked for on a network with one in 4 flows" in told
    assert [r.more for r in answer.room][:1] == [4]
    text = as_text(answer)
    assert "4 more in gold" in text
    assert "Runs of a network with one in 4 flows" in text
    assert answer.question.scenario.flows == 32


def test_only_long_runs_are_made_smaller_and_only_what_can_be(question: Question) -> None:
    assert scale_of(question) == 1, "a run is short"
    fast = {"links.uplink.rate": "1 Gbit/s"}

    def of(**values: object) -> int:
        named = {key.replace("__", "."): x for key, x in values.items()}
        return scale_of(question_of(Scenario(FILE).with_({**fast, **named})))

    assert of() == 4
    assert of(flows__gold__count=60, flows__free__count=20) == 5
    assert of(flows__free__count=3) == 1, "three flows have no quarter"
    assert of(links__uplink__capacity={"steps": [{"at": "2 s", "rate": "10 Mbit/s"}]}) == 1
    runs, packets = expected_runs(question_of(Scenario(FILE).with_(fast)))
    whole, all_packets = expected_runs(question_of(Scenario(FILE).with_(fast)), scale=1)
    assert packets < all_packets / 2
    assert runs > 0
    assert whole == 2 * 24 * 6 + 8 * 40 + 300 + 400


def test_what_fails_on_fresh_seeds_is_held_against_it_and_the_search_goes_on(
    question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first candidate fails whatever its runs say; there is another one that meets the goal."""
    rio = next(s for s in question.schemes if s.id == "rio")
    seen: list[Tried] = []

    def test(q: Question, bench: Bench, one: Tried, number: int, level: float, tell: object) -> Confirmed:
        seen.append(one)
        fresh = bench.run([(q.put(one.scheme, one.settings), range(1, 4))])[0]
        kept = fresh["all_contracts_kept"] * (number > 0)
        return Confirmed(
            one, replace(fresh, values={**fresh.values, "all_contracts_kept": kept}), 3, 0, number > 0
        )

    monkeypatch.setattr(contracts, "confirmed", test)
    bench = Bench(question.scenario, None, Local(), lambda _: None)
    small = smaller(question, 4)
    found = measured(small, bench, [(rio, SETTINGS)])
    told: list[str] = []
    tested, made = contracts._on_the_network(question, bench, found, told.append)
    assert [one.met for one in tested] == [False, True]
    assert seen[0].settings == SETTINGS
    assert seen[1].settings != SETTINGS
    assert any("steps from it" in line for line in told)
    failed = next(t for t in made if t.settings == SETTINGS)
    assert failed.runs.seeds == (*CHOSEN, 1, 2, 3), "the runs of the test are held against it"
