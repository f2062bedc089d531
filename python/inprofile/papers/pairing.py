"""Pairing by seed: what two cells' measures differ by, or are to each other, run by run.

Schemes are compared on the same seeds, so every comparison first has to know that it has them.

And the smallest effects worth the name that more than one paper's claims need. See `claim.Effect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..metrics.measures import Array, Measures
from ..metrics.stats import FREE, Bounds, mean
from .judge import Comparison, Effect, Room

#: A measure by its name, or made from several (a share of a sum).
Measure = str | Callable[[Measures], Array]


def same_seeds(*cells: Measures) -> tuple[int, ...]:
    """The seeds that all `cells` were run with, in their order. Raises `ValueError` where they differ."""
    first, *others = cells
    for other in others:
        if other.seeds != first.seeds:
            raise ValueError(
                f"nothing to pair: one was run with seeds {_listed(first)}, the other with {_listed(other)}"
            )
    return first.seeds


def paired(a: Measures, b: Measures, measure: Measure) -> list[float]:
    """`a` − `b`, one value a seed. Raises `ValueError` where the seeds differ.

    >>> fast = Measures((1, 2), {"fi": np.array([0.9, 0.8])}, {})
    >>> slow = Measures((1, 2), {"fi": np.array([0.5, 0.5])}, {})
    >>> [round(x, 9) for x in paired(fast, slow, "fi")]
    [0.4, 0.3]
    """
    same_seeds(a, b)
    return [float(x) for x in _of(a, measure) - _of(b, measure)]


def ratios(a: Measures, b: Measures, measure: Measure) -> list[float]:
    """`a` / `b`, one value a seed. Raises `ValueError` where the seeds differ or a value of `b` is 0."""
    same_seeds(a, b)
    below = _of(b, measure)
    if not np.all(below):
        raise ValueError("a ratio to a measure that is 0 with some seed")
    return [float(x) for x in _of(a, measure) / below]


@dataclass(frozen=True)
class Pair:
    """A scheme beside the one that it is compared with: measures of the same seeds, in a network."""

    base: Measures
    ours: Measures
    title: str = ""
    #: What acts as often as `ours`, but blindly, by its title.
    placebos: Mapping[str, Measures] = field(default_factory=dict)

    def difference(self, measure: Measure) -> list[float]:
        """`ours` − `base`, one value a seed."""
        return paired(self.ours, self.base, measure)

    def compare(
        self,
        label: str,
        measure: Measure,
        side: Literal["above", "below"],
        unit: str = "",
        *,
        bounds: Bounds = FREE,
        obstacle: str | None = None,
        effect: Effect | None = None,
        room: Room | None = None,
    ) -> Comparison:
        """The difference as a comparison with 0, and how far `ours` is above each placebo."""
        return Comparison(
            label,
            self.difference(measure),
            side,
            0.0,
            unit,
            self.title,
            obstacle,
            bounds=bounds,
            effect=effect,
            room=room,
            placebos={title: paired(self.ours, other, measure) for title, other in self.placebos.items()},
        )


def _of(cell: Measures, measure: Measure) -> Array:
    return cell[measure] if isinstance(measure, str) else measure(cell)


def _listed(cell: Measures) -> str:
    seeds = cell.seeds
    if seeds == tuple(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


#: Differences of Jain's index.
INDEX = Effect(0.01, "a hundredth of Jain's index, by which schemes are told apart throughout")
#: Throughput over contract, beside the bound of 98 % from which a contract counts as kept.
CONTRACT = Effect(0.02, "2 % of the contract: what is within them counts as kept")
#: Where the null value is the claim's own bound.
BOUND = Effect(0.0, "the bound is the claim's")


def of_base(base: Iterable[float], share: float, why: str, stated: bool = False) -> Effect:
    """A share of what the scheme compared with has on the mean of its seeds.

    >>> of_base([90.0, 110.0], 0.1, "a tenth").size
    10.0
    """
    return Effect(share * abs(mean(base)), why, stated)


def of_link(rate: float, share: float = 0.01) -> Effect:
    """A share of the link's rate, in bit/s.

    >>> of_link(6e6).why
    '1 % of the link, by which schemes are told apart throughout'
    """
    return Effect(share * rate, f"{100 * share:g} % of the link, by which schemes are told apart throughout")
