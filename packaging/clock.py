#!/usr/bin/env python3
"""The router while somebody sets the clock: an hour forward and back, an hour back and forward.

    host A [h0]══[lan0] inprofiled, shaping [wan0]══[h1] host B

    packaging/clock.py target/release/inprofiled

THIS STEPS THE CLOCK OF THE WHOLE MACHINE, four times, for two seconds each: whatever else runs there sees it.
A process of its own sets it right again from CLOCK_MONOTONIC, at the end and whatever ends this before,
SIGKILL too. Run by hand, as root, on a machine that may have it; never in continuous integration.

TCP runs through the router all the while. In every phase its rate and the marker's have to be what they were,
the router the same process, its accounts right, nothing dropped, lateness and uptime sensible, no counter may
fall, the watchdog has to be fed, logs are rotated and have the clock's time, whatever that is.
"""

import argparse
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import wire

HOUR = 3600
PHASES = [
    ("as it is", 0),
    ("an hour forward", HOUR),
    ("and back", 0),
    ("an hour back", -HOUR),
    ("and forward", 0),
]
SECONDS = 2.0
# Until TCP has found its rate.
WARM = 3.0
# The clock is set right after so long without an order.
FUSE = 10.0
# Mbit/s; and what both may differ by from the first phase.
LINK, CONTRACT, TOLERANCE = 20, 10, 0.03
# Nothing may be late, or missing at the far end, for so long. Seconds.
LATE = 0.13
WATCHDOG = 2.0
# Both hosts give up when nothing has moved for so long.
STALL = 5.0
# Keeps TCP's window, in bytes, below what the queue holds.
BUFFER = 150_000
METRICS = ("127.0.0.1", 9474)
COUNTER = re.compile(r"\w+_(total|bucket|sum|count)\b")
LOG = wire.WORK / "router.log.jsonl"
CONTROL = wire.WORK / "control.sock"
SETTINGS = f"""inside = "lan0"
outside = "wan0"
fix_offloads = true
control.socket = "{CONTROL}"
log.file = "{LOG}"
metrics.listen = "{METRICS[0]}:{METRICS[1]}"
[upstream]
rate = "{LINK} Mbit/s"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}
[[upstream.customers]]
name = "a"
prefix = "10.0.0.1"
contract = "{CONTRACT} Mbit/s"
marker = {{ kind = "token_bucket", depth = "30 kB" }}
"""


def keeper(orders: int) -> None:
    """Sets the clock ahead by as many seconds as it is told; right again when nobody is left to tell."""
    os.setsid()
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)
    ahead = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    now = 0
    while True:
        told, _, _ = select.select([orders], [], [], FUSE)
        order = os.read(orders, 8) if told else struct.pack("=q", 0)
        seconds = struct.unpack("=q", order)[0] if order else 0
        if seconds != now:
            now = seconds
            time.clock_settime_ns(time.CLOCK_REALTIME, time.monotonic_ns() + ahead + now * 10**9)
        if not order:
            return


def off() -> float:
    """How far the clock is from where it would be by CLOCK_MONOTONIC, in seconds, but for a constant."""
    return (time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()) / 1e9


def send(until: float) -> None:
    """Host A: sends until that moment; prints how many segments had to be sent again."""
    with socket.create_connection(("10.0.0.2", 5000)) as to:
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        to.settimeout(STALL)
        data = bytes(16_384)
        with suppress(TimeoutError):
            while time.monotonic() < until:
                to.sendall(data)
        info = to.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 224)
        # tcpi_total_retrans, and tcpi_dsack_dups: of those how many the far end says it had, only later.
        print(struct.unpack_from("=I", info, 100)[0] - struct.unpack_from("=I", info, 216)[0])


def receive() -> None:
    """Host B: prints when how much had come, a line a millisecond at most."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        listener.bind(("10.0.0.2", 5000))
        listener.listen()
        print("listening", flush=True)
        peer, _ = listener.accept()
    total, last = 0, 0.0
    came: list[tuple[float, int]] = []
    peer.settimeout(STALL)
    with peer, suppress(TimeoutError):
        while chunk := peer.recv(65_536):
            total, now = total + len(chunk), time.monotonic()
            if now >= last + 0.001:
                came.append((last := now, total))
    print(json.dumps(came), flush=True)


def scrape() -> dict[str, float]:
    """The router's metrics, which are in its namespace: by name and labels."""
    text = wire.run(f"{sys.executable} {__file__} --scrape", "r")
    return {name: float(value) for name, value in re.findall(r"^([^#\s].*) (\S+)$", text, re.MULTILINE)}


