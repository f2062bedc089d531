"""Experiments in Python: varied, run, cached, explained; and the compiled part wrapped whole."""

import ast
import inspect
import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inprofile
from inprofile import STARTER, _internal
from inprofile._input import seeds_in_order
from inprofile.experiment.scenario import Scenario, toml
from inprofile.metrics.measures import Measures, rows
from inprofile.run import experiments, storage
from inprofile.run.experiments import Experiment, measure_all, run_all, run_many
from inprofile.run.pool import Local, threads
from inprofile.studies.explain import UnknownFlow, explain
from made import flow, result

SHORT = inprofile.parse(STARTER).with_(duration="25 s")


# varying


def test_variants_leave_the_original_as_it_was() -> None:
    base = inprofile.parse(STARTER)
    before = base.canonical
    faster = base.set("links.bottleneck.rate", "4 Mbit/s")
    assert faster.check().effective["links"][0]["rate"] == "4 Mbit/s"
    assert base.canonical == before != faster.canonical
    assert faster.set("links.bottleneck.rate", "3 Mbit/s").canonical == before


def test_keywords_and_dotted_keys_say_the_same() -> None:
    base = inprofile.parse(STARTER)
    dotted = base.with_({"links.bottleneck.queue.limit": "50 packets"}, seeds=3)
    words = base.with_(links__bottleneck__queue__limit="50 packets", seeds=3)
    assert dotted.canonical == words.canonical != base.canonical
    assert dotted.seeds == words.seeds == range(1, 4)


def test_a_list_a_table_and_a_flag_can_be_set() -> None:
    varied = SHORT.with_(
        {
            "flows.assured.rtt": ["20 ms", "30 ms", "40 ms", "50 ms"],
            "links.bottleneck.queue": {"aqm": "red", "limit": "60 packets", "min_th": "10 packets",
                                       "max_th": "30 packets", "max_p": 0.1, "gentle": True},
        }
    )  # fmt: skip
    effective = varied.check().effective
    assert effective["flows"][0]["rtt"] == ["20 ms", "30 ms", "40 ms", "50 ms"]
    assert effective["links"][0]["queue"]["gentle"] is True


def test_text_stays_text_even_where_it_looks_like_a_number() -> None:
    assert SHORT.with_(title="42").title == "42"
    assert SHORT.with_(title='a "b" \\ \u00e9').title == 'a "b" \\ \u00e9'
    with pytest.raises(inprofile.ScenarioError, match="title"):
        SHORT.with_(title="a \x7f")


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_any_value_is_the_same_after_toml(value: Any) -> None:
    assert repr(tomllib.loads(f"x = {toml(value)}")["x"]) == repr(value)


def test_what_toml_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        SHORT.with_(title=None)


def test_an_error_has_its_text_and_its_problems() -> None:
    with pytest.raises(inprofile.ScenarioError) as caught:
        SHORT.with_({"links.bottleneck.rate": "3 Mbits", "seeds": -1})
    assert str(caught.value).count("error:") == 2
    assert [p.path for p in caught.value.problems] == ["links.bottleneck.rate", "seeds"] or {
        p.path for p in caught.value.problems
    } == {"links.bottleneck.rate", "seeds"}
    assert all(p.remedy for p in caught.value.problems)
    assert str(caught.value.problems[0]) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_warnings_read_as_the_compiled_part_writes_them() -> None:
    (warning,) = SHORT.set("flows.assured.contract", "2 Mbit/s").warnings
    assert warning.severity == "warning"
    assert "warning: " in str(warning)
    assert warning.remedy in str(warning)


def test_a_notebook_sees_the_topology() -> None:
    assert "assured × 4" in SHORT._repr_html_()
    assert repr(SHORT) == "Scenario('Four flows with a contract share a link', 10 seeds)"


# running


def test_threads_change_nothing_and_seeds_are_independent_of_company() -> None:
    alone = SHORT.run(seeds=[3], jobs=1)
    together = SHORT.run(seeds=5, jobs=2)
    kept = together.flows.filter([seed == 3 for seed in together.flows["seed"].to_pylist()])
    assert kept.equals(alone.flows)


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1], [2**64], range(0)])
def test_seeds_that_ask_for_nothing_sensible_are_refused(seeds: Any) -> None:
    with pytest.raises(ValueError, match="seed"):
        seeds_in_order(seeds)


def test_no_threads_cannot_work() -> None:
    with pytest.raises(ValueError, match="from 1 to 1024"):
        threads(0)
    assert threads(None) >= 1


