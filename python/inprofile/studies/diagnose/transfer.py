"""A transfer of this host's own TCP, captured while it goes: what `inprofile diagnose --live` looks at.

The capture is of the IP packets of its connections at the interface that they leave by (an AF_PACKET socket,
as tcpdump has; it needs root or CAP_NET_RAW). At the other end anything will do that takes what comes:
`inprofile diagnose --sink PORT`, or `nc -l PORT > /dev/null`.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

from .captures import Unreadable

_ALL = 0x0003
_SNAPLEN = 192
"""Bytes that are kept of a packet: IP's and TCP's headers with all of their options."""
_RAW_IP = 101
_TIMESTAMPNS = 35
_STATISTICS = 6
_MOST_BUFFER = 64 << 20
_PACING_RATE = 47
_LOOPBACK = 772
_FASTEST = 300_000_000 // 8
"""Bytes a second that it sends at most: a capture of more would miss packets."""
_PIECE = bytes(1 << 18)
_TAIL = 0.5
"""Seconds for which acknowledgements are still looked for."""


def endpoint(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[ADDRESS]:PORT`.

    Raises ValueError with what to write instead.

    >>> endpoint("10.0.0.2:5001"), endpoint("[fd00::2]:5001")
    (('10.0.0.2', 5001), ('fd00::2', 5001))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text} is no HOST:PORT: write 192.0.2.1:5001, or [2001:db8::1]:5001")
    return host.removeprefix("[").removesuffix("]"), int(port)


def captured(
    to: tuple[str, int], seconds: float, congestion: str | None, place: Path, connections: int = 1
) -> None:
    """Send to `to` for so many seconds, at most 300 Mbit/s, and write the packets of that as a pcap.

    Raises Unreadable with the remedy: nobody there, no right to capture, packets that the capture missed.
    """
    with _packet_socket() as tap, _connected(to, congestion, seconds, connections) as (senders, tap_filter):
        tap_filter.start(tap, place)
        try:
            _send(senders, seconds)
        except OSError as error:
            raise Unreadable(f"{_named(to)} ended the transfer: {error.strerror}") from None
        finally:
            tap_filter.stop()
    if tap_filter.missed:
        raise Unreadable(
            f"the capture missed {tap_filter.missed} packets, which would look like losses: "
            "try again on an idle host, or capture with tcpdump and give that"
        )
    if tap_filter.kept == 0:
        raise Unreadable("no packet of the transfer was seen: is its interface in another namespace?")


def _send(senders: list[socket.socket], seconds: float) -> None:
    """As much as each takes, for so long."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        for sender in senders:
            sender.setblocking(False)
            ready.register(sender, selectors.EVENT_WRITE)
        while (left := end - time.monotonic()) > 0:
            for key, _ in ready.select(left):
                # What is writable takes something.
                key.fileobj.send(_PIECE)  # type: ignore[union-attr]


def listening(port: int) -> socket.socket:
    """A socket on `port`, for `drain`. Raises Unreadable where the port is taken."""
    try:
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=16)
    except OSError as error:
        raise Unreadable(f"{error.strerror}: name another port than {port}") from None


