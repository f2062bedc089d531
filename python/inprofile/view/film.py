"""The queue packet by packet as an animated GIF, much as the page plays it (`web/src/stage.ts`).

It needs no browser: frames are SVG, rendered like every other figure here. Dropped packets fall out of the
queue, and a cursor moves along the queue length over time.

The GIF (GIF89a) is written here, with one palette of the colours that occur most and LZW: what draws
pictures (vl-convert) has PNG alone, and no package that is installed writes GIF. Source: CompuServe's
GIF89a of 1990; PNG, third edition, §9.2 (filters).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.quantity import number
from .answers import unpack

Bytes = NDArray[np.uint8]
_CLEAR, _END, _MOST = 256, 257, 4096


def pixels(png: bytes) -> Bytes:
    """Height × width × 3, red, green and blue, of a PNG with eight bits a channel and alpha.

    Alpha is left out. Raises ValueError for another kind of PNG.
    """
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    if (depth, kind) != (8, 6):
        raise ValueError("a PNG with other than eight bits a channel and alpha")
    at, packed = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            packed.append(png[at + 8 : at + 8 + length])
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(b"".join(packed)), np.uint8).reshape(height, 1 + 4 * width)
    found = raw[:, 1:].reshape(height, width, 4).copy()
    for y, how in enumerate(raw[:, 0].tolist()):
        if how == 1:
            found[y] = np.cumsum(found[y], axis=0, dtype=np.uint8)
        elif how == 2 and y:
            found[y] += found[y - 1]
        elif how > 2:
            raise ValueError(f"a PNG with lines of filter {how}, which nothing here wrote before")
    return found[:, :, :3]


def animated(pictures: Iterable[Bytes], delay: float) -> bytes:
    """A GIF that goes round, of pictures of one size (`pixels`), each shown for `delay` seconds.

    Its 256 colours are those that occur most, at five bits a channel; the others are shown as the nearest.
    """
    frames = [_key(picture) for picture in pictures]
    height, width = frames[0].shape
    counts = sum(np.bincount(f.ravel(), minlength=1 << 15) for f in frames)
    table = np.argsort(-np.asarray(counts), kind="stable")[:256]
    index = _nearest(np.flatnonzero(counts), table)
    size = struct.pack("<HH", width, height)
    made = [b"GIF89a", size, b"\xf7\0\0", _colours(table).astype(np.uint8).tobytes()]
    made.append(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")
    control = b"\x21\xf9\x04\0" + struct.pack("<H", max(2, round(100 * delay))) + b"\0\0"
    for frame in frames:
        made += [control, b"\x2c\0\0\0\0", size, b"\0", _compressed(index[frame].tobytes())]
    return b"".join([*made, b"\x3b"])


def _key(picture: Bytes) -> NDArray[np.int64]:
    five = picture.astype(np.int64) >> 3
    return (five[:, :, 0] << 10) | (five[:, :, 1] << 5) | five[:, :, 2]


def _colours(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    five = np.stack([keys >> 10, (keys >> 5) & 31, keys & 31], axis=1)
    return (five << 3) | (five >> 2)


def _nearest(there: NDArray[np.int64], table: NDArray[np.int64]) -> Bytes:
    """By key, the place in the table of the nearest colour."""
    far = ((_colours(there)[:, None, :] - _colours(table)[None, :, :]) ** 2).sum(axis=2)
    index = np.zeros(1 << 15, np.uint8)
    index[there] = far.argmin(axis=1)
    return index


def _compressed(data: bytes) -> bytes:
    """LZW with codes of 9 to 12 bits, in blocks of at most 255 bytes."""
    made = bytearray()
    codes: dict[int, int] = {}
    held, bits, size, following = _CLEAR, 9, 9, _END + 1
    now = data[0]
    for byte in data[1:]:
        key = now << 8 | byte
        known = codes.get(key)
        if known is not None:
            now = known
            continue
        held |= now << bits
        bits += size
        if following == _MOST:
            held |= _CLEAR << bits
            bits += size
            codes, size, following = {}, 9, _END + 1
        else:
            if following == 1 << size:
                size += 1
            codes[key] = following
            following += 1
        whole = bits // 8
        made += (held & ((1 << 8 * whole) - 1)).to_bytes(whole, "little")
        held >>= 8 * whole
        bits -= 8 * whole
        now = byte
    held |= now << bits
    bits += size
    # A reader has one code more than were written when it comes to the end.
    held |= _END << bits
    bits += size + (following == 1 << size)
    made += held.to_bytes(-(-bits // 8), "little")
    blocks = (made[i : i + 255] for i in range(0, len(made), 255))
    return b"\x08" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


FRAMES = 120
DELAY = 0.08
"""How long each frame is shown, in seconds."""
_WIDTH, _HIGH = 720, 40
_COLOURS = ("#2f9e77", "#e08e0b", "#d1495b")
"""Of IN, OUT and red packets; drops are in the last, too."""
_FLOWS = ("#2c7fd6", "#e08e0b", "#2f9e77", "#c25b9e", "#7d8797", "#8a5cd1", "#b5651d", "#00a3b4")
_TEXT, _MUTED = "#1b2430", "#5b6577"
_WINDOWS = 10
"""The most congestion windows shown."""
_FALLS = 0.7
"""How long a dropped packet falls, in seconds of viewing time."""
_HEAD, _TOP, _BOTTOM, _LEFT = 440.0, 150.0, 250.0, 10.0
"""The queue's head, and the picture of its length over time, in pixels."""

