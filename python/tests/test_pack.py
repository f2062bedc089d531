"""Packs: run again they give the same bytes, a changed one is refused, and a hostile one writes nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inprofile
from forked import command
from inprofile import own
from inprofile.own import registry
from inprofile.studies.pack import NotPacked, Pack, Untrusted, archive, listing, pack, uncompared, verify

EXAMPLES = Path(__file__).parents[2] / "docs" / "guides" / "own_mechanisms.py"
SHORT = {
    "duration": "2 s",
    "measure": {"from": "0.5 s", "to": "2 s"},
    "flows.assured.start": "0 s",
    "monitors": [],
}
BASE = inprofile.parse(inprofile.STARTER).with_(SHORT)
QUEUE = "links.bottleneck.queue"


def filled(place: Path) -> Path:
    """A folder with an experiment, a result, a sweep, and a text."""
    BASE.run(seeds=2).write(place / "r")
    inprofile.sweep(BASE, {f"{QUEUE}.limit": {"a": "20 packets", "b": "60 packets"}}, place / "s", seeds=2)
    (place / "notes.md").write_text("What was tried.\n")
    return place


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("work") / "paper")


@pytest.fixture
def file(plain: Path, tmp_path: Path) -> Path:
    pack(plain, tmp_path / "p.zip")
    return tmp_path / "p.zip"


def outcomes(file: Path, into: Path, **more: Any) -> dict[str, str]:
    return {one.place: one.outcome for one in verify(Pack(file), into, **more)}


def test_a_pack_gives_the_same_bytes_elsewhere(plain: Path, file: Path, tmp_path: Path) -> None:
    assert outcomes(file, tmp_path / "there") == {"r": "same bytes", "s": "same bytes"}
    unpacked = tmp_path / "there" / "folder"
    assert (unpacked / "notes.md").read_text() == "What was tried.\n"
    names = {str(p.relative_to(plain)) for p in plain.rglob("*")}
    assert names == {str(p.relative_to(unpacked)) for p in unpacked.rglob("*")}


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_a_folder_that_is_itself_a_result_is_packed_and_verified(
    plain: Path, tmp_path: Path, kind: str
) -> None:
    (inner,) = (p for p in plain.iterdir() if p.is_dir() and (p / "sweep.json").exists() == (kind == "sweep"))
    shutil.copytree(inner, tmp_path / "r")
    pack(tmp_path / "r", tmp_path / "r.pack.zip")
    assert outcomes(tmp_path / "r.pack.zip", tmp_path / "there") == {".": "same bytes"}


def test_the_same_folder_is_the_same_pack(plain: Path, file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "other" / "paper"
    shutil.copytree(plain, copy)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    found = pack(copy, tmp_path / "q.zip")
    assert (tmp_path / "q.zip").read_bytes() == file.read_bytes()
    assert found["results"][0]["seeds"] == [1, 2]


def test_figures_that_differ_are_told_from_bytes_that_do(file: Path, tmp_path: Path) -> None:
    made = Pack(file)
    into = made.unpack(tmp_path / "there")
    assert all(one.holds for one in verify(made, into))
    flows = into.with_name("there.again") / "results" / "r" / "flows.parquet"
    import pyarrow.parquet as pq

    table = pq.read_table(flows)
    pq.write_table(table, flows, compression="snappy")
    first = verify(made, into)[0]
    assert (first.outcome, list(first.details)) == ("same rows", ["flows.parquet"])
    pq.write_table(table.slice(1), flows)
    first = verify(made, into)[0]
    assert (first.outcome, list(first.details)) == ("different", ["flows.parquet"])


def test_mechanisms_in_python_come_along_and_run_only_when_trusted(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES, tmp_path / "mine.py")
    own.load_classes(tmp_path / "mine.py")
    place = tmp_path / "paper"
    BASE.with_({QUEUE: {"aqm": "stale_out", "limit": "60 packets"}}).run(seeds=1).write(place / "r")
    values = {
        "red": {"aqm": "drop_tail", "limit": "9 packets"},
        "mine": {"aqm": "stale_out", "limit": "9 packets"},
    }
    inprofile.sweep(BASE, {QUEUE: values}, place / "s", seeds=1)
    found = pack(place, tmp_path / "p.zip")
    assert [(m["name"], m["file"]) for m in found["mechanisms"]] == [("stale_out", "mechanisms/1/mine.py")]
    (tmp_path / "mine.py").unlink()
    registry._REGISTERED.clear()
    with pytest.raises(Untrusted, match=r"stale_out in .*mechanisms/1/mine.py.*--trust"):
        outcomes(tmp_path / "p.zip", tmp_path / "there")
    assert own.registered() == {}
    assert outcomes(tmp_path / "p.zip", tmp_path / "there", trust=True) == {
        "r": "same bytes", "s": "same bytes",
    }  # fmt: skip


def test_a_mechanism_whose_source_is_gone_is_said(tmp_path: Path) -> None:
    class Typed(inprofile.Aqm):
        def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
            return "accept"

    Typed.__module__ = "nowhere"
    inprofile.register(Typed)
    BASE.with_({QUEUE: {"aqm": "typed", "limit": "60 packets"}}).run(seeds=1).write(tmp_path / "p" / "r")
    with pytest.raises(NotPacked, match="r: the source of typed is gone: it was typed into a session"):
        pack(tmp_path / "p", tmp_path / "p.zip")
    assert not (tmp_path / "p.zip").exists()


def test_a_compiled_mechanism_is_named_by_its_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BASE.run(seeds=1).write(tmp_path / "p" / "r")
    monkeypatch.setattr(listing, "_own", lambda experiment: {"fast": "1" * 64})
    with pytest.raises(NotPacked, match=r"r: the code of fast .* install the wheel it was run with"):
        pack(tmp_path / "p", tmp_path / "p.zip")
    monkeypatch.setattr(listing, "engine_digest", lambda: "1" * 64)
    monkeypatch.setattr(listing, "package", lambda: ("inprofile-fast", "0.2"))
    found = pack(tmp_path / "p", tmp_path / "p.zip")
    assert found["mechanisms"] == [{"name": "fast", "sha256": "1" * 64, "wheel": "inprofile-fast 0.2"}]
    # Elsewhere, where that engine is not installed.
    made = Pack(tmp_path / "p.zip")
    (one,) = verify(made, made.unpack(tmp_path / "there"))
    assert one.outcome == "not run again"
    assert "fast is compiled, in inprofile-fast 0.2" in one.details[0]
    assert "install that wheel" in one.details[0]


def test_a_suite_is_run_again_with_its_files_and_mechanisms(tmp_path: Path) -> None:
    from inprofile.studies.suite import suite

    shutil.copy(EXAMPLES, tmp_path / "mine.py")
    own.load_classes(tmp_path / "mine.py")
    place = tmp_path / "paper"
    asked: dict[str, Any] = {"scenarios": ["mild"], "quick": True, "seeds": 2, "cache": None}
    suite(aqms=["codel"], own=["stale_out"], tcp="bbr", out=place, **asked)
    found = pack(place, tmp_path / "p.zip")
    assert [(r["kind"], r["place"]) for r in found["results"]] == [("suite", "rfc7928")]
    assert [m["name"] for m in found["mechanisms"]] == ["stale_out"]
    (tmp_path / "mine.py").unlink()
    registry._REGISTERED.clear()
    assert outcomes(tmp_path / "p.zip", tmp_path / "there", trust=True) == {"rfc7928": "same bytes"}

    def replaced(files: dict[str, bytes]) -> None:
        files["folder/rfc7928/index.html"] = b"<h1>stale_out wins</h1>"

    made = Pack(crafted(tmp_path / "p.zip", edit=replaced))
    (one,) = verify(made, made.unpack(tmp_path / "new"), trust=True)
    assert (one.outcome, list(one.details)) == ("different", ["index.html"])

    def elsewhere(about: dict[str, Any]) -> None:
        about["versions"]["altair"] = "1"

    made = Pack(crafted(tmp_path / "p.zip", elsewhere, edit=replaced))
    verified = verify(made, made.unpack(tmp_path / "other"), trust=True)
    assert [one.outcome for one in verified] == ["same bytes"]
    assert "rfc7928/index.html" in uncompared(made, verified)


def test_reports_that_are_not_run_again_are_named(plain: Path, tmp_path: Path) -> None:
    work = tmp_path / "with"
    shutil.copytree(plain, work)
    shutil.rmtree(work / "s")
    (work / "compare").mkdir()
    (work / "compare" / "results.json").write_text(json.dumps({"schemes": []}))
    packed = command("pack", "with", cwd=tmp_path)
    assert "report compare/results.json: packed as it is, and not run again" in packed.stdout, packed.stderr
    done = command("unpack", "--verify", "with.pack.zip", "--into", "there", cwd=tmp_path)
    assert "Not run again: compare/results.json. Only runs, sweeps and suites are" in done.stdout, done.stderr
    assert "1 file was not compared with anything, and may say anything: notes.md" in done.stdout


def test_results_that_were_changed_are_different_and_what_was_not_compared_is_said(
    file: Path, tmp_path: Path
) -> None:
    def edit(files: dict[str, bytes]) -> None:
        files["folder/r/metrics.parquet"] = b"garbage"
        files["folder/r/metrics.csv"] = b"seed,value\n1,9999\n"
        files["folder/figure.txt"] = b"RED wins"

    changed = crafted(file, edit=edit)
    done = command("unpack", "--verify", str(changed), "--into", str(tmp_path / "there"), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "run r: not run again: " in done.stdout
    assert "sweep s: same bytes" in done.stdout
    assert "r/metrics.csv" not in done.stdout.split("may say anything")[0]
    assert "files were not compared with anything, and may say anything: figure.txt, notes.md" in done.stdout
    made = Pack(file)
    found = verify(made, tmp_path / "good")
    assert uncompared(made, found) == ["notes.md"]


def test_only_the_code_that_is_shown_runs(tmp_path: Path) -> None:
    """What is compiled beside it is not shown: neither from a pack, nor where one names a file oneself."""
    text = EXAMPLES.read_bytes()
    evil = compile(text + b"\nraise SystemExit('code that no one read')\n", "mine.py", "exec")
    (tmp_path / "mine.py").write_bytes(text)
    cached = Path(importlib.util.cache_from_source(tmp_path / "mine.py"))
    cached.parent.mkdir()
    hashed = importlib.util.source_hash(text)
    cached.write_bytes(importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + hashed + marshal.dumps(evil))
    assert "stale_out" in own.load_classes(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_bytes(b"raise SystemExit('changed since')")
    assert "stale_out" in own.load_classes(tmp_path / "mine.py", text)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a:b"], "a:b"),
        (["a\\b"], "a character that a name on another system may not have"),
        (["a\nb"], "a character that a name on another system may not have"),
        (["README", "Readme"], "have one name where capitals are not told apart"),
        (["\u00e9", "e\u0301"], "have one name where"),
        (["caf\udce9"], "is not UTF-8: rename the file"),
    ],
)
def test_names_that_could_not_be_unpacked_are_not_packed(
    plain: Path, tmp_path: Path, names: list[str], said: str
) -> None:
    shutil.copytree(plain, tmp_path / "work")
    for name in names:
        (tmp_path / "work" / name).write_text("x")
    with pytest.raises(NotPacked, match=said):
        pack(tmp_path / "work", tmp_path / "p.zip")
    assert not (tmp_path / "p.zip").exists()


def test_the_folder_that_one_is_in_is_packed_beside_it(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "work")
    done = command("pack", ".", cwd=tmp_path / "work")
    assert done.returncode == 0, done.stderr
    assert Pack(tmp_path / "work.pack.zip").about["results"]


def test_folders_that_cannot_be_packed(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotPacked, match="holds no result"):
        pack(tmp_path / "empty", tmp_path / "p.zip")
    with pytest.raises(NotPacked, match="is in the folder that is packed"):
        pack(plain, plain / "p.zip")
    shutil.copytree(plain, tmp_path / "linked")
    (tmp_path / "linked" / "link").symlink_to("/etc/passwd")
    with pytest.raises(NotPacked, match="is a link"):
        pack(tmp_path / "linked", tmp_path / "p.zip")


def test_another_folder_is_not_written_over(file: Path, tmp_path: Path) -> None:
    made = Pack(file)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    with pytest.raises(inprofile.FolderInUse, match="holds something else"):
        made.unpack(tmp_path / "there")
    assert made.unpack(tmp_path / "new") == made.unpack(tmp_path / "new")


def test_the_commands_say_what_came_out(plain: Path, tmp_path: Path) -> None:
    done = command("pack", str(plain), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "paper.pack.zip" in done.stdout
    done = command("unpack", "--verify", "paper.pack.zip", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Of 2: 2 same bytes." in done.stdout
    broken = rewritten(tmp_path / "paper.pack.zip", edited)
    done = command("unpack", "--verify", broken.name, "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert "notes.md is not as it was packed" in json.loads(done.stdout)["error"]


def test_an_interrupted_verification_goes_on(tmp_path: Path) -> None:
    long = BASE.with_({"duration": "5000 s", "measure.to": "5000 s"})
    long.run(seeds=16).write(tmp_path / "paper" / "r")
    pack(tmp_path / "paper", tmp_path / "p.zip")
    asked = [sys.executable, "-m", "inprofile", "unpack", "--verify", "p.zip", "--jobs", "1"]
    running = subprocess.Popen(asked, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "p.again" / "results" / "r.unfinished"
    until = time.monotonic() + 120
    while not list(kept.glob("piece-*.arrow")) and running.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 130, said
    assert "the same command goes on from there" in said
    assert list(kept.glob("piece-*.arrow")), "what was finished is kept"
    done = command("unpack", "--verify", "p.zip", cwd=tmp_path)
    assert "Of 1: 1 same bytes." in done.stdout, done.stderr


def rewritten(
    file: Path,
    change: Callable[[dict[str, bytes]], None] = lambda files: None,
    each: Callable[[zipfile.ZipInfo], None] = lambda info: None,
) -> Path:
    """A pack with other files, or other entries, than it had."""
    with zipfile.ZipFile(file) as source:
        files = {name: source.read(name) for name in source.namelist()}
    change(files)
    made = file.with_name("changed.zip")
    with zipfile.ZipFile(made, "w") as target:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            each(info)
            target.writestr(info, data)
    return made


def edited(files: dict[str, bytes]) -> None:
    files["folder/notes.md"] = b"What was not tried.\n"


def crafted(
    file: Path,
    change: Callable[[dict[str, Any]], object] = lambda about: None,
    edit: Callable[[dict[str, bytes]], object] = lambda files: None,
) -> Path:
    """A pack whose list goes with its files, made by somebody else."""

    def remade(files: dict[str, bytes]) -> None:
        about = json.loads(files.pop("pack.json"))
        del about["sha256"]
        edit(files)
        about["files"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in files.items()
        }
        change(about)
        text = json.dumps({**about, "sha256": archive._seal(about)}).encode()
        others = dict(files)
        files.clear()
        files.update({"pack.json": text, **others})

    return rewritten(file, remade)
