"""How far runs are: inside a run by its simulated time, and in a log where no terminal looks on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import inprofile
from inprofile.cli import execution as shown
from inprofile.cli.execution import Told, lines
from inprofile.run.experiments import run_many
from inprofile.run.pool import Local

LONG = inprofile.parse(inprofile.STARTER).with_({"duration": "2000 s", "links.bottleneck.rate": "30 Mbit/s"})


def test_a_single_run_tells_how_far_it_is_and_is_the_same_for_it() -> None:
    told: list[float] = []
    counts: list[tuple[int, int]] = []
    (seen,) = run_many([(LONG, 1)], Local(1, told.append), lambda *at: counts.append(at))
    inside = [share for share in told if 0 < share < 1]
    assert len(inside) > 3, "a run of seconds is looked at ten times a second"
    assert inside == sorted(inside)
    assert (counts[0], counts[-1]) == ((0, 1), (1, 1))
    assert seen.metrics.equals(LONG.run(seeds=1, jobs=1).metrics)


def test_a_log_has_a_line_now_and_then_and_a_short_run_none(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    told = Told("Four flows", 10, lines(clock=lambda: now[0]))
    said = []
    for now[0], share in ((0.0, 0.0), (29.9, 0.3), (30.0, 0.31), (59.0, 0.5), (61.0, 0.62)):
        told(2, 10)
        told.under_way(share)
        said.append(capsys.readouterr().err)
    assert said == [
        "",
        "",
        "Four flows: 2 of 10 runs, 23 % after 30 s\n",
        "",
        "Four flows: 2 of 10 runs, 25 % after 61 s\n",
    ]
    now[0] = 100.0
    told(10, 10)
    assert capsys.readouterr().err == ""


def test_what_is_run_after_something_longer_is_shown_from_its_start() -> None:
    seen: list[float] = []
    told = Told("", 8, lambda done, *_: seen.append(done))
    told(8, 8)
    told(1, 3, "the same with other senders")
    told(2, 3)
    assert seen == [8, 1, 2]


def test_what_is_shown_never_goes_back() -> None:
    seen: list[float] = []
    told = Told("", 3, lambda done, *_: seen.append(done))
    told(0, 3)
    told.under_way(0.9)
    # The run has ended, and its thread begins another, before it is counted.
    told.under_way(0.1)
    told(1, 3)
    assert seen == [0, 0.9, 0.9, 1.1]


def test_a_run_without_a_terminal_says_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    script = (
        "import sys; from inprofile.cli import execution; execution.EVERY = 0.05;"
        "from inprofile.cli import main; sys.argv[0] = 'inprofile'; main()"
    )
    options = [
        "--set",
        "duration=2000 s",
        "--set",
        "links.bottleneck.rate=30 Mbit/s",
        "--seeds",
        "1",
        "--json",
    ]
    ran = subprocess.run(
        [sys.executable, "-c", script, "run", "e.toml", *options],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    json.loads(ran.stdout)
    told = [int(x) for x in re.findall(r"^Four flows .*: (\d+) % after \d+ s$", ran.stderr, re.MULTILINE)]
    assert len(told) > 2
    assert told == sorted(told)
    assert shown.EVERY >= 10, "a log of hours stays short"
