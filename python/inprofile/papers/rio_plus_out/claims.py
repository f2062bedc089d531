"""How claims B1 to B14 are judged.

A profile is *kept* where at least 98 % of it is shown to be reached, *missed* where the flow is shown to stay
below it. Crossing points of Fig. 7 are interpolated within each seed, so that they have an interval. A claim
is judged in every set-up whose cells were run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm, pm
from ...metrics.stats import SHARE, UNLIKE, estimate
from .. import Cell, Entry, Paper
from ..effects import BOUND, CONTRACT, of_base
from ..judge import Comparison, Effect, Finding, Number
from ..pairing import Pair
from ..rows import TableRow, row
from . import experiments
from .experiments import FIGURES, UNIT, assured, levels, subscribed

__all__ = [
    "COLUMNS",
    "crossing",
    "crossings",
    "findings",
    "kept_share",
    "points",
    "printed_table",
    "profiles",
    "table",
    "titles",
]

Cells = Mapping[Cell, Measures]
Side = Literal["above", "below"]

BE = "be"
#: What the page calls Table I's columns.
WORDS = {"throughput": "throughput", "marked_out": "OUT packets", "loss_out": "OUT loss"}
#: Fig. 5: where best effort's OUT loss lies beside the assured flows', under RIO and under RI+O.
SIDES: tuple[Side, Side] = ("below", "above")
#: B8's bound.
NO_DROP = Effect(
    0.0, "the bound is what we take for none: one in a thousand moves no rate that anyone could see"
)


def titles(paper: Paper) -> dict[str, str]:
    """RIO and RI+O by id."""
    return {scheme.id: scheme.title for scheme in paper.schemes}


def profiles(paper: Paper) -> dict[str, float]:
    """Groups of Table I's assured flows, and their profiles in bit/s."""
    about = paper.top.table("profiles")
    return {group: about.number(group) for group in about}


def printed_table(paper: Paper, scheme: str) -> Entry:
    """Table I's columns under a scheme: by group of `profiles`, best effort last."""
    return next(t for t in paper.top.tables("table1") if t.word("scheme") == scheme)


def _cell(cells: Cells, setup: str, topology: str, scheme: str, sweep: str = "", value: str = "") -> Measures:
    return cells[Cell(setup, topology, scheme, "", sweep, value)]


def points(cells: Cells, setup: str, topology: str, sweep: str) -> list[str]:
    """Values of a figure's points that were run, in the order in which they were."""
    found = (c.value for c in cells if (c.setup, c.topology, c.sweep) == (setup, topology, sweep))
    return list(dict.fromkeys(found))


def crossing(x: Sequence[float], ratio: Array, kept: float) -> Array:
    """Where each row of `ratio` first falls below `kept`, interpolated in `x`.

    The first `x` where it begins below, the last where it never falls.

    >>> crossing([0, 10, 20], np.array([[1.0, 0.99, 0.97], [0.9, 0.8, 0.7], [1.0, 1.0, 1.0]]), 0.98)
    array([15.,  0., 20.])
    """
    found = np.empty(len(ratio))
    for i, seed in enumerate(ratio):
        below = np.flatnonzero(seed < kept)
        if not below.size:
            found[i] = x[-1]
        elif below[0] == 0:
            found[i] = x[0]
        else:
            k = int(below[0])
            share = (seed[k - 1] - kept) / (seed[k - 1] - seed[k])
            found[i] = x[k - 1] + share * (x[k] - x[k - 1])
    return found


def kept_share(paper: Paper, m: Measures, profile: float) -> Array:
    """Throughput over profile of flows with equal profiles: their mean, or the least (reading `maintain`)."""
    return m["worst"] if paper.top.word("maintain") == "worst" else m["throughput:as"] / profile


def crossings(paper: Paper, cells: Cells, setup: str, level: str, scheme: str) -> Array:
    """Best-effort flows against which four assured flows keep their profile, seed by seed."""
    profile = subscribed(paper)[level] * 1e6
    counts = points(cells, setup, "figure-7", level)
    ratio = [kept_share(paper, _cell(cells, setup, "figure-7", scheme, level, n), profile) for n in counts]
    return crossing([float(n) for n in counts], np.array(ratio).T, paper.top.table("bounds").number("kept"))


