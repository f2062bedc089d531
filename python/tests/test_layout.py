"""The package's rooms: few at its top, and imports in one direction, also of types and within functions.

The locked packages of Python and of the page: pinned with hashes, from their index, known licences.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib.metadata
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
