"""Every law of TCP that code names has a test that names it; and how comments are read."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs/requirements.py"


@pytest.fixture(scope="module")
def laws() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["requirements"] = module
    spec.loader.exec_module(module)
    return module


def test_every_law_of_tcp_is_tested() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
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
def test_laws_are_found_in_a_comment(laws: ModuleType, comment: str, expected: list[str]) -> None:
    assert [law for law, _ in laws.laws_in(comment, "Hur 2006")] == expected


def a_crate(root: Path, tests: str) -> Path:
    folder = root / "crates/sim/src/tcp"
    folder.mkdir(parents=True)
    code = "//! By RFC 1.\n\n/// RFC 5681 §3.1: a law.\npub fn kept() {\n    // RFC 5681 §3.2: another.\n}\n"
    (folder / "a.rs").write_text(code + tests)
    return root


def test_a_law_that_no_test_names_is_found(laws: ModuleType, tmp_path: Path) -> None:
    tests = "\n#[cfg(test)]\nmod tests {\n    /// RFC 5681 §3.1.\n    #[test]\n    fn it_is_kept() {}\n}\n"
    found = laws.collect(a_crate(tmp_path, tests))
    assert laws.untested(found) == ["RFC 5681 §3.2"]
    assert list(found["RFC 5681 §3.1"].code) == ["`sim/tcp/a.rs` kept"]
    assert list(found["RFC 5681 §3.1"].tests) == ["`sim/tcp/a.rs` it_is_kept"]
    assert "| §3.2 | another | `sim/tcp/a.rs` kept | – |" in laws.table(found)


def test_a_trace_is_a_test(laws: ModuleType, tmp_path: Path) -> None:
    root = a_crate(tmp_path, "")
    folder = root / "crates/sim/tests/tcp"
    folder.mkdir(parents=True)
    (folder / "both.trace").write_text("# RFC 5681 §3.1: a law,\n# and §3.2.\nsender\n")
    found = laws.collect(root)
    assert laws.untested(found) == []
    assert list(found["RFC 5681 §3.2"].tests) == ["`sim/tests/tcp/both.trace`"]
