"""The router between two hosts, against the kernel doing the same: throughput, shaping, latency; and a soak.

What is measured runs in network namespaces of its own; this file is also the program that runs inside them.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import veth
from peers import ROOT, TARGET, say
from veth import Flow, datagrams, latency, tcp

Row = dict[str, Any]

# Shaped rates, Mbit/s.
RATES = [10, 50, 100]
# What the kernel counts beside the IP packet, and so do we here.
ETHERNET = 14
# Packets that both shapers hold at most.
QUEUE = 200
# The receiver's buffer where the window is set: no more than what every queue on the way holds.
WINDOW = 250_000
# What `tbf` may send at once: bytes, or seconds of its rate, whichever is more. Woken by its timer it forgets
# what it is owed beyond that: with 5 kB, 400 µs of 100 Mbit/s, every later wake-up costs it rate for good.
BURST, BURST_TIME = 5_000, 0.004
# As large as a rate may be: nothing ever waits.
UNSHAPED = "100 Gbit/s"
# What is compared unshaped: the receiver's buffer (`None`: as the system sets it up), and how often a round.
FREE: dict[str, tuple[int | None, int]] = {
    "TCP, unshaped": (None, 4),
    "TCP, unshaped, window of 250 kB": (WINDOW, 2),
}

# Small packets, a CPU second of the box's core.
SMALL = "64 B UDP, thousands a CPU second"

SETTINGS = """inside = "lan0"
outside = "wan0"
overhead = "{overhead} B"
control.socket = "{socket}"
[upstream]
rate = "{rate}"
[upstream.queue]
aqm = "rio"
limit = "{limit} packets"
in = {{ min_th = "{half} packets", max_th = "{most} packets", max_p = 0.02 }}
out = {{ min_th = "{quarter} packets", max_th = "{most} packets", max_p = 0.05 }}
[[upstream.customers]]
name = "all"
prefix = "0.0.0.0/0"
contract = "{rate}"
marker = {{ kind = "token_bucket", depth = "100 kB" }}
"""


def measure(quick: bool, rounds: int) -> Row:
    """Builds the router and measures it; where that can't be done, says why."""
    try:
        how = veth.rights()
    except RuntimeError as e:
        return {"not_run": str(e)}
    if len(os.sched_getaffinity(0)) < 2:
        return {"not_run": "one core only: the router needs one of its own"}
    say("building the router")
    build = ["cargo", "build", "--quiet", "--locked", "--release", "-p", "inprofile-router"]
    subprocess.run(build, cwd=ROOT, check=True)
    load = round(os.getloadavg()[0], 1)
    command = [
        *how,
        sys.executable,
        __file__,
        str(TARGET / "release" / "inprofiled"),
        str(rounds),
        str(int(quick)),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the router's measurement ended with {done.returncode}")
    found: Row = {"rounds": rounds, "load_before": load} | json.loads(done.stdout)
    say("router: soak under a virtual clock")
    found["soak"].insert(0, virtual_soak(quick))
    return found


def virtual_soak(quick: bool) -> Row:
    """A day's packets through the packet loop under a virtual clock."""
    test = [
        "cargo",
        "test",
        "--quiet",
        "--locked",
        "--release",
        "-p",
        "inprofile-router",
        "--test",
        "soak",
        "--",
    ]
    which = ["a_short_soak"] if quick else ["--ignored"]
    done = subprocess.run(
        [*test, *which, "--nocapture"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    line = re.search(r"^.*?soak (packets=.*)$", done.stdout, re.M)
    if done.returncode or not line:
        raise RuntimeError(f"the soak failed: {(done.stdout + done.stderr).strip()[-300:]}")
    pairs = dict(word.split("=") for word in line[1].split())
    return {
        "name": "virtual clock",
        "packets": int(pairs["packets"]),
        "sent": int(pairs["sent"]),
        "dropped": int(pairs["dropped"]),
        "hours": float(pairs["hours"]),
        "seconds": float(pairs["wall_s"]),
        "rss_kib": [int(x) for x in pairs["rss_kib"].split(",")],
        "adds_up": True,
    }


# From here on: inside a network namespace of our own.


class Box:
    """The wire with what is between the hosts, running."""

    def __init__(
        self, wire: veth.Wire, addresses: list[str], router: "subprocess.Popen[bytes] | None", ask: list[str]
    ):
        self.wire, self.addresses, self.router, self.ask = wire, addresses, router, ask

    def stats(self) -> Row:
        """The router's counters."""
        found: Row = json.loads(veth.run(*self.ask, "--json"))
        return found

    def cpu(self) -> float:
        """CPU time of the router so far, in seconds."""
        if not self.router:
            raise RuntimeError("there is no router to look at")
        tasks = Path(f"/proc/{self.router.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory_kib(self) -> int:
        """Resident memory of the router."""
        status = Path(f"/proc/{self.router.pid}/status").read_text() if self.router else ""
        found = re.search(r"^VmRSS:\s*(\d+)", status, re.M)
        if not found:
            raise RuntimeError("there is no router to look at")
        return int(found[1])


@contextmanager
def kernel(cores: tuple[int, int], rate: int | None) -> Iterator[Box]:
    """The kernel forwards, through a token bucket filter if there is a rate."""
    wire = veth.Wire(*cores)
    try:
        addresses = wire.addresses(forwarded=True)
        if rate:
            limit = QUEUE * (1500 + ETHERNET)
            burst = max(BURST, int(BURST_TIME * rate * 1e6 / 8))
            shaper = f"qdisc add dev wan0 root tbf rate {rate}mbit burst {burst}b limit {limit}"
            veth.run("tc", *shaper.split())
        yield Box(wire, addresses, None, [])
    finally:
        wire.close()


@contextmanager
def bridge(cores: tuple[int, int]) -> Iterator[Box]:
    """The kernel's bridge joins the ports, as the router does."""
    wire = veth.Wire(*cores)
    try:
        addresses = wire.addresses(forwarded=False)
        veth.ip("link add br0 type bridge")
        for port in ("lan0", "wan0"):
            veth.ip(f"link set {port} master br0")
        veth.ip("link set br0 up")
        # A port of a bridge forwards once it has listened; without spanning tree that is at once.
        yield Box(wire, addresses, None, [])
    finally:
        wire.close()
        veth.ip("link del br0")


@contextmanager
def ours(program: str, cores: tuple[int, int], rate: int | None, both_ways: bool = False) -> Iterator[Box]:
    """The router forwards, through a marker and RIO, shaped if there is a rate; one way or both."""
    wire = veth.Wire(*cores)
    router = None
    with tempfile.TemporaryDirectory() as folder:
        control, file = f"{folder}/control", Path(folder) / "router.toml"
        thresholds = {"half": QUEUE // 2, "quarter": QUEUE // 4, "most": QUEUE - 10}
        wanted = f"{rate} Mbit/s" if rate else UNSHAPED
        text = SETTINGS.format(overhead=ETHERNET, socket=control, rate=wanted, limit=QUEUE, **thresholds)
        if both_ways:
            text += text[text.index("[upstream]") :].replace("upstream", "downstream")
        file.write_text(text)
        try:
            addresses = wire.addresses(forwarded=False)
            command = ["taskset", "--cpu-list", str(cores[1]), program, "run", str(file)]
            router = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            ask = [program, "stats", "--socket", control]
            for _ in range(500):
                if subprocess.run(ask, capture_output=True, check=False).returncode == 0:
                    break
                if router.poll() is not None:
                    raise RuntimeError(f"the router ended with {router.returncode}")
                time.sleep(0.02)
            else:
                raise RuntimeError("the router doesn't answer")
            yield Box(wire, addresses, router, ask)
        finally:
            if router:
                router.terminate()
                router.wait(10)
            wire.close()


def spread(values: list[float]) -> list[float]:
    """Median, least, most."""
    return [statistics.median(values), min(values), max(values)]


def compared(name: str, rate: int | None, unit: str, pairs: list[tuple[float, float]]) -> Row:
    """One row of ours against the kernel's."""
    ratio, least, most = spread([a / b for a, b in pairs])
    return {
        "name": name,
        "rate": rate,
        "unit": unit,
        "ours": round(statistics.median(a for a, _ in pairs), 2),
        "kernel": round(statistics.median(b for _, b in pairs), 2),
        "ratio": round(ratio, 4),
        "ratio_min": round(least, 4),
        "ratio_max": round(most, 4),
        "raw_ours": [round(a, 2) for a, _ in pairs],
        "raw_kernel": [round(b, 2) for _, b in pairs],
    }


def veth_soak(program: str, cores: tuple[int, int], seconds: float) -> Row:
    """As many packets as a connection moves in so long; the router's memory at several points."""
    looks, memory, before = 6, [], 0.0
    with ours(program, cores, None) as box:
        for i in range(looks):
            tcp(box, 0.1, seconds / looks, WINDOW)
            if i == 0:
                before = box.stats()["directions"][0]["came"]
            memory.append(box.memory_kib())
        stats = box.stats()
    up = stats["directions"][0]
    drops = sum(up[k] for k in ("dropped", "refused", "marker_dropped", "policed", "no_buffer", "too_late"))
    gone = up["sent"] + up["passed"] + drops + up["waiting"]
    if up["came"] <= before:
        raise RuntimeError("the router stopped forwarding in the soak")
    return {
        "name": "veth",
        "packets": up["came"],
        "sent": up["sent"] + up["passed"],
        "dropped": drops,
        "missed": stats["ports"][0]["missed"],
        "refused": stats["ports"][1]["refused"],
        "seconds": round(seconds, 1),
        "rss_kib": memory,
        "adds_up": up["came"] == gone and bool(up["adds_up"]),
    }


def idle(program: str, cores: tuple[int, int], seconds: float) -> float:
    """The share of a core that the router takes while nothing comes."""
    with ours(program, cores, None, both_ways=True) as box:
        time.sleep(1)
        before, since = box.cpu(), time.monotonic()
        time.sleep(seconds)
        return (box.cpu() - before) / (time.monotonic() - since)


def inside(program: str, rounds: int, quick: bool) -> Row:
    """Everything that needs the namespaces."""
    # The devices of this namespace, in this process's own view.
    veth.run("mount", "-t", "sysfs", "sysfs", "/sys")
    veth.ip("link set lo up")
    host, box = sorted(os.sched_getaffinity(0))[-2:]
    cores = (host, box)
    os.sched_setaffinity(0, {host})
    warm, seconds, probes = (0.5, 2.0, 500) if quick else (2.0, 6.0, 3000)
    free: dict[str, list[tuple[Flow, Flow]]] = {name: [] for name in FREE}
    shaped: dict[int, list[tuple[float, float]]] = {rate: [] for rate in RATES}
    small: list[tuple[float, float]] = []
    ways: list[tuple[float, float]] = []
    waits: list[tuple[tuple[float, float], tuple[float, float]]] = []
    stolen = [veth.ticks(core) for core in cores]
    with veth.awake() as awake:
        for r in range(rounds):
            say(f"router: round {r + 1} of {rounds}")
            for name, (window, times) in FREE.items():
                for i in range(times):
                    found = {}
                    # Each is the first by turns.
                    for mine in (i % 2 == 0, i % 2 == 1):
                        with ours(program, cores, None) if mine else kernel(cores, None) as between:
                            found[mine] = tcp(between, warm / 2, seconds / 4, window)
                    free[name].append((found[True], found[False]))
            for mine in (r % 2 == 0, r % 2 == 1):
                if mine:
                    with ours(program, cores, None, both_ways=True) as between:
                        one = datagrams(between, warm / 2, seconds / 2, both=False)[1]
                        ways.append((one, datagrams(between, warm / 2, seconds / 2, both=True)[1]))
                else:
                    with bridge(cores) as between:
                        theirs = datagrams(between, warm / 2, seconds / 2, both=False)[1]
            small.append((ways[-1][0], theirs))
            for rate in RATES:
                with ours(program, cores, rate) as between:
                    payload = tcp(between, warm, seconds, WINDOW).rate
                with kernel(cores, rate) as between:
                    shaped[rate].append((payload, tcp(between, warm, seconds, WINDOW).rate))
            with ours(program, cores, None) as between:
                delay = latency(between, probes)
            with kernel(cores, None) as between:
                waits.append((delay, latency(between, probes)))
    rows = []
    for name, pairs in free.items():
        row = compared(name, None, "Mbit/s", [(a.rate, b.rate) for a, b in pairs])
        for who, flows in (("ours", [a for a, _ in pairs]), ("kernel", [b for _, b in pairs])):
            row[f"busy_{who}"] = [
                round(statistics.median(f.hosts for f in flows), 2),
                round(statistics.median(f.box for f in flows), 2),
            ]
        rows.append(row)
    rows.append(compared(SMALL, None, "k/s", small))
    rows += [compared("TCP, shaped", rate, "Mbit/s", pairs) for rate, pairs in shaped.items()]
    for i, name in enumerate(("one-way delay, median", "one-way delay, 99th percentile")):
        rows.append(compared(name, None, "µs", [(a[i], b[i]) for a, b in waits]))
    say("router: soak over veth")
    lost = [veth.stolen(old, veth.ticks(core)) for old, core in zip(stolen, cores, strict=True)]
    ratio, least, most = spread([both / one for one, both in ways])
    head = {
        "awake": awake,
        "stolen": [round(x, 3) for x in lost],
        "both_ways": {"ratio": round(ratio, 4), "ratio_min": round(least, 4), "ratio_max": round(most, 4)},
        "idle": round(idle(program, cores, 5 if quick else 20), 5),
    }
    return head | {"rows": rows, "soak": [veth_soak(program, cores, 6 if quick else 60)]}


if __name__ == "__main__":
    print(json.dumps(inside(sys.argv[1], int(sys.argv[2]), bool(int(sys.argv[3])))))
