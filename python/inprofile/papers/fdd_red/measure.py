"""What is kept of paper D's runs: shares, drops and their spread, the queue, and the traces of Fig. 4–9."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from ...metrics.measures import Array, Measures, Series, Trace, by_flow, rows
from .. import Cell, Paper

if TYPE_CHECKING:
    from ...run.results import Result

#: Flows of the main runs, which are shown one by one.
FLOWS = 5
#: Claim D4 leaves out what comes before this time, in seconds.
SETTLED = 5.0
#: Claim D5: the share of the link's rate that counts as full, and over how many seconds it is taken.
FULL, STEP = 0.95, 0.5
#: Bits a second of the link, and bits of a packet on it.
RATE, PACKET = 1e6, 8 * 540

#: Of RED and the ledger; and CoDel's.
_CAUSES = ("early", "forced", "overflow", "evicted", "above_target")


def spread(x: Array) -> Array:
    """Coefficient of variation along the last axis: standard deviation over mean; 0 where the mean is.

    >>> spread(np.array([[1.0, 1.0], [0.0, 2.0], [0.0, 0.0]])).tolist()
    [0.0, 1.0, 0.0]
    """
    mean = x.mean(axis=-1)
    result: Array = np.divide(x.std(axis=-1), mean, out=np.zeros_like(mean), where=mean > 0)
    return result


def full_from(sent: Array) -> Array:
    """From when on the link stays full: the end of the last step in which it sent less than `FULL` of it.

    `sent` is seeds × steps of `STEP` seconds, in bit/s.

    >>> full_from(np.array([[0.2e6, 1e6, 0.5e6, 1e6], [1e6, 1e6, 1e6, 1e6]])).tolist()
    [1.5, 0.0]
    """
    below = sent < FULL * RATE
    last = sent.shape[1] - np.argmax(below[:, ::-1], axis=1)
    return np.where(below.any(axis=1), last * STEP, 0.0)


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Reduce one cell's runs to figures and traces."""
    seeds = result.seeds
    flows = result.flows
    queue = rows(result.queues, seeds, queue="bottleneck")
    throughput = by_flow(flows, seeds, "throughput")
    known = [f"dropped_{cause}" for cause in _CAUSES if f"dropped_{cause}" in flows.column_names]
    drops = sum((by_flow(flows, seeds, column) for column in known), np.zeros_like(throughput))
    rtt = by_flow(flows, seeds, "rtt")
    share = rtt.mean(axis=1, keepdims=True) / rtt

    values: dict[str, Array] = {
        # Jain's index of the flows' rates: the same figure as the metric `fi`.
        "fi": rows(result.metrics, seeds, name="fi")["value"],
        # What the link sent, and what receivers got in order: the paper's sums exceed the link in one case.
        "link": queue["sent_rate"],
        "total": throughput.sum(axis=1),
        "drops": drops.sum(axis=1),
        "drops_overflow": queue["dropped_overflow"],
        "drops_early": queue["dropped_early"] + queue["dropped_forced"],
        "drops_evicted": queue["dropped_evicted"],
        "spread_drops": spread(drops),
        "spread_packets": drops.std(axis=1),
        "spread_goal_packets": (drops / share).std(axis=1),
        # Eq. (1) as it is printed, and what the text, Fig. 2 and the ledger even out: its inverse weights.
        "spread_eq1": spread(drops * share),
        "spread_goal": spread(drops / share),
        "in_event": _in_events(result, seeds),
        "utilisation": queue["utilisation"],
        "queue_mean": queue["queue_mean"],
    }
    if throughput.shape[1] == FLOWS:
        for i in range(FLOWS):
            values[f"flow{i}"] = throughput[:, i]
            values[f"drops{i}"] = drops[:, i]
    told = any(v.id == cell.variant and v.flag("told") for v in paper.variants)
    if cell.scheme == "fdd" and not told:
        values["rtt_error"], values["rtt_known"] = _estimates(result, seeds, rtt)
    if result.series.num_rows == 0:
        return Measures(seeds, values, {})

    window = paper.find("setups", cell.setup).numbers("window")
    series = Series(result.series, seeds)
    shown = paper.top.whole("shown_seed")
    index = seeds.index(shown) if shown in seeds else 0
    traces: dict[str, Trace] = {}

    found = series.get("bottleneck", "packets")
    sent_in, sent_out = series.get("bottleneck", "sent_in"), series.get("bottleneck", "sent_out")
    if not (found and sent_in and sent_out):
        raise ValueError('no monitor watches the queue "bottleneck"')
    t, packets = found
    inside = (t >= max(window[0], SETTLED)) & (t <= window[1])
    values["queue_std"] = packets[:, inside].std(axis=1)
    if window[0] == 0:
        values.update(_windows_apart(series, window))
        times, sent = _steps(t, sent_in[1] + sent_out[1], STEP)
        values["full_from"] = full_from(sent)
        traces["sent"] = _trace(times, sent, index)
        traces["queue"] = _trace(*_steps(t, packets, 0.1), index)
    else:
        values.update(_later(series, window))
    for i in range(FLOWS):
        for what, name in (("cwnd", "cwnd"), ("received", "rate")):
            one = series.get(f"tcp.{i}", what)
            if one:
                traces[f"{name}{i}"] = _trace(*(one if name == "cwnd" else _steps(*one, 1.0)), index)
    return Measures(seeds, values, traces)


