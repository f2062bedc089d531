"""Experiments drawn from seeds for the comparison with ns-2: small, and full of losses and ties.

Buffers of a few packets, limits in bytes, timeouts without end, colours whose first packet finds a long
queue, everything on one grid of times, up to twelve hops; all disciplines, markers, TCP variants and kinds of
traffic that ns-2 has. A seed gives the same experiment on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

QUEUES = {
    "drop_tail": "drop-tail",
    "red": "RED in packets",
    "red_bytes": "RED in bytes",
    "rio": "RED/RIO, host tagger",
    "dsred": "dsRED",
    "sfq": "SFQ",
    "drr": "DRR",
    "fq": "FQ",
    "pi": "PI in packets",
    "pi_bytes": "PI in bytes",
    "rem": "REM in packets",
    "rem_bytes": "REM in bytes",
    "mixed": "several disciplines",
}
"""Kinds of experiments, by the queue in front of their links."""
NAMES = {"reno": "Reno", "newreno": "NewReno", "sack": "SACK"}
NODES = "ABCDEFGHIJKLM"
SMALL_LIMITS = (2, 2, 3, 3, 4, 5, 6, 8, 12, 30)
DATAGRAMS = (
    'kind = "cbr", rate = "300 kbit/s", packet = "200 B", dither = 1.0',
    'kind = "cbr", rate = "100 kbit/s", dither = 0.3',
    'kind = "on_off", peak = "800 kbit/s", on = "50 ms", off = "50 ms"',
    'kind = "on_off", peak = "1 Mbit/s", on = "100 ms", off = "300 ms", periods = "exponential"',
    'kind = "on_off", peak = "1 Mbit/s", packet = "500 B", on = "100 ms", off = "300 ms", periods = "pareto"',
)
COLOURS = ("green", "yellow", "red")


@dataclass
class Drawn:
    """An experiment, and the case that it represents."""

    seed: int
    text: str
    queue: str
    """A key of [`QUEUES`]."""
    traits: list[str] = field(default_factory=list)
    """The other dimensions: TCP, traffic, hops."""


class Pen:
    """Random draws, always from the one function whose sequence Python keeps from version to version."""

    def __init__(self, seed: int) -> None:
        self._uniform = random.Random(seed).random  # noqa: S311 - an experiment, not a secret

    def chance(self, p: float) -> bool:
        """True with this probability."""
        return self._uniform() < p

    def pick(self, among: Sequence[T]) -> T:
        """One of these."""
        return among[int(self._uniform() * len(among))]

    def within(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._uniform() * (high - low + 1))


def draw(seed: int) -> Drawn:
    """The experiment of a seed."""
    return _Draft(seed).whole()


class _Draft:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.pen = Pen(seed)
        self.lines: list[str] = []
        self.traits: set[str] = set()
        pen = self.pen
        self.queue = pen.pick(list(QUEUES))
        self.hops = pen.pick((1, 1, 1, 2, 3, 5, pen.within(6, 12)))
        # Whether all times are on one grid, so that many things happen at the same moment.
        self.grid = pen.chance(0.5)
        self.segment = 960 if self.grid else pen.pick((1000, 1000, 500, 100, 1460, 960))
        self.delays: list[int] = []
        """The delays of the links, in ms."""
        self.rio = self.queue == "rio" or (self.queue == "mixed" and pen.chance(0.3))
        self.dsred = self.queue == "dsred" or (self.queue == "mixed" and not self.rio and pen.chance(0.5))

    def line(self, text: str) -> None:
        self.lines.append(text)

    def whole(self) -> Drawn:
        pen = self.pen
        seconds = pen.pick((2, 3, 5))
        self.line(f'title = "drawn {self.seed}"\nduration = "{seconds} s"\n[engine]\nprofile = "ns2"')
        self.line(f'[tcp]\nprofile = "ns2"\nsegment = "{self.segment} B"')
        for hop in range(self.hops):
            self.link(hop)
        for group in range(pen.pick((1, 1, 2, 3))):
            self.group(group, seconds)
        self.traits.add(
            f"{'1 hop' if self.hops == 1 else '2 to 5 hops' if self.hops < 6 else '6 to 12 hops'}"
        )
        if self.grid:
            self.traits.add("one grid of times")
        return Drawn(self.seed, "\n".join(self.lines) + "\n", self.queue, sorted(self.traits))

    def tcp(self) -> str:
        pen = self.pen
        congestion = pen.pick(("reno", "newreno", "sack"))
        said = [f'congestion = "{congestion}"']
        self.traits.add(NAMES[congestion])
        if pen.chance(0.35):
            said.append(f'delayed_ack = "{pen.pick(("100 ms", "40 ms", "200 ms"))}"')
            self.traits.add("delayed ACKs")
        if pen.chance(0.6):
            said.append(f'window = "{pen.pick((1, 2, 3, 5, 10, 40, 100, 1000))} packets"')
        if pen.chance(0.3):
            said.append(f'initial_window = "{pen.pick((1, 3, 4, 10))} packets"')
        if pen.chance(0.3):
            said.append(f'min_rto = "{pen.pick(("10 ms", "50 ms", "500 ms", "1 s"))}"')
        if pen.chance(0.2):
            said.append("limited_transmit = false")
        if pen.chance(0.15):
            said.append(f'jitter = "{pen.pick(("1 ms", "5 ms"))}"')
            self.traits.add("jitter")
        return ", ".join(said)

    def link(self, hop: int) -> None:
        pen = self.pen
        if self.grid:
            rate, delay = pen.pick((400, 800, 800, 1600, 8000)), pen.pick((1, 10))
        else:
            rate, delay = (
                pen.pick((100, 300, 1000, 3000)) + pen.within(0, 200),
                pen.within(0, 60 // self.hops + 1),
            )
        self.delays.append(delay)
        self.line(
            f'[[links]]\nname = "hop{hop}"\nfrom = "{NODES[hop]}"\nto = "{NODES[hop + 1]}"\n'
            f'rate = "{rate} kbit/s"\ndelay = "{delay} ms"\nqueue = {{ {self.discipline(hop)} }}'
        )
        if not (self.rio or self.dsred) and pen.chance(0.15):
            self.line(f"reverse = {{ queue = {{ {self.drop_tail()} }} }}")

    def discipline(self, hop: int) -> str:
        kind = self.queue
        if kind == "mixed":
            kinds = ["drop_tail", "red", "red_bytes", "sfq", "drr", "pi", "pi_bytes", "rem", "rem_bytes"]
            kinds += ["rio"] * (2 * self.rio) + ["dsred"] * (2 * self.dsred)
            kind = self.pen.pick(kinds)
        if kind in ("rio", "dsred") and hop > 0 and self.pen.chance(0.3):
            kind = "drop_tail"
        return {
            "drop_tail": self.drop_tail,
            "red": self.red,
            "red_bytes": self.red_bytes,
            "rio": self.rio_queue,
            "dsred": self.dsred_queue,
            "sfq": self.sfq,
            "drr": self.drr,
            "fq": self.fq,
            "pi": self.pi,
            "pi_bytes": self.pi_bytes,
            "rem": self.rem,
            "rem_bytes": self.rem_bytes,
        }[kind]()

    def drop_tail(self) -> str:
        limit = self.pen.pick(SMALL_LIMITS)
        rule = f', limit_rule = "{self.pen.pick(("waiting", "ns2"))}"' if self.pen.chance(0.5) else ""
        return f'aqm = "drop_tail", limit = "{limit} packets"{rule}'

    def red_rest(self) -> str:
        pen = self.pen
        return (
            f', variant = "ns2", max_p = {pen.pick((0.02, 0.1, 0.5, 1.0))}, w_q = {self.weight()}'
            f", gentle = {str(pen.chance(0.5)).lower()}, wait = {str(pen.chance(0.5)).lower()}"
        )

    def weight(self) -> float:
        return self.pen.pick((0.002, 0.02, 0.1, 0.5, 1.0))

    def within_limit(self) -> tuple[int, int, int]:
        """A limit and two thresholds, mostly below it."""
        pen = self.pen
        limit = pen.pick(SMALL_LIMITS)
        reach = min(limit, 10) if pen.chance(0.7) else 10
        low = pen.within(1, max(1, reach // 2))
        return limit, low, low + pen.within(1, reach)

    def red(self) -> str:
        limit, low, high = self.within_limit()
        scaled = ", byte_scaled = true" if self.pen.chance(0.2) else ""
        return (
            f'aqm = "red", limit = "{limit} packets", min_th = "{low} packets", max_th = "{high} packets"'
            f"{self.red_rest()}{scaled}"
        )

    def red_bytes(self) -> str:
        pen = self.pen
        mean = pen.pick((500, 1000, 1000, 40, 2000))
        limit, low, high = self.within_limit()
        scaled = f", byte_scaled = {str(pen.chance(0.5)).lower()}"
        return (
            f'aqm = "red", limit = "{limit} packets", min_th = "{low * mean} B", max_th = "{high * mean} B", '
            f'mean_packet = "{mean} B"{self.red_rest()}{scaled}'
        )

    def sfq(self) -> str:
        pen = self.pen
        limit, buckets = pen.pick((2, 3, 5, 8, 20, 40)), pen.pick((1, 2, 5, 16))
        return f'aqm = "ns2_sfq", limit = "{limit} packets", buckets = {buckets}'

    def drr(self) -> str:
        pen = self.pen
        limit, quantum = pen.within(1, 20) * 1500, pen.pick((40, 250, 500, 1000, 1540, 4000))
        buckets = pen.pick((1, 2, 5, 10))
        return f'aqm = "ns2_drr", limit = "{limit} B", buckets = {buckets}, flow_quantum = "{quantum} B"'

    def fq(self) -> str:
        # ns-2 has no limit for all flows together.
        return f'aqm = "ns2_fq", limit = "10000 packets", flow_limit = {self.pen.pick(SMALL_LIMITS)}'

    def pi_rest(self) -> str:
        pen = self.pen
        a = pen.pick((0.00001822, 0.0005, 0.005, 0.05))
        scaled = ", byte_scaled = true" if pen.chance(0.3) else ""
        # On the grid, its samples fall at the times of other events.
        w = pen.pick((10.0, 100.0, 500.0, 1000.0)) if self.grid else pen.pick((160.0, 170.0, 33.3, 2.5))
        return f", a = {a}, b = {a * pen.pick((0.5, 0.9, 0.99))}, w = {w}{scaled}"

    def pi(self) -> str:
        limit, low, _ = self.within_limit()
        return (
            f'aqm = "pi", variant = "ns2", limit = "{limit} packets", q_ref = "{low} packets"{self.pi_rest()}'
        )

    def pi_bytes(self) -> str:
        mean = self.pen.pick((500, 1000, 1000, 40, 2000))
        limit, low, _ = self.within_limit()
        return (
            f'aqm = "pi", variant = "ns2", limit = "{limit} packets", q_ref = "{low * 500} B", '
            f'mean_packet = "{mean} B"{self.pi_rest()}'
        )

    def rem_rest(self) -> str:
        pen = self.pen
        every = pen.pick((1, 2, 10, 100)) if self.grid else pen.pick((2, 7, 33, 250))
        return (
            f", gamma = {pen.pick((0.001, 0.01, 0.1, 1.0))}, phi = {pen.pick((1.001, 1.01, 1.1, 2.0))}, "
            f'in_weight = {pen.pick((1.0, 1.0, 0.5, 0.02))}, t_update = "{every} ms"'
        )

    def rem(self) -> str:
        pen = self.pen
        limit, target = pen.pick(SMALL_LIMITS), pen.within(0, 8)
        return (
            f'aqm = "rem", variant = "ns2", limit = "{limit} packets", b_star = "{target} packets"'
            f"{self.rem_rest()}"
        )

    def rem_bytes(self) -> str:
        pen = self.pen
        mean, limit, target = pen.pick((500, 1000, 1000, 2000)), pen.pick(SMALL_LIMITS), pen.within(0, 16)
        return (
            f'aqm = "rem", variant = "ns2", limit = "{limit} packets", b_star = "{target * 500} B", '
            f'mean_packet = "{mean} B"{self.rem_rest()}'
        )

    def threshold(self, low: int, high: int) -> str:
        max_p = self.pen.pick((0.02, 0.1, 0.4, 1.0))
        return f'{{ min_th = "{low} packets", max_th = "{high} packets", max_p = {max_p} }}'

    def rio_queue(self) -> str:
        pen = self.pen
        limit, low_out, high_out = self.within_limit()
        low_in = low_out + pen.within(0, 8)
        high_in = max(high_out, low_in + 1) + pen.within(0, 8)
        return (
            f'aqm = "rio", variant = "ns2", avg_update = "ns2", limit = "{limit} packets", '
            f"in = {self.threshold(low_in, high_in)}, out = {self.threshold(low_out, high_out)}, "
            f"w_q = {self.weight()}, "
            f"gentle = {str(pen.chance(0.3)).lower()}, wait = {str(pen.chance(0.5)).lower()}"
        )

    def dsred_queue(self) -> str:
        pen = self.pen
        tops = []
        for _ in COLOURS:
            low = pen.within(0, 8)
            tops.append(self.threshold(low, low + pen.within(1, 10)))
        levels = ", ".join(f"{colour} = {top}" for colour, top in zip(COLOURS, tops, strict=True))
        averages = pen.pick(("shared", "coupled", "decoupled"))
        return (
            f'aqm = "dsred", averages = "{averages}", limit = "{pen.pick(SMALL_LIMITS)} packets", {levels}, '
            f"w_q = {self.weight()}"
        )

    def group(self, number: int, seconds: int) -> None:
        pen = self.pen
        count = pen.pick((1, 2, 5, 10, 20)) if number == 0 else pen.pick((1, 1, 2, 4))
        first = 0 if number == 0 else pen.within(0, self.hops - 1)
        last = self.hops if number == 0 else pen.within(first + 1, self.hops)
        # RED/RIO takes unmarked packets for OUT, so nothing may come back through it.
        backwards = not self.rio and number > 0 and pen.chance(0.2)
        ends = (last, first) if backwards else (first, last)
        if backwards:
            self.traits.add("both directions")
        # With dsRED's markers, every flow has endpoints of its own, since a policer is found by them.
        hosts = self.rio or self.dsred or pen.chance(0.6)
        self.line(f'[[flows]]\nname = "g{number}"\ncount = {count}\nto = "{NODES[ends[1]]}"')
        if hosts:
            rate = pen.pick(("1.6 Mbit/s", "8 Mbit/s")) if self.grid else f"{pen.within(500, 20000)} kbit/s"
            limit = f', limit = "{pen.pick((3, 5, 100))} packets"' if pen.chance(0.3) else ""
            self.line(f'from = "H*"\njoin = {{ node = "{NODES[ends[0]]}", rate = "{rate}"{limit} }}')
            least = 2 * sum(self.delays[first:last])
            rtt = least + (20 * pen.within(0, 10) if self.grid else pen.within(0, 400))
            self.line(f'rtt = "{rtt + 2} ms"')
        else:
            self.line(f'from = "{NODES[ends[0]]}"')
        start, latest = self.start(count, seconds)
        self.line(f"start = {start}")
        self.traffic(number)
        if pen.chance(0.2):
            self.line(f'stop = "{pen.within(latest // 100 + 1, 10 * seconds - 1) * 100} ms"')
            self.traits.add("stop")
        if self.rio or self.dsred:
            self.marker()

    def start(self, count: int, seconds: int) -> tuple[str, int]:
        """The times at which flows start, and the latest of them in ms."""
        pen = self.pen
        kind = pen.pick(("at once", "uniform", "list", "every"))
        if kind == "uniform":
            return '"uniform 0..1 s"', 1000
        if kind == "list" and count > 1:
            at = [pen.within(0, 10 * seconds - 20) * 100 for _ in range(count)]
            return "[" + ", ".join(f'"{ms} ms"' for ms in at) + "]", max(at)
        if kind == "every":
            every = pen.pick((1, 10, 100))
            return f'{{ every = "{every} ms" }}', every * (count - 1)
        at_once = pen.pick((0, 0, 100, 500))
        return f'"{at_once} ms"', at_once

    def traffic(self, number: int) -> None:
        pen = self.pen
        kind = pen.pick(("bulk", "bulk", "bulk", "transfer", "cbr", "bulk" if number == 0 else "datagrams"))
        if kind == "transfer":
            size = pen.pick(("1 packets", "2 packets", "5 packets", "20 packets", "30 kB", "100 kB"))
            sizes = ', sizes = "pareto"' if pen.chance(0.3) else ""
            self.line(f'traffic = {{ kind = "transfer", size = "{size}"{sizes} }}')
            self.traits.add("transfers")
        elif kind == "cbr":
            rate = pen.pick((80, 160, 400, 800)) if self.grid else pen.within(20, 900)
            packet = pen.pick((1000, 500, 200, 64, 1040))
            self.line(f'traffic = {{ kind = "cbr", rate = "{rate} kbit/s", packet = "{packet} B" }}')
            self.traits.add("CBR")
        elif kind == "datagrams":
            self.line(f"traffic = {{ {pen.pick(DATAGRAMS)} }}")
            self.traits.add("datagrams at drawn times")
        if kind in ("bulk", "transfer"):
            self.line(f"tcp = {{ {self.tcp()} }}")

    def marker(self) -> None:
        pen = self.pen
        rate = pen.pick((50, 100, 200, 400, 800))
        if self.rio:
            text = f'kind = "token_bucket", depth = "{pen.within(2, 8)} packets", conforms = "more_than"'
            if pen.chance(0.3):
                text += ", starts_full = false"
            self.traits.add("tagger")
        else:
            kind = pen.pick(("token_bucket", "token_bucket", "tsw2cm", "tsw3cm"))
            text = (
                f'kind = "{kind}", '
                + {
                    "token_bucket": f'depth = "{pen.within(1, 8)} packets", conforms = "at_least"',
                    "tsw2cm": f'variant = "ns2", win_length = "{pen.pick((0.1, 0.5, 1))} s"',
                    "tsw3cm": f'variant = "ns2", ptr = "{rate + pen.pick((100, 400))} kbit/s"',
                }[kind]
            )
            self.traits.add(kind)
        self.line(f'contract = "{rate} kbit/s"\nmarker = {{ {text} }}')