def test_work_of_several_experiments_comes_back_in_order_and_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    finished: list[int] = []
    other = SHORT.set("links.bottleneck.rate", "2 Mbit/s")
    found: dict[int, inprofile.Result] = {}

    def done(index: int, result: inprofile.Result) -> None:
        finished.append(index)
        found[index] = result

    run_all([(SHORT, 2), (other, [5]), (SHORT, 2)], done, progress=lambda n, of: told.append((n, of)))
    results = [found[index] for index in range(3)]
    assert [r.seeds for r in results] == [(1, 2), (5,), (1, 2)]
    assert results[0] is results[2]
    assert results[0].provenance.experiment == SHORT.canonical
    assert results[1].provenance.experiment == other.canonical
    assert sorted(finished) == [0, 1, 2]
    assert told[0] == (0, 5)
    assert told[-1] == (5, 5)
    assert [n for n, _ in told] == sorted(n for n, _ in told)


def test_results_are_those_of_one_run_of_all_seeds() -> None:
    """Runs come back in pieces, whichever finished first."""
    variants = [SHORT.set("links.bottleneck.rate", f"{rate} Mbit/s") for rate in (2, 3)]
    together = run_many([(v, [9, 2, 5]) for v in variants], Local(2), trace=True)
    for scenario, whole in zip(variants, together, strict=True):
        alone: list[_internal.Results] = []
        _internal.run([(scenario._inner, [2, 5, 9])], 1, True, lambda _, raw, to=alone: to.append(raw), print)
        assert whole.provenance == scenario.provenance((2, 5, 9))
        for name in storage.TABLES:
            assert getattr(whole, name).to_pylist() == pa.table(alone[0].table(name)).to_pylist()


def goodput(_: int, result: inprofile.Result) -> Measures:
    return Measures(
        result.seeds, {"goodput": rows(result.metrics, result.seeds, name="goodput")["value"]}, {}
    )


def kept(folder: Path, *scenarios: Scenario, seeds: int = 1, also: str = "") -> list[Measures]:
    return measure_all([Experiment(s, seeds, [also]) for s in scenarios], goodput, cache=folder)


def test_what_is_cached_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [first] = kept(tmp_path, SHORT, seeds=2)
    monkeypatch.setattr(_internal, "run", lambda *_: pytest.fail("it was run again"))
    [again] = kept(tmp_path, SHORT, seeds=2)
    assert again.seeds == first.seeds == (1, 2)
    assert again["goodput"].tolist() == first["goodput"].tolist()


@pytest.mark.parametrize("change", ["seeds", "experiment", "also", "version", "engine"])
def test_the_cache_tells_apart_whatever_measures_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    kept(tmp_path, SHORT)
    scenario, seeds, also = SHORT, 1, ""
    match change:
        case "seeds":
            seeds = 2
        case "experiment":
            scenario = SHORT.set("links.bottleneck.rate", "2 Mbit/s")
        case "also":
            also = "measured otherwise"
        case "version":
            monkeypatch.setattr(experiments, "__version__", "99")
        case "engine":
            monkeypatch.setattr(experiments, "engine_digest", lambda: "another")
    kept(tmp_path, scenario, seeds=seeds, also=also)
    assert len(list(tmp_path.iterdir())) == 2


def test_interrupted_work_keeps_what_is_finished_and_goes_on(tmp_path: Path) -> None:
    variants = [SHORT.set("links.bottleneck.rate", f"{rate} Mbit/s") for rate in (2, 3, 4)]
    work = [Experiment(v, 1) for v in variants]
    calls: list[int] = []

    def stop(index: int, one: inprofile.Result) -> Measures:
        calls.append(index)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return goodput(index, one)

    with pytest.raises(KeyboardInterrupt):
        measure_all(work, stop, cache=tmp_path, backend=Local(1))
    assert len(list(tmp_path.iterdir())) == 1
    told: list[int] = []
    results = measure_all(work, goodput, cache=tmp_path, progress=told.append)
    assert told[0] == 1
    assert told[-1] == 3
    fresh = measure_all(work, goodput)
    assert [m["goodput"].tolist() for m in results] == [m["goodput"].tolist() for m in fresh]


def test_a_torn_cache_entry_is_run_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    [first] = kept(tmp_path, SHORT)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"torn")
    assert kept(tmp_path, SHORT)[0]["goodput"].tolist() == first["goodput"].tolist()
    assert "is damaged" in capfd.readouterr().err
    assert Measures.read(entry) is not None


