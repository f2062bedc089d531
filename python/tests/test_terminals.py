"""What a terminal without colours is sent: no sequence that it would show as rubbish."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import inprofile

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
