"""Results, and captures of one TCP transfer through a token bucket, made by hand."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from inprofile.run.results import Provenance, Result

EMPTY: dict[str, list[tuple[str, pa.DataType]]] = {
    "markers": [("seed", pa.uint64()), ("place", pa.string()), ("kind", pa.string())],
    "signals": [("seed", pa.uint64()), ("from", pa.string()), ("to", pa.string())],
    "queues": [("seed", pa.uint64()), ("queue", pa.string())],
    "series": [
        ("seed", pa.uint64()),
        ("monitor", pa.string()),
        ("what", pa.string()),
        ("t", pa.float64()),
        ("value", pa.float64()),
    ],
    "verdicts": [
        ("seed", pa.uint64()),
        ("time_ps", pa.uint64()),
        ("packet", pa.uint64()),
        ("flow", pa.string()),
        ("point", pa.string()),
        ("verdict", pa.string()),
        ("cause", pa.string()),
        ("why", pa.string()),
    ],
    "downloads": [("seed", pa.uint64()), ("flow", pa.string()), ("group", pa.string())],
    "delays": [
        ("seed", pa.uint64()),
        ("measure", pa.string()),
        ("point", pa.string()),
        ("group", pa.string()),
        ("colour", pa.string()),
        *((n, pa.float64()) for n in ("count", "min", "mean", "p50", "p90", "p99", "p99_9", "max")),
    ],
    "cdf": [("seed", pa.uint64()), ("measure", pa.string())],
    "drops": [
        ("seed", pa.uint64()),
        ("flow", pa.string()),
        ("place", pa.string()),
        ("cause", pa.string()),
        ("in", pa.uint64()),
        ("out", pa.uint64()),
        ("red", pa.uint64()),
    ],
}


def _table(**keys: object) -> str:
    """Keys of an experiment file; numbers, lists and tables as they are, other values as texts."""
    said = {
        key: str(x) if str(x)[:1] in "[{" or not isinstance(x, str) else f'"{x}"' for key, x in keys.items()
    }
    return "".join(f"{key} = {value}\n" for key, value in said.items())


def customers(name: str, count: int, rtt: str, access: str = "100 Mbit/s", **more: str) -> str:
    """A group of flows over `uplink`."""
    join = f'{{ node = "edge", rate = "{access}" }}'
    return "[[flows]]\n" + _table(
        name=name, count=count, **{"from": "H*"}, join=join, to="core", rtt=rtt, **more
    )


def uplink(title: str, measured: tuple[int, int], rate: str, queue: str, *tables: str, **more: object) -> str:
    """An experiment's file: one link of this rate, measured between these seconds, and further tables."""
    begin, end = measured
    times = {"duration": f"{end} s", "measure": f'{{ from = "{begin} s", to = "{end} s" }}'}
    aqm, limit = queue.split(" ", 1)
    link = {"name": "uplink", "from": "edge", "to": "core", "rate": rate, "delay": "2 ms"}
    link["queue"] = f'{{ aqm = "{aqm}", limit = "{limit}" }}'
    return "\n".join([_table(title=title, **times, **more), "[[links]]\n" + _table(**link), *tables])


def flow(seed: int, name: str, throughput: float, **more: Any) -> dict[str, Any]:
    """A row of `flows`."""
    return {
        "seed": seed,
        "flow": name,
        "group": name.partition(".")[0],
        "contract": 250e3,
        "rtt": 0.03,
        "start": 0.0,
        "throughput": throughput,
        "goodput": throughput / 1.04,
        "sent_in": 60,
        "sent_out": 40,
        "received_in": 60,
        "received_out": 30,
        "sent": 200,
        "received": 180,
        "dropped": 15,
        "in_flight": 5,
        "timeouts": 1,
        "fast_retransmits": 6,
        "retransmissions": 20,
        **more,
    }


def result(
    flows: list[dict[str, Any]], title: str = "made by hand", **tables: list[dict[str, Any]]
) -> Result:
    """A result of these flows; other tables are empty unless given."""
    seeds = sorted({row["seed"] for row in flows})
    metrics = [
        {
            "seed": s,
            "name": "fi",
            "unit": "1",
            "value": 0.9 + s / 100,
            "point": "bottleneck",
            "header": "payload",
        }
        for s in seeds
    ]
    made = {
        "metrics": pa.Table.from_pylist(tables.get("metrics", metrics)),
        "flows": pa.Table.from_pylist(flows),
        **{
            name: pa.Table.from_pylist(tables.get(name, []), pa.schema(fields))
            for name, fields in EMPTY.items()
        },
    }
    experiment = json.dumps({"title": title})
    effective = {"title": title, "measure": {"from": "100 s", "to": "200 s", "at": "bottleneck"}}
    return Result(made, Provenance(title, experiment, effective, tuple(seeds)))


Array = np.ndarray[Any, np.dtype[Any]]
_MSS, _RTT = 1448, 0.04
_BACK = (1, 0)


@dataclass(frozen=True)
class Row:
    """A segment of the capture."""

    time: float
    back: bool
    seq: int
    ack: int
    payload: int
    sack: tuple[int, int] | None = None


