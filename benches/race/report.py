"""The benchmarks' page, its plot, and the machine and versions they name: never a path or a host name."""

import os
import platform
import re
import subprocess
from math import log10
from pathlib import Path
from typing import Any

import router_page
from peers import Missing, Peer
from tables import rate, table, tables

Result = dict[str, Any]


def machine() -> Result:
    """The machine it ran on."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "load_before": round(os.getloadavg()[0], 1),
    }


def versions(rivals: dict[str, Peer | Missing]) -> Result:
    """Versions of the simulators compared, and of their compilers."""
    found: Result = {}
    for name, rival in rivals.items():
        if isinstance(rival, Peer):
            found[name] = {"version": rival.version, "notes": rival.notes}
        else:
            found[name] = {"not_run": rival.why}
    for tool, ask in (("rustc", "-V"), ("g++", "--version"), ("gcc", "--version")):
        try:
            text = subprocess.run([tool, ask], capture_output=True, text=True, check=False).stdout
            found[tool] = {
                "version": text.splitlines()[0].split(" ", 1)[1] if text else "unknown",
                "notes": [],
            }
        except FileNotFoundError:
            found[tool] = {"not_run": "not installed"}
    return found


def page(result: Result) -> str:
    """docs/benchmarks.md."""
    parts = tables(result)
    beside_plain = parts.get("configurations", "Not measured yet.")
    m = result["machine"]
    made = "\n".join(
        f"- {name}: {v['version']}{''.join('; ' + n for n in v['notes'])}"
        if "version" in v
        else f"- {name}: not run: {v['not_run']}"
        for name, v in result["versions"].items()
    )
    raw = "\n".join(
        f"- {r['peer']}, {r['flows']:,} flows: ours {', '.join(rate(x) for x in r['raw_ours'])}; "
        f"theirs {', '.join(rate(x) for x in r['raw_theirs'])}"
        for r in result["race"]
        if "raw_ours" in r
    )
    return f"""# Benchmarks

This page is written by `make bench`. One run interleaves all contestants, {result["rounds"]} rounds of each
measurement; figures are medians with the smallest and the largest round. Where the machine does other work as
well, compare ratios, not nanoseconds.

{m["cpu"]}, {m["cores"]} cores, Linux {m["kernel"]}; load before the run {m["load_before"]}.

{made}

## Targets

{parts["targets"]}

## The same dumbbell, three simulators

N flows share N Mbit/s behind RED, 50 ms round trip, 1,000 B segments, no tracing, every packet acknowledged.
Packets through the bottleneck per second of CPU time, one core, the run phase alone. Flows share hosts;
ns-3 has √(N/10) of them on each side. Against ns-2 ours runs ns-2's Reno and RED, against ns-3 the RFCs'
SACK and ns-2's RED, which ns-3 also has; ns-3's NewReno with SACK is set to halve the unacknowledged data, as
RFC 6675 says. A row counts where utilisation is within two points and loss within 5 % of the peer's, 12 % at
1,000 flows: about three times the standard deviation of one seed.

{parts["race"]}

Each round, in thousands of packets a CPU second:

{raw}

