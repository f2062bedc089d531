"""The command line as a user meets it: what it prints where, and with which exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import inprofile
from forked import SHORT, inprofile_
from inprofile.cli import app
from inprofile.cli.commands import COMMANDS
from inprofile.cli.common import Refused, seeds_of
from inprofile.experiment.mechanisms import keys
from inprofile.experiment.scenario import from_bytes
from wrong_files import WrongFile, wrong_files


def test_the_version_is_the_package_s(tmp_path: Path) -> None:
    assert inprofile_("--version", cwd=tmp_path)[0] == f"inprofile {inprofile.__version__}\n"


def test_every_command_has_help_and_json(tmp_path: Path) -> None:
    overview = inprofile_("--help", cwd=tmp_path)[0]
    assert re.findall(r"^(\w+):$", overview, re.MULTILINE) == [
        "Options",
        *dict.fromkeys(one.group for one in COMMANDS.values()),
    ]
    assert len({one.group for one in COMMANDS.values()}) == 5
    for name, listed in COMMANDS.items():
        assert f"\n  {name} " in overview
        loaded = listed.load(name)
        for one in getattr(loaded, "commands", {name: loaded}).values():
            assert any("--json" in parameter.opts for parameter in one.params), name
            assert one.help


HEAVY = ["altair", "pyarrow", "scipy", "numpy", "jinja2", "vl_convert", "pydantic"]


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    """Of `-h` and of what the shell asks: each of these takes longer than the rest of the start."""
    heavy = [*HEAVY, "rich", "importlib.metadata"]
    code = f"""
import os, sys
from inprofile.cli import main
for name in {["", *COMMANDS]!r}:
    child = os.fork()
    if not child:
        try:
            main([*name.split(), "-h"])
        finally:
            print(f"loaded by '{{name}}':", [m for m in {heavy!r} if m in sys.modules], flush=True)
        sys.exit("it returned")
    assert os.waitpid(child, 0)[1] == 0, name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = re.findall(r"^loaded by '(.*)': (.*)$", done.stdout, re.MULTILINE)
    assert loaded == [(name, "[]") for name in ("", *COMMANDS)]


