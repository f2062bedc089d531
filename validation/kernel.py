"""Runs experiments simulated and with real hosts, and writes docs/kernel.{md,json}.

Real hosts run in wall time, so several experiments run side by side: `--jobs`. How late packets were handed
to their hosts is shown beside each result. `--runs` and `--seconds` shorten it; `--only`
runs some cases and keeps the figures of the others; `--simulated` simulates again and keeps what was measured
with real hosts, which is all that a change to the simulator asks for. A call that was cut short goes on
where it was: each run with real hosts is kept in target/kernel until all are done, or for good in the folder
that `--results` names.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernel_rows import Row, measured, page, read, resent_line, share_line, stored, yardstick

from inprofile import Scenario, load
from inprofile.run.live import hindrance
from inprofile.run.storage import record_lines

ROOT = Path(__file__).parent.parent
PAPERS = ROOT / "python" / "inprofile" / "papers"
FIGURES = ROOT / "docs" / "kernel.json"
KEPT = ROOT / "target" / "kernel"
"""Where runs with real hosts are kept until all are done."""

SIMULATED = 20
"""Seeds of each simulation."""

MODERN = {
    "engine.profile": "exact",
    "tcp.delayed_ack": "0 s",
    "tcp.min_rto": "200 ms",
    "tcp.initial_window": "2 packets",
}
"""The settings of ns-2's TCP in a paper's file, as the kernel's."""

CONGESTION = {
    "linux": {"reno": "sack", "cubic": "cubic", "bbr": "bbr"},
    "rfc": {"reno": "sack", "cubic": "cubic"},
}
"""By profile: the kernel's name, and the experiment's. Linux's Reno recovers by SACK."""

PRIORITY = 20
"""Of real-time scheduling, of 1 to 99: below what the machine itself may have at 50 and more."""

COLUMNS = ("goodput", "retransmissions", "dropped", "timeouts")
"""The figures kept of each flow."""


@dataclass(frozen=True)
class Case:
    """One experiment."""

    name: str
    title: str
    file: Path
    set: tuple[tuple[str, object], ...] = ()
    transports: tuple[str, ...] = ("reno", "cubic")
    times: int = 1
    """How many times as many runs with real hosts it needs as the others."""

    def scenario(self, transport: str, seconds: int | None, profile: str = "linux") -> Scenario:
        """With this transport; shortened to so many seconds, of which the last two thirds count."""
        values: dict[str, object] = dict(MODERN) | dict(self.set)
        values |= {"tcp.profile": profile, "tcp.congestion": CONGESTION[profile][transport]}
        if seconds is not None:
            values["duration"] = f"{seconds} s"
            values["measure.from"] = f"{seconds // 3} s"
            values["measure.to"] = f"{seconds} s"
        return load(self.file).with_(values)

    def seconds(self, transport: str) -> float:
        """How many seconds its file says."""
        return float(str(self.scenario(transport, None).check().effective["duration"]).split()[0])


ARD = (("edges.ER.marker.kind", "ard"), ("edges.ER.marker.act", True), ("edges.ER.marker.p_drop", 0.02))
RED = ROOT / "validation" / "kernel" / "red.toml"

CASES = (
    Case("a-rio", "A: four flows, RIO", PAPERS / "ard" / "four-flows.toml"),
    Case("a-ard", "A: four flows, ARD", PAPERS / "ard" / "four-flows.toml", ARD),
    Case("a-rio-20", "A: twenty flows, RIO", PAPERS / "ard" / "twenty-flows.toml"),
    # With as few runs as the others, chance alone would move its shares by as much as their bound allows.
    Case("d-red", "D: five flows, RED", RED, times=2),
    Case("d-red-bbr", "D: five flows, RED", RED, transports=("bbr",)),
    # Slow start sends hundreds of segments again, or none: a run's retransmissions vary by a quarter.
    Case("e-wred", "E: ten flows, TSW2CM and WRED", ROOT / "validation" / "kernel" / "wred.toml", times=2),
)


def one(
    case: Case, transport: str, seconds: int | None, seed: int, profile: str, live: bool = False
) -> dict[str, Any]:
    """One run, in a process of its own."""
    scenario = case.scenario(transport, seconds, profile)
    result = scenario.live([seed]) if live else scenario.run([seed], jobs=1)
    metrics, flows = result.metrics.to_pydict(), result.flows.to_pydict()
    return {
        "metrics": dict(zip(metrics["name"], metrics["value"], strict=True)),
        "flows": {name: flows[name] for name in COLUMNS},
        "live": [dict(run) for run in result.provenance.live or ()],
    }


@contextmanager
def before_all_others() -> Iterator[None]:
    """In real-time scheduling, where that is allowed: what else the machine does would make packets late."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def one_live(case: Case, transport: str, seconds: int | None, seed: int, folder: Path) -> dict[str, Any]:
    """A run with real hosts, kept in a file; or the file's, if it is of this experiment on this kernel."""
    canonical = case.scenario(transport, seconds).canonical
    identity = {
        "experiment": hashlib.sha256(canonical.encode()).hexdigest(),
        "seed": seed,
        "kernel": platform.release(),
    }
    file = folder / f"{case.name}.{transport}.{seed}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if kept["of"] == identity:
            return kept
    with before_all_others():
        found = one(case, transport, seconds, seed, "linux", live=True) | {"of": identity}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found), encoding="utf-8")
    part.rename(file)
    return found


