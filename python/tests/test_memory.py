"""What very many flows take is said before they are built, and refused beyond the machine's memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile.cli import app, effort
from inprofile.run.tables import physical

FLOWS = """
title = "many"
duration = "2 ms"
seeds = {seeds}
measure = {{ from = "1 ms", to = "2 ms" }}
[[links]]
name = "link"
from = "A"
to = "B"
rate = "1 Gbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}
[[flows]]
name = "tcp"
count = {count}
from = "H*"
join = {{ node = "A", rate = "10 Mbit/s" }}
to = "B"
rtt = "20 ms"
start = "uniform 0..1 ms"
"""


def experiment(folder: Path, count: int, seeds: int = 10) -> str:
    path = folder / "many.toml"
    path.write_text(FLOWS.format(count=count, seeds=seeds))
    return str(path)


def test_what_memory_does_not_hold_is_refused_with_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = experiment(tmp_path, 1_000_000)
    # 4 runs of 1.6 GB, and the results of 6 of 0.8 GB.
    for holds, remedy in [
        (10e9, "of 10 GB: write --jobs 2"),
        (4.9e9, "of 4.9 GB: write --jobs 1 --seeds 5"),
        (1e9, "of 1 GB: write a count of at most 625,000 in all, and --jobs 1 --seeds 1"),
    ]:
        monkeypatch.setattr(effort, "physical", lambda holds=holds: holds)
        done = CliRunner().invoke(app, ["run", path, "--jobs", "4"])
        assert done.exit_code == 2
        said = " ".join(done.stderr.split())
        assert f"1,000,000 flows in 10 runs, 4 at a time: at least 11 GB of memory, {remedy}" in said


def test_parts_take_room_for_all_flows_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = experiment(tmp_path, 1_000_000, 1)
    # 1.6 GB in one piece, 1 GB in each other part; never more parts than threads.
    for jobs, parts, needed in [("4", 4, "4.6 GB"), ("2", 2, "2.6 GB")]:
        monkeypatch.setattr(effort, "physical", lambda: 2e9)
        done = CliRunner().invoke(app, ["run", path, "--jobs", jobs, "--threads-per-run", "4"])
        assert done.exit_code == 2
        said = " ".join(done.stderr.split())
        what = f"1,000,000 flows in 1 run, 1 at a time in up to {parts} parts: at least {needed} of memory"
        assert f"{what}, of 2 GB: write --jobs 1" in said
    done = CliRunner().invoke(app, ["check", path, "--threads-per-run", "2"])
    assert "1,000,000 flows take at least 2.6 GB of memory in each run in 2 parts." in done.stdout


def test_what_it_holds_is_said_before_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    monkeypatch.setattr(effort, "print", lambda text, **_: said.append(text), raising=False)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("inprofile.run.experiments.run_many", stop)
    CliRunner().invoke(app, ["run", experiment(tmp_path, 200_000, 1)])
    assert len(said) == 1
    assert said[0].startswith("200,000 flows in 1 run, 1 at a time: at least 0.32 GB of memory, of ")
    assert said[0].endswith("Building takes about 2 s a run.")
    CliRunner().invoke(app, ["run", experiment(tmp_path, 99_999, 1)])
    assert len(said) == 1


def test_check_says_what_its_flows_take(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["check", experiment(tmp_path, 200_000)])
    assert "Its 200,000 flows take at least 0.32 GB of memory in each run." in done.stdout


def test_a_control_group_may_hold_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("inprofile.run.tables._CGROUP", limit)
    whole = physical()
    for text, holds in [("max\n", whole), ("1000000\n", 1e6), (f"{2 * whole:.0f}\n", whole)]:
        limit.write_text(text)
        assert physical() == holds
