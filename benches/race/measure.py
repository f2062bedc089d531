"""The measurements, and where their time goes.

Every round runs all contestants one after the other, so that other load hits all alike; only ratios within a
round count.

The engine is compiled into a few large functions, so that a plain profile says little; hence every sampled
address is looked up in the debugging information, inlined functions included.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from peers import ROOT, STORE, Missing, Peer, output, say

Row = dict[str, Any]

# Simulated seconds by number of flows: long enough to pass the start, short enough for ns-3.
SECONDS = {10: 100, 100: 20, 1000: 5}
# The same for configurations: about a million packets a run.
CONFIGURATION_SECONDS = {10: 500, 100: 50, 1000: 8}
# Ours alone.
SCALE_SECONDS = {10: 100, 100: 20, 1000: 5, 10_000: 3, 100_000: 2}
# Packets per burst: what the router takes from its ring, and one.
BURSTS = (64, 1)
# Bytes of a full packet on the wire.
WIRE = 1040
# Tolerances of utilisation and, relative to the peer's, of loss: at least three standard deviations of one
# seed's loss, which are 0.5 to 1 % of it at 10 and 100 flows and up to 4 % at 1,000 (mostly start-up).
UTILISATION = 0.02
LOSS = {10: 0.05, 100: 0.05, 1000: 0.12}


# The tree of tree.toml at about a tenth of its rates, as ns-3 needs a minute or more for a second of it:
# customers a street, Mbit/s and packets of a link's queue by level.
CUSTOMERS = 3
LEVELS = {"uplink": (432, 756), "district": (64.8, 108), "street": (10.8, 18)}
# Simulated seconds, and from when on utilisation and loss are compared.
TREE = (2.0, 1.0)
TREE_LOSS = 0.15


@dataclass
class Plan:
    """How much is measured."""

    rounds: int
    # Shorter runs, for trying.
    quick: bool

    def seconds(self, flows: int) -> float:
        """Simulated seconds."""
        return round(SECONDS[flows] * (0.4 if self.quick else 1.0), 3)


def spread(values: list[float]) -> tuple[float, float, float]:
    """Median, least, most."""
    return median(values), min(values), max(values)


def cores() -> list[int]:
    """Those we may use."""
    return sorted(os.sched_getaffinity(0))


def start(command: list[str], core: int | None) -> "subprocess.Popen[str]":
    """Starts a program, on one core if one is named."""
    pin = ["taskset", "--cpu-list", str(core)] if core is not None else []
    return subprocess.Popen(pin + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> list[Row]:
    """Waits for it and reads its lines of name=value."""
    out, err = process.communicate()
    if process.returncode:
        words = " ".join(Path(word).name for word in process.args)  # type: ignore[union-attr, arg-type]
        raise RuntimeError(f"{words} ended with {process.returncode}: {(err or out).strip()[:300]}")
    rows = []
    for line in out.splitlines():
        pairs = dict(word.split("=", 1) for word in line.split() if "=" in word)
        rows.append({k: v if k == "name" else float(v) for k, v in pairs.items()})
    return rows


def pinned(*command: object) -> list[Row]:
    """Runs a program on the last core to its end."""
    return finish(start([str(c) for c in command], cores()[-1]))


def race(bins: Path, rivals: dict[str, Peer | Missing], plan: Plan) -> list[Row]:
    """Packets through the bottleneck per CPU second: ours and theirs, at every number of flows."""
    rows: list[Row] = []
    for flows in SECONDS:
        seconds = plan.seconds(flows)
        present = {name: p for name, p in rivals.items() if isinstance(p, Peer)}
        counted: dict[str, Row] = {}
        if "ns-2" in present:
            # ns-2 repeats itself exactly; counting drops costs it time, so that is a run of its own.
            counted["ns-2"] = pinned(*present["ns-2"].command, flows, seconds, 1)[0]
        ours: dict[str, list[Row]] = {name: [] for name in present}
        theirs: dict[str, list[Row]] = {name: [] for name in present}
        for r in range(plan.rounds):
            say(f"race: {flows} flows, round {r + 1} of {plan.rounds}")
            for name, peer in present.items():
                least = 0.1 if plan.quick else 0.5
                mine = pinned(bins / "bench-dumbbell", flows, seconds, least, name)[0]
                ours[name].append(mine)
                extra = [0] if name == "ns-2" else []
                theirs[name].append(counted.get(name, {}) | pinned(*peer.command, flows, seconds, *extra)[0])
        for name, rival in rivals.items():
            if isinstance(rival, Missing):
                rows.append({"peer": name, "flows": flows, "not_run": rival.why})
            else:
                rows.append({"peer": name} | compare(flows, seconds, ours[name], theirs[name]))
    return rows


def compare(flows: int, seconds: float, ours: list[Row], theirs: list[Row]) -> Row:
    """One row: whether both carried the same traffic, then how fast."""
    mine = [o["packets"] / o["cpu_s"] for o in ours]
    other = [t["packets"] / t["cpu_s"] for t in theirs]
    ratio, least, most = spread([m / o for m, o in zip(mine, other, strict=True)])
    utilisation = median(t["packets"] for t in theirs) * WIRE * 8 / (flows * 1e6 * seconds)
    loss = median(t["dropped"] / t["arrived"] for t in theirs)
    pair = {"utilisation": [ours[0]["utilisation"], utilisation], "loss": [ours[0]["loss"], loss]}
    agrees = alike(flows, pair["utilisation"], pair["loss"])
    return {
        "flows": flows,
        "seconds": seconds,
        "agrees": agrees,
        **{k: [round(v, 4) for v in values] for k, values in pair.items()},
        "ours": round(median(mine)),
        "theirs": round(median(other)),
        "ratio": round(ratio, 2),
        "ratio_min": round(least, 2),
        "ratio_max": round(most, 2),
        "raw_ours": [round(x) for x in mine],
        "raw_theirs": [round(x) for x in other],
    }


def alike(flows: int, utilisation: list[float], loss: list[float]) -> bool:
    """Whether ours and theirs carried the same traffic.

    >>> alike(10, [0.990, 0.992], [0.0175, 0.0176]), alike(10, [0.994, 0.993], [0.021, 0.017])
    (True, False)
    """
    return abs(utilisation[0] - utilisation[1]) <= UTILISATION and abs(loss[0] / loss[1] - 1) <= LOSS[flows]


def tree(bins: Path, ns3: Peer | Missing, plan: Plan) -> Row:
    """One access network: ours in one piece and in two parts, and ns-3's, by CPU and by wall clock."""
    if isinstance(ns3, Missing):
        return {"not_run": ns3.why}
    seconds, since = TREE
    keys: dict[str, object] = {
        "duration": f"{seconds:g} s",
        "measure.from": f"{since:g} s",
        "trees.isp.flows.customer.count": CUSTOMERS,
    }
    for level, (mbits, packets) in LEVELS.items():
        keys[f"trees.isp.levels.{level}.rate"] = f"{mbits} Mbit/s"
        keys[f"trees.isp.levels.{level}.queue.limit"] = f"{packets} packets"
    ours, theirs = [], []
    for r in range(plan.rounds):
        say(f"tree: round {r + 1} of {plan.rounds}")
        sets = [f"{k}={v}" for k, v in keys.items()]
        parts = [str(bins / "bench-parts"), str(ROOT / "benches" / "tree.toml"), "2", "2", "1", *sets]
        ours.append(finish(start(parts, None))[-1])
        theirs.append(finish(start([*ns3.command, str(CUSTOMERS), f"{seconds:g}", f"{since:g}"], None))[-1])
    each = {
        "cpu": [
            (o["packets"] / o["cpu_s"], t["packets"] / t["cpu_s"]) for o, t in zip(ours, theirs, strict=True)
        ],
        "wall": [
            (o["packets"] / o["parts_wall_s"], t["packets"] / t["wall_s"])
            for o, t in zip(ours, theirs, strict=True)
        ],
    }
    utilisation, loss = (
        [median(x[k] for x in side) for side in (ours, theirs)] for k in ("utilisation", "loss")
    )
    agrees = abs(utilisation[0] - utilisation[1]) <= UTILISATION and abs(loss[0] / loss[1] - 1) <= TREE_LOSS
    found: Row = {
        "peer": ns3.version,
        "utilisation": utilisation,
        "loss": loss,
        "agrees": agrees,
        "load": round(os.getloadavg()[0], 1),
        "rounds": plan.rounds,
    }
    for clock, pairs in each.items():
        ratio, least, most = spread([o / t for o, t in pairs])
        found[clock] = {
            "ours": round(median(o for o, _ in pairs)),
            "theirs": round(median(t for _, t in pairs)),
            "ratio": round(ratio, 1),
            "ratio_min": round(least, 1),
            "ratio_max": round(most, 1),
        }
    return found


