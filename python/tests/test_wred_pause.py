"""`inprofile wred`: whether a lossless queue marks before it pauses, and pauses before it drops.

Queues that pause the links before them, on the command line.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile.cli import app
from inprofile.studies.wred import Unreadable, pauses
from inprofile.studies.wred.pause import METRES_A_SECOND, Pause, headroom

POOL, XON, XOFF = 16_000_000, 18_432, 81_920
SWITCH: dict[str, Any] = {
    "PORT": {f"Ethernet{n}": {"speed": "100000", "mtu": "9100"} for n in (0, 4)},
    "CABLE_LENGTH": {"AZURE": {"Ethernet0": "300m", "Ethernet4": "300m"}},
    "WRED_PROFILE": {
        "LOSSLESS": {
            **{f"wred_{c}_enable": "true" for c in ("green", "yellow", "red")},
            **{f"{c}_min_threshold": "250000" for c in ("green", "yellow", "red")},
            **{f"{c}_max_threshold": "1000000" for c in ("green", "yellow", "red")},
            **{f"{c}_drop_probability": "5" for c in ("green", "yellow", "red")},
            "ecn": "ecn_all",
        }
    },
    "QUEUE": {"Ethernet0,Ethernet4|3-4": {"wred_profile": "LOSSLESS"}},
    "BUFFER_PG": {"Ethernet0,Ethernet4|3-4": {"profile": "lossless"}, "Ethernet0|0": {"profile": "lossy"}},
    "BUFFER_PROFILE": {
        "lossless": {"pool": "ingress", "size": str(XON + XOFF), "xoff": str(XOFF), "dynamic_th": "0"},
        "lossy": {"pool": "ingress", "size": "0", "dynamic_th": "3"},
    },
    "BUFFER_POOL": {"ingress": {"size": str(POOL), "type": "ingress", "mode": "dynamic"}},
}


def of(folder: Path, change: str = "", value: object = None) -> Path:
    """The switch's file, with one field (`TABLE.entry.key`) set."""
    tree = copy.deepcopy(SWITCH)
    if change:
        table, entry, key = change.split(".")
        tree[table][entry][key] = value
    file = folder / "config_db.json"
    file.write_text(json.dumps(tree), "utf-8")
    return file


def test_headroom_is_what_comes_after_the_decision() -> None:
    """At 100 Gbit/s: two frames, the pause frame, 394 quanta of 64 B, and what is on the cable both ways."""
    assert headroom(100e9, 0, 1500) == 2 * 1500 + 64 + 394 * 64
    short, long = headroom(100e9, 0, 1500), headroom(100e9, 198, 1500)
    assert short is not None
    assert long == short + 2 * 12_500
    assert headroom(3e9, 10, 1500) is None


