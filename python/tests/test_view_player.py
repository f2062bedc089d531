"""What the page is told of a queue packet by packet, and of each flow.

Animated GIFs, read back by a decoder of LZW that is written apart from the encoder.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import inprofile
from inprofile.cli import app
from inprofile.view import Folder
from inprofile.view.answers import explained, flows, unpack, without
from inprofile.view.film import animated, film, pixels, stills
from inprofile.view.whatif import TooMuch, WhatIf

SHORT = inprofile.parse(inprofile.STARTER).with_({"duration": "8 s", "measure.from": "2 s"})
ENDS = (2.0, 6.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    place = tmp_path_factory.mktemp("player")
    SHORT.run([1, 2], trace=True).write(place / "rio")
    queue = {"aqm": "drop_tail", "limit": "30 packets"}
    window = {"links.bottleneck.queue": queue, "flows.assured.tcp.window": "2 packets"}
    SHORT.with_(window).run([1, 2]).write(place / "narrow")
    SHORT.with_({"links.bottleneck.queue": {"aqm": "codel", "limit": "100 packets"}}).run([1]).write(
        place / "codel"
    )
    return Folder(place)


def test_the_film_is_what_the_verdicts_say(folder: Folder) -> None:
    """Every drop of the trace, in the trace's colours; the queue is as long as RIO saw it at each arrival."""
    found, arrays = unpack(WhatIf().passage(folder, "rio", None, 1, None, ENDS))
    at = {name: arrays[i] for name, i in found["events"].items()}
    verdicts = folder.result("rio", ("verdicts",)).verdicts.to_pylist()
    own = [v for v in verdicts if v["seed"] == 1 and v["point"] == "bottleneck"]
    own = [v for v in own if ENDS[0] <= v["time_ps"] / 1e12 <= ENDS[1]]
    dropped = [v for v in own if v["verdict"] == "drop"]
    assert len(dropped) > 5
    assert sorted(at["packet"][at["what"] == 2]) == sorted(v["packet"] for v in dropped)
    assert [d["packet"] for d in found["drops"]] == [v["packet"] for v in dropped]
    assert all("random number" in d["words"] for d in found["drops"] if d["cause"] == "early")
    colours = {
        v["packet"]: v["verdict"] for v in verdicts if v["seed"] == 1 and v["verdict"] in ("in", "out")
    }
    names = ("in", "out", "red")
    arrived = at["what"] == 0
    for packet, colour in zip(at["packet"][arrived].tolist(), at["colour"][arrived].tolist(), strict=True):
        assert colours[int(packet)] == names[int(colour)]
    flows_of = {v["packet"]: v["flow"] for v in own}
    for packet, flow in zip(at["packet"][arrived].tolist(), at["flow"][arrived].tolist(), strict=True):
        assert flows_of.get(int(packet), found["flows"][int(flow)]) == found["flows"][int(flow)]
    seen = {v["packet"]: json.loads(v["why"])["queued"] for v in own}
    there: set[int] = set()
    compared = 0
    for what, packet, t in zip(at["what"], at["packet"], at["t"], strict=True):
        if what == 0:
            if t >= ENDS[0]:
                assert seen[int(packet)] == len(there)
                compared += 1
            there.add(int(packet))
        else:
            there.remove(int(packet))
    assert compared > 500


def test_averages_windows_and_levels_come_along(folder: Folder) -> None:
    found, arrays = unpack(WhatIf().passage(folder, "rio", None, 1, None, ENDS))
    assert [line["name"] for line in found["averages"]] == ["avg", "avg_in"]
    assert {found["flows"][w["flow"]] for w in found["windows"]} == {f"assured.{i}" for i in range(4)}
    for window in found["windows"]:
        times = arrays[window["t"]]
        assert np.diff(times).max() <= 0.0101
        assert times[-1] >= ENDS[1] - 0.02
    assert {level["name"] for level in found["levels"]} >= {"out min_th", "in max_th", "limit"}


def test_nobody_asked_from_when_it_begins_before_the_first_drop(folder: Folder) -> None:
    found, _ = unpack(WhatIf().passage(folder, "rio", None, 1, None, (None, None)))
    assert found["from"] < found["drops"][0]["t"] < found["to"]
    assert found["to"] - found["from"] == pytest.approx(500 * 1500 * 8 / 3e6)


