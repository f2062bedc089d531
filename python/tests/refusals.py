"""Running `inprofile` within bounds, and what a refusal looks like.

Every case runs as a process of its own. Its peak memory is the kernel's figure; its address space is bounded
too, so that a failure ends the case and not the machine. Time is bounded generously: what is refused took
minutes, or never ended, where it was not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inprofile._input import visible

SECONDS = 60
"""A bound on time that only what has no end passes, also on a busy machine."""
MEMORY = 200 << 20
"""Resident bytes that a refusal may take."""
ADDRESSES = 3 << 30
"""Bytes of address space: threads and shared libraries take much that is never touched."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    out: str
    err: str
    peak: int
    """Resident bytes."""


def command(
    *arguments: str,
    folder: Path,
    addresses: int = ADDRESSES,
    seconds: int = SECONDS,
    program: Sequence[str] = ("-m", "inprofile"),
) -> Ended:
    """Run `inprofile`, or another program in Python, with these arguments, bounded."""
    runner = [sys.executable, "-S", str(Path(__file__).with_name("bounded.py"))]
    bounds = [str(seconds), str(addresses), "ended"]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        subprocess.run(
            [*runner, *bounds, sys.executable, *program, *arguments],
            cwd=folder,
            stdout=out,
            stderr=err,
            check=True,
        )
    ended = json.loads((folder / "ended").read_text("utf-8"))
    texts = [(folder / name).read_text("utf-8") for name in ("out", "err")]
    return Ended(ended["code"], *texts, ended["peak"] << 10)


def refused(ended: Ended, *said: str) -> None:
    """Exit code 2, a sentence on what to do, no traceback, nothing that acts on a terminal, little memory."""
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    plain = " ".join(ended.err.replace("│", " ").split())
    for text in said:
        assert text in plain, plain
    assert len(ended.err) < 5000
    assert_plain(ended.out + ended.err)
    assert ended.peak < MEMORY, f"{ended.peak >> 20} MiB"


def assert_plain(text: str) -> None:
    """Nothing in it acts on a terminal."""
    assert visible(text) == text, ascii(text[:200])