def test_every_packet_of_a_run_is_accounted_for() -> None:
    found = SHORT.run(seeds=3)
    for row in found.flows.to_pylist():
        assert row["sent"] == row["received"] + row["dropped"] + row["in_flight"]
        lost = [d for d in found.drops.to_pylist() if (d["seed"], d["flow"]) == (row["seed"], row["flow"])]
        assert row["dropped"] == sum(d["in"] + d["out"] + d["red"] for d in lost)


def test_figures_agree_with_the_tables_they_come_from() -> None:
    found = SHORT.run(seeds=3)
    rows = found.flows.to_pylist()
    for seed, fi in found.summary()["fi"].values.items():
        goodputs = [row["goodput"] for row in rows if row["seed"] == seed]
        assert fi == pytest.approx(inprofile.metrics.stats.jain(goodputs), rel=1e-9)
        assert found.summary()["goodput"].values[seed] == pytest.approx(sum(goodputs), rel=1e-9)


# explaining

LOST = [
    {"seed": s, "flow": f, "place": "core", "cause": c, "in": green, "out": other, "red": 0}
    for s in (1, 2, 3)
    for f, c, green, other in [
        ("tcp.0", "early", 0, 12),
        ("tcp.0", "overflow", 3, 0),
        ("tcp.1", "early", 0, 5),
    ]
]


def case(mine: list[float], others: list[float], **more: Any) -> Any:
    rows = []
    for seed, (a, b) in enumerate(zip(mine, others, strict=True), start=1):
        rows += [flow(seed, "tcp.0", a, **more), flow(seed, "tcp.1", b, dropped=5, received=190)]
    return explain(result(rows, drops=LOST), "tcp.0")


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        ([300e3, 301e3, 299e3], "120 % of it: kept in all 3 runs, at worst 120 % of it (seed 3)."),
        ([200e3, 201e3, 199e3], "80 % of it: missed in all 3 runs, at worst 80 % of it (seed 3)."),
        ([200e3, 250e3, 300e3], "100 % of it: kept in 2 of 3 runs (95 %: 9 to 99 %), at worst 80 % of it"),
        ([249e3, 249e3, 249e3], "100 % of it: missed in all 3 runs, at worst 100 % of it (seed 1)."),
        ([260e3], "104 % of it: kept."),
    ],
)
def test_a_contract_is_kept_in_so_many_runs(rates: list[float], says: str) -> None:
    assert says in case(rates, [300e3] * len(rates)).findings[0]


@pytest.mark.parametrize(
    ("mine", "others", "says"),
    [
        ([330e3, 331e3, 329e3], [300e3] * 3, "That is 10.0 % more than the mean of the rest of tcp"),
        ([270e3, 271e3, 269e3], [300e3] * 3, "That is 10.0 % less than"),
        ([270e3, 330e3, 300e3], [300e3] * 3, "It is statistically tied"),
        # Paired: both vary by far more than they differ.
        ([110e3, 220e3, 331e3], [100e3, 200e3, 300e3], "more than"),
    ],
)
def test_a_difference_is_said_only_where_seeds_agree_on_it(
    mine: list[float], others: list[float], says: str
) -> None:
    assert says in " ".join(case(mine, others).findings)


def test_losses_are_told_by_cause_place_and_colour() -> None:
    found = case([300e3] * 3, [300e3] * 3)
    assert [(f.what, f.place, f.packets, f.out) for f in found.fates[1:3]] == [
        ("early", "core", 12.0, 1.0),
        ("overflow", "core", 3.0, 0.0),
    ]
    assert sum(f.share for f in found.fates) == pytest.approx(1)
    said = " ".join(found.findings)
    assert "It lost 7.5 % of its packets, 15 per run, the others 2.5 %." in said
    assert "80 % of the losses were early drops" in said
    assert "at core, 100 % of them OUT" in said
    # √(0.025 / 0.075) = 0.577
    assert "By the Mathis model, 1/(RTT·√loss), its loss rate alone would give a factor of 0.577" in said


def test_a_flow_alone_is_explained_without_others() -> None:
    found = explain(result([flow(1, "tcp.0", 300e3, contract=None, dropped=0, received=195)]), 0)
    assert found.peers == ()
    assert found.findings[0].startswith("It has no contract.")
    assert "It lost no packets." in found.findings
    json.dumps(found.to_json(), allow_nan=False)


