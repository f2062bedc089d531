#!/usr/bin/env python3
"""Write the man page of the command line, from its parser: packaging/man.py FILE."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from inprofile.cli import app
from inprofile.cli.commands import COMMANDS

#: Of this tree, whatever engine is loaded.
VERSION = tomllib.loads((Path(__file__).parents[1] / "Cargo.toml").read_text("utf-8"))["workspace"][
    "package"
]["version"]
EXITS = {"0": "done", "1": "it ran, but a check fell short", "2": "bad input", "130": "interrupted"}


def roff(text: str) -> str:
    """Text in which nothing is a request or an escape."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def entries(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options, as the parser's help has them."""
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            yield f".TP\n\\fB{roff(record[0])}\\fR\n{roff(record[1])}"


def sections(name: str, command: Any, above: Any) -> Iterator[str]:
    """A command, and those below it."""
    context = type(above)(command, info_name=name, parent=above)
    below = getattr(command, "commands", {})
    if not below:
        usage = " ".join(command.collect_usage_pieces(context))
        path = context.command_path
        yield f".SS {roff(path)}\n\\fB{roff(path)}\\fR {roff(usage)}\n.PP\n{roff(command.help or '')}"
        yield from entries(command, context)
    for inner, one in below.items():
        yield from sections(inner, one, context)


def page() -> str:
    """The whole page."""
    group: Any = get_command(app)
    top = group.make_context("inprofile", ["schema"], resilient_parsing=True)
    parts = [
        f'.TH INPROFILE 1 "" "inprofile {VERSION}" "User Commands"',
        f".SH NAME\ninprofile \\- {roff((group.help or '').rstrip('.'))}",
        ".SH SYNOPSIS\n\\fBinprofile\\fR [OPTIONS] COMMAND [ARGS]...",
        ".SH DESCRIPTION\nAn experiment is one TOML file in which every quantity has a unit; a command runs"
        " it, or studies a question by running it. Data goes to standard output, progress to standard error.",
        ".SH OPTIONS",
        *entries(group, top),
        ".SH COMMANDS",
    ]
    for kind in dict.fromkeys(command.group for command in COMMANDS.values()):
        parts.append(f".PP\n{kind}:")
        parts += [
            f".TP\n\\fB{roff(name)}\\fR\n{roff(command.help)}"
            for name, command in COMMANDS.items()
            if command.group == kind
        ]
    for name, one in group.commands.items():
        parts += sections(name, one, top)
    parts.append(".SH EXIT STATUS")
    parts += [f".TP\n\\fB{code}\\fR\n{roff(said)}" for code, said in EXITS.items()]
    parts.append(".SH SEE ALSO\n\\fBinprofiled\\fR(1), \\fBtc\\fR(8)")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(), "utf-8")
