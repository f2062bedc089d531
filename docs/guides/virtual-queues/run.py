"""RIO in a real queue and in virtual ones, on link.toml: the table and the picture of virtual-queues.md.

python docs/guides/virtual-queues/run.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt

import inprofile
from inprofile.charts.plot import IN
from inprofile.metrics.stats import FREE, SHARE, Bounds, Estimate, Interval, estimate

HERE = Path(__file__).parent
LINK = 20.0
"""Mbit/s."""
SHARES = (100, 98, 95, 90)


def curves(times: float) -> dict[str, dict[str, Any]]:
    """RIO's, with thresholds so many times as long as in link.toml."""
    return {
        colour: {"min_th": f"{low * times:.0f} packets", "max_th": f"{high * times:.0f} packets", "max_p": p}
        for colour, low, high, p in (("in", 33, 100, 0.02), ("out", 17, 50, 0.05))
    }


#: Title, unit of the table, factor, and within which bounds an interval may lie.
MEASURES: dict[str, tuple[str, float, Bounds]] = {
    "kept": ("contracts kept, %", 100, SHARE),
    "worst": ("worst customer's rate / contract", 1, FREE),
    "utilisation": ("use of 20 Mbit/s, %", 100, SHARE),
    "delay_mean": ("mean queueing delay, ms", 1e3, FREE),
    "delay_p99": ("99th percentile of delay, ms", 1e3, FREE),
    "loss_in": ("IN lost, %", 100, SHARE),
    "loss_out": ("OUT lost, %", 100, SHARE),
}
DRAWN = ("kept", "utilisation", "delay_p99")


def queues() -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Name, the link's rate in Mbit/s and its queue: real ones, virtual ones, one of them on a fast link."""
    for name, times in (("real queue", 1), ("real, 0.4 as long", 0.4), ("real, 0.2 as long", 0.2)):
        yield name, LINK, {"aqm": "rio", "limit": "200 packets", **curves(times)}
    for share in SHARES:
        yield f"virtual, {share} %", LINK, virtual(LINK * share / 100)
    yield "virtual, link 5 times as fast", 5 * LINK, virtual(LINK)


def virtual(rate: float) -> dict[str, Any]:
    """A virtual queue of this rate in Mbit/s."""
    queue = {"aqm": "virtual_queue", "limit": "200 packets", "virtual_rate": f"{rate:g} Mbit/s", "law": "rio"}
    return {**queue, "virtual_limit": "200 packets", "rio": curves(1)}


def measured(result: inprofile.Result, rate: float) -> dict[str, Estimate]:
    """Means over the seeds with their intervals; `rate` is the link's."""
    bought = [row for row in result.rows("flows") if row.keys["group"] == "bought"]
    ratios = [[rate / row.given["contract"] for rate in row.values["throughput"]] for row in bought]
    metrics = result.summary()
    runs = {
        "kept": [sum(r >= 1 for r in run) / len(run) for run in zip(*ratios, strict=True)],
        "worst": [min(run) for run in zip(*ratios, strict=True)],
    }
    runs |= {name: list(metrics[name].values.values()) for name in MEASURES if name not in runs}
    # Of the 20 Mbit/s, whatever the link has.
    runs["utilisation"] = [min(1.0, x * rate / LINK) for x in runs["utilisation"]]
    return {name: scaled(estimate(runs[name], bounds), by) for name, (_, by, bounds) in MEASURES.items()}


def scaled(one: Estimate, by: float) -> Estimate:
    """The same in another unit."""
    ci = one.ci95
    return Estimate(by * one.mean, ci and Interval(by * ci.lo, by * ci.hi), one.n)


def drawn(found: dict[str, dict[str, Estimate]]) -> alt.HConcatChart:
    """A panel a measure: the mean of each queue with its interval."""
    panels = []
    for i, name in enumerate(DRAWN):
        rows = [
            {"queue": queue, "mean": one[name].mean, "lo": ci.lo, "hi": ci.hi}
            for queue, one in found.items()
            for ci in [one[name].ci95 or (one[name].mean,) * 2]
        ]
        axis = alt.Axis(title=None, labels=i == 0, ticks=False, labelLimit=200)
        base = alt.Chart({"values": rows}).encode(y=alt.Y("queue:N", sort=None, axis=axis))
        x = alt.X("mean:Q", title=MEASURES[name][0], scale=alt.Scale(zero=name == "delay_p99"))
        interval = base.mark_rule(color=IN).encode(x=alt.X("lo:Q"), x2="hi:Q")
        dots = base.mark_point(color=IN, filled=True, size=60, opacity=1).encode(x=x)
        panels.append(alt.layer(interval, dots).properties(width=190, height=130))
    return alt.hconcat(*panels, spacing=18)


def main() -> None:
    """The table, to standard output, and the picture."""
    base = inprofile.load(HERE / "link.toml")
    found = {}
    heads = " | ".join(title for title, *_ in MEASURES.values())
    sys.stdout.write(f"| queue | {heads} |\n|---|{'---:|' * len(MEASURES)}\n")
    for name, rate, queue in queues():
        changes = {"links.core.queue": queue, "links.core.rate": f"{rate:g} Mbit/s"}
        found[name] = measured(base.with_(changes).run(), rate)
        cells = " | ".join(cell(one) for one in found[name].values())
        sys.stdout.write(f"| {name} | {cells} |\n")
    drawn(found).save(HERE.parents[1] / "images" / "virtual-queues.svg")


def cell(one: Estimate) -> str:
    """The mean with its interval."""
    if one.ci95 is None or one.ci95.hi - one.ci95.lo < 5e-3:
        return f"{one.mean:.2f}"
    return f"{one.mean:.2f} [{one.ci95.lo:.2f}, {one.ci95.hi:.2f}]"


if __name__ == "__main__":
    main()
