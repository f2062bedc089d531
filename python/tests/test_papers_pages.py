"""The pages of papers B and C, made of made-up measures: what they show and what is left open."""

from __future__ import annotations

import numpy as np
import pytest

from inprofile import papers
from inprofile.judge import judge
from inprofile.measures import Measures, Trace
from inprofile.papers import Cell, Paper
from inprofile.report.page import render
from inprofile.reproduce import plan
from inprofile.reproduced import Report

SEEDS = (1, 2, 3)


@pytest.fixture(autouse=True)
def without_stills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Still pictures are tested elsewhere, and take seconds."""
    monkeypatch.setattr("inprofile.report.page.Stills", lambda _: lambda _: "")


class Anything(dict[str, np.ndarray]):
    """A measure for whatever name is asked, a little different for each."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self._cell = cell

    def __missing__(self, name: str) -> np.ndarray:
        rng = np.random.default_rng(sum(map(ord, f"{name}{self._cell}")))
        at = float(self._cell.value) if self._cell.value.replace(".", "").isdigit() else 1.0
        return 0.5 + 0.001 * at + 0.01 * rng.random(len(SEEDS))


def report(paper: Paper) -> Report:
    t = np.arange(0.0, 100.0, 0.1)
    trace = Trace(t, *(np.full(t.shape, x) for x in (5.0, 4.0, 5.0, 6.0)))
    jobs = {job.cell: job for job in plan(paper.name).jobs}
    cells = {cell: Measures(SEEDS, Anything(cell), {"large": trace, "small": trace}) for cell in jobs}
    findings = paper.module("claims").findings
    variants = {v.id: judge(findings(paper, cells, v.id)) for v in paper.variants}
    judged = judge(findings(paper, cells))
    return Report(paper, False, False, cells, judged, variants, jobs, dict.fromkeys(jobs, "0" * 64))


def test_the_page_of_ri_plus_o() -> None:
    page = render(report(papers.load("rio-plus-out")))
    assert "40 % subscribed</b>, as printed: kept against" in page
    assert "Steps of 0.1 Mbit/s</b>, as printed" in page
    assert "Passages that can be read in more than one way" in page
    assert "in the well-engineered regime only OUT packet drops occur" in page
    assert "Buckets empty at the start: " in page


def test_the_page_of_the_probe_marker() -> None:
    page = render(report(papers.load("probe")))
    assert "10 flows, hard differentiation" in page
    assert "10 flows, bins of 0.32 s" in page
    assert "Load in bins of five round trips, 1.6 s: " in page
    assert "What the paper does not state" in page
