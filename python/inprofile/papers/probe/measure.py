"""What is kept of paper C's runs: a few figures a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...metrics.measures import Array, Measures, Series, by_flow, rows
from .. import Cell, Paper

if TYPE_CHECKING:
    from ...run.results import Result

#: Statistics begin here, in seconds (§3).
FROM = 50.0
#: C10: bins of the offered load, in samples of 160 ms. A round trip with its queueing takes 0.31 s at the
#: highest thresholds: a half, one, and five of it.
BINS = {"half": 1, "one": 2, "five": 10}


def load_variance(arrived: Array, samples: int = 1) -> Array:
    """Variance of the offered load relative to its squared mean, over time; one a seed.

    `arrived` is seeds × times; `samples` of them make one bin, and what fills none at the end is left out.
    """
    whole = arrived.shape[1] // samples * samples
    load = arrived[:, :whole].reshape(len(arrived), -1, samples).mean(axis=2)
    return np.asarray(load.var(axis=1) / load.mean(axis=1) ** 2, dtype=np.float64)


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Reduce one cell's runs: goodput and delay, losses by colour, who got what.

    Goodput is of TCP alone, payload in order; delay is the queueing delay at the bottleneck.
    """
    seeds = result.seeds
    goodput = by_flow(result.flows, seeds, "goodput")
    # The flows of every seed are the scenario's, in its order.
    groups = np.asarray(result.flows["group"].to_pylist()[: goodput.shape[1]])
    sent = {c: by_flow(result.flows, seeds, f"sent_{c}") for c in ("in", "out")}
    queue = rows(result.queues, seeds, queue="bottleneck")
    marked = groups == "marked"
    arrived = {c: queue[f"arrived_{c}"] for c in ("in", "out")}
    values: dict[str, Array] = {
        "goodput": goodput[:, groups != "udp"].sum(axis=1),
        "goodput_tcp": goodput[:, groups != "udp"].mean(axis=1),
        "delay": rows(result.metrics, seeds, name="delay_mean")["value"],
        "utilisation": queue["utilisation"],
        "loss": (queue["dropped_in"] + queue["dropped_out"]) / (arrived["in"] + arrived["out"]),
        "arrived_out": arrived["out"] / (arrived["in"] + arrived["out"]),
        "overflow": queue["dropped_overflow"],
        "share_in": sent["in"][:, marked].sum(axis=1) / sum(s[:, marked].sum(axis=1) for s in sent.values()),
        "timeouts": by_flow(result.flows, seeds, "timeouts").sum(axis=1),
    }
    # No packets of a colour: it has no loss.
    for colour, came in arrived.items():
        if came.min() > 0:
            values[f"loss_{colour}"] = queue[f"dropped_{colour}"] / came
    probes = sent["out"][:, marked].sum(axis=1)
    if probes.min() > 0:
        values["loss_probes"] = (
            1 - by_flow(result.flows, seeds, "received_out")[:, marked].sum(axis=1) / probes
        )
    for group in ("marked", "free", "udp"):
        if (groups == group).any():
            values[f"goodput_{group}"] = goodput[:, groups == group].mean(axis=1)
    if cell.sweep.startswith("two-domains"):
        first = rows(result.queues, seeds, queue="domain-1")
        values["domain_1_lost_out"] = first["dropped_out"] / np.maximum(first["arrived_out"], 1)
    sampled = Series(result.series, seeds)
    load = [sampled.get("bottleneck", f"arrived_{c}") for c in ("in", "out")]
    if load[0] is not None and load[1] is not None:
        after = load[0][0] > FROM
        arrived_rate = (load[0][1] + load[1][1])[:, after]
        for name, samples in BINS.items():
            values[f"load_variance:{name}"] = load_variance(arrived_rate, samples)
    return Measures(tuple(seeds), values, {})
