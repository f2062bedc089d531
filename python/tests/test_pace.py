"""How long runs take, as commands say it before. That it is true is for `make soak`.

What very many flows take is said before they are built, and refused beyond the machine's memory.

How far runs are: inside a run by its simulated time, and in a log where no terminal looks on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile import papers
from inprofile.cli import app, execution
from inprofile.cli import execution as shown
from inprofile.cli.execution import Told, lines
from inprofile.papers.experiment import examples
from inprofile.run import pace
from inprofile.run.experiments import run_many
from inprofile.run.pool import Local
from inprofile.run.tables import physical
from inprofile.studies import reproduce


class Stand:
    """An experiment whose run takes 0.1 s and 3 µs for each of its packets, twice that where cores share."""

    def __init__(self, seconds: float, packets_a_second: float, loading: float = 0.0) -> None:
        self.lasts, self.rate, self.loading = seconds, packets_a_second, loading
        self.ran: list[float] = []

    def expected_packets(self, seeds: Any = None) -> float:
        return self.lasts * self.rate

    def check(self) -> Any:
        return type("Check", (), {"effective": {"duration": f"{self.lasts!r} s"}})

    def with_(self, changes: Any) -> Any:
        cut = Stand(float(changes["duration"].split()[0]), self.rate, self.loading)
        assert changes["measure.to"] == changes["duration"]
        cut.ran = self.ran
        return cut

    def run(self, seeds: int, jobs: int) -> None:
        assert seeds == jobs
        self.ran += [self.lasts * (1 if jobs == 1 else 2)] * seeds


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    made = Stand(1000.0, 5000.0)
    clock = [0.0]

    def now() -> float:
        clock[0] = sum(0.1 + 3e-6 * seconds * 5000 for seconds in made.ran) + made.loading * bool(made.ran)
        return clock[0]

    monkeypatch.setattr(pace, "_cpu", now)
    return made


def test_a_run_is_told_by_its_first_moments(stand: Stand) -> None:
    building, each = pace.took(stand)
    assert (building, each) == (pytest.approx(0.1), pytest.approx(3e-6))
    assert stand.ran == [pytest.approx(n) for n in (4, 4, 16, 16)]
    assert pace.seconds([(stand, 10)]) == pytest.approx(10 * (0.1 + 3e-6 * 5e6))
    assert pace.corrected([(stand, 30.2)]) == pytest.approx(0.5)


def test_as_many_are_begun_at_once_as_will_run_at_once(stand: Stand) -> None:
    assert pace.took(stand, 4) == (pytest.approx(0.1), pytest.approx(6e-6))
    assert pace.corrected([(stand, 30.1), (stand, 60.2)], 4) == pytest.approx(0.75)


def test_what_a_process_loads_once_is_of_no_run(stand: Stand) -> None:
    stand.loading = 5.0
    assert pace.took(stand) == (pytest.approx(0.1), pytest.approx(3e-6))


def test_a_program_that_is_run_counts() -> None:
    begun, own = pace._cpu(), time.process_time()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert pace._cpu() - begun > time.process_time() - own + 0.01


def test_runs_on_threads_take_as_long_as_their_rounds() -> None:
    assert pace.wall(30, 3, 2) == 20
    assert pace.wall(30, 1, 8) == 30
    assert pace.sampled(range(100)) == [0, 20, 40, 59, 79, 99]
    assert pace.sampled([1, 2]) == [1, 2]


@pytest.mark.parametrize("name", [*papers.names(), *papers.gallery()])
def test_a_papers_examples_are_measured_as_its_runs_will_be(name: str) -> None:
    planned = reproduce.plan(name, quick=True)
    paper, jobs = planned.paper, [*planned.jobs]
    made = examples([(paper, jobs)])
    assert len(made) == pace.MOST
    assert all(example.job in jobs and one == example.job.cost for example, one in made)
    measured: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        module = paper.module("measure")
        told = module.measure
        patch.setattr(module, "measure", lambda *args: measured.append("") or told(*args))
        building, each = pace.took(made[0][0], 2)
    assert len(measured) >= 4
    assert building >= 0
    assert 0 < each < 1e-4
    assert planned.alone >= reproduce.PAGE + max(job.cost for job in jobs)


def test_what_is_long_is_said_before(
    stand: Stand, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    execution.announce([(stand, 12)], 2, kept=tmp_path)
    said = capsys.readouterr().err
    assert said == f"It takes about 3 min 1 s on 2 cores, less what is kept in {tmp_path}.\n"
    execution.announce([(stand, 30.2)], 1, told=1000.0)
    assert capsys.readouterr().err == "It takes about 8 min 20 s on 1 core.\n"
    execution.announce([(stand, 30.2)], 1, told=1000.0, alone=60.0)
    assert capsys.readouterr().err == "It takes about 8 min 50 s on 1 core.\n"
    execution.announce([(stand, 10)], 200)
    assert re.fullmatch(r"It takes about 31 s on 200 cores.\n", capsys.readouterr().err)


def test_what_is_short_is_neither_timed_nor_said(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.lasts = 1.0
    execution.announce([(stand, 10)], 1)
    assert (stand.ran, capsys.readouterr().err) == ([], "")


def test_an_experiment_is_begun_as_it_is() -> None:
    """Where it cannot be cut short, a middling packet stands for it; the starter can."""
    one = inprofile.parse(inprofile.STARTER).with_(duration="2000 s", seeds=1)
    building, each = pace.took(one)
    assert building >= 0
    assert 0 < each < 1e-4
    assert pace.seconds([(one.with_({"measure.at": "bottleneck"}), 3)]) > 0


def test_flows_that_come_late_or_leave_do_so_sooner_in_the_moment() -> None:
    one = inprofile.parse(inprofile.STARTER).with_(duration="2000 s", seeds=1)
    for start in ("1500 s", "uniform 500..1500 s", ["0 s", "10 s", "1000 s", "1900 s"]):
        late = one.with_({"flows.assured.start": start, "flows.assured.stop": "1950 s"})
        _, each = pace.took(late)
        assert 0 < each < 1e-4


def test_an_experiment_of_very_many_flows_is_not_begun() -> None:
    """A second one would take as much memory again."""
    many = inprofile.parse(inprofile.STARTER).with_(
        {"flows.assured.count": 20_000, "flows.assured.contract": "1 kbit/s"}
    )
    with pytest.raises(ValueError, match="too many flows"):
        pace.took(many)
    assert pace.seconds([(many, 1)]) == pytest.approx(pace.A_PACKET * many.expected_packets(seeds=1))


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
        monkeypatch.setattr(execution, "physical", lambda holds=holds: holds)
        done = CliRunner().invoke(app, ["run", path, "--jobs", "4"])
        assert done.exit_code == 2
        said = " ".join(done.stderr.split())
        assert f"1,000,000 flows in 10 runs, 4 at a time: at least 11 GB of memory, {remedy}" in said


def test_parts_take_room_for_all_flows_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = experiment(tmp_path, 1_000_000, 1)
    # 1.6 GB in one piece, 1 GB in each other part; never more parts than threads.
    for jobs, parts, needed in [("4", 4, "4.6 GB"), ("2", 2, "2.6 GB")]:
        monkeypatch.setattr(execution, "physical", lambda: 2e9)
        done = CliRunner().invoke(app, ["run", path, "--jobs", jobs, "--threads-per-run", "4"])
        assert done.exit_code == 2
        said = " ".join(done.stderr.split())
        what = f"1,000,000 flows in 1 run, 1 at a time in up to {parts} parts: at least {needed} of memory"
        assert f"{what}, of 2 GB: write --jobs 1" in said
    done = CliRunner().invoke(app, ["check", path, "--threads-per-run", "2"])
    assert "1,000,000 flows take at least 2.6 GB of memory in each run in 2 parts." in done.stdout


def test_what_it_holds_is_said_before_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    monkeypatch.setattr(execution, "print", lambda text, **_: said.append(text), raising=False)

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
