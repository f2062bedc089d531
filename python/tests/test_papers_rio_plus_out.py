"""Paper B: what is run, what is kept of a run, and how its claims are judged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from inprofile import load as load_scenario
from inprofile import papers
from inprofile.metrics.measures import Measures
from inprofile.papers import Cell
from inprofile.papers.claim import Judged
from inprofile.papers.judge import judge
from inprofile.papers.rio_plus_out import besides, claims, larger, measure, shared
from inprofile.papers.rio_plus_out.experiments import depth, jobs, levels, subscribed

SEEDS = (1, 2, 3, 4, 5, 6)
PAPER = papers.load("rio-plus-out")


def values(cell: Cell) -> dict[str, float]:
    """What a cell would measure if every claim held."""
    plus = cell.scheme == "rio-plus-out"
    made = {"in_drops": 0.0, "above:small": 1.0, "above:large": 0.6, "slope": -1.0 if plus else 1.0}
    made["utilisation"] = 0.99
    made |= {"avg_std": 1.0, "avg_out_std": 4.0, "avg_mean": 40.0, "avg_out_mean": 30.0, "avg_within": 0.99}
    made |= {"out_fraction_std": 0.1, "out_fraction_mean": 0.75, "third": 1e-5}
    if cell.topology == "table-1":
        printed = next(t for t in PAPER.about["table1"] if t["scheme"] == cell.scheme)
        for i, group in enumerate([*shared.profiles(PAPER), "be"]):
            for name in ("throughput", "loss_out", "marked_in", "marked_out"):
                made[f"{name}:{group}"] = printed[name][i]
        # In words the large profiles gain most; its own table says otherwise, and so would the claim.
        if plus:
            made["throughput:as4"] = 1221734 + 400e3
        # Only the largest bucket keeps the largest profile.
        if cell.sweep == "bucket" and float(cell.value) > 1e5:
            made["throughput:as4"] = 1.1 * 1350e3
    elif cell.topology == "figure-7":
        last = PAPER.find("crossings", cell.sweep).number(cell.scheme)
        profile = subscribed(PAPER)[cell.sweep] * 1e6
        made["throughput:as"] = profile * (0.98 - 0.01 * (float(cell.value) - last))
        made["loss_out:as"] = 0.01
    elif cell.topology == "figure-8":
        profile = float(cell.sweep.split()[0])
        kept = int(cell.value) <= dict(levels(PAPER))[profile].number(cell.scheme)
        # With the smallest profile RI+O adds something at the lowest level alone.
        more = 0.2 if plus and profile == 0.5 and int(cell.value) == 10 else 0.0
        made["throughput:as"] = profile * 1e6 * ((1.1 if kept else 0.9) + more)
        made["throughput:be"] = 3e5
    elif cell.topology == "figure-9":
        step = PAPER.find("steps", cell.value)
        count, first = step.whole("flows"), step.whole("first")
        for i in range(count):
            share = 1.2 if plus else 1.1 if i + 1 < first else 0.9
            made[f"throughput:as{i}"] = float(cell.value) * 1e6 * (i + 1) * share
    made["worst"] = 0.5
    made.setdefault("marked_in:as", 1e5)
    return made


def spread(rng: np.random.Generator) -> np.ndarray:
    """Draws of a measure's own, with mean 0."""
    drawn = rng.standard_normal(len(SEEDS))
    return drawn - drawn.mean()


def cells(**changes: float) -> dict[Cell, Measures]:
    """Every cell of a full run, with a spread of 0.1 %; `changes` are put into all of RI+O's."""
    made = {}
    for k, job in enumerate(j for batch in jobs(PAPER, full=True) for j in batch):
        rng = np.random.default_rng(k)
        found = {**values(job.cell), **(changes if job.cell.scheme == "rio-plus-out" else {})}
        made[job.cell] = Measures(SEEDS, {n: x * (1 + 1e-3 * spread(rng)) for n, x in found.items()}, {})
    return made


def verdicts(judged: list[Judged], setup: str = "as-printed") -> dict[str, str]:
    return {j.claim: j.verdict.value for j in judged if j.setup == setup}


