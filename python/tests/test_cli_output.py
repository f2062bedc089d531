"""What `--json` prints is what its schema says.

What a terminal without colours is sent: no sequence that it would show as rubbish.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import inprofile
from forked import SHORT, inprofile_
from inprofile.cli import app
from inprofile.cli.commands import COMMANDS
from inprofile.cli.output import FORMAT, output_schema

TINY = {"duration": "6 s", "measure.from": "2 s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("output")
    (place / "e.toml").write_text(inprofile.STARTER, "utf-8")
    inprofile.load(place / "e.toml").with_(TINY).run(seeds=2).write(place / "r")
    return place


def printed(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code in (0, 2), done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of(command: str) -> dict[str, Any]:
    """The schema of one command."""
    whole = output_schema()
    return {"$ref": f"#/$defs/{command}", "$defs": whole["$defs"]}


def test_the_schema_is_one_and_has_every_command() -> None:
    whole = output_schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    assert {*COMMANDS} - {"schema"} <= {*whole["$defs"]}


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("new", ["{}/made"]),
        ("check", ["{}/e.toml"]),
        ("run", ["{}/e.toml", "--seeds", "2", *(f"--set={k}={v}" for k, v in TINY.items())]),
        (
            "sweep",
            [
                "{}/e.toml",
                "--seeds",
                "1",
                "--out",
                "{}/s",
                "--axis",
                "links.bottleneck.rate=2 Mbit/s,3 Mbit/s",
            ]
            + [f"--set={k}={v}" for k, v in TINY.items()],
        ),
        ("explain", ["{}/r", "--flow", "assured.0"]),
        ("export", ["{}/r", "--csv", "{}/csv"]),
        ("list", ["red"]),
        ("glossary", ["fi"]),
        ("compare", ["--plan", "--quick"]),
        ("suite", ["rfc7928", "--plan", "--quick"]),
        ("reproduce", ["ard", "--plan"]),
        ("atlas", ["ard", "--plan"]),
        ("refused", []),
    ],
)
def test_what_is_printed_is_as_the_schema_says(command: str, arguments: list[str], folder: Path) -> None:
    given = [word.replace("{}", str(folder)) for word in arguments]
    found = printed(*(["run", str(folder / "none.toml")] if command == "refused" else [command, *given]))
    jsonschema.validate(found, of(command))
    assert found["format"] == FORMAT
    # Each key is described: one that is not is for nobody.
    schema = of(command)["$defs"][command]
    described = {key for form in schema.get("anyOf", [schema]) for key in form["properties"]}
    if command not in ("compare", "suite"):
        assert {*found} <= described
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "format": 0}, of(command))


COLOUR = re.compile(rb"\x1b\[[0-9;]*(?<![0-9])(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
"""SGR with a colour, of the text or behind it."""


def on_a_terminal(cwd: Path, *asked: str, **environment: str) -> bytes:
    """All that a command writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    plain = {name: x for name, x in os.environ.items() if name not in ("TERM", "NO_COLOR", "COLORTERM")}
    with subprocess.Popen(
        [sys.executable, "-m", "inprofile", *asked],
        cwd=cwd,
        env={**plain, **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        written = b""
        try:
            while block := os.read(ours, 65536):
                written += block
        except OSError:
            # A terminal that nobody holds any more ends so.
            pass
    os.close(ours)
    assert running.returncode == 0, written
    return written


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.toml"
    made.write_text(inprofile.STARTER)
    return made


@pytest.mark.parametrize(
    "asked", [("check", "mine.toml"), ("list", "red"), ("run", "mine.toml", "--seeds", "2")]
)
def test_a_terminal_that_knows_no_sequences_gets_none(file: Path, asked: tuple[str, ...]) -> None:
    written = on_a_terminal(file.parent, *asked, TERM="dumb")
    assert written
    assert b"\x1b" not in written


def test_no_color_leaves_colours_out_and_only_them(file: Path) -> None:
    assert COLOUR.search(b"\x1b[1;31mred\x1b[0m")
    assert not COLOUR.search(b"\x1b[1;4mbold\x1b[0m")
    written = on_a_terminal(file.parent, "check", "mine.toml", TERM="xterm-256color", NO_COLOR="1")
    assert b"bottleneck: 3 Mbit/s" in written
    assert not COLOUR.search(written)


def test_run_as_json_has_what_programs_build_on(starter: Path) -> None:
    out, err = inprofile_("run", "e.toml", *SHORT, "--seeds", "2..4", "--json", cwd=starter)
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
