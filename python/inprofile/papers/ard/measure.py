"""What is kept of paper A's runs: the figures its claims are about, and the traces its figures show.

A cell's runs fill tens of millions of values; a claim needs a few per seed. Everything here is a pure
function of a result's tables, so that it can be tested on tables made by hand.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from ...metrics.measures import Array, Measures, Series, Trace, by_flow, rows
from .. import Cell, Paper

if TYPE_CHECKING:
    import pyarrow as pa

    from ...run.results import Result

#: Lags among which a cycle of the average queue is looked for, in seconds (claim A4).
LAGS = (0.5, 20.0)
#: Weight of a RED average, per arrival, for queues that keep none (see `averaged_queue`).
W_Q = 0.002
#: Traces are drawn from means over this many seconds.
STEP = 1.0
#: How fast a flow changes once the TPR is set: over so many seconds after and before it (claim A6).
SOON = 10.0


def cycle_peak(x: Array, every: float, lags: tuple[float, float] = LAGS) -> float:
    """How strongly `x`, sampled each `every` seconds, repeats itself: its autocorrelation's highest peak.

    A peak is a local maximum among `lags` (seconds): a slow average resembles itself shortly before, which
    is no cycle, so the flank that falls from lag 0 does not count. A linear trend is taken out first; each
    lag compares the parts of `x` that overlap (Pearson), so a pure sine has 1 at its period. 0 where there
    is no peak, or `x` is constant.
    """
    first, last = max(1, round(lags[0] / every)), round(lags[1] / every)
    if len(x) < last + 3:
        raise ValueError(f"{len(x)} samples are too few for a lag of {last}")
    time = np.arange(len(x)) - (len(x) - 1) / 2
    x = x - x.mean()
    size = np.abs(x).max()
    x = x - time * (time @ x) / (time @ time)
    if np.abs(x).max() <= 1e-9 * size:
        return 0.0
    r = np.array([_pearson(x[:-k], x[k:]) for k in range(first - 1 or 1, last + 2)])
    if first == 1:
        # Lag 0 stands for the neighbour that lag 1 has on its left.
        r = np.concatenate([[1.0], r])
    inner = r[1:-1]
    peaks = inner[(inner > r[:-2]) & (inner >= r[2:])]
    return float(max(0.0, peaks.max())) if peaks.size else 0.0


def _pearson(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 1e-12 * max(1, len(a)) else 0.0


def averaged_queue(length: Array, arrivals: Array, w_q: float = W_Q) -> Array:
    """RED's average of a queue that has none of its own, from samples along the last axis.

    `arrivals` is the number of packets that came since the last sample; each of them moves the average
    by `w_q` towards the length, which is taken as constant between samples.
    """
    keep = (1 - w_q) ** arrivals
    average = np.zeros_like(length)
    current = np.zeros(length.shape[:-1])
    for i in range(length.shape[-1]):
        current = keep[..., i] * current + (1 - keep[..., i]) * length[..., i]
        average[..., i] = current
    return average


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Reduce one cell's runs to figures and traces.

    The set-up's `queue` names the queue that drops; `shown_seed` is the seed whose trace is a line.
    """
    setup, shown_seed = paper.find("setups", cell.setup), paper.top.whole("shown_seed")
    stated = paper.find("topologies", cell.topology).table("stated")
    start, end = stated.numbers("window")
    seeds = result.seeds
    flows = result.flows
    throughput = by_flow(flows, seeds, "throughput")
    received_in = by_flow(flows, seeds, "received_in_rate")
    rtt = by_flow(flows, seeds, "rtt")[0]
    fastest, slowest = int(rtt.argmin()), int(rtt.argmax())
    core = rows(result.queues, seeds, queue="bottleneck")
    upstream = rows(result.queues, seeds, queue="edge")
    edge = rows(result.markers, seeds, place="ER")

    values: dict[str, Array] = {
        # Jain's index of the flows' rates: the same figure as the metric `fi`.
        "fi": rows(result.metrics, seeds, name="fi")["value"],
        # Over the flows of one run, as in Fig. 8(a) and 8(b): population standard deviations.
        "std_total": throughput.std(axis=1),
        "std_in": received_in.std(axis=1),
        "total": throughput.sum(axis=1),
        "total_in": received_in.sum(axis=1),
        # Chosen by round-trip time, not by outcome.
        "fastest": throughput[:, fastest],
        "slowest": throughput[:, slowest],
        "best": throughput.max(axis=1),
        "worst": throughput.min(axis=1),
        # At the edge router's input, before its marker.
        "lambda_in": edge["arrived_in_rate"],
        "lambda_out": edge["arrived_out_rate"],
        "arrived_in": edge["arrived_in"],
        "drops_marker": edge["dropped"],
        "remarked": edge["left_out"] - edge["arrived_out"],
        # What its marker lets by as IN; under RIO what comes.
        "admitted_in": edge["left_in_rate"],
        "drops_core": core["dropped_in"] + core["dropped_out"],
        "drops_upstream": upstream["dropped_in"] + upstream["dropped_out"],
        # Where the aggregate leaves the edge link: what is lost before it no longer counts.
        "core_in": core["arrived_in_rate"],
        "core_out": core["arrived_out_rate"],
        "queue_core": core["queue_mean"],
        "used": core["utilisation"],
        "queue_upstream": upstream["queue_mean"],
    }
    sent = by_flow(flows, seeds, "sent_in") + by_flow(flows, seeds, "sent_out")
    each = {
        "rtt": by_flow(flows, seeds, "rtt"),
        "throughput": throughput,
        # As the flow's own host marked them.
        "in_share": by_flow(flows, seeds, "sent_in") / sent,
        "edge_loss": by_flow(flows, seeds, "dropped_edge") / sent,
        "sent": sent,
        "sent_in": by_flow(flows, seeds, "sent_in"),
        "edge_drops": by_flow(flows, seeds, "dropped_edge"),
        "queue_drops": by_flow(flows, seeds, "dropped") - by_flow(flows, seeds, "dropped_edge"),
    }
    if result.series.num_rows == 0:
        return Measures(seeds, values, {}, each)

    series = Series(result.series, seeds)
    names = _flow_names(flows, seeds)
    index = seeds.index(shown_seed) if shown_seed in seeds else 0
    traces: dict[str, Trace] = {}

    if arriving := series.get("ER", "arrived_in"):
        values["arrived_std"] = _by_second(*arriving, start, end).std(axis=1)
    tokens, tpr = series.get("ER", "tokens"), series.get("ER", "tpr")
    lambda_in, lambda_out = series.get("ER", "lambda_in"), series.get("ER", "lambda_out")
    admitted = series.get("ER", "left_in")
    if tokens and tpr and lambda_in and lambda_out and admitted:
        t, level = tokens
        inside = (t > start) & (t < end)
        values["tokens_low"] = (level[:, inside] <= stated.number("t_rd")).mean(axis=1)
        values["tokens_mean"] = level[:, inside].mean(axis=1)
        # Constant during the window: set at its start from the interval before. On the wire, whatever the
        # meters count.
        wire = _wire(result)
        values["tpr"] = wire * tpr[1][:, inside].mean(axis=1)
        values["lambda_in_before"] = wire * lambda_in[1][:, inside].mean(axis=1)
        values["lambda_out_before"] = wire * lambda_out[1][:, inside].mean(axis=1)
        values["lambda_in_over_tpr"] = values["lambda_in"] / values["tpr"]
        values["admitted_over_tpr"] = values["admitted_in"] / values["tpr"]
        # Of what is admitted second by second: the marker of §2.2 makes it steady.
        t, rate = admitted
        values["admitted_std"] = _by_second(t, rate, start, end).std(axis=1)
        # Levels, not means: Fig. 7 shows where the level is, and a mean over a second would hide its swings.
        traces["tokens"] = _trace(*tokens, index, step=None, start=start)

    arrivals = core["arrived_in"] + core["arrived_out"]
    bits = float(((core["arrived_in_rate"] + core["arrived_out_rate"]) * (end - start) / arrivals).mean())
    t, average = _average_queue(series, setup.word("queue"), bits)
    inside = (t >= start) & (t < end)
    every = float(t[1] - t[0])
    values["queue_std"] = average[:, inside].std(axis=1)
    values["queue_avg"] = average[:, inside].mean(axis=1)
    values["queue_cycle"] = np.array([cycle_peak(row, every) for row in average[:, inside]])
    traces["queue"] = _trace(t, average, index)

    for name, flow in (("fastest", fastest), ("slowest", slowest)):
        found = series.get(names[flow], "received")
        if found:
            traces[name] = _trace(*found, index)
    received = [series.get(name, "received") for name in names]
    if known := [found for found in received if found]:
        each["soon"] = np.stack([_change(*found, start) for found in known], axis=1)
        each["early"] = np.stack([_early(*found, start) for found in known], axis=1)
    return Measures(seeds, values, traces, each)


