# ruff: noqa: S603, S607 - it runs ip, tc and ethtool
"""`inprofile diagnose --live` between two namespaces, with limiters of Linux and of inprofiled on the way.

sudo python validation/live_policers.py [--inprofiled PROGRAM] [--time 8] [--connections 8]

A sender and a receiver, each in a namespace, and between them a third with a bridge, behind which Linux's tbf
drops or delays, or with inprofiled, whose customer is policed by a token bucket. A tbf with room for one
packet is a policer: its bucket is as deep as its burst and that packet, and it counts Ethernet's 14 bytes. Of
policers the rate has to be found within 1 % and the burst within 10 %; where there is none, none may be.
Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RATE, BURST = 0.01, 0.1
MTU, FRAME = 1500, 1514
PORT = 5001
A, R, B = (f"inprofile-{os.getpid()}-{end}" for end in "arb")
ROUTER = """\
inside = "ra"
outside = "rb"
fix_offloads = true
[control]
socket = "{folder}/control.sock"
[upstream]
rate = "1 Gbit/s"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}
[[upstream.customers]]
name = "sender"
prefix = "10.77.0.2/32"
contract = "{rate:g} Mbit/s"
marker = {{ kind = "token_bucket", depth = "{burst} B", action = "drop" }}
"""


@dataclass(frozen=True)
class Case:
    """A limiter, and what is true of it in bytes from the IP header on; no rate: it is no policer."""

    told: str
    tbf: str = ""
    router: tuple[float, int] | None = None
    rate: float | None = None
    burst: float | None = None


def cases() -> Iterator[Case]:
    """All of them."""
    for mbit, burst in ((5, 15_000), (10, 30_000), (20, 60_000), (40, 250_000)):
        whole = burst + FRAME
        yield Case(
            f"tbf, {mbit} Mbit/s, {burst} B, room for a packet",
            tbf=f"rate {mbit}mbit burst {burst} limit {FRAME}",
            rate=mbit * 1e6 * MTU / FRAME,
            burst=whole * MTU / FRAME,
        )
    for mbit, burst in ((5, 15_000), (10, 60_000), (20, 100_000)):
        yield Case(
            f"inprofiled, {mbit} Mbit/s, {burst} B", router=(mbit, burst), rate=mbit * 1e6, burst=burst
        )
    for mbit, limit in ((5, 60_000), (20, 100_000), (20, 500_000)):
        yield Case(
            f"tbf, {mbit} Mbit/s, room for {limit} B: a shaper",
            tbf=f"rate {mbit}mbit burst 5000 limit {limit}",
        )
    yield Case("a bridge alone")


def sh(*words: str) -> None:
    """Run it, or end with what it said."""
    subprocess.run(words, check=True, capture_output=True, text=True)


def within(name: str, *words: str) -> list[str]:
    """The command in a namespace."""
    return ["ip", "netns", "exec", name, *words]


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Sender, way and receiver, joined by two pairs of veth, offloads off."""
    try:
        for name in (A, R, B):
            sh("ip", "netns", "add", name)
        for end, name, way in (("a0", A, "ra"), ("b0", B, "rb")):
            sh("ip", "link", "add", end, "netns", name, "type", "veth", "peer", "name", way, "netns", R)
        for name, end, address in ((A, "a0", "10.77.0.2/24"), (B, "b0", "10.77.0.3/24")):
            sh("ip", "-n", name, "addr", "add", address, "dev", end)
        for name, end in ((A, "a0"), (B, "b0"), (R, "ra"), (R, "rb")):
            sh("ip", "-n", name, "link", "set", end, "up")
            off = [word for what in ("tx", "tso", "gso", "gro") for word in (what, "off")]
            sh(*within(name, "ethtool", "-K", end, *off))
        yield
    finally:
        for name in (A, R, B):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextlib.contextmanager
def limiter(case: Case, program: str, folder: Path) -> Iterator[None]:
    """The way between both, with what limits on it."""
    if case.router is None:
        sh("ip", "-n", R, "link", "add", "way", "type", "bridge")
        for end in ("ra", "rb"):
            sh("ip", "-n", R, "link", "set", end, "master", "way")
        sh("ip", "-n", R, "link", "set", "way", "up")
        if case.tbf:
            sh(*within(R, "tc", "qdisc", "replace", "dev", "rb", "root", "tbf", *case.tbf.split()))
        try:
            yield
        finally:
            if case.tbf:
                sh(*within(R, "tc", "qdisc", "del", "dev", "rb", "root"))
            sh("ip", "-n", R, "link", "del", "way")
        return
    file = folder / "router.toml"
    rate, burst = case.router
    file.write_text(ROUTER.format(folder=folder, rate=rate, burst=burst), "utf-8")
    log = folder / "router.log"
    with log.open("w") as said:
        router = subprocess.Popen(within(R, program, "run", str(file)), stdout=said, stderr=said)
        try:
            time.sleep(2)
            if router.poll() is not None:
                sys.exit(f"inprofiled ended: {log.read_text('utf-8')}")
            yield
        finally:
            router.terminate()
            router.wait()


def look(seconds: float, connections: int) -> dict[str, object]:
    """What `inprofile diagnose --live` says."""
    tried = within(A, program_of("inprofile"), "diagnose", "--live", f"10.77.0.3:{PORT}", "--json")
    done = subprocess.run(
        [*tried, "--time", f"{seconds:g}", "--connections", str(connections)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def program_of(name: str) -> str:
    """Beside this interpreter, or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or sys.exit(f"{name} is neither beside {sys.executable} nor on the path")


def judged(case: Case, found: dict[str, object]) -> tuple[bool, str]:
    """Whether it is as it should be, and a row of what was found."""
    kind, rate, burst = found["kind"], found.get("rate"), found.get("burst")
    if case.rate is None or case.burst is None:
        return kind != "policer", str(kind)
    if kind != "policer" or not isinstance(rate, float) or not isinstance(burst, float):
        return False, f"{kind}, {found.get('rate_interval')} bit/s, {found.get('burst_interval')} B"
    off, deep = rate / case.rate - 1, burst / case.burst - 1
    row = f"policer, {rate / 1e6:.4g} Mbit/s ({off:+.2%}), {burst:,.0f} B ({deep:+.1%})"
    return abs(off) <= RATE and abs(deep) <= BURST, row


def main(words: Sequence[str]) -> int:
    """Try all, and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inprofiled", metavar="PROGRAM", help="default: beside Python, or on the path")
    parser.add_argument("--time", type=float, default=8, help="seconds that each is sent for")
    parser.add_argument("--connections", type=int, default=8, help="that send at once")
    given = parser.parse_args(words)
    program = given.inprofiled or program_of("inprofiled")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, namespaces():
        words_of_sink = within(B, program_of("inprofile"), "diagnose", "--sink", str(PORT))
        sink = subprocess.Popen(words_of_sink, stderr=subprocess.PIPE, text=True)
        try:
            # It says so once it listens.
            if sink.stderr is None or not sink.stderr.readline().startswith("Taking"):
                sys.exit("the sink did not start")
            for case in cases():
                with limiter(case, program, Path(folder)):
                    good, row = judged(case, look(given.time, given.connections))
                wrong += not good
                sys.stdout.write(f"{'right' if good else 'WRONG'}  {case.told}: {row}\n")
                sys.stdout.flush()
        finally:
            sink.terminate()
            sink.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
