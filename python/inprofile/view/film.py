"""The queue packet by packet as an animated GIF, much as the page plays it (`web/src/stage.ts`).

It needs no browser: frames are SVG, rendered like every other figure here. Dropped packets fall out of the
queue, and a cursor moves along the queue length over time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..charts.gif import animated, pixels
from ..metrics.quantity import number
from .pack import unpack

__all__ = ["DELAY", "FRAMES", "film", "stills"]

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