def test_runs_as_the_paper_claims_are_reproduced() -> None:
    # Table I, of which the runs are made here, contradicts a sentence of the text.
    found = claims.findings(PAPER, cells())
    against = [f for f in found if f.claim == "B16"]
    assert [j.verdict.value for j in judge(against)] == ["no_effect"] * len(PAPER.setups)
    judged = judge([f for f in found if f not in against])
    for setup in PAPER.setups:
        by_claim = verdicts(judged, setup["id"])
        # Buckets are varied in two of them.
        assert len(by_claim) == len(PAPER.claims) - 1 - (setup.id not in ("as-printed", "fits-rates"))
        assert set(by_claim.values()) == {"reproduced"}, by_claim
    notes = {f.claim: f.notes for f in found if f.setup == "as-printed"}
    b3 = next(f for f in found if (f.claim, f.setup) == ("B3", "as-printed"))
    assert b3.told == "40 % sold: RIO 13, RI+O 30 (paper: 13, 30); 50 % sold: RIO 9, RI+O 17 (paper: 9, 17)"
    # Ten levels of three profiles; the flows of four steps.
    assert notes["B4"] == [
        "By the means, RIO does as claimed in 30 of 30 and RI+O does as claimed in 30 of 30."
    ]
    assert notes["B5"] == [
        "By the means, RIO does as claimed in 35 of 35 and RI+O does as claimed in 35 of 35."
    ]


def test_ri_plus_os_own_test_acts_where_it_makes_the_drops() -> None:
    judged = judge(claims.findings(PAPER, cells(third=0.005)))
    b14 = next(j for j in judged if j.claim == "B14")
    assert (b14.verdict.value, b14.count("opposite")) == ("opposite", 2)
    assert [c.mean for c in b14.comparisons] == pytest.approx([0.5, 0.5], rel=1e-3)


def test_what_best_effort_loses_is_told_where_rio_keeps_every_profile() -> None:
    made = cells()
    for cell, m in made.items():
        if cell.topology == "figure-8" and cell.scheme == "rio-plus-out" and cell.value in ("10", "20"):
            m.values["throughput:be"][:] *= 0.9  # type: ignore[index]
    # Table I's profiles are missed; of Fig. 8 RIO keeps 0.5 Mbit/s at nine levels below 100 %, 1 at six.
    left = besides.best_effort_left(PAPER, made, "as-printed")
    assert len(left) == 15
    assert sum(map(besides.is_hurt, left)) == 4
    b14 = next(f for f in claims.findings(PAPER, made) if f.claim == "B14")
    assert "shown to be below 0.95 in 4 of 15 experiments" in b14.notes[0]


def test_the_ladder_of_buckets_says_which_suffice() -> None:
    b12 = next(f for f in claims.findings(PAPER, cells()) if f.claim == "B12")
    # Up to six round trips: 3.2, 5, 8 and 13.5 KB at 270 kbit/s; and that the largest helps.
    assert [c.side for c in b12.comparisons] == ["below"] * 4 + ["above"]
    assert "0.905 with the printed buckets of 95: missed" in b12.notes[0]


def test_beside_b4_and_b5_stands_how_far_profiles_are_kept() -> None:
    found = {f.claim: f.told for f in claims.findings(PAPER, cells()) if f.setup == "as-printed"}
    assert (
        found["B4"]
        == "kept to (RIO, RI+O): 0.5 Mbit/s 100 %, 100 %; 1 Mbit/s 60 %, 80 %; 2 Mbit/s none, 60 %"
    )
    first, *_, last = found["B5"].split("; ")
    assert (first, last) == ("first missed (RIO, RI+O): 0.1 Mbit/s 10, none", "0.4 Mbit/s 2, none")


def test_what_is_advised_is_run_with_the_buckets_and_thresholds_that_it_names() -> None:
    """In no atlas; no claim counts it. Without --full what no sentence rests on is not run."""
    every = {job.cell: job for batch in jobs(PAPER, full=True) for job in batch}
    default = {job.cell: job for batch in jobs(PAPER) for job in batch}
    for entry in PAPER.top.tables("larger"):
        job = every[larger.cell(entry)]
        assert job.seeds == PAPER.seeds.whole("full")
        assert default.get(job.cell) == (None if entry.flag("full") else job)
        # Twenty-four round trips of 100 ms: 1350 kbit/s have 405 kB.
        assert job.values["flows.as4.marker.depth"] == "405000 B"
        assert entry.changes.items() <= job.values.items()
    for entry in PAPER.top.tables("sold"):
        for level in entry.numbers("levels"):
            job = every[larger.cell(entry, f"{level:g}")]
            assert default.get(job.cell) == (None if entry.flag("full") else job)
            count, profile = job.values["flows.as.count"], entry.number("profile")
            assert count * profile == pytest.approx(20 * level / 100)
            assert job.values["flows.as.contract"] == f"{profile * 1e6:g} bit/s"
            assert not any(claims.rests_on(PAPER, claim, job.cell) for claim in ("B3", "B4", "B5", "B12"))
    coarse = replace(PAPER, about={**PAPER.about, "coarse": True})
    assert not any(j.cell.sweep == "larger" or j.cell.topology == "sold" for b in jobs(coarse) for j in b)