def _wire(result: Result) -> float:
    """Bits on the wire for a bit that the edge's meters count: more than 1 where they leave headers out."""
    experiment = json.loads(result.provenance.experiment)
    packet = experiment["tcp"]["segment"] + experiment["tcp"]["header"]
    [edge] = experiment["edges"]
    return float(packet / (packet - edge["marker"]["with"].get("unmetered", 0)))


def _by_second(t: Array, rate: Array, start: float, end: float) -> Array:
    """Means over whole seconds of what is sampled ten times a second, in the measured window."""
    rate = rate[:, (t > start) & (t <= end)]
    whole = rate.shape[1] // 10 * 10
    means: Array = rate[:, :whole].reshape(len(rate), -1, 10).mean(axis=2)
    return means


def _change(t: Array, rate: Array, at: float) -> Array:
    """Mean rate in the seconds after `at` less that in those before it, one a seed: see `SOON`."""
    after, before = (t > at) & (t <= at + SOON), (t > at - SOON) & (t <= at)
    change: Array = rate[:, after].mean(axis=1) - rate[:, before].mean(axis=1)
    return change


def _early(t: Array, rate: Array, start: float) -> Array:
    """Mean rate before what is measured, once flows have started: in the later half of that time."""
    mean: Array = rate[:, (t > start / 2) & (t <= start)].mean(axis=1)
    return mean


