"""The suite of RFC 7928: its experiments are those of the text, everybody takes part, the report tells it."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inprofile
from inprofile.cli import main
from inprofile.metrics.measures import Measures
from inprofile.studies.suite import (
    Suite,
    UnknownContestantError,
    UnknownScenarioError,
    UnknownTcpError,
    contestants,
    plan,
    read,
    suite,
)
from inprofile.studies.suite.contestants import _scaled, left_out, settings
from inprofile.studies.suite.measure import TITLES, better, measure, title
from inprofile.studies.suite.outcome import Entry
from inprofile.studies.suite.page import charts_of, ellipse
from inprofile.studies.suite.scenarios import Phase, choose
from inprofile.studies.suite.tables import cell, variant_title

ABOUT = read("rfc7928")
#: RFC 7928, Figure 4, and the sections whose tests it leaves out.
SECTIONS = {
    "2.1", "4.3.1", "4.4", "4.5", "4.6", "5.1.1", "5.1.2", "5.2", "5.3", "5.4", "6.2", "7.2",
    "8.2.2", "8.2.3", "8.2.4", "8.2.5", "8.2.6", "8.3", "9.1", "9.2", "10.2",
}  # fmt: skip


def definition(name: str):  # type: ignore[no-untyped-def]
    return next(d for d in ABOUT.definitions if d.id == name)


def flows(name: str) -> dict[str, dict[str, object]]:
    found = inprofile.load(ABOUT.folder / f"{name}.toml").as_written
    return {group["name"]: group for group in found["flows"]}


def test_a_section_has_the_scenarios_of_its_parts() -> None:
    found = [d.id for d in choose(ABOUT, ["5.1", "9.1"])]
    assert found == ["tcp-friendly", "initial-window-3", "initial-window-10", "mix"]
    assert [d.id for d in choose(ABOUT, ["8.2.2"])] == ["mild"]


def test_every_scenario_of_the_text_is_there() -> None:
    assert {d.section for d in ABOUT.definitions} == SECTIONS
    for d in ABOUT.definitions:
        assert ABOUT.load(d).as_written["title"], d.id
        # Figures that the page shows have words.
        assert all(title(m) for m in d.measures)


@pytest.mark.parametrize("name", [d.id for d in ABOUT.definitions])
def test_experiments_can_be_run_without_a_warning(name: str) -> None:
    d = definition(name)
    if ABOUT.lacks(d) is None:
        assert not ABOUT.load(d).warnings


def test_congestion_levels_follow_from_the_buffer() -> None:
    # RFC 7928 §8.2.1: S is bandwidth-delay product and buffer, of 10 Mbit/s and 100 ms in packets of 1500 B.
    product = 10e6 * 0.1 / 8 / 1500
    s = round(product) + 83
    for name, share in (("mild", 0.036), ("medium", 0.081), ("heavy", 0.114)):
        assert flows(name)["tcp"]["count"] == round(share * s), name
        table = ABOUT.load(definition(name)).as_written
        assert table["links"][0]["queue"]["limit"] == f"{math.floor(product)} packets"


@pytest.mark.parametrize(
    ("name", "lowest"),
    [("mild", 10e6), ("medium", 10e6), ("heavy", 10e6), ("capacity-slow", 10e6), ("capacity-fast", 10e6)],
)
def test_contracts_are_four_fifths_of_what_the_link_always_has(name: str, lowest: float) -> None:
    found = ABOUT.load(definition(name)).as_written
    (link,) = found["links"]
    rates = [link["rate"], *(step["rate"] for step in link.get("capacity", {}).get("steps", []))]
    assert min(inprofile.metrics.quantity.bits_per_second(rate) for rate in rates) == lowest
    (group,) = found["flows"]
    contract = inprofile.metrics.quantity.bits_per_second(group["contract"])
    assert contract == pytest.approx(0.8 * lowest / group["count"], abs=1000)


def test_the_mix_is_the_one_recommended() -> None:
    # RFC 7928 §9.1: 1 bidirectional VoIP; 6 web page downloads; 1 CBR; 1 Adaptive Video; 5 bulk TCP.
    mix = flows("mix")
    kinds = {n: (g.get("traffic") or {"kind": "bulk"})["kind"] for n, g in mix.items()}  # type: ignore[index]
    assert kinds["voice"] == kinds["voice-up"] == "voice"
    clients = mix["web"]["traffic"]["clients"]  # type: ignore[index]
    assert (clients, kinds["cbr"], kinds["video"]) == (6, "cbr", "video")
    assert mix["bulk"]["count"] == 5
    # §7.2: at least 50 objects of at least 1 KB, six connections, an initial window of 10.
    web = mix["web"]["traffic"]
    assert web["objects"] >= 50  # type: ignore[index]
    assert web["connections"] == 6  # type: ignore[index]
    assert mix["web"]["tcp"]["initial_window"] == "10 packets"  # type: ignore[index]


@pytest.mark.parametrize("name", ["bursts-1", "bursts-2", "bursts-3", "bursts-4", "mix", "mix-both"])
def test_no_client_runs_out_of_pages(name: str) -> None:
    """Who loads them faster would have less of the web beside its other traffic."""
    effective = ABOUT.load(definition(name)).check().effective
    seconds = float(effective["duration"].removesuffix(" s"))
    found = [g for g in effective["flows"] if g["traffic"]["kind"] == "web"]
    assert found
    for group in found:
        web = group["traffic"]
        # The handshake, and at least so many objects one after the other over 100 ms; then a client thinks.
        least = 0.1 * (1 + math.ceil(web["objects"] / web["connections"]))
        by_time = web["clients"] * seconds / (least + float(web["think"].removesuffix(" s")))
        by_link = 10e6 / 8 * seconds / (web["objects"] * web["object"]["bytes"])
        assert group["count"] // web["connections"] >= min(by_time, by_link)


def test_every_discipline_takes_part_or_says_why_not() -> None:
    everybody = contestants()
    assert everybody[0].id == "drop-tail"
    registered = {m.name for m in inprofile.mechanisms() if m.kind == "aqm"}
    assert {c.aqm for c in everybody} | set(left_out()) == registered
    assert len({c.id for c in everybody}) == len(everybody)


def test_what_there_is_not_is_refused_with_what_there_is() -> None:
    with pytest.raises(UnknownContestantError, match='did you mean "codel"'):
        plan(aqms=["codle"])
    with pytest.raises(UnknownContestantError, match="it is ns-2's WRED"):
        plan(aqms=["dsred"])
    with pytest.raises(UnknownScenarioError, match='did you mean "medium"'):
        plan(scenarios=["medum"])
    with pytest.raises(UnknownTcpError, match="choose from newreno"):
        plan(scenarios=["mild"], tcp="vegas-9")


def test_senders_are_those_that_were_asked_for() -> None:
    def senders(tcp: str | None) -> dict[str, tuple[str, str]]:
        made = plan(aqms=["drop-tail"], scenarios=["mild", "aggressive", "mix"], tcp=tcp)
        groups = [g for s in made.work.values() for g in s.check().effective["flows"] if "tcp" in g]
        return {g["name"]: (g["tcp"]["profile"], g["tcp"]["congestion"]) for g in groups if g["tcp"]}

    found = senders(None)
    # RFC 7928 §3.3: NewReno with SACK; losses are recovered as Linux does.
    assert found["tcp"] == found["bulk"] == ("linux", "sack")
    assert found["cubic"] == ("linux", "cubic")
    assert senders("linux")["tcp"] == ("linux", "cubic")
    assert senders("rfc")["tcp"] == ("rfc", "sack")
    assert senders("rfc-cubic")["bulk"] == ("rfc", "cubic")


def test_notes_are_true_of_the_files() -> None:
    rfc = " ".join(read("rfc7928").words["notes"])
    # RFC 5681 §4.1: senders have it, whatever --tcp chose.
    assert "no restart" not in rfc
    assert "(RFC 5681 §4.1)" in rfc
    for d in ABOUT.definitions:
        table = ABOUT.load(d).as_written
        # RFC 7928 §2.7: K = 10 round trips.
        assert table["measure"]["every"] == "1 s", d.id
        assert any(group["rtt"] == "100 ms" for group in table["flows"]), d.id
    about = read("l4s")
    assert "Every queue has a limit of 250 ms." in " ".join(about.words["notes"])
    for d in about.definitions:
        link = about.load(d).check().effective["links"][0]
        assert link["queue"]["limit"]["ms"] == 250, d.id


def test_two_disciplines_stand_in_a_row() -> None:
    # RFC 7928 §10.2: the same with identical parameters, the same with different ones, two different ones.
    made = plan(aqms=["codel", "sfq"], scenarios=["10.2"])
    links = {
        (c.scenario, c.variant): {k["name"]: k["queue"] for k in s.check().effective["links"]}
        for c, s in made.work.items()
        if c.contestant == "codel"
    }
    alike = links["two-queues", ""]
    assert alike["first"]["target"] == alike["bottleneck"]["target"] == "5 ms"
    unlike = links["two-queues-unlike", ""]
    assert (unlike["first"]["target"], unlike["bottleneck"]["target"]) == ("2.5 ms", "5 ms")
    for other, aqm in (("drop-tail", "drop_tail"), ("codel", "codel"), ("pie", "pie")):
        pair = links["two-disciplines", other]
        assert (pair["first"]["aqm"], pair["bottleneck"]["aqm"]) == (aqm, "codel")
    assert made.absent["two-queues-unlike", "sfq"] == "no parameter sets its delay"


def test_a_discipline_at_the_first_router_has_its_name_though_it_was_not_chosen() -> None:
    made = plan(aqms=["codel"], scenarios=["two-disciplines"])
    of = definition("two-disciplines")
    names = [variant_title(Suite(made, {}), of, v) for v in of.variants]
    assert names == [f"{name} at the first router" for name in ("Drop-tail", "CoDel", "PIE")]


def test_what_sets_the_delay_is_turned_over_a_range() -> None:
    # RFC 7928 §4.3.1: "compare PIE vs. CoDel over the range of target delay input configurations".
    made = plan(aqms=["pie", "red"], scenarios=["targets"])
    found = {
        (c.contestant, c.variant): s.check().effective["links"][0]["queue"] for c, s in made.work.items()
    }
    assert [found["pie", v]["target"] for v in ("0.25", "1", "4")] == ["3.75 ms", "15 ms", "60 ms"]
    # T is 30 ms, 25 packets of 1.2 ms.
    assert found["red", "2"]["max_th"]["packets"] == pytest.approx(50, rel=1e-3)
    assert found["drop-tail", "4"] == found["drop-tail", "1"]
    assert all(c.control in c.parameters or c.control in ("", "T") for c in contestants())


def test_thresholds_follow_from_each_links_own_rate() -> None:
    made = plan(aqms=["red"], scenarios=["asymmetric-both"])
    (red,) = [s for c, s in made.work.items() if c.contestant == "red"]
    there, back = red.check().effective["links"]
    assert there["queue"]["max_th"]["packets"] == pytest.approx(25, rel=1e-3)
    # At 1 Mbit/s 30 ms are two and a half packets of 12 ms: five at least.
    assert back["queue"]["max_th"]["packets"] == pytest.approx(5, rel=1e-3)


def test_contestants_are_put_before_every_link_that_is_named() -> None:
    codel = next(c for c in contestants() if c.id == "codel")
    for name, keys in (
        ("two-queues", {"links.first.queue", "links.bottleneck.queue"}),
        ("bidirectional-both", {"links.bottleneck.queue", "links.bottleneck.reverse.queue"}),
    ):
        d = definition(name)
        values = codel.values(ABOUT.load(d), ABOUT.load(d).as_written, d.queues)
        assert keys <= values.keys()
    d = definition("scheduling")
    queue = codel.values(ABOUT.load(d), ABOUT.load(d).as_written, d.queues)["links.bottleneck.queue"]
    assert [c["aqm"] for c in queue["classes"]] == ["codel", "codel"]  # type: ignore[index]
    assert [c["limit"] for c in queue["classes"]] == ["21 packets", "62 packets"]  # type: ignore[index]


def test_parameters_are_halved_and_doubled() -> None:
    codel = next(c for c in contestants() if c.id == "codel")
    d = definition("sensitivity")
    base = ABOUT.load(d)
    made = base.with_(codel.values(base, ABOUT.load(d).as_written, d.queues)).check().effective
    found = list(settings(codel, made["links"][0]["queue"], d.sensitivity))
    assert {("target", '"2.5 ms"'), ("interval", '"200 ms"')} <= set(found)
    assert _scaled("1", 0.5, whole=True) == "1"


def test_thresholds_in_units_of_t_are_scaled_too() -> None:
    made = plan(aqms=["red"], scenarios=["sensitivity"])
    values = {c.setting: s for c, s in made.work.items() if c.contestant == "red" and c.setting}
    assert ("max_th", "2 T") in values
    queue = values["max_th", "2 T"].check().effective["links"][0]["queue"]
    # T is 30 ms, so 2 T are 50 packets of 1.2 ms.
    assert queue["max_th"]["packets"] == pytest.approx(50, rel=1e-3)


def test_phases_have_whole_periods_only() -> None:
    phase = Phase("heavy", 60, 80, 60)
    assert [t for t in range(50, 150) if phase.has(t, 1)] == [*range(61, 81), *range(121, 141)]


def test_the_ellipse_holds_what_it_says() -> None:
    # By hand: variances 4 and 1, not correlated; 1 − ε = 95 % at a distance of √(−2 ln 0.05) = 2.448.
    points = [(2.0, 1.0), (-2.0, 1.0), (2.0, -1.0), (-2.0, -1.0)]
    around = ellipse(points, 0.05)
    assert max(x for x, _ in around) == pytest.approx(2 * 2.4477, rel=1e-4)
    assert max(y for _, y in around) == pytest.approx(2.4477, rel=1e-4)
    assert ellipse(points[:2], 0.05) == [(0.0, 1.0)]


def test_what_is_better_is_said_of_the_right_side() -> None:
    names = ("delay_p99", "loss:web", "goodput@mild", "fi", "page_p99:web")
    assert [better(m) for m in names] == [-1, -1, 1, 1, -1]
    assert better("ratio:two/one") == better("marked") == 0
    assert all(text for text in TITLES.values())


def test_a_share_two_seeds_of_which_differ_alike_is_not_called_better() -> None:
    made = plan(aqms=["codel"], scenarios=["mild"])

    def figures(utilisation: list[float]) -> Measures:
        seeds = tuple(range(1, 1 + len(utilisation)))
        return Measures(seeds, {"utilisation": np.array(utilisation)}, {})

    cell = next(c for c in made.work if c.contestant == "codel")
    alike = Entry(cell, figures([0.9, 0.8]), figures([0.8, 0.7]))
    assert alike.verdict("utilisation") == "alike"
    wide = Entry(cell, figures([1.0, 0.9, 0.1]), figures([0.0, 0.8, 0.05])).against("utilisation")
    assert wide is not None
    assert wide.difference.ci95 is not None
    # A difference of two shares.
    assert -1 <= wide.difference.ci95.lo < wide.difference.ci95.hi <= 1


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, inprofile.studies.suite.Suite]:  # type: ignore[name-defined]
    out = tmp_path_factory.mktemp("suite")
    made = suite(aqms=["codel"], scenarios=["mild"], quick=True, jobs=2, out=out, cache=out / "cache")
    return out, made


def test_the_report_has_every_figure_beside_drop_tail(small) -> None:  # type: ignore[no-untyped-def]
    out, _ = small
    data = json.loads((out / "rfc7928" / "results.json").read_text("utf-8"))
    mild = next(s for s in data["scenarios"] if s["id"] == "mild")
    assert [r["contestant"] for r in mild["results"]] == ["drop-tail", "codel"]
    delay = mild["results"][1]["figures"]["delay_mean"]
    assert (delay["unit"], len(delay["values"])) == ("s", 2)
    # CoDel's whole purpose.
    assert delay["mean"] < 0.5 * mild["results"][0]["figures"]["delay_mean"]["mean"]
    assert delay["to_drop_tail"]["mean"] < 0
    page = (out / "rfc7928" / "index.html").read_text("utf-8")
    assert "fewer than 100 in a run is the longest" in page
    assert all(text in page for text in ("Six bulk flows.", "CoDel", "loss synchronisation", "Quick mode"))
    assert "8.2.2 mild" in (out / "rfc7928" / "report.txt").read_text("utf-8")
    assert (out / "rfc7928" / "files" / "mild.toml").read_text("utf-8") == (
        ABOUT.folder / "mild.toml"
    ).read_text("utf-8")


def test_start_up_and_completion_are_of_the_window() -> None:
    result = inprofile.load(ABOUT.folder / "flow-sizes.toml").run(seeds=1)
    found = measure(result, definition("flow-sizes")).values
    rows = [row for row in result.flows.to_pylist() if row["group"] == "15kB" and row["startup"] is not None]
    within = [row["startup"] for row in rows if 20 <= row["start"] + row["startup"] < 100]
    assert 0 < len(within) < len(rows), "some begin before the window"
    assert found["startup:15kB"][0] == pytest.approx(np.mean(within))
    done = [
        row["completed"] - row["start"] for row in rows if row["completed"] and 20 <= row["completed"] < 100
    ]
    assert found["completion:15kB"][0] == pytest.approx(np.mean(done))
    assert "startup:bulk" not in found, "both began before the window"


def test_transfers_that_did_not_complete_are_counted() -> None:
    result = (
        inprofile.load(ABOUT.folder / "flow-sizes.toml").set("links.bottleneck.rate", "2 Mbit/s").run(seeds=1)
    )
    found = measure(result, definition("flow-sizes")).values
    for group in ("15kB", "150kB", "1500kB"):
        rows = [row for row in result.flows.to_pylist() if row["group"] == group]
        within = [row for row in rows if row["completed"] and 20 <= row["completed"] < 100]
        # With Poisson arrivals the last may come after the end.
        never = [row for row in rows if row["completed"] is None and row["start"] < 100]
        assert found[f"completed:{group}"][0] == len(within)
        assert found[f"unfinished:{group}"][0] == len(never)
    assert (found["completed:1500kB"][0], found["unfinished:1500kB"][0]) == (0, 9), "the long ones starve"
    assert not {"completed:bulk", "unfinished:bulk"} & found.keys()


def test_of_pages_each_client_has_at_most_one_unfinished() -> None:
    scenario = inprofile.load(ABOUT.folder / "mix.toml").with_({"measure.to": "24 s"})
    result = scenario.run(seeds=1)
    found = measure(result, definition("mix")).values
    pages = [row for row in result.downloads.to_pylist() if row["group"] == "web"]
    assert found["completed:web"][0] == sum(20 <= page["completed"] < 24 for page in pages)
    # Those that were there later, and had been asked for.
    later = sum(page["asked"] < 24 <= page["completed"] for page in pages)
    assert found["unfinished:web"][0] == later
    assert 0 < later <= 6


def test_a_mean_time_has_beside_it_how_many_it_is_of() -> None:
    made = plan(aqms=["codel"], scenarios=["flow-sizes"])

    def figures(completed: list[float], unfinished: list[float], times: list[float]) -> Measures:
        values = {"completed:15kB": completed, "unfinished:15kB": unfinished, "completion:15kB": times}
        return Measures((1, 2, 3), {name: np.array(v) for name, v in values.items()}, {})

    mine = figures([3, 0, 0], [15, 16, 17], [0.25, np.nan, np.nan])
    entry = Entry(next(c for c in made.work), mine, figures([9, 9, 9], [0, 0, 0], [0.5, 0.5, 0.5]))
    shown = cell(entry, "completion:15kB")
    assert (shown["mean"], shown["interval"]) == ("250 ms", "1 of 3 runs")
    assert shown["count"] == "1 completed ▼, 16 unfinished ▼"
    assert shown["text"] == "250 ms (1 of 3 runs; 1 completed ▼, 16 unfinished ▼)"
    none = figures([0, 0, 0], [15, 16, 17], [np.nan] * 3)
    assert cell(Entry(entry.cell, none, None), "completion:15kB")["text"] == "– (0 completed, 16 unfinished)"


def test_the_command_says_what_it_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["suite", "rfc7928", "--plan", "--json", "--aqm", "codel,pie", "--scenario", "8.2.2"])
    assert not left.value.code
    made = json.loads(capsys.readouterr().out)
    assert (made["contestants"], made["runs"]) == (["drop-tail", "codel", "pie"], 30)
    with pytest.raises(SystemExit) as left:
        main(["suite", "rfc2544"])
    assert left.value.code == 2
    assert "write rfc7928" in capsys.readouterr().err


def test_no_chart_takes_anothers_place() -> None:
    made = plan(aqms=["codel"], scenarios=["capacity-slow", "mix"])
    seeds = tuple(range(1, made.seeds + 1))
    figures = {name: np.ones(len(seeds)) for name in ("goodput", "excess", "time:delay:1", "time:goodput:1")}
    suite = Suite(made, {cell: Measures(seeds, figures, {}) for cell in made.work})
    charts: dict[str, object] = {}
    shown = [
        view["name"]
        for d in made.definitions
        for view in charts_of(suite, d, [c.title for c in made.contestants], charts)  # type: ignore[arg-type]
    ]
    assert "capacity-slow-goodput-time" in shown
    assert "mix-of-voice" in shown
    assert len(shown) == len(set(shown)) == len(charts)


def test_goodput_has_its_distribution_beside_the_delays() -> None:
    """RFC 7928 §2.7: of the samples, one for each second of each run."""
    made = plan(aqms=["codel"], scenarios=["mild"])
    figures = {f"time:goodput:{20 + t}": np.array([t * 1e6, (t + 5) * 1e6]) for t in range(1, 6)}
    of = Suite(made, {cell: Measures((1, 2), figures, {}) for cell in made.work})
    charts: dict[str, Any] = {}
    names = [view["name"] for view in charts_of(of, definition("mild"), ["Drop-tail", "CoDel"], charts)]
    assert names.index("mild-goodput-cdf") == names.index("mild-cdf") + 1
    (rows,) = charts["mild-goodput-cdf"]["datasets"].values()
    found = {row["y"]: row["x"] for row in rows if row["scheme"] == "CoDel"}
    # Ten samples, 1 to 10 Mbit/s: no share smaller than one of them has a value of its own.
    assert (found[0.0], found[0.1], found[0.5], found[0.95], found[1.0]) == (1, 1, 5, 10, 10)
    assert 0.05 not in found


@pytest.mark.parametrize("name", ["mild", "medium", "heavy"])
def test_the_tail_of_the_delay_is_in_the_tables_of_congestion(name: str) -> None:
    shares = [m for m in definition(name).measures if m.startswith("delay_p")]
    assert shares == ["delay_p50", "delay_p90", "delay_p99", "delay_p99_9"]


def test_neither_threads_nor_a_cache_change_a_byte(small, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    out, _ = small
    again = ({"jobs": 1, "cache": None}, {"jobs": 2, "cache": out / "cache"})
    for i, how in enumerate(again):
        suite(aqms=["codel"], scenarios=["mild"], quick=True, out=tmp_path / str(i), **how)  # type: ignore[arg-type]
        for name in ("results.json", "measures.csv", "index.html", "report.txt"):
            one, other = (folder / "rfc7928" / name for folder in (out, tmp_path / str(i)))
            assert one.read_bytes() == other.read_bytes(), name
