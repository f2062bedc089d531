"""Claims B2 to B5, B7 and B9: the figures' curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...metrics.measures import Array
from ...metrics.quantity import mean_pm, quantity
from .. import Entry, Paper
from ..claim import Comparison, Effect, Finding, Number
from .experiments import levels
from .shared import (
    Cells,
    Side,
    cell_of,
    crossings,
    full_subscription,
    is_kept,
    is_missed,
    kept_share,
    paired,
    points,
    profiles,
    rival,
    titles,
)


def b2(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B2: the average of OUT packets that a flow's IN packets see, by its profile."""
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


def b3(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B3: best-effort flows withstood."""
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
                rival=list(found[rival(paper, scheme)]),
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


def b4(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B4: up to which subscription profiles are kept."""
    compared, told = [], []
    for profile, printed in levels(paper):
        sweep = f"{profile:g} Mbit/s"
        told.append(_kept_to(paper, cells, setup, profile))
        for level in points(cells, setup, "figure-8", sweep):
            for scheme, title in titles(paper).items():
                m = cell_of(cells, setup, "figure-8", scheme, sweep, level)
                judged = is_kept if int(level) <= printed.number(scheme) else is_missed
                share = kept_share(paper, m, profile * 1e6)
                compared.append(judged(paper, f"{title}: {sweep} at {level} %", share))
    return Finding(
        "B4", setup, compared, notes=[_by_scheme(paper, compared)], told=_by_both(paper, "kept to", told)
    )


def _by_both(paper: Paper, what: str, told: Sequence[str]) -> str:
    """Figures under RIO and under RI+O, in words."""
    return f"{what} ({', '.join(titles(paper).values())}): {'; '.join(told)}"


def _kept_to(paper: Paper, cells: Cells, setup: str, profile: float) -> str:
    """Up to which subscription the mean flow is kept under each scheme."""
    bound, sweep = paper.top.table("bounds").number("kept"), f"{profile:g} Mbit/s"
    ours = []
    for scheme in titles(paper):
        sold = 0
        for level in map(str, sorted(map(int, points(cells, setup, "figure-8", sweep)))):
            m = cell_of(cells, setup, "figure-8", scheme, sweep, level)
            if kept_share(paper, m, profile * 1e6).mean() < bound:
                break
            sold = int(level)
        ours.append(f"{sold} %" if sold else "none")
    return f"{sweep} {', '.join(ours)}"


def b5(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B5: profiles in steps: which multiples are missed."""
    compared, told = [], []
    for step in paper.top.tables("steps"):
        told.append(_missed_from(paper, cells, setup, step))
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
            compared.append(paired(runs).compare(label, f"throughput:as{i}", "above", "bit/s", effect=counts))
    return Finding(
        "B5", setup, compared, notes=[_by_scheme(paper, compared)], told=_by_both(paper, "first missed", told)
    )


def _missed_from(paper: Paper, cells: Cells, setup: str, step: Entry) -> str:
    """The first multiple of which the mean falls short under each scheme."""
    bound, ours = paper.top.table("bounds").number("kept"), []
    for scheme in titles(paper):
        m = cell_of(cells, setup, "figure-9", scheme, "step", step.id)
        shares = [
            m[f"throughput:as{i}"].mean() / (float(step.id) * 1e6 * (i + 1))
            for i in range(step.whole("flows"))
        ]
        ours.append(next((str(i + 1) for i, share in enumerate(shares) if share < bound), "none"))
    return f"{step.id} Mbit/s {', '.join(ours)}"


def b7(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B7: how long windows are above a profile."""
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


def b9(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B9: what RI+O adds grows with the profile."""
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
