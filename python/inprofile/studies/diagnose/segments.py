"""TCP's segments of a capture: Ethernet with VLAN tags or PPPoE, raw IP, Linux's cooked frames; IPv4, IPv6.

A column each, in the order of the file, so that a million packets take a second. Sizes count from the IP
header on, as policers of routers and of `inprofiled` do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .captures import Records, Unreadable

Array = np.ndarray[Any, np.dtype[Any]]

_ETHERNET, _NULL, _LOOP, _RAW, _SLL, _SLL2 = 1, 0, 108, (12, 14, 101, 228, 229), 113, 276
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS, _PPPOE = (0x8100, 0x88A8, 0x9100), 0x8864
_TCP, _UDP = 6, 17
_OPTIONS = 40
"""Bytes that options may take: so many steps at most."""
FIN, SYN, RST, ACK = 1, 2, 4, 16


@dataclass(frozen=True)
class Segments:
    """TCP's segments, a column each."""

    name: str
    number: Array
    """As Wireshark counts."""
    time: Array
    """Seconds from the first packet of the capture."""
    connection: Array
    """Which connection, from 0."""
    way: Array
    """0 from the end with the lower address and port, 1 from the other."""
    size: Array
    """Bytes from the IP header on."""
    payload: Array
    seq: Array
    ack: Array
    flags: Array
    tsval: Array
    """TCP's timestamp, -1 where there is none."""
    mss: Array
    """The MSS option of a SYN, 0 where there is none."""
    sacks: Array
    """Up to four SACK blocks of each, as left and right edges; -1 where there is none."""
    ends: tuple[tuple[str, str], ...]
    """Of each connection both ends as texts, in the order of `way`."""
    resolution: float
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.time)

    def where(self, mask: Array) -> Segments:
        """Those of a mask."""
        columns = ("number", "time", "connection", "way", "size", "payload", "seq", "ack", "flags", "tsval")
        picked = {name: getattr(self, name)[mask] for name in (*columns, "mss", "sacks")}
        return Segments(self.name, **picked, ends=self.ends, resolution=self.resolution, notes=self.notes)


def segments(found: Records) -> Segments:
    """The TCP segments. Raises Unreadable where there is none, or where headers are not in the file."""
    notes = list(found.notes)
    chosen = _one_interface(found, notes)
    data, start, captured = found.data, found.start[chosen], found.captured[chosen]

    def u8(at: Array) -> Array:
        return data[np.minimum(at, len(data) - 1)].astype(np.int64)

    def u16(at: Array) -> Array:
        return u8(at) << 8 | u8(at + 1)

    def u32(at: Array) -> Array:
        return u16(at) << 16 | u16(at + 2)

    ip, kind = _network(found.link[chosen], start, u8, u16)
    v4, v6 = kind == _IPV4, kind == _IPV6
    header = np.where(v4, (u8(ip) & 15) * 4, 40)
    protocol = np.where(v4, u8(ip + 9), np.where(v6, u8(ip + 6), 0))
    # Of fragments only the first has TCP's header, and none says how much was sent.
    whole = ~v4 | (u16(ip + 6) & 0x1FFF == 0)
    total = np.where(v4, u16(ip + 2), 40 + u16(ip + 4))
    wire = found.length[chosen] - (ip - start)
    total = np.where(total == np.where(v4, 0, 40), wire, total)
    is_tcp = (v4 | v6) & (protocol == _TCP) & whole
    if not is_tcp.any():
        raise Unreadable(_no_tcp(found.name, v4 | v6, protocol))
    tcp = ip + header
    short = is_tcp & (tcp + 20 > start + captured)
    if short.any():
        first = np.flatnonzero(short)[0]
        raise Unreadable(
            f"{found.name}: packet {found.number[chosen][first]} has {captured[first]} bytes in the"
            " file, which is"
            " less than its headers: capture with tcpdump -s 128"
        )
    take = np.flatnonzero(is_tcp)
    ip, tcp, total, header = ip[take], tcp[take], total[take], header[take]
    start, captured = start[take], captured[take]
    offset = (u8(tcp + 12) >> 4) * 4
    connection, way, ends = _connections(data, ip, tcp, v6[take], u16)
    tsval, mss, sacks = _options(tcp, np.minimum(tcp + offset, start + captured), u8, u16, u32)
    time = found.time[chosen][take]
    return Segments(
        found.name,
        found.number[chosen][take],
        (time - found.time[chosen][0]) / 1e9,
        connection,
        way,
        total,
        np.maximum(0, total - header - offset),
        u32(tcp + 4),
        u32(tcp + 8),
        u8(tcp + 13),
        tsval,
        mss,
        sacks,
        ends,
        found.resolution,
        tuple(notes),
    )