Numbers = NDArray[np.float64]


def film(passage: bytes, tell: Callable[[int], None] = lambda _: None, frames: int = FRAMES) -> bytes:
    """The GIF of the stretch of time in `passage`; `tell` is called with the number of frames drawn."""
    import vl_convert

    def drawn() -> Iterator[NDArray[np.uint8]]:
        for i, svg in enumerate(stills(passage, frames)):
            yield pixels(vl_convert.svg_to_png(svg, scale=1))
            tell(i + 1)

    return animated(drawn(), DELAY)


def stills(passage: bytes, frames: int = FRAMES) -> Iterator[str]:
    """The frames as SVG, evenly spaced over the stretch."""
    stage = _Stage(*unpack(passage))
    start, end = float(stage.head["from"]), float(stage.head["to"])
    speed = (end - start) / (frames * DELAY)
    for i in range(frames):
        yield stage.at(start + (end - start) * (i + 1) / frames, speed)


class _Stage:
    """A queue moment by moment; moments are asked for in order."""

    def __init__(self, head: dict[str, Any], arrays: list[Numbers]) -> None:
        self.head, self._arrays = head, arrays
        events = {name: arrays[i] for name, i in head["events"].items()}
        self._t = events.pop("t")
        self._events = {name: [int(x) for x in values] for name, values in events.items()}
        self._waiting: list[int] = []
        self._dropped: list[tuple[int, int]] = []
        """Events of drops, each with the number of packets waiting."""
        self._left = -1
        self._next = 0
        self._lengths = self._counted()
        most = max(4.0, *(float(x.max(initial=0)) for x in self._lengths))
        self._levels = [(x["name"], x["packets"]) for x in head["levels"]]
        self._most = 1.08 * max([most, *(n for _, n in self._levels if n <= 3 * most)])
        self._each = (_HEAD - _LEFT) / self._most
        self._rows = [(w["flow"], arrays[w["t"]], arrays[w["v"]]) for w in head["windows"]][:_WINDOWS]
        self._widest = max([1.0, *(float(v.max(initial=0)) for _, _, v in self._rows)])
        self._still = "".join(self._whole())

    def _counted(self) -> tuple[Numbers, Numbers]:
        """After each event: how many wait, and how many of them IN."""
        of = self._events
        there: dict[int, bool] = {}
        counts = []
        for what, packet, colour in zip(of["what"], of["packet"], of["colour"], strict=True):
            if what == 0:
                there[packet] = colour == 0
            else:
                there.pop(packet, None)
            counts.append((len(there), sum(there.values())))
        both = np.array(counts, float).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _seek(self, time: float) -> None:
        of = self._events
        while self._next < len(self._t) and self._t[self._next] <= time:
            i = self._next
            self._next += 1
            if of["what"][i] == 0:
                self._waiting.append(i)
                continue
            self._waiting = [j for j in self._waiting if of["packet"][j] != of["packet"][i]]
            if of["what"][i] == 1:
                self._left = i
            else:
                self._dropped.append((i, len(self._waiting)))

    def at(self, time: float, speed: float) -> str:
        """The moment `time` as SVG; a second of the run is shown in 1/`speed` seconds."""
        self._seek(time)
        x = _x(time, self.head)
        parts = [
            *self._queue(time),
            *self._falling(time, speed),
            self._still,
            _box(x - 1, _TOP - 3, 2, _BOTTOM - _TOP + 6, _TEXT),
            _say(max(x, _LEFT + 24), _BOTTOM + 14, f"{time:.3f} s", _TEXT, "middle"),
            *self._windows(time, speed),
        ]
        return _svg(parts)

    def _queue(self, time: float) -> Iterator[str]:
        of, each, y = self._events, self._each, 54
        green = sum(of["colour"][i] == 0 for i in self._waiting)
        there = len(self._waiting)
        yield _say(_LEFT, 20, f"{there} wait: {green} IN, {there - green} OUT", _MUTED)
        yield _say(_HEAD + 60, 20, self.head["link"], _MUTED, "end")
        yield _frame(_HEAD + 6, y - 3, 54, _HIGH + 6, _MUTED)
        wide = max(each - 1.5, 1.0) if each > 4 else each
        if self._left >= 0:
            i = self._left
            served = (time - self._t[i]) * self.head["rate"] / (8 * of["size"][i])
            if served < 1:
                yield _box(
                    _HEAD + 8 + served * (50 - wide), y, min(wide, 50), _HIGH, _COLOURS[of["colour"][i]]
                )
        for k, i in enumerate(self._waiting):
            x = _HEAD - (k + 1) * each
            yield _box(x, y, wide, _HIGH, _COLOURS[of["colour"][i]])
            if each > 7:
                yield _box(x, y + _HIGH + 2, wide, 4, _FLOWS[of["flow"][i] % len(_FLOWS)])
        for line in self.head["averages"]:
            value = _sample(self._arrays[line["t"]], self._arrays[line["v"]], time)
            if value is not None:
                x = _HEAD - min(value, self._most) * each
                yield f'<path d="M{x:.1f} {y - 2}l-5 -8h10z" fill="{_TEXT}"/>'
                row = 12 * (line is not self.head["averages"][0])
                yield _say(x, y - 12 - row, f"{line['name']} {number(value, 3)}", _TEXT, "middle")

    def _falling(self, time: float, speed: float) -> Iterator[str]:
        of = self._events
        for i, waited in self._dropped[-12:]:
            age = (time - self._t[i]) / speed / _FALLS
            if age > 1:
                continue
            x, y = max(_LEFT, _HEAD - (waited + 1) * self._each), 62 + 40 * age
            wide, high = max(self._each - 1.5, 5), _HIGH * (1 - 0.4 * age)
            yield _box(x, y, wide, high, _COLOURS[of["colour"][i]])
            yield _frame(x, y, wide, high, _COLOURS[2], 2)
            cause = self.head["causes"][of["cause"][i]].replace("_", " ")
            yield _say(x + wide + 4, y + high / 2, cause, _COLOURS[2])

    def _whole(self) -> Iterator[str]:
        """The parts that do not move: thresholds, and the queue length over the whole stretch."""
        height = (_BOTTOM - _TOP) / self._most
        for values, colour in zip(self._lengths, (f"{_COLOURS[1]}99", f"{_COLOURS[0]}cc"), strict=True):
            steps = "".join(
                f"H{_x(t, self.head):.1f}V{_BOTTOM - v * height:.1f}"
                for t, v in zip(self._t, values, strict=True)
            )
            yield f'<path d="M{_LEFT} {_BOTTOM}{steps}H{_HEAD}V{_BOTTOM}z" fill="{colour}"/>'
        names: dict[float, list[str]] = {}
        for name, value in self._levels:
            names.setdefault(value, []).append(name.replace("out ", "OUT ").replace("in ", "IN "))
        for row, (value, called) in enumerate(sorted((v, n) for v, n in names.items() if v <= self._most)):
            x, y = _HEAD - value * self._each, _BOTTOM - value * height
            lines = f"M{x:.1f} 46V106M{_LEFT} {y:.1f}H{_HEAD}"
            yield f'<path d="{lines}" stroke="{_MUTED}" stroke-dasharray="3 3"/>'
            said = f"{', '.join(called)} {number(value, 3)}"
            yield _say(max(x, _LEFT + 3 * len(said)), 118 + 12 * (row % 2), said, _TEXT, "middle")
        for i in np.flatnonzero(np.array(self._events["what"]) == 2):
            yield _box(_x(self._t[i], self.head) - 0.75, _TOP, 1.5, 9, _COLOURS[2])
        yield _frame(_LEFT, _TOP, _HEAD - _LEFT, _BOTTOM - _TOP, _MUTED)

    def _windows(self, time: float, speed: float) -> Iterator[str]:
        left = _HEAD + 84
        if self._rows:
            yield _say(left, 20, f"Windows (segments), 0 to {number(self._widest, 3)}", _MUTED)
        lost = {self._events["flow"][i] for i, _ in self._dropped if (time - self._t[i]) / speed < _FALLS}
        for k, (flow, t, v) in enumerate(self._rows):
            y, name = 30 + 22 * k, str(self.head["flows"][flow])
            yield _say(
                left,
                y + 12,
                name if len(name) < 13 else name[:11] + "…",
                _COLOURS[2] if flow in lost else _TEXT,
            )
            value = _sample(t, v, time)
            if value is not None:
                wide = max(1.0, value / self._widest * 70)
                yield _box(left + 80, y + 2, wide, 14, _FLOWS[flow % len(_FLOWS)])
                yield _say(left + 84 + wide, y + 13, number(value, 3), _MUTED)


def _x(time: float, head: dict[str, Any]) -> float:
    share: float = (time - head["from"]) / (head["to"] - head["from"])
    return _LEFT + min(max(share, 0.0), 1.0) * (_HEAD - _LEFT)


def _sample(t: Numbers, v: Numbers, time: float) -> float | None:
    """The last value at or before a time; None before the first."""
    at = int(np.searchsorted(t, time, side="right"))
    return float(v[at - 1]) if at and np.isfinite(v[at - 1]) else None


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def _frame(x: float, y: float, width: float, height: float, stroke: str, thick: float = 1) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="none"'
        f' stroke="{stroke}" stroke-width="{thick}"/>'
    )


def _say(x: float, y: float, text: str, fill: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: list[str]) -> str:
    height = 274
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-size="11"'
        ' font-family="Inter, DejaVu Sans, Arial, sans-serif">'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>'
    )
