"""What becomes of runs and reports of suites and plans that are interrupted, or whose folder is another."""

import errno
import json
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import inprofile
from inprofile import Scenario
from inprofile.cli import app, main
from inprofile.run.ledger import Ledger
from inprofile.studies.plan import Question, read_question
from inprofile.studies.plan.store import Bench
from inprofile.studies.suite import plan as suite_plan
from inprofile.studies.suite import read, suite, write_files
from test_plan import FILE, bench
from test_suite import ABOUT

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


def test_files_can_be_changed_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    write_files(ABOUT, folder)
    path = folder / "mild.toml"
    path.write_text(path.read_text("utf-8").replace("count    = 6", "count    = 2"), "utf-8")
    made = suite_plan(aqms=["pie"], scenarios=["mild"], files=folder)
    assert all(s.check().effective["flows_in_all"] == 2 for s in made.work.values())
    path.write_text("title = 1", "utf-8")
    with pytest.raises(inprofile.ScenarioError):
        suite_plan(scenarios=["mild"], files=folder)


def test_experiments_of_ones_own_are_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mild.toml").write_text("# my own, of a week's work")
    with pytest.raises(SystemExit) as left:
        main(["suite", "rfc7928", "--files", str(tmp_path)])
    assert left.value.code == 2
    assert "other files under the suite's names (mild.toml)" in capsys.readouterr().err
    assert (tmp_path / "mild.toml").read_text() == "# my own, of a week's work"
    assert len(list(tmp_path.iterdir())) == 1
    # What is as the suite has it may be there.
    (tmp_path / "mild.toml").write_text((ABOUT.folder / "mild.toml").read_text("utf-8"))
    with pytest.raises(SystemExit):
        main(["suite", "rfc7928", "--files", str(tmp_path)])
    assert (tmp_path / "suite.toml").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[runs]", "[run]", "suite.toml: runs is missing"),
        ('title   = "RFC 7928', '# title   = "RFC 7928', "suite.toml: title is missing"),
        ("[runs]", "runs]", "suite.toml: this is no TOML"),
        (
            '"goodput", "fi", "delay_mean"',
            '"godput", "fi"',
            'there is no measure "godput": choose from goodput',
        ),
        (
            "RFC 7928: Characterization Guidelines for Active Queue Management",
            "?",
            "write inprofile suite l4s",
        ),
    ],
)
def test_what_is_wrong_with_a_changed_table_is_said_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    write_files(ABOUT, tmp_path)
    path = tmp_path / "suite.toml"
    new = read("l4s").title if new == "?" else new
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(SystemExit) as left:
        main(
            ["suite", "rfc7928", "--files", str(tmp_path), "--quick", "--aqm", "codel", "--scenario", "mild"]
        )
    assert left.value.code == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def four(tmp_path: Path) -> Path:
    file = tmp_path / "four.toml"
    file.write_text(FILE, "utf-8")
    return file


def varied(question: Question) -> list[Scenario]:
    """Three short experiments."""
    short = question.scenario.with_({"duration": "3 s", "measure": {"from": "1 s"}})
    return [short.with_({"links.uplink.queue.limit": f"{n} packets"}) for n in (20, 40, 80)]


def test_settings_that_did_not_finish_in_order_keep_their_runs(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = read_question(four)
    first, second, third = varied(question)
    keep = Bench._keep
    killed = bench(question, tmp_path / "runs")
    with monkeypatch.context() as patched:
        # The second setting's run is still under way when the process is killed.
        patched.setattr(Bench, "_keep", lambda self, piece, by: keep(self, piece.without({(1, 1)}), by))
        with pytest.raises(KeyError):
            killed.run([(first, [1]), (second, [1]), (third, [1])])
    killed.close()
    asked = [(first, [1, 2]), (second, [1, 2]), (third, [1, 2])]
    again = bench(question, tmp_path / "runs")
    assert again.kept_before == 2
    found = again.run(asked)
    again.close()
    assert [repr(runs) for runs in found] == [repr(runs) for runs in bench(question, None).run(asked)]


def test_a_disk_that_is_full_at_the_end_of_a_second_plan_loses_none_of_the_firsts_runs(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = read_question(four)
    first, second, _ = varied(question)
    made = bench(question, tmp_path / "runs")
    made.run([(first, [1, 2])])
    made.finish()
    made.close()
    made = bench(question, tmp_path / "runs")
    made.run([(second, [1])])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_enter", full)
        with pytest.raises(OSError, match="No space"):
            made.finish()
        with pytest.raises(OSError, match="No space"):
            made.close()
    again = bench(question, tmp_path / "runs")
    assert again.kept_before >= 2
    again.run([(first, [1, 2]), (second, [1])])
    again.finish()
    again.close()
    assert len(list((tmp_path / "runs" / "runs").iterdir())) == 1
    assert bench(question, tmp_path / "runs").kept_before == 3


def test_a_full_disk_says_that_runs_are_kept_and_how_to_go_on(
    four: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "_enter", full)
    out = tmp_path / "p"
    ran = CliRunner().invoke(app, ["plan", str(four), "--trials", "4", "--out", str(out)])
    assert ran.exit_code == 2, ran.output
    assert "No space left on device. Make room, and give the same command again." in ran.stderr
    assert f"Finished runs are kept in {out / 'runs'}" in ran.stderr
