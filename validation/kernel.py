"""Runs experiments simulated and with real hosts, and writes docs/kernel.{md,json}.

Real hosts run in wall time, so several experiments run side by side: `--jobs`. How late packets were handed
to their hosts is shown beside each result. `--runs` and `--seconds` shorten it; `--only`
runs some cases and keeps the figures of the others; `--simulated` simulates again and keeps what was measured
with real hosts, which is all that a change to the simulator asks for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from inprofile import Scenario, load
from inprofile.live import hindrance

ROOT = Path(__file__).parent.parent
PAPERS = ROOT / "python" / "inprofile" / "papers"
PAGE = ROOT / "validation" / "kernel.md"
"""The page, with room for the figures."""

SIMULATED = 20
"""Seeds of each simulation."""

SHARES, FAIRNESS, QUEUE = 0.10, 0.02, 0.15
"""How far live may be from simulated: of a flow's share, of Jain's index, of the mean queue."""

MODERN = {
    "engine.profile": "exact",
    "tcp.profile": "rfc",
    "tcp.delayed_ack": "0 s",
    "tcp.min_rto": "200 ms",
    "tcp.initial_window": "2 packets",
}
"""What a paper's file says of ns-2's TCP, said of the kernel's."""

TRANSPORTS = {"reno": "sack", "cubic": "cubic"}
"""The kernel's name, and the experiment's: Linux's Reno recovers by selective acknowledgements."""


@dataclass(frozen=True)
class Case:
    """One experiment."""

    name: str
    title: str
    file: Path
    set: tuple[tuple[str, object], ...] = ()

    def scenario(self, transport: str, seconds: int | None) -> Scenario:
        """With this transport; shortened to so many seconds, of which the last two thirds count."""
        values: dict[str, object] = dict(MODERN) | dict(self.set)
        values["tcp.congestion"] = TRANSPORTS[transport]
        if seconds is not None:
            values["duration"] = f"{seconds} s"
            values["measure.from"] = f"{seconds // 3} s"
            values["measure.to"] = f"{seconds} s"
        return load(self.file).with_(values)


ARD = (("edges.ER.marker.kind", "ard"), ("edges.ER.marker.act", True), ("edges.ER.marker.p_drop", 0.02))

CASES = (
    Case("a-rio", "A: four flows, RIO", PAPERS / "ard" / "four-flows.toml"),
    Case("a-ard", "A: four flows, ARD", PAPERS / "ard" / "four-flows.toml", ARD),
    Case("a-rio-20", "A: twenty flows, RIO", PAPERS / "ard" / "twenty-flows.toml"),
    Case("d-red", "D: five flows, RED", ROOT / "validation" / "kernel" / "red.toml"),
    Case("e-wred", "E: ten flows, TSW2CM and WRED", ROOT / "validation" / "kernel" / "wred.toml"),
)


@dataclass(frozen=True)
class Measured:
    """Means over runs."""

    shares: list[float]
    fi: float
    goodput: float
    queue: float
    loss_in: float | None
    loss_out: float | None
    timeouts: float
    spread: dict[str, float]
    """Standard deviation over the runs of `fi` and `queue`."""


@dataclass(frozen=True)
class Row:
    """One experiment with one transport."""

    case: str
    title: str
    transport: str
    seconds: float
    runs: int
    simulated: Measured
    live: Measured
    yardstick: float
    """The most that a share differs between as many simulated runs and the others: what chance alone does."""
    late: dict[str, float]
    notes: list[str]

    @property
    def share_off(self) -> float:
        """The most that a flow's share differs, relative to the simulated one."""
        return most_off(self.live, self.simulated)

    @property
    def verdicts(self) -> dict[str, bool]:
        """What lies within its bound."""
        return {
            "shares": self.share_off <= SHARES,
            "fi": abs(self.live.fi - self.simulated.fi) <= FAIRNESS,
            "queue": abs(self.live.queue / self.simulated.queue - 1) <= QUEUE,
        }


