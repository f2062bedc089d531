"""A mechanism in a Rust crate of one's own, and the engine built with it.

That the crate compiles and runs is tested in crates/trials and by `make mechanism`.

The digest of a mechanism typed into a session: whatever the class reaches is in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

import inprofile
from inprofile.own import crate, engine
from inprofile.own.classes import digest


@pytest.mark.parametrize("kind", ["marker", "aqm"])
def test_a_crate_is_whole(tmp_path: Path, kind: Literal["marker", "aqm"]) -> None:
    crates = crate.find_crates()
    files = crate.write_crate("my_own", kind, tmp_path / "my_own", crates)
    texts = {file.relative_to(tmp_path / "my_own").as_posix(): file.read_text("utf-8") for file in files}
    assert not [name for name, text in texts.items() if re.search("@[A-Z]+@", text)]
    needs = tomllib.loads(texts["Cargo.toml"])
    for needed in [*needs["dependencies"].values(), *needs["dev-dependencies"].values()]:
        assert (Path(needed["path"]) / "Cargo.toml").is_file()
    [point] = tomllib.loads(texts["pyproject.toml"])["project"]["entry-points"]["inprofile.engine"].items()
    assert point == ("my_own", "inprofile_my_own.engine")
    # A mechanism of ours in its place, the experiment is a good one.
    other = 'kind = "every_nth"' if kind == "marker" else 'aqm = "drop_tail"'
    word = "kind" if kind == "marker" else "aqm"
    text = texts["my_own.toml"].replace(f'{word} = "my_own"', other).replace(", from = 10", "")
    assert inprofile.parse(text).warnings == []


def test_what_cannot_be_a_crate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crates = crate.find_crates()
    for name, says in [("red", "already"), ("My", "lower-case"), ("a__b", "single"), ("../x", "lower-case")]:
        with pytest.raises(ValueError, match=says):
            crate.write_crate(name, "aqm", tmp_path / "x", crates)
    assert not (tmp_path / "x").exists()
    with pytest.raises(crate.NoCrates, match="no checkout"):
        crate.find_crates(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crate, "__file__", str(tmp_path / "a" / "b" / "c" / "crate.py"))
    with pytest.raises(crate.NoCrates, match="--crates DIR"):
        crate.find_crates()
    assert crate.find_crates(crates.parent) == crates


def _points(*values: str) -> Any:
    """What importlib.metadata would find installed."""
    made = [EntryPoint(value, value, "inprofile.engine") for value in values]
    return lambda *, group: made if group == "inprofile.engine" else []


def test_an_engine_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = inprofile._internal
    monkeypatch.setattr(engine, "entry_points", _points("one.engine", "two.engine"))
    with pytest.raises(ImportError, match=r"one.engine, two.engine .* pip uninstall two.engine"):
        engine._choose()
    monkeypatch.setattr(engine, "entry_points", _points("nowhere_at_all"))
    with pytest.raises(ImportError, match=r"cannot be loaded .*nowhere_at_all.*maturin develop"):
        engine._choose()
    old = ModuleType("old_engine")
    monkeypatch.setitem(sys.modules, "old_engine", old)
    monkeypatch.setattr(engine, "entry_points", _points("old_engine"))
    for version in [None, "0.0.1"]:
        if version is not None:
            monkeypatch.setattr(old, "version", lambda: "0.0.1", raising=False)
        with pytest.raises(ImportError, match=f"built with Inprofile {version or 'none'}, and this is"):
            engine._choose()
    assert inprofile._internal is ours


def test_an_engine_that_fits_takes_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    new = ModuleType("new_engine")
    new.version = lambda: inprofile.__version__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "new_engine", new)
    monkeypatch.setitem(sys.modules, "inprofile._internal", inprofile._internal)
    monkeypatch.setattr(inprofile, "_internal", inprofile._internal)
    monkeypatch.setattr(engine, "entry_points", _points("new_engine"))
    engine._choose()
    assert sys.modules["inprofile._internal"] is new
    assert inprofile._internal is new


#: A class as it is typed into a session, where there is no file to take the digest of.
TYPED = """
from inprofile import Marker

LIMITS = [1, 2]

def helper(x=4):
    return x + sum(n for n in LIMITS)

def outer(k):
    class Typed(Marker):
        @staticmethod
        def double(x):
            return 2 * x

        @property
        def words(self):
            return "a" in {"a", "b", "c", "d"}

        def mark(self, now, packet, rng):
            return [helper() for _ in range(k)]
    return Typed

Typed = outer(3)
"""


def typed_digest(text: str) -> str:
    space: dict[str, Any] = {"__name__": "typed"}
    exec(text, space)  # noqa: S102 (as it is typed into a session)
    return digest(space["Typed"])


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("2 * x", "3 * x"),
        ('"d"}', '"e"}'),
        ("[1, 2]", "[1, 3]"),
        ("x=4", "x=5"),
        ("sum(n for", "sum(2 * n for"),
        ("outer(3)", "outer(4)"),
        ("[helper() for", "[1 + helper() for"),
    ],
)
def test_whatever_a_typed_class_reaches_is_in_its_digest(was: str, now: str) -> None:
    assert typed_digest(TYPED) == typed_digest(TYPED)
    assert typed_digest(TYPED) != typed_digest(TYPED.replace(was, now))


def test_a_typed_class_has_the_same_digest_in_every_process() -> None:
    script = "import sys, test_own_crate as t; print(t.typed_digest(t.TYPED))"
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {typed_digest(TYPED) + "\n"}
