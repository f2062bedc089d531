"""Every law of TCP that code names has a test that names it; wrong laws are of laws that are in the code."""

import subprocess
import sys
from pathlib import Path

import pytest
import requirements
import wrong_laws


def test_every_law_of_tcp_is_tested() -> None:
    done = subprocess.run(
        [sys.executable, requirements.__file__, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("RFC 5681 §3.1: as high as can be.", ["RFC 5681 §3.1"]),
        (
            "RFC 6298 §5.4–5.6, and §2.1.",
            ["RFC 6298 §5.4", "RFC 6298 §5.5", "RFC 6298 §5.6", "RFC 6298 §2.1"],
        ),
        ("RFC 5681 §3.2, steps 1 to 6; RFC 5681, Eq. (4)", ["RFC 5681 §3.2", "RFC 5681, Eq. (4)"]),
        ("RFC 2697 §3, 2698 §3", ["RFC 2697 §3", "RFC 2698 §3"]),
        (
            "Floyd and Jacobson 1993, §4 and Eq. 3",
            ["Floyd and Jacobson 1993 §4", "Floyd and Jacobson 1993, Eq. (3)"],
        ),
        ("Eq. (1)–(2) of the file's own source", ["Hur 2006, Eq. (1)", "Hur 2006, Eq. (2)"]),
        ("RFC 2018 as a whole, 4.5 ms, 1000 B", []),
    ],
)
def test_laws_are_found_in_a_comment(comment: str, expected: list[str]) -> None:
    assert [law for law, _ in requirements.laws_in(comment, "Hur 2006")] == expected


def a_crate(root: Path, tests: str) -> Path:
    folder = root / "crates/sim/src/tcp"
    folder.mkdir(parents=True)
    code = "//! By RFC 1.\n\n/// RFC 5681 §3.1: a law.\npub fn kept() {\n    // RFC 5681 §3.2: another.\n}\n"
    (folder / "a.rs").write_text(code + tests)
    return root


def test_a_law_that_no_test_names_is_found(tmp_path: Path) -> None:
    tests = "\n#[cfg(test)]\nmod tests {\n    /// RFC 5681 §3.1.\n    #[test]\n    fn it_is_kept() {}\n}\n"
    found = requirements.collect(a_crate(tmp_path, tests))
    assert requirements.untested(found) == ["RFC 5681 §3.2"]
    assert list(found["RFC 5681 §3.1"].code) == ["`sim/tcp/a.rs` kept"]
    assert list(found["RFC 5681 §3.1"].tests) == ["`sim/tcp/a.rs` it_is_kept"]
    assert "| §3.2 | another | `sim/tcp/a.rs` kept | – |" in requirements.table(found)


def test_a_trace_is_a_test(tmp_path: Path) -> None:
    root = a_crate(tmp_path, "")
    folder = root / "crates/sim/tests/tcp"
    folder.mkdir(parents=True)
    (folder / "both.trace").write_text("# RFC 5681 §3.1: a law,\n# and §3.2.\nsender\n")
    found = requirements.collect(root)
    assert requirements.untested(found) == []
    assert list(found["RFC 5681 §3.2"].tests) == ["`sim/tests/tcp/both.trace`"]


def test_every_wrong_law_has_its_place_and_every_paper_has_some() -> None:
    found = wrong_laws.laws()
    ids = [law.id for law in found]
    assert len(ids) == len(set(ids))
    assert {law.id[0] for law in found} == set("ABCDE")


def test_a_wrong_law_that_has_no_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = wrong_laws.LAWS.read_text("utf-8").replace("tpr_max * (lambda_in / all)", "tpr_max * lambda", 1)
    (tmp_path / "laws.toml").write_text(text, "utf-8")
    monkeypatch.setattr(wrong_laws, "LAWS", tmp_path / "laws.toml")
    with pytest.raises(
        ValueError, match=r"A6: its right law occurs 0 times in crates/core/src/marker/ard\.rs"
    ):
        wrong_laws.laws()


def test_those_of_a_round_are_of_different_files_and_tests() -> None:
    found = wrong_laws.laws()
    made = wrong_laws.rounds(found)
    assert sorted(law.id for turn in made for law in turn) == sorted(law.id for law in found)
    for turn in made:
        assert len({law.file for law in turn}) == len(turn)
        for law in turn:
            assert not any(other.tests.startswith(law.tests) for other in turn if other is not law)


def test_an_unknown_wrong_law_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wrong_laws.main(["--only", "A1,Z9"])
    assert "no such wrong law: Z9; there are A1, A2" in capsys.readouterr().err