def get() -> None:
    """Prints the metrics' page."""
    with socket.create_connection(METRICS) as to:
        to.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = b"".join(iter(lambda: to.recv(65_536), b""))
    print(page.decode().split("\r\n\r\n", 1)[1])


@dataclass(frozen=True)
class Look:
    """The router at one moment."""

    at: float
    stats: dict[str, Any]
    metrics: dict[str, float]

    @staticmethod
    def now(program: str) -> "Look":
        """The router's present answer."""
        at = time.monotonic()
        return Look(at, json.loads(wire.run(f"{program} stats --json --socket {CONTROL}")), scrape())

    @property
    def metered(self) -> int:
        """Bytes that the marker has left IN."""
        return int(self.stats["directions"][0]["markers"][0]["left_bytes"]["in"])

    def faults(self) -> list[str]:
        """The present faults, in words."""
        found = []
        for d in self.stats["directions"]:
            causes = ("dropped", "refused", "marker_dropped", "policed", "no_buffer", "too_late")
            lost = {k: d[k] for k in causes if d[k]}
            if lost or not d["adds_up"]:
                found.append(f"{d['name']}: lost {lost}, accounts add up: {d['adds_up']}")
            if d["lateness"]["most_us"] > LATE * 1e6:
                found.append(f"{d['name']}: a packet {d['lateness']['most_us'] / 1e3:.0f} ms late")
        for p in self.stats["ports"]:
            if p["missed"] or p["refused"]:
                found.append(f"{p['interface']}: {p['missed']} frames missed, {p['refused']} refused")
        return found

    def faults_since(self, before: "Look") -> list[str]:
        """The faults since an earlier sample."""
        passed = self.stats["uptime"] - before.stats["uptime"]
        counters = {name: n for name, n in before.metrics.items() if COUNTER.match(name)}
        found = [f"{name} fell" for name, n in counters.items() if self.metrics[name] < n]
        if abs(passed - (self.at - before.at)) > LATE:
            found.append(f"uptime grew by {passed:.3f} s in {self.at - before.at:.3f} s")
        return found


@contextmanager
def manager() -> Iterator[list[float]]:
    """Stands for the service manager: when the watchdog heard of the router."""
    beats: list[float] = []
    here = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.bind(str(wire.WORK / "notify"))
    os.environ |= {"NOTIFY_SOCKET": str(wire.WORK / "notify"), "WATCHDOG_USEC": str(int(WATCHDOG * 1e6))}

    def listen() -> None:
        while b"end" not in (said := here.recv(256)):
            if b"WATCHDOG=1" in said:
                beats.append(time.monotonic())

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield beats
    finally:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as us:
            us.sendto(b"end", str(wire.WORK / "notify"))
        thread.join()
        here.close()


def step(orders: int, ahead: int, right: float) -> None:
    """Has the clock stepped, and waits until it is."""
    os.write(orders, struct.pack("=q", ahead))
    for _ in range(1000):
        if abs(off() - right - ahead) < 0.5:
            return
        time.sleep(0.001)
    raise wire.Broken("the clock can't be stepped")


def await_line(text: str) -> None:
    """Waits until the log says this."""
    for _ in range(500):
        if LOG.exists() and text in LOG.read_text():
            return
        time.sleep(0.01)
    raise wire.Broken(f"the router's log doesn't say `{text}`")


def log_faults(event: str) -> list[str]:
    """The fault of the log's last line about this, which should be recent."""
    lines = [json.loads(line) for line in LOG.read_text().splitlines()]
    times = [line["time"] for line in lines if line["event"] == event]
    if not times:
        return [f"the log says nothing of {event}"]
    late = time.time() - datetime.fromisoformat(times[-1].replace("Z", "+00:00")).timestamp()
    return [] if -0.01 < late < 1 else [f"the log says {event} at {times[-1]}, {late:.1f} s ago"]