def test_watching_finely_changes_nothing_and_one_run_serves_all_stretches(folder: Folder) -> None:
    runs = WhatIf()
    whole, arrays = unpack(runs.passage(folder, "codel", None, 1, "bottleneck", (0.0, 8.0)))
    fine = runs._fine
    drops = folder.result("codel", ("drops",)).drops.to_pylist()
    causes = Counter(d["cause"] for d in whole["drops"])
    assert sum(causes.values()) == sum(row["in"] + row["out"] for row in drops) > 0
    runs.passage(folder, "codel", None, 1, "bottleneck", (1.0, 2.0))
    assert runs._fine is fine
    assert len(arrays[whole["events"]["t"]]) > 1000


def test_what_cannot_be_shown_says_what_to_do(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookupError, match="there is no link nowhere"):
        WhatIf().passage(folder, "rio", None, 1, "nowhere", ENDS)
    monkeypatch.setattr("inprofile.view.passage.MOST_EVENTS", 100)
    with pytest.raises(ValueError, match="choose a shorter stretch"):
        WhatIf().passage(folder, "rio", None, 1, None, ENDS)
    monkeypatch.setattr("inprofile.view.whatif.MOST_TRACED", 100)
    with pytest.raises(TooMuch, match="shorter duration or a lower rate"):
        WhatIf().passage(folder, "rio", None, 1, None, ENDS)


def test_a_row_for_each_flow(folder: Folder) -> None:
    rows = unpack(flows(folder, "rio"))[0]["flows"]
    assert [row["flow"] for row in rows] == [f"assured.{i}" for i in range(4)]
    result = folder.result("rio", ("flows", "drops"))
    own = [row for row in result.flows.to_pylist() if row["flow"] == "assured.3"]
    assert rows[3]["throughput"]["mean"] == pytest.approx(sum(row["throughput"] for row in own) / 2)
    assert rows[3]["of_contract"] == pytest.approx(rows[3]["throughput"]["mean"] / 800e3)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    lost = [row for row in result.drops.to_pylist() if row["flow"] == "assured.3" and row["cause"] == "early"]
    assert rows[3]["drops"]["early"] == pytest.approx(sum(row["in"] + row["out"] for row in lost) / 2)


def test_why_a_flow_starves_and_what_it_gets_without_that(folder: Folder) -> None:
    found = unpack(explained(folder, "narrow", "assured.3"))[0]
    assert "because its receiver's window of 2 packets lets through at most" in found["because"]
    assert found["removals"] == ["a window that fills the way at the wanted rate"]
    runs = WhatIf()
    made = unpack(without(folder, "narrow", "assured.3", lambda s, seeds: runs.run(s, seeds, {})))[0][
        "outcome"
    ]
    assert made[0]["mended"]
    own = [r for r in folder.result("narrow", ("flows",)).flows.to_pylist() if r["flow"] == "assured.3"]
    assert made[0]["before"] == pytest.approx(sum(r["throughput"] for r in own) / 2)
    assert made[0]["words"].startswith(
        "Run again with a window that fills the way at the wanted rate, it got "
    )
    assert unpack(explained(folder, "rio", "assured.0"))[0]["because"] == ""
    with pytest.raises(LookupError, match="no cause is named"):
        without(folder, "rio", "assured.0", lambda s, seeds: runs.run(s, seeds, {}))


def test_who_waits_at_the_beginning_comes_first(folder: Folder) -> None:
    """Whoever waits at the beginning came before it, in order, and was not gone by then."""
    found, arrays = unpack(WhatIf().passage(folder, "rio", None, 1, None, (3.0, 4.0)))
    t, what = arrays[found["events"]["t"]], arrays[found["events"]["what"]]
    assert np.all(np.diff(t) >= 0)
    assert t[0] < 3.0
    assert what[t < 3.0].max() == 0
    assert t[-1] <= 4.0


