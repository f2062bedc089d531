"""What becomes of a suite's runs and reports when it is interrupted, or its folder is not as it should be."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from inprofile.cli import app
from inprofile.studies.suite import suite

ASKED = {"aqms": ["codel"], "scenarios": ["mild", "medium"], "quick": True, "jobs": 2}
COMMAND = ["suite", "rfc7928", "--aqm", "codel", "--scenario", "mild", "--quick", "--out", "out"]
FILES = ("results.json", "measures.csv", "report.txt", "index.html")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("uninterrupted")
    suite(**ASKED, out=place / "out", cache=place / "cache")  # type: ignore[arg-type]
    return place


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(*more: str) -> Result:
    return CliRunner().invoke(app, [*COMMAND, *more])


def test_resumed_it_is_as_if_it_had_not_been_interrupted(uninterrupted: Path, tmp_path: Path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    for stop in (1, 3, 6, 8):

        def told(finished: int, runs: int, what: str, stop: int = stop) -> None:
            if finished >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            suite(**ASKED, out=out, cache=cache, progress=told)  # type: ignore[arg-type]
        assert not out.exists()
    kept = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert len(kept) == 4
    suite(**ASKED, out=out, cache=cache)  # type: ignore[arg-type]
    assert _contents(out) == _contents(uninterrupted / "out")
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == kept


@pytest.mark.parametrize(
    ("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interrupted_report_leaves_the_earlier_one_whole(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, which: signal.Signals, code: int
) -> None:
    assert _run().exit_code == 0
    before = _contents(elsewhere / "out")

    def render(_: object) -> str:
        os.kill(os.getpid(), which)
        return ""

    monkeypatch.setattr("inprofile.studies.suite.page.render", render)
    answer = _run("--seeds", "3")
    assert answer.exit_code == code
    assert "Interrupted after 6 of 6 runs. What is finished is kept in results/cache/suite" in answer.stderr
    assert _contents(elsewhere / "out") == before


def test_a_full_disk_is_named_and_leaves_the_earlier_report_whole(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run().exit_code == 0
    before = _contents(elsewhere / "out")
    written = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == ".report.txt.part":
            written(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    answer = _run("--seeds", "3")
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1] == (
        "out/rfc7928/report.txt: No space left on device. Make room, and give the same command again."
        " Finished runs are kept in results/cache/suite: it goes on from there."
    )
    assert _contents(elsewhere / "out") == before


def test_a_report_with_other_options_is_replaced_with_a_word(elsewhere: Path) -> None:
    assert _run().stderr == ""
    assert _run().stderr == ""
    answer = _run("--seeds", "3")
    assert answer.exit_code == 0
    assert answer.stderr == (
        "out/rfc7928 has a report with other options"
        " (2 seeds, 2 contestants, 1 scenario, --tcp newreno, --quick):"
        " it is replaced when this one is done. --out keeps both; its runs stay in results/cache/suite.\n"
    )
    assert json.loads((elsewhere / "out/rfc7928/results.json").read_text("utf-8"))["seeds"] == 3


@pytest.mark.parametrize("name", [*(f"rfc7928/{n}" for n in FILES), "index.html", "glossary.html"])
def test_what_is_no_report_is_not_written_over(elsewhere: Path, name: str) -> None:
    place = elsewhere / "out" / name
    place.parent.mkdir(parents=True)
    place.write_text("mine", "utf-8")
    answer = _run()
    assert answer.exit_code == 2
    assert f"out/{name} would be written over" in answer.stderr
    assert answer.stderr.endswith("choose another place\n")
    assert _contents(elsewhere) == {f"out/{name}": b"mine"}


def test_a_folder_of_something_else_beside_it_is_no_matter(elsewhere: Path) -> None:
    for other, text in (("compare", "[1]"), ("notes", "not JSON")):
        (elsewhere / "out" / other).mkdir(parents=True)
        (elsewhere / "out" / other / "results.json").write_text(text, "utf-8")
    assert _run().exit_code == 0


def test_experiment_files_of_a_report_can_be_run_into_it(elsewhere: Path) -> None:
    assert _run().exit_code == 0
    before = _contents(elsewhere / "out")
    assert _run("--files", "out/rfc7928/files").exit_code == 0
    assert _contents(elsewhere / "out") == before
