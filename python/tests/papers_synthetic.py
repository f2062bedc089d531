"""Results and measures made by hand, for tests of claims and reports. Never used outside tests.

Samples made by hand, and what they are judged to be: for the tests of the rules and of their laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from inprofile import papers
from inprofile.metrics.measures import Measures, Trace
from inprofile.papers import Cell, Job, Paper
from inprofile.papers.claim import Comparison, Effect, Finding, Judged, Number, Verdict
from inprofile.papers.defaults import jobs, values_of, variants_of
from inprofile.papers.judge import judge
from inprofile.papers.report import Report

SEEDS = (1, 2, 3, 4, 5, 6)


@dataclass
class Tables:
    """What `measure` needs of a result."""

    experiment = '{"tcp": {"segment": 1000, "header": 40}, "edges": [{"marker": {"with": {}}}]}'

    @property
    def provenance(self) -> Tables:
        """Stands for its own."""
        return self

    seeds: tuple[int, ...]
    metrics: pa.Table
    flows: pa.Table
    queues: pa.Table
    markers: pa.Table
    series: pa.Table


def tables(seeds: tuple[int, ...] = (1, 2), with_series: bool = True, order: int = 0) -> Tables:
    """Two flows; seed s has rates of 100·s and 300·s kbit/s. Rows shuffled where `order` is not 0."""
    shuffle = np.random.default_rng(order)

    def table(rows: list[dict[str, object]]) -> pa.Table:
        if order:
            rows = [rows[i] for i in shuffle.permutation(len(rows))]
        return pa.Table.from_pylist(rows)

    flows = [
        {
            "seed": s,
            "flow": f"tcp.{i}",
            "rtt": rtt,
            "throughput": rate * s,
            "received_in_rate": rate * s / 2,
            "sent_in": 300,
            "sent_out": 100,
            "dropped_edge": 4 * (i + 1),
            "dropped": 4 * (i + 1) + 6,
        }
        for s in seeds
        for i, (rtt, rate) in enumerate([(0.03, 100e3), (0.02, 300e3)])
    ]
    series: list[dict[str, object]] = []
    if with_series:
        for s in seeds:
            for k in range(2001):
                t = k / 10
                for monitor, what, value in (
                    ("bottleneck", "avg", 20 + s * np.sin(2 * np.pi * t / 5)),
                    ("ER", "tokens", 10.0 if t < 150 else 20.0),
                    ("ER", "tpr", 1.2e6 if t < 100 else 5e5),
                    ("ER", "lambda_in", 0.0 if t < 100 else 4e5),
                    ("ER", "lambda_out", 0.0 if t < 100 else 5e5),
                    # A second with more, a second with less.
                    ("ER", "left_in", 4.5e5 + (1e5 if int(t - 0.05) % 2 else -1e5)),
                    ("ER", "arrived_in", 5e5 + (2e5 if int(t - 0.05) % 2 else -2e5)),
                ):
                    series.append({"seed": s, "monitor": monitor, "what": what, "t": t, "value": value})
            for k in range(201):
                for i in range(2):
                    row = {"seed": s, "monitor": f"tcp.{i}", "what": "received", "t": float(k)}
                    # The second flow changes five seconds into the window.
                    series.append({**row, "value": 1e5 * (i + 1) - (4e4 * i if k > 105 else 0.0)})
    kinds = [
        ("seed", pa.uint64()),
        ("monitor", pa.string()),
        ("what", pa.string()),
        ("t", pa.float64()),
        ("value", pa.float64()),
    ]
    return Tables(
        seeds,
        table([{"seed": s, "name": n, "value": v} for s in seeds for n, v in (("fi", 0.8), ("drops", 3.0))]),
        pa.Table.from_pylist(flows),
        table(
            [
                {
                    "seed": s,
                    "queue": q,
                    "dropped_in": s,
                    "dropped_out": 10 * s,
                    "queue_mean": 2.5,
                    "utilisation": 0.99,
                    "arrived_in": 6000,
                    "arrived_out": 4800,
                    "arrived_in_rate": 5e5,
                    "arrived_out_rate": 4e5,
                }
                for s in seeds
                for q in ("bottleneck", "edge")
            ]
        ),
        table(
            [
                {
                    "seed": s,
                    "place": p,
                    "arrived_in": 1000,
                    "arrived_out": 800,
                    "left_out": 850,
                    "left_in_rate": 4.5e5,
                    "arrived_in_rate": 5e5,
                    "arrived_out_rate": 4e5,
                    "dropped": 10 * s,
                }
                for s in seeds
                for p in ("ER", "tcp.0", "tcp.1")
            ]
        ),
        pa.Table.from_pylist(series, schema=pa.schema(kinds)) if series else pa.schema(kinds).empty_table(),
    )


#: Figures under which every claim holds, by scheme: RIO unfair, ARM better, ARD best.
AS_CLAIMED = {
    "fi": {"rio": 0.79, "arm": 0.97, "ard": 0.99, "placebo": 0.9},
    "std_total": {"rio": 60e3, "arm": 30e3, "ard": 10e3, "placebo": 40e3},
    "std_in": {"rio": 50e3, "arm": 25e3, "ard": 8e3, "placebo": 40e3},
    "total": {"rio": 1.19e6, "arm": 1.19e6, "ard": 1.185e6, "placebo": 1.18e6},
    # Of 4 flows; 20 have five times as much.
    "total_in": {"rio": 9.8e5, "arm": 9.8e5, "ard": 9.7e5, "placebo": 9.6e5},
    "fastest": {"rio": 400e3, "arm": 330e3, "ard": 300.1e3, "placebo": 350e3},
    "slowest": {"rio": 200e3, "arm": 270e3, "ard": 299.9e3, "placebo": 250e3},
    "queue_std": {"rio": 8.0, "arm": 7.0, "ard": 3.0, "placebo": 6.0},
    "queue_cycle": {"rio": 0.8, "arm": 0.7, "ard": 0.2, "placebo": 0.5},
    "queue_avg": {"rio": 20.0, "arm": 20.0, "ard": 20.0, "placebo": 20.0},
    "tokens_low": {"rio": 0.2, "arm": 0.5, "ard": 0.985, "placebo": 0.0},
    "tokens_mean": {"rio": 50.0, "arm": 20.0, "ard": 9.0, "placebo": 0.0},
    "lambda_in": {"rio": 494e3, "arm": 560e3, "ard": 576e3, "placebo": 490e3},
    "arrived_std": {"rio": 80e3, "arm": 60e3, "ard": 30e3, "placebo": 80e3},
    # Change of the greediest flow, and the other way of the most damaged one, once the TPR is set.
    "soon": {"rio": 0.0, "arm": 20e3, "ard": 40e3, "placebo": 0.0},
    "admitted_in": {"rio": 494e3, "arm": 570e3, "ard": 570e3, "placebo": 480e3},
    "admitted_over_tpr": {"rio": 0.87, "arm": 1.0, "ard": 1.0, "placebo": 0.84},
    "admitted_std": {"rio": 80e3, "arm": 40e3, "ard": 20e3, "placebo": 80e3},
    "best": {"rio": 420e3, "arm": 340e3, "ard": 310e3, "placebo": 360e3},
    "worst": {"rio": 180e3, "arm": 260e3, "ard": 290e3, "placebo": 240e3},
    "lambda_out": {"rio": 546e3, "arm": 520e3, "ard": 500e3, "placebo": 540e3},
    "lambda_in_before": {"rio": 494e3, "arm": 494e3, "ard": 494e3, "placebo": 494e3},
    "lambda_out_before": {"rio": 546e3, "arm": 546e3, "ard": 546e3, "placebo": 546e3},
    "tpr": {"rio": 570e3, "arm": 570e3, "ard": 570e3, "placebo": 570e3},
    "lambda_in_over_tpr": {"rio": 0.87, "arm": 0.98, "ard": 1.01, "placebo": 0.86},
    "drops_core": {"rio": 300.0, "arm": 280.0, "ard": 200.0, "placebo": 290.0},
    "drops_upstream": {"rio": 0.0, "arm": 0.0, "ard": 0.0, "placebo": 0.0},
    "drops_marker": {"rio": 0.0, "arm": 0.0, "ard": 100.0, "placebo": 100.0},
    "remarked": {"rio": 0.0, "arm": 90.0, "ard": 50.0, "placebo": 0.0},
    "core_in": {"rio": 494e3, "arm": 500e3, "ard": 520e3, "placebo": 490e3},
    "core_out": {"rio": 546e3, "arm": 540e3, "ard": 530e3, "placebo": 540e3},
    "arrived_in": {"rio": 6000.0, "arm": 6000.0, "ard": 6000.0, "placebo": 6000.0},
    "queue_core": {"rio": 20.0, "arm": 20.0, "ard": 20.0, "placebo": 20.0},
    "used": {"rio": 0.99, "arm": 0.99, "ard": 0.98, "placebo": 0.99},
    "queue_upstream": {"rio": 0.0, "arm": 0.0, "ard": 0.0, "placebo": 0.0},
}


def spread(rng: np.random.Generator) -> np.ndarray:
    """Draws with mean 0 exactly, so that what a test expects of a mean does not hang on luck."""
    x = rng.standard_normal(len(SEEDS))
    return x - x.mean()


def measures(scheme: str, seed: int, traces: bool = True, **changes: float) -> Measures:
    """The figures of `AS_CLAIMED` with a little spread over seeds, or as `changes` say, exactly."""
    rng = np.random.default_rng(seed)
    values = {}
    for name, by_scheme in AS_CLAIMED.items():
        x = np.full(len(SEEDS), changes.get(name, by_scheme[scheme]))
        values[name] = x if name in changes else x * (1 + 0.004 * spread(rng))
    values["fi"] = np.minimum(values["fi"], 1.0)
    t = np.arange(101.0, 111.0)
    trace = Trace(t, 0 * t + 10, 0 * t + 9, 0 * t + 10, 0 * t + 11)
    shown = dict.fromkeys(("queue", "fastest", "slowest", "tokens"), trace)
    # Flow 0 is the greediest in every seed, flow 1 the most damaged.
    shape = np.array([values["fastest"], values["slowest"], values["total"] / 4, values["total"] / 4]).T
    each = {
        "rtt": np.broadcast_to([0.026, 0.032, 0.028, 0.03], shape.shape),
        "throughput": shape,
        "in_share": np.full(shape.shape, 0.5),
        "edge_loss": np.full(shape.shape, 0.01),
        "sent": shape / 80,
        "sent_in": shape / 160,
        # In proportion to IN packets at the edge; the most damaged flow has half of what the queues drop.
        "edge_drops": shape / 16e3,
        "queue_drops": np.broadcast_to([20.0, 60.0, 20.0, 20.0], shape.shape),
        "early": shape,
        "soon": np.array([-values["soon"], values["soon"], 0 * values["soon"], 0 * values["soon"]]).T,
    }
    return Measures(SEEDS, values, shown if traces else {}, each)


def cells(paper: Paper, **changes: float) -> dict[Cell, Measures]:
    """All cells outside sweeps; `changes` are put into every scheme of all set-ups but the first."""
    made = {}
    for i, variant in enumerate(variants_of(paper)):
        for j, setup in enumerate(paper.setups):
            for k, topology in enumerate(paper.topologies):
                for m, scheme in enumerate(paper.schemes):
                    cell = Cell(setup["id"], topology["id"], scheme["id"], variant)
                    own = changes if j else {}
                    made[cell] = measures(scheme["id"], 64 * i + 16 * j + 4 * k + m, **own)
                    for total in ("total", "total_in"):
                        made[cell].values[total] = made[cell][total] * topology["flows"] / 4
    return made


def report(**changes: float) -> Report:
    """A whole report of made-up figures, one sweep included and what the advice needs of another."""
    paper = papers.load("ard")
    made = cells(paper, **changes)
    claims = paper.module("claims")
    judged = judge(claims.findings(paper, made))
    jittered = judge(claims.findings(paper, made, "jitter"))
    sweep = paper.sweeps[0]
    swept = dict(made)
    for setup in sweep["setups"]:
        for value in values_of(sweep):
            for i, scheme in enumerate(("rio", "arm", "ard", "placebo")):
                cell = Cell(setup, "four-flows", scheme, sweep=sweep["id"], value=value)
                swept[cell] = measures(scheme, 1000 + i, traces=False)
    for scheme, value in (("rio", "1000 B"), ("arm", "1000 B"), ("ard", "1000 B"), ("rio", "1460 B")):
        advised = Cell("as-described", "four-flows", scheme, sweep="advised", value=value)
        swept[advised] = measures(scheme, 1000, traces=False)
    derived = {c: [claims.derived("placebo", made[c])] for c in made if c.scheme == "placebo"}
    known = {job.cell: job for batch in jobs(paper, full=True) for job in batch}
    ran = {cell: Job(cell, len(SEEDS), known[cell].file, known[cell].values) for cell in swept}
    digests = dict.fromkeys(swept, "0" * 64)
    return Report(paper, True, True, swept, judged, {"jitter": jittered}, ran, digests, derived)


UP = [1.0, 1.2, 0.9, 1.1, 1.0, 1.05]
MORE = [2.0, 2.2, 1.9, 2.1, 2.0, 2.05]
NOISE = [0.4, -0.5, 0.1, -0.2, 0.3, -0.1]
ZERO = [0.0] * 6


def comparison(values: Sequence[float], side: str = "above", **options: Any) -> Comparison:
    return Comparison("ours above theirs", values, side, **options)  # type: ignore[arg-type]


def number(paper: float, values: list[float] = UP, **options: Any) -> Number:
    return Number("ours", values, paper, "Table 1", **options)


def one(*comparisons: Comparison, numbers: Sequence[Number] = ()) -> Judged:
    return judge([Finding("A1", "here", comparisons, numbers)])[0]


def verdict(*comparisons: Comparison, numbers: Sequence[Number] = ()) -> Verdict:
    return one(*comparisons, numbers=numbers).verdict


HOLDS, OPPOSITE, OPEN = comparison(UP), comparison(UP, "below"), comparison(NOISE)
STUCK = comparison(ZERO, obstacle="the queue is empty")


def several(kind: Comparison, n: int) -> list[Comparison]:
    """Distinct comparisons of one outcome."""
    if kind is STUCK:
        return [Comparison(f"{i}", ZERO, "above", obstacle="empty") for i in range(n)]
    return [Comparison(f"{i}", [x * (1 + 0.01 * i) for x in kind.values], kind.side) for i in range(n)]


def least(size: float) -> Effect:
    return Effect(size, "for the test")


def outcome(values: Sequence[float], side: str = "above", **options: Any) -> str:
    return one(comparison(values, side, **options)).comparisons[0].outcome