def test_the_film_as_a_gif_without_a_browser(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drop falls in red with its cause, thresholds are named, and packets wait in their colours."""
    passage = WhatIf().passage(folder, "rio", None, 1, None, ENDS)
    found, arrays = unpack(passage)
    drawn = list(stills(passage, 400))
    assert len(drawn) == 400
    at = {name: arrays[i] for name, i in found["events"].items()}
    dropped = at["t"][at["what"] == 2][0]
    k = int((dropped - ENDS[0]) / (ENDS[1] - ENDS[0]) * 400)
    assert ">early<" in drawn[k]
    assert ">early<" not in drawn[k - 1]
    assert "OUT min_th 10<" in drawn[0]
    until = at["t"] <= ENDS[0] + (ENDS[1] - ENDS[0]) * 200 / 400
    there: list[float] = []
    for what, packet in zip(at["what"][until], at["packet"][until], strict=True):
        there = [*there, packet] if what == 0 else [p for p in there if p != packet]
    assert f">{len(there)} wait: " in drawn[199]
    with pytest.raises(SystemExit) as ended:
        app(["view", str(folder.place), "--film", str(tmp_path / "f.gif")])
    assert ended.value.code == 2
    assert "holds 3: give the folder of the one" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        app(["view", str(folder.place / "rio"), "--film", str(tmp_path / "f.webm")])
    assert ended.value.code == 2
    assert "call it f.gif" in capsys.readouterr().err


def test_a_film_is_a_gif_of_its_frames(folder: Folder) -> None:
    made = film(WhatIf().passage(folder, "codel", None, 1, None, ENDS), frames=2)
    assert made[:6] == b"GIF89a"
    assert made[-1:] == b";"
    assert made.count(b"\x21\xf9\x04\0") == 2


def expanded(data: bytes, at: int) -> tuple[list[int], int]:
    """The pixels of one picture, and where its blocks end (GIF89a, appendix F)."""
    assert data[at] == 8
    at += 1
    packed = b""
    while data[at]:
        packed += data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
    bits, place, size = int.from_bytes(packed, "little"), 0, 9
    table: list[tuple[int, ...]] = []
    found: list[int] = []
    before: tuple[int, ...] = ()
    while True:
        code = bits >> place & ((1 << size) - 1)
        place += size
        if code == 257:
            return found, at + 1
        if code == 256:
            table, size, before = [(i,) for i in range(256)] + [(), ()], 9, ()
            continue
        now = table[code] if code < len(table) else (*before, before[0])
        if before and len(table) < 4096:
            table.append((*before, now[0]))
        if len(table) == 1 << size and size < 12:
            size += 1
        found += now
        before = now


def read(data: bytes) -> list[NDArray[np.uint8]]:
    width, height = struct.unpack("<HH", data[6:10])
    palette = np.frombuffer(data[13 : 13 + 768], np.uint8).reshape(256, 3)
    at = 13 + 768 + 19
    pictures = []
    while data[at] != 0x3B:
        assert data[at : at + 4] == b"\x21\xf9\x04\0"
        at += 8
        assert data[at] == 0x2C
        index, at = expanded(data, at + 10)
        pictures.append(palette[np.array(index).reshape(height, width)])
    return pictures


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (60, 130)])
@pytest.mark.parametrize("colours", [1, 2, 200])
def test_what_is_written_is_read_back(shape: tuple[int, int], colours: int) -> None:
    chance = np.random.default_rng(colours)
    # At five bits a channel, as the palette has them.
    five = chance.integers(0, 32, (colours, 3))
    table = ((five << 3) | (five >> 2)).astype(np.uint8)
    pictures = [table[chance.integers(0, colours, shape)] for _ in range(3)]
    found = read(animated(pictures, 0.05))
    assert len(found) == 3
    for picture, again in zip(pictures, found, strict=True):
        assert (picture == again).all()


def test_colours_beyond_the_palette_are_shown_as_the_nearest() -> None:
    steps = (8 * np.arange(20)).astype(np.uint8)
    picture = np.stack(np.broadcast_arrays(steps[:, None], steps[None, :], np.uint8(0)), axis=2)
    (again,) = read(animated([picture], 0.05))
    there = np.unique(again.reshape(-1, 3), axis=0).astype(int)
    assert len(there) == 256, "of 400"
    far = ((picture.reshape(-1, 1, 3).astype(int) - there) ** 2).sum(axis=2)
    shown = ((picture.astype(int) - again) ** 2).sum(axis=2)
    assert (np.sqrt(shown.ravel()) <= np.sqrt(far.min(axis=1)) + 9).all(), (
        "but for the bits that are not kept"
    )


def png(lines: bytes, width: int, height: int, depth: int = 8) -> bytes:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, depth, 6, 0, 0, 0)
    body = b"IDAT" + zlib.compress(lines)
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(c) - 4) + c + b"crc." for c in (head, body))


def test_pictures_are_read_with_the_filters_that_are_written() -> None:
    plain, left, above = (
        b"\0" + bytes(range(8)),
        b"\1" + bytes([5, 6, 7, 8, 1, 1, 1, 1]),
        b"\2" + bytes([1] * 8),
    )
    found = pixels(png(plain + left + above, 2, 3))
    assert found.tolist() == [[[0, 1, 2], [4, 5, 6]], [[5, 6, 7], [6, 7, 8]], [[6, 7, 8], [7, 8, 9]]]
    with pytest.raises(ValueError, match="filter 4"):
        pixels(png(b"\4" + bytes(8), 2, 1))
    with pytest.raises(ValueError, match="eight bits"):
        pixels(png(b"\0" + bytes(16), 2, 1, 16))