def test_a_set_up_is_judged_on_what_was_run_of_it() -> None:
    run = {j.cell for batch in jobs(PAPER) for j in batch}
    found = claims.findings(PAPER, {c: m for c, m in cells().items() if c in run})
    by = {s["id"]: [f.claim for f in found if f.setup == s["id"]] for s in PAPER.setups}
    assert by["as-printed"] == [c["id"] for c in PAPER.claims]
    # Of the others Table I; where the advice needs it, one profile of Fig. 8, on which no claim is judged.
    without = ["B1a", "B1b", "B1c", "B6", "B8", "B11", "B15", "B16"]
    assert by["fits-counts"] == by["one-count"] == by["fits-rates"] == without
    assert {c.sweep for c in run if (c.setup, c.topology) == ("fits-rates", "figure-8")} == {"2 Mbit/s"}


def test_whose_throughput_is_kept_is_a_reading() -> None:
    worst = replace(PAPER, about={**PAPER.about, "maintain": "worst"})
    # The least of the flows is at half its profile everywhere.
    crossed = shared.crossings(worst, cells(), "as-printed", "40 %", "rio-plus-out")
    assert crossed.tolist() == [0.0] * len(SEEDS)
    assert verdicts(judge(claims.findings(worst, cells())))["B4"] == "mixed"


def test_runs_that_contradict_are_not() -> None:
    found = judge(claims.findings(PAPER, cells(**{"throughput:as2": 500e3, "slope": 1.0, "in_drops": 1e4})))
    by_claim = verdicts(found)
    assert [by_claim[c] for c in ("B1a", "B1b", "B2", "B8")] == ["mixed", "mixed", "mixed", "opposite"]
    why = next(j.why for j in found if j.claim == "B8")
    assert "RI+O: share of IN packets dropped" in why


def test_how_buckets_start_and_from_when_drops_count_is_asked_of_b8() -> None:
    """A world in which a full bucket's start loses IN packets, in Table I only."""
    made = cells()
    for cell, m in made.items():
        full = cell.topology == "table-1" and cell.variant not in ("empty", "apart")
        m.values["in_drops"][:] = 9e4 + np.arange(len(SEEDS)) if full else 0.0  # type: ignore[index]
    plain = next(f for f in claims.findings(PAPER, made) if (f.claim, f.setup) == ("B8", "as-printed"))
    judged = judge([plain])[0]
    # Each experiment by itself: Table I's loss is not averaged away by the figures, nor by the other scheme.
    against = [c.comparison for c in judged.comparisons if c.outcome == "opposite"]
    assert {(c.label.split(":")[0], c.topology) for c in against} == {
        (title, "Table I from the start") for title in shared.titles(PAPER).values()
    }
    assert len({(c.comparison.label, c.comparison.topology) for c in judged.comparisons}) == len(
        judged.comparisons
    )
    assert plain.notes[0].startswith("Most in as-printed / table-1 / rio: 90002.5 ± 2.0 packets a run, 18.1")
    for variant, setups in (("later", 3), ("empty", 1), ("apart", 1)):
        found = judge(claims.findings(PAPER, made, variant))
        assert [(j.claim, j.verdict.value) for j in found] == [("B8", "reproduced")] * setups
        # Drops of another way to start or to count are none of its.
        assert len(found[0].comparisons) == len(plain.comparisons)


