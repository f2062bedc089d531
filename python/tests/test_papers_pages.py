"""The pages of papers B and C, made of made-up measures: what they show and what is left open."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from inprofile import papers
from inprofile.cli.reproduce import as_text
from inprofile.metrics.measures import Measures, Trace
from inprofile.papers import Cell, verdicts
from inprofile.papers.advice import advice_of, committed, read
from inprofile.papers.report import Report
from inprofile.studies.reproduce import answered, plan
from inprofile.studies.reproduce.report import write, write_overview
from inprofile.studies.reproduce.report.data import report_json
from inprofile.studies.reproduce.report.overview import _row
from inprofile.studies.reproduce.report.page import render

SEEDS = (1, 2, 3)


@pytest.fixture(autouse=True)
def without_stills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Still pictures are tested elsewhere, and take seconds."""
    monkeypatch.setattr("inprofile.charts.page.Stills", lambda _: lambda _: "")


class Anything(dict[str, np.ndarray]):
    """A measure for whatever name is asked, a little different for each."""

    def __init__(self, cell: Cell) -> None:
        # Some paper B counts its IN packets by, group by group.
        super().__init__({"marked_in:as0": np.full(len(SEEDS), 1000.0)})
        self._cell = cell
        # What paper C takes over measure by measure, by the names that there are.
        self.update({name: self[name] for name in ("goodput", "delay")})

    def __missing__(self, name: str) -> np.ndarray:
        rng = np.random.default_rng(sum(map(ord, f"{name}{self._cell}")))
        at = float(self._cell.value) if self._cell.value.replace(".", "").isdigit() else 1.0
        return 0.5 + 0.001 * at + 0.01 * rng.random(len(SEEDS))


@cache
def report(name: str, full: bool = False, quick: bool = False) -> Report:
    t = np.arange(0.0, 100.0, 0.1)
    trace = Trace(t, *(np.full(t.shape, x) for x in (5.0, 4.0, 5.0, 6.0)))
    planned = plan(name, quick, full)
    cells = {
        cell: Measures(SEEDS, Anything(cell), {"large": trace, "small": trace})
        for cell in (j.cell for j in planned.jobs)
    }
    return answered(planned, cells, dict.fromkeys(cells, "0" * 64), {})


def test_the_page_of_ri_plus_o() -> None:
    page = render(report("rio-plus-out"))
    assert "40 % subscribed</b>, as printed: kept against" in page
    assert "Steps of 0.1 Mbit/s</b>, as printed" in page
    assert "Passages that can be read in more than one way" in page
    assert "in the well-engineered regime only OUT packet drops occur" in page
    assert "Buckets empty at the start (committed, not run here): mixed." in page


def test_the_page_of_the_probe_marker() -> None:
    page = render(report("probe"))
    assert "10 flows, hard differentiation" in page
    assert "10 flows, bins of 0.32 s" in page
    assert "In bins of 1.6 s: " in page
    assert "What the paper does not state" in page


@pytest.mark.parametrize("name", ["rio-plus-out", "probe"])
def test_a_quick_run_has_the_experiment_that_is_advised(name: str) -> None:
    """The page says that `reproduce --quick` writes it."""
    made = report(name, quick=True)
    advice = advice_of(made)
    assert advice is not None
    assert made.jobs[advice.experiment].file.endswith(".toml")


@pytest.mark.parametrize("name", ["rio-plus-out", "probe"])
def test_the_first_screen_needs_nothing_that_is_run_with_full_only(name: str) -> None:
    advice, whole = advice_of(report(name)), advice_of(report(name, full=True))
    assert advice is not None
    assert whole is not None
    assert not any(said.kept for said in (*advice.sentences, *whole.sentences))
    # What no sentence gives is of the last run with all cells.
    known = committed(papers.load(name))
    assert known is not None
    lacking = {"rio-plus-out": "big_deep", "probe": "wide"}[name]
    assert advice.figures[lacking] == known[1][lacking] != whole.figures[lacking]


def test_a_figure_of_the_last_whole_run_is_named_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = report("rio-plus-out")
    about = {**(read(made.paper) or {})}
    about["change"] = {"text": "Behind larger buckets {big_deep:.0%} or {big_low:.0%}."}
    monkeypatch.setattr("inprofile.papers.advice.read", lambda _: about)
    advice = advice_of(made)
    assert advice is not None
    assert advice.to_json()["kept"] == {"change": ["big deep"]}
    assert "Run with <code>--full</code> only, and here of the last such run: big deep." in render(made)


