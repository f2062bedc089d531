"""The equilibrium of switching: where the next who goes from CUBIC to BBR no longer gains."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ....metrics.measures import Array
from ... import Cell, Entry, Paper
from ...claim import Comparison, Effect, Finding
from ...report import TableRow, row
from ...stated import findings as stated
from ...stated import rests_on as stated_rests_on

FLOWS = 10
_LEAST = Effect(0.5, "half a flow of ten: closer mixtures cannot be told apart")


def gain(paper: Paper, cells: Mapping[Cell, Any], setup: str, topology: str, variant: str = "") -> Array:
    """What a CUBIC flow gains in goodput by switching, by how many are BBR already: seeds × 10, in bit/s."""
    by = [cells[Cell(setup, topology, str(k), variant)] for k in range(FLOWS + 1)]
    return np.array([by[k + 1]["bbr.goodput"] - by[k]["cubic.goodput"] for k in range(FLOWS)]).T


def equilibrium(gained: Array) -> float:
    """How many flows are BBR where the last who switched gained and the next would not.

    `gained[k]` is the gain of going from k flows to k + 1. Of several such mixtures the one up to which the
    gains add up to most, so that one gain that chance has pushed below zero does not decide. Between whole
    numbers by a straight line through the two gains, each halfway between its mixtures; all of them where
    everybody gains.

    >>> equilibrium(np.array([2.0, 1.0, -1.0, -2.0])), equilibrium(np.array([3.0, -0.1, 2.0, -2.0]))
    (2.0, 3.0)
    >>> equilibrium(np.array([-1.0, -3.0])), equilibrium(np.array([2.0, 1.0]))
    (0.0, 2.0)
    """
    k = int(np.argmax(np.cumsum([0.0, *gained])))
    if k in (0, len(gained)):
        return float(k)
    last, following = gained[k - 1], gained[k]
    return float(k - 0.5 + last / (last - following))


def _at(paper: Paper, cells: Mapping[Cell, Any], setup: str, topology: str, variant: str) -> list[float]:
    return [equilibrium(g) for g in gain(paper, cells, setup, topology, variant)]


def _buffers(paper: Paper) -> list[Entry]:
    """The networks that differ in nothing but the buffer, shortest first."""
    return [t for t in paper.topologies if "links.bottleneck.rate" not in t.changes]


def _nobody_left(short: list[float], long: list[float]) -> str | None:
    """Why two buffers cannot be told apart: all ten are BBR in both, however much more the longer has."""
    if min(*short, *long) < FLOWS:
        return None
    return "every switch pays in both: all ten flows are BBR, and more there are not"


def findings(paper: Paper, cells: Mapping[Cell, Any], variant: str = "") -> list[Finding]:
    """Claims as their comparisons state them, and M4 by the equilibria of neighbouring buffers."""
    found = stated(paper, cells, variant)
    for setup in paper.setups:
        places = [(t.title, _at(paper, cells, setup.id, t.id, variant)) for t in _buffers(paper)]
        compared = [
            Comparison(
                f"BBR flows at the equilibrium, {longer} − {shorter}",
                [float(b - a) for a, b in zip(short, long, strict=True)],
                "below",
                unit="flows",
                effect=_LEAST,
                obstacle=_nobody_left(short, long),
            )
            for (shorter, short), (longer, long) in pairwise(places)
        ]
        found.append(Finding("M4", setup.id, compared))
    order = [claim.id for claim in paper.claims]
    return sorted(found, key=lambda one: order.index(one.claim))


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """M4 needs every mixture before each of its buffers; the others what they compare."""
    if claim == "M4":
        return cell.topology in [t.id for t in _buffers(paper)]
    return stated_rests_on(paper, claim, cell)


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
