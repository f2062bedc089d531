"""The package's rooms: few at its top, and imports in one direction, also of types and within functions."""

import ast
import graphlib
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
