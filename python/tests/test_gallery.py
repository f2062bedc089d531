"""Papers of the gallery: their sources, their experiments, and where switching to BBR stops to pay.

What the page of markers says of the fair policer, on fewer seeds and a shorter run.
"""

from __future__ import annotations

import numpy as np
import pytest
from markupsafe import escape

import inprofile
from inprofile import papers
from inprofile.metrics.measures import Array, Measures
from inprofile.papers import Cell, verdicts
from inprofile.papers.claim import Verdict
from inprofile.papers.experiment import work_of
from inprofile.papers.judge import judge
from inprofile.papers.report import Report
from inprofile.studies.atlas.store import committed, stale
from inprofile.studies.reproduce.report import render
from inprofile.studies.reproduce.report.atlas import atlas_context

NAMES = papers.gallery()


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_says_where_it_stands_and_what_was_at_hand(name: str) -> None:
    paper = papers.load(name)
    parts = {part.id for part in paper.top.tables("at_hand")}
    for claim in paper.claims:
        assert claim.word("part") in parts
        assert len(claim.word("quote").split()) >= 3
    assert paper.factors, "an atlas needs something to vary"


@pytest.mark.parametrize("name", NAMES)
def test_it_takes_five_minutes_at_most_and_every_experiment_can_be_run(name: str) -> None:
    paper = papers.load(name)
    jobs = [job for batch in paper.module("experiments").jobs(paper) for job in batch]
    assert sum(job.cost * job.seeds for job in jobs) <= 300
    for job in jobs:
        work_of(paper, job, {}, {}).parts[0][0].check()


@pytest.mark.parametrize("name", NAMES)
def test_its_verdicts_and_its_atlas_are_of_it(name: str) -> None:
    paper = papers.load(name)
    found = verdicts.committed(paper)
    assert found is not None, f"{name} has no verdicts: make renew"
    assert verdicts.stale(paper, found) == ""
    atlas = committed(paper)
    assert atlas is not None, f"{name} has no atlas: inprofile atlas {name}, then docs/renew.py"
    assert stale(paper, atlas) == "", "make renew"
    # What its page says of the factors begins with one that explains most of any claim.
    shares = [(share, factor) for c in atlas["claims"] for factor, share in c["importance"].items()]
    most = max(share for share, _ in shares)
    first = [f.title for f in paper.factors if (most, f.id) in shares]
    said = atlas_context(atlas, paper)["foremost"]
    assert any(f"points: {title} ({100 * most:.0f} % of" in said for title in first) or most <= 0, said
    assert most > 0 or said.startswith("No factor")


class Invented(dict[str, Array]):
    """Whatever is asked for: a share, a value a seed."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Array:
        return np.linspace(0.4, 0.6, 6)


@pytest.mark.parametrize("name", NAMES)
def test_its_page_has_every_figure_and_verdict(name: str) -> None:
    paper = papers.load(name)
    jobs = {job.cell: job for batch in paper.module("experiments").jobs(paper) for job in batch}
    cells = {cell: Measures((1, 2, 3, 4, 5, 6), Invented(seed=np.arange(6.0)), {}) for cell in jobs}
    judged = judge(paper.findings(cells))
    report = Report(
        paper, False, False, cells, judged, {}, jobs, dict.fromkeys(jobs, ""), atlas=committed(paper)
    )
    html = render(report)
    for entry in (*paper.claims, *paper.top.tables("computed")):
        assert escape(entry.word("text" if "text" in entry else "title")) in html
    assert html.count("<figure>") >= len(paper.top.tables("computed"))


def test_the_five_papers_stay_five() -> None:
    assert not set(NAMES) & set(papers.names())


def mixtures(bbr: list[float], cubic: list[float]) -> dict[Cell, Measures]:
    """Goodputs by how many of ten flows are BBR, the same on every network, nearly the same with 8 seeds."""
    paper = papers.load("bbr-equilibrium")
    seeds, wobble = tuple(range(1, 9)), np.linspace(0.9999, 1.0001, 8)
    cells = {}
    for topology in paper.topologies:
        for k in range(11):
            values = {}
            if k > 0:
                values["bbr.goodput"] = 1e6 * bbr[k] * wobble
            if k < 10:
                values["cubic.goodput"] = 1e6 * cubic[k] * wobble[::-1]
            if 0 < k < 10:
                values["lead"] = values["bbr.goodput"] / values["cubic.goodput"]
            cells[Cell("ten-flows", topology.id, str(k))] = Measures(seeds, values, {})
    return cells


def test_switching_stops_to_pay_where_the_lines_cross() -> None:
    """BBR gets 10 − k, CUBIC 4.5: the fifth who switches gets 5 and had 4.5, the sixth 4: five are BBR."""
    paper = papers.load("bbr-equilibrium")
    cells = mixtures([10.0 - k for k in range(11)], [4.5] * 11)
    rows = paper.module("claims").table(paper, cells)
    assert rows[0]["values"] == pytest.approx([5.0] * 8, abs=0.01)
    judged = {j.claim: j for j in judge(paper.findings(cells))}
    assert judged["M3"].verdict is Verdict.REPRODUCED
    # The same on every buffer: the buffer moves nothing.
    assert judged["M4"].verdict is Verdict.NO_EFFECT


def test_where_every_switch_pays_all_are_bbr() -> None:
    paper = papers.load("bbr-equilibrium")
    cells = mixtures([9.0] * 11, [1.0] * 11)
    assert paper.module("claims").table(paper, cells)[0]["values"] == [10.0] * 8
    judged = {j.claim: j for j in judge(paper.findings(cells))}
    # The networks have the same samples here, and count once: the first gains, and so does the last.
    assert (judged["M3"].count("holds"), judged["M3"].count("opposite")) == (1, 1)


FLOW = """
[[flows]]
name = "{0}"
count = 4
from = "H*"
join = {{ node = "r", rate = "1 Gbit/s" }}
to = "s"
rtt = "40 ms"
start = "uniform 0..1 s"
tcp = {{ congestion = "{0}" }}
"""
LINK = """
title = "Two kinds of senders through one policer"
duration = "30 s"
measure = { from = "10 s" }
tcp = { profile = "linux" }
[[links]]
name = "b"
from = "r"
to = "s"
rate = "100 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "500 packets" }
[[edges]]
node = "r"
"""


def shares(marker: str) -> tuple[dict[str, float], float]:
    """Mean goodput of a flow of either kind in Mbit/s, and the mean queueing delay in s."""
    flows = FLOW.format("cubic") + FLOW.format("bbr")
    result = inprofile.parse(f"{LINK}marker = {{ {marker} }}\n{flows}").run(range(1, 3))
    got: dict[str, float] = {}
    for row in result.rows("flows"):
        group = str(row.keys["group"])
        got[group] = got.get(group, 0.0) + row.figures["goodput"].mean / 4e6
    return got, result.summary()["delay_mean"].mean


def test_bbr_starves_cubic_at_a_token_bucket_and_not_at_a_fair_policer() -> None:
    bucket, _ = shares('kind = "token_bucket", rate = "20 Mbit/s", depth = "100 kB", action = "drop"')
    fair, delay = shares('kind = "fair_policer", rate = "20 Mbit/s", burst = "100 kB"')
    ample, _ = shares('kind = "fair_policer", rate = "20 Mbit/s", burst = "400 kB"')
    assert bucket["bbr"] > 3 * bucket["cubic"]
    assert fair["bbr"] < 1.25 * fair["cubic"]
    assert abs(ample["bbr"] - ample["cubic"]) < 0.05
    assert delay < 2e-4, "it has no queue"
    assert sum(fair.values()) * 4 > 19
