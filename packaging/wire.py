#!/usr/bin/env python3
"""iperf3 through the router, and what leaves it as tshark reads it: DSCP, ECN, checksums.

    host A [h0]══[lan0] inprofiled [wan0]══[h1] host B, and the capture

    packaging/wire.py target/release/inprofiled

Prints a line a flow and ends with 1 if something is wrong. Hosts, router and capture live in namespaces of
this process's own, processes too: whatever ends it, nothing is left. Needs root, or user namespaces; as root
it installs what is missing.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The program, and Debian's package that it comes with.
TOOLS = {
    "iperf3": "iperf3",
    "tshark": "tshark",
    "dumpcap": "wireshark-common",
    "ip": "iproute2",
    "ethtool": "ethtool",
}
SECONDS = 3
# The link and the contract, Mbit/s; the contract's bucket, bytes.
LINK, CONTRACT, DEPTH = 20, 4, 30_000
# A place in the private mount namespace, on a file system that goes with it.
WORK = Path("/run/wire")

SETTINGS = f"""inside = "lan0"
outside = "wan0"
fix_offloads = true
control.socket = "{WORK}/control.sock"
[upstream]
rate = "{LINK} Mbit/s"
[upstream.queue]
aqm = "rio"
limit = "200 packets"
ecn = true
in = {{ min_th = "90 packets", max_th = "150 packets", max_p = 0.02 }}
out = {{ min_th = "10 packets", max_th = "80 packets", max_p = 0.1 }}
[[upstream.classes]]
name = "voice"
dscp = ["EF"]
aqm = "drop_tail"
limit = "50 packets"
rate = "5 Mbit/s"
[[upstream.customers]]
name = "a"
prefix = ["10.0.0.1", "fd00::1"]
contract = "{CONTRACT} Mbit/s"
marker = {{ kind = "token_bucket", depth = "{DEPTH} B" }}
services = [{{ class = "voice", rate = "2 Mbit/s", burst = "15 kB" }}]
"""

BE, AF11, AF12, AF21, EF = 0, 10, 12, 18, 46
NAMES = {BE: "BE", AF11: "AF11", AF12: "AF12", AF21: "AF21", EF: "EF"}
NOT_ECT, ECT1, ECT0, CE = range(4)
# As tshark has it (epan/proto.h): 0 bad, 1 good, 2 not looked at, 3 left out.
GOOD = "1"
FIELDS = [
    "frame.time_relative",
    "ip.dsfield.dscp",
    "ip.dsfield.ecn",
    "ip.checksum.status",
    "ip.len",
    "ipv6.tclass.dscp",
    "ipv6.tclass.ecn",
    "ipv6.plen",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmpv6.checksum.status",
]
# The sums behind the IP header.
SUMS = ["tcp.checksum.status", "udp.checksum.status", "icmpv6.checksum.status"]
# iperf3 opens a UDP flow by a datagram of a few bytes, before it has set the DSCP.
GREETING = 60


@dataclass(frozen=True)
class Flow:
    """The frames that host A sends, and those expected at host B."""

    name: str
    iperf3: str
    # Code points of its data: all of these and no others.
    points: frozenset[int]
    # Whether its packets are metered by the customer's marker.
    metered: bool
    tcp: bool = False

    def data(self, packets: list["Seen"]) -> list["Seen"]:
        """Its packets, without the connection by which iperf3 sees to a UDP flow, and the greeting."""
        return [p for p in packets if (p.tcp if self.tcp else p.udp and p.size > GREETING)]


METERED = frozenset({AF11, AF12})
FLOWS = [
    Flow("TCP with ECN", "-C cubic", METERED, metered=True, tcp=True),
    Flow("UDP, 10 Mbit/s", "-u -b 10M -l 1200", METERED, metered=True),
    Flow("UDP as EF", "-u -b 1M -l 200 -S 0xb8", frozenset({EF}), metered=False),
    Flow("UDP as AF21", "-u -b 2M -l 1200 -S 0x48", frozenset({BE}), metered=False),
]


@dataclass(frozen=True)
class Seen:
    """One packet of host A's, as it came to host B."""

    at: float
    dscp: int
    ecn: int
    size: int
    tcp: bool
    udp: bool
    # Of IPv4's header, which IPv6 has none of; and of TCP, UDP or ICMPv6.
    checksums: tuple[str, str]


class Broken(Exception):
    """The cases that cannot be tried here, and why."""


