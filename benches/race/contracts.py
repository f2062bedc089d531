"""The kernel's datapath against its bridge, its forwarding and the router in user space, by CPU time.

Hosts and box are on one core, so a frame goes from host to host within the call that sends it: the thread's
CPU time is what all three cost, and two hosts without a box tell what to take off. So the figures hold on a
busy machine too, where the share of a core says little. By itself:

    benches/race/contracts.py INPROFILED… [--rounds N] [--only WORD|WORD]
"""

import argparse
import ctypes
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import veth
from veth import BATCH, SMALL, Header, Message, Piece

# Frames of a flood, and bytes of a connection, in each round.
FRAMES, BYTES = 10_048, 1 << 26

FILE = """inside = "lan0"
outside = "wan0"
overhead = "38 B"
mpu = "84 B"
control.socket = "{folder}/control"
"""
KERNEL = """datapath = "kernel"
pins = "{folder}/pins"
[upstream]
"""
USER = """[upstream]
rate = "100 Gbit/s"
queue = { aqm = "drop_tail", limit = "200 packets" }
"""
CUSTOMER = """[[upstream.customers]]
name = "c{n}"
prefix = "{prefix}"
contract = "10 Gbit/s"
marker = {{ kind = "token_bucket", depth = "1 MB" }}
"""


