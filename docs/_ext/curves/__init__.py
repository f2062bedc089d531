"""The behaviour of each mechanism, drawn from its code: the pictures of the pages on concepts.

Every point of a drop curve is a decision of a run, with the average and the probability that the mechanism
itself gave as its reason (`trace`); every share of colours was counted. Nothing comes from a formula here.
A family of mechanisms is a file; `drawn` has the experiments they share.
"""

from __future__ import annotations

import inprofile

# Importing a family is what makes its curves known.
from . import codel, meters, red, schedulers
from .drawn import CURVES, Curve

__all__ = [
    "CURVES",
    "Curve",
    "NotDrawable",
    "codel",
    "draw",
    "isolation",
    "l4s",
    "markers",
    "meters",
    "red",
    "schedulers",
]


class NotDrawable(ValueError):
    """A mechanism without a curve of its own that has settings nobody gave."""


def draw(name: str) -> Curve:
    """Draw a mechanism's curve; one without a curve of its own is drawn at its defaults.

    Raises `NotDrawable` where it has settings without a default.
    """
    if name in CURVES:
        return CURVES[name]()
    mechanism = next(m for m in inprofile.mechanisms() if m.name == name)
    needed = [p.name for p in mechanism.parameters if p.default is None]
    if needed or mechanism.kind == "scheduler":
        raise NotDrawable(f"docs/_ext/curves has no curve of {name}, which needs {', '.join(needed)}")
    return (
        meters.shares({name: {"kind": name}})
        if mechanism.kind == "marker"
        else schedulers.delays({name: {"aqm": name}})
    )
