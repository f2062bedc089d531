"""TCP transfers by Linux's own senders and by ours over the same link; writes docs/transfers.{md,json}.

Linux is Debian's user-mode-linux (`uml.py`): sender, link and receiver are three network namespaces of one
guest. Leaves with 1 if a figure that has to agree lies outside its bounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from uml import ROOT, LinuxMissing, boot, compiled, program

from inprofile import Result, load

PAGE = ROOT / "validation" / "linux" / "transfers.md"
"""The page, with room for the figures."""

SOURCE = ROOT / "validation" / "linux" / "transfer.c"

SECONDS, FROM = 26, 6
"""Length of a run, and from when on it is measured."""

SEEDS = 10
"""Of each simulation."""

BURST = 30_280
"""Bytes that the link makes good after its timer was late: the guest's clock ticks every 10 ms."""

RTT = 40
"""Without queue, in ms."""

STALL, BOOTS = 100.0, 3
"""A run in which the guest stood still for longer, in ms, is repeated, at most so often in all; the run that
stood still for the shortest time counts. Half of the least RTO: with more, timers expire that no loss set."""

SEEN = np.dtype(
    [("at", "<u8"), ("acked", "<u8")]
    + [(name, "<u4") for name in ("flow", "cwnd", "ssthresh", "rtt", "retransmitted", "sent", "delivered")]
    + [(name, "<u4") for name in ("marked", "alpha", "least_rtt")]
)
"""As `transfer.c` writes it."""

GOODPUT, QUEUE, SHARE, AGAIN, TIMEOUTS = 0.05, 0.25, 0.15, 0.5, 4
"""How far Linux may be from ours: of goodput and of mean queueing delay, relative; of the first sender's
share; of the share of segments sent again, relative, or 0.2 points; of timeouts."""


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
    settled: bool = True
    """Whether it has to agree; not where the page says why it cannot."""


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
    Case("dctcp", "DCTCP, RED from 15 kB on", ("dctcp", "dctcp"), 10, *RAMP, settled=False),
    Case("cubic", "CUBIC, drop-tail", ("cubic", "cubic"), 10, *drop_tail(60_000)),
    Case("reno", "Reno, drop-tail", ("reno", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-reno", "CUBIC beside Reno, drop-tail", ("cubic", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-codel", "CUBIC, CoDel", ("cubic", "cubic"), 10, *CODEL, settled=False),
    Case("cubic-many", "Ten CUBIC, 15 packets of buffer", ("cubic",) * 10, 4, *drop_tail(22_710)),
    Case("reno-many", "Ten Reno, 15 packets of buffer", ("reno",) * 10, 4, *drop_tail(22_710)),
)


@dataclass(frozen=True)
class Measured:
    """Of one run, or means over several."""

    goodput: float
    """Mbit/s."""
    queue: float
    """Mean queueing delay in ms: of Linux, by how much the smoothed round-trip time is above the least."""
    share: float
    """Of the goodput, the first sender's."""
    again: float
    """Segments sent again, of those sent."""
    timeouts: float
    """Over the whole run."""


@dataclass(frozen=True)
class Row:
    """Both sides."""

    case: str
    title: str
    linux: Measured
    ours: Measured
    spread: Measured
    """Standard deviations of a run of ours."""
    alpha: float | None
    """DCTCP's mean alpha in Linux."""
    stall: float
    """The longest time in ms between two looks at the sockets: how long the guest stood still."""
    runs: int
    """How often it was run because of that."""

    @property
    def stalled(self) -> bool:
        """Whether it says nothing, as the guest stood still for too long in every run."""
        return self.stall > STALL

    @property
    def verdicts(self) -> dict[str, bool]:
        """What lies within its bounds."""
        a, b = self.linux, self.ours
        return {
            "goodput": abs(a.goodput - b.goodput) <= GOODPUT * b.goodput,
            "queue": abs(a.queue - b.queue) <= QUEUE * b.queue,
            "share": abs(a.share - b.share) <= max(SHARE, 2 * self.spread.share),
            "again": abs(a.again - b.again) <= max(AGAIN * b.again, 0.002),
            "timeouts": abs(a.timeouts - b.timeouts) <= max(TIMEOUTS, 3 * self.spread.timeouts),
        }


