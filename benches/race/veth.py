"""Two hosts and a box between them, in network namespaces, and the traffic through it.

    host A [h0]══[lan0] the box [wan0]══[h1] host B

The hosts are on one core, the box on another: what comes in at an interface is worked on by its owner's core
(receive packet steering), and so are the programs. All offloads are off, for the box and for the hosts,
unless they are asked for. On one core nothing is steered: what a call sends goes all the way within it.
"""

import ctypes
import errno
import os
import shutil
import socket
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

CLONE_NEWNET = 0x40000000
OFFLOADS = ["tso", "gso", "gro", "tx", "rx", "sg"]
LIBC = ctypes.CDLL(None, use_errno=True)


def rights() -> list[str]:
    """The prefix of a command that gives it a network and a view of the devices of its own."""
    for tool in ("ip", "ethtool", "tc", "unshare", "taskset"):
        if not shutil.which(tool):
            raise RuntimeError(f"{tool} is not installed")
    for how in (
        ["unshare", "--mount", "--net"],
        ["unshare", "--user", "--map-root-user", "--mount", "--net"],
    ):
        if subprocess.run([*how, "true"], capture_output=True, check=False).returncode == 0:
            return how
    raise RuntimeError(
        "no network namespaces: needs root, or `unshare -Urn` where user namespaces are allowed"
    )


def run(*words: str) -> str:
    """Runs a command; what it prints."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[:200]}")
    return done.stdout


def ip(line: str) -> None:
    """Runs `ip`."""
    run("ip", *line.split())


def ticks(core: int) -> list[int]:
    """A core's times since the start: user, nice, system, idle, iowait, irq, softirq, steal."""
    found = next(x for x in Path("/proc/stat").read_text().splitlines() if x.startswith(f"cpu{core} "))
    return [int(word) for word in found.split()[1:9]]


def busy(before: list[int], after: list[int]) -> float:
    """The share of the time in which it had something to do and did it."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return 1 - (spent[3] + spent[4] + spent[7]) / max(1, sum(spent))


def stolen(before: list[int], after: list[int]) -> float:
    """The share of the time in which it had something to do and the machine's host let it wait."""
    spent = [b - a for a, b in zip(before, after, strict=True)]
    return spent[7] / max(1, sum(spent))


@contextmanager
def awake() -> Iterator[bool]:
    """Keeps all cores from halting when they have nothing to do; whether that could be had (it takes root).

    A virtual machine's core that halts is woken by its host, some tens of microseconds later or, on a busy
    one, many more: between two cores that wait for each other's packets that is much of what is measured.
    """
    with ExitStack() as open_files:
        try:
            latency = open_files.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0))
            # Microseconds (Linux, Documentation/power/pm_qos_interface.rst).
            latency.write(struct.pack("i", 0))
        except OSError:
            had = False
        else:
            had = True
        yield had


class Namespace:
    """One network namespace."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    @classmethod
    def here(cls) -> "Namespace":
        """That of this thread."""
        return cls(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def new(cls) -> "Namespace":
        """Another, empty one; this thread stays where it is."""
        before = cls.here()
        if LIBC.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        after = cls.here()
        before.enter()
        before.close()
        return after

    def enter(self) -> None:
        """Moves this thread there."""
        if LIBC.setns(self.descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def within(self, work: Callable[[], Any]) -> Any:
        """Does something there, and comes back."""
        before = Namespace.here()
        self.enter()
        try:
            return work()
        finally:
            before.enter()
            before.close()

    def take(self, interface: str) -> None:
        """Moves an interface of the present namespace there."""
        ip(f"link set {interface} netns /proc/{os.getpid()}/fd/{self.descriptor}")

    def close(self) -> None:
        """Lets it go: with the last socket in it, it is gone."""
        os.close(self.descriptor)


class Wire:
    """The two hosts and the box, until it is closed; called in the box's namespace, which must be our own."""

    def __init__(self, host_core: int, box_core: int, offloads: bool = False):
        self.cores = (host_core, box_core)
        self.hosts = [Namespace.new(), Namespace.new()]
        # Interfaces made from now on don't speak IPv6 of their own accord.
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        for i, (ours, theirs) in enumerate((("lan0", "h0"), ("wan0", "h1"))):
            ip(f"link add {ours} type veth peer name {theirs}")
            for name, core in ((ours, box_core), (theirs, host_core)):
                how = "on" if offloads else "off"
                run("ethtool", "-K", name, *[word for o in OFFLOADS for word in (o, how)])
                if host_core != box_core:
                    steering = Path(f"/sys/class/net/{name}/queues/rx-0/rps_cpus")
                    steering.write_text(f"{1 << core:x}")
            ip(f"link set {ours} up")
            self.hosts[i].take(theirs)

    def addresses(self, forwarded: bool) -> list[str]:
        """Gives the hosts addresses: in two networks that the kernel forwards between, or in one."""
        networks = ("10.1.0", "10.2.0") if forwarded else ("10.1.0", "10.1.0")
        found = []
        for i, (host, network) in enumerate(zip(self.hosts, networks, strict=True)):
            address = f"{network}.{i + 11}"
            found.append(address)

            def set_up(i: int = i, address: str = address, network: str = network) -> None:
                ip(f"addr add {address}/24 dev h{i}")
                ip(f"link set h{i} up")
                ip("link set lo up")
                if forwarded:
                    ip(f"route add default via {network}.1")

            host.within(set_up)
            if forwarded:
                ip(f"addr add {network}.1/24 dev {('lan0', 'wan0')[i]}")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1" if forwarded else "0")
        return found

    def socket(self, host: int, kind: socket.SocketKind) -> socket.socket:
        """A socket of a host's."""
        made: socket.socket = self.hosts[host].within(lambda: socket.socket(socket.AF_INET, kind))
        return made

    def close(self) -> None:
        """Takes the interfaces away."""
        for name in ("lan0", "wan0"):
            ip(f"link del {name}")
        for host in self.hosts:
            host.close()


class Between(Protocol):
    """A wire with what is between the hosts, running, and the hosts' addresses."""

    wire: Wire
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
    since, before, looks = None, 0, [ticks(core) for core in between.wire.cores]
    while True:
        total += receiver.recv_into(room)
        now = time.monotonic()
        if since is None and now - start >= warm:
            since, before, looks = now, total, [ticks(core) for core in between.wire.cores]
        if since is not None and now - since >= seconds:
            break
    hosts, router = (busy(old, ticks(c)) for old, c in zip(looks, between.wire.cores, strict=True))
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
        if LIBC.sendmmsg(sender.fileno(), messages, BATCH, 0) < 0:
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
        return sum(arrived(between, host) for host in (0, 1)), ticks(core), time.monotonic()

    before, looked, since = look()
    time.sleep(seconds)
    after, later, now = look()
    over.set()
    for thread in threads:
        thread.join(5)
    for end in ends:
        end.close()
    a_second = (after - before) / (now - since) / 1e3
    return a_second, a_second / max(1e-3, busy(looked, later))


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
