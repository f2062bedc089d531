"""What `--json` prints is what its schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

import inprofile
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
