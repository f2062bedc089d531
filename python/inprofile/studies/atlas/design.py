"""Which points an atlas visits: the default, each factor changed alone, and a Sobol design over the box.

The points along each factor give the nearest place where a claim changes; the Sobol points (scrambled, from a
seed that depends on the paper's name only) fill the box evenly and are what shares are taken over. A larger
budget has all points of a smaller one, and goes on from what is in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from ..._input import MOST_POINTS
from ...papers.factors import Factor, Point
from ..sampling import sobol

__all__ = ["Planned", "design"]

Kind = Literal["default", "along", "sobol"]


@dataclass(frozen=True)
class Planned:
    """A point of the design."""

    kind: Kind
    point: Point

    def changed(self, factors: Sequence[Factor]) -> dict[str, str | float]:
        """The differences from the default, by factor."""
        return {f.id: self.point[f.id].value for f in factors if self.point[f.id].value != f.default.value}


def design(factors: Sequence[Factor], budget: int, name: str) -> list[Planned]:
    """List `budget` points of the box of `factors`: at most half of them along the axes.

    Raises ValueError where there is nothing to vary, and for a budget of none or too large.
    """
    if budget < 1:
        raise ValueError(f"a budget of {budget} points visits nothing: give 1 or more")
    if budget > MOST_POINTS:
        raise ValueError(f"a budget of more than {MOST_POINTS} points: give fewer; 48 to 256 will do")
    if not factors:
        raise ValueError("there is nothing to vary: no reading and no input is listed")
    default = {f.id: f.default for f in factors}
    planned = [Planned("default", default)]
    # First one change of every factor, then another: a small budget still sees each factor.
    rounds = zip_longest(*([(f.id, c) for c in f.others()] for f in factors))
    along = [change for changes in rounds for change in changes if change is not None]
    planned += [Planned("along", {**default, **dict([change])}) for change in along[: (budget - 1) // 2]]
    rest = budget - len(planned)
    planned += [
        Planned("sobol", {f.id: f.at(u) for f, u in zip(factors, row, strict=True)})
        for row in sobol(len(factors), rest, f"atlas {name}")
    ]
    return planned
