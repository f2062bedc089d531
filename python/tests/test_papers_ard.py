"""Paper A: its scenario files, how its runs are measured, and how its claims come out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import papers_synthetic as synthetic
from inprofile import load as load_scenario
from inprofile import papers
from inprofile.metrics.measures import Measures
from inprofile.papers import Cell, Paper
from inprofile.papers.ard.schemes import level, ranked
from inprofile.papers.ard.sweeps import kept, shown
from inprofile.papers.claim import Judged, Verdict
from inprofile.papers.experiment import measure_work, work_of
from inprofile.papers.judge import judge
from inprofile.studies.reproduce import plan

PAPER = papers.load("ard")
CELL = Cell("made", "two-flows", "rio")
STATED = {"window": [100.0, 200.0], "bucket": 60.0, "t_rd": 15.0, "max_rem": 0.5, "p_drop": 0.02}
SETUPS = ("as-described", "full-core-buffer", "tail-drop-edge", "tail-drop-edge-narrow")


def paper(shown_seed: int = 1) -> Paper:
    """A paper with one set-up, made by hand."""
    about = {
        "setups": [{"id": "made", "queue": "bottleneck"}],
        "topologies": [{"id": "two-flows", "stated": STATED}],
        "shown_seed": shown_seed,
    }
    return Paper("made", Path(), about)


def verdicts(**changes: float) -> dict[tuple[str, str], Judged]:
    paper = papers.load("ard")
    made = synthetic.cells(paper, **changes)
    return {(j.claim, j.setup): j for j in judge(paper.module("claims").findings(paper, made))}


def test_every_claim_is_answered_for_every_setup() -> None:
    found = verdicts()
    # A14's runs are those of a sweep, which a plain run has not.
    claims = [claim.id for claim in PAPER.claims if claim.id != "A14"]
    assert set(found) == {(claim, s) for claim in claims for s in SETUPS}
    assert all(j.why for j in found.values())
    for j in found.values():
        assert {c.comparison.topology for c in j.comparisons} == {"4 flows", "20 flows"}


def test_where_everything_is_as_claimed_it_reproduces() -> None:
    found = verdicts()
    for claim in (f"A{i}" for i in range(2, 11)):
        assert found[claim, "as-described"].verdict == Verdict.REPRODUCED, found[claim, "as-described"].why
    # The made-up indices have the paper's order but not its numbers, which are counted apart.
    a1 = found["A1", "as-described"]
    assert {c.outcome for c in a1.comparisons} == {"holds"}
    assert not all(n.inside for n in a1.numbers)


def test_the_phase_effect_is_a_claim_of_its_own_where_jitter_was_run() -> None:
    """Neither the atlas nor today's senders have the runs with jitter; that RIO is unfair they judge."""
    made = synthetic.cells(PAPER)
    plain = {cell: m for cell, m in made.items() if not cell.variant}
    claims = PAPER.module("claims")
    for cells, there in ((made, {"A11a", "A11b"}), (plain, {"A11a"})):
        found = [f for f in claims.findings(PAPER, cells) if f.claim.startswith("A11")]
        assert {f.claim for f in found} == there
        unfair = next(f for f in found if (f.claim, f.setup) == ("A11a", "as-described"))
        assert [c.topology for c in unfair.comparisons] == ["4 flows", "20 flows"]


def test_where_the_core_drops_nothing_arm_cannot_be_judged() -> None:
    same = {"fi": 0.8, "std_total": 5e4, "drops_core": 0.0}
    found = verdicts(**same)
    outcomes = {c.comparison.label: c.outcome for c in found["A1", "tail-drop-edge"].comparisons}
    assert outcomes["fairness index of ARM above tail drop"] == "undecidable"
    # ARD is not above ARM, and that could have shown.
    assert outcomes["fairness index of ARD above ARM"] not in ("holds", "undecidable")
    a8 = found["A8", "tail-drop-edge"]
    assert [c.outcome for c in a8.comparisons] == ["undecidable", "undecidable", "holds"] * 2
    assert "none to move" in a8.why
    assert found["A8", "as-described"].verdict == Verdict.REPRODUCED


def test_remarks_that_change_nothing_cannot_be_judged() -> None:
    """With tail drop ARM remarks, and every seed's rates stay exactly RIO's."""
    paper = papers.load("ard")
    made = synthetic.cells(paper)
    for cell in [c for c in made if c.scheme == "arm" and c.setup == "full-core-buffer"]:
        rio = made[Cell(cell.setup, cell.topology, "rio", cell.variant)]
        made[cell] = Measures(rio.seeds, {**made[cell].values, "fi": rio["fi"]}, rio.traces, rio.by_flow)
    found = {(j.claim, j.setup): j for j in judge(paper.module("claims").findings(paper, made))}
    arm, _ = found["A1", "full-core-buffer"].comparisons[:2]
    assert arm.outcome == "undecidable"
    assert "does not look at colours" in found["A1", "full-core-buffer"].why


