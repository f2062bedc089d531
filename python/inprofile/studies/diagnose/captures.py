"""Captures as tcpdump, Wireshark and `inprofile run --pcap` write them: pcap and pcapng, read.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. Only where each record lies and when it was is read
here; headers are read in `segments`. Non-goal: compressed captures.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._input import read_file

MOST_BYTES = 2 << 30
"""The largest capture that is read."""

_MICRO, _NANO = 0xA1B2C3D4, 0xA1B23C4D
_SECTION, _INTERFACE, _SIMPLE, _PACKET, _OLD_PACKET = 0x0A0D0D0A, 1, 3, 6, 2
_BYTE_ORDER = 0x1A2B3C4D
_COMPRESSED = {b"\x1f\x8b": "gzip -d", b"\xfd7zXZ": "xz -d", b"(\xb5/\xfd": "zstd -d", b"BZh": "bzip2 -d"}
_MOST_BLOCK = 64 << 20
_MOST_TIME = 1 << 62
"""Nanoseconds: a century and a half either way of 1970."""


class Unreadable(ValueError):
    """What cannot be diagnosed: the file, the packet's number where there is one, and the remedy."""


@dataclass(frozen=True)
class Records:
    """Where the packets of a capture lie, in the order of the file."""

    name: str
    data: np.ndarray[Any, np.dtype[np.uint8]]
    """The file."""
    number: np.ndarray[Any, np.dtype[np.int64]]
    """The number of each packet as Wireshark counts, from 1."""
    start: np.ndarray[Any, np.dtype[np.int64]]
    captured: np.ndarray[Any, np.dtype[np.int64]]
    """Bytes of it that the file has."""
    length: np.ndarray[Any, np.dtype[np.int64]]
    """Bytes that it had."""
    time: np.ndarray[Any, np.dtype[np.int64]]
    """Nanoseconds."""
    link: np.ndarray[Any, np.dtype[np.int64]]
    """LINKTYPE."""
    interface: np.ndarray[Any, np.dtype[np.int64]]
    interfaces: tuple[str, ...]
    """Their names; empty texts where the file has none."""
    resolution: float
    """The coarsest unit of its times, in seconds."""
    notes: tuple[str, ...]


@dataclass
class _Rows:
    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    resolution: float = 0.0


def records(path: str | Path, *, partial: bool = False) -> Records:
    """The packets of a capture. `partial`: of one that is cut off, those before the cut.

    Raises Unreadable for what is no capture, is cut off or has no times; UnfitFile, OSError as `read_file`.
    """
    data = read_file(path, MOST_BYTES)
    name = str(path)
    if not data:
        raise Unreadable(f"{name} is empty: write a capture with tcpdump -i DEV -s 128 -w FILE tcp")
    for magic, how in _COMPRESSED.items():
        if data.startswith(magic):
            raise Unreadable(f"{name} is compressed: unpack it with {how}")
    found, notes = _Rows(), []
    try:
        for row in _blocks(name, data, found):
            found.rows.append(row)
    except _Cut as cut:
        whole = len(found.rows)
        if not partial or not whole:
            rest = f"diagnose the {whole:,} before it with --partial" if whole else "capture it again"
            raise Unreadable(f"{name}: packet {whole + 1} is cut off: {cut}; {rest}") from None
        notes.append(f"the file is cut off: packet {whole + 1} and what followed are missing")
    if not found.rows:
        raise Unreadable(
            f"{name} has no packet: capture while a transfer runs, tcpdump -i DEV -s 128 -w FILE tcp"
        )
    columns = np.array(found.rows, dtype=np.int64).T
    number, start, captured, length, time, link, interface = columns
    if len(time) > 1 and np.all(time == time[0]):
        raise Unreadable(
            f"{name}: packets 1 to {len(time):,} have all the same time: rates need times; capture again with"
            " tcpdump or Wireshark, and do not strip or rewrite the times"
        )
    late = np.flatnonzero(np.diff(time) < -1_000_000_000)
    if len(late):
        raise Unreadable(
            f"{name}: packet {number[late[0] + 1]} is {-np.diff(time)[late[0]] / 1e9:.3g} s earlier than"
            " the one"
            " before it: put them in order with reordercap FILE ORDERED"
        )
    return Records(
        name,
        np.frombuffer(data, dtype=np.uint8),
        number,
        start,
        captured,
        length,
        time,
        link,
        interface,
        tuple(found.names),
        found.resolution,
        tuple(notes),
    )


class _Cut(Exception):
    """The file ends within a packet."""


def _blocks(name: str, data: bytes, found: _Rows) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """Number, start, bytes there, bytes it had, time, link type, interface of each packet."""
    head = data[:4]
    for order in "<>":
        magic = struct.unpack(f"{order}I", head)[0] if len(head) == 4 else 0
        if magic in (_MICRO, _NANO):
            return _pcap(name, data, order, magic == _NANO, found)
    if head == b"\x0a\x0d\x0d\x0a":
        return _pcapng(name, data, found)
    shown = head.hex(" ")
    raise Unreadable(
        f"{name} is no capture: it begins with {shown}; pcap, pcapng, iperf3's JSON (iperf3 --json) and"
        " experiment files are read"
    )


