"""`make validate`: its drawn experiments, what alone may differ from ns-2, and the bounds of closed loops.

`make validate-live` without its hosts: what is made of runs, and which of them are taken over.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import drawn
import explained
import kernel
import kernel_rows
import loops
import pytest
import random_runs

from forked import put_ns
from inprofile import parse
from inprofile.metrics.stats import Interval
from inprofile.studies.validate import ns2_script
from inprofile.studies.validate.distribution import Distribution, Figure


def test_each_is_read_and_ns2_has_words_for_it() -> None:
    queues, traits = set(), set()
    for seed in range(1, 201):
        found = drawn.draw(seed)
        assert ns2_script(parse(found.text)).count("$ns run") == 1
        queues.add(found.queue)
        traits.update(found.traits)
    assert queues == set(drawn.QUEUES)
    assert {"CBR", "transfers", "stop", "datagrams at drawn times", "6 to 12 hops", "SACK"} <= traits


def test_a_seed_is_an_experiment() -> None:
    assert drawn.draw(7).text == drawn.draw(7).text != drawn.draw(8).text


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("echo '+ 0 0 1 tcp 40 ------- 0 0.0 1.0 0 0' > $2", "different from event"),
        # Only dsRED's own division is an explanation, and here is none.
        ("kill -FPE $$", "ended by signal 8"),
    ],
)
def test_what_differs_is_kept_with_its_seed(
    program: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_ns(tmp_path, monkeypatch, program)
    monkeypatch.setattr(random_runs, "ROOT", tmp_path)
    monkeypatch.setattr(random_runs, "DIVERGED", tmp_path / "diverged")
    seed = next(seed for seed in range(1, 100) if drawn.draw(seed).queue == "drop_tail")
    outcome = random_runs.run(seed)
    assert outcome.word == random_runs.OPEN
    assert why in outcome.why
    kept = tmp_path / "diverged" / f"drawn-{seed}.toml"
    assert kept.read_text(encoding="utf-8") == drawn.draw(seed).text
    told = random_runs.told(outcome)
    assert told.startswith(f"seed {seed} (drop-tail): ")
    assert told.endswith(f"again: inprofile validate diverged/drawn-{seed}.toml --seed 1")
    tally = random_runs.Tally(seed, (outcome,))
    assert not tally.accounted
    assert tally.to_json()["diverged"][0]["seed"] == seed
    assert "| **all** | 1 | 0 | 0 | 0 | 0 | 1 |" in random_runs.table(tally.to_json())


def found(apart: set[str], beyond: set[str]) -> Distribution:
    """A comparison in which these distributions are distinguishable, and these means beyond their margins."""
    names = ("fi", "lambda_in", "lambda_out", "throughput", "drops")
    figures = tuple(
        Figure(
            name,
            (1.0, 2.0),
            (1.0, 2.0),
            0.1,
            0.0,
            Interval(0.0, 0.0),
            1.0 if name in beyond else 0.0,
            0.0 if name in apart else 1.0,
        )
        for name in names
    )
    return Distribution("x", "x.toml", 2, figures)


@pytest.mark.parametrize(
    ("apart", "beyond", "passes"),
    [
        ({"throughput", "drops"}, set(), True),
        # A mean beyond its margin is explained by nothing, whatever its distribution.
        ({"throughput", "drops"}, {"fi"}, False),
        ({"throughput", "drops"}, {"drops"}, False),
        # No other figure may be distinguishable, and an explanation of what is alike is out of date.
        ({"throughput", "drops", "fi"}, set(), False),
        ({"drops"}, set(), False),
        (set(), set(), False),
    ],
)
def test_an_explanation_allows_what_it_names_alone(
    apart: set[str], beyond: set[str], *, passes: bool
) -> None:
    explanation = explained.EXPLAINED["paper-a-rio"]
    reason = explained.Reason("", holds=True)
    assert explained.accounted(found(apart, beyond), explanation, reason) is passes
    assert not explained.accounted(found(apart, beyond), explanation, replace(reason, holds=False))


@pytest.mark.parametrize(("apart", "beyond"), [(set(), set()), ({"fi"}, set()), (set(), {"fi"})])
def test_without_an_explanation_all_is_equivalent(apart: set[str], beyond: set[str]) -> None:
    assert explained.accounted(found(apart, beyond), None, None) is (not apart and not beyond)


@pytest.mark.parametrize(
    ("congestion", "ours", "beyond"),
    [
        ("cubic", (0.951, 121.0, 9.1), []),
        # What a threshold above the window just left came to.
        ("cubic", (0.722, 4844.0, 13.9), ["utilisation", "drops"]),
        ("cubic", (0.93, 131.0, 20.0), ["queue_mean"]),
        ("cubic", (0.93, 0.0, 9.0), ["drops"]),
        # Without SACK ns-3's drops and queue are no measure.
        ("reno", (0.93, 4844.0, 20.0), []),
        ("reno", (0.8, 131.0, 9.0), ["utilisation"]),
    ],
)
def test_what_is_beyond_the_bounds(
    congestion: str, ours: tuple[float, float, float], beyond: list[str]
) -> None:
    row = loops.Row("red", "rfc", congestion, loops.Figures(*ours), loops.Figures(0.929, 131.0, 8.9))
    assert row.beyond == beyond
    found = loops.Found((row,), "3.44")
    assert found.agrees is not bool(beyond)
    assert all(name in found.section() for name in beyond)


def test_what_cannot_be_had_is_said() -> None:
    assert "not compared this time: g++ is missing." in loops.Found(missing="g++ is missing").section()


VALIDATION = Path(__file__).parents[2] / "validation"
DOCS = VALIDATION.parent / "docs"


@pytest.fixture(scope="module")
def rows() -> list[kernel_rows.Row]:
    return kernel_rows.read(json.loads((DOCS / "kernel.json").read_text(encoding="utf-8")))


def test_the_page_is_what_the_figures_say(rows: list[kernel_rows.Row]) -> None:
    assert kernel_rows.page(rows, kernel.SIMULATED) == (DOCS / "kernel.md").read_text(encoding="utf-8")
    assert kernel_rows.stored(rows) == json.loads((DOCS / "kernel.json").read_text(encoding="utf-8"))


def test_every_case_has_a_row_for_each_of_its_transports(rows: list[kernel_rows.Row]) -> None:
    assert [(row.case, row.transport) for row in rows] == [
        (case.name, transport) for case in kernel.CASES for transport in case.transports
    ]


@pytest.mark.parametrize(
    ("verdict", "field", "factor"),
    [
        ("queue", "queue", 1.16),
        ("goodput", "goodput", 0.98),
        ("loss", "loss_out", 1.16),
        ("retransmissions", "retransmissions", 0.84),
        ("fi", "fi", 0.97),
    ],
)
def test_what_lies_outside_its_bound_is_marked(
    rows: list[kernel_rows.Row], verdict: str, field: str, factor: float
) -> None:
    same = replace(rows[0], live=rows[0].simulated)
    assert all(same.verdicts.values())
    live = replace(rows[0].simulated, **{field: factor * getattr(rows[0].simulated, field)})
    off = replace(same, live=live)
    assert [name for name, within in off.verdicts.items() if not within] == [verdict]
    lines = kernel_rows.share_line(off) + kernel_rows.resent_line(off)
    assert lines.count("**!**") == 1


def test_one_timeout_a_run_is_within_and_two_are_not(rows: list[kernel_rows.Row]) -> None:
    simulated = replace(rows[0].simulated, timeouts=0.0)
    for timeouts, within in ((1.0, True), (2.0, False)):
        row = replace(rows[0], simulated=simulated, live=replace(simulated, timeouts=timeouts))
        assert row.verdicts["timeouts"] is within


def run(resent: list[int], dropped: list[int]) -> dict[str, Any]:
    flows = {"goodput": [1.0, 3.0], "retransmissions": resent, "dropped": dropped, "timeouts": [1, 0]}
    return {"metrics": {"fi": 0.8, "queue_mean": 5.0, "goodput": 4.0, "loss_in": 0.0}, "flows": flows}


def test_needless_is_what_was_sent_again_beyond_what_was_dropped() -> None:
    means = kernel_rows.measured([run([4, 6], [4, 5]), run([7, 7], [4, 5])])
    assert (means.shares, means.retransmissions, means.needless, means.timeouts) == (
        [0.25, 0.75],
        12.0,
        3.0,
        1.0,
    )
    assert means.spread["retransmissions"] == pytest.approx(8**0.5)
    assert (means.loss_out, means.loss) == (None, 0.0)


def test_a_run_of_this_experiment_on_this_kernel_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []

    def one(_: object, __: str, ___: object, seed: int, ____: str, live: bool) -> dict[str, Any]:
        measured.append(seed)
        return run([seed, 0], [0, 0])

    monkeypatch.setattr(kernel, "one", one)
    case = kernel.CASES[0]
    first = kernel.one_live(case, "reno", None, 1, tmp_path)
    assert kernel.one_live(case, "reno", None, 1, tmp_path) == json.loads(json.dumps(first))
    assert measured == [1]
    kernel.one_live(case, "reno", 60, 1, tmp_path)
    monkeypatch.setattr(kernel.platform, "release", lambda: "another")
    kernel.one_live(case, "reno", 60, 1, tmp_path)
    assert measured == [1, 1, 1]
    assert [file.name for file in tmp_path.iterdir()] == ["a-rio.reno.1.json"]
