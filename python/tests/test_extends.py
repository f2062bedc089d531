"""Experiments that extend one another, and traces of links put into them: the same as written out."""

from __future__ import annotations

import json
import os
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inprofile
from forked import inprofile_
from inprofile import STARTER, ScenarioError
from inprofile.cli import main
from inprofile.experiment.dump import inline, written
from inprofile.experiment.scenario import Scenario
from inprofile.experiment.traces import TraceError, opportunities, with_trace
from inprofile.studies.sweep.axes import axis_of
from inprofile.studies.sweep.plan import make, scenario_of

PACKAGE = Path(inprofile.__file__).parent
EXPERIMENTS = [
    path
    for folder in ("papers", "studies")
    for path in sorted((PACKAGE / folder).rglob("*.toml"))
    if {"title", "duration", "links", "flows"} <= tomllib.loads(path.read_text("utf-8")).keys()
    or "extends" in tomllib.loads(path.read_text("utf-8"))
]
OVER = 'extends = "base.toml"\n[[links]]\nname = "bottleneck"\nrate = "4 Mbit/s"\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with an experiment that extends the starter."""
    (tmp_path / "base.toml").write_text(STARTER, "utf-8")
    (tmp_path / "over.toml").write_text(OVER, "utf-8")
    return tmp_path


# the same as written out


def _identity(entry: dict[str, Any]) -> dict[str, Any]:
    """The keys by which an entry of a list is known."""
    for key in ("name", "node", "queue", "flows", "edge"):
        if isinstance(entry.get(key), str):
            return {key: entry[key]}
    return {key: entry[key] for key in ("from", "to") if key in entry}


