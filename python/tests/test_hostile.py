"""Input that means harm, or that nobody thought about: refused with a sentence, at once, in little memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import inprofile
from inprofile import STARTER, SeedsError, UnfitFile, load, parse, read
from refusals import assert_plain, command, refused

MUCH = {
    "wide.toml": "1,",
    "nested.toml": "[",
    "keys.toml": "\nabc = 1",
    "groups.toml": "\n[[flows]]",
    "tables.toml": "{a=1},",
    "words.toml": "a ",
    "parts.toml": "\na.b.c.d.e.f.g.h.i.j = 1",
}
"""Files of 15 MiB, by what they repeat: each would take from 300 MiB to several GiB."""


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that are long: written once, as there are a hundred MiB of them."""
    place = tmp_path_factory.mktemp("large")
    (place / "deep.toml").write_text("a = " + "[" * 100_000)
    for name, part in MUCH.items():
        (place / name).write_text("a = [" + part * ((15 << 20) // len(part)))
    (place / "dotted.toml").write_text(".".join(["a"] * 100_000) + " = 1")
    groups = "".join(
        f'[[flows]]\nname = "g{i}"\ncount = 1000000\nfrom = "H*"\nto = "server"\nrtt = "40..80 ms"\n'
        'join = { node = "edge", rate = "100 Mbit/s" }\n'
        for i in range(300)
    )
    (place / "millions.toml").write_text(STARTER.split("[[flows]]")[0] + groups)
    return place


@pytest.fixture
def folder(tmp_path: Path, large: Path) -> Path:
    """A folder with an experiment, and with much else that is none."""
    (tmp_path / "good.toml").write_text(STARTER.replace('"60 s"', '"3 s"').replace('"20 s"', '"1 s"'))
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(20 << 30)
    (tmp_path / "latin1.toml").write_bytes(STARTER.replace("Four", "F\xfcnf").encode("latin-1", "replace"))
    (tmp_path / "nul.toml").write_bytes(b"\0" * 1000)
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for path in large.iterdir():
        (tmp_path / path.name).hardlink_to(path)
    fast = STARTER.split("[[flows]]")[0].replace('"3 Mbit/s"', '"1000 Gbit/s"')
    (tmp_path / "fast.toml").write_text(
        fast + '[[flows]]\nname = "u"\nfrom = "edge"\nto = "server"\n'
        'traffic = { kind = "cbr", rate = "1000 Gbit/s", packet = "29 B" }\n'
    )
    return tmp_path


UNFIT = {
    "zero.toml": "is a device: name a regular file",
    "fifo.toml": "is a pipe: name a regular file",
    "folder.toml": "is a folder: name a regular file",
    "huge.toml": "bytes, and 16,777,216 are read at most",
    "latin1.toml": "the file is not UTF-8 text save it as UTF-8",
    "nul.toml": "invalid TOML",
    "deep.toml": "invalid TOML",
    "dotted.toml": "invalid TOML",
    "loop.toml": "Too many levels of symbolic links",
    "gone.toml": "No such file or directory",
    **dict.fromkeys(MUCH, "MiB of memory; the maximum is 150 MiB"),
    "millions.toml": "300000000 flows in total; the maximum is 1000000 write smaller counts",
}
COMMANDS = {
    "run": ("run", "{}"),
    "check": ("check", "{}"),
    "live": ("live", "{}"),
    "validate": ("validate", "{}"),
    "compare": ("compare", "{}"),
    "explain": ("explain", "{}", "--flow", "0"),
}


# Every kind of file with one command; those without an end, and too many flows, with every command.
FILES = [("run", name) for name in UNFIT]
FILES += [
    (v, n) for v in COMMANDS if v != "run" for n in ("zero.toml", "fifo.toml", "folder.toml", "millions.toml")
]


@pytest.mark.parametrize(("verb", "name"), FILES)
def test_a_file_that_is_none(verb: str, name: str, folder: Path) -> None:
    arguments = [part.format(name) for part in COMMANDS[verb]]
    said = UNFIT[name]
    if verb == "explain" and name == "folder.toml":
        said = "folder.toml holds no results: inprofile.json is missing"
    refused(command(*arguments, folder=folder), said)


HUGE = "9" * 400
NUMBERS: dict[tuple[str, ...], str] = {
    ("run", "good.toml", "--seeds", "1..100000000"): "asks for 100,000,000 runs: write at most 100,000",
    ("run", "good.toml", "--seeds", "1..1000000000000"): "asks for 1,000,000,000,000 runs",
    ("run", "good.toml", "--seeds", "18446744073709551615"): "runs: write at most 100,000",
    ("run", "good.toml", "--seeds", "1..18446744073709551616"): "goes beyond the greatest seed",
    ("run", "good.toml", "--seeds", HUGE): "write at most 100,000",
    ("run", "good.toml", "--seeds", "9" * 5000): "write at most 100,000",
    ("run", "good.toml", "--seeds", ""): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "5.."): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "..5"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "\u0663"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "1_0"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds=-3..2"): "asks for no run",
    ("run", "good.toml", "--seeds", "nan"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "inf"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds", "1e3"): "is neither a count nor a range",
    ("run", "good.toml", "--seeds=-5"): "asks for no run",
    ("run", "good.toml", "--seeds", "0"): "asks for no run",
    ("run", "good.toml", "--jobs", "0"): "Invalid value for '--jobs'",
    ("run", "good.toml", "--jobs", "99999999"): "Invalid value for '--jobs'",
    ("run", "good.toml", "--jobs", HUGE): "Invalid value for '--jobs'",
    ("run", "good.toml", "--jobs", "nan"): "Invalid value for '--jobs'",
    ("run", "good.toml", "--jobs", "9" * 5000): "Invalid value for '--jobs'",
    ("run", "good.toml", "--set", "duration=1e300 s"): "is not a number of at most 24 digits",
    (
        "run",
        "good.toml",
        "--set",
        "links.bottleneck.rate=1e-300 bit/s",
    ): "is not a number of at most 24 digits",
    ("run", "good.toml", "--set", "links.bottleneck.rate=0 bit/s"): "a rate must be above 0",
    ("run", "good.toml", "--set", "links.bottleneck.delay=-1 ms"): "a time can't be negative",
    ("run", "9" * 5000): "File name too long",
    ("run", "good.toml", "--out", "/dev/null/x"): "is a file, not a folder",
    ("atlas", "--budget", "0"): "visits no point",
    ("atlas", "--budget", "1000000000"): "is more than 4096 points",
    ("atlas", "--budget", HUGE): "is more than 4096 points",
    ("atlas", "--out", "/dev/null/x"): "is a file, not a folder",
    ("reproduce", "--out", "/dev/null/x"): "is a file, not a folder",
    ("compare", "--out", "/dev/null/x"): "is a file, not a folder",
    ("run", "good.toml", "--jobs", "[/red]\x1b[2J"): "Invalid value for '--jobs'",
    ("run", "good.toml", "--set", "duration=1e400"): "duration",
    ("run", "good.toml", "--set", "seeds=-1"): "the number is out of bounds",
    ("run", "good.toml", "--set", "seeds=nan"): "a whole number is expected here",
    ("run", "good.toml", "--set", f"seeds={HUGE}"): "seeds",
    ("run", "good.toml", "--set", "flows.assured.count=1000000000000"): "the number is out of bounds",
    ("run", "good.toml", "--set", f"flows.assured.rtt={HUGE} ms"): "flows.assured.rtt",
    ("run", "good.toml", "--set", "x=" + "[" * 100_000): "x",
    ("run", "good.toml", "--set", "\x1b[31m=\x1b[2J"): "unknown key known here: extends, title",
    ("live", "good.toml", "--seeds", "1..1000000000000"): "asks for 1,000,000,000,000 runs",
    ("live", "good.toml", "--seeds", HUGE): "write at most 100,000",
    ("validate", "good.toml", "--seed", "99999999999999999999"): "Invalid value for '--seed'",
    ("validate", "good.toml", "--seed", "-1"): "Invalid value for '--seed'",
    ("validate", "good.toml", "--seeds", "1000000000000"): "Invalid value for '--seeds'",
    ("validate", "good.toml", "--timeout", "inf"): "--timeout inf: give a number of seconds from 1 to",
    ("validate", "good.toml", "--timeout", "nan"): "--timeout nan: give a number of seconds from 1 to",
    ("validate", "good.toml", "--timeout", "-1"): "--timeout -1: give a number of seconds from 1 to",
    ("validate", "good.toml", "--timeout", "1e300"): "--timeout 1e+300: give a number of seconds",
    ("validate", "good.toml", "--patience", "60"): "--patience is called --timeout now: write --timeout 60",
    ("compare", "good.toml", "--jobs", "99999999999999999999"): "Invalid value for '--jobs'",
    ("compare", "good.toml", "--schemes", "\x1b[2J"): r"\u001b[2J",
    ("reproduce", "ard", "--jobs", "99999999999999999999"): "Invalid value for '--jobs'",
    ("reproduce", "\x1b[2J"): r"\u001b[2J",
    ("explain", "good.toml", "--flow", "-1"): "-1",
    ("explain", "good.toml", "--flow", HUGE): "flow",
    ("explain", "good.toml", "--flow", "9" * 5000): "no flow or group is called",
    ("explain", "good.toml", "--flow", "\u00b2"): "no flow or group is called",
    ("explain", "good.toml", "--flow", "nan"): "nan",
    ("explain", "good.toml", "--flow", "\x1b[2J"): r"\u001b[2J",
    ("explain", "good.toml", "--flow", "0", "--jobs", HUGE): "Invalid value for '--jobs'",
    ("run", "\x1b[2J.toml"): r"\u001b[2J.toml: No such file",
    ("run", "fast.toml"): "are run only with --yes",
    ("run", "fast.toml", "--json"): "are run only with --yes",
    ("explain", "fast.toml", "--flow", "0"): "are run only with --yes",
    ("compare", "good.toml", "--set"): "requires an argument",
    ("compare", "good.toml", "--set", "links"): "write KEY=VALUE",
}


@pytest.mark.parametrize("arguments", NUMBERS, ids=lambda a: ascii(" ".join(a))[1:60])
def test_a_number_or_a_text_that_cannot_be_meant(arguments: tuple[str, ...], folder: Path) -> None:
    refused(command(*arguments, folder=folder), NUMBERS[arguments])


def test_a_refusal_as_json_names_the_remedy(folder: Path) -> None:
    for arguments in (
        ["run", "fast.toml"],
        ["run", "zero.toml"],
        ["run", "good.toml", "--seeds", "inf"],
        ["run", "good.toml", "--jobs", "0"],
        ["run", "good.toml", "--sedes", "3"],
        ["validate", "good.toml", "--seed", "99999999999999999999"],
        ["run"],
    ):
        ended = command(*arguments, "--json", folder=folder)
        assert json.loads(ended.out)["error"].strip() == ended.err.strip()


def test_packets_to_expect_are_told_before_a_run(folder: Path) -> None:
    """About what a run then sends; and all that is shipped runs without being asked about."""
    checked = command("check", "good.toml", "--json", folder=folder)
    expected = json.loads(checked.out)["expected"]
    assert expected["packets"] == expected["packets_a_run"] * expected["runs"]
    ran = command("run", "good.toml", "--seeds", "2", "--json", folder=folder)
    found = json.loads(ran.out)
    assert found["expected_packets"] == 2 * expected["packets_a_run"]
    sent = sum(flow["sent"]["mean"] for flow in found["flows"])
    assert 0.5 < expected["packets_a_run"] / sent < 2
    text = command("check", "fast.toml", folder=folder).out
    assert "Expected: about 2.6e+11 packets per run" in text.replace("260,000,000,000", "2.6e+11")
    assert "run needs --yes" in text


@pytest.fixture
def result(folder: Path) -> Path:
    """A folder of results."""
    place = folder / "result"
    load(folder / "good.toml").run(seeds=1).write(place)
    return place


def _zero(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(20 << 30)


def _deep(path: Path) -> None:
    path.write_text("[" * 1_000_000)


def _noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 50)


SPOILT: list[tuple[str, Callable[[Path], None], str]] = [
    ("inprofile.json", _zero, "is a device"),
    ("inprofile.json", _fifo, "is a pipe"),
    ("inprofile.json", _folder, "is a folder"),
    ("inprofile.json", _huge, "are read at most"),
    ("inprofile.json", _deep, "cannot be read"),
    ("inprofile.json", _noise, "cannot be read"),
    ("inprofile.json", Path.unlink, "is missing"),
    ("flows.parquet", _zero, "is a device"),
    ("flows.parquet", _fifo, "is a pipe"),
    ("flows.parquet", _folder, "is a folder"),
    ("flows.parquet", _noise, "cannot be read"),
    ("flows.parquet", Path.unlink, "is missing"),
]


@pytest.mark.parametrize(("name", "spoil", "said"), SPOILT, ids=[f"{n}{s.__name__}" for n, s, _ in SPOILT])
def test_a_folder_of_results_that_is_none(
    name: str, spoil: Callable[[Path], None], said: str, folder: Path, result: Path
) -> None:
    spoil(result / name)
    refused(command("explain", "result", "--flow", "0", folder=folder), said)
    with pytest.raises((OSError, inprofile.ResultError), match=said):
        read(result)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (10**12, "asks for more than 100,000 runs"),
        (10**400, "a number of 1329 bits"),
        (0, "asks for no run"),
        (-3, "asks for no run"),
        (range(1, 10**30), "asks for more than"),
        (count(), "asks for more than"),
        ([1 << 64], "is no seed"),
        ([10**5000], "is no seed"),
        ([-1], "is no seed"),
        ([float("inf")], "no list of whole numbers"),
        (float("nan"), "no number of seeds"),
        ("12", "is a text"),
        ([], "asks for no run"),
        ([3, 3], "twice"),
    ],
)
def test_seeds_through_python(seeds: object, said: str) -> None:
    scenario = parse(STARTER)
    for run in (scenario.run, scenario.live, scenario.expected_packets):
        with pytest.raises(SeedsError, match=said):
            run(seeds)  # type: ignore[operator]


