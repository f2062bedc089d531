"""Claims B10 to B16: what the text says besides its tables and figures' curves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm
from ...metrics.stats import SHARE, UNLIKE, ci95
from .. import Cell, Paper
from ..claim import Comparison, Effect, Finding, of_base
from .experiments import UNIT, levels, subscribed
from .measure import slope
from .shared import (
    BE,
    Cells,
    cell_of,
    full_subscription,
    in_kbit,
    is_missed,
    of_table_1,
    points,
    printed_table,
    profiles,
    titles,
)

#: From which bucket on it is "very large" (B12), in round trips of 100 ms of the largest profile: at once it
#: sends 180 packets of 576 B, the average of IN packets from which on RIO drops them all.
VERY_LARGE = 180 * 576 * 8 / 1350e3 / 0.1


def b10(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B10: under RIO the average of all packets stays relatively fixed, the fraction of OUT packets moves."""
    rio, bounds = cell_of(cells, setup, "figure-2", "rio"), paper.top.table("bounds")
    fixed, mostly = bounds.number("fixed"), bounds.number("mostly")
    low, high = bounds.numbers("total")
    total, out = (rio[f"{name}_std"] / rio[f"{name}_mean"] for name in ("avg", "out_fraction"))
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
            "deviation over mean of avg_total, over that of the fraction avg_out/avg_total, RIO",
            list(total / out),
            "below",
            null=1.0,
            effect=Effect(1 - fixed, f'{fixed:g} of that of the fraction at most: "relatively fixed" (ours)'),
        ),
    ]
    note = (
        f"RIO's average of all packets is {mean_pm(rio['avg_mean'])} packets and deviates by"
        f" {mean_pm(rio['avg_std'])}, that of OUT packets is {mean_pm(rio['avg_out_mean'])} and deviates by"
        f" {mean_pm(rio['avg_out_std'])}; their fraction is {mean_pm(rio['out_fraction_mean'])}, and deviates"
        f" by {mean_pm(rio['out_fraction_std'])}."
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
    ladder = sorted(share, key=float)
    trips = {bucket: float(bucket) * 8 / UNIT / 0.1 for bucket in ladder}
    smallest, largest = ladder[0], ladder[-1]
    compared = [
        is_missed(paper, f"RIO: {in_kbit(rate)} with buckets of {trips[b]:.1f} round trips", share[b])
        for b in ladder
        if trips[b] <= VERY_LARGE
    ]
    compared.append(
        Comparison(
            f"share of {in_kbit(rate)} under RIO, with buckets of {trips[largest]:.0f} round trips above"
            f" {trips[smallest]:.1f}",
            list(share[largest] - share[smallest]),
            "above",
            effect=Effect(bounds.number("helped"), "2 % of the profile: what counts as kept or not"),
        )
    )
    told = ", ".join(f"{mean_pm(share[b])} with {trips[b]:.3g}" for b in ladder)
    printed = printed_table(paper, "rio").numbers("throughput")[len(profiles(paper)) - 1] / rate
    note = (
        f"Share of the profile, by round trips of its rate: {told}. Table I has {printed:.3f} with the"
        f" printed buckets of {trips[largest]:.0f}: missed."
    )
    return Finding("B12", setup, compared, notes=[note])


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
    """B14: RI+O's own test acts only where large profiles are treated unfairly."""
    compared = []
    for level in subscribed(paper):
        m = cell_of(cells, setup, "figure-7", "rio-plus-out", level, "0")
        every = np.maximum(m["loss_out:as"], 1e-12)
        compared.append(
            Comparison(
                f"share of the OUT drops that RI+O's own test makes, four equal profiles, {level} subscribed",
                list(np.minimum(m["third"] / every, 1.0)),
                "below",
                null=paper.top.table("bounds").number("idle"),
                bounds=SHARE,
                effect=Effect(0.0, 'the bound is what we take "activates itself only when" for'),
            )
        )
    return Finding("B14", setup, compared, notes=list(_price(paper, cells, setup)))


def _price(paper: Paper, cells: Cells, setup: str) -> Iterator[str]:
    """What best effort loses where RIO keeps every profile: our finding, no claim of the paper's."""
    left = best_effort_left(paper, cells, setup)
    if left:
        means = [float(x.mean()) for x in left]
        yield (
            f"Where RIO keeps every profile (Table I, Fig. 8 below 100 %), best effort gets {min(means):.2f}"
            f" to {max(means):.2f} of its throughput under RIO, shown to be below 0.95 in"
            f" {sum(map(is_hurt, left))} of {len(left)} experiments."
        )


def is_hurt(left: Array) -> bool:
    """Whether best effort is shown to lose more than 5 %."""
    interval = ci95([float(x) for x in left])
    return interval is not None and interval.hi < 0.95


def best_effort_left(paper: Paper, cells: Cells, setup: str) -> list[Array]:
    """Best effort's throughput, RI+O over RIO, seed by seed: of each experiment whose profiles RIO keeps."""
    kept = paper.top.table("bounds").number("kept")
    found: list[tuple[Measures, Measures]] = []
    if Cell(setup, "table-1", "rio") in cells:
        table_1 = of_table_1(paper, cells, setup)
        if all(table_1["rio"][f"throughput:{g}"].mean() >= kept * r for g, r in profiles(paper).items()):
            found.append((table_1["rio"], table_1["rio-plus-out"]))
    for profile, _ in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        for level in points(cells, setup, "figure-8", sweep):
            rio, plus = (cell_of(cells, setup, "figure-8", s, sweep, level) for s in titles(paper))
            if int(level) < full_subscription(paper) and rio["throughput:as"].mean() >= kept * profile * 1e6:
                found.append((rio, plus))
    return [plus[f"throughput:{BE}"] / rio[f"throughput:{BE}"] for rio, plus in found]


def b15(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B15: of what assured flows get beyond their profiles, the two smallest get a smaller share."""
    runs = of_table_1(paper, cells, setup)
    groups = list(profiles(paper))
    ours: dict[str, Array] = {}
    printed: dict[str, float] = {}
    for scheme in titles(paper):
        measured = [_sent_out(runs[scheme], g) * (1 - runs[scheme][f"loss_out:{g}"]) for g in groups]
        ours[scheme] = _of_two_smallest(paper, np.array(measured))
        table = printed_table(paper, scheme)
        sent, lost = (np.array(table.numbers(name)[: len(groups)]) for name in ("marked_out", "loss_out"))
        printed[scheme] = float(_of_two_smallest(paper, sent * (1 - lost)))
    paid = Comparison(
        "share of the assured flows' OUT packets that the two smallest profiles get, RI+O − RIO",
        list(ours["rio-plus-out"] - ours["rio"]),
        "below",
        bounds=UNLIKE,
        effect=Effect(abs(printed["rio-plus-out"] - printed["rio"]) / 2, "half of the change of Table I"),
    )
    told = ", ".join(
        f"{title} {printed[scheme]:.3g}, here {mean_pm(ours[scheme])}"
        for scheme, title in titles(paper).items()
    )
    note = f"The two smallest profiles' share of the OUT packets that get through, by Table I: {told}."
    return Finding("B15", setup, [paid], notes=[note])


def _of_two_smallest(paper: Paper, got: Array) -> Array:
    """The share of the two smallest profiles in what all assured flows get: flows, or flows × seeds."""
    smallest = np.argsort(list(profiles(paper).values()))[:2]
    return np.asarray(got[smallest].sum(axis=0) / np.maximum(got.sum(axis=0), 1e-9))


def b16(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B16: under RIO larger profiles have shorter OUT bursts."""
    rio = of_table_1(paper, cells, setup)["rio"]
    rates = np.array(list(profiles(paper).values())) / 1e6
    bursts = np.array([_between_drops(rio, group) for group in profiles(paper)]).T
    tenth = 0.1 * float(bursts.mean()) / float(rates[-1] - rates[0])
    falls = Comparison(
        "slope of the OUT packets from drop to drop on the profile, RIO",
        list(slope(rates, bursts)),
        "below",
        unit="packets per Mbit/s",
        effect=Effect(tenth, "a tenth of their mean from the smallest profile to the largest"),
    )
    told = ", ".join(f"{mean:.3g}" for mean in bursts.mean(axis=0))
    note = f"OUT packets from drop to drop, by profile: {told}."
    return Finding("B16", setup, [falls], notes=[note])
