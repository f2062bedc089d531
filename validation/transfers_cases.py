"""The transfers of `transfers.py`: what is sent over which link, by the simulator and by Linux."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from uml import ROOT, boot, compiled, first_process, program

from inprofile import Result, load

SECONDS, FROM = 26, 6
"""Length of a run, and from when on it is measured."""

SEEDS = 10
"""Of each simulation."""

BURST = 30_280
"""Bytes that the link makes good after its timer was late: the guest's clock ticks every 10 ms."""

RTT = 40
"""Without queue, in ms."""

TICK = 10_000
"""Of the guest's clock, in us."""

PACKET = 1_514
"""On the wire, in bytes."""


@dataclass(frozen=True)
class Case:
    """One experiment."""

    name: str
    title: str
    controls: tuple[str, ...]
    """Linux's names, one a connection."""
    rate: int
    """Mbit/s."""
    linux: str
    """`tc`'s discipline."""
    ours: str
    """The queue's table."""


NAMES = {"reno": '"sack"', "cubic": '"cubic"', "dctcp": '"dctcp"'}
"""Linux's name of a control, and the experiment's."""


def drop_tail(bytes_: int) -> tuple[str, str]:
    """A queue of so many bytes."""
    return f"bfifo limit {bytes_}", f'aqm = "drop_tail", limit = "{bytes_} B"'


RAMP = (
    "red limit 1000000 min 15000 max 150000 avpkt 1000 burst 15 probability 1 bandwidth 10mbit ecn",
    'aqm = "red", limit = "1000000 B", min_th = "15000 B", max_th = "150000 B", max_p = 1.0, w_q = 0.5,'
    " gentle = false, ecn = true",
)
"""The average follows the queue within two packets (tc-red(8): w_q = 1/2)."""

CODEL = (
    "codel limit 1000 target 5ms interval 100ms noecn",
    'aqm = "codel", limit = "1000 packets", ecn = false, variant = "linux", mtu = "1514 B"',
)

