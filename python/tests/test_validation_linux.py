"""`make validate-linux` without its guest: what is made of stamps, and of the figures."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import alike
import linux
import linux_jobs
import numpy as np
import plans
import pytest
import replayed
import transfers
import transfers_cases
import uml

import inprofile

VALIDATION = Path(__file__).parents[2] / "validation"
DOCS = VALIDATION.parent / "docs"


def test_the_page_is_what_the_figures_say() -> None:
    found = json.loads((DOCS / "linux.json").read_text(encoding="utf-8"))
    assert linux.page(found) == (DOCS / "linux.md").read_text(encoding="utf-8")
    assert sum(row["found"]["differences"] for row in found["exact"]) == 0


def test_rows_of_single_jobs_take_the_place_of_the_pages() -> None:
    rows, chances = linux.read(json.loads((DOCS / "linux.json").read_text(encoding="utf-8")))
    again = replace(rows[1], title="again")
    exact, drawn = linux.joined([again], [])
    assert [row.name for row in exact] == [row.name for row in rows]
    assert (exact[0], exact[1].title, drawn) == (rows[0], "again", chances)


def test_a_figure_differs_when_it_is_far_off_and_farther_than_in_any_run_of_ours() -> None:
    def run(drops: int, gaps: tuple[int, ...] = (1, 2, 3)) -> alike.Figures:
        return alike.Figures(drops, 1.0, gaps, {0: 1})

    skewed = [run(drops) for drops in [3036] * 98 + [3035, 3027]]
    assert alike.among("", run(3027), skewed).holds, "beyond 8 standard deviations, but so is one of ours"
    assert alike.among("", run(3026), skewed).differs == ("drops",)
    assert alike.among("", run(3036), skewed).holds
    same = alike.among("", run(5), [run(4)] * 100)
    assert (same.differs, same.drops_z) == (("drops",), float("inf"))

    short, long = (1, 2, 3) * 100, (4, 5, 6) * 100
    theirs = run(1, long)
    found = alike.among("", theirs, [run(1, short)] * 100)
    assert (found.differs, found.gaps_p < alike.LOW) == (("gaps",), True)
    found = alike.among("", theirs, [run(1, short)] * 98 + [run(1, long), run(1, long)])
    assert (found.differs, found.gaps_p < alike.LOW) == ((), True), "two of ours are as odd"


def test_a_guest_that_stood_still_is_asked_again_and_the_best_run_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = transfers.Measured(1.0, 1.0, 1.0, 0.0, 0.0)
    stalls = {"quiet": [20.0], "late": [900.0, 30.0], "never": [500.0, 300.0, 400.0]}
    asked: list[list[str]] = []

    def boot(_: str, folder: Path, __: str, ___: float) -> str:
        (folder / "version").write_text("6.1\n", encoding="utf-8")
        return ""

    def script(_: Path, cases: list[transfers_cases.Case]) -> str:
        asked.append([case.name for case in cases])
        return ""

    def theirs(_: Path, case: transfers_cases.Case, __: str) -> transfers_cases.Theirs:
        return measured, None, stalls[case.name].pop(0)

    for name, stub in {"boot": boot, "script": script, "theirs": theirs}.items():
        monkeypatch.setattr(transfers_cases, name, stub)
    monkeypatch.setattr(transfers_cases, "program", lambda: "linux.uml")
    monkeypatch.setattr(transfers_cases, "compiled", lambda *_: None)
    told: list[str] = []
    cases = [transfers_cases.Case(name, name, ("cubic",), 10, "", "") for name in stalls]
    found, runs, version = transfers_cases.record(cases, told.append)
    assert asked == [["quiet", "late", "never"], ["late", "never"], ["never"]]
    assert {name: stall for name, (_, _, stall) in found.items()} == {"quiet": 20, "late": 30, "never": 300}
    assert (dict(runs), version) == ({"quiet": 1, "late": 2, "never": 3}, "6.1")
    assert told[1] == "the guest stalled: late for 900 ms, never for 500 ms; again"


def test_a_stalled_row_is_shown_and_not_judged() -> None:
    one, other = (transfers.Measured(rate, 30.0, 0.5, 0.01, 0.0) for rate in (9.5, 4.0))
    stalled = transfers.Row("x", "X", other, one, one, one, one, None, 450.0, 3)
    quiet = replace(stalled, stall=20.0)
    assert "**stalled**" in transfers.line(stalled)
    assert "**!**" not in transfers.line(stalled)
    assert "**!**" in transfers.line(quiet)
    page = transfers.page([stalled, quiet], "6.1")
    assert "0 of 1 rows that are judged" in page
    assert "1 are not judged" in page
    assert "{{" not in page


def test_a_link_that_serves_at_ticks_explains_queue_and_timeouts() -> None:
    linux, ours, ticks = (transfers.Measured(9.5, q, 0.5, 0.01, n) for q, n in ((12, 9), (7, 1), (11, 12)))
    spread = transfers.Measured(0.0, 0.0, 0.0, 0.0, 1.0)
    row = transfers.Row("x", "X", linux, ours, spread, ticks, spread, None, 20.0, 1)
    assert row.explained == {"queue", "timeouts"}
    assert all(row.verdicts.values())
    assert transfers.line(row).count("*explains*") == 2
    alone = replace(row, ticks=ours)
    assert alone.explained == set()
    assert [name for name, ok in alone.verdicts.items() if not ok] == ["queue", "timeouts"]
    assert not replace(row, linux=ours).explained, "there is nothing to explain"
    assert not replace(row, linux=replace(linux, goodput=4.0)).verdicts["goodput"], "ticks explain no goodput"


def test_the_page_of_transfers_is_what_the_figures_say() -> None:
    found = json.loads((DOCS / "transfers.json").read_text(encoding="utf-8"))
    rows = transfers.read(found)
    assert [row.case for row in rows] == [case.name for case in transfers.CASES]
    assert transfers.page(rows, found["kernel"]) == (DOCS / "transfers.md").read_text(encoding="utf-8")
    assert all(row.stalled or all(row.verdicts.values()) for row in rows)


def test_the_link_with_ticks_sends_as_much() -> None:
    case = transfers.CASES[0]
    steady, ticking = (inprofile.parse(transfers_cases.experiment(case, ticks=t)) for t in (False, True))
    runs = [s.with_(duration="4 s", measure={"from": "2 s"}).run([1], jobs=1) for s in (steady, ticking)]
    rates = [sum(run.flows.to_pydict()["goodput"]) for run in runs]
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


def test_what_linux_did_is_read_from_its_samples(tmp_path: Path) -> None:
    case = transfers_cases.Case("x", "X", ("cubic", "reno"), 10, "", "")
    samples = np.zeros(40, transfers_cases.SEEN)
    samples["flow"] = np.arange(40) % 2
    samples["at"] = np.repeat(np.arange(20), 2) * 10**9
    samples["acked"] = samples["at"] // 8000 * np.where(samples["flow"] == 0, 3, 1)
    samples["sent"], samples["retransmitted"] = samples["at"] // 10**6, samples["at"] // 10**8
    # The second connection has never seen the link without a queue.
    samples["rtt"], samples["least_rtt"] = 75_000, np.where(samples["flow"] == 0, 42_000, 60_000)
    samples.tofile(tmp_path / "x.seen")
    (tmp_path / "x.netstat").write_text("TcpExt: A TCPTimeouts\nTcpExt: 7 5\n", encoding="utf-8")
    found, alpha, stall = transfers_cases.theirs(tmp_path, case, "")
    assert found == transfers.Measured(pytest.approx(4.0), 33.0, 0.75, 0.01, 5)
    assert (alpha, stall) == (None, 1000.0)
    with pytest.raises(RuntimeError, match="did not run in the guest, which said:\nno module"):
        transfers_cases.theirs(tmp_path / "none", case, "no module")


def seen(stamps: list[tuple[int, int, int, int]]) -> uml.Seen:
    """Packets of 1,000 B: before, after, left in microseconds, and their order."""
    rows = [(1000 * b, 1000 * a, 1000 * left, order, 0) for b, a, left, order in stamps]
    return uml.Seen([uml.Planned(0, 1000)] * len(rows), np.array(rows, dtype=uml.SEEN), 0, "", "")


def calls(text: str) -> list[list[int]]:
    """When the link asked, with how much slack, and what it got."""
    return [[int(word) for word in line.split()[1:4]] for line in text.splitlines() if line[0] == "c"]


def test_the_link_asks_as_the_last_packet_leaves() -> None:
    # 0 leaves at once; 1 is dropped; 2 leaves a millisecond after 0; 3 comes to an empty queue.
    stamps = [(1000, 1030, 1020, 0), (1100, 1130, 0, 0), (1200, 1230, 2020, 1), (9000, 9030, 9020, 2)]
    given = seen(stamps)
    came = replayed.arrivals(given)
    assert came.order == [0, 2, 3]
    # The start is 1 ms before the first stamp; from a stamp to the driver takes 20 us.
    assert came.at == [1_020_000, 1_120_000, 1_220_000, 9_020_000]
    asked = calls(replayed.events(given, came, ahead=True))
    assert asked == [[1_020_000, 0, 0], [1_220_000, 10_000, 2], [9_020_000, 0, 3]]
    left = calls(replayed.events(given, came, ahead=False))
    assert left == [[1_020_000, 0, 0], [2_020_000, 0, 2], [9_020_000, 0, 3]]


def test_a_packet_that_waits_is_asked_for_as_the_one_before_leaves() -> None:
    # 1 waits as 0 leaves in a burst: asked for at once, with the next stamp, 50 us later, as the bound.
    given = seen([(1000, 1010, 2000, 0), (1100, 1110, 3000, 1), (2050, 2060, 0, 0)])
    came = replayed.arrivals(given)
    asked = calls(replayed.events(given, came, ahead=True))
    assert asked[1] == [2_000_000, 50_000, 1]


@pytest.mark.parametrize("name", ["codel-sizes", "police-slow"])
def test_plans_are_the_same_each_time_and_in_order(name: str) -> None:
    job = next(e.job for e in linux_jobs.EXACT if e.job.name == name)
    planned = job.planned()
    assert planned == job.planned()
    assert all(a.at <= b.at for a, b in pairwise(planned))
    assert {p.size for p in planned} <= {64, 200, 576, 1000, 1500}


def test_the_guests_script_does_every_job() -> None:
    jobs = [e.job for e in linux_jobs.EXACT]
    text = uml.script(Path("/somewhere"), jobs)
    assert text.count("./guest ") == len(jobs)
    for module in ("veth", "sch_tbf", "sch_codel", "act_police"):
        assert f"modprobe -d /somewhere {module} " in text


KERNEL = """\
filter protocol ppp_ses pref 1 flower chain 0
filter protocol ppp_ses pref 1 flower chain 0 handle 0x1
  eth_type ppp_ses
  pppoe_sid 1
  not_in_hw