def mechanisms(bins: Path, dpdk: Peer | Missing, plan: Plan) -> list[Row]:
    """Nanoseconds of CPU time a decision on one stream: in cache and not, in bursts and one by one."""
    rows: list[Row] = []
    STORE.mkdir(parents=True, exist_ok=True)
    for objects in (1000, 1_000_000):
        stream = STORE / f"stream-{objects}.bin"
        pinned(bins / "bench-mechanisms", "write", stream, objects, 1_000_000 if plan.quick else 4_000_000)
        ours: dict[tuple[int, str], list[Row]] = {}
        theirs: dict[tuple[int, str], list[Row]] = {}
        for r in range(plan.rounds):
            say(f"mechanisms: {objects} objects, round {r + 1} of {plan.rounds}")
            for burst in BURSTS:
                for row in pinned(bins / "bench-mechanisms", "run", stream, burst):
                    ours.setdefault((burst, row["name"]), []).append(row)
                if isinstance(dpdk, Peer):
                    for row in pinned(*dpdk.command, stream, burst):
                        theirs.setdefault((burst, row["name"]), []).append(row)
        stream.unlink()
        for (burst, name), mine in ours.items():
            row = {"name": name, "objects": objects, "burst": burst}
            row["ours_ns"] = round(median(m["ns"] for m in mine), 2)
            row["ours_bytes"] = int(mine[0]["bytes"])
            row["ours_passed"] = mine[0]["passed"]
            if isinstance(dpdk, Missing):
                rows.append(row | {"dpdk_ns": None, "not_run": dpdk.why})
                continue
            other = theirs[burst, name]
            ratio, least, most = spread([o["ns"] / m["ns"] for m, o in zip(mine, other, strict=True)])
            rows.append(
                row
                | {
                    "dpdk_ns": round(median(o["ns"] for o in other), 2),
                    "dpdk_bytes": int(other[0]["bytes"]),
                    "dpdk_passed": other[0]["passed"],
                    "ratio": round(ratio, 2),
                    "ratio_min": round(least, 2),
                    "ratio_max": round(most, 2),
                }
            )
    return rows


