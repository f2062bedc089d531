"""Results made by hand, for tests of what is done with results."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from inprofile.run.results import Provenance, Result

EMPTY: dict[str, list[tuple[str, pa.DataType]]] = {
    "markers": [("seed", pa.uint64()), ("place", pa.string()), ("kind", pa.string())],
    "signals": [("seed", pa.uint64()), ("from", pa.string()), ("to", pa.string())],
    "queues": [("seed", pa.uint64()), ("queue", pa.string())],
    "series": [
        ("seed", pa.uint64()),
        ("monitor", pa.string()),
        ("what", pa.string()),
        ("t", pa.float64()),
        ("value", pa.float64()),
    ],
    "verdicts": [
        ("seed", pa.uint64()),
        ("time_ps", pa.uint64()),
        ("packet", pa.uint64()),
        ("flow", pa.string()),
        ("point", pa.string()),
        ("verdict", pa.string()),
        ("cause", pa.string()),
        ("why", pa.string()),
    ],
    "downloads": [("seed", pa.uint64()), ("flow", pa.string()), ("group", pa.string())],
    "delays": [
        ("seed", pa.uint64()),
        ("measure", pa.string()),
        ("point", pa.string()),
        ("group", pa.string()),
        ("colour", pa.string()),
        *((n, pa.float64()) for n in ("count", "min", "mean", "p50", "p90", "p99", "p99_9", "max")),
    ],
    "cdf": [("seed", pa.uint64()), ("measure", pa.string())],
    "drops": [
        ("seed", pa.uint64()),
        ("flow", pa.string()),
        ("place", pa.string()),
        ("cause", pa.string()),
        ("in", pa.uint64()),
        ("out", pa.uint64()),
        ("red", pa.uint64()),
    ],
}


def flow(seed: int, name: str, throughput: float, **more: Any) -> dict[str, Any]:
    """A row of `flows`."""
    return {
        "seed": seed,
        "flow": name,
        "group": name.partition(".")[0],
        "contract": 250e3,
        "rtt": 0.03,
        "start": 0.0,
        "throughput": throughput,
        "goodput": throughput / 1.04,
        "sent_in": 60,
        "sent_out": 40,
        "received_in": 60,
        "received_out": 30,
        "sent": 200,
        "received": 180,
        "dropped": 15,
        "in_flight": 5,
        "timeouts": 1,
        "fast_retransmits": 6,
        "retransmissions": 20,
        **more,
    }


def result(
    flows: list[dict[str, Any]], title: str = "made by hand", **tables: list[dict[str, Any]]
) -> Result:
    """A result of these flows; other tables are empty unless given."""
    seeds = sorted({row["seed"] for row in flows})
    metrics = [
        {
            "seed": s,
            "name": "fi",
            "unit": "1",
            "value": 0.9 + s / 100,
            "point": "bottleneck",
            "header": "payload",
        }
        for s in seeds
    ]
    made = {
        "metrics": pa.Table.from_pylist(tables.get("metrics", metrics)),
        "flows": pa.Table.from_pylist(flows),
        **{
            name: pa.Table.from_pylist(tables.get(name, []), pa.schema(fields))
            for name, fields in EMPTY.items()
        },
    }
    experiment = json.dumps({"title": title})
    effective = {"title": title, "measure": {"from": "100 s", "to": "200 s", "at": "bottleneck"}}
    return Result(made, Provenance(title, experiment, effective, tuple(seeds)))
