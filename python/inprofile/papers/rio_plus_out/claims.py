"""How claims B1 to B16 are judged.

A claim is judged in every set-up whose cells were run. `besides` has B10 to B16, `shared` what they share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm, pm, quantity
from ...metrics.stats import SHARE, UNLIKE, estimate
from .. import Cell, Entry, Paper
from ..judge import Comparison, Effect, Finding, Number
from ..pairing import Pair
from ..rows import TableRow, row
from . import experiments
from .besides import b10, b11, b12, b13, b14, b15, b16
from .experiments import FIGURES, assured, levels
from .shared import (
    BE,
    Cells,
    cell_of,
    crossings,
    full_subscription,
    in_kbit,
    is_kept,
    is_missed,
    kept_share,
    of_table_1,
    points,
    printed_table,
    profiles,
    titles,
)

__all__ = ["COLUMNS", "findings", "rests_on", "table"]

Side = Literal["above", "below"]

#: What the page calls Table I's columns.
WORDS = {"throughput": "throughput", "marked_out": "OUT packets", "loss_out": "OUT loss"}
#: Fig. 5: where best effort's OUT loss lies beside the assured flows', under RIO and under RI+O.
SIDES: tuple[Side, Side] = ("below", "above")
#: B8's bound.
NO_DROP = Effect(
    0.0, "the bound is what we take for none: one in a thousand moves no rate that anyone could see"
)


def _pair(runs: Mapping[str, Measures]) -> Pair:
    return Pair(runs["rio"], runs["rio-plus-out"])


def _schemes_apart(
    paper: Paper, runs: Mapping[str, Measures], measure: str, side: Side, unit: str
) -> list[Comparison]:
    """RI+O on that side of RIO for every assured flow of Table I, and on the other for best effort."""
    other: Side = "below" if side == "above" else "above"
    flows = [(group, f"the {in_kbit(profile)} flow", side) for group, profile in profiles(paper).items()]
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
    runs = of_table_1(paper, cells, setup)
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
    return "best effort" if group == BE else in_kbit(profiles(paper)[group])


def _b1b(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = of_table_1(paper, cells, setup)
    compared = []
    missed = paper.top.table("bounds").number("missed")
    for group, profile in profiles(paper).items():
        rio, plus = (runs[scheme][f"throughput:{group}"] / profile for scheme in titles(paper))
        judged = is_missed if profile >= missed else is_kept
        compared.append(judged(paper, f"RIO: profile of {in_kbit(profile)}", rio))
        compared.append(is_kept(paper, f"RI+O: profile of {in_kbit(profile)}", plus))
    lost = {g: runs["rio"][f"throughput:{g}"].mean() / r for g, r in profiles(paper).items() if r >= missed}
    told = ", ".join(f"{share:.2f} of {in_kbit(profiles(paper)[g])}" for g, share in lost.items())
    return Finding("B1b", setup, compared, notes=[f"Of those that RIO is to miss it gives {told}."])


def _b1c(paper: Paper, cells: Cells, setup: str) -> Finding:
    pair = _pair(of_table_1(paper, cells, setup))
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
    of_table = Number(
        label,
        more,
        (plus[-1] - rio[-1]) - (plus[0] - rio[0]),
        "Table I",
        "bit/s",
        rival=[0.0] * len(more),
        rival_words="equal gains",
    )
    tenth = max(_printed_change(paper, "throughput")) / 10
    counts = Effect(tenth, "a tenth of the largest gain that Table I prints")
    return Finding(
        "B1c", setup, [Comparison(label, more, "above", unit="bit/s", effect=counts)], [of_table], [note]
    )


def _b2(paper: Paper, cells: Cells, setup: str) -> Finding:
    slopes = {s: cell_of(cells, setup, "figure-2", s)["slope"] for s in titles(paper)}
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
    compared, numbers, notes, told = [], [], [], []
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
        if kept:
            notes.append(
                f"At {level} RIO keeps the profile against all {most:g} best-effort flows, not up to the"
                f" {printed.number('rio'):g} of the text."
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
        told.append(f"{level} sold: {_withstood(paper, found, most, printed)}")
    return Finding("B3", setup, compared, numbers, notes, told="; ".join(told))


def _withstood(paper: Paper, found: Mapping[str, Array], most: float, printed: Entry) -> str:
    """Best-effort flows withstood under each scheme, and how many the paper prints."""
    ours = ", ".join(
        f"{title} {'all ' if (found[s] == most).all() else ''}{quantity(float(found[s].mean()), '', 3)}"
        for s, title in titles(paper).items()
    )
    return f"{ours} (paper: {', '.join(f'{printed.number(s):g}' for s in titles(paper))})"


def _by_scheme(paper: Paper, compared: Sequence[Comparison]) -> str:
    """How many of each scheme's own comparisons have their mean on the claimed side."""
    told = []
    for title in titles(paper).values():
        own = [c for c in compared if c.label.startswith(f"{title}: ")]
        right = sum((float(np.mean(c.values)) > c.null) == (c.side == "above") for c in own)
        told.append(f"{title} does as claimed in {right} of {len(own)}")
    return f"By the means, {' and '.join(told)}."


