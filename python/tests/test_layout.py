"""The house: rooms that import in one direction, packages that are pinned, laws that are tested.

The locked packages of Python and of the page: pinned with hashes, from their index, known licences.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requirements
import wrong_laws

import inprofile

PACKAGE = Path(inprofile.__file__).parent
#: From the bottom up: each may import what stands before it.
ROOMS = [
    "_input",
    "_internal",
    "own",
    "metrics",
    "charts",
    "run",
    "experiment",
    "papers",
    "studies",
    "view",
    "cli",
]


def imported(file: Path, package: Path) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it, by their dotted names below it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        place = file.parent.relative_to(package).parts
        base = [*place[: len(place) - node.level + 1], *(node.module or "").split(".")]
        for alias in node.names:
            for name in (".".join(filter(None, [*base, alias.name])), ".".join(filter(None, base))):
                path = package / name.replace(".", "/")
                if name and (path.with_suffix(".py").exists() or (path / "__init__.py").exists()):
                    yield name
                    break


@functools.cache
def graph(package: Path) -> dict[str, set[str]]:
    """What each module imports."""
    found: dict[str, set[str]] = {}
    for file in package.rglob("*.py"):
        parts = file.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = set(imported(file, package)) - {name}
    return found


def test_no_module_is_imported_by_what_it_imports() -> None:
    found = graph(PACKAGE)
    assert "run.experiments" in found["studies.compare.run"]
    graphlib.TopologicalSorter(found).prepare()


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "__init__.py").touch()
    (tmp_path / "a" / "__init__.py").write_text("def f() -> None:\n    from ..b import g\n")
    (tmp_path / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import a\n"
    )
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph(tmp_path)).prepare()


def test_rooms_import_downwards() -> None:
    rank = {room: n for n, room in enumerate(ROOMS)}
    upwards = [
        f"{module} imports {other}"
        for module, others in graph(PACKAGE).items()
        for other in others
        if module != "__main__" and rank[other.split(".")[0]] > rank[module.split(".")[0]]
    ]
    assert upwards == []


def test_the_top_of_the_package_is_small() -> None:
    top = {p.stem for p in PACKAGE.glob("*.py*")} | {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    modules = top - {"__init__", "__pycache__"}
    assert modules == {*ROOMS, "__main__"}
    assert len(modules) <= 12


ROOT = Path(__file__).parents[2]
PINS = sorted(ROOT.glob("requirements*.txt"))
#: Licences that may be had beside Apache-2.0 without a condition on code of ours.
ALLOWED = re.compile(r"(0BSD|Apache|BSD|CC0|ISC|MIT|MPL|Mozilla|PSF|Zlib)")


def pins(text: str) -> list[str]:
    """The entries, each one line, without those of the file that it is beside (`-r`)."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if not line.startswith(("#", "-r "))]
    return [" ".join(line.split()) for line in lines]


def unfit(pin: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._-]+==[^ ]+( ;[^#]*?)?( --hash=sha256:[0-9a-f]{64})+", pin) is None


@pytest.mark.parametrize("file", PINS, ids=lambda file: file.name)
def test_every_package_is_pinned_with_hashes_and_from_the_index(file: Path) -> None:
    found = pins(file.read_text("utf-8"))
    assert len(found) > 1
    assert [pin for pin in found if unfit(pin)] == []
    assert unfit("a>=1") and unfit("a==1") and unfit("a @ https://example.org/a.whl")  # noqa: PT018


def test_licences_are_known_ones() -> None:
    names = [pin.partition("==")[0] for pin in pins((ROOT / "requirements.txt").read_text("utf-8"))]
    for name in names:
        about = importlib.metadata.metadata(name)
        said = [about.get("License-Expression") or "", (about.get("License") or "")[:80]]
        said += [c for c in about.get_all("Classifier") or [] if c.startswith("License")]
        assert any(ALLOWED.search(text) for text in said), f"{name}: {said}"


def test_the_pages_packages_are_locked_and_from_the_registry() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text("utf-8"))
    found = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(found) > 10
    for name, entry in found.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert entry.get("resolved", "https://registry.npmjs.org/").startswith(
            "https://registry.npmjs.org/"
        ), name
        assert ALLOWED.search(entry["license"]), f"{name}: {entry['license']}"


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
