"""Running `inprofile` within bounds, and what a refusal looks like.

Every case runs in a process of its own, forked from a small one that has loaded the command line and nothing
heavy: run as a program, this file is that process. The peak memory of a case is the kernel's figure, in which
what was there at the fork counts; its address space is bounded too, so that a failure ends the case and not
the machine. Time is bounded generously: what is refused took minutes, or never ended, where it was not.
"""

from __future__ import annotations

import functools
import io
import json
import os
import resource
import subprocess
import sys
import threading
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
    program: Sequence[str] = (),
) -> Ended:
    """Run `inprofile`, or another program in Python, with these arguments, bounded."""
    asked = {"folder": str(folder), "seconds": seconds, "addresses": addresses}
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({**asked, "program": list(program), "arguments": arguments}) + "\n")
    server.stdin.flush()
    ended = json.loads(server.stdout.readline())
    texts = [(folder / name).read_text("utf-8") for name in ("out", "err")]
    return Ended(ended["code"], *texts, ended["peak"] << 10)


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process that cases are forked from; it ends with its standard input."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )


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


def _serve() -> None:
    from inprofile.cli import check, main, run  # noqa: F401 (what most cases are of is loaded once)

    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                _become(asked)
                main()
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else int(left.code is not None)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                code = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        alarm = threading.Timer(asked["seconds"], os.kill, (pid, 9))
        alarm.start()
        _, status, used = os.wait4(pid, 0)
        alarm.cancel()
        ended = {"code": os.waitstatus_to_exitcode(status), "peak": used.ru_maxrss}
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


def _become(asked: dict[str, object]) -> None:
    """The command's folder, streams and bounds; of another program the program itself."""
    os.chdir(str(asked["folder"]))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (name, how) in enumerate([(os.devnull, os.O_RDONLY), ("out", flags), ("err", flags)]):
        os.dup2(os.open(name, how, 0o644), number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0))
    addresses = asked["addresses"]
    assert isinstance(addresses, int)
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    program, arguments = asked["program"], asked["arguments"]
    assert isinstance(program, list)
    assert isinstance(arguments, list)
    if program:
        os.execv(sys.executable, [sys.executable, *program, *arguments])  # noqa: S606
    sys.argv = ["inprofile", *arguments]


if __name__ == "__main__":
    _serve()