CASES = (
    Case("dctcp", "DCTCP, RED from 15 kB on", ("dctcp", "dctcp"), 10, *RAMP),
    Case("cubic", "CUBIC, drop-tail", ("cubic", "cubic"), 10, *drop_tail(60_000)),
    Case("reno", "Reno, drop-tail", ("reno", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-reno", "CUBIC beside Reno, drop-tail", ("cubic", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-codel", "CUBIC, CoDel", ("cubic", "cubic"), 10, *CODEL),
    Case("cubic-many", "Ten CUBIC, 15 packets of buffer", ("cubic",) * 10, 4, *drop_tail(22_710)),
    Case("reno-many", "Ten Reno, 15 packets of buffer", ("reno",) * 10, 4, *drop_tail(22_710)),
)


@dataclass(frozen=True)
class Measured:
    """Of one run, or means over several."""

    goodput: float
    """Mbit/s."""
    queue: float
    """Mean time at the link in ms, transmission included: of Linux, by how much the smoothed round-trip time
    is above the least that any of the case's connections has seen."""
    share: float
    """Of the goodput, the first sender's."""
    again: float
    """Segments sent again, of those sent."""
    timeouts: float
    """Over the whole run."""


def experiment(case: Case, *, ticks: bool = False) -> str:
    """The same for the simulator. Ethernet's header and the timestamp option make packets of 1,514 B.

    With `ticks` the link serves as the guest's does: every 10 ms, at once, what it could have sent since.
    """
    flows = "".join(
        f"""
[[flows]]
name = "f{i}"
from = "H*"
join = {{ node = "L", rate = "1 Gbit/s" }}
to = "R"
rtt = "{RTT} ms"
start = "{100 * i} ms"
tcp = {{ congestion = {NAMES[control]} }}
"""
        for i, control in enumerate(case.controls)
    )
    rate = f'rate = "{case.rate} Mbit/s"'
    if ticks:
        rate = (
            f'rate = "{case.rate * TICK // 100} Mbit/s"\n'
            f'capacity = {{ steps = [{{ at = "100 us", rate = "1 bit/s" }}], repeat = "{TICK} us" }}'
        )
    return f"""
title = "{case.title}"
duration = "{SECONDS} s"
measure = {{ from = "{FROM} s", at = "link", distributions = true }}
seeds = {SEEDS}

[tcp]
profile = "linux"
segment = "1448 B"
header = "66 B"
window = "5000 packets"
jitter = "100 us"

[[links]]
name = "link"
from = "L"
to = "R"
{rate}
delay = "1 ms"
queue = {{ {case.ours} }}
{flows}"""


def ours(case: Case, *, ticks: bool = False) -> list[Measured]:
    """Each run of ours."""
    with tempfile.TemporaryDirectory(prefix="inprofile-transfers-") as name:
        file = Path(name) / f"{case.name}.toml"
        file.write_text(experiment(case, ticks=ticks), encoding="utf-8")
        scenario = load(file)
        return [one(scenario.run([seed], jobs=1), case.rate) for seed in range(1, SEEDS + 1)]


def one(result: Result, rate: int) -> Measured:
    """One run's figures, with a link of this many Mbit/s."""
    metrics = result.metrics.to_pydict()
    value = dict(zip(metrics["name"], metrics["value"], strict=True))
    flows = result.flows.to_pydict()
    goodput = flows["goodput"]
    sent = sum(flows["sent_in"]) + sum(flows["sent_out"])
    return Measured(
        sum(goodput) / 1e6,
        value["delay_mean"] * 1e3 + PACKET * 8e-3 / rate,
        goodput[0] / sum(goodput),
        value["retransmissions"] / sent,
        value["timeouts"],
    )


SOURCE = ROOT / "validation" / "linux" / "transfer.c"

STALL, BOOTS = 100.0, 3
"""A run in which the guest stalled for more than STALL ms is repeated, up to BOOTS runs in all; the one with
the shortest stall counts. STALL is half the minimum RTO: in longer stalls timers expire without a loss."""

SEEN = np.dtype(
    [("at", "<u8"), ("acked", "<u8")]
    + [(name, "<u4") for name in ("flow", "cwnd", "ssthresh", "rtt", "retransmitted", "sent", "delivered")]
    + [(name, "<u4") for name in ("marked", "alpha", "least_rtt")]
)
"""A record as `transfer.c` writes it."""


def script(folder: Path, cases: Sequence[Case]) -> str:
    """The guest's first and only process."""
    lines = [
        "sysctl -qw net.ipv4.ip_forward=1",
        'in_s() { nsenter -t "$S" -n "$@"; }',
        'in_r() { nsenter -t "$R" -n "$@"; }',
    ]
    for case in cases:
        n, controls = case.name, " ".join(case.controls)
        lines += [
            "unshare -n sleep 10000 & S=$!",
            "unshare -n sleep 10000 & R=$!",
            "sleep 1",
            "ip link add a0 type veth peer name a1; ip link add b0 type veth peer name b1",
            'ip link set a1 netns "$S"; ip link set b1 netns "$R"',
            "ip addr add 10.0.1.1/24 dev a0; ip addr add 10.0.2.1/24 dev b0",
            # One segment a packet, as the link's queue counts them.
            "ip link set a0 up gso_max_segs 1; ip link set b0 up gso_max_segs 1",
            "in_s ip addr add 10.0.1.2/24 dev a1; in_s ip link set a1 up gso_max_segs 1",
            "in_r ip addr add 10.0.2.2/24 dev b1; in_r ip link set b1 up gso_max_segs 1",
            "in_s ip route add default via 10.0.1.1; in_r ip route add default via 10.0.2.1",
            f"in_r tc qdisc add dev b1 root netem delay {RTT}ms limit 100000",
            f"tc qdisc add dev b0 root handle 1: tbf rate {case.rate}mbit burst {BURST} limit 100000000",
            f"tc qdisc add dev b0 parent 1:1 {case.linux}",
            "for n in in_s in_r; do $n sysctl -qw net.ipv4.tcp_no_metrics_save=1"
            ' net.ipv4.tcp_rmem="4096 4000000 16000000" net.ipv4.tcp_wmem="4096 4000000 16000000"; done',
            f"UNTIL=$(( $(date +%s) + {SECONDS + 1} ))",
            f'in_r ./transfer sink 5000 "$UNTIL" {controls} &',
            "sleep 0.5",
            f'in_s ./transfer source 10.0.2.2 5000 "$UNTIL" {n}.seen {controls} || echo {n} failed',
            f"in_s cat /proc/net/netstat > {n}.netstat",
            f"tc -s -d qdisc show dev b0 > {n}.said",
            'ip link del a0; ip link del b0; kill "$S" "$R"; sleep 1',
        ]
    modules = ("veth", "sch_tbf", "sch_netem", "sch_codel", "sch_red", "tcp_dctcp")
    return first_process(folder, modules, lines)


def counter(netstat: str, name: str) -> int:
    r"""One of the kernel's counters.

    >>> counter("TcpExt: A B\nTcpExt: 1 2\n", "B")
    2
    """
    lines = netstat.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        found = dict(zip(names.split(), values.split(), strict=True))
        if name in found:
            return int(found[name])
    raise ValueError(f"the kernel has no counter {name}")


Theirs = tuple[Measured, float | None, float]
"""Linux's outcome: figures, DCTCP's alpha, the longest stall in ms."""


def record(cases: Sequence[Case], tell: Callable[[str], None]) -> tuple[dict[str, Theirs], Counter[str], str]:
    """Linux's outcome in each case, the number of runs, and the kernel's version.

    Raises:
        LinuxMissing: something is not installed.
        RuntimeError: a transfer did not run.
    """
    kernel, left = program(), list(cases)
    best: dict[str, Theirs] = {}
    runs: Counter[str] = Counter()
    version = ""
    while left:
        with tempfile.TemporaryDirectory(prefix="inprofile-transfers-") as name:
            folder = Path(name)
            compiled(SOURCE, folder / "transfer")
            longest = (SECONDS + 6.0) * len(left)
            tell(f"booting Linux; {len(left)} transfers take {longest:.0f} s")
            said = boot(kernel, folder, script(folder, left), longest)
            version = (folder / "version").read_text(encoding="utf-8").strip()
            for case in left:
                found = theirs(folder, case, said)
                runs[case.name] += 1
                if case.name not in best or found[2] < best[case.name][2]:
                    best[case.name] = found
        left = [case for case in left if best[case.name][2] > STALL and runs[case.name] < BOOTS]
        if left:
            names = ", ".join(f"{case.name} for {best[case.name][2]:.0f} ms" for case in left)
            tell(f"the guest stalled: {names}; again")
    return best, runs, version


def theirs(folder: Path, case: Case, said: str) -> Theirs:
    """Linux's outcome."""
    file = folder / f"{case.name}.seen"
    seen = np.fromfile(file, dtype=SEEN) if file.exists() else np.zeros(0, SEEN)
    if not len(seen):
        raise RuntimeError(f"{case.name} did not run in the guest, which said:\n{said}")
    window = seen[seen["at"] >= seen["at"][0] + FROM * 1_000_000_000]
    flows = [window[window["flow"] == flow] for flow in range(len(case.controls))]
    seconds = float(flows[0]["at"][-1] - flows[0]["at"][0]) / 1e9
    rates = [float(f["acked"][-1] - f["acked"][0]) * 8e-6 / seconds for f in flows]
    sent = sum(int(f["sent"][-1] - f["sent"][0]) for f in flows)
    again = sum(int(f["retransmitted"][-1] - f["retransmitted"][0]) for f in flows)
    # A connection that begins when the queue is full never sees the RTT without it: take the least of all.
    least = min(int(f["least_rtt"].min()) for f in flows)
    queue = float(np.mean([f["rtt"].mean() for f in flows]) - least) / 1000
    timeouts = counter((folder / f"{case.name}.netstat").read_text(encoding="utf-8"), "TCPTimeouts")
    alpha = float(window["alpha"].mean()) / 1024 if "dctcp" in case.controls else None
    first = seen[seen["flow"] == 0]["at"].astype(np.int64)
    found = Measured(sum(rates), queue, rates[0] / sum(rates), again / sent, timeouts)
    return found, alpha, float(np.diff(first).max()) / 1e6