def test_buckets_start_empty_where_a_variant_says_so() -> None:
    for job in (j for b in jobs(PAPER, full=True) for j in b):
        empty = [v for k, v in job.values.items() if k.endswith("starts_full")]
        assert empty == ([False] * len(empty) if job.cell.variant == "empty" else [])
        assert bool(empty) == (job.cell.variant == "empty")
        later = job.cell.topology == "table-1-later"
        assert later == (job.cell.variant == "later") == (job.values.get("measure.from") == "30 s")
    about = {
        **PAPER.about,
        "counted": "later",
        "variants": [],
        "sweeps": [],
        "setups": PAPER.setups[:1],
        "coarse": True,
    }
    reading = replace(PAPER, about=about)
    assert {"table-1", "table-1-later"} < {j.cell.topology for b in jobs(reading) for j in b}


def test_b8s_premise_has_experiments_of_its_own() -> None:
    """§2.2 assumes max_out ≤ min_in: no IN threshold lies below an OUT one, in Table I and the figures."""
    own = [j for b in jobs(PAPER, full=True) for j in b if j.cell.variant == "apart"]
    assert {j.cell.topology for j in own} == {"table-1", "figure-7", "figure-8", "figure-9"}
    for job in own:
        assert job.values["links.bottleneck.queue.in.min_th"] == "90 packets"
        total = job.values.get("links.bottleneck.queue.total")
        assert total is None or total["max_th"] == "90 packets"


def test_best_efforts_loss_is_judged_beside_the_assured_flows() -> None:
    """Fig. 5: below theirs under RIO, above it under RI+O."""
    [b6] = [f for f in claims.findings(PAPER, cells()) if (f.claim, f.setup) == ("B6", "as-printed")]
    beside = [c for c in b6.comparisons if "assured flows'" in c.label]
    assert [c.side for c in beside] == ["below", "above"]
    for c, scheme in zip(beside, ("rio", "rio-plus-out"), strict=True):
        m = cells()[Cell("as-printed", "table-1", scheme)]
        assured = np.mean([m[f"loss_out:as{i}"] for i in range(5)], axis=0)
        np.testing.assert_allclose(c.values, m["loss_out:be"] - assured)


def test_where_nothing_crosses_it_is_undecidable() -> None:
    made = cells()
    for cell, m in made.items():
        if cell.topology == "figure-7":
            m.values["throughput:as"][:] = 3e6  # type: ignore[index]
    judged = judge(claims.findings(PAPER, made))
    assert verdicts(judged)["B3"] == "undecidable"
    b3 = next(j for j in judged if j.claim == "B3")
    assert "kept against all 46 best-effort flows" in b3.why
    assert "not up to the 13 of the text" in b3.why
    # Printed numbers are counted apart.
    assert (b3.inside, len(b3.numbers)) == (0, 4)


def test_the_paper_is_shown_to_contradict_its_words() -> None:
    b1c = next(f for f in claims.findings(PAPER, cells()) if f.claim == "B1c")
    assert "+279, +325, +285, +259, +203" in b1c.notes[0]
    assert b1c.numbers[0].paper == pytest.approx(203364 - 278683)
    b6 = next(f for f in claims.findings(PAPER, cells()) if f.claim == "B6")
    assert "Table I: 6.4 and 0.4" in b6.notes[0]


def test_no_slope_under_ri_plus_o_is_in_part() -> None:
    made = cells()
    for cell, m in made.items():
        if cell.scheme == "rio-plus-out" and "slope" in m.values:
            m.values["slope"][:] = [-0.5, 0.5, 0.3, -0.3, 0.2, -0.2]  # type: ignore[index]
    assert verdicts(judge(claims.findings(PAPER, made)))["B2"] == "in_part"


@pytest.mark.parametrize("quick", [False, True])
def test_every_experiment_is_one_that_can_be_run(quick: bool) -> None:
    found = [j for batch in jobs(PAPER, quick, full=True) for j in batch]
    for job in found:
        assert load_scenario(PAPER.folder / job.file).with_(job.values).canonical
    assert len({j.cell for j in found}) == len(found)


