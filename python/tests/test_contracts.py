"""How well contracts are kept: by hand, by flow, group and experiment."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import inprofile
from inprofile.cli import app
from inprofile.metrics.contracts import BY_RUN, Contracts, figure_over_runs, shares_of_runs
from inprofile.metrics.response import cubic, law_of, mathis
from inprofile.studies.explain import explain
from inprofile.studies.sweep.result import RunsOf
from made import flow, result


def rows(rates: dict[str, list[float]], **more: dict[str, object]) -> list[dict[str, object]]:
    """Flows by name with a rate a seed; `more` by group."""
    return [
        flow(seed, name, rate, **more.get(name.partition(".")[0], {}))
        for seed in range(1, 1 + len(next(iter(rates.values()))))
        for name, values in rates.items()
        for rate in [values[seed - 1]]
    ]


THREE = result(
    rows(
        {
            "gold.0": [300e3, 250e3, 200e3, 260e3],
            "gold.1": [250e3, 260e3, 250e3, 275e3],
            "iron.0": [150e3, 90e3, 120e3, 130e3],
            "rest.0": [40e3, 50e3, 60e3, 20e3],
        },
        iron={"contract": 100e3},
        rest={"contract": None},
    )
)


def test_kept_by_group_flow_and_experiment() -> None:
    found = Contracts(THREE)
    gold, iron = found.groups
    assert (gold.name, gold.flows, gold.contract) == ("gold", 2, 500e3)
    # A contract reached exactly is kept: both, both, one of two, both.
    assert gold.kept.mean == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert (gold.whole_runs, gold.runs) == (3, 4)
    assert gold.worst == pytest.approx(0.8)
    assert (gold.worst_flow, gold.worst_seed) == ("gold.0", 3)
    assert gold.assurance.mean == pytest.approx((1.1 + 1.02 + 0.9 + 1.07) / 4)
    assert gold.excess.mean == pytest.approx((50e3 + 10e3 + 0 + 35e3) / 4)
    assert (iron.whole_runs, iron.worst, iron.worst_seed) == (3, pytest.approx(0.9), 2)
    total = found.total
    # Runs 1 and 4 kept all three.
    assert (total.flows, total.contract, total.whole_runs) == (3, 600e3, 2)
    assert total.worst_flow == "gold.0"


def test_the_excess_is_split_between_all() -> None:
    found = Contracts(THREE)
    beyond = [[50e3, 10e3, 0.0, 35e3], [50e3, 0.0, 20e3, 30e3], [40e3, 50e3, 60e3, 20e3]]
    gold = [beyond[0][i] / sum(b[i] for b in beyond) for i in range(4)]
    assert found.groups[0].excess_share is not None
    assert found.groups[0].excess_share.mean == pytest.approx(sum(gold) / 4)
    assert found.best_effort is not None
    assert found.best_effort.flows == 1
    assert found.best_effort.throughput.mean == pytest.approx(42.5e3)
    heading, body = found.table()
    assert [row[0] for row in body] == ["gold", "iron", "all contracts", "best effort"]
    shares = [float(row[-1].split()[0]) for row in (body[0], body[1], body[3])]
    assert sum(shares) == pytest.approx(100, abs=1.5)
    assert heading[0] == "contracts"


def test_figures_of_each_run() -> None:
    found = Contracts(THREE).by_run()
    assert list(found) == list(BY_RUN)
    assert found["contracts_kept"].tolist() == pytest.approx([1, 2 / 3, 2 / 3, 1])
    assert found["all_contracts_kept"].tolist() == [1, 0, 0, 1]
    assert found["assurance_worst"].tolist() == pytest.approx([1.0, 0.9, 0.8, 1.04])
    assert found["best_effort"].tolist() == [40e3, 50e3, 60e3, 20e3]
    assert found["excess_share"][0] == pytest.approx(100 / 140)
    assert Contracts(THREE).worst_flows() == ["gold.1", "iron.0", "gold.0", "gold.0"]


def test_figures_of_runs_of_all_sizes_at_once() -> None:
    """Settings differ in their flows; some promise nothing, or sell all that there is."""
    made = [
        rows({"gold.0": [300e3, 200e3], "rest.0": [40e3, 50e3]}, rest={"contract": None}),
        rows({"rest.0": [70e3, 80e3], "rest.1": [1e3, 2e3]}, rest={"contract": None}),
        rows({"gold.0": [250e3, 250e3], "gold.1": [250e3, 240e3], "gold.2": [100e3, 300e3]}),
        rows({"short.0": [9e3, 8e3], "call.0": [64e3, 60e3], "gold.0": [250e3, 1e3]},
             short={"traffic": "transfer"}, call={"traffic": "cbr", "contract": 100e3, "dropped": 0}),
    ]  # fmt: skip
    results = [result(flows) for flows in made]
    tables = [
        r.flows.add_column(0, "setting", pa.array([n] * r.flows.num_rows, pa.uint32()))
        for n, r in enumerate(results)
    ]
    runs = RunsOf.of(pa.concat_tables(tables, promote_options="default"))
    assert list(zip(runs.settings, runs.seeds, strict=True)) == [(n, s) for n in range(4) for s in (1, 2)]
    found = runs.rows.figures(runs.starts)
    for n, r in enumerate(results):
        alone = Contracts(r).by_run()
        for name, values in found.items():
            mine = values[2 * n : 2 * n + 2]
            np.testing.assert_array_equal(mine, alone.get(name, [np.nan, np.nan]), f"{name} of {n}")
    assert np.isnan(found["excess_share"][4]), "three contracts, the excess nobody's"
    with pytest.raises(ValueError, match="no flow has a contract"):
        runs.rows.worst(runs.starts)


def test_shares_of_runs_have_exact_intervals_among_metrics() -> None:
    kept = figure_over_runs("all_contracts_kept", [1.0] * 9 + [0.0])
    assert kept.ci95 == shares_of_runs(9, 10)
    assert figure_over_runs("goodput", [1e6, 2e6]).mean == 1.5e6


def test_a_result_shows_its_contracts() -> None:
    assert "runs, all kept" in repr(THREE)


def test_a_flow_that_all_runs_kept_is_not_certain() -> None:
    kept = Contracts(result(rows({"gold.0": [300e3] * 10}))).flow("gold.0")
    assert kept is not None
    assert kept.kept.mean == 1.0
    assert kept.kept.ci95 is not None
    assert kept.kept.ci95.lo == pytest.approx(0.025 ** (1 / 10))
    assert kept.kept.ci95 == kept.whole


def test_intervals_of_shares_of_runs_are_exact() -> None:
    assert shares_of_runs(0, 10) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
    lo, hi = shares_of_runs(5, 10)
    assert (round(lo, 4), round(hi, 4)) == (0.1871, 0.8129)
    for good in range(11):
        lo, hi = shares_of_runs(good, 10)
        assert 0 <= lo <= good / 10 <= hi <= 1


def test_udp_below_its_contract_keeps_it_where_it_loses_nothing_and_transfers_are_left_out() -> None:
    made = result(
        rows(
            {"voice.0": [100e3, 100e3], "lossy.0": [100e3, 100e3], "web.0": [10e3, 10e3]},
            voice={"traffic": "cbr", "dropped": 0},
            lossy={"traffic": "cbr", "dropped": 3},
            web={"traffic": "transfer"},
        )
    )
    found = Contracts(made)
    assert {g.name: g.kept.mean for g in found.groups} == {"voice": 1.0, "lossy": 0.0}
    assert found.flow("web.0") is None
    # It has a contract: it is no best effort.
    assert found.best_effort is None


def test_without_contracts_there_is_nothing_to_keep() -> None:
    found = Contracts(result(rows({"a.0": [1e5, 2e5]}, a={"contract": None})))
    assert not found
    assert found.to_json()["experiment"] is None
    assert found.best_effort is not None
    with pytest.raises(ValueError, match="no flow has a contract"):
        _ = found.total


def test_everything_is_json() -> None:
    json.dumps([Contracts(THREE).to_json(), *(k and k.to_json() for k in Contracts(THREE).flows())])


def test_ten_thousand_flows_take_no_time() -> None:
    many = result(rows({f"a.{i}": [250e3 + i, 250e3 - i] for i in range(3000)}))
    found = Contracts(many)
    assert sum(1 for k in found.flows() if k is not None and k.whole_runs == 2) == 1
    assert found.groups[0].flows == 3000


# the commands


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    return tmp_path


SET = ["--set", 'duration="20 s"', "--set", 'measure.from="5 s"']
SHORT = [*SET, "--seeds", "3"]


def test_run_shows_contracts_and_groups_instead_of_many_flows(folder: Path) -> None:
    out = CliRunner().invoke(app, ["run", "e.toml", *SHORT]).stdout
    assert "Contracts: 4, together 2 Mbit/s of 3 Mbit/s at bottleneck (67 %).\nAll kept in " in out
    assert "assured.3" in out
    many = [*SHORT, "--set", "flows.assured.count=20", "--set", 'flows.assured.contract="100 kbit/s"']
    out = CliRunner().invoke(app, ["run", "e.toml", *many]).stdout
    assert "20 flows in groups; every flow: --flows, or --json." in out
    assert "assured.13 " not in out
    assert "assured.13 " in CliRunner().invoke(app, ["run", "e.toml", *many, "--flows"]).stdout


def test_the_answer_of_very_many_flows_has_their_groups(folder: Path) -> None:
    many = ["--set", 'duration="1 s"', "--set", 'measure.from="0 s"', "--set", 'flows.assured.start="0 s"']
    many += [
        "--set",
        'flows.assured.contract="1 kbit/s"',
        "--set",
        "flows.assured.count=1001",
        "--seeds",
        "1",
    ]
    answer = CliRunner().invoke(app, ["run", "e.toml", *many, "--json"])
    found = json.loads(answer.stdout)
    assert found["flows"] is None
    assert [(group["group"], group["flows"]) for group in found["groups"]] == [("assured", 1001)]
    assert "1,001 flows: the answer has their groups" in answer.stderr
    found = json.loads(CliRunner().invoke(app, ["run", "e.toml", *many, "--json", "--flows"]).stdout)
    assert [flow["flow"] for flow in found["flows"]] == [f"assured.{i}" for i in range(1001)]


def test_warnings_of_check_appear_in_run_and_its_json(folder: Path) -> None:
    odd = [*SHORT, "--set", 'flows.assured.contract="2 Mbit/s"']
    answer = CliRunner().invoke(app, ["run", "e.toml", *odd, "--json"])
    found = json.loads(answer.stdout)
    checked = json.loads(CliRunner().invoke(app, ["check", "e.toml", *SET, *odd[-2:], "--json"]).stdout)
    assert found["warnings"]
    assert [w["problem"] for w in found["warnings"]] == [w["problem"] for w in checked["warnings"]]
    assert "warning" in answer.stderr
    assert found["warnings"][0]["problem"] in answer.stderr


# response functions


def test_cubics_law_is_renos_at_short_round_trips_and_its_own_at_long_ones() -> None:
    assert cubic(0.01, 0.01) == mathis(0.01, 0.01)
    # RFC 9438 §5.1: 1.054·(RTT/p)^¾ / RTT.
    assert cubic(1e-5, 0.2) == pytest.approx(1.0538 * (0.2 / 1e-5) ** 0.75 / 0.2, rel=1e-3)
    # Its own law: a fourth root of the round-trip time, three quarters of the loss rate.
    assert cubic(1e-6, 0.1) / cubic(1e-6, 0.2) == pytest.approx(2**0.25)
    assert cubic(1e-6, 0.1) / cubic(2e-6, 0.1) == pytest.approx(2**0.75)
    assert mathis(0.02, 0.1) / mathis(0.02, 0.2) == pytest.approx(2)
    assert (law_of("cubic").rate, law_of("sack").rate) == (cubic, mathis)


def test_explain_uses_the_law_of_the_tcp_at_hand() -> None:
    flows = rows({"tcp.0": [300e3] * 3, "tcp.1": [300e3] * 3})
    for row in flows:
        row["dropped"] = 4 if row["flow"] == "tcp.0" else 2
        row["sent"] = 2_000_000
    for kind, name, factor in (
        ("reno", "the Mathis model", math.sqrt(0.5)),
        ("cubic", "CUBIC's response function (RFC 9438 §5.1)", 0.5**0.75),
    ):
        made = result(flows)
        made.provenance.effective["flows"] = [{"name": "tcp", "tcp": {"congestion": kind}}]  # type: ignore[index]
        said = explain(made, "tcp.0").findings[-1]
        assert said.startswith(f"By {name}")
        assert f"a factor of {factor:.3f}" in said


def test_flows_of_different_tcps_are_not_compared_by_a_law() -> None:
    flows = rows({"new.0": [300e3] * 3, "old.0": [300e3] * 3})
    made = result(flows)
    made.provenance.effective["flows"] = [  # type: ignore[index]
        {"name": "new", "tcp": {"congestion": "cubic"}},
        {"name": "old", "tcp": {"congestion": "reno"}},
    ]
    assert explain(made, "new.0").findings[-1] == (
        "It and the others use different congestion controls (cubic, reno): no law compares them."
    )
