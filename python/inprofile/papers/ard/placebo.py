"""Whether paper A's scheme does better than blind drops, and Table 1 beside ours."""

from __future__ import annotations

from typing import Any

from ...metrics.stats import SHARE, UNLIKE, ci95, estimated
from .. import Paper
from ..claim import Comparison
from ..defaults import variants_of
from ..report import TableRow, row
from .schemes import Cells, Schemes, ran


def placebo_comparisons(paper: Paper, cells: Cells, setup: str, variant: str) -> list[Comparison]:
    """Is it the scheme, or any randomness? ARD and the placebo against no edge marker, and each other.

    Not among the paper's claims, so outside Holm's family: plain 95 % intervals.
    """
    compared = []
    for topology in paper.topologies:
        s = Schemes(paper, cells, setup, topology, variant)
        for scheme, base in (("placebo", "rio"), ("ard", "rio"), ("ard", "placebo")):
            compared.append(
                Comparison(
                    f"{s.titles[scheme]} − {s.titles[base]}",
                    s.pair(scheme, base).difference("fi"),
                    "above",
                    topology=topology.id,
                    bounds=UNLIKE,
                )
            )
    return compared


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Table 1 beside ours: one row a set-up, topology, scheme and variant."""
    return [
        row(
            cell,
            m.seeds,
            m["fi"],
            table="Table 1",
            what="fairness index",
            label=", ".join(
                (paper.find("topologies", cell.topology).title, paper.find("schemes", cell.scheme).title)
            ),
            paper=paper.printed("fi", cell.topology, cell.scheme),
            bounds=SHARE,
        )
        for cell, m in cells.items()
        if not cell.sweep
    ]


def more(paper: Paper, cells: Cells) -> dict[str, Any]:
    """What `results.json` has beside claims and tables: the schemes against the placebo."""
    return {
        "placebo": [
            {
                "setup": setup.id,
                "topology": c.topology,
                "variant": variant,
                "compared": c.label,
                "differs": _excludes_zero(c),
                **estimated(c.values, c.bounds),
            }
            for setup in ran(paper, cells)
            for variant in variants_of(paper)
            if setup in ran(paper, cells, variant)
            for c in placebo_comparisons(paper, cells, setup.id, variant)
        ]
    }


def _excludes_zero(c: Comparison) -> bool:
    interval = ci95(c.values, c.bounds)
    return interval is not None and 0.0 not in interval