def test_a_printed_number_of_a_marker_that_does_nothing_is_not_counted() -> None:
    """ARM's number would be RIO's own: that it lies near the paper's tells nothing of ARM."""
    paper = papers.load("ard")
    found = verdicts(remarked=0.0, drops_marker=0.0)["A1", "tail-drop-edge"]
    told = {n.number.label.split(", ")[1]: (n.number.obstacle, n.inside) for n in found.numbers}
    assert told["tail drop"][0] is None
    assert "inert" in (told["ARM"][0] or "")
    assert not told["ARM"][1]
    assert (found.counted, len(found.numbers)) == (2, 6)
    assert "4 printed numbers not counted" in found.summary
    acting = verdicts()["A1", "tail-drop-edge"]
    assert acting.counted == len(list(paper.find("claims", "A1").tables("numbers")))


def test_an_inert_marker_is_undecidable_whatever_the_figures() -> None:
    """A level that never falls is no answer about a marker that does not act."""
    idle = {
        "remarked": 0.0,
        "drops_marker": 0.0,
        "fi": 0.8,
        "std_in": 5e4,
        "std_total": 5e4,
        "queue_std": 5.0,
    }
    idle |= {
        "queue_cycle": 0.5,
        "tokens_low": 0.0,
        "tokens_mean": 59.0,
        "drops_core": 9.0,
        "fastest": 4e5,
        "slowest": 2e5,
        "soon": 0.0,
        "total": 1.19e6,
        "total_in": 9.8e5,
    }
    found = verdicts(**idle)
    for i in range(1, 11):
        judged = found[f"A{i}", "tail-drop-edge"]
        assert judged.verdict == Verdict.UNDECIDABLE, judged.why
        assert "is inert: it touches 0 of 6000 IN packets" in judged.why


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("A2", {"std_in": 5e4}),
        ("A3", {"total_in": 4.7e5, "total": 1.1e6}),
        ("A4", {"queue_cycle": 0.5}),
        ("A5", {"tokens_low": 0.94}),
        ("A5", {"admitted_over_tpr": 0.94}),
        ("A6", {"slowest": 3e5}),
        ("A7", {"admitted_in": 4.94e5}),
        ("A7", {"admitted_over_tpr": 0.94}),
        ("A7", {"admitted_over_tpr": 1.06}),
        ("A7", {"admitted_std": 8e4}),
        ("A4", {"queue_std": 3.0}),
        ("A9", {"std_total": 6e4}),
        ("A10", {"lambda_in": 4.94e5}),
        ("A10", {"arrived_std": 8e4}),
    ],
)
def test_without_an_effect_a_claim_does_not_reproduce(claim: str, change: dict[str, float]) -> None:
    found = verdicts(**change)
    assert found[claim, "as-described"].verdict == Verdict.REPRODUCED
    if claim == "A3":  # The same under every scheme is no decrease at all.
        assert {c.outcome for c in found[claim, "tail-drop-edge"].comparisons} == {"holds"}
    else:
        assert found[claim, "tail-drop-edge"].verdict != Verdict.REPRODUCED


def test_ards_speed_is_not_compared_where_its_bucket_has_not_drained() -> None:
    """§III has no 10 s: where ARD's runs are ARM's until then, nothing is said of its speed."""
    speed = [
        c
        for c in verdicts(soon=2e4)["A6", "tail-drop-edge"].comparisons
        if "change over" in c.comparison.label
    ]
    assert len(speed) == 4
    assert all("has not drained" in (c.comparison.obstacle or "") for c in speed)


def test_flows_are_ranked_before_what_is_measured() -> None:
    """Among equal flows none is greedy, but the one picked by its own outcome seems to lose by any scheme."""
    rng = np.random.default_rng(5)
    early, rio, other = rng.normal(3e5, 5e4, (3, 400, 4))
    own = np.array([[other[i, rio[i].argmax()] - rio[i].max()] for i in range(400)]).mean()
    first = [ranked(before)[0] for before in early]
    fair = np.array([other[i, k] - rio[i, k] for i, k in enumerate(first)]).mean()
    assert own < -4e4
    assert abs(fair) < 1e4
    # Whoever is greedy in a run is found, whichever flow it is in another.
    early[::2, 2] += 4e5
    early[1::2, 0] += 4e5
    early[:, 3] -= 4e5
    assert [ranked(before) for before in early] == [(2, 3), (0, 3)] * 200


