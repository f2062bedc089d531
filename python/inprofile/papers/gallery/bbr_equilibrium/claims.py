"""The equilibrium of switching: where the next who goes from CUBIC to BBR no longer gains."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ....metrics.measures import Array
from ... import Cell, Paper
from ...claim import Comparison, Effect, Finding
from ...rows import TableRow, row
from ...stated import findings as stated
from ...stated import rests_on as stated_rests_on

__all__ = ["equilibrium", "findings", "gain", "rests_on", "table"]

FLOWS = 10
_LEAST = Effect(0.5, "half a flow of ten: closer mixtures cannot be told apart")


def gain(paper: Paper, cells: Mapping[Cell, Any], setup: str, topology: str, variant: str = "") -> Array:
    """What a CUBIC flow gains in goodput by switching, by how many are BBR already: seeds × 10, in bit/s."""
    by = [cells[Cell(setup, topology, str(k), variant)] for k in range(FLOWS + 1)]
    return np.array([by[k + 1]["bbr.goodput"] - by[k]["cubic.goodput"] for k in range(FLOWS)]).T


def equilibrium(gained: Array) -> float:
    """How many flows are BBR where switching stops to pay, between whole numbers by a straight line.

    The first mixture, from all CUBIC on, at which the next does not gain; all of them where each does.

    >>> equilibrium(np.array([2.0, 1.0, -1.0, -2.0])), equilibrium(np.array([-1.0, 3.0]))
    (1.5, 0.0)
    """
    for k, x in enumerate(gained):
        if x <= 0:
            return 0.0 if k == 0 else float(k - 1 + gained[k - 1] / (gained[k - 1] - x))
    return float(len(gained))


def _at(paper: Paper, cells: Mapping[Cell, Any], setup: str, topology: str, variant: str) -> list[float]:
    return [equilibrium(g) for g in gain(paper, cells, setup, topology, variant)]


def findings(paper: Paper, cells: Mapping[Cell, Any], variant: str = "") -> list[Finding]:
    """Claims as their comparisons state them, and M4 by the equilibria of neighbouring buffers."""
    found = stated(paper, cells, variant)
    for setup in paper.setups:
        places = [(t.title, _at(paper, cells, setup.id, t.id, variant)) for t in paper.topologies]
        compared = [
            Comparison(
                f"BBR flows at the equilibrium, {longer} − {shorter}",
                [float(b - a) for a, b in zip(short, long, strict=True)],
                "below",
                unit="flows",
                effect=_LEAST,
            )
            for (shorter, short), (longer, long) in pairwise(places)
        ]
        found.append(Finding("M4", setup.id, compared))
    return found


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """M4 needs every mixture; of the others what they compare."""
    return claim == "M4" or stated_rests_on(paper, claim, cell)


def table(paper: Paper, cells: Mapping[Cell, Any]) -> list[TableRow]:
    """How many of ten are BBR at the equilibrium, by buffer."""
    return [
        row(
            Cell(setup.id, topology.id, ""),
            cells[Cell(setup.id, topology.id, "0")].seeds,
            _at(paper, cells, setup.id, topology.id, ""),
            table="Equilibrium",
            what="BBR flows of ten at which switching stops to pay",
            label=topology.title,
            bounds=(0.0, float(FLOWS)),
        )
        for setup in paper.setups
        for topology in paper.topologies
    ]