def _b4(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for profile, printed in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        for level in points(cells, setup, "figure-8", sweep):
            for scheme, title in titles(paper).items():
                m = cell_of(cells, setup, "figure-8", scheme, sweep, level)
                judged = is_kept if int(level) <= printed.number(scheme) else is_missed
                share = kept_share(paper, m, profile * 1e6)
                compared.append(judged(paper, f"{title}: {sweep} at {level} %", share))
    return Finding("B4", setup, compared, notes=[_by_scheme(paper, compared)])


def _b5(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for step in paper.top.tables("steps"):
        runs = {s: cell_of(cells, setup, "figure-9", s, "step", step.id) for s in titles(paper)}
        for i in range(step.whole("flows")):
            profile = float(step.id) * 1e6 * (i + 1)
            rio, plus = (runs[s][f"throughput:as{i}"] / profile for s in titles(paper))
            where = f"{i + 1} × {step.id} Mbit/s"
            judged = is_missed if i + 1 >= step.whole("first") else is_kept
            compared.append(judged(paper, f"RIO: {where}", rio))
            compared.append(is_kept(paper, f"RI+O: {where}", plus))
            label = f"{where}: RI+O above RIO"
            counts = Effect(0.02 * profile, "2 % of the profile")
            compared.append(_pair(runs).compare(label, f"throughput:as{i}", "above", "bit/s", effect=counts))
    return Finding("B5", setup, compared, notes=[_by_scheme(paper, compared)])


def _b6(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = of_table_1(paper, cells, setup)
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
    rio = cell_of(cells, setup, "figure-1", "rio")
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
    margin, last = paper.top.table("bounds").number("wider"), full_subscription(paper)
    gaps: list[tuple[float, Array]] = []
    for profile, _ in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        added = [
            cell_of(cells, setup, "figure-8", "rio-plus-out", sweep, level)["throughput:as"]
            - cell_of(cells, setup, "figure-8", "rio", sweep, level)["throughput:as"]
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


def _counts(paper: Paper, c: Cell, variant: str) -> bool:
    """Whether claim B8 is about a cell: below full subscription, and of this way to start and to count."""
    starts_full, later = experiments.own(paper, variant)
    if c.topology not in FIGURES:
        return c.topology == ("table-1-later" if later else "table-1") and (c.variant, c.sweep) == (
            variant,
            "",
        )
    if c.topology == "figure-8" and int(c.value) >= full_subscription(paper):
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
    "B10": b10,
    "B11": b11,
    "B12": b12,
    "B13": b13,
    "B14": b14,
    "B15": b15,
    "B16": b16,
}
#: The topology without whose cells a claim is not judged.
_NEEDS = {
    "B2": "figure-2", "B3": "figure-7", "B4": "figure-8", "B5": "figure-9", "B7": "figure-1",
    "B9": "figure-8", "B10": "figure-2", "B13": "figure-8", "B14": "figure-7",
}  # fmt: skip


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict in a set-up needs this cell: B8 counts in Table I and in Fig. 7 to 9."""
    if claim == "B8":
        return cell.topology not in ("figure-1", "figure-2")
    if claim == "B12":
        return cell.sweep == "bucket"
    return cell.topology == _NEEDS.get(claim, "table-1")


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim, in every set-up whose experiments were run.

    Under a variant: about the claim that it is for, B8.
    """
    if variant:
        return [_b8(paper, cells, name, variant) for name in paper.find("variants", variant).words("setups")]
    run = {(c.setup, c.topology) for c in cells}
    swept = {s.id for s in paper.setups if len(points(cells, s.id, "table-1", "bucket")) > 1}
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