@pytest.mark.parametrize("ratio", [1.1, 1.3, 1.6, 1.9])
@pytest.mark.parametrize("p_drop", [0.0, 0.02])
def test_the_level_of_the_fixed_point_admits_the_tpr(ratio: float, p_drop: float) -> None:
    lambda_in, tpr = np.array([ratio * 570e3]), np.array([570e3])
    [tokens] = level(lambda_in, tpr, STATED, p_drop)
    p_rem = (15 - tokens) * 0.5 / 15  # Eq. (1)
    assert (1 - p_drop) * (1 - p_rem) * lambda_in[0] == pytest.approx(570e3)
    assert 0 < tokens < 15


@pytest.mark.parametrize(("ratio", "p_drop"), [(1.0, 0.0), (1.02, 0.02), (2.0, 0.0), (2.05, 0.02)])
def test_outside_the_region_there_is_no_level(ratio: float, p_drop: float) -> None:
    assert np.isnan(level(np.array([ratio]), np.array([1.0]), STATED, p_drop)).all()


def test_schemes_with_other_seeds_are_not_paired() -> None:
    paper = papers.load("ard")
    made = synthetic.cells(paper)
    cell = next(c for c in made if c.scheme == "ard")
    made[cell] = Measures((7, 8, 9, 10, 11, 12), made[cell].values, {}, made[cell].by_flow)
    with pytest.raises(ValueError, match="nothing to pair"):
        paper.module("claims").findings(paper, made)


def test_the_placebo_drops_as_often_as_ard_did() -> None:
    paper = papers.load("ard")
    ard = synthetic.measures("ard", 1, drops_marker=120.0, arrived_in=6000.0)
    values = paper.module("claims").derived("placebo", ard)
    assert values == {"edges.ER.marker": {"kind": "blind_drop", "p": 0.02, "of": "in"}}


def test_the_placebo_is_paired_with_ard_seed_by_seed() -> None:
    """Each seed's blind dropper drops as often as ARD did with that seed, and is run with that seed alone."""
    paper = papers.load("ard")
    full = {job.cell: job for job in plan("ard").jobs}
    job = next(job for job in full.values() if job.after is not None)
    assert job.after is not None
    ard = synthetic.measures("ard", 1)
    few = replace(job, seeds=len(ard.seeds))
    made = work_of(paper, few, {job.after: ard}, {})
    assert [list(seeds) for _, seeds in made.parts] == [[seed] for seed in ard.seeds]
    rates = [one["edges.ER.marker"]["p"] for one in made.derived]  # type: ignore[index]
    wanted = ard["drops_marker"] / ard["arrived_in"]
    assert rates == pytest.approx(list(wanted), rel=1e-3)
    assert len(set(rates)) > 1
    assert [json.loads(s.canonical)["edges"][0]["marker"]["with"]["p"] for s, _ in made.parts] == rates


def test_runs_made_seed_by_seed_are_one_experiments() -> None:
    paper = papers.load("ard")
    jobs = {job.cell: job for job in plan("ard", quick=True).jobs}
    job = next(job for job in jobs.values() if job.after is not None)
    assert job.after is not None
    short = {"duration": "140 s", "measure.to": "140 s"}
    source, blind = (replace(j, seeds=2, values={**j.values, **short}) for j in (jobs[job.after], job))
    measure = paper.module("measure").measure
    cells: dict[Cell, Measures] = {}
    for one in (source, blind):
        work = work_of(paper, one, cells, {})
        [cells[one.cell]] = measure_work(
            [work], [[]], lambda _, result, one=one: measure(result, one.cell, paper)
        )  # type: ignore[misc]
    found = cells[blind.cell]
    assert found.seeds == (1, 2)
    assert found.by_flow["throughput"].shape[0] == 2
    for i, (scenario, seeds) in enumerate(work.parts):
        alone = measure(scenario.run(seeds), blind.cell, paper)
        assert {name: x[i] for name, x in found.values.items()} == pytest.approx(
            {name: x[0] for name, x in alone.values.items()}, nan_ok=True
        )


def scenario(name: str) -> dict[str, object]:
    """An experiment of the paper's, with what it extends."""
    return load_scenario(papers.load("ard").folder / name).as_written


def test_the_tail_drop_edge_differs_only_in_what_was_fitted() -> None:
    for base, rate, depth in (
        ("four-flows", "1.04 Mbit/s", "3.5 packets"),
        ("twenty-flows", "5.76 Mbit/s", "1.5 packets"),
    ):
        described, fitted = scenario(f"{base}.toml"), scenario(f"{base}-tail-drop-edge.toml")
        edge = next(link for link in fitted["links"] if link["name"] == "edge")  # type: ignore[attr-defined]
        assert (edge["rate"], edge["queue"]["limit"]) == (rate, "50 packets")
        assert fitted["flows"][0]["marker"]["depth"] == depth  # type: ignore[index]
        edge.update(rate="10 Mbit/s", queue={"aqm": "drop_tail", "limit": "10000 packets"})
        fitted["flows"][0]["marker"] = described["flows"][0]["marker"]  # type: ignore[index]
        fitted["monitors"] = [m for m in fitted["monitors"] if m.get("queue") != "edge"]  # type: ignore[attr-defined]
        fitted.update(title=described["title"], measure=described["measure"])
        assert fitted == described


