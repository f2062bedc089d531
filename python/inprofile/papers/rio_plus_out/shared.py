"""What the claims of paper B share: profiles, points of a figure, crossing points, and kept or missed.

A profile is *kept* where at least 98 % of it is shown to be reached, *missed* where the flow is shown to stay
below it. Crossing points of Fig. 7 are interpolated within each seed, so that they have an interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...metrics.measures import Array, Measures
from .. import Cell, Entry, Paper
from ..claim import BOUND, CONTRACT, Comparison, Pair
from .experiments import subscribed

Cells = Mapping[Cell, Measures]
Side = Literal["above", "below"]

BE = "be"


def titles(paper: Paper) -> dict[str, str]:
    """RIO and RI+O by id."""
    return {scheme.id: scheme.title for scheme in paper.schemes}


def rival(paper: Paper, scheme: str) -> str:
    """The scheme that it is compared with."""
    [found] = titles(paper).keys() - {scheme}
    return found


def paired(runs: Mapping[str, Measures]) -> Pair:
    """RIO and RI+O, seed by seed."""
    return Pair(runs["rio"], runs["rio-plus-out"])


def profiles(paper: Paper) -> dict[str, float]:
    """Groups of Table I's assured flows, and their profiles in bit/s."""
    about = paper.top.table("profiles")
    return {group: about.number(group) for group in about}


def printed_table(paper: Paper, scheme: str) -> Entry:
    """Table I's columns under a scheme: by group of `profiles`, best effort last."""
    return next(t for t in paper.top.tables("table1") if t.word("scheme") == scheme)


def cell_of(
    cells: Cells, setup: str, topology: str, scheme: str, sweep: str = "", value: str = ""
) -> Measures:
    """What was measured of a scheme in a network, without a variant."""
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
    ratio = [kept_share(paper, cell_of(cells, setup, "figure-7", scheme, level, n), profile) for n in counts]
    return crossing([float(n) for n in counts], np.array(ratio).T, paper.top.table("bounds").number("kept"))


def is_kept(paper: Paper, label: str, share: Array) -> Comparison:
    """That a profile is kept, by the share of it that was reached."""
    kept = paper.top.table("bounds").number("kept")
    return Comparison(f"{label} kept", list(share), "above", null=kept, effect=BOUND)


def is_missed(paper: Paper, label: str, share: Array) -> Comparison:
    """That a profile is missed: shown to be below it."""
    return Comparison(f"{label} missed", list(share), "below", null=1.0, effect=CONTRACT)


def in_kbit(profile: float) -> str:
    """A rate in bit/s, in words."""
    return f"{profile / 1e3:g} kbit/s"


def of_table_1(paper: Paper, cells: Cells, setup: str) -> dict[str, Measures]:
    """Table I's cells, by scheme."""
    return {scheme: cell_of(cells, setup, "table-1", scheme) for scheme in titles(paper)}


def full_subscription(paper: Paper) -> float:
    """Full subscription, in per cent."""
    return paper.top.table("figures").table("levels").numbers("all")[-1]