def _in_events(result: Result, seeds: tuple[int, ...]) -> Array:
    """How many flows lose packets in a loss event, over as many at random; 1 where nothing is lost."""
    found = [
        rows(result.metrics, seeds, name=name)["value"]
        for name in ("loss_synchronisation", "loss_synchronisation_random")
    ]
    return np.where(found[1] > 0, found[0] / found[1], 1.0)


def _later(series: Series, window: list[float]) -> dict[str, Array]:
    """Jain's index of the flows' rates between two samples, averaged over the window; none if unsampled."""
    found = [series.get(f"tcp.{i}", "received") for i in range(FLOWS)]
    known = [one for one in found if one is not None]
    if len(known) < FLOWS:
        return {}
    t, rates = known[0][0], np.stack([received for _, received in known])
    rates = rates[:, :, (t > window[0]) & (t <= window[1])]
    return {"fi_later": (rates.sum(axis=0) ** 2 / (FLOWS * (rates**2).sum(axis=0))).mean(axis=1)}


def _windows_apart(series: Series, window: list[float]) -> dict[str, Array]:
    """Mean variation of the windows over the flows, in the first and the second half of what has settled."""
    found = [series.get(f"tcp.{i}", "cwnd") for i in range(FLOWS)]
    known = [one for one in found if one is not None]
    if len(known) < FLOWS:
        return {}
    t, apart = known[0][0], spread(np.stack([windows for _, windows in known], axis=-1))
    start, end = max(window[0], SETTLED), window[1]
    early, late = (t > start) & (t <= (start + end) / 2), (t > (start + end) / 2) & (t <= end)
    return {"windows_early": apart[:, early].mean(axis=1), "windows_late": apart[:, late].mean(axis=1)}


def _estimates(result: Result, seeds: tuple[int, ...], rtt: Array) -> tuple[Array, Array]:
    """Mean relative error of the queue's round-trip times, and the share of flows it has one of.

    The error is 0 where it has none at all.
    """
    error, known = np.zeros(len(seeds)), np.zeros(len(seeds))
    names = list(dict.fromkeys(result.flows["flow"].to_pylist()))
    for row in result.queues.to_pylist():
        if row["queue"] != "bottleneck":
            continue
        i = seeds.index(row["seed"])
        told = json.loads(row["stats"]).get("flows", {})
        pairs = [
            (told[n]["rtt"], true) for n, true in zip(names, rtt[i], strict=True) if "rtt" in told.get(n, {})
        ]
        known[i] = len(pairs) / len(names)
        if pairs:
            error[i] = np.mean([abs(a - b) / b for a, b in pairs])
    return error, known


def _steps(t: Array, values: Array, step: float) -> tuple[Array, Array]:
    """Means over steps of so many seconds; the first sample, at the start, belongs to no step."""
    n = max(1, round(step / float(t[1] - t[0])))
    whole = (len(t) - 1) // n * n
    ends = t[1 : whole + 1].reshape(-1, n)[:, -1]
    return ends, values[:, 1 : whole + 1].reshape(len(values), -1, n).mean(axis=2)


def _trace(t: Array, values: Array, index: int) -> Trace:
    low, mid, high = np.percentile(values, (10, 50, 90), axis=0)
    return Trace(t, values[index], low, mid, high)
