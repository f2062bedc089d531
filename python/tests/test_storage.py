"""Results on disk: the same back, whole or not at all, never mixed, the same bytes each time; seeds kept."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import inprofile
from inprofile import FolderInUse, ResultError
from inprofile.run import storage
from inprofile.run.ledger import InterruptedRun, run_kept
from inprofile.run.results import Result, read
from made import flow, result
from test_sweeps import BASE, checksums

A = result([flow(1, "tcp.0", 300e3), flow(2, "tcp.0", 310e3)], "A")
B = result([flow(1, "tcp.0", 200e3)], "B")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    A.write(tmp_path / "a")
    back = read(tmp_path / "a")
    assert back.provenance == A.provenance
    for name in storage.TABLES:
        assert getattr(back, name).equals(getattr(A, name)), name


def test_the_same_result_is_the_same_bytes(tmp_path: Path) -> None:
    A.write(tmp_path / "one")
    A.write(tmp_path / "two")
    assert checksums(tmp_path / "one") == checksums(tmp_path / "two")


def test_rows_delivered_in_parts_are_the_same_bytes(tmp_path: Path) -> None:
    parts = {name: getattr(A, name) for name in storage.TABLES}
    flows = parts["flows"]
    import pyarrow as pa

    parts["flows"] = pa.concat_tables([flows.slice(0, 1), flows.slice(1)])
    A.write(tmp_path / "whole")
    Result(parts, A.provenance).write(tmp_path / "parts")
    assert checksums(tmp_path / "whole") == checksums(tmp_path / "parts")


def test_provenance_is_kept_once_and_names_no_time_host_or_threads(tmp_path: Path) -> None:
    A.write(tmp_path / "a")
    manifest = json.loads((tmp_path / "a" / "inprofile.json").read_text())
    assert manifest["seeds"] == [1, 2]
    assert manifest["version"] == inprofile.__version__
    assert manifest["digest"] == hashlib.sha256(A.provenance.experiment.encode()).hexdigest()
    assert manifest.keys() == {
        "format", "title", "digest", "version", "seeds", "conservation", "experiment", "effective",
    }  # fmt: skip
    for name in storage.TABLES:
        metadata = pq.read_schema(tmp_path / "a" / f"{name}.parquet").metadata
        assert json.loads(metadata[b"inprofile"]) == {
            "format": 3,
            "title": "A",
            "digest": manifest["digest"],
            "provenance": "inprofile.json, in the folder of this table",
            "sha256": hashlib.sha256((tmp_path / "a" / "inprofile.json").read_bytes()).hexdigest(),
        }


def test_a_large_experiment_is_in_the_folder_once(tmp_path: Path) -> None:
    many = inprofile.parse(inprofile.STARTER).with_(
        {"flows.assured.count": 2000, "flows.assured.contract": [f"{i + 1} kbit/s" for i in range(2000)]}
    )
    rows = [flow(1, f"assured.{i}", 1.0) for i in range(2000)]
    Result(result(rows)._tables, many.provenance((1,))).write(tmp_path / "r")
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "r").iterdir()}
    assert sizes["inprofile.json"] > 60_000
    assert max(sizes[f"{name}.parquet"] for name in ("drops", "queues", "verdicts", "cdf")) < 8000
    assert read(tmp_path / "r").provenance == many.provenance((1,))


def test_a_folder_with_the_provenance_in_every_table_is_read(tmp_path: Path) -> None:
    A.write(tmp_path / "r")
    manifest = {**json.loads((tmp_path / "r" / "inprofile.json").read_text()), "format": 2}
    (tmp_path / "r" / "inprofile.json").write_text(json.dumps(manifest))
    for name in storage.TABLES:
        path = tmp_path / "r" / f"{name}.parquet"
        pq.write_table(pq.read_table(path).replace_schema_metadata({"inprofile": json.dumps(manifest)}), path)
    assert read(tmp_path / "r").provenance == A.provenance
    A.write(tmp_path / "other")
    (tmp_path / "other" / "flows.parquet").replace(tmp_path / "r" / "flows.parquet")
    with pytest.raises(ResultError, match="another run"):
        read(tmp_path / "r")


def test_a_changed_provenance_is_noticed(tmp_path: Path) -> None:
    A.write(tmp_path / "r")
    manifest = tmp_path / "r" / "inprofile.json"
    manifest.write_text(manifest.read_text().replace("100 s", "101 s"))
    with pytest.raises(ResultError, match="mixed or changed by hand"):
        read(tmp_path / "r")


def test_a_second_result_takes_the_place_of_the_first_whole(tmp_path: Path) -> None:
    A.write(tmp_path / "r")
    B.write(tmp_path / "r")
    B.write(tmp_path / "b")
    assert checksums(tmp_path / "r") == checksums(tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "r"]


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    A.write(tmp_path / "r")
    assert read(tmp_path / "r").title == "A"


@pytest.mark.parametrize("beside", [True, False])
def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path, beside: bool) -> None:
    place = tmp_path / "r"
    if beside:
        A.write(place)
    else:
        place.mkdir()
    (place / "notes.txt").write_text("mine")
    before = checksums(place)
    with pytest.raises(FolderInUse, match=r"notes\.txt"):
        B.write(place)
    assert checksums(place) == before


def test_parquet_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flows.parquet").write_bytes(b"PAR1")
    with pytest.raises(FolderInUse, match=r"flows\.parquet"):
        A.write(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("x")
    with pytest.raises(FolderInUse, match="not a folder"):
        A.write(tmp_path / "r")


@pytest.mark.parametrize("failing", [0, 3, 6])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, earlier: bool
) -> None:
    if earlier:
        A.write(tmp_path / "r")
    before = checksums(tmp_path / "r") if earlier else None
    write, calls = storage._write_table, iter(range(99))

    def fail(path: Path, *rest: object) -> None:
        write(path, *rest)  # type: ignore[arg-type]
        if next(calls) == failing:
            raise KeyboardInterrupt

    monkeypatch.setattr(storage, "_write_table", fail)
    with pytest.raises(KeyboardInterrupt):
        B.write(tmp_path / "r")
    assert [p.name for p in tmp_path.iterdir()] == (["r"] if earlier else [])
    if earlier:
        assert checksums(tmp_path / "r") == before


def test_a_rename_that_fails_brings_the_earlier_result_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    A.write(tmp_path / "r")
    before = checksums(tmp_path / "r")
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="No space"):
        B.write(tmp_path / "r")
    assert checksums(tmp_path / "r") == before
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_a_writer_that_is_killed_leaves_the_earlier_result_and_the_next_cleans_up(tmp_path: Path) -> None:
    A.write(tmp_path / "r")
    before = checksums(tmp_path / "r")
    script = (
        "import os, signal, sys; from inprofile.run import storage; from made import flow, result\n"
        "write = storage._write_table\n"
        "def die(path, *rest):\n"
        "    write(path, *rest)\n"
        "    if path.stem == 'queues': os.kill(os.getpid(), signal.SIGKILL)\n"
        "storage._write_table = die\n"
        "result([flow(1, 'tcp.0', 1.0)], 'B').write(sys.argv[1])"
    )
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    died = subprocess.run([sys.executable, "-c", script, str(tmp_path / "r")], env=here, check=False)
    assert died.returncode == -9
    assert checksums(tmp_path / "r") == before
    assert len(list(tmp_path.iterdir())) == 2
    B.write(tmp_path / "r")
    assert [p.name for p in tmp_path.iterdir()] == ["r"]
    assert read(tmp_path / "r").title == "B"


def test_tables_of_two_runs_are_not_read_as_one(tmp_path: Path) -> None:
    A.write(tmp_path / "a")
    B.write(tmp_path / "b")
    (tmp_path / "a" / "flows.parquet").replace(tmp_path / "b" / "flows.parquet")
    with pytest.raises(ResultError, match="another run"):
        read(tmp_path / "b")


def test_what_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        read(tmp_path / "r")
    (tmp_path / "r").mkdir()
    with pytest.raises(ResultError, match=r"inprofile\.json is missing"):
        read(tmp_path / "r")
    A.write(tmp_path / "r")
    drops = tmp_path / "r" / "drops.parquet"
    drops.write_bytes(drops.read_bytes()[:100])
    with pytest.raises(ResultError, match=r"drops\.parquet cannot be read"):
        read(tmp_path / "r")
    drops.unlink()
    with pytest.raises(ResultError, match=r"drops\.parquet is missing"):
        read(tmp_path / "r")
    (tmp_path / "r" / "inprofile.json").write_text('{"format": 99}')
    with pytest.raises(ResultError, match="another format"):
        read(tmp_path / "r")
    (tmp_path / "r" / "inprofile.json").write_text("{")
    with pytest.raises(ResultError, match="cannot be read"):
        read(tmp_path / "r")


def test_a_changed_experiment_is_noticed(tmp_path: Path) -> None:
    A.write(tmp_path / "a")
    stored = A.provenance.to_json()
    with pytest.raises(ResultError, match="digest"):
        type(A.provenance).from_json({**stored, "experiment": "{}"})
    with pytest.raises(ResultError, match="lacks 'seeds'"):
        type(A.provenance).from_json({k: v for k, v in stored.items() if k != "seeds"})


def test_rows_that_no_result_has_are_not_read(tmp_path: Path) -> None:
    """A file of a few kilobytes with two hundred million equal rows is refused by its footer, and at once."""
    A.write(tmp_path / "run")
    path = tmp_path / "run" / "series.parquet"
    schema = pq.read_schema(path)
    rows = 2_000_000
    equal = [pa.nulls(rows, field.type) for field in schema]
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_batch(pa.record_batch(equal, schema=schema))
    assert path.stat().st_size < 4 << 20
    before = pa.total_allocated_bytes()
    with pytest.raises(
        ResultError, match=r"series.parquet: its 200,000,000 rows in .* bytes.* would take .* GB"
    ):
        inprofile.read(tmp_path / "run")
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_rows_of_another_run_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, result_ in (("1", A), ("2", B)):
        result_.write(tmp_path / name)
    (tmp_path / "2" / "flows.parquet").replace(tmp_path / "1" / "flows.parquet")
    read: list[str] = []
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: read.append("rows"))
    with pytest.raises(ResultError, match="belongs to another run"):
        storage.read_folder(tmp_path / "1", ["flows"])
    assert not read


def test_a_run_that_was_interrupted_keeps_its_runs_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitored = BASE.with_({"monitors": [{"queue": "bottleneck", "every": "100 ms"}]})
    monitored.run(seeds=40, trace=True).write(tmp_path / "whole")
    for most in (15, 30):

        def stop(finished: int, runs: int, most: int = most) -> None:
            if finished >= most:
                raise KeyboardInterrupt

        with pytest.raises(InterruptedRun, match=r"after \d+ of 40 runs. They are kept in .*r\.unfinished"):
            run_kept(monitored, 40, tmp_path / "r", trace=True, progress=stop)
    assert not (tmp_path / "r").exists()
    with pytest.raises(FolderInUse, match="another experiment"):
        run_kept(BASE, 40, tmp_path / "r", trace=True)
    told: list[int] = []
    result = run_kept(
        monitored, 40, tmp_path / "r", trace=True, progress=lambda finished, _: told.append(finished)
    )
    assert told[0] >= 30
    assert result.seeds == tuple(range(1, 41))
    assert checksums(tmp_path / "r") == checksums(tmp_path / "whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "whole"]


def test_what_is_kept_serves_other_seeds_too(tmp_path: Path) -> None:
    def stop(finished: int, runs: int) -> None:
        if finished >= 4:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRun):
        run_kept(BASE, 8, tmp_path / "r", progress=stop, jobs=1)
    run_kept(BASE, range(2, 4), tmp_path / "r")
    BASE.run(seeds=range(2, 4)).write(tmp_path / "whole")
    assert checksums(tmp_path / "r") == checksums(tmp_path / "whole")