def main() -> int:
    """Run everything, tell on the way, write both files. 0 if all lies within its bounds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs with real hosts side by side")
    parser.add_argument("--runs", type=int, default=5, help="runs with real hosts of each")
    parser.add_argument("--seconds", type=int, help="length of each run; default: the file's")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--simulated", action="store_true", help="simulate again, keep what was measured")
    parser.add_argument("--results", type=Path, help="folder that keeps the runs with real hosts")
    options = parser.parse_args()
    if options.simulated:
        if options.only or options.seconds or options.results:
            parser.error("--simulated is about all cases as they were measured: without other options")
        with ProcessPoolExecutor() as pool:
            return write([simulated_again(row, pool) for row in rows_before(set())])
    hindered = hindrance()
    if hindered is not None:
        sys.stderr.write(f"{hindered}\n")
        return 2
    cases = [c for c in CASES if not options.only or c.name in options.only]
    rows = measure(cases, options.runs, options.seconds, options.jobs, options.results or KEPT)
    if options.results is None:
        shutil.rmtree(KEPT)
    return write([*rows_before({row.case for row in rows}), *rows])


def measure(cases: list[Case], runs: int, seconds: int | None, jobs: int, folder: Path) -> list[Row]:
    """Rows of these cases, each told of as soon as it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        began = []
        for case in cases:
            for transport in case.transports:
                seeds = range(1, runs * case.times + 1)
                real = [pool.submit(one_live, case, transport, seconds, n, folder) for n in seeds]
                began.append((case, transport, real, simulated(pool, case, transport, seconds)))
        for case, transport, real, ours in began:
            rows.append(row_of(case, transport, seconds, [f.result() for f in real], ours))
            tell(rows[-1])
    return rows


def simulated(
    pool: Executor, case: Case, transport: str, seconds: int | None
) -> dict[str, list[Future[dict[str, Any]]]]:
    """Simulations begun, by profile."""
    return {
        profile: [
            pool.submit(one, case, transport, seconds, seed, profile) for seed in range(1, SIMULATED + 1)
        ]
        for profile, has in CONGESTION.items()
        if transport in has
    }


def write(rows: list[Row]) -> int:
    """Both files. 0 if all lies within its bounds, else 1."""
    order = [case.name for case in CASES]
    rows.sort(key=lambda row: (order.index(row.case), list(CONGESTION["linux"]).index(row.transport)))
    text = record_lines(stored(rows))
    FIGURES.write_text(text, encoding="utf-8")
    FIGURES.with_suffix(".md").write_text(page(rows, SIMULATED), encoding="utf-8")
    return 0 if all(all(row.verdicts.values()) for row in rows) else 1


def simulated_again(row: Row, pool: Executor) -> Row:
    """The same experiment with the simulator as it is now."""
    case = next(case for case in CASES if case.name == row.case)
    shortened = None if case.seconds(row.transport) == row.seconds else round(row.seconds)
    ours = {
        p: [f.result() for f in runs] for p, runs in simulated(pool, case, row.transport, shortened).items()
    }
    row = replace(
        row,
        simulated=measured(ours["linux"]),
        rfc=measured(ours["rfc"]) if "rfc" in ours else None,
        yardstick=yardstick(ours["linux"], row.runs),
    )
    tell(row)
    return row


def tell(row: Row) -> None:
    """Shows a row on its way."""
    sys.stdout.write(f"{share_line(row)}\n{resent_line(row)}\n")
    sys.stdout.flush()


def rows_before(again: set[str]) -> list[Row]:
    """Rows of an earlier call, of the cases that are not run again."""
    if not FIGURES.exists():
        return []
    return [row for row in read(json.loads(FIGURES.read_text(encoding="utf-8"))) if row.case not in again]


def row_of(
    case: Case,
    transport: str,
    seconds: int | None,
    live: list[dict[str, Any]],
    begun: dict[str, list[Future[dict[str, Any]]]],
) -> Row:
    """Both sides of one experiment."""
    kept = [run for r in live for run in r["live"]]
    ours = {profile: [f.result() for f in runs] for profile, runs in begun.items()}
    return Row(
        case=case.name,
        title=case.title,
        transport=transport,
        seconds=case.seconds(transport) if seconds is None else float(seconds),
        runs=len(live),
        simulated=measured(ours["linux"]),
        rfc=measured(ours["rfc"]) if "rfc" in ours else None,
        live=measured(live),
        yardstick=yardstick(ours["linux"], len(live)),
        late={key: max(run[key] for run in kept) for key in ("late_p50", "late_p99", "late_most")},
        notes=sorted({note for run in kept for note in run["notes"]}),
    )


if __name__ == "__main__":
    sys.exit(main())