def _flow_names(flows: pa.Table, seeds: tuple[int, ...]) -> list[str]:
    return [str(name) for name in flows["flow"].to_pylist()[: flows.num_rows // len(seeds)]]


def _average_queue(series: Series, queue: str, bits: float) -> tuple[Array, Array]:
    """Average of the queue that drops: its own where it keeps one, else as RED would have kept it.

    `bits`: of a packet, headers included.
    """
    own = series.get(queue, "avg")
    if own:
        return own
    length = series.get(queue, "packets")
    arrived_in, arrived_out = series.get(queue, "arrived_in"), series.get(queue, "arrived_out")
    if not (length and arrived_in and arrived_out):
        raise ValueError(f'no monitor watches the queue "{queue}"')
    t, packets = length
    every = float(t[1] - t[0])
    return t, averaged_queue(packets, (arrived_in[1] + arrived_out[1]) * every / bits)


def _trace(t: Array, values: Array, index: int, step: float | None = STEP, start: float = 0.0) -> Trace:
    """Reduce to what is drawn of seeds × times: means over `step` seconds, or every fifth sample without."""
    keep = t > start
    t, values = t[keep], values[:, keep]
    if step is None:
        t, values = t[4::5], values[:, 4::5]
    else:
        every = float(t[1] - t[0])
        n = max(1, round(step / every))
        whole = len(t) // n * n
        t = t[:whole].reshape(-1, n)[:, -1]
        values = values[:, :whole].reshape(len(values), -1, n).mean(axis=2)
    low, mid, high = np.percentile(values, (10, 50, 90), axis=0)
    return Trace(t, values[index], low, mid, high)


def placebo_rate(ard: Measures) -> float:
    """ARD's own drop rate: all its drops over all IN packets that came in the window, over all seeds.

    The rule that fixes the placebo's only parameter. Four significant digits, so that its experiment, and
    with it the cached result, does not depend on the last bit of a division.
    """
    return float(f"{ard['drops_marker'].sum() / max(1.0, ard['arrived_in'].sum()):.4g}")