def most_off(some: Measured, others: Measured) -> float:
    """The most that a flow's share differs, relative to the others' share."""
    return max(abs(a / b - 1) for a, b in zip(some.shares, others.shares, strict=True))


def measured(results: Sequence[dict[str, Any]]) -> Measured:
    """Means over single runs."""

    def mean(name: str) -> float | None:
        values = [r["metrics"][name] for r in results if name in r["metrics"]]
        return statistics.fmean(values) if values else None

    def spread(name: str) -> float:
        return statistics.stdev([r["metrics"][name] for r in results]) if len(results) > 1 else 0.0

    flows = [statistics.fmean(column) for column in zip(*(r["flows"] for r in results), strict=True)]
    total = sum(flows)
    return Measured(
        shares=[f / total for f in flows],
        fi=mean("fi") or 0.0,
        goodput=mean("goodput") or 0.0,
        queue=mean("queue_mean") or 0.0,
        loss_in=mean("loss_in"),
        loss_out=mean("loss_out"),
        timeouts=mean("timeouts") or 0.0,
        spread={"fi": spread("fi"), "queue": spread("queue_mean")},
    )


def one(case: Case, transport: str, seconds: int | None, seed: int, real: bool) -> dict[str, Any]:
    """One run, in a process of its own."""
    scenario = case.scenario(transport, seconds)
    result = scenario.live([seed]) if real else scenario.run([seed], jobs=1)
    metrics = result.metrics.to_pydict()
    return {
        "metrics": dict(zip(metrics["name"], metrics["value"], strict=True)),
        "flows": result.flows.to_pydict()["goodput"],
        "live": [dict(run) for run in result.provenance.live or ()],
    }


