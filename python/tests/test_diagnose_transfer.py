"""`inprofile diagnose --live`, here to this host itself; in namespaces: validation/live_policers.py."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile.cli import app
from inprofile.studies.diagnose import Unreadable, of_capture
from inprofile.studies.diagnose.transfer import captured, drain, endpoint, listening

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a capture needs root")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@needs_root
def test_what_nobody_limits_has_no_policer(tmp_path: Path) -> None:
    port, place = free_port(), tmp_path / "live.pcap"
    threading.Thread(target=drain, args=(listening(port),), daemon=True).start()
    captured(("127.0.0.1", port), 1.0, "reno", place, connections=3)
    found = of_capture(place)
    assert found.kind == "none"
    assert len(found.traffic.flows) == 3
    # Both ways once, and no more than it is told to send: 300 Mbit/s.
    assert len(found.traffic.time) > 100
    assert 1e6 < found.goodput < 310e6


@needs_root
def test_nobody_there_and_no_such_control_are_said(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(Unreadable, match=f"Connection refused; start inprofile diagnose --sink {port} there"):
        captured(("127.0.0.1", port), 1.0, None, tmp_path / "live.pcap")
    with pytest.raises(Unreadable, match=r"no frugal: write one of .*reno"):
        captured(("127.0.0.1", port), 1.0, "frugal", tmp_path / "live.pcap")


def test_a_port_that_is_taken_is_said() -> None:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6) as taken,
        pytest.raises(Unreadable, match="name another port"),
    ):
        listening(taken.getsockname()[1])


@pytest.mark.parametrize("text", ["10.0.0.2", "10.0.0.2:", ":5001", "10.0.0.2:0", "10.0.0.2:70000", "a:b"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 192\.0\.2\.1:5001"):
        endpoint(text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name one"),
        (["a.pcap", "--live", "10.0.0.2:5001"], "name one"),
        (["a.pcap", "--keep", "b.pcap"], "for --live"),
        (["a.pcap", "--connections", "2"], "for --live"),
        (["--live", "10.0.0.2:5001", "--partial"], "leave them out with --live"),
        (["--live", "10.0.0.2"], "no HOST:PORT"),
        (["--live", "10.0.0.2:5001", "--keep", "b.txt"], "ends in .pcap"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    answer = CliRunner().invoke(app, ["diagnose", *words])
    assert answer.exit_code == 2
    assert says in answer.stderr.replace("\n", " ")
