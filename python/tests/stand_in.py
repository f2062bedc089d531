"""Programs that stand in for others in a test.

A stand-in for inprofiled: what one really answered, second by second (recorded/inprofiled.jsonl). The
recording: three customers at a RIO queue of 4 Mbit/s, alice and bob over their contracts, carol within hers
(web/test/street.py).
"""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest


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