@pytest.mark.parametrize("jobs", [0, -1, 10**9, 10**400])
def test_threads_through_python(jobs: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 1024"):
        parse(STARTER).run(seeds=1, jobs=jobs)


def test_files_through_python(folder: Path) -> None:
    for name in ("zero.toml", "fifo.toml", "folder.toml", "huge.toml"):
        with pytest.raises(UnfitFile, match="name"):
            load(folder / name)


ACTING = ["\x1b[2J", "\x07", "\r", "\x7f", "\x9b31m", "\u202e"]


@pytest.mark.parametrize("text", ACTING, ids=ascii)
def test_a_title_that_acts_on_a_terminal_is_refused_and_never_shown(text: str, folder: Path) -> None:
    written = json.dumps(text).replace("\x7f", "\\u007f")[1:-1]
    every = text == ACTING[0]
    for title in (text, written):
        (folder / "title.toml").write_text(STARTER.replace("Four flows", f"Four {title} flows"), newline="")
        some = ["run"] if title == text else ["check", "--json"]
        for arguments in (["run"], ["check"], ["run", "--json"], ["check", "--json"]) if every else (some,):
            ended = command(*arguments, "title.toml", folder=folder)
            refused(ended, "title.toml:7:9: error" if title == written else "title.toml:7:")
            if "--json" in arguments:
                assert json.loads(ended.out)["problems"]
    named = STARTER.replace('name = "assured"', f'name = "a{written}"').replace('"assured"', '"tcp"')
    (folder / "name.toml").write_text(named)
    refused(command("check", "name.toml", folder=folder), "not a valid name")


def test_a_stored_title_that_acts_on_a_terminal(folder: Path, result: Path) -> None:
    """Results may come from anywhere: what they say is shown, and does nothing."""
    import pyarrow.parquet as pq

    manifest = json.loads((result / "inprofile.json").read_text("utf-8"))
    manifest["effective"]["flows"][0]["name"] = "\x1b[2J"
    manifest["title"] = "\x1b]0;x\x07"
    manifest["format"] = 2  # whose tables hold all of it
    note = json.dumps(manifest, ensure_ascii=False, sort_keys=True)
    (result / "inprofile.json").write_text(note, "utf-8")
    for path in result.glob("*.parquet"):
        pq.write_table(pq.read_table(path).replace_schema_metadata({b"inprofile": note}), path)
    ended = command("explain", "result", "--flow", "0", folder=folder)
    assert ended.code == 0
    assert_plain(ended.out + ended.err)
    assert "\x1b" not in repr(read(result))
    assert "\x1b" not in read(result)._repr_html_()


def _peak(folder: Path, flows: int, *more: str) -> int:
    """Resident bytes at the most of a run with so many flows."""
    text = STARTER.split("[[monitors]]")[0].replace("count = 4", f"count = {flows}")
    text = text.replace('"60 s"', '"0.2 s"').replace('"20 s"', '"0.1 s"').replace("uniform 0..1 s", "0.15 s")
    contracts = ", ".join(["'1 kbit/s'", "'2 kbit/s'"] * (flows // 2))
    text = text.replace(text[text.index("contract = [") :].split("\n")[0], f"contract = [{contracts}]")
    (folder / "flows.toml").write_text(text)
    ended = command(
        "run", "flows.toml", "--seeds", "1", *more, folder=folder, addresses=16 << 30, seconds=240
    )
    assert ended.code == 0, ended.err
    assert len(ended.out) > 100
    return ended.peak


@pytest.mark.parametrize(
    ("more", "many"),
    [((), 100_000), (("--json",), 20_000), (("--out", "kept"), 100_000)],
    ids=["text", "json", "out"],
)
def test_a_flow_takes_2_kib(more: tuple[str, ...], many: int, folder: Path) -> None:
    """From reading its contract to writing its row, beyond what a run of few flows takes."""
    few = 100
    each = (_peak(folder, many, *more) - _peak(folder, few, *more)) / (many - few)
    assert each <= 2 * 1024, f"{each:.0f} B a flow"


@pytest.fixture(autouse=True)
def nothing_left_behind(folder: Path) -> Iterator[None]:
    """No part of a result is left by what was refused."""
    yield
    assert not list(folder.glob(".*.part"))


def test_no_shipped_experiment_asks_for_yes() -> None:
    """Everything that is shipped stays below the number of packets from which `--yes` is asked for."""
    from inprofile.cli.execution import ASK_FROM

    root = Path(inprofile.__file__).parent
    tables = {
        "about.toml",
        "advice.toml",
        "network.toml",
        "paper.toml",
        "schemes.toml",
        "senders.toml",
        "contestants.toml",
        "suite.toml",
        "switch.toml",
        "kernel.toml",
        "published.toml",
    }
    files = [f for f in sorted(root.rglob("*.toml")) if f.name not in tables]
    assert len(files) > 10
    for file in files:
        assert load(file).expected_packets() < ASK_FROM, file
