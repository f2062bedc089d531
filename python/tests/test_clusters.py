"""Sweeps on other machines: the same bytes as here, also when workers are killed; no other version.

The cluster is a scheduler and workers of their own processes on loopback; SLURM's jobs are submitit's
local ones.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile import __version__, sweep
from inprofile.cli import app
from inprofile.experiment.dump import written
from inprofile.run import clusters
from inprofile.run.clusters import VersionSkew
from inprofile.run.experiments import run_many
from inprofile.run.pool import Backend, BackendError
from inprofile.run.storage import TABLES
from test_sweeps import BASE, RATES, checksums

SEEDS = 8


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Checksums of the sweep made here."""
    place = tmp_path_factory.mktemp("local") / "r"
    sweep(BASE, RATES, place, seeds=SEEDS)
    return checksums(place)


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler's address, and its workers."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]

    def start(kind: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *common, *more]
        return subprocess.Popen(command, cwd=folder, **quiet)  # type: ignore[call-overload, no-any-return]

    started = [start("scheduler", "--port", "0")]
    try:
        started += [start("worker", "--no-nanny", "--nthreads", "1") for _ in range(workers)]
        until(file.exists)
        yield json.loads(file.read_text())["address"], started[1:]
    finally:
        # Killed: a worker whose scheduler has gone may retry for longer than a test should wait.
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def until(there: Any, seconds: float = 60) -> None:
    """Wait for something."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_cluster_with_a_worker_killed_makes_the_same_bytes(
    local: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    with cluster(tmp_path, 2) as (address, workers):
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        backend = clusters.Dask(address)
        killed: list[int] = []

        def progress(finished: int, runs: int) -> None:
            if finished and not killed:
                workers[0].kill()
                killed.append(finished)

        try:
            sweep(BASE, RATES, tmp_path / "r", seeds=SEEDS, backend=backend, progress=progress)
        finally:
            backend.close()
        assert killed[0] < 3 * SEEDS
        assert checksums(tmp_path / "r") == local
        monkeypatch.setattr(clusters, "__version__", "99.0")
        with pytest.raises(VersionSkew, match="this is 99"):
            clusters.Dask(address)


def test_a_worker_of_another_version_refuses_a_batch() -> None:
    batch = clusters.Batch((), (), "99.0", clusters.engine_digest())
    with pytest.raises(VersionSkew, match=r"and this is 99\.0: install the same"):
        clusters.run_batch(batch)
    other = clusters.Batch((), (), __version__, "another")
    with pytest.raises(VersionSkew, match="another build of Inprofile"):
        clusters.run_batch(other)


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(BackendError, match="no Dask scheduler at 127"):
        clusters.Dask("127.0.0.1")


def test_array_jobs_with_one_killed_make_the_same_bytes(
    local: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    # Three jobs.
    monkeypatch.setattr(clusters, "_SLURM_PACKETS", BASE.expected_packets(SEEDS))
    backend = clusters.Slurm(tmp_path / "r", cluster="local")
    killed: list[int] = []
    sent: list[Any] = []
    submit = backend._executor.map_array

    def map_array(*given: Any) -> list[Any]:
        jobs: list[Any] = submit(*given)
        if not killed:
            killed.append(int(jobs[0].job_id))
            kill(killed[0])
        sent.extend(jobs)
        return jobs

    monkeypatch.setattr(backend._executor, "map_array", map_array)
    sweep(BASE, RATES, tmp_path / "r", seeds=SEEDS, backend=backend)
    assert len(sent) > 2
    assert sent[0].state == "INTERRUPTED"
    for job in sent:
        # Its process has left its results, and may still be about to end.
        job.wait()
    assert checksums(tmp_path / "r") == local
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_experiments_are_measured_the_same_on_a_cluster_and_by_slurm(tmp_path: Path) -> None:
    """What comparisons, suites, papers and atlases ask for; one after the other on the same back end."""
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("submitit")
    variants = [BASE.set("links.bottleneck.rate", f"{rate} Mbit/s") for rate in (2, 3)]
    other = inprofile.parse(written(BASE).replace("Four flows", "Other flows"))
    asked = [[(variants[0], 3), (other, [7, 5])], [(variants[1], 2), (variants[1], 2)]]
    here = [run_many(work, trace=True) for work in asked]

    def same(backend: Backend) -> None:
        for work, expected in zip(asked, here, strict=True):
            told: list[tuple[int, int]] = []
            found = run_many(work, backend, lambda *at, to=told: to.append(at), trace=True)  # type: ignore[misc]
            assert told[0][0] == 0
            assert told[-1] == (sum(len(r.seeds) for r in expected),) * 2
            for one, result in zip(expected, found, strict=True):
                assert result.provenance == one.provenance
                for name in TABLES:
                    assert getattr(result, name).to_pylist() == getattr(one, name).to_pylist(), name

    with cluster(tmp_path, 1) as (address, _):
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        backend = clusters.Dask(address)
        try:
            same(backend)
        finally:
            backend.close()
    same(clusters.Slurm(tmp_path / "r", cluster="local"))
    assert not (tmp_path / "r.slurm").exists()


def kill(pid: int) -> None:
    """A process and its children."""
    with suppress(FileNotFoundError, ProcessLookupError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
        for child in children:
            kill(int(child))


def test_what_jobs_made_after_the_command_was_killed_is_taken_up(
    local: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    batches: list[clusters.Batch] = []

    class Killed(BaseException):
        pass

    def never(function: Any, some: list[clusters.Batch], inbox: list[str]) -> list[Any]:
        batches.extend(some)
        for batch, place in zip(some, inbox, strict=True):
            clusters.run_into(batch, place)
        raise Killed

    backend = clusters.Slurm(tmp_path / "r", cluster="local")
    monkeypatch.setattr(backend._executor, "map_array", never)
    with pytest.raises(Killed):
        sweep(BASE, RATES, tmp_path / "r", seeds=SEEDS, backend=backend)
    assert sum(batch.runs for batch in batches) == 3 * SEEDS
    again = clusters.Slurm(tmp_path / "r", cluster="local")
    monkeypatch.setattr(again._executor, "map_array", lambda *_: pytest.fail("a job was sent"))
    sweep(BASE, RATES, tmp_path / "r", seeds=SEEDS, backend=again)
    assert checksums(tmp_path / "r") == local


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--cluster", "x", "--slurm"], "choose one"),
        (["--slurm-set", "cluster"], "write KEY=VALUE"),
        (["--cluster", "x", "--jobs", "2"], "--jobs is for this machine"),
        (["--backend", "dask"], "write threads, slurm, or the address of a Dask scheduler"),
        (["--backend", "127.0.0.1:1", "--slurm-set", "cluster=local"], "choose one"),
        (["--backend", "nowhere://127.0.0.1:1"], "there is no Dask scheduler at nowhere://127.0.0.1:1"),
    ],
)
def test_places_that_do_not_fit_are_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    axis = ["--axis", "links.bottleneck.rate=2 Mbit/s", "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "e.toml"), *axis, *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize(("module", "made"), [("distributed", "Dask"), ("submitit", "Slurm")])
def test_without_its_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, made: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    (needed,) = project["optional-dependencies"][made.lower()]
    with pytest.raises(BackendError, match=re.escape(f"pip install '{needed}' into Inprofile's environment")):
        getattr(clusters, made)(tmp_path / "r")


@pytest.mark.parametrize(
    "command",
    [
        ["reproduce", "ard", "--quick"],
        ["atlas", "ard"],
        ["compare", "--quick"],
        ["suite", "rfc7928", "--aqm", "codel", "--scenario", "mild"],
    ],
)
def test_every_study_takes_a_back_end_and_refuses_one_that_is_not_there(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*command, "--backend", "nowhere://x:1"])
    assert done.exit_code == 2
    assert "there is no Dask scheduler at nowhere://x:1" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_comparison_by_slurm_is_the_one_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    short = ["--set", "duration=5 s", "--set", "measure.from=1 s", "--set", "measure.to=5 s"]
    command = ["compare", "e.toml", "--schemes", "drop-tail,rio", "--quick", *short, "--out"]
    for out, more in (
        ("here", ["--jobs", "2"]),
        ("there", ["--backend", "slurm", "--slurm-set", "cluster=local"]),
    ):
        done = CliRunner().invoke(app, [*command, out, *more])
        assert done.exit_code == 0, done.output
        shutil.rmtree("results")
    for name in ("results.json", "measures.csv"):
        assert (tmp_path / "there/compare" / name).read_bytes() == (
            tmp_path / "here/compare" / name
        ).read_bytes()