ns-3 is configured to be fast for this traffic: few hosts (it searches connections and interfaces
linearly), static routes only and no IPv6. That takes 231 thousand instructions a packet (valgrind, 10 flows,
Debian's library) where ten hosts with the usual list of routing protocols took 311 thousand. The rest is
spread thinly: 15 events a packet, a fifth of the instructions in malloc and free, 4 % in checks whether to
log, and no other function takes more than 2 %. The type of event list and the size of the send buffer change
the time by less than its variation. With 32 KiB of instruction cache, 42 of 1,000 instructions miss it,
against 7 in ns-2.

Is that a fair ns-3? Elsewhere Debian's library did 27 to 30 thousand packets a CPU second with ten hosts a
side. Here, in 25 interleaved rounds of 10 flows on a busy machine (November 2026), the best and the median
round were, in thousands: ns-2 789 and 546, its best as elsewhere; ns-3 with ten hosts and the usual list of
routing protocols 12.2 and 8.7, and as compared here 15.4 and 10.7. So the program compared here is a quarter
faster than that scenario's, and load slows both simulators equally. No setting explains the difference:
acknowledging every second packet, which changes the traffic, takes 0.85 of the time per packet, and classic
recovery in place of PRR changes it by less than the noise. It is not the instructions either: PyPI's wheel
executes 0.84 of those of Debian's library and is no faster. What remains, and was not tested, is how well a
machine's caches hold code of that size: on another machine ns-3 may be twice as fast.
{beside_30k(result)}

Why these variants: with the RFCs' Reno against ns-2's, or with ns-3's own halving of the flight without the
segments SACKed or lost, losses differ by up to a quarter, because of TCP and not because of the networks.
Against ns-3 ours has no limited transmit, as ns-3 does none with this traffic. One seed's loss has a relative
standard deviation of 0.5 % at 10 flows (100 s), 0.9 % at 100 (20 s) and 2.6 % at 1,000 (5 s).

## The same access network in ns-3

`benches/tree.toml` at about a tenth of its rates: 100 links, an uplink of 432 Mbit/s, 270 downloads by
CUBIC, two seconds, of which utilisation and loss of the second are compared. Packets through the uplink per
second of the run phase. ns-3 (`benches/peers/tree.cc`) has a host for each round-trip time and not for each
customer, which is to its advantage, and uses one core. UNISON, which runs ns-3 on several, is in no package
of Debian's or PyPI's and takes long to build from source; INET and Quaint are in none either. TCP differs
in detail, so losses count as alike within 15 %.

{parts.get("tree", "Not measured yet.")}

## Configurations

The same dumbbell with features that users add, each run right after the plain link's with the same seed.
Plain: one drop-tail queue of 8 packets a flow, the RFCs' Reno, nothing sampled. The schedulers have two
classes of half the flows, a monitor samples the bottleneck's queue or one flow every 10 ms, and the ns-2
profile has ns-2's clock, order of events and TCP. Thousands of packets through the bottleneck per CPU second;
`plain` against itself shows how much equal runs differ. What keeps paced senders below their targets:
[decision 0067](decisions/0067-pacing-by-trains.md).

{beside_plain}

## Decisions

CPU time per decision in nanoseconds, with counters on; both sides read the same stream of packets. A thousand
objects fit into the cache, a million do not. DPDK: `rte_meter_srtcm` without an excess burst for the token
bucket, `rte_red` for RED, and for RIO one `rte_red` for IN packets and one for all (an OUT packet asks one,
an IN packet both). The REDs and RIOs of one side share one profile. Ours are those that the simulator and the
router run: averages in floating point, and a random number for every packet between the thresholds, where
DPDK computes in integers and draws a number only after a drop. The shares passed differ, as DPDK spaces drops
by p / (2 − count·p) and Floyd and Jacobson by p / (1 − count·p).
In bursts: 64 packets at a time, as our router takes them from its ring, and the objects of all are prefetched
before the first decision: DPDK's by `rte_prefetch0`, our token buckets by a load of each; our REDs and RIOs
are not prefetched. One by one: nothing is prefetched. There is no target here: a packet costs a router
microseconds.

{parts["mechanisms"]}
{unmeasured(result)}

## Size

![nanoseconds a packet against flows](images/benchmarks.svg)

{parts["scale"]}

Bytes a flow are the growth of the process's peak, packets under way included.

## Threads

{parts["threads"]}

## The router

{router_page.text(result["router"])}
{parts["router"]}

{parts.get("customers", "")}

## Where each nanosecond goes

Samples of the run by the innermost of our functions; `make profile` shows more.

{profiles(result)}
"""


def unmeasured(result: Result) -> str:
    """Mechanisms compared with DPDK's that have no figures yet."""
    found = {r["name"] for r in result["mechanisms"]}
    missing = [name for name in ("token_bucket", "red", "rio") if name not in found]
    return f"\nNot measured in their present form: {', '.join(missing)}." if missing else ""


def beside_30k(result: Result) -> str:
    """How our speed in this run compares with ns-3's elsewhere."""
    for row in result["race"]:
        if (row["peer"], row["flows"]) == ("ns-3", 10) and "ours" in row:
            return (
                "With 30 thousand packets a second here, ours would be "
                f"{row['ours'] / 30e3:,.0f} times as fast at 10 flows."
            )
    return ""


def profiles(result: Result) -> str:
    """Shares of the samples, converted to nanoseconds per packet."""
    if "not_run" in result["profile"]:
        return f"Not run: {result['profile']['not_run']}"
    cost = {r["flows"]: r["ns_per_packet"] for r in result["scale"]}
    parts = []
    for flows, rows in result["profile"].items():
        cells = [
            [f"`{name}`", f"{100 * share:.1f} %", f"{share * cost[int(flows)]:.0f}"] for name, share in rows
        ]
        parts.append(table([f"{int(flows):,} flows", "share", "ns a packet"], cells))
    return "\n\n".join(parts)


def plot(result: Result) -> str:
    """Nanoseconds a packet against flows, both axes logarithmic."""
    lines: dict[str, list[tuple[int, float]]] = {
        "ours": [(r["flows"], r["ns_per_packet"]) for r in result["scale"]]
    }
    for r in result["race"]:
        if "theirs" in r:
            lines.setdefault(r["peer"], []).append((r["flows"], 1e9 / r["theirs"]))
    costs = [c for points in lines.values() for _, c in points]
    low, high = int(log10(min(costs))), int(log10(max(costs))) + 1

    def x(flows: float) -> float:
        return 70 + (log10(flows) - 1) * 120

    def y(cost: float) -> float:
        return 30 + (high - log10(cost)) * 260 / (high - low)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 340"'
        ' font-family="sans-serif" font-size="13">',
        '<rect width="640" height="340" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<path d="M70 {at:.1f}H550" stroke="#ddd"/>')
        parts.append(f'<text x="62" y="{at + 4:.1f}" text-anchor="end" fill="#444">{10**power:,}</text>')
    for power in range(1, 6):
        parts.append(
            f'<text x="{x(10**power):.1f}" y="310" text-anchor="middle" fill="#444">{10**power:,}</text>'
        )
    parts.append('<text x="310" y="332" text-anchor="middle" fill="#444">flows</text>')
    parts.append('<text x="70" y="18" fill="#444">nanoseconds of CPU time a packet</text>')
    for (name, points), colour in zip(lines.items(), ("#0b6e4f", "#c1666b", "#48639c"), strict=False):
        places = [(x(f), y(c)) for f, c in points]
        trail = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{trail}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
        a, b = places[-1]
        parts.append(f'<text x="{a + 9:.1f}" y="{b + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
