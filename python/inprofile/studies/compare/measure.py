"""The figures kept of a scheme's runs: delay, contracts kept, fairness, utilisation, losses by colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...metrics.measures import Array, Measures, by_flow, rows
from ...metrics.stats import jain

if TYPE_CHECKING:
    from ...run.results import Result

#: A contract is met by this share of it.
ENOUGH = 0.98


@dataclass(frozen=True)
class Measure:
    """One of the things that schemes are compared by."""

    id: str
    title: str
    text: str
    #: Whether more is better; None where that is not for us to say.
    higher: bool | None
    #: Shown as a percentage.
    percent: bool = False


MEASURES = {
    m.id: m
    for m in (
        Measure(
            "met",
            "Contracts met",
            f"fraction of contracts that got at least {100 * ENOUGH:.0f} %",
            True,
            True,
        ),
        Measure(
            "kept",
            "Contract kept",
            "mean of min(1, x/r), x a flow's throughput and r its contract",
            True,
            True,
        ),
        Measure("worst", "Worst contract", "least min(1, x/r) of any flow in the run", None, True),
        Measure(
            "excess",
            "Excess to contracts",
            "of what all flows got beyond contracts, the part that flows with contracts got",
            None,
            True,
        ),
        Measure("fairness", "Fairness", "Jain's index of x/r; of x if no flow has a contract", True),
        Measure("utilisation", "Utilisation", "of the measured link", True, True),
        Measure(
            "best_effort",
            "Best effort",
            "throughput of flows without a contract, as a share of the link",
            None,
            True,
        ),
        Measure("loss_in", "IN lost", "fraction of IN packets dropped at the measured link", None, True),
        Measure("loss_out", "OUT lost", "fraction of OUT (and red) packets dropped there", None, True),
        Measure(
            "loss_edge", "Lost at the edge", "fraction of packets dropped by the edge marker", None, True
        ),
    )
}
#: Those that have winners. Losses by colour have none: what IN means differs from marker to marker.
RANKED = [m for m in MEASURES.values() if m.higher is not None]


def measure(result: Result) -> Measures:
    """Reduce a scheme's runs to `delay` (s, mean queueing) and those of `MEASURES` that exist.

    Throughput is counted on the wire, as contracts are, in order and over the experiment's window.
    """
    seeds, effective = result.seeds, result.provenance.effective
    at = effective["measure"]["at"]
    forward = {g["name"] for g in effective["flows"] if at in g["route"]}
    got = by_flow(result.flows, seeds, "throughput")
    first = result.flows.slice(0, got.shape[1])
    crossing = np.asarray([group in forward for group in first["group"].to_pylist()])
    bought = by_flow(result.flows, seeds, "contract")[0]
    has = crossing & np.isfinite(bought)
    queue = rows(result.queues, seeds, queue=at)
    values: dict[str, Array] = {
        "delay": rows(result.metrics, seeds, name="delay_mean")["value"],
        "utilisation": queue["utilisation"],
    }
    if has.any():
        share = got[:, has] / bought[has]
        values["met"] = (share >= ENOUGH).mean(axis=1)
        values["kept"] = np.minimum(1.0, share).mean(axis=1)
        values["worst"] = np.minimum(1.0, share).min(axis=1)
        if (crossing & ~has).any():
            beyond = np.maximum(0.0, got - np.where(has, bought, 0.0))[:, crossing]
            if beyond.sum(axis=1).min() > 0:
                values["excess"] = beyond[:, has[crossing]].sum(axis=1) / beyond.sum(axis=1)
            rate = queue["sent_rate"] / queue["utilisation"]
            values["best_effort"] = got[:, crossing & ~has].sum(axis=1) / rate
    else:
        share = got[:, crossing]
    values["fairness"] = np.asarray([jain(one) for one in share.tolist()])
    arrived = {"in": queue["arrived_in"], "out": queue["arrived_out"] + queue["arrived_red"]}
    dropped = {"in": queue["dropped_in"], "out": queue["dropped_out"] + queue["dropped_red"]}
    for colour, came in arrived.items():
        # No packets of a colour: it has no loss.
        if came.min() > 0:
            values[f"loss_{colour}"] = dropped[colour] / came
    for edge in effective["edges"]:
        marker = rows(result.markers, seeds, place=edge["node"])
        came = marker["arrived_in"] + marker["arrived_out"]
        if came.min() > 0:
            values["loss_edge"] = marker["dropped"] / came
    return Measures(tuple(seeds), values, {})
