"""Two senders on a link, over rates and round trips: the experiments of a coexistence map.

How long a run takes follows from its link: CUBIC needs K = ∛(W(1 − β)/C) from one loss to the next, where W
is half of what path and queue hold (RFC 9438, Eq. 2). Where an AQM keeps the queue short, a run has K to come
to its shares and is measured over K at least; on slow links for as long as is cheap, so that a figure is no
accident of a few losses. Prague's RTT independence begins 500 round trips after slow start, and these are no
part of the window.

Drop-tail lets the queue grow to its limit, and one loss there is for both. CUBIC left slow start by HyStart
while the other filled the buffer, and has a small share at first; it then gains a little with each loss. So
W is all that path and buffer hold, a run has eight times K to come to its shares, and is measured over four,
or two where that is dear.

Published measurements of pairs, shown beside a map.
"""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...metrics.quantity import bits_per_second

#: RFC 9438 §4.6 and §5: β_cubic and C, in segments per second³.
_BETA, _C = 0.7, 0.4
_PACKET = 1500
#: Where an AQM holds its queue, in seconds: what W has besides the path.
_QUEUE = 0.015
#: Seconds at least before, and within, the measured window; packets and seconds that are cheap.
_BEFORE, _WITHIN, _PACKETS, _CHEAP = 5.0, 10.0, 100_000, 60.0
#: Round trips until Prague's rate is independent of them, a quarter longer for the queue; and of which, in
#: seconds.
_ROUNDS, _VIRTUAL = 500 * 1.25, 0.025
#: How often Prague grows by half of the link, at a segment a round trip, before its share is settled; and the
#: packets of the link that this may take.
_GROWTH, _GROWTH_PACKETS = 2, 2_000_000
#: The same in times of K where the queue fills its buffer before each loss; what is measured at most and at
#: least, and packets that are cheap.
_SETTLE, _MEASURE, _MEASURE_LEAST, _MEASURE_PACKETS = 8, 4, 2, 2_000_000


@dataclass(frozen=True)
class Sender:
    """A congestion control as a group's `tcp` has it."""

    id: str
    title: str
    tcp: Mapping[str, object]


@dataclass(frozen=True)
class Point:
    """Two senders, a link's rate and their round trips."""

    a: str
    b: str
    rate: str
    #: Of both; or of a and of b: "10 ms/160 ms".
    rtt: str

    @property
    def name(self) -> str:
        """Its name beside other variants.

        >>> Point("prague", "cubic", "50 Mbit/s", "20 ms").name
        'prague/cubic, 50 Mbit/s, 20 ms'
        """
        return f"{self.a}/{self.b}, {self.rate}, {self.rtt}"

    @property
    def rtts(self) -> tuple[str, str]:
        """Round trips of a and of b."""
        a, _, b = self.rtt.partition("/")
        return a, b or a


@dataclass(frozen=True)
class Matrix:
    """Pairs of senders over rates and round trips."""

    pairs: Sequence[Sequence[str]]
    rates: Sequence[str]
    rtts: Sequence[str]
    #: How long the queue may get, in time on the link.
    buffer: str
    #: Rates and round trips of a quick suite.
    quick: Mapping[str, Sequence[str]]
    #: Rates that have these round trips alone, because their runs are long.
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Pairs ("a/b") that are run at these rates alone.
    rates_of: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def points(self, quick: bool = False) -> Iterator[Point]:
        """Every one, by pair, rate and round trip."""
        rates, rtts = (self.quick["rates"], self.quick["rtts"]) if quick else (self.rates, self.rtts)
        for a, b in self.pairs:
            for rate in rates:
                if rate not in self.rates_of.get(f"{a}/{b}", rates):
                    continue
                for rtt in rtts if quick else self.only.get(rate, rtts):
                    point = Point(a, b, rate, rtt)
                    first, second = map(_seconds, point.rtts)
                    # Of two of the same kind, the longer round trip first is the mirror of the other.
                    if a != b or first <= second:
                        yield point

    def changes(
        self, point: Point, senders: Mapping[str, Sender], quick: int = 0, *, fills: bool = False
    ) -> dict[str, object]:
        """The changes of a point to the experiment; `quick` are the seconds of a quick run, or 0.

        `fills`: nothing keeps the queue from filling its buffer.
        """
        rate = bits_per_second(point.rate)
        rtts = [_seconds(text) for text in point.rtts]
        buffer = _seconds(self.buffer) if fills else None
        grows = any(senders[name].tcp.get("congestion") == "prague" for name in (point.a, point.b))
        before, within = (
            (quick / 3, 2 * quick / 3) if quick else periods(rate, max(rtts), buffer, grows=grows)
        )
        full = rate * (max(rtts) + _seconds(self.buffer)) / 8 / _PACKET
        changes: dict[str, object] = {
            "duration": f"{before + within:g} s",
            "measure.from": f"{before:g} s",
            "tcp.window": f"{math.ceil(1.2 * full) + 20} packets",
            "tcp.jitter": f"{8e9 * _PACKET / rate:g} ns",
            "links.bottleneck.rate": point.rate,
            "links.bottleneck.delay": "1 ms",
        }
        for group, sender, rtt in zip("ab", (point.a, point.b), point.rtts, strict=True):
            changes[f"flows.{group}.tcp"] = dict(senders[sender].tcp)
            changes[f"flows.{group}.rtt"] = rtt
            changes[f"flows.{group}.join.rate"] = f"{10 * rate:.0f} bit/s"
        return changes

    def table(self, point: Point, table: Mapping[str, Any]) -> dict[str, Any]:
        """The experiment's text with the link's rate and limit, for those who are put before it."""
        made = copy.deepcopy(dict(table))
        link = next(one for one in made["links"] if one["name"] == "bottleneck")
        link["rate"] = point.rate
        link["queue"]["limit"] = f"{bits_per_second(point.rate) * _seconds(self.buffer) / 8:.0f} B"
        return made


