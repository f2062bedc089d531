"""Paper B: what is run, what is kept of a run, and how its claims are judged."""

from __future__ import annotations

import numpy as np
import pytest

from inprofile import load as load_scenario
from inprofile import papers
from inprofile.judge import Judged, judge
from inprofile.papers import Cell
from inprofile.papers.measures import Measures
from inprofile.papers.rio_plus_out import claims, measure
from inprofile.papers.rio_plus_out.experiments import STEPS, jobs

SEEDS = (1, 2, 3, 4, 5, 6)
PAPER = papers.load("rio-plus-out")


def values(cell: Cell) -> dict[str, float]:
    """What a cell would measure if every claim held."""
    plus = cell.scheme == "rio-plus-out"
    made = {"in_drops": 0.0, "above:small": 1.0, "above:large": 0.6, "slope": -1.0 if plus else 1.0}
    if cell.topology == "table-1":
        printed = next(t for t in PAPER.about["table1"] if t["scheme"] == cell.scheme)
        for i, group in enumerate([*claims.TABLE_1, "be"]):
            for name in ("throughput", "loss_out", "marked_in", "marked_out"):
                made[f"{name}:{group}"] = printed[name][i]
        # In words the large profiles gain most; its own table says otherwise, and so would the claim.
        if plus:
            made["throughput:as4"] = 1221734 + 300e3
    elif cell.topology == "figure-7":
        last = claims.PRINTED_CROSSINGS[cell.sweep][cell.scheme]
        profile = {"40 %": 2e6, "50 %": 2.5e6}[cell.sweep]
        made["throughput:as"] = profile * (claims.KEPT - 0.01 * (float(cell.value) - last))
    elif cell.topology == "figure-8":
        profile = float(cell.sweep.split()[0])
        kept = int(cell.value) <= claims.PRINTED_LEVELS[profile][cell.scheme]
        made["throughput:as"] = profile * 1e6 * (1.1 if kept else 0.9)
    elif cell.topology == "figure-9":
        count, _, first = STEPS[cell.value]
        for i in range(count):
            share = 1.2 if plus else 1.1 if i + 1 < first else 0.9
            made[f"throughput:as{i}"] = float(cell.value) * 1e6 * (i + 1) * share
    return made


def cells(**changes: float) -> dict[Cell, Measures]:
    """Every cell of a full run, with a spread of 0.1 %; `changes` are put into all of RI+O's."""
    made = {}
    for k, job in enumerate(j for batch in jobs(PAPER) for j in batch):
        rng = np.random.default_rng(k)
        found = {**values(job.cell), **(changes if job.cell.scheme == "rio-plus-out" else {})}
        spread = rng.standard_normal(len(SEEDS))
        spread -= spread.mean()
        made[job.cell] = Measures(SEEDS, {n: x * (1 + 1e-3 * spread) for n, x in found.items()}, {})
    return made


def verdicts(judged: list[Judged]) -> dict[str, str]:
    return {j.claim: j.verdict.value for j in judged}


def test_runs_as_the_paper_claims_are_reproduced() -> None:
    found = verdicts(judge(claims.findings(PAPER, cells())))
    assert set(found.values()) == {"reproduced"}, found


def test_runs_that_contradict_are_not() -> None:
    found = judge(claims.findings(PAPER, cells(**{"throughput:as2": 500e3, "slope": 1.0, "in_drops": 7.0})))
    by_claim = verdicts(found)
    assert [by_claim[c] for c in ("B1a", "B1b", "B2", "B8")] == ["in_part"] * 4
    why = next(j.why for j in found if j.claim == "B8")
    assert "RI+O: no IN packet dropped (Table I)" in why


def test_no_slope_under_ri_plus_o_is_in_part() -> None:
    made = cells()
    for cell, m in made.items():
        if cell.scheme == "rio-plus-out" and "slope" in m.values:
            m.values["slope"][:] = [-0.5, 0.5, 0.3, -0.3, 0.2, -0.2]  # type: ignore[index]
    assert verdicts(judge(claims.findings(PAPER, made)))["B2"] == "in_part"


@pytest.mark.parametrize("variant", ["sack", "rfc", "cubic"])
def test_variants_judge_what_was_run_again(variant: str) -> None:
    found = claims.findings(PAPER, cells(), variant)
    assert [f.claim for f in found] == ["B1a", "B1b", "B1c", "B2", "B6"]


@pytest.mark.parametrize("quick", [False, True])
def test_every_experiment_is_one_that_can_be_run(quick: bool) -> None:
    for job in (j for batch in jobs(PAPER, quick, sweeps=True) for j in batch):
        scenario = load_scenario(PAPER.folder / job.file).with_(job.values)
        assert scenario.canonical
    assert len({j.cell for b in jobs(PAPER, quick, True) for j in b}) == sum(
        map(len, jobs(PAPER, quick, True))
    )


def test_measures_of_a_short_run() -> None:
    job = next(j for b in jobs(PAPER) for j in b if j.cell == Cell("as-described", "table-1", "rio-plus-out"))
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
    groups = [*claims.TABLE_1, "be"]
    by_group = sum(m[f"loss_out:{g}"][1] * m[f"marked_out:{g}"][1] * (20 if g == "be" else 1) for g in groups)
    assert by_group == pytest.approx(lost)
    assert 0 < lost < sent
    assert all(m[f"seen:as{i}"].min() >= 0 for i in range(5))