def configurations(bins: Path, plan: Plan) -> list[Row]:
    """Disciplines, schedulers, monitors and the ns-2 profile beside our plain link, in pairs of runs."""
    rows: list[Row] = []
    for flows, long in CONFIGURATION_SECONDS.items():
        say(f"configurations: {flows} flows, {plan.rounds} rounds")
        seconds = round(long * (0.2 if plan.quick else 1.0), 3)
        pairs: dict[str, list[Row]] = {}
        for pair in pinned(bins / "bench-configurations", flows, seconds, plan.rounds):
            pairs.setdefault(pair["name"], []).append(pair)
        for name, runs in pairs.items():
            ratio, least, most = spread([run["packets"] / run["plain"] for run in runs])
            rows.append(
                {
                    "name": name,
                    "flows": flows,
                    "plain": round(median(run["plain"] for run in runs)),
                    "packets": round(median(run["packets"] for run in runs)),
                    "events_per_packet": round(runs[0]["events"], 2),
                    "ratio": round(ratio, 3),
                    "ratio_min": round(least, 3),
                    "ratio_max": round(most, 3),
                }
            )
    return rows


def scale(bins: Path, plan: Plan) -> list[Row]:
    """Ours alone: cost per packet, and memory."""
    seen: dict[int, list[Row]] = {flows: [] for flows in SCALE_SECONDS}
    for r in range(min(plan.rounds, 3)):
        for flows, seconds in SCALE_SECONDS.items():
            say(f"scale: {flows} flows, round {r + 1} of {min(plan.rounds, 3)}")
            shorter = 0.6 if plan.quick else 1.0
            seen[flows].append(pinned(bins / "bench-dumbbell", flows, round(seconds * shorter, 3), 0.3)[0])
    rows = []
    for flows, runs in seen.items():
        cost, least, most = spread([1e9 * run["cpu_s"] / run["packets"] for run in runs])
        rows.append(
            {
                "flows": flows,
                "ns_per_packet": round(cost, 1),
                "ns_min": round(least, 1),
                "ns_max": round(most, 1),
                "bytes_per_flow": round(median(run["memory_kib"] for run in runs) * 1024 / flows),
                "events_per_packet": round(runs[0]["events"] / runs[0]["packets"], 2),
            }
        )
    return rows


def customers(bins: Path, plan: Plan) -> Row:
    """The router with 10,000 customers: new flows vs one customer, a reload, state reads, shares."""
    say("customers: 10,000 of the router's")
    command = [str(bins / "bench-customers"), str(3 if plan.quick else 7)]
    process = start(command + (["flows"] if plan.quick else []), cores()[-1])
    out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(f"bench-customers ended with {process.returncode}: {err.strip()[:300]}")
    found: Row = json.loads(out)
    return found


