"""Traces in mahimahi's format: into an experiment, out of one, and what the link then sends."""

from __future__ import annotations

from pathlib import Path

import pytest

import inprofile
from inprofile.cli import main
from inprofile.experiment.traces import TraceError, opportunities, with_trace

EXPERIMENT = """
title = "A link"
duration = "2 s"
seeds = 1
[[links]]
name = "cell"
from = "L"
to = "R"
rate = "6 Mbit/s"
delay = "20 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[flows]]
name = "f"
from = "L"
to = "R"
traffic = { kind = "cbr", rate = "20 Mbit/s", packet = "1500 B" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cell.toml"
    path.write_text(EXPERIMENT)
    return path


def _run(*words: object) -> int | str:
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code or 0


def test_a_trace_goes_into_an_experiment_and_comes_out_again(file: Path, tmp_path: Path) -> None:
    text = "".join(f"{ms}\n" for ms in [0, 3, 3, 8, 20, 20, 50])
    (tmp_path / "some.up").write_text(text)
    made, again = tmp_path / "made.toml", tmp_path / "again.up"
    assert _run("trace", file, "--link", "cell", "--from", tmp_path / "some.up", "--out", made) == 0
    assert _run("trace", made, "--link", "cell", "--out", again) == 0
    assert again.read_text() == text
    # Seven opportunities in each of 40 rounds; the flow sends more than that, from 0 s on.
    result = inprofile.load(made).run(seeds=1)
    assert abs(result.queues.to_pylist()[0]["total_sent"] - 40 * 7) <= 1
    # What is there is not overwritten.
    assert _run("trace", made, "--link", "cell", "--out", again) == 2


def test_a_rate_is_written_as_a_trace_that_sends_as_much(file: Path, tmp_path: Path) -> None:
    text = opportunities(inprofile.load(file), "cell")
    # 6 Mbit/s are an opportunity each 2 ms.
    assert text == "".join(f"{ms}\n" for ms in range(2, 2001, 2))
    (tmp_path / "rate.up").write_text(text)
    made = tmp_path / "made.toml"
    made.write_text(with_trace(file, "cell", tmp_path / "rate.up", made))
    sent = [inprofile.load(f).run(seeds=1).queues.to_pylist()[0]["total_sent"] for f in (file, made)]
    assert abs(sent[0] - sent[1]) <= 2, sent


def test_what_is_no_trace_is_refused(file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.up"
    bad.write_text("1\n2.5\n")
    with pytest.raises(TraceError, match=r"entry 2, '2\.5', is no whole number of ms"):
        with_trace(file, "cell", bad, tmp_path / "made.toml")
    with pytest.raises(TraceError, match="there is no link wifi: its links are cell"):
        opportunities(inprofile.load(file), "wifi")
    assert _run("trace", file, "--link", "cell", "--from", tmp_path / "none.up", "--out", tmp_path / "x") == 2
