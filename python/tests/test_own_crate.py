"""Mechanisms of one's own: in a Rust crate, with the engine built with it; in suites and comparisons.

That the crate compiles and runs is tested in crates/trials and by `make mechanism`.

The digest of a mechanism typed into a session: whatever the class reaches is in it.
"""

from __future__ import annotations

import json
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
from typer.testing import CliRunner

import inprofile
from inprofile import own
from inprofile.cli import app
from inprofile.experiment.mechanisms import UnknownSenderError, all_senders
from inprofile.own import crate, engine, registry
from inprofile.own.classes import digest
from inprofile.studies.compare.own import TuneError, own_scheme
from inprofile.studies.compare.run import plan as comparison
from inprofile.studies.suite import UnknownTcpError, contestants
from inprofile.studies.suite import plan as suite


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


EXAMPLES = Path(__file__).parents[2] / "docs" / "guides" / "own_mechanisms.py"


def test_a_suite_takes_mechanisms_of_ones_own_at_their_defaults() -> None:
    own.load_classes(EXAMPLES)
    made = suite(aqms=["codel"], scenarios=["mild", "targets", "tcp-friendly"], own=["stale_out", "nth_out"])
    assert [c.id for c in made.contestants] == ["drop-tail", "codel", "stale_out", "nth_out"]
    queue = {
        (c.contestant, c.scenario, c.variant): s.check().effective["links"][0]["queue"]
        for c, s in made.work.items()
    }
    assert queue["stale_out", "mild", ""]["aqm"] == "stale_out"
    assert queue["nth_out", "mild", ""]["aqm"] == "rio"
    # RFC 7928 §4.3.1 turns the one parameter that tune names.
    found = [queue["stale_out", "targets", v]["most"] for v in ("0.25", "1", "4")]
    assert found == ["25 ms", "100 ms", "400 ms"]
    mine = next(c for c in made.contestants if c.id == "stale_out")
    assert (mine.control, mine.decides, mine.has_ecn) == ("most", "departure", False)
    # Others do not see it.
    assert "stale_out" not in {c.id for c in contestants()}


def test_a_class_that_lacks_a_default_is_refused_by_a_suite() -> None:
    class Needy(inprofile.Aqm):
        most: float

        def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
            return "accept"

    inprofile.register(Needy)
    with pytest.raises(ValueError, match=r"needy: most has no default.*write most = parameter"):
        suite(scenarios=["mild"], own=["needy"])


@pytest.mark.parametrize("sender", all_senders(), ids=lambda s: s.id)
def test_standard_senders_may_be_any(sender: Any) -> None:
    made = suite(aqms=["drop-tail"], scenarios=["mild"], tcp=sender.id)
    (scenario,) = made.work.values()
    (tcp,) = {g["tcp"]["congestion"] for g in scenario.check().effective["flows"] if g["tcp"]}
    assert tcp == sender.tcp["congestion"]


def test_an_unknown_sender_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownTcpError, match=r"newreno .*bbr \(BBR version 3\)"):
        suite(scenarios=["mild"], tcp="bbr9")
    with pytest.raises(UnknownSenderError, match='did you mean "bbr"'):
        comparison(tcps=["bbr9"])


def test_a_comparison_of_ones_own_with_named_senders_and_seeds(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(inprofile.STARTER)
    made = comparison([file], schemes=["red"], tcps=["cubic", "linux", "bbr"], seeds=10)
    assert [(s.id, s.seeds) for s in made.studies] == [("mine-linux", 10), ("mine-bbr", 10)]
    found = [s.scenario.check().effective["flows"][0]["tcp"]["congestion"] for s in made.studies]
    assert found == ["cubic", "bbr"]


def test_of_a_time_t_is_a_time_and_of_a_count_it_is_refused() -> None:
    def made(kind: Any, default: float, tune: str) -> Any:
        class Timed(inprofile.Aqm):
            most: kind = inprofile.parameter(default)

            def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
                return "accept"

        Timed.__annotations__ = {"most": kind}
        Timed.tune = {"most": tune}
        name = inprofile.register(Timed)
        return own_scheme(next(m for m in inprofile.mechanisms() if m.name == name), Timed)

    for text in ("1/2 T", "1/2 T as time"):
        assert made(own.Duration, 0.05, text).queue["most"] == "1/2 T as time"
    with pytest.raises(TuneError, match=r"is no range: write one such as"):
        made(int, 5, "1 T")


def test_both_commands_take_mechanisms_and_senders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registry._REGISTERED.clear()  # as in a process of its own: other tests' modules may have some
    (tmp_path / "mine.toml").write_text(inprofile.STARTER)
    mine = ["--mechanism", str(EXAMPLES), "--plan", "--json"]
    asked = ["suite", "rfc7928", "--aqm", "red,codel,pie", "--tcp", "bbr", "--scenario", "mild", *mine]
    made = json.loads(CliRunner().invoke(app, asked).stdout)
    assert made["contestants"] == ["drop-tail", "red", "codel", "pie", "nth_out", "stale_out"]
    assert made["tcp"] == "bbr"
    asked = ["compare", "mine.toml", "--schemes", "red", "--tcp", "cubic,bbr", "--seeds", "10", *mine]
    made = json.loads(CliRunner().invoke(app, asked).stdout)
    assert made["studies"] == ["mine-linux", "mine-bbr"]
    assert made["schemes"] == ["red", "nth_out", "stale_out"]


def test_what_is_no_scheme_or_no_file_of_mechanisms_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(inprofile.STARTER)
    wheel = tmp_path / "mine-0.1-py3-none-any.whl"
    wheel.write_bytes(b"")
    asked = ["compare", str(tmp_path / "mine.toml")]
    for more, said in (
        (["--mechanism", str(wheel)], "a wheel is installed (pip install mine-0.1-py3-none-any.whl)"),
        (["--schemes", "pi2"], 'a scheme of yours in a file may have it: queue = { aqm = "pi2" }'),
        (["--seeds", "2..3"], "a comparison takes a number of seeds"),
        (["--tcp", "vegas"], 'there is no sender "vegas"'),
    ):
        done = CliRunner().invoke(app, [*asked, *more])
        assert said in " ".join(f"{done.output} {done.exception}".split()), more