def test_without_a_contract_nobody_is_a_peer_who_has_one() -> None:
    def rows(*more: str) -> list[dict[str, Any]]:
        return [
            row
            for s in (1, 2, 3)
            for row in (
                flow(s, "best.0", 7e6, contract=None, sent_out=0, received_out=0),
                *(flow(s, f"gold.{i}", 240e3 + 30e3 * i) for i in (0, 1)),
                *(flow(s, name, 1e5) for name in more),
            )
        ]

    found = explain(result(rows()), "best")
    assert (found.flow, found.peers, found.against_peers) == ("best.0", (), None)
    assert found.findings[0] == (
        "It has no contract. It got 7 ± 0 Mbit/s on the wire. Others have contracts, 500 kbit/s together:"
        " all of them were kept in 0 of 3 runs."
    )
    said = " ".join(found.findings)
    assert "more than" not in said
    assert "others" not in said.removeprefix(found.findings[0])
    # With a contract, and alone in its group: the others that have one.
    assert explain(result(rows("b.0")), "b").peers == ("gold.0", "gold.1")


def test_a_group_is_explained_as_the_mean_of_its_flows() -> None:
    rows = [flow(s, f"tcp.{i}", 200e3 + 100e3 * i, dropped=10 * i) for s in (1, 2, 3) for i in (0, 1)]
    found = explain(result(rows, drops=LOST), "tcp")
    assert (found.flow, found.flows, found.peers) == ("tcp", ("tcp.0", "tcp.1"), ())
    assert (found.throughput.mean, found.contract) == (250e3, 250e3)
    assert [(f.what, f.packets) for f in found.fates[1:3]] == [("early", 8.5), ("overflow", 1.5)]
    assert found.findings[:2] == (
        "These are means over its 2 flows. tcp.0 got least, 200 kbit/s, and tcp.1 most, 300 kbit/s.",
        "Its contract is 250 kbit/s; it got 250 ± 0 kbit/s on the wire, 100 % of it; every contract was kept"
        " in 0 of 3 runs, the worst was tcp.0 in seed 1, 80 % of it.",
    )
    json.dumps(found.to_json(), allow_nan=False)


def test_colours_are_no_word_where_nothing_marks() -> None:
    rows = [flow(s, f"tcp.{i}", 200e3, sent_out=0, received_out=0) for s in (1, 2) for i in (0, 1)]
    lost = [{**row, "in": 3, "out": 0} for row in LOST]
    assert "IN" not in " ".join(explain(result(rows, drops=lost), 0).findings)
    plain = "\n".join(line for line in STARTER.splitlines() if not line.startswith("marker"))
    shown = str(inprofile.parse(plain).with_(duration="25 s", seeds=1).run().summary())
    assert "lambda" not in shown
    assert "loss_in" in shown
    assert "lambda_in" in str(SHORT.run(seeds=1).summary())


def test_a_flow_that_never_sent_is_explained_too() -> None:
    silent = dict.fromkeys(
        ("sent", "received", "dropped", "in_flight", "sent_in", "sent_out", "received_in", "received_out",
         "timeouts", "fast_retransmits"), 0,
    )  # fmt: skip
    found = explain(result([flow(1, "tcp.0", 0.0, **silent), flow(1, "tcp.1", 300e3)]), "tcp.0")
    assert "It sent or delivered nothing in the measured window." in found.findings
    json.dumps(found.to_json(), allow_nan=False)


def test_an_unknown_flow_names_those_there_are() -> None:
    with pytest.raises(UnknownFlow, match=r"tcp\.0, tcp\.1"):
        explain(result([flow(1, "tcp.0", 1.0), flow(1, "tcp.1", 1.0)]), "udp")


# the compiled part


def test_every_name_of_the_compiled_part_is_typed_and_none_is_made_up() -> None:
    stub = ast.parse(Path(_internal.__file__).with_name("_internal.pyi").read_text())
    typed: dict[str, set[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            typed[node.name] = set()
        elif isinstance(node, ast.ClassDef):
            typed[node.name] = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
    exposed = {name for name in dir(_internal) if not name.startswith("_")}
    assert exposed == set(typed)
    for name, members in typed.items():
        if members:
            real = {m for m in vars(getattr(_internal, name)) if not m.startswith("_") or m in members}
            assert real == members, name


def test_every_function_takes_the_arguments_its_type_says() -> None:
    stub = ast.parse(Path(_internal.__file__).with_name("_internal.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            said = [argument.arg for argument in node.args.args]
            assert list(inspect.signature(getattr(_internal, node.name)).parameters) == said


def test_every_public_class_and_function_is_documented() -> None:
    for name in inprofile.__all__:
        thing = getattr(inprofile, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    assert inspect.getdoc(value), f"{name}.{member}"
    assert isinstance(SHORT, Scenario)
