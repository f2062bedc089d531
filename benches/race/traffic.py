"""Traffic between the hosts through what is between them: a TCP connection, floods, and single packets."""

import ctypes
import errno
import socket
import statistics
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import veth


class Between(Protocol):
    """A wire with what is between the hosts, running, and the hosts' addresses."""

    wire: veth.Wire
    addresses: list[str]


class Flow(NamedTuple):
    """Payload in Mbit/s; the shares of the time that the hosts' core and the box's were busy."""

    rate: float
    hosts: float
    box: float


def tcp(between: Between, warm: float, seconds: float, window: int | None) -> Flow:
    """One connection, after so long to get going. `window`: the receiver's buffer, or the system's choice."""
    door = between.wire.socket(1, socket.SOCK_STREAM)
    if window:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    door.bind((between.addresses[1], 5000))
    door.listen()
    sender = between.wire.socket(0, socket.SOCK_STREAM)
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sender.connect((between.addresses[1], 5000))
    receiver, _ = door.accept()
    over = threading.Event()

    def send() -> None:
        chunk = bytes(1 << 18)
        try:
            while not over.is_set():
                sender.sendall(chunk)
        except OSError:
            # The receiver has had enough.
            pass

    thread = threading.Thread(target=send)
    thread.start()
    room = bytearray(1 << 20)
    total, start = 0, time.monotonic()
    since, before, looks = None, 0, [veth.ticks(core) for core in between.wire.cores]
    while True:
        total += receiver.recv_into(room)
        now = time.monotonic()
        if since is None and now - start >= warm:
            since, before, looks = now, total, [veth.ticks(core) for core in between.wire.cores]
        if since is not None and now - since >= seconds:
            break
    hosts, router = (veth.busy(old, veth.ticks(c)) for old, c in zip(looks, between.wire.cores, strict=True))
    over.set()
    for s in (receiver, sender, door):
        # At once, without a word: nobody waits for what is on its way.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    thread.join(5)
    return Flow((total - before) * 8e-6 / (now - since), hosts, router)


# Messages of one call, and the payload of a frame of 64 B.
BATCH, SMALL = 64, 64 - 14 - 20 - 8


class Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Header(ctypes.Structure):
    """`struct msghdr` of a connected socket."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("pieces", ctypes.POINTER(Piece)),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class Message(ctypes.Structure):
    """`struct mmsghdr`. The header is padded before what follows it, so it is a structure of its own."""

    _fields_ = [("header", Header), ("sent", ctypes.c_uint)]


def flood(sender: socket.socket, over: threading.Event) -> None:
    """Sends small datagrams as fast as one thread can."""
    piece = Piece(bytes(SMALL), SMALL)
    header = Header(pieces=ctypes.pointer(piece), count=1)
    messages = (Message * BATCH)(*[Message(header) for _ in range(BATCH)])
    while not over.is_set():
        if veth.LIBC.sendmmsg(sender.fileno(), messages, BATCH, 0) < 0:
            number = ctypes.get_errno()
            if number not in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
                raise OSError(number, "sendmmsg")


def arrived(between: Between, host: int) -> int:
    """Packets that have come to a host's interface."""

    def read() -> int:
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        line = next(x for x in lines if x.strip().startswith(f"h{host}:"))
        return int(line.split(":")[1].split()[1])

    found: int = between.wire.hosts[host].within(read)
    return found


def datagrams(between: Between, warm: float, seconds: float, both: bool) -> tuple[float, float]:
    """Floods of frames of 64 B, from host A or from both.

    Thousands that come through a second, and a second in which the box's core is busy.
    """
    ends: list[socket.socket] = []
    threads, over = [], threading.Event()
    for host in (0, 1):
        # What nobody reads is dropped at the end; without a socket the host would answer.
        end = between.wire.socket(host, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        end.bind((between.addresses[host], 7000))
        ends.append(end)
    for host in (0, 1) if both else (0,):
        sender = between.wire.socket(host, socket.SOCK_DGRAM)
        sender.connect((between.addresses[1 - host], 7000))
        ends.append(sender)
        threads.append(threading.Thread(target=flood, args=(sender, over)))
    for thread in threads:
        thread.start()
    time.sleep(warm)
    core = between.wire.cores[1]

    def look() -> tuple[int, list[int], float]:
        return sum(arrived(between, host) for host in (0, 1)), veth.ticks(core), time.monotonic()

    before, ticks, since = look()
    time.sleep(seconds)
    after, later, now = look()
    over.set()
    for thread in threads:
        thread.join(5)
    for end in ends:
        end.close()
    a_second = (after - before) / (now - since) / 1e3
    return a_second, a_second / max(1e-3, veth.busy(ticks, later))


def latency(between: Between, packets: int) -> tuple[float, float]:
    """Microseconds from a host's call to the other's, a packet a millisecond: median, 99th percentile."""
    receiver = between.wire.socket(1, socket.SOCK_DGRAM)
    receiver.bind((between.addresses[1], 6000))
    receiver.settimeout(2)
    sender = between.wire.socket(0, socket.SOCK_DGRAM)
    sender.connect((between.addresses[1], 6000))
    took = []
    for i in range(packets + 100):
        time.sleep(0.001)
        start = time.monotonic_ns()
        sender.send(bytes(200))
        receiver.recv(2000)
        if i >= 100:
            took.append((time.monotonic_ns() - start) / 1e3)
    receiver.close()
    sender.close()
    took.sort()
    return statistics.median(took), took[len(took) * 99 // 100]
