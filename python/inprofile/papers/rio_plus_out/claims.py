"""Which claims are judged where, and B8: that no IN packet is dropped.

A claim is judged in every set-up whose cells were run. `of_table` has Table I's claims, `of_figures` those of
the curves, `besides` B10 to B16, `shared` what they share.
"""

from __future__ import annotations

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.quantity import pm
from ...metrics.stats import SHARE, estimate
from .. import Cell, Paper
from ..claim import Comparison, Effect, Finding
from . import experiments
from .besides import b10, b11, b12, b13, b14, b15, b16
from .experiments import FIGURES
from .larger import assured
from .of_figures import b2, b3, b4, b5, b7, b9
from .of_table import b1a, b1b, b1c, b6, table
from .shared import Cells, full_subscription, points, titles

__all__ = ["findings", "rests_on", "table"]

#: B8's bound.
NO_DROP = Effect(
    0.0, "the bound is what we take for none: one in a thousand moves no rate that anyone could see"
)


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
    "B1a": b1a,
    "B1b": b1b,
    "B1c": b1c,
    "B2": b2,
    "B3": b3,
    "B4": b4,
    "B5": b5,
    "B6": b6,
    "B7": b7,
    "B8": _b8,
    "B9": b9,
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
    # The advice needs one profile of Fig. 8, which is no figure yet.
    profiles = [f"{profile:g} Mbit/s" for profile, _ in experiments.levels(paper)]
    run -= {
        (s.id, "figure-8")
        for s in paper.setups
        if not all(points(cells, s.id, "figure-8", sweep) for sweep in profiles)
    }
    swept = {s.id for s in paper.setups if len(points(cells, s.id, "table-1", "bucket")) > 1}
    return [
        _CLAIMS[claim.id](paper, cells, setup.id)
        for setup in paper.setups
        for claim in paper.claims
        if (setup.id in swept if claim.id == "B12" else (setup.id, _NEEDS.get(claim.id, "table-1")) in run)
    ]