def main() -> int:
    """Run everything, tell on the way, write both files. 0 if all lies within its bounds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs with real hosts side by side")
    parser.add_argument("--runs", type=int, default=5, help="runs with real hosts of each")
    parser.add_argument("--seconds", type=int, help="length of each run; default: the file's")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--simulated", action="store_true", help="simulate again, keep what was measured")
    options = parser.parse_args()
    stored = ROOT / "docs" / "kernel.json"
    if options.simulated:
        if options.only or options.seconds:
            parser.error("--simulated is about all cases as they were measured: without --only and --seconds")
        with ProcessPoolExecutor() as pool:
            return write([simulated_again(row, pool) for row in kept(stored, set())])
    hindered = hindrance()
    if hindered is not None:
        sys.stderr.write(f"{hindered}\n")
        return 2
    cases = [c for c in CASES if not options.only or c.name in options.only]
    todo = [(c, t) for c in cases for t in TRANSPORTS]
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:

        def start(case: Case, transport: str, seeds: int, real: bool) -> list[Any]:
            return [
                pool.submit(one, case, transport, options.seconds, seed, real) for seed in range(1, seeds + 1)
            ]

        began = [(c, t, start(c, t, options.runs, True), start(c, t, SIMULATED, False)) for c, t in todo]
        for case, transport, live, simulated in began:
            real = [f.result() for f in live]
            row = row_of(case, transport, options.seconds, real, [f.result() for f in simulated])
            rows.append(row)
            sys.stdout.write(f"{line(row)}\n")
            sys.stdout.flush()
    return write([*kept(stored, {row.case for row in rows}), *rows])


def write(rows: list[Row]) -> int:
    """Both files. 0 if all lies within its bounds, else 1."""
    order = [case.name for case in CASES]
    rows.sort(key=lambda row: (order.index(row.case), row.transport != "reno"))
    found = [asdict(row) | {"share_off": row.share_off, "verdicts": row.verdicts} for row in rows]
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    docs = ROOT / "docs"
    (docs / "kernel.json").write_text(text, encoding="utf-8")
    (docs / "kernel.md").write_text(page(rows), encoding="utf-8")
    return 0 if all(all(row.verdicts.values()) for row in rows) else 1


def simulated_again(row: Row, pool: ProcessPoolExecutor) -> Row:
    """The same experiment with the simulator as it is now."""
    case = next(case for case in CASES if case.name == row.case)
    shortened = None if length(case, row.transport, None) == row.seconds else round(row.seconds)
    started = [
        pool.submit(one, case, row.transport, shortened, seed, False) for seed in range(1, SIMULATED + 1)
    ]
    results = [f.result() for f in started]
    row = replace(row, simulated=measured(results), yardstick=yardstick(results, row.runs))
    sys.stdout.write(f"{line(row)}\n")
    sys.stdout.flush()
    return row


def length(case: Case, transport: str, seconds: int | None) -> float:
    """How many seconds a run takes."""
    return float(str(case.scenario(transport, seconds).check().effective["duration"]).split()[0])


def yardstick(simulated: list[dict[str, Any]], live: int) -> float:
    """The most that a share differs between as many simulated runs as live ones and the others."""
    return most_off(measured(simulated[:live]), measured(simulated[live:]))


def kept(file: Path, again: set[str]) -> list[Row]:
    """Rows of an earlier call, of the cases that were not run again."""
    if not file.exists():
        return []
    rows = []
    for stored in json.loads(file.read_text(encoding="utf-8")):
        if stored["case"] in again:
            continue
        fields = {name: value for name, value in stored.items() if name not in ("share_off", "verdicts")}
        simulated, live = (Measured(**fields.pop(side)) for side in ("simulated", "live"))
        rows.append(Row(simulated=simulated, live=live, **fields))
    return rows


def row_of(
    case: Case,
    transport: str,
    seconds: int | None,
    live: list[dict[str, Any]],
    simulated: list[dict[str, Any]],
) -> Row:
    """Both sides of one experiment."""
    kept = [run for r in live for run in r["live"]]
    return Row(
        case=case.name,
        title=case.title,
        transport=transport,
        seconds=length(case, transport, seconds),
        runs=len(live),
        simulated=measured(simulated),
        live=measured(live),
        yardstick=yardstick(simulated, len(live)),
        late={key: max(run[key] for run in kept) for key in ("late_p50", "late_p99", "late_most")},
        notes=sorted({note for run in kept for note in run["notes"]}),
    )


def percent(value: float | None) -> str:
    """A loss rate; an en dash where nothing came.

    >>> percent(0.0123), percent(None)
    ('1.23 %', '–')
    """
    return "–" if value is None else f"{100 * value:.2f} %"


def line(row: Row) -> str:
    """A row of the table."""
    s, v = row.simulated, row.live
    ok = {name: "" if within else " **!**" for name, within in row.verdicts.items()}
    cells = [
        row.title,
        row.transport,
        f"{row.runs} × {row.seconds:g} s",
        f"{100 * row.share_off:.1f} %{ok['shares']} ({100 * row.yardstick:.1f} %)",
        f"{s.fi:.3f} / {v.fi:.3f}{ok['fi']}",
        f"{s.queue:.1f} / {v.queue:.1f}{ok['queue']}",
        f"{s.goodput / 1e6:.3f} / {v.goodput / 1e6:.3f}",
        f"{percent(s.loss_in)} / {percent(v.loss_in)}",
        f"{percent(s.loss_out)} / {percent(v.loss_out)}",
        f"{s.timeouts:.1f} / {v.timeouts:.1f}",
        f"{1e6 * row.late['late_p50']:.0f}, {1e6 * row.late['late_p99']:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def page(rows: list[Row]) -> str:
    """The table and what it means."""
    within = sum(all(row.verdicts.values()) for row in rows)
    notes = sorted({note for row in rows for note in row.notes})
    filled = PAGE.read_text(encoding="utf-8")
    for name, value in {
        "simulated": str(SIMULATED),
        "within": f"{within} of {len(rows)}",
        "rows": "\n".join(line(row) for row in rows),
        "notes": "\n".join(f"- {note}" for note in notes) or "Nothing that matters for these experiments.",
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled


if __name__ == "__main__":
    sys.exit(main())