@dataclass(frozen=True)
class Frames:
    """The segments of a capture, in order."""

    rows: tuple[Row, ...]

    def data(self) -> Frames:
        """One direction."""
        return Frames(tuple(row for row in self.rows if not row.back))

    def acks(self) -> Frames:
        """The other."""
        return Frames(tuple(row for row in self.rows if row.back))

    def still(self) -> Frames:
        """Without times."""
        return Frames(tuple(replace(row, time=1.0) for row in self.rows))

    def backwards(self) -> Frames:
        """The last ones first."""
        half = len(self.rows) // 2
        return Frames(self.rows[half:] + self.rows[:half])

    def first(self, count: int) -> Frames:
        """So many."""
        return Frames(self.rows[:count])

    def write(self, place: Path, form: str) -> Path:
        """As a file of this form."""
        big = form.endswith("-big")
        order = ">" if big else "<"
        link = {"sll": 113, "raw": 101}.get(form, 1)
        frames = [(row.time, _frame(row, form)) for row in self.rows]
        if form.startswith("pcapng") or form == "simple":
            place.write_bytes(_pcapng(frames, order, simple=form == "simple"))
            return place
        nano = form in ("pcap-nano", "ipv6")
        out = [struct.pack(f"{order}IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link)]
        for time, frame in frames:
            ticks = round(time * (1e9 if nano else 1e6))
            seconds, rest = divmod(ticks, 10**9 if nano else 10**6)
            kept = frame[:40] if form == "snap40" else frame
            out.append(struct.pack(f"{order}IIII", seconds, rest, len(kept), len(frame)) + kept)
        place.write_bytes(b"".join(out))
        return place


def bucket_passes(time: Array, size: Array, rate: float, burst: float) -> Array:
    """A token bucket as RFC 2697 §3 writes it, step by step; `rate` in bytes a second."""
    tokens, last, passed = burst, float(time[0]), []
    for t, s in zip(time.tolist(), size.tolist(), strict=True):
        tokens, last = min(burst, tokens + rate * (t - last)), t
        passed.append(tokens >= s)
        tokens -= s if passed[-1] else 0
    return np.array(passed)


def transfer(
    rate: float, burst: float, seed: int, isn: int = 1000, seconds: float = 12.0, again_faster: float = 1.0
) -> Frames:
    """A sender between half and twice the rate, which sends again what was lost a round trip later.

    `again_faster`: by so much sooner the acknowledgement of what was sent again comes.
    """
    chance = np.random.default_rng(seed)
    tokens, last, now, following = burst, 0.0, 0.01, 0
    again: list[tuple[float, int]] = []
    rows: list[Row] = []
    missing: set[int] = set()
    while now < seconds:
        speed = rate / 8 * (1.25 + 0.75 * np.sin(2 * np.pi * now / 1.5))
        if again and again[0][0] <= now:
            nth, rtt = again.pop(0)[1], _RTT / again_faster
        else:
            nth, following, rtt = following, following + 1, _RTT
        rows.append(Row(now, False, isn + nth * _MSS, 1, _MSS))
        tokens, last = min(burst, tokens + rate / 8 * (now - last)), now
        arrives = now + rtt + float(chance.uniform(0, 0.0005))
        if tokens >= _MSS + 52:
            tokens -= _MSS + 52
            missing.discard(nth)
            low = min(missing, default=following)
            sack = (isn + nth * _MSS, isn + (nth + 1) * _MSS) if nth > low else None
            rows.append(Row(arrives, True, 1, isn + low * _MSS, 0, sack))
        else:
            missing.add(nth)
            again.append((now + 1.3 * _RTT, nth))
        now += (_MSS + 52) / speed
    return Frames(tuple(sorted(rows, key=lambda row: row.time)))


def _frame(row: Row, form: str) -> bytes:
    ports = (5001, 40_000) if row.back else (40_000, 5001)
    stamp = int(1000 * row.time) & 0xFFFFFFFF
    options = struct.pack(">BBBBII", 1, 1, 8, 10, stamp, 0)
    if row.sack is not None:
        options += struct.pack(">BBBBII", 1, 1, 5, 10, *(edge & 0xFFFFFFFF for edge in row.sack))
    words = (20 + len(options)) // 4
    numbers = (row.seq & 0xFFFFFFFF, row.ack & 0xFFFFFFFF)
    tcp = struct.pack(">HHIIBBHHH", *ports, *numbers, words << 4, 16, 8000, 0, 0) + options
    body = tcp + bytes(row.payload)
    ends = (
        (b"\x0a\x00\x00\x02", b"\x0a\x00\x00\x01") if row.back else (b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02")
    )
    protocol = 17 if form == "udp" else 6
    if form == "ipv6":
        packet = struct.pack(">IHBB", 6 << 28, len(body), protocol, 64)
        packet += b"".join(bytes(12) + end for end in ends)
        kind = 0x86DD
    else:
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0) + b"".join(ends)
        kind = 0x0800
    packet += body
    # Headers are enough, as tcpdump -s 128 keeps them; lengths are the whole.
    if form == "raw":
        return packet
    if form == "sll":
        return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), kind) + packet
    ethernet = bytes(12)
    if form == "vlan":
        ethernet += struct.pack(">HH", 0x8100, 7)
    if form == "pppoe":
        return ethernet + struct.pack(">HBBHHH", 0x8864, 0x11, 0, 1, len(packet) + 2, 0x0021) + packet
    return ethernet + struct.pack(">H", kind) + packet


def _block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


def _pcapng(frames: list[tuple[float, bytes]], order: str, simple: bool) -> bytes:
    head = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    out = [_block(order, 0x0A0D0D0A, head), _block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0))]
    for time, frame in frames:
        if simple:
            out.append(_block(order, 3, struct.pack(f"{order}I", len(frame)) + frame))
            continue
        high, low = divmod(round(time * 1e6), 1 << 32)
        out.append(
            _block(order, 6, struct.pack(f"{order}IIIII", 0, high, low, len(frame), len(frame)) + frame)
        )
    return b"".join(out)
