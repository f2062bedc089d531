"""Sweeps: nothing lost, doubled or half written, whatever ends them; what is refused before it runs."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import inprofile
from forked import inprofile_
from inprofile import FolderInUse, ResultError, ScenarioError, sweep
from inprofile.cli import app
from inprofile.experiment.dump import written
from inprofile.metrics.contracts import BY_RUN
from inprofile.run import ledger as ledgers
from inprofile.run import pool
from inprofile.studies.sweep.plan import looks, until_of

SHORT = {
    "duration": "2 s",
    "measure": {"from": "0.5 s", "to": "2 s"},
    "flows.assured.start": "uniform 0..0.1 s",
    "monitors": [],
}
BASE = inprofile.parse(inprofile.STARTER).with_(SHORT)
RATES = {"links.bottleneck.rate": ["1 Mbit/s", "2 Mbit/s", "3 Mbit/s"]}


def checksums(folder: Path) -> dict[str, str]:
    """Of every file below a folder, by its path there."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def runs(folder: Path) -> list[tuple[int, int]]:
    table = inprofile.read_sweep(folder).table("metrics", ["setting", "seed", "name"])
    rows = zip(*(table[c].to_pylist() for c in table.column_names), strict=True)
    return [(setting, seed) for setting, seed, name in rows if name == "goodput"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three settings with eight seeds, in one go."""
    place = tmp_path_factory.mktemp("sweep") / "r"
    sweep(BASE, RATES, place, seeds=8)
    return place


# what is written


def test_every_run_is_there_once_as_a_run_of_its_own_has_it(unbroken: Path) -> None:
    found = inprofile.read_sweep(unbroken)
    assert runs(unbroken) == [(n, seed) for n in range(3) for seed in range(1, 9)]
    for setting in found:
        alone = BASE.with_(dict(setting.values)).run(seeds=8, jobs=1)
        assert setting.seeds == 8
        for name, metric in alone.summary().items():
            assert setting.metrics[name].values == tuple(metric.values.values()), name
            assert setting.metrics[name].estimate == metric.estimate
        assert found.scenario(setting.number).canonical == alone.provenance.experiment


def test_the_dataset_has_axes_as_numbers_in_base_units(unbroken: Path) -> None:
    assert sorted(p.name for p in unbroken.iterdir()) == [
        "flows", "ledger.jsonl", "markers", "metrics", "queues", "sweep.json"
    ]  # fmt: skip
    flows = inprofile.read_sweep(unbroken).table("flows")
    assert flows.column_names[:3] == ["setting", "links.bottleneck.rate", "seed"]
    assert flows.schema.field("links.bottleneck.rate").metadata == {b"unit": b"bit/s"}
    assert sorted(set(flows["links.bottleneck.rate"].to_pylist())) == [1e6, 2e6, 3e6]
    assert flows.num_rows == 3 * 8 * 4
    whole = pq.read_table(unbroken / "metrics")
    assert whole.num_rows == inprofile.read_sweep(unbroken).table().num_rows


def test_a_finished_sweep_is_not_run_again(unbroken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checksums(unbroken)
    monkeypatch.setattr(pool, "run_each", lambda *_, **__: pytest.fail("it ran"))
    sweep(BASE, RATES, unbroken, seeds=8)
    assert checksums(unbroken) == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_threads_and_parts_change_no_byte_of_a_row(
    unbroken: Path, tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "SECONDS", 0.0)
    monkeypatch.setattr(pool, "_TOGETHER", jobs)
    sweep(BASE, RATES, tmp_path / "r", seeds=8, jobs=jobs)
    assert checksums(tmp_path / "r") == checksums(unbroken)


# what ends it


KILLED = """
import os, signal, sys
import inprofile
from inprofile.run import ledger, pool
from test_sweeps import BASE, RATES
# Every finished run is put onto the disk at once, so that there is much to interrupt.
ledger.SECONDS, pool._TOGETHER = 0.0, 1
left = [int(sys.argv[2])]
at, real = sys.argv[3], getattr(os, sys.argv[3])
def die(*rest, **more):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*rest, **more)
setattr(os, at, die)
inprofile.sweep(BASE, RATES, sys.argv[1], seeds=8)
"""


def killed(place: Path, call: int, at: str) -> None:
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", KILLED, str(place), str(call), at]
    assert subprocess.run(command, env=here, check=False).returncode == -signal.SIGKILL


# A file is made durable, renamed (`replace`), its folder made durable, its line written and made durable.
@pytest.mark.parametrize(
    "moments",
    [
        [("fsync", 2), ("fsync", 9), ("fsync", 17)],
        [("replace", 3), ("replace", 5), ("replace", 7)],
        [("write", 4), ("write", 6), ("unlink", 3)],
    ],
    ids=["durable", "renamed", "entered"],
)
def test_killed_and_killed_again_it_equals_an_unbroken_one(
    unbroken: Path, tmp_path: Path, moments: Sequence[tuple[str, int]]
) -> None:
    place = tmp_path / "r"
    for at, call in moments:
        killed(place, call, at)
    sweep(BASE, RATES, place, seeds=8)
    assert checksums(place) == checksums(unbroken)


def test_contracts_are_metrics_of_every_run(unbroken: Path) -> None:
    found = inprofile.read_sweep(unbroken)
    assert set(BY_RUN) - {"best_effort", "excess_share"} <= set(found.metrics)
    result = found.scenario(1).run(seeds=8)
    for name, values in result.contracts.by_run().items():
        known = [x for x in values.tolist() if x == x]
        assert (list(found[1].metrics[name].values) if name in found[1].metrics else []) == known, name
    kept = found[0].metrics["all_contracts_kept"].estimate
    assert kept.ci95 is not None
    assert 0 <= kept.ci95.lo < kept.ci95.hi <= 1, "eight runs that agree still leave doubt"


def test_what_the_ledger_has_is_not_run_again(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r"
    killed(place, 20, "fsync")
    lines = [json.loads(line) for line in (place / "ledger.jsonl").read_text().splitlines()]
    entered = {(n, seed) for line in lines for n, seeds in line["runs"] for seed in seeds}
    assert len(entered) >= 8
    ran: list[tuple[int, int]] = []
    real = pool.run_each

    def run_each(work: Sequence[tuple[object, Sequence[int]]], *rest: object, **more: object) -> None:
        ran.extend((len(work), seed) for _, seeds in work for seed in seeds)
        real(work, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "run_each", run_each)
    sweep(BASE, RATES, place, seeds=8)
    assert len(ran) == 3 * 8 - len(entered)
    assert checksums(place) == checksums(unbroken)


def test_a_torn_line_and_files_that_no_line_has_do_not_count(unbroken: Path, tmp_path: Path) -> None:
    place = tmp_path / "r"
    killed(place, 20, "fsync")
    with (place / "ledger.jsonl").open("a") as log:
        log.write('{"piece": "piece-0000')
    (place / "piece-000099.arrow").write_bytes(b"half")
    (place / ".piece-000100.arrow.part").write_bytes(b"")
    sweep(BASE, RATES, place, seeds=8)
    assert checksums(place) == checksums(unbroken)


def test_a_full_disk_names_the_folder_and_keeps_what_was_finished(
    unbroken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r"
    monkeypatch.setattr(ledgers, "SECONDS", 0.0)
    monkeypatch.setattr(pool, "_TOGETHER", 1)
    fsync, calls = os.fsync, iter(range(999))

    def full(handle: int) -> None:
        if next(calls) >= 12:
            raise OSError(28, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as said:
            sweep(BASE, RATES, place, seeds=8)
    assert said.value.filename == str(place)
    assert len((place / "ledger.jsonl").read_text().splitlines()) >= 2
    assert not list(place.glob(".*"))
    sweep(BASE, RATES, place, seeds=8)
    assert checksums(place) == checksums(unbroken)


@pytest.mark.parametrize("command", ["sweep", "run"])
def test_a_full_disk_says_what_is_kept_and_how_to_go_on(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.toml").write_text(written(BASE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ledgers, "SECONDS", 0.0)
    monkeypatch.setattr(pool, "_TOGETHER", 1)
    axis = ["--axis", "links.bottleneck.rate=2 Mbit/s,3 Mbit/s"] if command == "sweep" else []
    given = [command, "e.toml", *axis, "--seeds", "4", "--out", "r"]
    place = Path("r" if command == "sweep" else "r.unfinished")
    fsync, calls = os.fsync, iter(range(999))

    def full(handle: int) -> None:
        if next(calls) >= 12:
            raise OSError(28, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        ran = CliRunner().invoke(app, given)
    assert ran.exit_code == 2, ran.output
    assert "No space left on device. Make room, and give the same command again." in ran.stderr
    kept = place if command == "sweep" else tmp_path / place
    assert ran.stderr.endswith(f"Finished runs are kept in {kept}: it goes on from there.\n")
    assert (place / "ledger.jsonl").read_text().count("\n") >= 2
    assert CliRunner().invoke(app, given).exit_code == 0


def test_interrupted_on_the_command_line_it_says_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    long = ["e.toml", "--axis", "duration=20 s,100000 s", "--set", 'measure={ from = "5 s" }']
    command = [sys.executable, "-m", "inprofile", "sweep", *long, "--seeds", "2", "--jobs", "1", "--out", "r"]
    ran = subprocess.Popen([*command, "--yes"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = 60.0
    while deadline > 0 and not list(tmp_path.glob("r/piece-*")):
        with pytest.raises(subprocess.TimeoutExpired):
            ran.wait(0.2)
        deadline -= 0.2
    ran.send_signal(signal.SIGTERM)
    said = ran.communicate(timeout=30)[1]
    assert ran.returncode == 143
    kept = "What is finished is kept in r: the same command goes on from there.\n"
    assert re.fullmatch(
        # On a busy machine it has told how far it is before.
        r"It takes about .* on 1 core\.\n(.* of 4 runs, .* after .*\n)*"
        + re.escape(f"Interrupted after 2 of 4 runs. {kept}"),
        said,
    )
    again = inprofile_("sweep", *long, "--seeds", "3", "--yes", "--out", "r", cwd=tmp_path, code=2)[1]
    assert "other seeds ([1, 2] there, [1, 2, 3] asked for)" in again
    with pytest.raises(ResultError, match="0 of 2 settings finished"):
        inprofile.read_sweep(tmp_path / "r")


# what is refused


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"links.nolink.rate": ["1 Mbit/s"]}, "nolink"),
        ({"links.bottleneck.rtae": ["1 Mbit/s"]}, "rtae"),
        (
            {"links.bottleneck.rate": [f"{n} {'Mbits' if n == 13 else 'Mbit/s'}" for n in range(1, 21)]},
            "1 of 20 settings cannot run; nothing was run:\n--axis links.bottleneck.rate=13 Mbits",
        ),
    ],
)
def test_a_setting_that_cannot_run_is_named_before_anything_runs(
    tmp_path: Path, axes: dict[str, list[str]], says: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        sweep(BASE, axes, tmp_path / "r", seeds=2)
    assert says in str(refused.value)
    assert refused.value.problems[0].remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"experiment": BASE.with_({"links.bottleneck.delay": "11 ms"})}, "another experiment"),
        ({"axes": {"links.bottleneck.rate": ["1 Mbit/s"]}}, "other axes"),
        ({"seeds": 9}, "other seeds"),
        ({"seeds": 20, "until": {"fi": 0.1}}, "another --until"),
    ],
)
def test_a_folder_of_another_sweep_is_refused_and_left_alone(
    unbroken: Path, changed: dict[str, object], says: str
) -> None:
    before = checksums(unbroken)
    asked = {"experiment": BASE, "axes": RATES, "out": unbroken, "seeds": 8, **changed}
    with pytest.raises(FolderInUse, match=says):
        sweep(**asked)  # type: ignore[arg-type]
    assert checksums(unbroken) == before


def test_a_folder_of_another_version_is_refused(unbroken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inprofile.studies.sweep import plan

    monkeypatch.setattr(plan, "__version__", "99.0")
    with pytest.raises(FolderInUse, match=r'another version of Inprofile \(".*" there, "99.0" asked for\)'):
        sweep(BASE, RATES, unbroken, seeds=8)


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FolderInUse, match=r"thesis\.tex"):
        sweep(BASE, RATES, tmp_path, seeds=2)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_part_is_named_and_made_again_once_it_is_removed(unbroken: Path, tmp_path: Path) -> None:
    place = tmp_path / "r"
    sweep(BASE, RATES, place, seeds=8)
    part = place / "flows" / "part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(ResultError, match=r"part-00000\.parquet is damaged.*Remove it"):
        sweep(BASE, RATES, place, seeds=8)
    part.unlink()
    sweep(BASE, RATES, place, seeds=8)
    assert checksums(place) == checksums(unbroken)


def test_two_at_once_are_one_too_many(tmp_path: Path) -> None:
    def again(finished: int, runs: int) -> None:
        with pytest.raises(FolderInUse, match="another process"):
            sweep(BASE, RATES, tmp_path / "r", seeds=2)

    sweep(BASE, RATES, tmp_path / "r", seeds=2, progress=again)


# stopping


def test_a_setting_ends_when_its_interval_is_narrow_and_not_before(tmp_path: Path) -> None:
    wide = BASE.with_({"flows.assured.start": "uniform 0..1 s"})
    found = sweep(wide, RATES, tmp_path / "r", seeds=60, until={"goodput": "10 %"})
    counts = [s.seeds for s in found]
    assert set(counts) <= set(looks(60))
    assert len(set(counts)) > 1
    until = until_of("goodput=10 %")
    for setting in found:
        values = setting.metrics["goodput"].values
        assert until.met(values) or setting.seeds == 60
        assert not any(until.met(values[:look]) for look in looks(60) if look < setting.seeds)


def test_how_many_seeds_a_setting_gets_does_not_depend_on_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = BASE.with_({"flows.assured.start": "uniform 0..1 s"})
    asked = {"seeds": 40, "until": {"goodput": "10 %"}}
    sweep(wide, RATES, tmp_path / "a", **asked)  # type: ignore[arg-type]
    monkeypatch.setattr(ledgers, "SECONDS", 0.0)
    monkeypatch.setattr(pool, "_TOGETHER", 1)
    for most in (4, 12, 25):

        def stop(finished: int, runs: int, most: int = most) -> None:
            if finished >= most:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sweep(wide, RATES, tmp_path / "b", progress=stop, **asked)  # type: ignore[arg-type]
    sweep(wide, RATES, tmp_path / "b", **asked)  # type: ignore[arg-type]
    assert checksums(tmp_path / "b") == checksums(tmp_path / "a")


# what is shown


def test_the_command_prints_a_row_a_setting_and_draws_them(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    short = ["--set", "duration=4 s", "--set", 'measure={ from = "1 s" }', "--seeds", "3", "--plot"]
    axes = ["--axis", "links.bottleneck.rate=2..4 Mbit/s in 3"]
    shown = ["--metric", "fi", "--metric", "delay_mean"]
    place = str(tmp_path / "r")
    command = ["sweep", str(tmp_path / "e.toml"), *axes, *short, *shown, "--out", place]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Four flows with a contract share a link: 3 settings, 9 runs"
    assert lines[2].split() == ["rate", "seeds", "fi", "delay_mean"]
    assert [line.split()[0] for line in lines[3:6]] == ["2", "3", "4"]
    drawn = (tmp_path / "r" / "sweep.svg").read_text()
    assert drawn.startswith("<svg")
    for text in ("rate (Mbit/s)", "delay mean (ms)", "Frontier of fi and delay mean"):
        assert text in drawn
    again = CliRunner().invoke(app, [*command, "--json"])
    found = json.loads(again.stdout)
    assert [s["values"]["links.bottleneck.rate"] for s in found["settings"]] == [
        "2 Mbit/s", "3 Mbit/s", "4 Mbit/s"
    ]  # fmt: skip
    for setting in found["settings"]:
        lo, hi = setting["metrics"]["fi"]["ci95"]
        assert 0 <= lo <= setting["metrics"]["fi"]["mean"] <= hi <= 1


def test_a_metric_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(inprofile.STARTER)
    axis = ["--axis", "links.bottleneck.rate=2 Mbit/s", "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(app, ["sweep", str(tmp_path / "e.toml"), *axis, "--metric", "godput"])
    assert done.exit_code == 2
    assert "did you mean goodput?" in done.stderr
    assert not (tmp_path / "r").exists()
