"""Queues that pause the links before them, on the command line."""

from __future__ import annotations

import re

from typer.testing import CliRunner

import inprofile
from inprofile.cli import app

INCAST = """
title = "Incast"
duration = "4 ms"
measure = { from = "2 ms", at = "port" }
tcp = { profile = "linux", congestion = "dcqcn", line_rate = "10 Gbit/s", window = "10000 packets" }

[[links]]
name = "port"
from = "S"
to = "R"
rate = "10 Gbit/s"
delay = "2 us"
pause = { xoff = "30 kB", xon = "20 kB" }
queue = { aqm = "drop_tail", limit = "1 MB" }

[[flows]]
name = "sender"
count = 2
from = "H*"
join = { node = "S", rate = "10 Gbit/s", limit = "10000 packets" }
to = "R"
rtt = "20 us"
"""


def test_run_prints_pauses_within_the_window_and_over_the_run(tmp_path) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(INCAST)
    said = CliRunner().invoke(app, ["run", str(file), "--seeds", "1"])
    assert said.exit_code == 0, said.output
    result = inprofile.load(file).run(seeds=1)
    summary = result.summary()
    assert summary["marks"].estimate.mean == 0
    # Two links share a port that is always busy: in any stretch each is paused for half of it.
    assert 0.9 < summary["paused_time"].estimate.mean / 2e-3 < 1.1
    (found,) = re.findall(r"over the whole run\nqueue .*\nport +(\S+) +(\S+) +(\S+)", said.output)
    pauses, time, most = map(float, found)
    assert pauses > 1.8 * summary["pauses"].estimate.mean > 10
    assert 3.6 < time < 4.4
    assert 30 < most <= 53
    unpaused = tmp_path / "unpaused.toml"
    unpaused.write_text(INCAST.replace('pause = { xoff = "30 kB", xon = "20 kB" }\n', ""))
    said = CliRunner().invoke(app, ["run", str(unpaused), "--seeds", "1"])
    assert said.exit_code == 0
    assert "ause" not in said.output
