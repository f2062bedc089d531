"""Traffic from one host to the other through what is between them: a TCP connection, and single packets."""

import socket
import statistics
import struct
import threading
import time
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