def _one_interface(found: Records, notes: list[str]) -> Array:
    """The packets of the busiest interface: the same packet at two would be taken for sent twice."""
    drops = {i for i, name in enumerate(found.interfaces) if name.endswith(" drops")}
    counts = Counter(int(i) for i in found.interface if i not in drops)
    if not counts:
        raise Unreadable(
            f"{found.name} has the drops of a queue alone: give the capture of what was sent or received"
        )
    busiest = counts.most_common(1)[0][0]
    if len(counts) > 1:
        name = found.interfaces[busiest] or f"number {busiest}"
        others = sum(counts.values()) - counts[busiest]
        notes.append(f"{others:,} packets of other interfaces than {name} are left out")
    return np.flatnonzero(found.interface == busiest)


def _network(link: Array, start: Array, u8: Any, u16: Any) -> tuple[Array, Array]:
    """Where IP begins, and the EtherType."""
    at, kind = start.copy(), np.zeros(len(start), dtype=np.int64)
    for one in np.unique(link):
        rows = link == one
        if one == _ETHERNET:
            kind[rows], at[rows] = u16(start[rows] + 12), start[rows] + 14
        elif one == _SLL:
            kind[rows], at[rows] = u16(start[rows] + 14), start[rows] + 16
        elif one == _SLL2:
            kind[rows], at[rows] = u16(start[rows]), start[rows] + 20
        elif one in (_NULL, _LOOP):
            at[rows] = start[rows] + 4
        if one in (_NULL, _LOOP, *_RAW):
            kind[rows] = np.where(u8(at[rows]) >> 4 == 6, _IPV6, _IPV4)
    for _ in range(3):
        tagged = np.isin(kind, _VLANS)
        kind = np.where(tagged, u16(at + 2), kind)
        at = np.where(tagged, at + 4, at)
    session = kind == _PPPOE
    inner = u16(at + 6)
    kind = np.where(session, np.where(inner == 0x0021, _IPV4, np.where(inner == 0x0057, _IPV6, 0)), kind)
    return np.where(session, at + 8, at), kind


def _no_tcp(name: str, ip: Array, protocol: Array) -> str:
    packets, udp = len(ip), int((ip & (protocol == _UDP)).sum())
    what = f"{udp:,} of its {packets:,} packets are UDP" if udp else f"of its {packets:,} packets none is"
    return (
        f"{name} has no TCP segment: {what}; losses are found by TCP's sequence numbers: capture a TCP"
        " transfer,"
        " or give iperf3's JSON (iperf3 --json, also with -u)"
    )


