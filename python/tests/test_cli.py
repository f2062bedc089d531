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
from forked import command
from inprofile.cli import app
from inprofile.cli.commands import COMMANDS
from inprofile.cli.common import Refused, seeds_of
from inprofile.experiment.mechanisms import keys
from inprofile.experiment.scenario import from_bytes
from wrong_files import WrongFile, wrong_files

SHORT = ["--set", "duration=20 s", "--set", 'measure={ from = "5 s", to = "20 s" }']


def inprofile_(*arguments: str, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of one command; its exit code has to be `code`."""
    done = command(*arguments, cwd=cwd)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the starter, `e.toml`, and its result over three seeds, `r`."""
    place = tmp_path_factory.mktemp("cli")
    inprofile_("new", "e", cwd=place)
    inprofile_("run", "e.toml", *SHORT, "--seeds", "3", "--out", "r", cwd=place)
    return place


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


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    """Of `-h` and of what the shell asks: each of these takes longer than the rest of the start."""
    heavy = (
        "altair",
        "pyarrow",
        "scipy",
        "numpy",
        "jinja2",
        "vl_convert",
        "pydantic",
        "rich",
        "importlib.metadata",
    )
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


def test_run_prints_metrics_flows_and_queues(folder: Path) -> None:
    out, err = inprofile_("run", "e.toml", *SHORT, "--seeds", "3", cwd=folder)
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


def test_run_as_json_has_what_programs_build_on(folder: Path) -> None:
    out, err = inprofile_("run", "e.toml", *SHORT, "--seeds", "2..4", "--json", cwd=folder)
    assert err == ""
    found = json.loads(out)
    assert set(found) == {
        "format", "scenario", "seeds", "metrics", "delays", "flow_times", "groups", "flows", "queues",
        "markers", "conservation", "provenance", "warnings", "expected_packets", "contracts",
    }  # fmt: skip
    assert found["seeds"] == [2, 3, 4]
    assert found["conservation"] is True
    assert {
        "fi", "goodput", "throughput", "lambda_in", "lambda_out", "utilisation", "queue_mean", "delay_mean",
        "loss_in", "loss_out", "drops", "edge_drops", "timeouts", "retransmissions",
    } <= set(found["metrics"])  # fmt: skip
    for metric in found["metrics"].values():
        assert {"unit", "mean", "ci95", "n", "values", "point", "window", "header"} <= set(metric)
        assert metric["ci95"][0] <= metric["mean"] <= metric["ci95"][1]
        assert metric["n"] == len(metric["values"]) == 3
        assert metric["window"] == {"from": "5 s", "to": "20 s"}
    assert [flow["flow"] for flow in found["flows"]] == [f"assured.{i}" for i in range(4)]
    assert found["flows"][1]["contract"] == 400e3
    assert found["flows"][1]["contract_kept"]["name"] == "assured.1"
    assert found["contracts"]["experiment"]["runs_all_kept"]["of"] == 3
    assert found["contracts"]["best_effort"] is None
    assert [g["group"] for g in found["groups"]] == ["assured"]
    assert found["warnings"] == []
    assert found["provenance"]["seeds"] == [2, 3, 4]
    assert found["provenance"]["version"] == inprofile.__version__


def test_one_seed_has_no_interval(folder: Path) -> None:
    found = json.loads(inprofile_("run", "e.toml", *SHORT, "--seeds", "7..7", "--json", cwd=folder)[0])
    assert found["metrics"]["fi"]["ci95"] == [None, None]
    out = inprofile_("run", "e.toml", *SHORT, "--seeds", "7..7", cwd=folder)[0]
    assert re.search(r"^fi +0\.\d+ +1 ", out, re.MULTILINE)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_one_thread_and_two_write_the_same_bytes(tmp_path: Path, folder: Path) -> None:
    for jobs in ("1", "2"):
        arguments = [str(folder / "e.toml"), *SHORT, "--seeds", "5", "--trace", "--jobs", jobs, "--out", jobs]
        inprofile_("run", *arguments, cwd=tmp_path)
    one, two = files(tmp_path / "1"), files(tmp_path / "2")
    assert len(one) == 12
    assert one == two
    assert inprofile.read(tmp_path / "1").verdicts.num_rows > 1000


def test_a_run_in_parts_writes_the_same_bytes_and_says_so(tmp_path: Path, folder: Path) -> None:
    said = []
    for threads in "12":
        arguments = [str(folder / "e.toml"), *SHORT, "--seeds", "1", "-j2", "--threads-per-run", threads]
        said.append(inprofile_("run", *arguments, "--out", threads, cwd=tmp_path)[1])
    assert files(tmp_path / "1") == files(tmp_path / "2")
    out, _ = inprofile_("check", str(folder / "e.toml"), "--threads-per-run", "2", cwd=tmp_path)
    (sentence,) = re.findall("Each run in .*", out)
    assert sentence.startswith(("Each run in 2 parts: lookahead ", "Each run in one piece: waiting and what"))
    assert "Each run in" in said[1]
    assert "Each run in" not in said[0]


def test_out_replaces_an_earlier_result_whole(folder: Path, tmp_path: Path) -> None:
    for seeds, place in (("3", "r"), ("2", "r"), ("2", "fresh")):
        inprofile_("run", str(folder / "e.toml"), *SHORT, "--seeds", seeds, "--out", place, cwd=tmp_path)
    assert files(tmp_path / "r") == files(tmp_path / "fresh")


def test_out_refuses_a_folder_with_other_things_before_it_runs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").write_text("mine")
    err = inprofile_("run", str(folder / "e.toml"), "--out", "r", cwd=tmp_path, code=2)[1]
    assert "thesis.tex" in err
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["thesis.tex"]


def test_the_result_written_is_the_result_printed(folder: Path) -> None:
    shown = json.loads(inprofile_("run", "e.toml", *SHORT, "--seeds", "3", "--json", cwd=folder)[0])
    written = inprofile.read(folder / "r")
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
def test_bad_input_is_refused_with_a_reason(folder: Path, arguments: list[str], says: str) -> None:
    out, err = inprofile_(*arguments, cwd=folder, code=2)
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


def test_interrupted_it_writes_nothing_and_says_so(folder: Path, tmp_path: Path) -> None:
    long = ["--set", "duration=390000 s", "--set", 'measure={ from = "1 s", to = "390000 s" }']
    asked = [sys.executable, "-m", "inprofile", "run", str(folder / "e.toml"), *long, "--out", "r"]
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


def test_check_draws_the_topology_and_every_value(folder: Path) -> None:
    out, err = inprofile_("check", "e.toml", cwd=folder)
    assert err == ""
    assert re.search(r"│ assured × 4 │  marked by token_bucket", out)
    assert re.search(r"│  bottleneck: 3 Mbit/s, 10 ms, rio 60 packets", out)
    assert re.search(r"│ server +│  receives assured", out)
    # 60 packets of 1500 B are 90,000 B, and at 3 Mbit/s 240 ms.
    assert re.search(r"limit +60 +90000 +240$", out, re.MULTILINE)
    assert re.search(r"in\.min_th +30 +45000 +120$", out, re.MULTILINE)
    assert "No warnings." in out


def test_check_warns_of_what_is_allowed_but_odd(folder: Path) -> None:
    sold = ["--set", 'flows.assured.contract="2 Mbit/s"']
    out = inprofile_("check", "e.toml", *sold, cwd=folder)[0]
    assert "1 warning" in out
    assert "8 Mbit/s, more than the 3 Mbit/s" in out
    found = json.loads(inprofile_("check", "e.toml", *sold, "--json", cwd=folder)[0])
    assert [w["severity"] for w in found["warnings"]] == ["warning"]
    assert found["effective"]["title"] == "Four flows with a contract share a link"


def test_a_limit_rule_that_nobody_wrote_says_where_it_is_from(folder: Path) -> None:
    queue = 'links.bottleneck.queue={ aqm = "drop_tail", limit = "%s packets"%s }'
    ns2 = ["--set", 'tcp.profile="ns2"']
    out = inprofile_("check", "e.toml", *ns2, "--set", queue % (9, ""), cwd=folder)[0]
    assert re.search(r"bottleneck +limit .*\n +limit_rule = ns2, as tcp\.profile is\n", out)
    written = queue % (9, ', limit_rule = "ns2"')
    out = inprofile_("check", "e.toml", *ns2, "--set", written, cwd=folder)[0]
    assert re.search(r"bottleneck +limit .*\n +limit_rule = ns2 *\n", out)
    err = inprofile_("check", "e.toml", *ns2, "--set", queue % (1, ""), cwd=folder, code=2)[1]
    assert 'under [tcp] profile = "ns2" a drop-tail queue of n packets holds n - 1' in err
    assert 'limit_rule = "waiting"' in err
    listed = inprofile_("list", "drop_tail", cwd=folder)[0]
    assert '[tcp] profile = "ns2"' in " ".join(listed.split())


# list, schema


def test_list_shows_every_mechanism_with_its_parameters(tmp_path: Path) -> None:
    out = inprofile_("list", cwd=tmp_path)[0]
    found = json.loads(inprofile_("list", "--json", cwd=tmp_path)[0])["mechanisms"]
    assert {m["kind"] for m in found} == {"marker", "aqm", "scheduler"}
    for mechanism in found:
        assert mechanism["name"] in out
        assert mechanism["source"] in " ".join(out.split())
        for parameter in mechanism["parameters"]:
            assert parameter["name"] in out
    only = inprofile_("list", "red", cwd=tmp_path)[0]
    assert "max_th" in only
    assert "token_bucket" not in only


def test_list_has_every_congestion_control(tmp_path: Path) -> None:
    found = json.loads(inprofile_("list", "--json", cwd=tmp_path)[0])["tcp"]
    controls = inprofile.schema()["properties"]["tcp"]["properties"]["congestion"]["enum"]
    assert set(controls) <= {law["name"] for law in found}
    assert {"rack", "prr", "hystart", "hystart++"} <= {law["name"] for law in found}
    out = " ".join(inprofile_("list", "cubic", cwd=tmp_path)[0].split())
    assert 'RFC 9438 congestion = "cubic"' in out
    assert "token_bucket" not in out


def test_the_schema_is_json_and_knows_every_mechanism(tmp_path: Path) -> None:
    out = inprofile_("schema", cwd=tmp_path)[0]
    assert json.loads(out) == inprofile.schema()
    for mechanism in inprofile.mechanisms():
        assert f'"{mechanism.name}"' in out
    assert json.loads(inprofile_("schema", "--json", cwd=tmp_path)[0]) == inprofile.schema()


# explain


def test_explain_says_in_words_and_a_picture_why(folder: Path) -> None:
    out, err = inprofile_("explain", "r", "--flow", "assured.3", cwd=folder)
    assert err == ""
    assert out.startswith("assured.3, 3 seeds\n")
    assert "Its contract is 800 kbit/s; it got" in out
    assert re.search(r"^  delivered +█{40} 9\d\.\d % +\d+", out, re.MULTILINE)
    assert "Congestion window of seed 1" in out
    assert inprofile_("explain", "r", "--flow", "3", cwd=folder)[0] == out


def test_explain_as_json_accounts_for_every_packet(folder: Path) -> None:
    found: dict[str, Any] = json.loads(inprofile_("explain", "r", "--flow", "0", "--json", cwd=folder)[0])
    assert found["flow"] == "assured.0"
    assert sum(part["share"] for part in found["packets"]) == pytest.approx(1)
    assert len(found["findings"]) >= 4


def test_explain_of_a_file_runs_it_and_has_the_figures_behind_losses(folder: Path) -> None:
    out = inprofile_("explain", "e.toml", *SHORT, "--flow", "3", cwd=folder)[0]
    assert out.startswith("assured.3, seed 1\n")
    assert "Values behind its losses" in out
    assert re.search(r"bottleneck, early: avg \d", out)


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


def test_the_shell_completes_keys_of_the_file(folder: Path) -> None:
    assert completed("run e.toml --set links.b", folder)[0].startswith("links.bottleneck.")
    assert completed("run e.toml --seeds 2 --set links.bottleneck.queue.in.max_t", folder) == [
        "links.bottleneck.queue.in.max_th="
    ]
    assert completed("sweep e.toml --axis tcp.profile=", folder) == [
        "tcp.profile=rfc",
        "tcp.profile=linux",
        "tcp.profile=ns2",
    ]
    # Of a file that cannot be read the lists' tables go by their numbers.
    assert completed("run nothing.toml --set links.0.q", folder) == [
        "links.0.queue.aqm=",
        "links.0.queue.scheduler=",
    ]


def test_keys_that_are_completed_are_taken(folder: Path) -> None:
    """Each that has a value in the file is taken with that value."""
    text = (folder / "e.toml").read_text("utf-8")
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
