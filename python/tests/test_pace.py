"""How long runs take, as commands say it before. That it is true is for `make soak`."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import inprofile
from inprofile import papers
from inprofile.cli import effort
from inprofile.papers.experiment import examples
from inprofile.run import pace
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
    effort.announce([(stand, 12)], 2, kept=tmp_path)
    said = capsys.readouterr().err
    assert said == f"It takes about 3 min 1 s on 2 cores, less what is kept in {tmp_path}.\n"
    effort.announce([(stand, 30.2)], 1, told=1000.0)
    assert capsys.readouterr().err == "It takes about 8 min 20 s on 1 core.\n"
    effort.announce([(stand, 30.2)], 1, told=1000.0, alone=60.0)
    assert capsys.readouterr().err == "It takes about 8 min 50 s on 1 core.\n"
    effort.announce([(stand, 10)], 200)
    assert re.fullmatch(r"It takes about 31 s on 200 cores.\n", capsys.readouterr().err)


def test_what_is_short_is_neither_timed_nor_said(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    stand.lasts = 1.0
    effort.announce([(stand, 10)], 1)
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