def script(folder: Path, cases: Sequence[Case]) -> str:
    """The guest's first and only process."""
    modules = "veth sch_tbf sch_netem sch_codel sch_red tcp_dctcp"
    lines = [
        "#!/bin/sh",
        f"cd {folder}",
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "mount -t proc proc /proc; mount -t sysfs sys /sys",
        "uname -r > version",
        f"for m in {modules}; do modprobe -d {folder} $m || echo no module $m; done",
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
    return "\n".join([*lines, "echo o > /proc/sysrq-trigger", "sleep 10", ""])


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
"""What Linux did: figures, DCTCP's alpha, the longest stall in ms."""


def record(cases: Sequence[Case], tell: Callable[[str], None]) -> tuple[dict[str, Theirs], Counter[str], str]:
    """What Linux did in each case, how often it was run, and the kernel's version.

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
            tell(f"Linux boots; {len(left)} transfers take {longest:.0f} s")
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
            tell(f"the guest stood still: {names}; again")
    return best, runs, version


def theirs(folder: Path, case: Case, said: str) -> Theirs:
    """What Linux did."""
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
    queue = float(np.mean([f["rtt"].mean() - f["least_rtt"].min() for f in flows])) / 1000
    timeouts = counter((folder / f"{case.name}.netstat").read_text(encoding="utf-8"), "TCPTimeouts")
    alpha = float(window["alpha"].mean()) / 1024 if "dctcp" in case.controls else None
    first = seen[seen["flow"] == 0]["at"].astype(np.int64)
    found = Measured(sum(rates), queue, rates[0] / sum(rates), again / sent, timeouts)
    return found, alpha, float(np.diff(first).max()) / 1e6


def experiment(case: Case) -> str:
    """The same for the simulator. Ethernet's header and the timestamp option make packets of 1,514 B."""
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
rate = "{case.rate} Mbit/s"
delay = "1 ms"
queue = {{ {case.ours} }}
{flows}"""


def ours(case: Case) -> list[Measured]:
    """Each run of ours."""
    with tempfile.TemporaryDirectory(prefix="inprofile-transfers-") as name:
        file = Path(name) / f"{case.name}.toml"
        file.write_text(experiment(case), encoding="utf-8")
        scenario = load(file)
        return [one(scenario.run([seed], jobs=1)) for seed in range(1, SEEDS + 1)]


def one(result: Result) -> Measured:
    """One run's figures."""
    metrics = result.metrics.to_pydict()
    value = dict(zip(metrics["name"], metrics["value"], strict=True))
    flows = result.flows.to_pydict()
    goodput = flows["goodput"]
    sent = sum(flows["sent_in"]) + sum(flows["sent_out"])
    return Measured(
        sum(goodput) / 1e6,
        value["delay_mean"] * 1e3,
        goodput[0] / sum(goodput),
        value["retransmissions"] / sent,
        value["timeouts"],
    )


def mean(runs: Sequence[Measured], over: Callable[[list[float]], float] = statistics.mean) -> Measured:
    """Figure by figure."""
    return Measured(*(over([asdict(run)[name] for run in runs]) for name in asdict(runs[0])))


def line(row: Row) -> str:
    """A row of the table."""
    a, b, s = row.linux, row.ours, row.spread
    ok = {name: "" if within or row.stalled else " **!**" for name, within in row.verdicts.items()}
    cells = [
        row.title,
        f"{b.goodput:.2f} / {a.goodput:.2f}{ok['goodput']}",
        f"{b.queue:.1f} ± {s.queue:.1f} / {a.queue:.1f}{ok['queue']}",
        f"{100 * b.share:.0f} ± {100 * s.share:.0f} / {100 * a.share:.0f}{ok['share']}",
        f"{100 * b.again:.2f} ± {100 * s.again:.2f} / {100 * a.again:.2f}{ok['again']}",
        f"{b.timeouts:.1f} ± {s.timeouts:.1f} / {a.timeouts:.0f}{ok['timeouts']}",
        f"{row.stall:.0f}{' **stalled**' if row.stalled else ''}",
        f"{row.runs}",
    ]
    return "| " + " | ".join(cells) + " |"


def read(found: dict[str, Any]) -> list[Row]:
    """The rows of the JSON."""
    sides = ("linux", "ours", "spread")
    return [Row(**(row | {side: Measured(**row[side]) for side in sides})) for row in found["rows"]]


def page(rows: Sequence[Row], kernel: str) -> str:
    """The table and what it means."""
    judged = [row for row in rows if not row.stalled]
    within = sum(all(row.verdicts.values()) for row in judged)
    alphas = ", ".join(f"{row.alpha:.3f}" for row in rows if row.alpha is not None)
    filled = PAGE.read_text(encoding="utf-8")
    for name, value in {
        "kernel": kernel,
        "seeds": str(SEEDS),
        "within": f"{within} of {len(judged)}",
        "stalled": f"{len(rows) - len(judged)}",
        "stall": f"{STALL:.0f}",
        "boots": f"{BOOTS}",
        "rows": "\n".join(line(row) for row in rows),
        "alpha": alphas,
        "burst": f"{BURST:,}",
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled


def main() -> int:
    """Boot, compare, tell on the way, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of cases; nothing is written then")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    try:
        recorded, often, version = record(cases, tell)
    except LinuxMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    rows = []
    for case in cases:
        found, alpha, stall = recorded[case.name]
        runs = ours(case)
        spread = mean(runs, statistics.stdev)
        rows.append(Row(case.name, case.title, found, mean(runs), spread, alpha, stall, often[case.name]))
        tell(line(rows[-1]))
    if not options.only:
        text = json.dumps({"kernel": version, "rows": [asdict(row) for row in rows]}, indent=2) + "\n"
        (ROOT / "docs" / "transfers.json").write_text(text, encoding="utf-8")
        (ROOT / "docs" / "transfers.md").write_text(page(rows, version), encoding="utf-8")
    settled = {case.name for case in cases if case.settled}
    judged = [row for row in rows if row.case in settled and not row.stalled]
    return 0 if all(all(row.verdicts.values()) for row in judged) else 1


def tell(what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
