"""Claims B10 to B14: what the text says besides its tables and figures' curves."""

from __future__ import annotations

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..effects import of_base
from ..judge import Comparison, Effect, Finding
from .experiments import UNIT, levels
from .shared import (
    BE,
    Cells,
    cell_of,
    full_subscription,
    in_kbit,
    is_kept,
    is_missed,
    of_table_1,
    points,
    profiles,
    titles,
)

__all__ = ["b10", "b11", "b12", "b13", "b14"]

#: Buckets of no more round trips than this are not "very large" (B12): a TCP window and its bursts fit.
FEW_TRIPS = 7.2


def b10(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B10: the average of all packets stays relatively fixed under RIO."""
    rio, bounds = cell_of(cells, setup, "figure-2", "rio"), paper.top.table("bounds")
    fixed, mostly = bounds.number("fixed"), bounds.number("mostly")
    low, high = bounds.numbers("total")
    total, out = (rio[f"{name}_std"] / rio[f"{name}_mean"] for name in ("avg", "avg_out"))
    compared = [
        Comparison(
            f"share of the time that RIO's average of all packets is within {low:g} and {high:g}",
            list(rio["avg_within"]),
            "above",
            null=mostly,
            bounds=SHARE,
            effect=Effect(0.0, 'the bound is what we take "is maintained" for'),
        ),
        Comparison(
            "deviation over mean of avg_total, over that of avg_out, RIO",
            list(total / out),
            "below",
            null=1.0,
            effect=Effect(1 - fixed, f'{fixed:g} of that of avg_out at most: "relatively fixed" (ours)'),
        ),
    ]
    note = (
        f"RIO's average of all packets is {mean_pm(rio['avg_mean'])} packets and deviates by"
        f" {mean_pm(rio['avg_std'])}, that of OUT packets is {mean_pm(rio['avg_out_mean'])} and deviates by"
        f" {mean_pm(rio['avg_out_std'])}."
    )
    return Finding("B10", setup, compared, notes=[note])


def b11(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B11: OUT bursts are evenly distributed under RI+O."""
    runs = of_table_1(paper, cells, setup)
    evener = paper.top.table("bounds").number("evener")
    compared = []
    for words, of in (("OUT packets from drop to drop", _between_drops), ("OUT packets sent", _sent_out)):
        spread = {
            scheme: _variation(np.array([of(m, group) for group in profiles(paper)]))
            for scheme, m in runs.items()
        }
        compared.append(
            Comparison(
                f"variation of {words} over the assured flows, RI+O − RIO",
                list(spread["rio-plus-out"] - spread["rio"]),
                "below",
                effect=of_base(spread["rio"], evener, "a tenth of RIO's; Table I prints a fifth to a third"),
            )
        )
    return Finding("B11", setup, compared)


def _between_drops(m: Measures, group: str) -> Array:
    return np.asarray(1 / np.maximum(m[f"loss_out:{group}"], 1e-9))


def _sent_out(m: Measures, group: str) -> Array:
    return m[f"marked_out:{group}"]


def _variation(of: Array) -> Array:
    """Coefficient of variation over the flows, seed by seed: `of` is flows × seeds."""
    return np.asarray(of.std(axis=0) / of.mean(axis=0))


def b12(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B12: RIO needs very large buckets."""
    profile, rate = max(profiles(paper).items(), key=lambda item: item[1])
    bounds = paper.top.table("bounds")
    share = {
        bucket: cells[cell][f"throughput:{profile}"] / rate
        for bucket in points(cells, setup, "table-1", "bucket")
        if (cell := Cell(setup, "table-1", "rio", "", "bucket", bucket)) in cells
    }
    smallest, *between, largest = sorted(share, key=float)
    trips = {bucket: float(bucket) * 8 / UNIT / 0.1 for bucket in share}
    compared = [
        is_missed(paper, f"RIO: {in_kbit(rate)} with buckets of {trips[b]:.1f} round trips", share[b])
        for b in (smallest, *between)
        if trips[b] <= FEW_TRIPS
    ]
    label = f"RIO: {in_kbit(rate)} with buckets of {trips[largest]:.0f} round trips"
    compared.append(is_kept(paper, label, share[largest]))
    compared.append(
        Comparison(
            f"share of {in_kbit(rate)} under RIO, with buckets of {trips[largest]:.0f} round trips above"
            f" {trips[smallest]:.1f}",
            list(share[largest] - share[smallest]),
            "above",
            effect=Effect(bounds.number("helped"), "2 % of the profile: what counts as kept or not"),
        )
    )
    return Finding("B12", setup, compared)


def b13(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B13: with small profiles the schemes differ only where little is subscribed."""
    profile = min(profile for profile, _ in levels(paper))
    bounds, sweep = paper.top.table("bounds"), f"{profile:g} Mbit/s"
    same, low = bounds.number("same"), bounds.number("low")
    compared: list[Comparison] = []
    for level in sorted(points(cells, setup, "figure-8", sweep), key=int):
        rio, plus = (
            cell_of(cells, setup, "figure-8", s, sweep, level)["throughput:as"] for s in titles(paper)
        )
        added = list((plus - rio) / (profile * 1e6))
        label = f"what RI+O adds at {level} % subscription, over {sweep}"
        if not compared:
            effect = Effect(same, f"{100 * same:g} % of the profile")
            compared.append(Comparison(label, added, "above", effect=effect))
        elif int(level) >= low:
            no_more = Effect(0.0, f"no more than {100 * same:g} % of the profile either way is the same")
            compared.append(Comparison(label, added, "within", null=-same, upper=same, effect=no_more))
    return Finding("B13", setup, compared)


def b14(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B14: RI+O acts only where RIO treats large profiles unfairly."""
    bounds = paper.top.table("bounds")
    kept, idle = bounds.number("kept"), bounds.number("idle")
    found: list[tuple[str, Measures, Measures]] = []
    table_1 = of_table_1(paper, cells, setup)
    if all(table_1["rio"][f"throughput:{g}"].mean() >= kept * r for g, r in profiles(paper).items()):
        found.append(("Table I", table_1["rio"], table_1["rio-plus-out"]))
    for profile, _ in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        for level in sorted(points(cells, setup, "figure-8", sweep), key=int):
            rio, plus = (cell_of(cells, setup, "figure-8", s, sweep, level) for s in titles(paper))
            if int(level) < full_subscription(paper) and rio["throughput:as"].mean() >= kept * profile * 1e6:
                found.append((f"{sweep} at {level} %", rio, plus))
    compared = [
        Comparison(
            f"{where}, whose profiles RIO keeps: best effort's throughput, RI+O over RIO",
            [float(x) for x in plus[f"throughput:{BE}"] / rio[f"throughput:{BE}"]],
            "within",
            null=1 - idle,
            upper=1 + idle,
            effect=Effect(0.0, f"within {100 * idle:g} % nobody could tell that RI+O is there"),
        )
        for where, rio, plus in found
    ]
    nothing = None if compared else "RIO keeps the profiles of no experiment: RI+O is wanted everywhere."
    return Finding("B14", setup, compared, obstacle=nothing)