def test_a_run_holds_no_memory_for_what_only_its_answer_needs(starter: Path) -> None:
    code = f"""
import sys
from inprofile import _internal
from inprofile.cli import main
_internal.run = lambda *_: sys.exit(str([m for m in {HEAVY!r} if m in sys.modules]))
main(["run", "e.toml", "--json"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=starter)
    assert done.stderr == "[]\n"


# new


def test_the_starter_runs_as_it_is_and_is_never_overwritten(tmp_path: Path) -> None:
    out, err = inprofile_("new", "mine", cwd=tmp_path)
    assert "inprofile run mine.toml" in out
    assert err == ""
    text = (tmp_path / "mine.toml").read_text()
    assert "inprofile run mine.toml" in text
    assert inprofile.load(tmp_path / "mine.toml").check().warnings == []
    assert "mine.toml already exists" in inprofile_("new", "mine", cwd=tmp_path, code=2)[1]
    assert "mine.toml already exists" in inprofile_("new", "mine.toml", cwd=tmp_path, code=2)[1]
    assert (tmp_path / "mine.toml").read_text() == text


def test_the_link_to_plan_comes_with_the_package(tmp_path: Path) -> None:
    out, _ = inprofile_("new", "link", "--plan", cwd=tmp_path)
    assert "inprofile plan link.toml" in out
    assert "[plan]" in (tmp_path / "link.toml").read_text()
    assert inprofile.load(tmp_path / "link.toml").check().warnings == []


def test_new_says_as_json_what_it_wrote(tmp_path: Path) -> None:
    assert json.loads(inprofile_("new", "a", "--json", cwd=tmp_path)[0]) == {"format": 1, "file": "a.toml"}


# run


def test_run_prints_metrics_flows_and_queues(starter: Path) -> None:
    out, err = inprofile_("run", "e.toml", *SHORT, "--seeds", "3", cwd=starter)
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "Four flows with a contract share a link: seeds 1–3"
    assert re.search(r"^fi +0\.\d+ (± 0\.\d+|\[0\.\d+, 0\.\d+\]) +3 +receivers +payload$", out, re.MULTILINE)
    assert re.search(r"^utilisation +[01]\.\d+ (± \S+|\[\S+, \S+\]) +3 +bottleneck +wire$", out, re.MULTILINE)
    assert re.search(r"^assured\.3 +800 kbit/s +\S+ ± \S+ [kM]bit/s", out, re.MULTILINE)
    assert max(map(len, lines)) <= 120
    # Counts of the whole run stand beside counts of the window: each table says which it has.
    before = {
        table: lines[lines.index(row) - 1]
        for row in lines
        for table in ("metric", "flow", "queue")
        if row.startswith(f"{table} ")
    }
    assert before["metric"].startswith("Measured window: ")
    assert "within the window" in before["queue"]
    assert "dropped and RTOs over the whole run" in before["flow"]


def test_one_seed_has_no_interval(starter: Path) -> None:
    found = json.loads(inprofile_("run", "e.toml", *SHORT, "--seeds", "7..7", "--json", cwd=starter)[0])
    assert found["metrics"]["fi"]["ci95"] == [None, None]
    out = inprofile_("run", "e.toml", *SHORT, "--seeds", "7..7", cwd=starter)[0]
    assert re.search(r"^fi +0\.\d+ +1 ", out, re.MULTILINE)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_one_thread_and_two_write_the_same_bytes(tmp_path: Path, starter: Path) -> None:
    for jobs in ("1", "2"):
        arguments = [
            str(starter / "e.toml"),
            *SHORT,
            "--seeds",
            "5",
            "--trace",
            "--jobs",
            jobs,
            "--out",
            jobs,
        ]
        inprofile_("run", *arguments, cwd=tmp_path)
    one, two = files(tmp_path / "1"), files(tmp_path / "2")
    assert len(one) == 12
    assert one == two
    assert inprofile.read(tmp_path / "1").verdicts.num_rows > 1000


def test_a_run_in_parts_writes_the_same_bytes_and_says_so(tmp_path: Path, starter: Path) -> None:
    said = []
    for threads in "12":
        arguments = [str(starter / "e.toml"), *SHORT, "--seeds", "1", "-j2", "--threads-per-run", threads]
        said.append(inprofile_("run", *arguments, "--out", threads, cwd=tmp_path)[1])
    assert files(tmp_path / "1") == files(tmp_path / "2")
    out, _ = inprofile_("check", str(starter / "e.toml"), "--threads-per-run", "2", cwd=tmp_path)
    (sentence,) = re.findall("Each run in .*", out)
    assert sentence.startswith(("Each run in 2 parts: lookahead ", "Each run in one piece: waiting and what"))
    assert "Each run in" in said[1]
    assert "Each run in" not in said[0]


def test_out_replaces_an_earlier_result_whole(starter: Path, tmp_path: Path) -> None:
    for seeds, place in (("3", "r"), ("2", "r"), ("2", "fresh")):
        inprofile_("run", str(starter / "e.toml"), *SHORT, "--seeds", seeds, "--out", place, cwd=tmp_path)
    assert files(tmp_path / "r") == files(tmp_path / "fresh")


def test_out_refuses_a_folder_with_other_things_before_it_runs(starter: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("mine")
    err = inprofile_("run", str(starter / "e.toml"), "--out", "r", cwd=tmp_path, code=2)[1]
    assert "thesis.tex" in err
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["thesis.tex"]


def test_the_result_written_is_the_result_printed(starter: Path) -> None:
    shown = json.loads(inprofile_("run", "e.toml", *SHORT, "--seeds", "3", "--json", cwd=starter)[0])
    written = inprofile.read(starter / "r")
    assert shown["metrics"]["fi"]["values"] == list(written.summary()["fi"].values.values())
    assert shown["scenario"]["digest"] == written.provenance.digest


# bad input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["run", "."], "is a folder"),
        (["run", "e.toml", "--set", "duration"], "--set duration: write KEY=VALUE"),
        (["run", "e.toml", "--set", "=3"], "--set =3: write KEY=VALUE"),
        (["run", "e.toml", "--set", "links.nolink.rate=1 Mbit/s"], "nolink"),
        (["run", "e.toml", "--set", "links.bottleneck.rate=1 Mbits"], "Mbit/s"),
        (["run", "e.toml", "--seeds", "0"], "asks for no run"),
        (["run", "e.toml", "--seeds", "-3"], "asks for no run"),
        (["run", "e.toml", "--seeds", "many"], "neither a count nor a range"),
        (["run", "e.toml", "--seeds", "9..5"], "write 5..9"),
        (["run", "e.toml", "--jobs", "0"], "--jobs"),
        (["run", "e.toml", "--sedes", "3"], "--seeds"),
        (["run"], "FILE"),
        (["check", "nowhere.toml"], "No such file"),
        (["list", "rioo"], 'no mechanism or control is called "rioo"'),
        (["explain", "e.toml", "--flow", "9"], "there are: assured.0"),
        (["explain", "r", "--flow", "tcp.0"], "there are: assured.0"),
        (["explain", "r", "--flow", "0", "--set", "duration=1 s"], "is a result"),
        (["explain", "nowhere", "--flow", "0"], "No such file"),
        (["frobnicate"], "frobnicate"),
        (["new", "no/such/folder/x"], "No such file"),
        (["reproduce", "no-such-paper"], "no-such-paper"),
    ],
)
def test_bad_input_is_refused_with_a_reason(starter: Path, arguments: list[str], says: str) -> None:
    out, err = inprofile_(*arguments, cwd=starter, code=2)
    assert out == ""
    assert says in re.sub(r"[│╭╰╮╯─]|\s+", " ", err).replace("  ", " ") or says in err


def test_bad_input_is_an_object_too(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(inprofile.STARTER.replace('rate = "3 Mbit/s"', 'rtae = "3 Mbit/s"'))
    out, err = inprofile_("run", "bad.toml", "--json", cwd=tmp_path, code=2)
    found = json.loads(out)
    assert found["error"] in err
    assert any("rtae" in p["path"] + p["problem"] and p["line"] for p in found["problems"])


def test_text_that_is_not_utf_8_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes("title = 'x'\n# é caf".encode() + b"\xe9\n")
    err = inprofile_("check", "latin.toml", cwd=tmp_path, code=2)[1]
    assert "latin.toml:2:8" in err
    assert "UTF-8" in err


def test_interrupted_it_writes_nothing_and_says_so(starter: Path, tmp_path: Path) -> None:
    long = ["--set", "duration=390000 s", "--set", 'measure={ from = "1 s", to = "390000 s" }']
    asked = [sys.executable, "-m", "inprofile", "run", str(starter / "e.toml"), *long, "--out", "r"]
    running = subprocess.Popen(asked, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stderr
    foretold = running.stderr.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert out == ""
    assert re.fullmatch(r"It takes about .* on \d+ cores?\.\n", foretold)
    assert err == "Interrupted: nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


WRONG = wrong_files()


def test_there_are_wrong_files_to_refuse() -> None:
    assert len(WRONG) >= 110


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_file_is_refused_with_its_message(
    wrong: WrongFile, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{wrong.name}.toml").write_bytes(wrong.content)
    done = CliRunner().invoke(app, [command, f"{wrong.name}.toml"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == wrong.said


# check


def test_check_draws_the_topology_and_every_value(starter: Path) -> None:
    out, err = inprofile_("check", "e.toml", cwd=starter)
    assert err == ""
    assert re.search(r"│ assured × 4 │  marked by token_bucket", out)
    assert re.search(r"│  bottleneck: 3 Mbit/s, 10 ms, rio 60 packets", out)
    assert re.search(r"│ server +│  receives assured", out)
    # 60 packets of 1500 B are 90,000 B, and at 3 Mbit/s 240 ms.
    assert re.search(r"limit +60 +90000 +240$", out, re.MULTILINE)
    assert re.search(r"in\.min_th +30 +45000 +120$", out, re.MULTILINE)
    assert "No warnings." in out


def test_check_warns_of_what_is_allowed_but_odd(starter: Path) -> None:
    sold = ["--set", 'flows.assured.contract="2 Mbit/s"']
    out = inprofile_("check", "e.toml", *sold, cwd=starter)[0]
    assert "1 warning" in out
    assert "8 Mbit/s, more than the 3 Mbit/s" in out
    found = json.loads(inprofile_("check", "e.toml", *sold, "--json", cwd=starter)[0])
    assert [w["severity"] for w in found["warnings"]] == ["warning"]
    assert found["effective"]["title"] == "Four flows with a contract share a link"


def test_a_limit_rule_that_nobody_wrote_says_where_it_is_from(starter: Path) -> None:
    queue = 'links.bottleneck.queue={ aqm = "drop_tail", limit = "%s packets"%s }'
    ns2 = ["--set", 'tcp.profile="ns2"']
    out = inprofile_("check", "e.toml", *ns2, "--set", queue % (9, ""), cwd=starter)[0]
    assert re.search(r"bottleneck +limit .*\n +limit_rule = ns2, as tcp\.profile is\n", out)
    written = queue % (9, ', limit_rule = "ns2"')
    out = inprofile_("check", "e.toml", *ns2, "--set", written, cwd=starter)[0]
    assert re.search(r"bottleneck +limit .*\n +limit_rule = ns2 *\n", out)
    err = inprofile_("check", "e.toml", *ns2, "--set", queue % (1, ""), cwd=starter, code=2)[1]
    assert 'under [tcp] profile = "ns2" a drop-tail queue of n packets holds n - 1' in err
    assert 'limit_rule = "waiting"' in err
    listed = inprofile_("list", "drop_tail", cwd=starter)[0]
    assert '[tcp] profile = "ns2"' in " ".join(listed.split())


# list, schema


# explain


# seeds


@pytest.mark.parametrize(
    ("said", "meant"), [("1", 1), ("20", 20), ("5..9", range(5, 10)), ("0..0", range(1))]
)
def test_seeds(said: str, meant: object) -> None:
    assert seeds_of(said) == meant


@pytest.mark.parametrize("said", ["", "..", "1..", "..3", "1.5", "a..b", "-1", "-2..3", "1..2..3"])
def test_seeds_that_are_none(said: str) -> None:
    with pytest.raises(Refused):
        seeds_of(said)


def test_an_experiment_may_come_from_standard_input(tmp_path: Path) -> None:
    def piped(text: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        asked = [sys.executable, "-m", "inprofile", *arguments]
        return subprocess.run(asked, input=text, cwd=tmp_path, capture_output=True, check=False)

    good = inprofile.STARTER.encode()
    done = piped(good, "check", "-", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["effective"]["title"] == inprofile.parse(inprofile.STARTER).title
    wrong = piped(good.replace(b"duration", b"durations"), "run", "-")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr.startswith(b"standard input:")


def completed(words: str, cwd: Path) -> list[str]:
    """What bash is told for the last of these words."""
    asked = {
        "_INPROFILE_COMPLETE": "complete_bash",
        "COMP_WORDS": f"inprofile {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    done = subprocess.run(
        [sys.executable, "-m", "inprofile"],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **asked},
    )
    return done.stdout.split()


def test_the_shell_completes_commands(tmp_path: Path) -> None:
    assert completed("new", tmp_path) == ["new", "new-paper", "new-mechanism"]
    assert completed("schema --j", tmp_path) == ["--json"]


def test_the_shell_completes_keys_of_the_file(starter: Path) -> None:
    assert completed("run e.toml --set links.b", starter)[0].startswith("links.bottleneck.")
    assert completed("run e.toml --seeds 2 --set links.bottleneck.queue.in.max_t", starter) == [
        "links.bottleneck.queue.in.max_th="
    ]
    assert completed("sweep e.toml --axis tcp.profile=", starter) == [
        "tcp.profile=rfc",
        "tcp.profile=linux",
        "tcp.profile=ns2",
    ]
    # Of a file that cannot be read the lists' tables go by their numbers.
    assert completed("run nothing.toml --set links.0.q", starter) == [
        "links.0.queue.aqm=",
        "links.0.queue.scheduler=",
    ]


def test_keys_that_are_completed_are_taken(starter: Path) -> None:
    """Each that has a value in the file is taken with that value."""
    text = (starter / "e.toml").read_text("utf-8")
    tree = tomllib.loads(text)
    taken = []
    for key in keys(tree):
        value: Any = tree
        for part in key.name.split("."):
            if isinstance(value, list):
                value = {table.get("name", str(n)): table for n, table in enumerate(value)}[part]
            else:
                value = value.get(part, {})
        if value != {}:
            written = value if isinstance(value, str) else json.dumps(value)
            from_bytes(text.encode(), "e", [(key.name, written)])
            taken.append(key.name)
    assert {"duration", "links.bottleneck.rate", "links.bottleneck.queue.aqm", "tcp.congestion"} <= {*taken}