def _connections(data: Array, ip: Array, tcp: Array, v6: Array, u16: Any) -> tuple[Array, Array, Any]:
    """Of each segment its connection and which way; both ends of each connection."""
    width = np.where(v6, 16, 4)
    sides = []
    for nth in (0, 1):
        at = np.where(v6, ip + 8 + 16 * nth, ip + 12 + 4 * nth)
        rows = np.zeros((len(ip), 18), dtype=np.uint8)
        for i in range(16):
            rows[:, i] = np.where(i < width, data[np.minimum(at + i, len(data) - 1)], 0)
        port = u16(tcp + 2 * nth)
        rows[:, 16], rows[:, 17] = port >> 8, port & 255
        sides.append(np.ascontiguousarray(rows).view("V18").ravel())
    names, index = np.unique(np.concatenate(sides), return_inverse=True)
    source, target = index[: len(ip)], index[len(ip) :]
    low, high = np.minimum(source, target), np.maximum(source, target)
    pairs, connection = np.unique(low * len(names) + high, return_inverse=True)
    six = np.zeros(len(names), dtype=bool)
    six[source], six[target] = v6, v6
    ends = [
        tuple(_end(names[int(i)].tobytes(), bool(six[int(i)])) for i in divmod(int(pair), len(names)))
        for pair in pairs
    ]
    return connection, (source != low).astype(np.int64), tuple(ends)


def _end(raw: bytes, six: bool) -> str:
    import ipaddress

    port = raw[16] << 8 | raw[17]
    return (
        f"[{ipaddress.IPv6Address(raw[:16])}]:{port}" if six else f"{ipaddress.IPv4Address(raw[:4])}:{port}"
    )


def _options(tcp: Array, end: Array, u8: Any, u16: Any, u32: Any) -> tuple[Array, Array, Array]:
    """Timestamps (RFC 7323 §3), MSS (RFC 9293 §3.7.1) and SACK blocks (RFC 2018 §3), all segments at once."""
    count = len(tcp)
    tsval, mss = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    sacks = np.full((count, 4, 2), -1, dtype=np.int64)
    at = tcp + 20
    left = np.flatnonzero(at < end)
    for _ in range(_OPTIONS):
        if not len(left):
            break
        kind = u8(at[left])
        size = np.where(kind == 1, 1, np.maximum(2, u8(at[left] + 1)))
        fits = at[left] + size <= end[left]
        stamps = left[(kind == 8) & (size == 10) & fits]
        tsval[stamps] = u32(at[stamps] + 2)
        sizes = left[(kind == 2) & (size == 4) & fits]
        mss[sizes] = u16(at[sizes] + 2)
        blocks = (kind == 5) & fits
        for nth in range(4):
            has = left[blocks & (size >= 10 + 8 * nth)]
            sacks[has, nth, 0] = u32(at[has] + 2 + 8 * nth)
            sacks[has, nth, 1] = u32(at[has] + 6 + 8 * nth)
        at[left] += size
        left = left[(kind != 0) & (at[left] < end[left])]
    return tsval, mss, sacks


def towards(found: Segments, bytes_of: Array, way: Array) -> Array:
    """Of each connection the way that lies on the same side as that of the largest.

    Hosts that share an address with a sender of the largest connection are on its side.
    """
    side: dict[str, int] = {}
    result = way.copy()
    for one in np.argsort(-bytes_of.sum(axis=1)):
        hosts = [end.rsplit(":", 1)[0] for end in found.ends[one]]
        if hosts[0] == hosts[1]:
            # A host's own ends are told by their ports alone.
            continue
        known = [side.get(host) for host in hosts]
        if known[0] is not None or known[1] is not None:
            result[one] = 0 if known[0] == 1 or known[1] == 0 else 1
        for nth, host in enumerate(hosts):
            side.setdefault(host, 1 if nth == result[one] else 0)
    return result


def unwrapped(numbers: Array, from_: int, base: int) -> Array:
    """Sequence numbers without their wrap, near `base`, which `from_` is."""
    first = base + int(np.int32(np.uint32((int(numbers[0]) - from_) & 0xFFFFFFFF)))
    steps = np.diff(numbers).astype(np.int64) & 0xFFFFFFFF
    steps = np.where(steps >= 1 << 31, steps - (1 << 32), steps)
    return first + np.concatenate([[0], np.cumsum(steps)])