def run(line: str, namespace: str | None = None) -> str:
    """Runs a command; what it prints."""
    before = ["ip", "netns", "exec", namespace] if namespace else []
    done = subprocess.run([*before, *line.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{line}: {(done.stderr or done.stdout).strip()[:300]}")
    return done.stdout


def have_tools(tools: dict[str, str]) -> None:
    """Installs what is missing, as root; else says what it is."""
    missing = {tool: package for tool, package in tools.items() if not shutil.which(tool)}
    if not missing:
        return
    remedy = "apt-get install " + " ".join(missing.values())
    print(f"{', '.join(missing)}: missing ({remedy})", file=sys.stderr)
    if os.getuid() or not shutil.which("apt-get"):
        raise Broken(f"install them: {remedy}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in ("update -qq", "install -y -qq --no-install-recommends " + " ".join(missing.values())):
        subprocess.run(["apt-get", *words.split()], env=quiet, stdout=subprocess.DEVNULL, check=True)


def own_namespaces(script: str, program: str, keep: Sequence[int] = ()) -> int:
    """Runs a script `--inside`, where all is its own; that ends with us, and with it what it has started."""
    inside = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for rights in ([], ["--user", "--map-root-user"]):
        how = ["unshare", *rights, *inside]
        if subprocess.run([*how, "true"], capture_output=True, check=False).returncode == 0:
            break
    else:
        raise Broken("no namespaces: run it as root, or where user namespaces are allowed")
    libc = ctypes.CDLL(None)
    child = subprocess.Popen(
        [*how, sys.executable, script, "--inside", program],
        pass_fds=keep,
        # PR_SET_PDEATHSIG: even if we are killed.
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL),
    )
    try:
        return child.wait()
    finally:
        child.kill()
        child.wait()


@contextmanager
def started(words: list[str], namespace: str, ready: str) -> Iterator["subprocess.Popen[str]"]:
    """A program in a namespace, from when it says `ready` until the block is over."""
    command = ["ip", "netns", "exec", namespace, *words]
    log = WORK / f"{Path(words[0]).name}.log"
    with log.open("w+") as out:
        program = subprocess.Popen(command, stdout=out, stderr=out, text=True)
        try:
            wait_for(lambda: ready in log.read_text(), program, log)
            yield program
        finally:
            # Nothing, if it has ended by itself.
            program.send_signal(signal.SIGINT)
            program.wait(15)


def wait_for(holds: Callable[[], bool], program: "subprocess.Popen[str]", log: Path) -> None:
    """Waits until something holds that a program brings about."""
    for _ in range(500):
        if holds():
            return
        if program.poll() is not None:
            raise Broken(f"{log.stem} ended with {program.returncode}: {log.read_text()[-300:]}")
        time.sleep(0.02)
    raise Broken(f"{log.stem} isn't ready: {log.read_text()[-300:]}")


def wire() -> None:
    """Hosts a and b, and r between them."""
    run(f"mount -t tmpfs tmpfs {WORK.parent}")
    WORK.mkdir()
    for name in "arb":
        run(f"ip netns add {name}")
        run("ip link set lo up", name)
    for host, end, port, number in (("a", "h0", "lan0", 1), ("b", "h1", "wan0", 2)):
        run(f"ip link add {end} netns {host} type veth peer name {port} netns r")
        run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1", "r")
        run("sysctl -qw net.ipv4.tcp_ecn=1", host)
        run(f"ip addr add 10.0.0.{number}/24 dev {end}", host)
        run(f"ip addr add fd00::{number}/64 dev {end} nodad", host)
        # What a host leaves to its interface nobody behind a veth finishes; the router sees to its own ports.
        run(f"ethtool -K {end} tx off tso off gso off gro off", host)
        run(f"ip link set {end} up", host)
        run(f"ip link set {port} up", "r")


def capture(flow: Flow, six: bool, program: str) -> tuple[list[Seen], dict[str, Any]]:
    """One flow through a router of its own: what came of it, and what the router counted."""
    file, settings = WORK / "far.pcapng", WORK / "router.toml"
    settings.write_text(SETTINGS)
    source, sink = ("fd00::1", "fd00::2") if six else ("10.0.0.1", "10.0.0.2")
    file.unlink(missing_ok=True)
    with started([program, "run", str(settings)], "r", "packets are forwarded"):
        with (
            started(["iperf3", "-s", "-1", "--forceflush"], "b", "Server listening"),
            started(["dumpcap", "-q", "-i", "h1", "-B", "64", "-w", str(file)], "b", "File:") as dumpcap,
        ):
            run(f"iperf3 -c {sink} -t {SECONDS} {flow.iperf3}", "a")
            time.sleep(0.3)
            dumpcap.send_signal(signal.SIGINT)
            dumpcap.wait(10)
        stats = json.loads(run(f"{program} stats --json --socket {WORK}/control.sock"))
    checks = " ".join(f"-o {p}.check_checksum:TRUE" for p in ("ip", "tcp", "udp"))
    fields = " ".join(f"-e {f}" for f in FIELDS)
    family = "ipv6" if six else "ip"
    mine = f"{family}.src=={source}"
    text = run(f"tshark -r {file} {checks} -Y {mine} -T fields -E separator=, -E occurrence=f {fields}")
    return [seen(line) for line in text.splitlines()], stats


def seen(line: str) -> Seen:
    """A line of tshark's."""
    of = dict(zip(FIELDS, line.split(","), strict=True))
    six = not of["ip.len"]
    size = int(of["ipv6.plen"]) + 40 if six else int(of["ip.len"])
    kind = "ipv6.tclass" if six else "ip.dsfield"
    return Seen(
        at=float(of["frame.time_relative"]),
        dscp=int(of[f"{kind}.dscp"], 0),
        ecn=int(of[f"{kind}.ecn"], 0),
        size=size,
        tcp=bool(of["tcp.checksum.status"]),
        udp=bool(of["udp.checksum.status"]),
        checksums=(GOOD if six else of["ip.checksum.status"], next((of[s] for s in SUMS if of[s]), "none")),
    )


def faults(flow: Flow, packets: list[Seen], stats: dict[str, Any]) -> list[str]:
    """Its fault, in words."""
    found = []
    data = flow.data(packets)
    points, marks = Counter(p.dscp for p in data), Counter(p.ecn for p in packets)
    if set(points) != flow.points:
        found.append(f"DSCPs {sorted(points)}, not {sorted(flow.points)}")
    bad = sum(p.checksums != (GOOD, GOOD) for p in packets)
    if bad:
        found.append(f"{bad} checksums that aren't right")
    up = stats["directions"][0]
    for colour, point in (("in", AF11), ("out", AF12)):
        left, there = up["markers"][0]["left"][colour], sum(p.dscp == point for p in packets)
        dropped = sum(c[colour] for k in up["classes"] for c in k["dropped"].values())
        if not left - dropped <= there <= left:
            found.append(
                f"{there} packets {NAMES[point]}, of {left} that the router marked, {dropped} dropped"
            )
    marked = sum(sum(c["marked"].values()) for c in up["classes"])
    if marks[CE] != marked:
        found.append(f"{marks[CE]} packets CE, and the router marked {marked}")
    if marks[ECT1] or (not flow.tcp and set(marks) - {NOT_ECT, ECT0}):
        found.append(f"ECN {dict(marks)}, which nobody set")
    if flow.tcp and not (marks[CE] and marks[ECT0] and marks[CE] < marks[ECT0]):
        found.append(f"ECN {dict(marks)}: capable, and some experienced congestion, it should be")
    if flow.metered:
        green = [p for p in packets if p.dscp == AF11]
        span = green[-1].at - green[0].at if green else 0.0
        # RFC 2697's law of one bucket, and what a queue may have held up before the first of them.
        most = CONTRACT * 1e6 / 8 * (span + 0.2) + DEPTH
        if sum(p.size for p in green) > most:
            found.append(
                f"{sum(p.size for p in green)} B AF11 in {span:.2f} s: the contract allows {most:.0f}"
            )
    if not up["adds_up"]:
        found.append("the router's accounts don't add up")
    return found


def inside(program: str) -> int:
    """Everything, in namespaces of our own."""
    wire()
    wrong = 0
    print(f"{'flow':<22}{'packets':>8}  {'DSCP':<22}{'not-ECT':>8}{'ECT(0)':>8}{'CE':>6}  checksums")
    for flow in FLOWS:
        for six in (False, True):
            packets, stats = capture(flow, six, program)
            bad = faults(flow, packets, stats)
            wrong += bool(bad)
            points = Counter(p.dscp for p in flow.data(packets))
            marks = Counter(p.ecn for p in packets)
            right = sum(p.checksums == (GOOD, GOOD) for p in packets)
            shown = ", ".join(f"{NAMES.get(d, d)} {n}" for d, n in sorted(points.items()))
            name = f"{flow.name}, v{6 if six else 4}"
            ecn = f"{marks[NOT_ECT]:>8}{marks[ECT0]:>8}{marks[CE]:>6}"
            print(f"{name:<22}{len(packets):>8}  {shown:<22}{ecn}  {right} right", flush=True)
            for fault in bad:
                print(f"  wrong: {fault}")
    print(
        "all as it should be" if not wrong else f"{wrong} of {2 * len(FLOWS)} flows are not as they should be"
    )
    return int(wrong > 0)


def main() -> int:
    """As its arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", help="path of inprofiled")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return ending("wire", lambda: inside(given.program))
    return ending("wire", lambda: outside(given.program))


def outside(program: str) -> int:
    """Everything, where all is its own."""
    have_tools(TOOLS)
    return own_namespaces(__file__, path_of(program))


def path_of(program: str | None) -> str:
    """The router's program, from the root; Broken if it isn't there."""
    if not program or not os.access(program, os.X_OK):
        raise Broken(f"{program}: no such program; cargo build -p inprofile-router makes it")
    return str(Path(program).resolve())


def ending(name: str, work: Callable[[], int]) -> int:
    """Does it; the exit code, what is wrong having been said in this name."""
    # An end by a signal is an end like any other: what has to be undone is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return work()
    except Broken as e:
        print(f"{name}: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