def test_the_full_core_buffer_differs_only_in_the_queue_and_what_fills_it() -> None:
    for base, limit, depth in (
        ("four-flows", "100 packets", "5 packets"),
        ("twenty-flows", "400 packets", "4 packets"),
    ):
        described, full = scenario(f"{base}.toml"), scenario(f"{base}-full-core-buffer.toml")
        core = next(link for link in full["links"] if link["name"] == "bottleneck")  # type: ignore[attr-defined]
        stated = next(link for link in described["links"] if link["name"] == "bottleneck")  # type: ignore[attr-defined]
        assert core["queue"] == {"aqm": "drop_tail", "limit": limit}
        assert stated["queue"]["limit"] == limit
        assert full["tcp"]["window"] == "64 packets"  # type: ignore[index]
        assert full["flows"][0]["marker"]["depth"] == depth  # type: ignore[index]
        core["queue"] = stated["queue"]
        full["tcp"]["window"] = described["tcp"]["window"]  # type: ignore[index]
        full["flows"][0]["marker"] = described["flows"][0]["marker"]  # type: ignore[index]
        full["title"] = described["title"]
        assert full == described


def test_fitted_setups_are_marked_and_the_described_one_is_first() -> None:
    setups = papers.load("ard").setups
    assert [s["id"] for s in setups] == list(SETUPS)
    assert [s.get("fitted", False) for s in setups] == [False, True, True, True]
    assert "contradicts Fig. 4(a) and 7(a)" in setups[2]["text"]


def test_the_narrow_edge_sets_tpr_max_to_the_narrowest_link() -> None:
    jobs = {job.cell: job for job in plan("ard", full=True).jobs}
    for topology, rate in (("four-flows", "1.04 Mbit/s"), ("twenty-flows", "5.76 Mbit/s")):
        for scheme in ("rio", "arm", "ard"):
            job = jobs[Cell("tail-drop-edge-narrow", topology, scheme)]
            edge = next(link for link in scenario(job.file)["links"] if link["name"] == "edge")  # type: ignore[attr-defined]
            assert job.values["edges.ER.marker.tpr_max"] == edge["rate"] == rate
        # The placebo has no TPR to set.
        assert not jobs[Cell("tail-drop-edge-narrow", topology, "placebo")].values


def test_the_plan_counts_what_is_run() -> None:
    default, quick, full = plan("ard"), plan("ard", quick=True), plan("ard", full=True)
    judged = [job for job in default.jobs if not job.cell.sweep]
    # Both set-ups with a tail-drop edge are run with --full only, and all but RIO with sender jitter.
    assert {job.cell.setup for job in judged} == {"as-described", "full-core-buffer"}
    assert len(judged) == 2 * 2 * (4 + 1)
    assert {job.cell.scheme for job in judged if job.cell.variant} == {"rio"}
    assert len([job for job in full.jobs if job.cell.variant]) == len(SETUPS) * 2 * 4
    # Of the sweeps what the advice needs.
    swept = [str(job.cell) for job in default.jobs if job.cell.sweep]
    assert swept == [
        *(f"as-described / four-flows / {scheme} / advised 1000 B" for scheme in ("rio", "arm", "ard")),
        "as-described / four-flows / rio / advised 1460 B",
    ]
    assert {job.seeds for job in default.jobs} == {PAPER.about["seeds"]["full"]}
    seeds = PAPER.about["seeds"]
    assert {job.seeds for job in quick.jobs} == {seeds["quick"]}
    assert {job.seeds for job in full.jobs if job.cell.sweep == "meter"} == {seeds["sweep"]}
    assert quick.runs < default.runs < full.runs
    assert default.cpu_seconds <= 60
    order = [job.cell.scheme for job in default.jobs]
    assert order.index("placebo") > order.index("ard")
    # Wherever the placebo stands in for ARD, ARD has run under the same conditions.
    seen = set()
    for job in full.jobs:
        assert job.after is None or job.after in seen
        seen.add(job.cell)


def test_kept_sweeps_are_those_of_the_paper() -> None:
    found = kept()
    named = [(s["id"], setup, [str(v) for v in s["values"]]) for s in shown(PAPER) for setup in s["setups"]]
    assert named == [(p["sweep"], p["setup"], [q["value"] for q in p["points"]]) for p in found["panels"]]
    assert found["seeds"] == PAPER.about["seeds"]["sweep"]
    assert all("placebo" in q["schemes"] for p in found["panels"] for q in p["points"])


def test_an_unknown_paper_names_those_there_are() -> None:
    with pytest.raises(papers.UnknownPaperError, match="choose from ard"):
        plan("adr")