def inside(program: str) -> int:
    """Everything, in namespaces of our own."""
    orders = int(os.environ["ORDERS"])
    wire.wire()
    settings = wire.WORK / "router.toml"
    settings.write_text(SETTINGS)
    me, right = [sys.executable, __file__], off()
    found: list[list[str]] = []
    with manager() as beats, wire.started([program, "run", str(settings)], "r", "") as router:
        await_line("packets are forwarded")
        sink = in_host("b", [*me, "--receive"])
        if not (sink.stdout and sink.stdout.readline() == "listening\n"):
            raise wire.Broken("host B doesn't listen")
        until = time.monotonic() + WARM + len(PHASES) * (SECONDS + 1)
        source = in_host("a", [*me, "--send", str(until)])
        time.sleep(WARM)
        looks = [Look.now(program)]
        for number, (_, ahead) in enumerate(PHASES):
            step(orders, ahead, right)
            LOG.rename(LOG.with_suffix(f".{number}"))
            router.send_signal(signal.SIGUSR1)
            await_line("opened anew")
            wire.run(f"{program} reload --socket {CONTROL}")
            time.sleep(0.1)
            faults = log_faults("reload")
            time.sleep(max(0.0, looks[-1].at + SECONDS - time.monotonic()))
            looks.append(Look.now(program))
            faults += looks[-1].faults() + looks[-1].faults_since(looks[-2])
            if router.poll() is not None:
                faults.append(f"the router ended with {router.returncode}")
            found.append(faults)
        lost = int(source.communicate()[0])
        came = json.loads(sink.communicate()[0])
    return told(looks, found, came, beats, lost)


def in_host(host: str, words: list[str]) -> "subprocess.Popen[str]":
    """A program in a namespace, whose output we read."""
    return subprocess.Popen(["ip", "netns", "exec", host, *words], stdout=subprocess.PIPE, text=True)


def told(
    looks: list[Look], found: list[list[str]], came: list[tuple[float, int]], beats: list[float], lost: int
) -> int:
    """A line a phase, and what is wrong in it."""
    first: tuple[float, float] | None = None
    print(
        f"{'the clock':<18}{'TCP':>14}{'metered IN':>14}{'longest gap':>13}{'latest packet':>15}{'beats':>7}"
    )
    for (name, _), faults, before, after in zip(PHASES, found, looks[:-1], looks[1:], strict=True):
        mine = [(t, n) for t, n in came if before.at <= t < after.at]
        if len(mine) < 2:
            print(f"{name:<18}  wrong: nothing came to host B")
            faults.append("nothing came")
            continue
        span = after.at - before.at
        rate = (mine[-1][1] - mine[0][1]) * 8 / (mine[-1][0] - mine[0][0]) / 1e6
        metered = (after.metered - before.metered) * 8 / span / 1e6
        gap = max(b[0] - a[0] for a, b in pairwise(mine))
        heard = [t for t in beats if before.at <= t < after.at]
        late = after.stats["directions"][0]["lateness"]["most_us"] / 1e3
        first = first or (rate, metered)
        for what, now, then in (("TCP", rate, first[0]), ("the marker", metered, first[1])):
            if abs(now / then - 1) > TOLERANCE:
                faults.append(f"{what} has {now:.2f} Mbit/s, and had {then:.2f}")
        if gap > LATE:
            faults.append(f"nothing came for {gap * 1e3:.0f} ms")
        pause = max(b - a for a, b in pairwise([before.at, *heard, after.at]))
        if pause > WATCHDOG / 2:
            faults.append(f"the watchdog heard nothing for {pause:.2f} s")
        rates = f"{rate:>7.2f} Mbit/s{metered:>7.2f} Mbit/s"
        print(f"{name:<18}{rates}{gap * 1e3:>10.1f} ms{late:>12.1f} ms{len(heard):>7}")
        for fault in faults:
            print(f"  wrong: {fault}")
    if lost:
        print(f"  wrong: TCP had to send {lost} segments again")
    wrong = bool(lost) or any(found)
    print("not as it should be" if wrong else "all as it should be")
    return int(wrong)


def outside(program: str) -> int:
    """Starts who keeps the clock, and the rest where everything is its own."""
    if os.getuid():
        raise wire.Broken("it needs root: it steps the machine's clock")
    orders, mouth = os.pipe()
    right = off()
    child = os.fork()
    if child == 0:
        os.close(mouth)
        try:
            keeper(orders)
        finally:
            os._exit(0)
    os.close(orders)
    os.environ["ORDERS"] = str(mouth)
    try:
        return wire.own_namespaces(__file__, program, [mouth])
    finally:
        os.close(mouth)
        os.waitpid(child, 0)
        print(f"the clock is where it was, within {abs(off() - right) * 1e6:.0f} µs")


def main() -> int:
    """As its arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", nargs="?", help="path of inprofiled")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--scrape", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--send", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    return wire.ending("clock", lambda: part(given))


def part(given: argparse.Namespace) -> int:
    """The part of the whole that the arguments ask for."""
    if given.send:
        send(given.send)
        return 0
    if given.receive or given.scrape:
        receive() if given.receive else get()
        return 0
    program = wire.path_of(given.program)
    if given.inside:
        return inside(program)
    wire.have_tools({tool: wire.TOOLS[tool] for tool in ("ip", "ethtool")})
    return outside(program)


if __name__ == "__main__":
    sys.exit(main())
