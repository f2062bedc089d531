"""Runs the examples of a documentation page, block by block, in one folder.

A ``toml`` block whose first line is ``# NAME.toml`` is written there. Of a ``console`` block each line that
begins with ``$`` is run, and what follows it is what it prints. A ``python`` block with ``>>>`` is a doctest;
the blocks of a page share their names. Blocks of other kinds are only shown.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Block", "blocks", "run"]

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.toml)\n")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page that can be run or written."""
    source = page.read_text("utf-8")
    for found in _FENCE.finditer(source):
        yield Block(found[1], found[2], source.count("\n", 0, found.start()) + 2)


def run(page: Path, folder: Path) -> int:
    """Run a page's examples in `folder`; return how many. AssertionError where one prints otherwise."""
    names: dict[str, Any] = {}
    ran = 0
    _programs(folder / ".bin")
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.language == "toml" and (named := _FILE.match(block.text)):
            (folder / named[1]).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command, expected in _commands(block.text):
                _check_command(command, expected, folder, where)
                ran += 1
        elif block.language == "python" and ">>>" in block.text:
            _check_python(block, names, folder, where)
            ran += 1
    return ran


def _programs(folder: Path) -> None:
    """This very Python and its `inprofile`, by their names."""
    folder.mkdir()
    for name, arguments in (("python", ""), ("inprofile", "-m inprofile ")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        program.chmod(0o755)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _check_command(command: str, expected: str, folder: Path, where: str) -> None:
    environment = {**os.environ, "COLUMNS": "110", "PATH": f"{folder / '.bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{where}: {command}\n{done.stderr}"
    matches = doctest.OutputChecker().check_output(expected, done.stdout, FLAGS)
    assert matches or not expected, f"{where}: {command}\nexpected:\n{expected}\nprinted:\n{done.stdout}"


def _check_python(block: Block, names: dict[str, Any], folder: Path, where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
    here = Path.cwd()
    os.chdir(folder)
    said: list[str] = []
    try:
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    finally:
        os.chdir(here)
    names.update(test.globs)
    assert failed.failed == 0, "".join(said)
