"""`inprofile wred`: whether a lossless queue marks before it pauses, and pauses before it drops."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inprofile.cli import app
from inprofile.studies.wred import Unreadable, pauses
from inprofile.studies.wred.pause import headroom

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
    "BUFFER_PG": {
        "Ethernet0,Ethernet4|3-4": {"profile": "lossless"},
        "Ethernet0|0": {"profile": "lossy"},
    },
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
