"""Whether runs show that a share is kept: a bound that holds for any number of runs, whenever one stops.

A gambler who doubts that the share is above m bets on each run's kept − m · wanted, which has a mean of at
most 0 if she is right not to: then her capital grows by any factor 1/δ, ever, with a probability of at most δ
(Ville 1939). So runs may be made until it has; m is shown once it has. She divides her capital among bets of
several sizes, half of it on the largest, under which runs that keep everything show a share about as soon as
Clopper's and Pearson's bound (Waudby-Smith and Ramdas 2024, §4, have such bounds for means).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["enough", "lower_bound", "shows"]

#: Sizes of bets, as parts of the largest, and how the first capital is divided.
_SIZES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)
_CAPITAL = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
_RUNS = 50_000


def capital(kept: Sequence[int], wanted: Sequence[int], most: int, share: float) -> float:
    """The logarithm of the greatest capital on the way; `most` contracts are wanted at a time at most."""
    won = (np.asarray(kept, float) - share * np.asarray(wanted, float)) / (share * most)
    with np.errstate(divide="ignore"):
        paths = [
            np.log(c) + np.log1p(np.maximum(-1.0, size * won)).cumsum()
            for size, c in zip(_SIZES, _CAPITAL, strict=True)
        ]
    return float(np.logaddexp.reduce(np.array(paths), axis=0).max(initial=0.0))


def shows(kept: Sequence[int], wanted: Sequence[int], most: int, share: float, level: float) -> bool:
    """Whether runs show the share, wrong with a probability of `level` at most.

    >>> shows([10] * 480, [10] * 480, 10, 0.99, 0.05 / 3), shows([10] * 300, [10] * 300, 10, 0.99, 0.05 / 3)
    (True, False)
    """
    return capital(kept, wanted, most, share) >= -float(np.log(level))


def lower_bound(kept: Sequence[int], wanted: Sequence[int], most: int, level: float) -> float:
    """The greatest share that is shown, to four digits."""
    low, high = 0.0, 1.0
    while high - low > 5e-5:
        middle = (low + high) / 2
        low, high = (middle, high) if shows(kept, wanted, most, middle, level) else (low, middle)
    return low


def enough(share: float, level: float) -> int:
    """How many runs that keep all contracts show the share.

    >>> enough(0.99, 0.05 / 3), enough(0.95, 0.05 / 3)
    (477, 94)
    """
    step = -np.log(share)
    return min(_RUNS, int(np.ceil((-np.log(level) - np.log(_CAPITAL[0])) / step)))