def drain(listener: socket.socket) -> None:
    """Take what comes, and throw it away, until interrupted."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_swallow, args=(connection,), daemon=True).start()


def _swallow(connection: socket.socket) -> None:
    room = bytearray(1 << 18)
    with connection:
        try:
            while connection.recv_into(room):
                pass
        except ConnectionError:
            # The sender has gone; what it sent was thrown away anyway.
            return


def _named(to: tuple[str, int]) -> str:
    return f"[{to[0]}]:{to[1]}" if ":" in to[0] else f"{to[0]}:{to[1]}"


def _packet_socket() -> socket.socket:
    try:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))
    except PermissionError:
        raise Unreadable(
            "to capture one has to be root, or have CAP_NET_RAW: sudo inprofile diagnose --live …"
        ) from None
    # SO_RCVBUFFORCE; without CAP_NET_ADMIN what net.core.rmem_max allows has to do.
    try:
        tap.setsockopt(socket.SOL_SOCKET, 33, _MOST_BUFFER)
    except PermissionError:
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _MOST_BUFFER)
    tap.setsockopt(socket.SOL_SOCKET, _TIMESTAMPNS, 1)
    return tap


class _connected:  # noqa: N801 - used as a function
    """Connections to `to`, with the capture of them, which begins before their SYNs."""

    def __init__(self, to: tuple[str, int], congestion: str | None, seconds: float, count: int) -> None:
        self._to, self._congestion, self._seconds, self._count = to, congestion, seconds, count
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> tuple[list[socket.socket], _Capture]:
        try:
            found = socket.getaddrinfo(*self._to, type=socket.SOCK_STREAM)[0]
        except socket.gaierror as error:
            raise Unreadable(f"{self._to[0]} has no address: {error.strerror}") from None
        try:
            for _ in range(self._count):
                self._connect(*found)
        except Unreadable:
            self.__exit__()
            raise
        own = [one.getsockname()[1] for one in self._sockets]
        return self._sockets, _Capture(own, self._to[1], self._seconds)

    def _connect(self, family: int, kind: int, proto: int, _name: str, address: tuple[Any, ...]) -> None:
        made = socket.socket(family, kind, proto)
        self._sockets.append(made)
        if self._congestion is not None:
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion.encode())
            except OSError:
                there = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().strip()
                raise Unreadable(f"this kernel has no {self._congestion}: write one of {there}") from None
        made.setsockopt(socket.SOL_SOCKET, _PACING_RATE, _FASTEST // self._count)
        made.settimeout(10)
        try:
            made.connect(address)
        except OSError as error:
            reason = "no answer" if error.errno is None else error.strerror
            raise Unreadable(
                f"{_named(self._to)}: {reason}; start inprofile diagnose --sink {self._to[1]} there"
            ) from None

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            one.close()


class _Capture:
    """The packets between some ports and one, written as they come, in a thread."""

    def __init__(self, own: list[int], peer: int, seconds: float) -> None:
        ways = ((one, peer) for one in own), ((peer, one) for one in own)
        self._ports = {struct.pack(">HH", *pair) for way in ways for pair in way}
        self._most = seconds + 60
        self._ending = threading.Event()
        self.kept = self.missed = 0

    def start(self, tap: socket.socket, place: Path) -> None:
        self._tap = tap
        tap.settimeout(0.1)
        # What came before the connection was there.
        tap.getsockopt(263, _STATISTICS, 8)
        self._thread = threading.Thread(target=self._run, args=(place,))
        self._thread.start()

    def stop(self) -> None:
        time.sleep(_TAIL)
        self._ending.set()
        self._thread.join()
        self.missed = struct.unpack("II", self._tap.getsockopt(263, _STATISTICS, 8))[1]

    def _run(self, place: Path) -> None:
        room = bytearray(_SNAPLEN)
        interface = None
        with place.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, _RAW_IP))
            while not self._ending.is_set():
                try:
                    size, told, _, address = self._tap.recvmsg_into([room], 64, socket.MSG_TRUNC)
                except TimeoutError:
                    continue
                there = min(size, _SNAPLEN)
                if self._transport(room, there) not in self._ports:
                    continue
                # A packet that passes several interfaces of this host is kept at the first, and one of
                # the loopback as it comes in.
                if address[2] == socket.PACKET_OUTGOING and address[3] == _LOOPBACK:
                    continue
                if interface is None:
                    interface = address[0]
                if address[0] != interface:
                    continue
                seconds, nanoseconds = _stamp(told)
                file.write(struct.pack("<IIII", seconds, nanoseconds, there, size))
                file.write(room[:there])
                self.kept += 1

    @staticmethod
    def _transport(room: bytearray, there: int) -> bytes:
        """The ports of a TCP packet; nothing of another."""
        if there < 44:
            return b""
        version = room[0] >> 4
        if version == 4 and room[9] == socket.IPPROTO_TCP:
            at = 4 * (room[0] & 15)
        elif version == 6 and room[6] == socket.IPPROTO_TCP:
            at = 40
        else:
            return b""
        return bytes(room[at : at + 4])


def _stamp(told: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    for level, kind, data in told:
        if level == socket.SOL_SOCKET and kind == _TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data[:16])
            return seconds, nanoseconds
    raise OSError(errno.EPROTO, "the kernel gave a packet no time")