def periods(
    rate: float, rtt: float, buffer: float | None = None, *, grows: bool = False
) -> tuple[float, float]:
    """Seconds before and within the measured window, for bit/s and a round trip in seconds; whole seconds.

    `buffer` is how long the queue gets before each loss, in seconds; without it, an AQM keeps it short.
    `grows`: one of them is Prague, which takes long to come to its share where windows are large.

    >>> periods(10e6, 0.02), periods(1e9, 0.16), periods(200e6, 0.02, 0.25)
    ((13.0, 60.0), (18.0, 18.0), (120.0, 60.0))
    >>> periods(50e6, 0.08), periods(50e6, 0.08, grows=True)
    ((6.0, 24.0), (32.0, 24.0))
    """
    if buffer is not None:
        k = _period(rate * (rtt + buffer))
        dear = _MEASURE * k * rate > _MEASURE_PACKETS * 8 * _PACKET
        within = _MEASURE_LEAST if dear else _MEASURE
        return _whole(_SETTLE * k), _whole(within * k)
    k = _period(rate * (rtt + _QUEUE) / 2)
    cheap = min(_CHEAP, _PACKETS * 8 * _PACKET / rate)
    independent = _ROUNDS * rtt if rtt < _VIRTUAL else 0.0
    half = rate * (rtt + _QUEUE) / 2 / 8 / _PACKET
    growth = min(_GROWTH * half * max(rtt, _VIRTUAL), _GROWTH_PACKETS * 8 * _PACKET / rate) if grows else 0.0
    return _whole(max(_BEFORE, k, independent, growth)), _whole(max(_WITHIN, k, cheap))


def _whole(seconds: float) -> float:
    """Whole seconds, up; what is one but for rounding stays."""
    return float(math.ceil(seconds - 1e-9))


def _period(bits: float) -> float:
    """RFC 9438, Eq. 2: K in seconds for a window of so many bits."""
    return math.cbrt(bits / 8 / _PACKET * (1 - _BETA) / _C)


def _seconds(text: str) -> float:
    amount, unit = text.split()
    return float(amount) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]


@dataclass(frozen=True)
class Source:
    """Where figures were published."""

    id: str
    text: str
    address: str


@dataclass(frozen=True)
class Published:
    """Goodputs of two flows, once for each run that was published."""

    source: Source
    point: Point
    aqm: str
    #: Of a and of b, in Mbit/s.
    goodput: Sequence[tuple[float, float]]

    @property
    def ratios(self) -> list[float]:
        """The first's goodput over the second's."""
        return [a / b for a, b in self.goodput]


def published(folder: Path) -> list[Published]:
    """Read `published.toml`; nothing where there is none."""
    path = folder / "published.toml"
    if not path.exists():
        return []
    found = []
    for source in tomllib.loads(path.read_text("utf-8"))["sources"]:
        about = Source(source["id"], source["text"], source["address"])
        for one in source["points"]:
            a, b = one["pair"]
            point = Point(a, b, one["rate"], one["rtt"])
            found.append(Published(about, point, one["aqm"], [(x, y) for x, y in one["goodput"]]))
    return found