\taction order 1:  police 0x1 rate 600Kbit burst 18750b mtu 65535b action drop/pipe overhead 0b
\taction order 2:  police 0x2 rate 217500bit burst 36Kb mtu 65535b action continue/pipe overhead 0b
filter protocol ip pref 2 matchall chain 0
filter protocol ip pref 2 matchall chain 0 handle 0x1
"""
BATCH = """\
# Replace the customers' numbers by yours.
qdisc add dev lan0 clsact
filter add dev lan0 ingress protocol ppp_ses pref 1 flower pppoe_sid 1\
 action police rate 600000bit burst 18750 mtu 65535 conform-exceed drop/pipe\
 action police rate 217500bit burst 36864 mtu 65535 conform-exceed continue/pipe
filter add dev lan0 ingress protocol ip pref 2 matchall action pedit
"""


def test_what_the_kernel_has_is_held_against_a_plans_lines() -> None:
    there = plans.loaded(KERNEL, "", "")
    assert (there.filters, there.buckets.total()) == (2, 2)
    assert plans.differences(BATCH, "", there) == []
    assert plans.differences(BATCH, "", plans.loaded(KERNEL, "Unknown filter", "")) == ["Unknown filter"]
    assert len(plans.differences(BATCH, "", plans.loaded(KERNEL.replace("600Kbit", "601Kbit"), "", ""))) == 1
    # A byte less is the kernel's rounding of the time that a burst lasts; two are not.
    assert plans.differences(BATCH, "", plans.loaded(KERNEL.replace("18750b", "18749b"), "", "")) == []
    assert len(plans.differences(BATCH, "", plans.loaded(KERNEL.replace("18750b", "18748b"), "", ""))) == 1
    assert len(plans.differences(BATCH.replace("217500", "217499"), "", there)) == 1
    assert plans.differences(BATCH, "", plans.loaded(KERNEL.partition("filter protocol ip")[0], "", "")) == [
        "2 filters were asked for, and there are 1"
    ]


def test_the_worked_plans_are_all_of_them() -> None:
    there = {path.stem for path in (DOCS / "guides" / "plan").glob("*.toml") if "[plan]" in path.read_text()}
    assert {case.name for case in plans.CASES} == there
    text = plans.script(Path("/somewhere"), [(name, Path("/plans") / name) for name in sorted(there)])
    for name in there:
        assert f"tc -batch /plans/{name}/police.tc" in text
        assert f"/plans/{name}/tc.sh" in text


QUEUES = """\
tc qdisc change dev wan0 parent 1:1 handle 20: gred limit 280500 burst 187 DP 0 prio 1
# cannot: upstream.assured.w_q: tc knows powers of two: 0.000846 became 2^-10 = 0.0009765625
# note: upstream.assured.w_q: tc warns that a burst of 187 seems too large
"""


def test_a_warning_is_no_complaint_where_linux_has_the_average_that_was_asked_for() -> None:
    warned = (
        "GRED: WARNING. Burst 187 seems to be too large.\nGRED: WARNING. Burst 116 seems to be too large.\n"
    )
    qdiscs = "qdisc gred 20: parent 1:1 vqs 2 default 1 grio\n vq 0 prio 1 ewma 10\n"
    assert plans.differences(BATCH, QUEUES, plans.loaded(KERNEL, warned, qdiscs)) == []
    other = plans.loaded(KERNEL, warned, qdiscs.replace("ewma 10", "ewma 9"))
    assert plans.differences(BATCH, QUEUES, other) == [
        "w_q that was asked for: 2^-[10], and that is there: 2^-[9]"
    ]
    assert plans.differences(BATCH, QUEUES, plans.loaded(KERNEL, warned + "refused\n", qdiscs)) == ["refused"]
