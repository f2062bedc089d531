"""What is kept of paper B's runs: rates and losses by group of flows, windows, what IN bursts see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.measures import Array, Measures, Series, Trace, by_flow, rows
from .. import Cell, Paper

if TYPE_CHECKING:
    import pyarrow as pa

    from ...run.results import Result

#: From when on the averages of Fig. 2's runs are looked at, in seconds: buckets start full.
SETTLED = 30.0


def window(profile: float, packet: float, rtt: float) -> float:
    """The window in packets that sends a profile (bit/s), with packets of so many bytes on the wire.

    >>> window(0.5e6, 576, 0.1)
    10.850694444444445
    """
    return profile * rtt / 8 / packet


def _sizes(result: Result) -> tuple[float, float]:
    """Bytes of a packet on the wire, and the round-trip time in seconds, of the experiment that was run."""
    experiment = json.loads(result.provenance.experiment)
    tcp = experiment["tcp"]
    return tcp["segment"] + tcp["header"], float(np.median(result.flows["rtt"].to_numpy()))


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Reduce one cell's runs.

    Of each group of flows the mean over its flows: `throughput:` (bit/s on the wire), `marked_in:` and
    `marked_out:` (packets), `loss_out:` (share of OUT packets dropped; none of none). `in_drops` is IN
    packets dropped in the run, `worst` the least throughput over profile of any assured flow, `third` the
    share of all OUT packets that RI+O's own test drops.
    """
    seeds = result.seeds
    flows = result.flows
    names = [str(g) for g in flows["group"].to_pylist()[: flows.num_rows // len(seeds)]]
    throughput = by_flow(flows, seeds, "throughput")
    sent_in, sent_out = by_flow(flows, seeds, "sent_in"), by_flow(flows, seeds, "sent_out")
    contract = by_flow(flows, seeds, "contract")[0]
    lost_out = _lost_out(result, seeds, names)

    values: dict[str, Array] = {}
    for group in dict.fromkeys(names):
        own = np.array([name == group for name in names])
        values[f"throughput:{group}"] = throughput[:, own].mean(axis=1)
        values[f"marked_in:{group}"] = sent_in[:, own].mean(axis=1)
        values[f"marked_out:{group}"] = sent_out[:, own].mean(axis=1)
        sent = sent_out[:, own].sum(axis=1)
        values[f"loss_out:{group}"] = lost_out[:, own].sum(axis=1) / np.maximum(sent, 1)
    promised = np.isfinite(contract)
    if promised.any():
        values["worst"] = (throughput[:, promised] / contract[promised]).min(axis=1)
    queue = rows(result.queues, seeds, queue="bottleneck")
    values["in_drops"] = queue["dropped_in"]
    values["third"] = _third(result, seeds) / np.maximum(sent_out.sum(axis=1), 1)
    values["overflow"] = queue["dropped_overflow"]
    values["utilisation"] = queue["utilisation"]
    values["queue_mean"] = queue["queue_mean"]
    traces: dict[str, Trace] = {}
    if cell.topology == "figure-1":
        _windows(result, seeds, paper, values, traces)
    if cell.topology == "figure-2":
        _seen(result.queues, seeds, values)
        _composition(result, seeds, paper, values)
    return Measures(seeds, values, traces)


def _lost_out(result: Result, seeds: tuple[int, ...], names: list[str]) -> Array:
    """OUT packets dropped, by seed and flow: the whole run, as the paper counts."""
    lost = np.zeros((len(seeds), len(names)))
    rank = {seed: i for i, seed in enumerate(seeds)}
    flow_rank = {f: i for i, f in enumerate(result.flows["flow"].to_pylist()[: len(names)])}
    drops = result.drops
    for seed, flow, n in zip(
        drops["seed"].to_pylist(), drops["flow"].to_pylist(), drops["out"].to_pylist(), strict=True
    ):
        lost[rank[seed], flow_rank[flow]] += n
    return lost


def _third(result: Result, seeds: tuple[int, ...]) -> Array:
    """OUT packets that passed RIO's tests and failed RI+O's own, over the whole run; none under RIO."""
    found = np.zeros(len(seeds))
    for seed, told in _told(result.queues).items():
        found[seeds.index(seed)] = told.get("picked_of_out", 0) + told.get("forced_of_out", 0)
    return found


def _told(queues: pa.Table) -> dict[int, dict[str, Any]]:
    """What the bottleneck's queue says of itself, by seed."""
    columns = (queues[name].to_pylist() for name in ("seed", "queue", "stats"))
    return {seed: json.loads(told) for seed, name, told in zip(*columns, strict=True) if name == "bottleneck"}


def _windows(
    result: Result, seeds: tuple[int, ...], paper: Paper, values: dict[str, Array], traces: dict[str, Trace]
) -> None:
    """Fig. 1: the share of time each flow's window is above what its profile needs, and its trace."""
    series, sizes = Series(result.series, seeds), _sizes(result)
    shown, profiles = paper.top.whole("shown_seed"), paper.top.table("windows")
    for group in profiles:
        found = series.get(f"{group}.0", "cwnd")
        if found is None:
            raise ValueError(f"no monitor watches the window of {group}")
        t, cwnd = found
        need = window(profiles.number(group), *sizes)
        values[f"need:{group}"] = np.full(len(seeds), need)
        inside = t >= 20.0
        values[f"above:{group}"] = (cwnd[:, inside] > need).mean(axis=1)
        low, mid, high = np.percentile(cwnd, (10, 50, 90), axis=0)
        # What is confirmed with fresh seeds shows its first.
        line = cwnd[seeds.index(shown) if shown in seeds else 0]
        traces[group] = Trace(t, line, low, mid, high)


def _seen(queues: pa.Table, seeds: tuple[int, ...], values: dict[str, Array]) -> None:
    """Fig. 2 and 6: the mean avg_out at each assured flow's IN packets, and its slope on the profile."""
    found = {seed: told["flows"] for seed, told in _told(queues).items()}
    seen = np.array([[found[s][f"as{i}.0"]["avg_out_seen"] for i in range(5)] for s in seeds])
    for i in range(5):
        values[f"seen:as{i}"] = seen[:, i]
    values["slope"] = slope(np.array([0.27 * (i + 1) for i in range(5)]), seen)


def _composition(result: Result, seeds: tuple[int, ...], paper: Paper, values: dict[str, Array]) -> None:
    """§2.2: how much the averages move over time: of all packets, of OUT packets, and the latter's fraction.

    Also for how much of the time that of all packets lies between its thresholds.
    """
    series = Series(result.series, seeds)
    total, ins = series.get("bottleneck", "avg"), series.get("bottleneck", "avg_in")
    if not (total and ins):
        raise ValueError('no monitor watches the queue "bottleneck"')
    later = total[0] >= min(SETTLED, total[0][-1] / 2)
    every, out = total[1][:, later], (total[1] - ins[1])[:, later]
    fraction = np.divide(out, every, out=np.zeros_like(every), where=every > 0)
    for name, average in (("avg", every), ("avg_out", out), ("out_fraction", fraction)):
        values[f"{name}_std"], values[f"{name}_mean"] = average.std(axis=1), average.mean(axis=1)
    low, high = paper.top.table("bounds").numbers("total")
    values["avg_within"] = ((total[1] >= low) & (total[1] <= high))[:, later].mean(axis=1)


def slope(x: Array, y: Array) -> Array:
    """Least-squares slope of each row of `y` on `x`.

    >>> slope(np.array([1.0, 2.0, 3.0]), np.array([[2.0, 4.0, 6.0]]))
    array([2.])
    """
    centred = x - x.mean()
    made: Array = (y - y.mean(axis=1, keepdims=True)) @ centred / (centred @ centred)
    return made