def _kept(paper: Paper, label: str, share: Array) -> Comparison:
    kept = paper.top.table("bounds").number("kept")
    return Comparison(f"{label} kept", list(share), "above", null=kept, effect=BOUND)


def _missed(paper: Paper, label: str, share: Array) -> Comparison:
    return Comparison(f"{label} missed", list(share), "below", null=1.0, effect=CONTRACT)


def _kbit(profile: float) -> str:
    return f"{profile / 1e3:g} kbit/s"


def _table_1(paper: Paper, cells: Cells, setup: str) -> dict[str, Measures]:
    return {scheme: _cell(cells, setup, "table-1", scheme) for scheme in titles(paper)}


def _pair(runs: Mapping[str, Measures]) -> Pair:
    return Pair(runs["rio"], runs["rio-plus-out"])


def _schemes_apart(
    paper: Paper, runs: Mapping[str, Measures], measure: str, side: Side, unit: str
) -> list[Comparison]:
    """RI+O on that side of RIO for every assured flow of Table I, and on the other for best effort."""
    other: Side = "below" if side == "above" else "above"
    flows = [(group, f"the {_kbit(profile)} flow", side) for group, profile in profiles(paper).items()]
    return [
        _pair(runs).compare(
            f"{WORDS[measure]} of {flow}, RI+O {where} RIO",
            f"{measure}:{group}",
            where,
            unit,
            effect=Effect(abs(change) / 10, "a tenth of the change that Table I prints"),
        )
        for (group, flow, where), change in zip(
            [*flows, (BE, "a best-effort flow", other)], _printed_change(paper, measure), strict=True
        )
    ]


def _printed_change(paper: Paper, measure: str) -> list[float]:
    """From RIO to RI+O in Table I, flow by flow."""
    rio, plus = (printed_table(paper, scheme).numbers(measure) for scheme in titles(paper))
    return [b - a for a, b in zip(rio, plus, strict=True)]