def customers(count: int) -> str:
    """So many, of whom the first sends."""
    others = [f"172.{16 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(count - 1)]
    return "".join(CUSTOMER.format(n=n, prefix=p) for n, p in enumerate(["10.1.0.0/16", *others]))


def thread_seconds(schedstat: Path) -> float:
    """CPU time of a thread."""
    return int(schedstat.read_text().split()[0]) / 1e9


@dataclass
class Between:
    """The hosts with what is between them, and whatever else works for it."""

    wire: veth.Wire
    addresses: list[str]
    process: "subprocess.Popen[bytes] | None" = None

    def cpu(self) -> float:
        """CPU seconds so far, of what is not this process."""
        (core,) = os.sched_getaffinity(0)
        threads = [p.parent for p in Path("/proc").glob("[0-9]*/comm") if named(p) == f"ksoftirqd/{core}"]
        if self.process:
            threads += Path(f"/proc/{self.process.pid}/task").glob("*")
        return sum(thread_seconds(thread / "schedstat") for thread in threads)

    def came(self) -> int:
        """Frames that have come to the receiver."""
        read: Callable[[], str] = Path("/proc/thread-self/net/dev").read_text
        lines = [line.split(":") for line in self.wire.hosts[1].within(read).splitlines() if ":" in line]
        counts = {name.strip(): int(figures.split()[1]) for name, figures in lines}
        return counts["h1"] if "h1" in counts else counts["lan0"]


def named(comm: Path) -> str:
    """What a process is called; nothing, if it has just ended."""
    try:
        return comm.read_text().strip()
    except OSError:
        return ""


@contextmanager
def wired(offloads: bool, forwarded: bool = False) -> Iterator[Between]:
    """The hosts and a box that does nothing, or whose kernel forwards."""
    (core,) = os.sched_getaffinity(0)
    wire = veth.Wire(core, core, offloads)
    try:
        yield Between(wire, wire.addresses(forwarded))
    finally:
        wire.close()


@contextmanager
def direct(offloads: bool) -> Iterator[Between]:
    """Without a box: the other host is at its port."""
    with wired(offloads) as between:
        veth.ip("addr add 10.1.0.99/24 dev lan0")
        between.wire.hosts.insert(1, veth.Namespace.here())
        yield Between(between.wire, [between.addresses[0], "10.1.0.99"])


@contextmanager
def bridge(offloads: bool, filters: bool) -> Iterator[Between]:
    """The kernel's bridge; with packet filters' hooks, as where br_netfilter is loaded, or without."""
    with wired(offloads) as between:
        if (hooks := Path("/proc/sys/net/bridge/bridge-nf-call-iptables")).exists():
            hooks.write_text(str(int(filters)))
        veth.ip("link add br0 type bridge")
        try:
            for port in ("lan0", "wan0"):
                veth.ip(f"link set {port} master br0")
            veth.ip("link set br0 up")
            yield between
        finally:
            veth.ip("link del br0")


@contextmanager
def forwarding(offloads: bool) -> Iterator[Between]:
    """The kernel's IP forwarding."""
    with wired(offloads, forwarded=True) as between:
        yield between


def bpf(command: int, attributes: bytes) -> int:
    """The system call: a file descriptor."""
    call = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    said = ctypes.create_string_buffer(attributes)
    if (fd := int(veth.LIBC.syscall(call, command, said, len(attributes)))) < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return fd


@contextmanager
def redirect(offloads: bool) -> Iterator[Between]:
    """Programs at both ports' ingress hooks (tcx) that do nothing but send by the other: what any costs."""
    load, link, classifier, ingress = 5, 28, 3, 46
    with wired(offloads) as between, ExitStack() as held:
        index = [socket.if_nametoindex(port) for port in ("lan0", "wan0")]
        for at, to in (index, reversed(index)):
            # r1 = to; r2 = 0; call bpf_redirect; exit
            code = struct.pack("<" + "BBhi" * 4, 0xB7, 1, 0, to, 0xB7, 2, 0, 0, 0x85, 0, 0, 23, 0x95, 0, 0, 0)
            memory = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
            fds = [bpf(load, struct.pack("<IIQQ", classifier, 4, *map(ctypes.addressof, memory)))]
            held.callback(os.close, fds[0])
            fds.append(bpf(link, struct.pack("<IIII16x", fds[0], at, ingress, 0)))
            held.callback(os.close, fds[1])
        yield between


@contextmanager
def router(program: str, datapath: str, count: int, offloads: bool) -> Iterator[Between]:
    """The router, with so many customers."""
    with wired(offloads) as between, tempfile.TemporaryDirectory() as folder:
        pins, file = Path(folder, "pins"), Path(folder, "router.toml")
        pins.mkdir()
        veth.run("mount", "-t", "bpf", "bpf", str(pins))
        head = FILE + (KERNEL if datapath == "kernel" else USER)
        file.write_text(head.replace("{folder}", folder) + customers(count))
        try:
            between.process = subprocess.Popen([program, "run", str(file)], stderr=subprocess.PIPE)
            ask = [program, "stats", "--socket", f"{folder}/control"]
            while subprocess.run(ask, capture_output=True, check=False).returncode:
                if between.process.poll() is not None:
                    said = between.process.stderr.read() if between.process.stderr else b""
                    raise RuntimeError(f"the router ended: {said.decode()}")
                time.sleep(0.05)
            yield between
        finally:
            if between.process:
                between.process.terminate()
                between.process.wait(30)
            veth.run("umount", str(pins))


class Flood:
    """Frames of 64 B from host to host: nanoseconds of CPU time for each that comes."""

    def __init__(self, between: Between):
        self.between = between
        self.receiver, self.sender = (between.wire.socket(i, socket.SOCK_DGRAM) for i in (1, 0))
        # What nobody reads is dropped at the end; without a socket the host would answer.
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.receiver.bind((between.addresses[1], 7000))
        self.sender.connect((between.addresses[1], 7000))
        piece = Piece(bytes(SMALL), SMALL)
        header = Header(pieces=ctypes.pointer(piece), count=1)
        self.messages = (Message * BATCH)(*[Message(header) for _ in range(BATCH)])

    def send(self, frames: int) -> None:
        """So many."""
        for _ in range(0, frames, BATCH):
            if veth.LIBC.sendmmsg(self.sender.fileno(), self.messages, BATCH, 0) != BATCH:
                raise OSError(ctypes.get_errno(), "sendmmsg")

    def __call__(self) -> float:
        """One round."""
        between = self.between
        self.send(FRAMES // 10)
        came, others, since = between.came(), between.cpu(), time.thread_time()
        self.send(FRAMES)
        took = time.thread_time() - since
        if between.process:
            # What its sockets still hold.
            time.sleep(0.05)
        took += between.cpu() - others
        return took / (between.came() - came) * 1e9


class Connection:
    """One TCP connection: nanoseconds of CPU time for 1,000 bytes of payload."""

    def __init__(self, between: Between):
        self.between, self.go = between, threading.Semaphore(0)
        door, self.sender = (between.wire.socket(i, socket.SOCK_STREAM) for i in (1, 0))
        door.bind((between.addresses[1], 5000))
        door.listen()
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        self.sender.connect((between.addresses[1], 5000))
        self.receiver, _ = door.accept()
        self.room = bytearray(1 << 20)
        threading.Thread(target=self.send, daemon=True).start()

    def send(self) -> None:
        """A round's bytes each time when it is one's turn."""
        while True:
            self.go.acquire()
            self.sender.sendall(bytes(BYTES))

    def __call__(self) -> float:
        """One round."""
        self.go.release()
        others, since, total = self.between.cpu(), time.process_time(), 0
        while total < BYTES:
            total += self.receiver.recv_into(self.room)
        took = time.process_time() - since + self.between.cpu() - others
        return took / total * 1e12


def inside(programs: list[str], rounds: int, only: str) -> dict[str, list[int]]:
    """All contestants, each in a namespace of its own, one after the other so many times."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    made: list[tuple[str, Any, Any]] = [
        ("64 B: hosts alone", direct(False), Flood),
        ("64 B: bridge", bridge(False, filters=False), Flood),
        ("64 B: bridge with br_netfilter", bridge(False, filters=True), Flood),
        ("64 B: a program that redirects", redirect(False), Flood),
        ("TCP: forwarding", forwarding(True), Connection),
    ]
    for i, program in enumerate(programs):
        which = f" {i}" if len(programs) > 1 else ""
        for count in (1, 10_000):
            name = f"64 B: kernel{which}, {count} customers"
            made.append((name, router(program, "kernel", count, False), Flood))
        made.append((f"64 B: user{which}", router(program, "user", 1, False), Flood))
        made.append((f"TCP: kernel{which}", router(program, "kernel", 1, True), Connection))
    here = veth.Namespace.here()
    contestants: list[tuple[str, Callable[[], float]]] = []
    found: dict[str, list[int]] = {}
    with ExitStack() as stack:
        for name, between, measured in made:
            if any(word in name for word in only.split("|")):
                inner = veth.Namespace.new()
                stack.callback(here.enter)
                inner.enter()
                veth.ip("link set lo up")
                contestants.append((name, measured(stack.enter_context(between))))
                # Taken down where it was set up.
                stack.callback(inner.enter)
                here.enter()
        for _ in range(rounds):
            for name, measured in contestants:
                found.setdefault(name, []).append(round(measured()))
    return found


def shown(values: Sequence[float]) -> str:
    """Median and quartiles."""
    low, median, high = statistics.quantiles(values, n=4)
    digits = 0 if median > 100 else 2
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", metavar="INPROFILED", help="programs to compare")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="", metavar="WORD", help="what has this in its name")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        return subprocess.run([*veth.rights(), sys.executable, *sys.argv, "--inside"], check=False).returncode
    found = inside([str(Path(p).resolve()) for p in args.programs], args.rounds, args.only)
    alone = found.get("64 B: hosts alone")
    for name, values in found.items():
        line, base = f"{name}: {shown(values)} ns", "TCP: forwarding"
        if alone and name.startswith("64"):
            base = "64 B: bridge"
            values = [a - b for a, b in zip(values, alone, strict=True)]
            line += f"; the box alone {statistics.median(values):.0f}"
        if name not in (base, "64 B: hosts alone") and base in found:
            others = found[base]
            if alone and base != "TCP: forwarding":
                others = [a - b for a, b in zip(others, alone, strict=True)]
            line += f"; {base} / this {shown([b / a for a, b in zip(values, others, strict=True)])}"
        print(line)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
