"""`make validate-live` without its hosts: what is made of runs, and which of them are taken over."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import kernel
import kernel_rows
import pytest

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
    flows = {
        "goodput": [1.0, 3.0],
        "retransmissions": resent,
        "dropped": dropped,
        "timeouts": [1, 0],
    }
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