def _b1a(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(paper, cells, setup)
    compared = [
        *_schemes_apart(paper, runs, "throughput", "above", "bit/s"),
        *_schemes_apart(paper, runs, "marked_out", "above", "packets"),
    ]
    return Finding("B1a", setup, compared, list(_numbers(paper, runs, "throughput", "bit/s")))


def _numbers(paper: Paper, runs: Mapping[str, Measures], measure: str, unit: str) -> Iterator[Number]:
    """Table I's column of this measure beside ours."""
    for scheme, title in titles(paper).items():
        column = printed_table(paper, scheme).numbers(measure)
        for group, value in zip((*profiles(paper), BE), column, strict=True):
            yield Number(
                f"{WORDS[measure]}, {_who(paper, group)}, {title}",
                list(runs[scheme][f"{measure}:{group}"]),
                value,
                "Table I",
                unit,
                bounds=(0.0, np.inf),
                rival=list(runs[_other(paper, scheme)][f"{measure}:{group}"]),
            )


def _other(paper: Paper, scheme: str) -> str:
    [other] = titles(paper).keys() - {scheme}
    return other


def _who(paper: Paper, group: str) -> str:
    return "best effort" if group == BE else _kbit(profiles(paper)[group])


def _b1b(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(paper, cells, setup)
    compared = []
    missed = paper.top.table("bounds").number("missed")
    for group, profile in profiles(paper).items():
        rio, plus = (runs[scheme][f"throughput:{group}"] / profile for scheme in titles(paper))
        judged = _missed if profile >= missed else _kept
        compared.append(judged(paper, f"RIO: profile of {_kbit(profile)}", rio))
        compared.append(_kept(paper, f"RI+O: profile of {_kbit(profile)}", plus))
    return Finding("B1b", setup, compared)


def _b1c(paper: Paper, cells: Cells, setup: str) -> Finding:
    pair = _pair(_table_1(paper, cells, setup))
    gain = {g: np.array(pair.difference(f"throughput:{g}")) for g in profiles(paper)}
    more = list(gain["as4"] - gain["as0"])
    label = "gain of the 1350 kbit/s flow above that of the 270 kbit/s flow"
    ours = ", ".join(f"{gain[g].mean() / 1e3:+.0f}" for g in gain)
    rio, plus = (printed_table(paper, s).numbers("throughput")[:-1] for s in titles(paper))
    printed = ", ".join(f"{(b - a) / 1e3:+.0f}" for a, b in zip(rio, plus, strict=True))
    note = (
        f"Gains by profile: {ours} kbit/s; in the paper's own Table I {printed}, which contradicts its words,"
        " the more so relative to the profile."
    )
    tenth = max(_printed_change(paper, "throughput")) / 10
    counts = Effect(tenth, "a tenth of the largest gain that Table I prints")
    return Finding(
        "B1c", setup, [Comparison(label, more, "above", unit="bit/s", effect=counts)], notes=[note]
    )


def _b2(paper: Paper, cells: Cells, setup: str) -> Finding:
    slopes = {s: _cell(cells, setup, "figure-2", s)["slope"] for s in titles(paper)}
    smallest, *_, largest = profiles(paper).values()
    half = Effect(0.5e6 / (largest - smallest), "half a packet from the smallest profile to the largest")
    # "(slightly) negative": any slope below 0 is as the text has it.
    counts = {"rio": half, "rio-plus-out": None}
    sides: tuple[Side, Side] = ("above", "below")
    compared = [
        Comparison(
            f"slope of avg_out on the profile, {title} {side} 0",
            list(slopes[scheme]),
            side,
            unit="packets per Mbit/s",
            effect=counts[scheme],
        )
        for (scheme, title), side in zip(titles(paper).items(), sides, strict=True)
    ]
    return Finding("B2", setup, compared)


def _b3(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared, numbers = [], []
    for printed in paper.top.tables("crossings"):
        level = printed.id
        found = {scheme: crossings(paper, cells, setup, level, scheme) for scheme in titles(paper)}
        most = max(float(n) for n in points(cells, setup, "figure-7", level))
        kept = all((values == most).all() for values in found.values())
        compared.append(
            Comparison(
                f"best-effort flows withstood at {level}, RI+O above RIO",
                list(found["rio-plus-out"] - found["rio"]),
                "above",
                unit="flows",
                effect=Effect(1.0, "one flow"),
                # A profile that is kept against all flows crosses nowhere.
                obstacle=f"the profile is kept against all {most:g} best-effort flows by both in every seed"
                if kept
                else None,
            )
        )
        numbers += [
            Number(
                f"best-effort flows withstood at {level}, {title}",
                list(found[scheme]),
                printed.number(scheme),
                "§4",
                "flows",
                bounds=(0.0, np.inf),
                rival=list(found[_other(paper, scheme)]),
            )
            for scheme, title in titles(paper).items()
        ]
    return Finding("B3", setup, compared, numbers)


def _b4(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for profile, printed in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        for level in points(cells, setup, "figure-8", sweep):
            for scheme, title in titles(paper).items():
                m = _cell(cells, setup, "figure-8", scheme, sweep, level)
                judged = _kept if int(level) <= printed.number(scheme) else _missed
                share = kept_share(paper, m, profile * 1e6)
                compared.append(judged(paper, f"{title}: {sweep} at {level} %", share))
    return Finding("B4", setup, compared)


def _b5(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for step in paper.top.tables("steps"):
        runs = {s: _cell(cells, setup, "figure-9", s, "step", step.id) for s in titles(paper)}
        for i in range(step.whole("flows")):
            profile = float(step.id) * 1e6 * (i + 1)
            rio, plus = (runs[s][f"throughput:as{i}"] / profile for s in titles(paper))
            where = f"{i + 1} × {step.id} Mbit/s"
            judged = _missed if i + 1 >= step.whole("first") else _kept
            compared.append(judged(paper, f"RIO: {where}", rio))
            compared.append(_kept(paper, f"RI+O: {where}", plus))
            label = f"{where}: RI+O above RIO"
            counts = Effect(0.02 * profile, "2 % of the profile")
            compared.append(_pair(runs).compare(label, f"throughput:as{i}", "above", "bit/s", effect=counts))
    return Finding("B5", setup, compared)


def _b6(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(paper, cells, setup)
    compared = [
        *_schemes_apart(paper, runs, "loss_out", "below", ""),
        *(
            Comparison(
                f"{title}: OUT loss of a best-effort flow {side} the mean of the assured flows'",
                list(runs[scheme]["loss_out:be"] - _assured_loss(paper, runs[scheme])),
                side,
                bounds=UNLIKE,
                effect=Effect(
                    abs(_printed_difference(paper, scheme)) / 10,
                    "a tenth of the difference that Table I prints",
                ),
            )
            for (scheme, title), side in zip(titles(paper).items(), SIDES, strict=True)
        ),
    ]
    ratio = [
        float(np.mean([m[f"loss_out:{g}"].mean() for g in profiles(paper)]) / m["loss_out:be"].mean())
        for m in runs.values()
    ]
    printed = [_printed_ratio(paper, s) for s in titles(paper)]
    note = (
        f"OUT loss of an assured flow over that of best effort: {ratio[0]:.1f} under RIO,"
        f" {ratio[1]:.1f} under RI+O (Table I: {printed[0]:.1f} and {printed[1]:.1f})."
    )
    return Finding("B6", setup, compared, list(_numbers(paper, runs, "loss_out", "")), [note])


def _assured_loss(paper: Paper, m: Measures) -> Array:
    """Mean OUT loss of the assured flows, seed by seed."""
    return np.asarray(np.mean([m[f"loss_out:{group}"] for group in profiles(paper)], axis=0))


def _printed_difference(paper: Paper, scheme: str) -> float:
    """Table I: mean OUT loss of the assured flows, less that of best effort."""
    loss = printed_table(paper, scheme).numbers("loss_out")
    return float(np.mean(loss[:-1])) - loss[-1]


def _printed_ratio(paper: Paper, scheme: str) -> float:
    """Table I: mean OUT loss of the assured flows over that of best effort."""
    loss = printed_table(paper, scheme).numbers("loss_out")
    return float(np.mean(loss[:-1]) / loss[-1])


def _b7(paper: Paper, cells: Cells, setup: str) -> Finding:
    rio = _cell(cells, setup, "figure-1", "rio")
    bounds = paper.top.table("bounds")
    low, high = bounds.numbers("inout")
    compared = [
        Comparison(
            "share of the time the 0.5 Mbit/s flow's window is above its profile",
            list(rio["above:small"]),
            "above",
            null=bounds.number("always"),
            effect=Effect(0.0, 'the bound is what we take "always" for'),
        ),
        Comparison(
            "share of the time the 3 Mbit/s flow's window is above its profile, in and out",
            list(rio["above:large"]),
            "within",
            null=low,
            upper=high,
            effect=Effect(0.0, 'the bounds are what we take "in and out" for'),
        ),
    ]
    return Finding("B7", setup, compared)


def _b8(paper: Paper, cells: Cells, setup: str, variant: str = "") -> Finding:
    counted = [c for c in cells if c.setup == setup and _counts(paper, c, variant)]
    none, names = paper.top.table("bounds").number("none"), titles(paper)
    # In no experiment: each is a comparison, as another loses others, over another window.
    compared = [
        Comparison(
            f"{names[c.scheme]}: share of IN packets dropped",
            list(cells[c]["in_drops"] / _in_packets(c, cells[c])),
            "below",
            null=none,
            topology=_experiment(paper, c),
            bounds=SHARE,
            effect=NO_DROP,
        )
        for c in sorted(counted, key=lambda c: list(names).index(c.scheme))
    ]
    worst = max(counted, key=lambda c: float(cells[c]["in_drops"].mean()))
    most = estimate(cells[worst]["in_drops"], (0.0, np.inf))
    share = float(np.mean(cells[worst]["in_drops"] / _in_packets(worst, cells[worst])))
    told = f"Most in {worst}: {pm(most, 'packets')} a run, {100 * share:.3f} % of the IN packets."
    notes = [told] if most.mean > 0 else []
    return Finding("B8", setup, compared, notes=notes)


def _experiment(paper: Paper, c: Cell) -> str:
    """Which of Table I and the points of Fig. 7 to 9, and from when drops count."""
    title = paper.find("topologies", c.topology).title
    if c.topology == "table-1":
        return f"{title} from the start"
    if c.topology == "table-1-later":
        return title
    point = {
        "figure-7": f"{c.sweep} subscribed, {c.value} best-effort flows",
        "figure-8": f"{c.sweep} at {c.value} %",
        "figure-9": f"steps of {c.value} Mbit/s",
    }[c.topology]
    return f"{title}, {point}, from 30 s on"


def _in_packets(c: Cell, m: Measures) -> Array:
    """IN packets sent in a run, seed by seed."""
    # Groups of one flow each, but for Fig. 7 and 8, whose assured flows are one group.
    flows = {"figure-7": 4, "figure-8": 1}.get(c.topology, 1)
    if c.topology == "figure-8":
        flows = assured(float(c.sweep.split()[0]), int(c.value))
    sent = [x for name, x in m.values.items() if name.startswith("marked_in:") and name != "marked_in:be"]
    return np.asarray(flows * np.sum(sent, axis=0))


def _b9(paper: Paper, cells: Cells, setup: str) -> Finding:
    margin, last = paper.top.table("bounds").number("wider"), _full(paper)
    gaps: list[tuple[float, Array]] = []
    for profile, _ in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        added = [
            _cell(cells, setup, "figure-8", "rio-plus-out", sweep, level)["throughput:as"]
            - _cell(cells, setup, "figure-8", "rio", sweep, level)["throughput:as"]
            for level in points(cells, setup, "figure-8", sweep)
            if int(level) < last
        ]
        gaps.append((profile, np.asarray(np.mean(added, axis=0))))
    compared = [
        Comparison(
            f"what RI+O adds at {large:g} Mbit/s, above what it adds at {small:g}",
            list(more - less),
            "above",
            unit="bit/s",
            effect=Effect(margin * small * 1e6, f"{100 * margin:g} % of the smaller profile"),
        )
        for (small, less), (large, more) in pairwise(gaps)
    ]
    told = ", ".join(f"{mean_pm(gap / 1e3)} kbit/s at {profile:g}" for profile, gap in gaps)
    return Finding("B9", setup, compared, notes=[f"Added by RI+O: {told} Mbit/s."])


def _b10(paper: Paper, cells: Cells, setup: str) -> Finding:
    rio, bounds = _cell(cells, setup, "figure-2", "rio"), paper.top.table("bounds")
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


def _b11(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(paper, cells, setup)
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


def _b12(paper: Paper, cells: Cells, setup: str) -> Finding:
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
        _missed(paper, f"RIO: {_kbit(rate)} with buckets of {trips[b]:.1f} round trips", share[b])
        for b in (smallest, *between)
        if trips[b] <= FEW_TRIPS
    ]
    label = f"RIO: {_kbit(rate)} with buckets of {trips[largest]:.0f} round trips"
    compared.append(_kept(paper, label, share[largest]))
    compared.append(
        Comparison(
            f"share of {_kbit(rate)} under RIO, with buckets of {trips[largest]:.0f} round trips above"
            f" {trips[smallest]:.1f}",
            list(share[largest] - share[smallest]),
            "above",
            effect=Effect(bounds.number("helped"), "2 % of the profile: what counts as kept or not"),
        )
    )
    return Finding("B12", setup, compared)


def _b13(paper: Paper, cells: Cells, setup: str) -> Finding:
    profile = min(profile for profile, _ in levels(paper))
    bounds, sweep = paper.top.table("bounds"), f"{profile:g} Mbit/s"
    same, low = bounds.number("same"), bounds.number("low")
    compared: list[Comparison] = []
    for level in sorted(points(cells, setup, "figure-8", sweep), key=int):
        rio, plus = (_cell(cells, setup, "figure-8", s, sweep, level)["throughput:as"] for s in titles(paper))
        added = list((plus - rio) / (profile * 1e6))
        label = f"what RI+O adds at {level} % subscription, over {sweep}"
        if not compared:
            effect = Effect(same, f"{100 * same:g} % of the profile")
            compared.append(Comparison(label, added, "above", effect=effect))
        elif int(level) >= low:
            no_more = Effect(0.0, f"no more than {100 * same:g} % of the profile either way is the same")
            compared.append(Comparison(label, added, "within", null=-same, upper=same, effect=no_more))
    return Finding("B13", setup, compared)


def _b14(paper: Paper, cells: Cells, setup: str) -> Finding:
    bounds = paper.top.table("bounds")
    kept, idle = bounds.number("kept"), bounds.number("idle")
    found: list[tuple[str, Measures, Measures]] = []
    table_1 = _table_1(paper, cells, setup)
    if all(table_1["rio"][f"throughput:{g}"].mean() >= kept * r for g, r in profiles(paper).items()):
        found.append(("Table I", table_1["rio"], table_1["rio-plus-out"]))
    for profile, _ in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        for level in sorted(points(cells, setup, "figure-8", sweep), key=int):
            rio, plus = (_cell(cells, setup, "figure-8", s, sweep, level) for s in titles(paper))
            if int(level) < _full(paper) and rio["throughput:as"].mean() >= kept * profile * 1e6:
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


def _full(paper: Paper) -> float:
    """Full subscription, in per cent."""
    return paper.top.table("figures").table("levels").numbers("all")[-1]


def _counts(paper: Paper, c: Cell, variant: str) -> bool:
    """Whether claim B8 is about a cell: below full subscription, and of this way to start and to count."""
    starts_full, later = experiments.own(paper, variant)
    if c.topology not in FIGURES:
        return c.topology == ("table-1-later" if later else "table-1") and (c.variant, c.sweep) == (
            variant,
            "",
        )
    if c.topology == "figure-8" and int(c.value) >= _full(paper):
        return False
    # The figures count from 30 s on whatever the variant; how buckets start and what it sets are their own.
    changed = bool(variant and paper.find("variants", variant).changes)
    return c.variant == (variant if changed or starts_full != paper.top.flag("starts_full") else "")


_CLAIMS = {
    "B1a": _b1a,
    "B1b": _b1b,
    "B1c": _b1c,
    "B2": _b2,
    "B3": _b3,
    "B4": _b4,
    "B5": _b5,
    "B6": _b6,
    "B7": _b7,
    "B8": _b8,
    "B9": _b9,
    "B10": _b10,
    "B11": _b11,
    "B12": _b12,
    "B13": _b13,
    "B14": _b14,
}
#: The topology without whose cells a claim is not judged.
_NEEDS = {
    "B2": "figure-2", "B3": "figure-7", "B4": "figure-8", "B5": "figure-9", "B7": "figure-1",
    "B9": "figure-8", "B10": "figure-2", "B13": "figure-8", "B14": "figure-8",
}  # fmt: skip
#: Buckets of no more round trips than this are not "very large" (B12): a TCP window and its bursts fit.
FEW_TRIPS = 7.2


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict in a set-up needs this cell: B8 counts in Table I and in Fig. 7 to 9."""
    if claim == "B8":
        return cell.topology not in ("figure-1", "figure-2")
    if claim == "B12":
        return cell.sweep == "bucket"
    if claim == "B14":
        return cell.topology in ("table-1", "figure-8")
    return cell.topology == _NEEDS.get(claim, "table-1")


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim, in every set-up whose experiments were run.

    Under a variant: about the claim that it is for, B8.
    """
    if variant:
        return [_b8(paper, cells, name, variant) for name in paper.find("variants", variant).words("setups")]
    run = {(c.setup, c.topology) for c in cells}
    swept = {c.setup for c in cells if c.sweep == "bucket" and c.topology == "table-1"}
    return [
        _CLAIMS[claim.id](paper, cells, setup.id)
        for setup in paper.setups
        for claim in paper.claims
        if (setup.id in swept if claim.id == "B12" else (setup.id, _NEEDS.get(claim.id, "table-1")) in run)
    ]


#: Columns of Table I, with their units.
COLUMNS = {"throughput": "bit/s", "marked_in": "packets", "marked_out": "packets", "loss_out": ""}


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Table I beside ours: a row a flow, column, scheme and set-up; and the link's utilisation."""
    made = []
    for setup in paper.setups:
        for scheme, title in titles(paper).items():
            printed, cell = printed_table(paper, scheme), Cell(setup.id, "table-1", scheme)
            m = cells[cell]
            for what, unit in COLUMNS.items():
                for group, value in zip((*profiles(paper), BE), printed.numbers(what), strict=True):
                    label, values = f"{title}, {_who(paper, group)}", m[f"{what}:{group}"]
                    made.append(
                        row(
                            cell,
                            m.seeds,
                            values,
                            table="Table I",
                            what=what,
                            label=label,
                            unit=unit,
                            paper=value,
                        )
                    )
            use, what = printed.number("utilisation"), "utilisation"
            made.append(row(cell, m.seeds, m[what], table="Table I", what=what, label=title, paper=use))
    return made