def test_a_profile_that_marks_first_and_has_headroom(tmp_path: Path) -> None:
    (found,) = pauses(of(tmp_path))
    assert len(found.queues) == 4
    # 2^0 of what is free: half of the pool; and of its own bytes those that are no headroom.
    assert found.pauses_at == POOL // 2 + XON
    assert found.queues_at_once == (POOL // 2 + XON) // 250_000
    assert (found.headroom, found.needed) == (XOFF, headroom(100e9, 300, 9122))
    assert found.findings == ()


def test_a_shared_pool_of_headroom_is_none_of_a_group_s_own_bytes(tmp_path: Path) -> None:
    (found,) = pauses(of(tmp_path, "BUFFER_POOL.ingress.xoff", "1000000"))
    assert found.pauses_at == POOL // 2 + XON + XOFF


@pytest.mark.parametrize(
    ("change", "value", "says"),
    [
        ("BUFFER_PROFILE.lossless.dynamic_th", "-7", "paused before they are told"),
        ("BUFFER_PROFILE.lossless.xoff", "40960", "the rest is lost; write at least that"),
        ("CABLE_LENGTH.AZURE.Ethernet0", "2000m", "may still come over 2000 m"),
        ("WRED_PROFILE.LOSSLESS.ecn", "ecn_none", "marks nothing: every congestion pauses"),
    ],
)
def test_what_is_wrong_is_said_and_ends_with_1(tmp_path: Path, change: str, value: str, says: str) -> None:
    answer = CliRunner().invoke(app, ["wred", str(of(tmp_path, change, value)), "--check", "--json"])
    assert answer.exit_code == 1
    found = [f["says"] for pause in json.loads(answer.stdout)["pauses"] for f in pause["findings"]]
    assert any(says in text for text in found)


@pytest.mark.parametrize(
    ("change", "value", "says"),
    [
        ("CABLE_LENGTH.AZURE.Ethernet0", "5 metres", 'write metres, such as "5m"'),
        ("BUFFER_PROFILE.lossless.xoff", "much", "is no whole number"),
        ("BUFFER_PG.Ethernet0,Ethernet4|3-4.profile", "gone", "a BUFFER_PG names it"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, change: str, value: str, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        pauses(of(tmp_path, change, value))


def test_it_is_printed(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["wred", str(of(tmp_path)), "--check"])
    assert answer.exit_code == 0
    assert "Marks before it pauses, and pauses before it drops." in answer.stdout
    assert "paused from 8.018 MB on" in answer.stdout
    assert "no more than 32 queues at once" in answer.stdout


def test_what_the_file_does_not_say_is_told(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["wred", str(of(tmp_path, "PORT.Ethernet0.speed", "3000")), "--check"])
    assert "does not say what may still come after a pause" in answer.stdout


METRES = 2000
ONE_PORT = """
title = "What comes by one port, at twenty times the rate of the port it leaves by"
duration = "2 ms"
measure = {{ from = "0 s", at = "port" }}
tcp = {{ profile = "linux" }}

[[links]]
name = "port"
from = "S"
to = "R"
rate = "0.5 Gbit/s"
delay = "1 us"
pause = {{ xoff = "{xoff} B", xon = "20 kB" }}

[links.queue]
aqm = "wred"
limit = "{limit} B"
w_q = 1.0
green = {{ min_th = "{limit} B", max_th = "{beyond} B", max_p = 1.0 }}
yellow = {{ min_th = "{limit} B", max_th = "{beyond} B", max_p = 1.0 }}
green_ecn = {{ min_th = "{marks} B", max_th = "{always} B", max_p = 1.0 }}

[[flows]]
name = "sender"
from = "H*"
join = {{ node = "S", rate = "10 Gbit/s", limit = "10000 packets" }}
to = "R"
rtt = "{rtt} us"
stop = "{stop} us"
traffic = {{ kind = "cbr", rate = "10 Gbit/s", packet = "1500 B", ecn = "ect0" }}
"""


def simulated(found: Pause, *, peak: float, xoff: float, headroom: float) -> dict[str, float]:
    """Marks, pauses and drops where what waits would grow to `peak` bytes, with the profile's marks."""
    assert found.marks_from is not None
    # Of 10 Gbit/s what the port does not take has to wait.
    stop = peak / (9.5e9 / 8) * 1e6
    far = METRES / METRES_A_SECOND * 1e6
    text = ONE_PORT.format(
        xoff=round(xoff),
        limit=round(xoff + headroom),
        beyond=round(xoff + headroom) + 1,
        marks=found.marks_from,
        always=2 * found.marks_from,
        rtt=round(2 * (far + 1), 3),
        stop=round(stop, 3),
    )
    result = inprofile.parse(text).run(seeds=1)
    summary = result.summary()
    (port,) = [row.figures for row in result.rows("queues") if row.keys["queue"] == "port"]
    dropped = sum(value.mean for name, value in port.items() if name.startswith("dropped"))
    return {"marks": summary["marks"].mean, "pauses": summary["pauses"].mean, "dropped": dropped}


def test_a_simulation_does_as_the_answer_says(tmp_path: Path) -> None:
    """At the answered thresholds marks come before pauses, and pauses before drops; at half of them not."""
    file, static = of(tmp_path), 180_000
    tree = json.loads(file.read_text("utf-8"))
    room = headroom(10e9, METRES, 9122)
    assert room is not None
    for fields in tree["PORT"].values():
        fields["speed"] = "10000"
    tree["CABLE_LENGTH"]["AZURE"] = dict.fromkeys(("Ethernet0", "Ethernet4"), f"{METRES}m")
    for colour in ("green", "yellow", "red"):
        tree["WRED_PROFILE"]["LOSSLESS"][f"{colour}_min_threshold"] = "120000"
    profile = {"pool": "ingress", "size": str(20_000 + room), "xoff": str(room), "static_th": str(static)}
    tree["BUFFER_PROFILE"]["lossless"] = profile
    file.write_text(json.dumps(tree), "utf-8")
    (found,) = pauses(file)
    assert found.findings == ()
    at, marks, needed = found.pauses_at, found.marks_from, found.needed
    assert (at, marks, needed) == (20_000 + static, 120_000, room)
    between = simulated(found, peak=(marks + at) / 2, xoff=at, headroom=needed)
    assert between["marks"] > 0 == between["pauses"] == between["dropped"]
    beyond = simulated(found, peak=4 * at, xoff=at, headroom=needed)
    assert beyond["pauses"] > 0 == beyond["dropped"]
    # A group that is paused at half of that: before anything is marked.
    early = simulated(found, peak=(marks + at / 2) / 2, xoff=at / 2, headroom=needed)
    assert early["pauses"] > 0 == early["marks"] == early["dropped"]
    tight = simulated(found, peak=4 * at, xoff=at, headroom=needed / 2)
    assert tight["pauses"] > 0 < tight["dropped"]


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