def test_schemes_differ_as_the_text_has_it() -> None:
    """§2.2, §4: thresholds and averages; with or without the third RED nothing else differs."""
    queues = {}
    for job in (j for batch in jobs(PAPER) for j in batch):
        if job.cell.setup == "as-printed" and job.cell.topology == "table-1" and not job.cell.sweep:
            made = load_scenario(PAPER.folder / job.file).with_(job.values)
            way = json.loads(made.canonical)["links"][0]["ways"][0]
            queues[job.cell.scheme] = {**way["queue"]["aqm"]["with"], "limit": way["queue"]["limit"]}
    rio, plus = queues["rio"], queues["rio-plus-out"]
    assert (rio["avg_update"], plus["avg_update"]) == ("own_colour", "every_arrival")
    ends = [(t["min_th"]["packets"], t["max_th"]["packets"], t["max_p"]) for t in (plus["out"], rio["out"])]
    assert ends == [(10, 30, 0.1), (30, 90, 0.05)]
    assert [plus["total"], plus["in"]] == [rio["out"], rio["in"]]
    same = set(rio) & set(plus) - {"avg_update", "out"}
    assert {"w_q", "wait", "gentle", "limit"} <= same
    assert {k: rio[k] for k in same} == {k: plus[k] for k in same}


def test_a_readings_bucket_reaches_every_flow() -> None:
    """`[[readings]]` replace `bucket`, from which each flow's own is made: (i + 1) times Table I's first."""
    small = replace(PAPER, about={**PAPER.about, "bucket": 3200.0, "rtt": "80 ms"})
    for job in jobs(small)[0]:
        if job.cell.setup == "as-printed" and not job.cell.sweep:
            assert all(v == "80 ms" for k, v in job.values.items() if k.endswith(".rtt"))
    first = jobs(small)[0][0].values
    assert [first[f"flows.as{i}.marker.depth"] for i in range(5)] == [f"{3200 * (i + 1)} B" for i in range(5)]
    assert depth(3200.0, 2e6) == "23704 B"


def test_measures_of_a_short_run() -> None:
    job = next(j for b in jobs(PAPER) for j in b if j.cell == Cell("as-printed", "table-1", "rio-plus-out"))
    short = {**job.values, "duration": "20 s", "measure.to": "20 s"}
    result = load_scenario(PAPER.folder / job.file).with_(short).run(seeds=2)
    m = measure.measure(result, job.cell, PAPER)
    flows = result.flows.to_pylist()
    rates = [f["throughput"] for f in flows if f["seed"] == 1 and f["group"] == "be"]
    assert m["throughput:be"][0] == pytest.approx(np.mean(rates))
    # Best effort is all OUT, and what its queue lost is what its flows lost.
    assert m["marked_in:be"].tolist() == [0.0, 0.0]
    lost = sum(d["out"] for d in result.drops.to_pylist() if d["seed"] == 2)
    sent = sum(f["sent_out"] for f in flows if f["seed"] == 2)
    groups = [*shared.profiles(PAPER), "be"]
    by_group = sum(m[f"loss_out:{g}"][1] * m[f"marked_out:{g}"][1] * (20 if g == "be" else 1) for g in groups)
    assert by_group == pytest.approx(lost)
    assert 0 < lost < sent
    assert 0.5 < m["utilisation"][0] <= 1
    # RI+O's own test makes some of the OUT drops, RIO's the rest.
    assert 0 < m["third"][1] < lost / sent


def test_what_in_packets_see_is_measured_in_fig_2() -> None:
    job = next(j for b in jobs(PAPER) for j in b if j.cell == Cell("as-printed", "figure-2", "rio-plus-out"))
    assert job.values["links.bottleneck.queue.w_q"] == 0.02
    short = {**job.values, "duration": "20 s", "measure.to": "20 s"}
    m = measure.measure(load_scenario(PAPER.folder / job.file).with_(short).run(seeds=2), job.cell, PAPER)
    # RI+O's averages are computed together: their difference is that of OUT packets.
    assert all(m[f"seen:as{i}"].min() >= 0 for i in range(5))
    assert m["slope"].shape == (2,)


@pytest.mark.parametrize(("segment", "need"), [("536 B", 10.85), ("1460 B", 4.17)])
def test_the_window_that_a_profile_needs_goes_by_the_packet(segment: str, need: float) -> None:
    """Fig. 1: 0.5 Mbit/s in 100 ms are 6250 bytes."""
    job = next(j for b in jobs(PAPER) for j in b if j.cell == Cell("as-printed", "figure-1", "rio"))
    short = {**job.values, "duration": "30 s", "measure.to": "30 s", "tcp.segment": segment}
    # Fresh seeds, as an atlas confirms with: the seed that the page draws is not among them.
    result = load_scenario(PAPER.folder / job.file).with_(short).run(seeds=[1001, 1002])
    m = measure.measure(result, job.cell, PAPER)
    assert m["need:small"].tolist() == pytest.approx([need, need], abs=0.01)
