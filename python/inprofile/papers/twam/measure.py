"""What is kept of paper E's runs: every flow's window and throughput, queues, slow starts, what figures show.

Everything here is a pure function of a result's tables, so that it can be tested on tables made by hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.measures import Array, Measures, Series, Trace, by_flow, rows
from .. import Cell, Entry, Paper

if TYPE_CHECKING:
    import pyarrow as pa

    from ...run.results import Result

#: A full packet on the wire, in bits.
PACKET = 8 * 1040.0
#: The group of flows that are not of the assured class.
PRIORITY = "ef"


def contracts(paper: Paper, topology: Entry) -> Array:
    """Give the flows' contracts in bit/s."""
    return np.array((topology if "contracts" in topology else paper.top).numbers("contracts"))


def fairness(shares: Array) -> Array:
    """Jain's index over the last axis: 1 where all are equal, 0 where all are 0."""
    squares = (shares**2).sum(axis=-1)
    index = shares.sum(axis=-1) ** 2 / (shares.shape[-1] * np.where(squares > 0, squares, 1.0))
    return np.asarray(np.where(squares > 0, index, 0.0))


def relative_error(found: Array, wanted: Array) -> Array:
    """Root mean square over the last axis of found / wanted − 1."""
    return np.asarray(np.sqrt(((found / wanted - 1) ** 2).mean(axis=-1)))


def within(t: Array, spans: Sequence[Sequence[float]]) -> Any:
    """Say which samples cover a time wholly inside one of `spans`: each covers the step that ends with it."""
    step = t[1] - t[0]
    inside = np.zeros(len(t), dtype=bool)
    for start, end in spans:
        inside |= (t > start + 0.999 * step) & (t < end + 0.001 * step)
    return inside


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Reduce one cell's runs to figures and traces."""
    topology = paper.find("topologies", cell.topology)
    seeds = result.seeds
    flows = _assured(result.flows)
    throughput = by_flow(flows, seeds, "throughput")
    promised = contracts(paper, topology)
    share = promised / promised.sum()

    values: dict[str, Array] = {
        "fi": fairness(throughput / promised),
        "total": throughput.sum(axis=1),
        "rate_error": relative_error(throughput, topology.number("capacity") * share),
        # A sender of that time enters slow start after a timeout, and only then.
        "timeouts": rows(result.metrics, seeds, name="timeouts")["value"],
    }
    values.update({f"x.{i}": x for i, x in enumerate(throughput.T, 1)})
    values.update(_queues(result.queues, topology, seeds))
    if result.series.num_rows == 0:
        return Measures(seeds, values, {})

    series = Series(result.series, seeds)
    names = [str(name) for name in flows["flow"].to_pylist()[: flows.num_rows // len(seeds)]]
    seed = paper.top.whole("shown_seed")
    index = seeds.index(seed) if seed in seeds else 0
    traces: dict[str, Trace] = {}
    start, end = _window(result)

    t, windows = _sampled(series, names, "cwnd")
    inside = (t >= start) & (t < end)
    mean = windows[:, :, inside].mean(axis=2).T
    values.update({f"cwnd.{i}": w for i, w in enumerate(mean.T, 1)})
    values["cwnd"] = mean.mean(axis=1)
    # How much a window varies over time beside its mean, over the flows.
    over_time = windows[:, :, inside].std(axis=2) / windows[:, :, inside].mean(axis=2)
    values["cwnd_varies"] = over_time.mean(axis=0)
    if "hops" in topology:
        pipe, rtt = topology.number("capacity") * share / PACKET, paper.top.number("rtt")
        values["window_error"] = relative_error(mean, pipe * rtt)
        # The same with the time in queues, by flows' own round trips.
        values["window_error_queued"] = relative_error(mean, np.outer(rtt + values["delay"], pipe))
    # Fig. 2 from the start, Fig. 5 around a burst.
    shown = topology.numbers("shown") if "shown" in topology and not (cell.sweep or cell.variant) else []
    if shown:
        traces.update(_traces("cwnd", t, windows, index, shown))

    t, rates = _sampled(series, names, "received")
    if "bursts" in topology:
        # Of shortened runs only the bursts that lie in the measured window.
        burst = within(t, [(start + a, start + b) for a, b in topology["bursts"] if start + b <= end])
        values.update({f"burst.{i}": x for i, x in enumerate(rates[:, :, burst].mean(axis=2), 1)})
        values["fi_worst"] = fairness(np.moveaxis(rates[:, :, burst], 0, 2) / promised).min(axis=1)
    if shown:
        traces.update(_traces("rate", t, rates, index, shown))
    return Measures(seeds, values, traces)


def _assured(flows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return flows.filter(pc.field("group") != PRIORITY)


def _window(result: Result) -> tuple[float, float]:
    """The measured window, in s."""
    measured = json.loads(result.provenance.experiment)["measure"]
    return measured["from"] / 1e12, measured["to"] / 1e12


def _queues(table: pa.Table, topology: Entry, seeds: tuple[int, ...]) -> dict[str, Array]:
    """Means, losses and delay of the assured queues on the way."""
    hops = [
        rows(table, seeds, queue=hop) for hop in topology.words("hops" if "hops" in topology else "links")
    ]
    values = {f"queue.{n}": hop["queue_mean"] for n, hop in enumerate(hops, 1)}
    # Little's law: the time in a queue is what waits over the rate at which packets pass.
    values["delay"] = np.sum([hop["queue_mean"] * PACKET / hop["sent_rate"] for hop in hops], axis=0)
    arrived_in, arrived_out = hops[0]["arrived_in"], hops[0]["arrived_out"]
    values["in_share"] = arrived_in / (arrived_in + arrived_out)
    for colour in ("in", "out"):
        dropped = np.sum([hop[f"dropped_{colour}"] for hop in hops], axis=0)
        values[f"loss_{colour}"] = dropped / np.maximum(1.0, hops[0][f"arrived_{colour}"])
    values["overflow"] = np.sum([hop["dropped_overflow"] for hop in hops], axis=0) / (
        arrived_in + arrived_out
    )
    return values


def _sampled(series: Series, names: Sequence[str], what: str) -> tuple[Array, Array]:
    """Times, and what was sampled of each flow: flows × seeds × times."""
    found = [series.get(name, what) for name in names]
    known = [x for x in found if x is not None]
    if len(known) != len(found):
        raise ValueError(f"no monitor has {what} of every flow")
    return known[0][0], np.stack([values for _, values in known])


def _traces(what: str, t: Array, values: Array, index: int, shown: Sequence[float]) -> dict[str, Trace]:
    """One line a flow."""
    keep = (t > shown[0]) & (t <= shown[1])
    traces = {}
    for i, flow in enumerate(values, 1):
        low, mid, high = np.percentile(flow[:, keep], (10, 50, 90), axis=0)
        traces[f"{what}.{i}"] = Trace(t[keep], flow[index, keep], low, mid, high)
    return traces
