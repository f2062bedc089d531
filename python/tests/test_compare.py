"""Comparing schemes: how they are put on experiments, equal delay, who wins, and the command as a whole."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inprofile import parse
from inprofile.cli import app
from inprofile.experiment.mechanisms import senders
from inprofile.metrics.measures import Measures
from inprofile.studies.compare import schemes as entries
from inprofile.studies.compare.advice import Advice, advice
from inprofile.studies.compare.comparison import Comparison
from inprofile.studies.compare.frontier import MATCHED, Frontier, common_delays, rank
from inprofile.studies.compare.measure import measure
from inprofile.studies.compare.run import outcome, plan
from inprofile.studies.compare.schemes import Place, about, choose, lengths

OWN = """
title = "Two groups"
duration = "6 s"
measure = { from = "2 s" }
seeds = 2
[[links]]
name = "slow"
from = "a"
to = "b"
rate = "4 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "40 packets" }
[[flows]]
name = "bought"
count = 2
from = "H*"
join = { node = "a", rate = "100 Mbit/s" }
to = "b"
rtt = "30 ms"
contract = ["500 kbit/s", "1 Mbit/s"]
[[flows]]
name = "rest"
from = "H*"
join = { node = "a", rate = "100 Mbit/s" }
to = "b"
rtt = "30 ms"
"""
FREE = "\n".join(line for line in OWN.splitlines() if not line.startswith("contract"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "free.toml").write_text(FREE)
    return tmp_path


def test_every_scheme_can_be_put_on_every_experiment_with_every_setting() -> None:
    made = plan()
    assert [s.id for s in made.schemes] == [s["id"] for s in about()["schemes"]]
    assert len(made.studies) == len(about()["experiments"]) * (len(about()["tcp"]) + len(senders()))
    budgets = set()
    for study in made.studies:
        for scheme in made.schemes:
            digests = {study.scenario.with_(scheme.values(study.place, t)).canonical for t in study.lengths}
            budgets.add(len(digests))
    assert budgets == {about()["tuning"]["settings"]}, "every scheme has as many different settings"


def test_a_length_is_that_many_packets_at_the_links_rate() -> None:
    scenario = parse(OWN)
    place = Place.of(scenario)
    assert (place.link, place.node, place.contracted, place.free) == ("slow", "a", ("bought",), ("rest",))
    assert place.packet_time == pytest.approx(1500 * 8 / 4e6)
    (ard,) = choose(["ard"])
    effective = scenario.with_(ard.values(place, 0.060)).check().effective
    queue = next(link for link in effective["links"] if link["name"] == "slow")["queue"]
    assert queue["limit"]["packets"] == pytest.approx(80)  # 4 T, of 20 packets
    assert queue["out"]["max_th"]["packets"] == pytest.approx(20)
    assert queue["in"]["max_th"]["packets"] == pytest.approx(40)
    assert effective["edges"][0]["marker"]["tpr_max"] == "4 Mbit/s"
    assert [g["marker"]["kind"] for g in effective["flows"]] == ["token_bucket", "colour"]


def test_what_the_edge_tells_reaches_the_queue() -> None:
    scenario = parse(OWN)
    (twam,) = choose(["twam-dwred"])
    made = scenario.with_(twam.values(Place.of(scenario), 0.06))
    assert [(s["from"], s["to"]) for s in made.check().effective["signals"]] == [("a", "slow")]
    assert not [w for w in made.warnings if "signal" in w.problem]


def test_a_slow_link_starts_at_five_packets() -> None:
    place = Place.of(parse(OWN.replace("4 Mbit/s", "400 kbit/s")))
    made = lengths(place)
    assert made[0] == pytest.approx(5 * 0.030)
    assert [b / a for a, b in itertools.pairwise(made)] == pytest.approx([2] * 5)
    assert lengths(place, quick=True) == made[1::2]


def test_measures_by_hand() -> None:
    result = parse(OWN).with_({"flows.bought.marker": {"kind": "token_bucket", "depth": "4 packets"}}).run(2)
    found = measure(result)
    flows = [r for r in result.flows.to_pylist() if r["seed"] == 2]
    shares = [r["throughput"] / r["contract"] for r in flows[:2]]
    queue = next(r for r in result.queues.to_pylist() if (r["seed"], r["queue"]) == (2, "slow"))
    assert found["met"][1] == sum(x >= 0.98 for x in shares) / 2
    assert found["kept"][1] == pytest.approx(sum(min(1, x) for x in shares) / 2)
    assert found["worst"][1] == pytest.approx(min(1, *shares))
    over = [max(0, r["throughput"] - r["contract"]) for r in flows[:2]]
    assert found["excess"][1] == pytest.approx(sum(over) / (sum(over) + flows[2]["throughput"]))
    assert found["fairness"][1] == pytest.approx(sum(shares) ** 2 / (2 * sum(x * x for x in shares)))
    assert found["best_effort"][1] == pytest.approx(flows[2]["throughput"] / 4e6, rel=1e-3)
    assert found["loss_in"][1] == pytest.approx(queue["dropped_in"] / queue["arrived_in"])
    assert "loss_edge" not in found.values


def test_without_contracts_fairness_is_of_rates_and_nothing_is_kept() -> None:
    result = parse(FREE).run(1)
    found = measure(result)
    rates = [r["throughput"] for r in result.flows.to_pylist()]
    assert found["fairness"][0] == pytest.approx(sum(rates) ** 2 / (3 * sum(x * x for x in rates)))
    assert not {"met", "kept", "worst", "excess", "best_effort"} & set(found.values)


def points(delays: list[float], kept: list[list[float]]) -> Frontier:
    """A frontier of which every seed has the same delays; `kept` by setting, then seed."""
    made = []
    for delay, values in zip(delays, kept, strict=True):
        seeds = tuple(range(1, len(values) + 1))
        of = {"delay": np.full(len(values), delay), "kept": np.array(values)}
        made.append(Measures(seeds, of, {}))
    return Frontier(delays, made)


def test_equal_delay_is_interpolated_seed_by_seed_in_the_order_of_delays() -> None:
    # The second setting has the least delay: a frontier needn't follow its settings.
    f = points([0.04, 0.01, 0.16], [[0.5, 0.0], [0.3, 1.0], [0.9, 0.2]])
    assert f.reach == (0.01, 0.16)
    assert f.at(np.array([0.02]), "kept") == pytest.approx([0.4, 0.5])
    assert f.at(np.array([0.01, 0.04, 0.16]), "kept") == pytest.approx([1.7 / 3, 0.4])
    with pytest.raises(ValueError, match="are not inside"):
        f.at(np.array([0.02, 0.17]), "kept")


def test_the_range_compared_is_the_one_that_most_reach() -> None:
    delays, reaching = common_delays({"a": (1, 10), "b": (2, 20), "c": (3, 9), "d": (15, 30)})
    assert reaching == ["a", "b", "c"]
    assert (delays[0], delays[-1], len(delays)) == (pytest.approx(3), pytest.approx(9), MATCHED)
    assert common_delays({"a": (1, 2), "b": (3, 4)})[1] == []
    # What one seed reaches and another doesn't is no range.
    assert common_delays({"a": (5, 3), "b": (1, 10), "c": (2, 8)})[1] == ["b", "c"]


def test_the_winner_and_who_cannot_be_told_from_it() -> None:
    kept = {
        "worse": [0.80, 0.80, 0.79, 0.82, 0.81],
        "best": [0.95, 0.96, 0.94, 0.97, 0.95],
        "alike": [0.96, 0.93, 0.95, 0.94, 0.96],
    }
    found = rank({"kept": kept, "lost": kept}, {"kept": True, "lost": False}, range(1, 6))
    assert (found["kept"].order, found["kept"].alike) == (["best", "alike", "worse"], ["alike"])
    assert found["kept"].differences["worse"].difference.mean == pytest.approx(0.15)
    assert (found["lost"].best, found["lost"].alike) == ("worse", [])


def test_holms_correction_runs_over_all_measures_of_a_study() -> None:
    rng = np.random.default_rng(5)
    near = {
        "a": (1 + 0.1 * rng.standard_normal(6)).tolist(),
        "b": (0.87 + 0.1 * rng.standard_normal(6)).tolist(),
    }
    alone = rank({"x": near}, {"x": True}, range(6))["x"]
    many = rank(
        {f"x{i}": near for i in range(10)}, dict.fromkeys([f"x{i}" for i in range(10)], True), range(6)
    )
    p = alone.p_holm[alone.order[1]]
    assert p < 0.5
    assert many["x0"].p_holm[alone.order[1]] == pytest.approx(min(1, 10 * p))


def test_equals_are_not_told_apart_and_one_seed_tells_nothing() -> None:
    found = rank({"met": {"a": [1.0, 1.0], "b": [1.0, 1.0]}}, {"met": True}, [1, 2])["met"]
    assert (found.best, found.alike) == ("a", ["b"])
    found = rank({"met": {"a": [0.1], "b": [1.0]}}, {"met": True}, [1])["met"]
    assert (found.best, found.alike) == ("b", ["a"])


def test_a_scheme_without_a_point_at_the_common_delays_is_not_ranked() -> None:
    study = plan(quick=True, schemes=["red", "rio", "ard"]).studies[0]
    made = {}
    for scheme, scale in (("red", 1.0), ("rio", 1.1), ("ard", 1000.0)):
        for i, t in enumerate(study.lengths):
            of = {"delay": scale * t * np.ones(3), "kept": np.array([0.5, 0.6, 0.7]) + 0.01 * i}
            made[scheme, t] = Measures(
                (1, 2, 3), {**of, "utilisation": of["kept"], "fairness": of["kept"]}, {}
            )
    one = outcome(study, ["red", "rio", "ard"], made, dict.fromkeys(made, "0"))
    assert one.reaching == ["red", "rio"]
    assert set(one.rankings["kept"].values) == {"red", "rio"}
    assert "met" not in one.rankings


def advised(best_effort: dict[str, list[float]], **more: list[float]) -> Advice:
    """The advice where three schemes keep as much as each other, and a fourth less; or as `more` says."""
    made = plan(quick=True, schemes=["red", "rio", "rio-plus-out", "ard"])
    study = next(s for s in made.studies if s.experiment == "unequal-contracts")
    kept = {
        "red": [0.50, 0.52, 0.51, 0.49, 0.50, 0.51],
        "rio": [0.980, 0.991, 0.985, 0.988, 0.983, 0.990],
        "rio-plus-out": [0.981, 0.990, 0.986, 0.987, 0.984, 0.989],
        "ard": [0.982, 0.989, 0.984, 0.989, 0.982, 0.991],
        **more,
    }
    points = {
        (s, t): Measures(
            tuple(range(1, 7)),
            {"delay": t * np.ones(6), "kept": np.array(kept[s]), "best_effort": np.array(best_effort[s])},
            {},
        )
        for s in kept
        for t in study.lengths
    }
    one = outcome(study, list(kept), points, dict.fromkeys(points, "0"))
    (row,) = advice(Comparison(made, [one]))
    return row


#: Best effort's part: three that are shown to leave as much as each other, to within the margin.
LEFT = {
    "red": [0.30] * 6,
    "rio": [0.200, 0.201, 0.199, 0.200, 0.202, 0.198],
    "rio-plus-out": [0.201, 0.200, 0.200, 0.199, 0.201, 0.199],
    "ard": [0.200, 0.200, 0.200, 0.201, 0.200, 0.199],
}


def test_advice_names_all_that_are_shown_to_be_as_good() -> None:
    tied = advised(LEFT)
    assert [u["scheme"] for u in tied["use"]] == ["RIO", "RI+O", "ARD"], "in the order of the schemes' file"
    assert tied["costlier"] == tied["undecided"] == []
    assert (tied["margin"], tied["margin_best_effort"]) == (0.02, 0.01)
    assert all(u["less"]["ci95"] and u["less"]["ci95"][1] < tied["margin"] for u in tied["use"])
    assert all(u["value"]["ci95"] and u["best_effort"]["ci95"] for u in tied["use"])
    assert tied["best_effort_most"] is not None
    assert tied["best_effort_most"]["scheme"] == "RED"
    assert tied["last"]["scheme"] == "RED"


def test_what_is_merely_not_shown_to_be_worse_is_not_advised() -> None:
    """A spread so large that nothing is significant is no evidence that a scheme is as good."""
    loose = advised(LEFT, ard=[0.999, 0.900, 0.995, 0.990, 0.920, 0.999])
    assert [u["scheme"] for u in loose["use"]] == ["RIO", "RI+O"]
    assert [u["scheme"] for u in loose["undecided"]] == ["ARD"]
    assert loose["costlier"] == []
    unsure = advised({**LEFT, "ard": [0.22, 0.17, 0.23, 0.18, 0.21, 0.18]})
    assert [u["scheme"] for u in unsure["use"]] == ["RIO", "RI+O"]
    assert [u["scheme"] for u in unsure["costlier"]] == ["ARD"]


def test_advice_prefers_what_leaves_best_effort_more() -> None:
    apart = advised({**LEFT, "ard": [0.11, 0.10, 0.10, 0.11, 0.09, 0.10]})
    assert [u["scheme"] for u in apart["use"]] == ["RIO", "RI+O"]
    assert [u["scheme"] for u in apart["costlier"]] == ["ARD"]


def test_an_unknown_scheme_is_refused_with_the_nearest(folder: Path) -> None:
    answer = CliRunner().invoke(app, ["compare", "--schemes", "rio,fddred"])
    assert answer.exit_code == 2
    assert 'there is no scheme "fddred": did you mean "fdd-red"?' in answer.stderr
    answer = CliRunner().invoke(app, ["compare", "--schemes", " , "])
    assert (answer.exit_code, "--schemes is empty" in answer.stderr) == (2, True)


def test_a_file_without_contracts_is_refused_by_schemes_that_need_them(folder: Path) -> None:
    answer = CliRunner().invoke(app, ["compare", "free.toml", "--schemes", "red,rio,ard", "--json"])
    assert answer.exit_code == 2
    error = json.loads(answer.stdout)["error"]
    assert error.startswith(
        "free.toml: no flow that crosses the measured link has a contract, and RIO, ARD mark"
    )
    assert "--schemes drop-tail,red,probe,fdd-red" in error
    assert (
        CliRunner().invoke(app, ["compare", "free.toml", "--schemes", "red,probe", "--plan"]).exit_code == 0
    )


def test_a_file_that_is_missing_or_wrong_is_refused(folder: Path) -> None:
    assert "none.toml" in CliRunner().invoke(app, ["compare", "none.toml"]).stderr
    (folder / "bad.toml").write_text(OWN.replace('"4 Mbit/s"', '"4 Mbit"'))
    answer = CliRunner().invoke(app, ["compare", "bad.toml"])
    assert (answer.exit_code, "bad.toml:10" in answer.stderr) == (2, True)


def test_a_value_of_ones_own_file_is_overridden(folder: Path) -> None:
    command = ["compare", "own.toml", "--schemes", "red", "--set"]
    answer = CliRunner().invoke(app, [*command, "seeds=5", "--plan", "--json"])
    assert json.loads(answer.stdout)["runs"] == 6 * 5
    wrong = CliRunner().invoke(app, [*command, "links.slow.rate=4 Mbit"])
    assert (wrong.exit_code, "links.slow.rate = 4 Mbit" in wrong.stderr) == (2, True), wrong.stderr
    without = CliRunner().invoke(app, ["compare", "--set", "seeds=5"])
    assert (without.exit_code, "name the experiment file" in without.stderr) == (2, True)


def test_plan_runs_nothing(folder: Path) -> None:
    answer = CliRunner().invoke(app, ["compare", "own.toml", "--schemes", "red,rio", "--plan", "--json"])
    assert json.loads(answer.stdout)["runs"] == 2 * 6 * 2
    assert sorted(p.name for p in folder.iterdir()) == ["free.toml", "own.toml"]


def test_from_the_command_to_the_page_the_same_on_one_thread_and_two(folder: Path) -> None:
    runner = CliRunner()
    pages = {}
    for jobs in ("1", "2"):
        command = ["compare", "own.toml", "--quick", "--jobs", jobs, "--out", f"out-{jobs}", "--json"]
        answer = runner.invoke(app, command)
        assert answer.exit_code == 0, answer.stderr
        made = folder / f"out-{jobs}"
        pages[jobs] = answer.stdout, *(p.read_bytes() for p in sorted(made.rglob("*")) if p.is_file())
        if jobs == "1":
            kept = folder / "results" / "cache" / "compare"
            assert len(list(kept.glob("*.npz"))) == 45
            for place in kept.iterdir():
                place.unlink()
    assert pages["1"] == pages["2"]
    found = json.loads(pages["1"][0])
    (study,) = found["studies"]
    assert len(study["frontiers"]) == 15 * 3
    assert set(study["winners"]) == {"met", "kept", "fairness", "utilisation"}
    assert set(study["winners"]["kept"]["differences"]) < {s["id"] for s in found["schemes"]}
    [advised] = json.loads((folder / "out-1" / "compare" / "results.json").read_text("utf-8"))["advice"]
    kept = study["winners"]["kept"]
    titles = {s["id"]: s["title"] for s in found["schemes"]}
    first = {titles[s] for s in (kept["best"], *kept["alike"])}
    used, costlier, undecided = (
        [u["scheme"] for u in advised[key]] for key in ("use", "costlier", "undecided")
    )
    assert titles[kept["best"]] in [*used, *costlier]
    assert set(undecided) <= first <= {*used, *costlier, *undecided}
    for entry in [*advised["use"], *advised["costlier"]]:
        assert entry["best_effort"]["ci95"] is not None
        assert entry["value"]["ci95"] is not None
    page = (folder / "out-1" / "compare" / "index.html").read_text("utf-8")
    assert "Two groups" in page
    assert "http://" not in page.replace("http://www.w3.org", "").split('<script type="application/json"')[0]
    assert 'href="compare/index.html"' in (folder / "out-1" / "index.html").read_text("utf-8")


def test_interrupted_it_says_how_to_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **options: object) -> None:
        options["progress"](5)  # type: ignore[operator]
        raise KeyboardInterrupt

    monkeypatch.setattr("inprofile.studies.compare.run.measure_all", stopped)
    answer = CliRunner().invoke(app, ["compare", "own.toml", "--schemes", "red,rio"])
    assert answer.exit_code == 130
    assert "Interrupted after 5 of 24 runs" in answer.stderr
    assert not (folder / "reports").exists()


def test_interrupted_at_its_page_it_keeps_the_earlier_one_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", "own.toml", "--quick", "--schemes", "red,rio"]
    assert CliRunner().invoke(app, command).exit_code == 0
    before = {p: p.read_bytes() for p in (folder / "reports").rglob("*") if p.is_file()}

    def stopped(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("inprofile.studies.compare.page.render", stopped)
    assert CliRunner().invoke(app, [*command[:-1], "red,ard"]).exit_code == 130
    assert {p: p.read_bytes() for p in (folder / "reports").rglob("*") if p.is_file()} == before


def test_every_scheme_says_what_it_is() -> None:
    assert all(len(s["text"]) > 20 for s in about()["schemes"])
    assert len({s.title for s in choose()}) == len(choose()) == 15
    with pytest.raises(entries.UnknownSchemeError, match='no scheme "zzz": Choose from drop-tail'):
        choose(["zzz"])
