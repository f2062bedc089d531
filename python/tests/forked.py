"""Commands in processes of their own, each forked from one that has loaded what they need; stand-ins.

What a process loads when it starts anew, and how fast, is tested where that is the question.

A stand-in for inprofiled: what one really answered, second by second (recorded/inprofiled.jsonl). The
recording: three customers at a RIO queue of 4 Mbit/s, alice and bob over their contracts, carol within hers
(web/test/street.py).
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

SECONDS = 120
"""A bound on time that only what has no end passes, also on a busy machine."""
SHORT = ["--set", "duration=20 s", "--set", 'measure={ from = "5 s", to = "20 s" }']
"""Of the starter."""
LOADED = ["pyarrow.parquet", "pydantic.type_adapter", "rich.table", "scipy.special"]
LOADED += [f"inprofile.{one}" for one in ("experiment.topology", "metrics.summary", "run.results")]
LOADED += [f"inprofile.cli.{command}" for command in ("check", "explain", "pack", "reference", "run")]

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(LOADED)


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `inprofile` with these arguments on a screen of 100 columns; its exit code, output and errors."""
    with tempfile.TemporaryDirectory() as place:
        files = [str(Path(place) / name) for name in ("out", "err")]
        process = _FORKS.Process(target=_run, args=(arguments, cwd, *files))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, SECONDS)
        texts = [Path(file).read_text("utf-8") for file in files]
        return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def inprofile_(*arguments: str, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of one command; its exit code has to be `code`."""
    done = command(*arguments, cwd=cwd)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def _run(arguments: tuple[str, ...], cwd: Path, out: str, err: str) -> None:
    from inprofile.cli import main

    os.chdir(cwd)
    os.environ["COLUMNS"] = "100"
    for number, file in ((1, out), (2, err)):
        with Path(file).open("wb") as there:
            os.dup2(there.fileno(), number)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(encoding="utf-8")
    sys.argv = ["inprofile", *arguments]
    main()


def put_ns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Make a program called ns that does this, before any other."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ns").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "ns").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


RECORDED = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded").joinpath("inprofiled.jsonl").read_text().splitlines()
]


class StandIn:
    """Answers at a control socket: the next of its answers each time, and the last for ever."""

    def __init__(self, place: Path, answers: list[Any]) -> None:
        self.place, self.answers, self.asked = place, list(answers), 0
        self._server = socket.socket(socket.AF_UNIX)
        place.unlink(missing_ok=True)
        self._server.bind(str(place))
        self._server.listen(8)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._server.accept()
            except OSError:
                return
            with stream:
                stream.recv(4096)
                answer = self.answers[min(self.asked, len(self.answers) - 1)]
                self.asked += 1
                stream.sendall(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")

    def end(self) -> None:
        """As a router that is killed: the socket stays, and nobody listens."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