def _pcap(
    name: str, data: bytes, order: str, nano: bool, found: _Rows
) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """draft-ietf-opsawg-pcap §4 and §5."""
    if len(data) < 24:
        raise Unreadable(f"{name} ends within its header, after {len(data)} of 24 bytes: capture it again")
    link = struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF
    found.names.append("")
    found.resolution = 1e-9 if nano else 1e-6
    unit = 1 if nano else 1000
    at, number, header = 24, 0, struct.Struct(f"{order}IIII")
    while at < len(data):
        if at + 16 > len(data):
            raise _Cut(f"the file ends after {len(data) - at} of the 16 bytes of its header")
        seconds, fraction, captured, length = header.unpack_from(data, at)
        number += 1
        if captured > _MOST_BLOCK:
            raise Unreadable(
                f"{name}: packet {number} claims {captured:,} captured bytes: the file is damaged there;"
                f" keep what is before it: editcap -r FILE KEPT 1-{number - 1}"
            )
        at += 16
        if at + captured > len(data):
            raise _Cut(f"the file has {len(data) - at} of its {captured} bytes")
        yield number, at, captured, length, seconds * 1_000_000_000 + fraction * unit, link, 0
        at += captured


def _pcapng(name: str, data: bytes, found: _Rows) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """draft-ietf-opsawg-pcapng §4: sections, interfaces, and Enhanced Packet Blocks."""
    at, number, order = 0, 0, "<"
    links: list[tuple[int, int, float]] = []
    first = 0
    while at < len(data):
        if at + 12 > len(data):
            raise _Cut(f"the file ends {len(data) - at} bytes into a block")
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            magic = data[at + 8 : at + 12]
            order = "<" if struct.unpack("<I", magic)[0] == _BYTE_ORDER else ">"
            links, first = [], len(found.names)
        kind, total = struct.unpack_from(f"{order}II", data, at)
        if total < 12 or total % 4 or total > _MOST_BLOCK:
            raise Unreadable(
                f"{name}: the block after packet {number} claims {total:,} bytes: the file is damaged there;"
                f" keep what is before it: editcap -r FILE KEPT 1-{number}"
            )
        if at + total > len(data):
            raise _Cut(f"the file has {len(data) - at} of the {total} bytes of its block")
        body = at + 8
        if kind == _INTERFACE:
            link, names, unit, offset = _interface(data, body, at + total - 4, order)
            links.append((link, offset, unit))
            found.names.append(names)
            found.resolution = max(found.resolution, unit)
        elif kind == _SIMPLE:
            raise Unreadable(
                f"{name}: packet {number + 1} has no time (a Simple Packet Block): rates need times;"
                " capture again"
                " with tcpdump or Wireshark, which write them"
            )
        elif kind in (_PACKET, _OLD_PACKET):
            number += 1
            interface, high, low, captured, length = struct.unpack_from(f"{order}IIIII", data, body)
            if kind == _OLD_PACKET:
                interface &= 0xFFFF if order == "<" else 0xFFFFFFFF >> 16
            if interface >= len(links) or captured > total - 32:
                raise Unreadable(
                    f"{name}: packet {number} is damaged (interface {interface}, {captured:,} bytes);"
                    f" keep what is before it: editcap -r FILE KEPT 1-{number - 1}"
                )
            link, offset, unit = links[interface]
            ticks = high << 32 | low
            time = ticks if unit == 1e-9 else round(ticks * unit * 1e9)
            if abs(time + offset) > _MOST_TIME:
                raise Unreadable(
                    f"{name}: packet {number} has a time that no clock shows: the file is damaged there;"
                    f" keep what is before it: editcap -r FILE KEPT 1-{number - 1}"
                )
            yield number, body + 20, captured, length, time + offset, link, first + interface
        at += total


def _interface(data: bytes, body: int, end: int, order: str) -> tuple[int, str, float, int]:
    """§4.2: link type, name, unit of time in seconds, offset in nanoseconds."""
    link = struct.unpack_from(f"{order}H", data, body)[0]
    name, unit, offset, at = "", 1e-6, 0, body + 8
    while at + 4 <= end:
        code, size = struct.unpack_from(f"{order}HH", data, at)
        value = data[at + 4 : at + 4 + size]
        if code == 0:
            break
        if code == 2:
            name = value.decode("utf-8", "replace")
        elif code == 9 and size == 1:
            unit = 2.0 ** -(value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** -value[0]
        elif code == 14 and size == 8:
            offset = struct.unpack(f"{order}q", value)[0] * 1_000_000_000
        at += 4 + (size + 3) // 4 * 4
    return link, name, unit, offset