def threads(bins: Path, plan: Plan) -> Row:
    """A sweep on two threads against the same sweep in two processes, each on a core of its own."""
    if len(cores()) < 2:
        return {"not_run": "one core only"}
    first, second = cores()[-2:]
    seeds, seconds = (8, 4) if plan.quick else (24, 10)
    sweep = str(bins / "bench-sweep")
    wall: list[float] = []
    work: list[float] = []
    for r in range(plan.rounds):
        say(f"threads: round {r + 1} of {plan.rounds}")
        both = [str(2), "1", str(2 * seeds), str(seconds)]
        pin = ["taskset", "--cpu-list", f"{first},{second}"]
        together = finish(start([*pin, sweep, *both], None))[0]
        halves = [
            start([sweep, "1", str(1 + i * seeds), str(seeds), str(seconds)], core)
            for i, core in enumerate((first, second))
        ]
        apart = [finish(half)[0] for half in halves]
        if sum(a["packets"] for a in apart) != together["packets"]:
            raise RuntimeError(
                "the same seeds moved different numbers of packets on threads and in processes"
            )
        wall.append(max(a["wall_s"] for a in apart) / together["wall_s"])
        work.append(sum(a["cpu_s"] for a in apart) / together["cpu_s"])
    keys = ("ratio", "ratio_min", "ratio_max")
    return {
        **dict(zip(keys, (round(x, 3) for x in spread(wall)), strict=True)),
        "cpu_ratio": round(median(work), 3),
        "seeds": 2 * seeds,
        "flows": 100,
    }


MAP = re.compile(r"PERF_RECORD_MMAP2?.*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*: r-xp (\S+)")
SEGMENT = re.compile(r"\s+LOAD\s+(0x[0-9a-f]+) (0x[0-9a-f]+) \S+ (0x[0-9a-f]+)")
NOISE = re.compile(r"<.*>|::h[0-9a-f]{16}$|\{impl#\d+\}")


def profile(command: list[str]) -> list[tuple[str, float]]:
    """Functions and their shares of the samples, largest first."""
    for tool, package in (("perf", "linux-perf"), ("addr2line", "binutils"), ("readelf", "binutils")):
        if not shutil.which(tool):
            raise RuntimeError(f"{tool} not found: Debian's package {package}")
    STORE.mkdir(parents=True, exist_ok=True)
    data = STORE / "perf.data"
    say(f"sampling {' '.join(Path(c).name for c in command)}")
    done = subprocess.run(
        ["perf", "record", "--quiet", "-F", "4999", "-e", "cpu-clock:u", "-o", data, "--", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"perf record: {(done.stderr or done.stdout).strip()}")
    binary = str(Path(command[0]).resolve())
    maps = []
    samples: Counter[str] = Counter()
    for line in output("perf", "script", "-i", data, "--show-mmap-events", "-F", "ip,sym,dso").splitlines():
        if found := MAP.search(line):
            start, length, offset, name = found.groups()
            if name == binary:
                maps.append((int(start, 16), int(length, 16), int(offset, 16)))
        elif words := line.split():
            samples[line.strip()] += 1 if re.fullmatch("[0-9a-f]+", words[0]) else 0
    names = innermost(binary, maps, samples)
    total = sum(samples.values())
    by_name: Counter[str] = Counter()
    for line, n in samples.items():
        by_name[names[line]] += n
    return [(name, n / total) for name, n in by_name.most_common() if n]


def innermost(binary: str, maps: list[tuple[int, int, int]], samples: Counter[str]) -> dict[str, str]:
    """The function of every sample: the innermost of ours, or, for foreign code, its symbol."""
    segments = [tuple(int(x, 16) for x in s) for s in SEGMENT.findall(output("readelf", "-lW", binary))]
    addresses: dict[str, str] = {}
    names: dict[str, str] = {}
    for line in samples:
        ip, *rest = line.split()
        if not re.fullmatch("[0-9a-f]+", ip):
            names[line] = "?"
            continue
        names[line] = NOISE.sub("", rest[0]) if rest else "?"
        for start, length, offset in maps:
            at = int(ip, 16) - start
            if 0 <= at < length:
                place = at + offset
                for off, virtual, size in segments:
                    if off <= place < off + size:
                        addresses[line] = hex(place - off + virtual)
    asked = sorted(set(addresses.values()))
    text = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-C", "-e", binary],
        input="\n".join(asked),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, str] = {}
    for block in re.split(r"^0x0*", text, flags=re.M)[1:]:
        lines = block.splitlines()
        frames = list(zip(lines[1::2], lines[2::2], strict=False))
        best = frames[0] if frames else ("?", "?")
        for function, place in frames:
            if "/crates/" in place and "/registry/" not in place:
                best = (function, place)
                break
        where = re.search(r"crates/(.*?)/src/(.*?)\.rs", best[1])
        name = NOISE.sub("", best[0]).split("::")[-1] or best[0]
        outer = f" ({where[1]}/{where[2]})" if where else ""
        found["0x" + lines[0]] = f"{name}{outer}"
    for line, address in addresses.items():
        names[line] = found.get(address, names[line])
    return names