def _split(
    whole: dict[str, Any], draw: random.Random, fixed: set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A base and an extension that together say what a table says; `fixed` are keys that both have."""
    base: dict[str, Any] = {}
    over: dict[str, Any] = {}
    for key, value in whole.items():
        if key in fixed:
            base[key] = over[key] = value
        elif key in ("kind", "aqm", "scheduler"):
            base[key] = value
            if draw.random() < 0.5:
                over[key] = value
        else:
            _share(key, value, draw, base, over)
    return base, over


def _share(key: str, value: Any, draw: random.Random, base: dict[str, Any], over: dict[str, Any]) -> None:
    where = draw.choice(["base", "over", "both", "between"])
    if where == "base":
        base[key] = value
    elif where == "over":
        over[key] = value
    elif where == "between" and isinstance(value, dict):
        base[key], over[key] = _split(value, draw, set())
    elif where == "between" and _are_named(value):
        base[key], over[key] = _split_list(value, draw)
    elif isinstance(value, dict) and (kind := {"kind", "aqm"} & value.keys()):
        # Of another kind, and so replaced with all that it has.
        base[key], over[key] = {kind.pop(): "another", "limit": "7 packets"}, value
    elif isinstance(value, (dict, list)):
        base[key] = over[key] = value
    else:
        base[key], over[key] = "another", value


def _are_named(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return False
    names = [str(_identity(entry)) for entry in value]
    return len(set(names)) == len(names) and "{}" not in names


def _split_list(entries: list[dict[str, Any]], draw: random.Random) -> tuple[list[Any], list[Any]]:
    """Some of them in both, in any order in the extension, and after each the ones that it adds there."""
    base: list[Any] = []
    over: list[list[Any]] = []
    for entry in entries:
        if base and draw.random() < 0.4:
            over[-1].append(entry)
        else:
            of_base, of_over = _split(entry, draw, set(_identity(entry)))
            base.append(of_base)
            over.append([of_over])
    draw.shuffle(over)
    return base, [entry for part in over for entry in part]


def _toml(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {inline(value)}\n" for key, value in table.items())


def test_there_are_experiments_to_split() -> None:
    assert len(EXPERIMENTS) > 20


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_experiment_split_at_random_is_the_whole(path: Path, tmp_path: Path) -> None:
    whole, wanted = inprofile.load(path).as_written, inprofile.load(path).canonical
    for seed in range(10):
        base, over = _split(whole, random.Random(f"{path.stem} {seed}"), set())  # noqa: S311 (no secret)
        (tmp_path / "base.toml").write_text(_toml(base), "utf-8")
        (tmp_path / "over.toml").write_text(f'extends = "base.toml"\n{_toml(over)}', "utf-8")
        made = inprofile.load(tmp_path / "over.toml")
        assert made.canonical == wanted, (seed, base, over)
        assert inprofile.parse(made._text).canonical == wanted, "written out"
        assert inprofile.parse(written(made)).canonical == wanted


def test_an_extension_that_differs_is_another_experiment(files: Path) -> None:
    assert inprofile.load(files / "over.toml").canonical != inprofile.load(files / "base.toml").canonical
    same = inprofile.load(files / "base.toml").set("links.bottleneck.rate", "4 Mbit/s")
    assert inprofile.load(files / "over.toml").canonical == same.canonical


# varied, kept


def test_a_variant_needs_the_files_no_more(files: Path) -> None:
    scenario = inprofile.load(files / "over.toml")
    assert scenario.bases == [str(files / "base.toml")]
    (files / "base.toml").unlink()
    (files / "over.toml").unlink()
    varied = scenario.with_(duration="5 s", measure={"from": "1 s"}, monitors=[])
    result = varied.run(seeds=1)
    again = Scenario.again(result.provenance)
    assert "extends =" not in (result.provenance.text or "extends =")
    assert again.canonical == varied.canonical != scenario.canonical
    assert again.check().effective["links"][0]["rate"] == "4 Mbit/s"


def test_a_sweep_keeps_the_whole(files: Path) -> None:
    plan = make(inprofile.load(files / "over.toml"), [axis_of("duration=60 s,70 s", "grid")], seeds=1)
    made = scenario_of(json.loads(json.dumps(plan.head())), 1)
    assert made.check().effective["links"][0]["rate"] == "4 Mbit/s"
    assert made.check().effective["duration"] == "70 s"


def test_a_key_has_its_place_in_the_file_that_gives_it(files: Path) -> None:
    scenario = inprofile.load(files / "over.toml").set("seeds", 3)
    line = STARTER.splitlines().index(next(x for x in STARTER.splitlines() if x.startswith("duration"))) + 1
    assert scenario.place_of("links.bottleneck.rate") == f"{files / 'over.toml'}:4"
    assert scenario.place_of("duration") == f"{files / 'base.toml'}:{line}"
    assert scenario.place_of("seeds") == "--set seeds=3"


def test_check_shows_which_file_extends_which(files: Path) -> None:
    (files / "last.toml").write_text('extends = "over.toml"\nseeds = 3\n', "utf-8")
    assert "last.toml extends over.toml extends base.toml." in inprofile_("check", "last.toml", cwd=files)[0]
    told = json.loads(inprofile_("check", "last.toml", "--json", cwd=files)[0])
    assert told["extends"] == ["over.toml", "base.toml"]
    assert "extends" not in json.loads(inprofile_("check", "base.toml", "--json", cwd=files)[0])


# refused


def _refused(path: Path) -> str:
    with pytest.raises(ScenarioError) as refused:
        inprofile.load(path)
    return str(refused.value)


def test_a_base_that_is_no_file_of_bounded_size_is_refused_at_once(files: Path) -> None:
    base = files / "base.toml"

    def too_large() -> None:
        base.touch()
        os.truncate(base, (16 << 20) + 1)

    cases: list[tuple[Callable[[], None], str]] = [
        (lambda: os.mkfifo(base), "is a pipe, a device or a socket: name a regular file"),
        (base.mkdir, "is a folder: name a regular file"),
        (too_large, "has 16777217 B, and 16777216 are read at most"),
        (lambda: base.symlink_to(base.name), "can't be read"),
    ]
    for made, said in cases:
        if base.is_dir():
            base.rmdir()
        else:
            base.unlink(missing_ok=True)
        made()
        message = _refused(files / "over.toml")
        start = f'{files / "over.toml"}:1:11: error: extends = "base.toml": '
        assert message.startswith(start), message
        assert said in message
        assert "name an experiment file, by its path from the folder of" in message


def test_a_mistake_in_the_base_is_told_there(files: Path) -> None:
    (files / "base.toml").write_text("nonsense = 1\n" + STARTER, "utf-8")
    message = _refused(files / "over.toml")
    assert message.startswith(f"{files / 'base.toml'}:1:1: error: nonsense: unknown key"), message


def test_standard_input_extends_nothing() -> None:
    with pytest.raises(ScenarioError, match="only an experiment in a file can extend another"):
        inprofile.parse(OVER)


EXPERIMENT = """
title = "A link"
duration = "2 s"
seeds = 1
[[links]]
name = "cell"
from = "L"
to = "R"
rate = "6 Mbit/s"
delay = "20 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[flows]]
name = "f"
from = "L"
to = "R"
traffic = { kind = "cbr", rate = "20 Mbit/s", packet = "1500 B" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cell.toml"
    path.write_text(EXPERIMENT)
    return path


def _run(*words: object) -> int | str:
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    return done.value.code or 0


def test_a_trace_goes_into_an_experiment_and_comes_out_again(file: Path, tmp_path: Path) -> None:
    text = "".join(f"{ms}\n" for ms in [0, 3, 3, 8, 20, 20, 50])
    (tmp_path / "some.up").write_text(text)
    made, again = tmp_path / "made.toml", tmp_path / "again.up"
    assert _run("trace", file, "--link", "cell", "--from", tmp_path / "some.up", "--out", made) == 0
    assert _run("trace", made, "--link", "cell", "--out", again) == 0
    assert again.read_text() == text
    # Seven opportunities in each of 40 rounds; the flow sends more than that, from 0 s on.
    result = inprofile.load(made).run(seeds=1)
    assert abs(result.queues.to_pylist()[0]["total_sent"] - 40 * 7) <= 1
    # What is there is not overwritten.
    assert _run("trace", made, "--link", "cell", "--out", again) == 2


def test_a_rate_is_written_as_a_trace_that_sends_as_much(file: Path, tmp_path: Path) -> None:
    text = opportunities(inprofile.load(file), "cell")
    # 6 Mbit/s are an opportunity each 2 ms.
    assert text == "".join(f"{ms}\n" for ms in range(2, 2001, 2))
    (tmp_path / "rate.up").write_text(text)
    made = tmp_path / "made.toml"
    made.write_text(with_trace(file, "cell", tmp_path / "rate.up", made))
    sent = [inprofile.load(f).run(seeds=1).queues.to_pylist()[0]["total_sent"] for f in (file, made)]
    assert abs(sent[0] - sent[1]) <= 2, sent


def test_what_is_no_trace_is_refused(file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.up"
    bad.write_text("1\n2.5\n")
    with pytest.raises(TraceError, match=r"entry 2, '2\.5', is no whole number of ms"):
        with_trace(file, "cell", bad, tmp_path / "made.toml")
    with pytest.raises(TraceError, match="there is no link wifi: its links are cell"):
        opportunities(inprofile.load(file), "wifi")
    assert _run("trace", file, "--link", "cell", "--from", tmp_path / "none.up", "--out", tmp_path / "x") == 2