#: Of a run without `--full`: claims of set-ups of which it has only a part of the experiments.
IN_PART = {
    "rio-plus-out": {
        *(
            (claim, setup)
            for claim in ("B2", "B3", "B4", "B5", "B7", "B8", "B9", "B10", "B13", "B14")
            for setup in ("fits-counts", "fits-rates", "one-count")
        ),
        ("B12", "fits-rates"),
        # Table I with fewer seeds.
        *(
            (claim, setup)
            for claim in ("B1a", "B1b", "B1c", "B6", "B11", "B15", "B16")
            for setup in ("fits-counts", "one-count")
        ),
    },
    # Of the other set-ups what is run is shorter without --full.
    "probe": {
        *((f"C{n}", setup) for n in (*range(1, 13), 14, 15) for setup in ("ns2", "ns2-wait", "floyd93-wait")),
        # C13 has all its seeds with --full only.
        ("C13", "floyd93"),
        ("C13", "ns2-wait"),
    },
}


@pytest.mark.parametrize("name", IN_PART)
def test_what_was_run_in_part_has_its_committed_verdict(name: str) -> None:
    """A claim judged from a part of its experiments may come out otherwise than from all of them."""
    made, known = report_json(report(name)), verdicts.committed(papers.load(name))
    assert known is not None
    full = {(c["id"], c["setup"]): c for c in known["claims"]}
    assert {(c["id"], c["setup"]) for c in made["claims"] if c["source"] == "committed"} == IN_PART[name]
    for claim in made["claims"]:
        key = (claim["id"], claim["setup"])
        if key in IN_PART[name]:
            assert claim["verdict"] == full[key]["verdict"]
            assert claim["comparisons"]["holds"] == full[key]["holds"]
        for where in claim["holds_where"]:
            if "setup" in where:
                assert where["source"] == (
                    "committed" if (key[0], where["setup"]) in IN_PART[name] else "run"
                )
    assert made["committed"] == {key: known[key] for key in ("date", "version", "seeds")}


def test_with_full_every_verdict_is_of_the_run() -> None:
    made = report_json(report("rio-plus-out", full=True))
    assert {c["source"] for c in made["claims"]} == {"run"}
    assert {v["source"] for c in made["claims"] for v in c["variants"].values()} == {"run"}


def test_a_committed_verdict_is_marked_and_counted_apart(tmp_path: Path) -> None:
    made = report("rio-plus-out")
    text = as_text(made)
    line = next(line for line in text.splitlines() if line.startswith("B8"))
    assert line.count("†") == 3
    assert "reproduced (96/96)†" in line
    assert "† Not all of its experiments were run here: the verdict committed 2" in text
    page = render(made)
    # In the tally, the matrix, and each claim in full.
    assert page.count('<span class="verdict reproduced kept">') >= 3
    assert "Committed, not run here" in page
    write(made, tmp_path / "rio-plus-out")
    row = _row(json.loads((tmp_path / "rio-plus-out" / "results.json").read_text("utf-8")))
    by = {b["setup"]["id"]: b for b in row["by_setup"]}
    # B12 is of two set-ups; of Table I alone are seven claims, whole in two.
    assert sum(by["fits-rates"]["counts"].values()) == 7
    assert sum(by["fits-rates"]["kept"].values()) == 11
    assert sum(by["fits-counts"]["kept"].values()) == 17
    assert sum(row["counts"].values()) == 18 + 7
    assert "committed, not run here" in write_overview(tmp_path).read_text("utf-8")


def test_without_a_committed_verdict_it_is_said_that_it_was_not_run() -> None:
    made = replace(report("rio-plus-out"), committed=None)
    # Set-ups of which no verdict is known are not shown.
    lacking = {(claim, setup) for claim, setup in IN_PART["rio-plus-out"] if setup == "fits-rates"}
    assert {(c["id"], c["setup"]) for c in report_json(made)["not_run"]} == lacking
    assert render(made).count("not run here (<code>--full</code>)") == len(lacking)
    assert next(line for line in as_text(made).splitlines() if line.startswith("B8")).count("not run") == 1


def test_variants_run_in_part_have_their_committed_verdicts() -> None:
    """Paper B's are run with `--full` alone, paper C's are judged from the plain runs."""
    made = report_json(report("rio-plus-out"))
    b8 = next(c for c in made["claims"] if (c["id"], c["setup"]) == ("B8", "as-printed"))
    assert b8["source"] == "run"
    assert {v["source"] for v in b8["variants"].values()} == {"committed"}
    made = report_json(report("probe"))
    c10 = next(c for c in made["claims"] if (c["id"], c["setup"]) == ("C10", "floyd93"))
    assert {v["source"] for v in c10["variants"].values()} == {"run"}
