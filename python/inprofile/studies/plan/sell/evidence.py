"""Whether runs show that a share is kept: a bound that holds for any number of runs, whenever one stops.

A gambler who doubts that the share is above m bets on each run's kept − m · wanted, which has a mean of at
most 0 if she is right not to: then her capital grows by any factor 1/δ, ever, with a probability of at most δ
(Ville 1939). So runs may be made until it has; m is shown once it has. She divides her capital among bets of
several sizes, half of it on the largest, under which runs that keep everything show a share about as soon as
Clopper's and Pearson's bound (Waudby-Smith and Ramdas 2024, §4, have such bounds for means). That the share
is below m is shown by who bets on m · wanted − kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["enough", "lower_bound", "misses", "shows"]

#: Sizes of bets, as parts of the largest, and how the first capital is divided.
_SIZES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)
_CAPITAL = (0.5, 0.1, 0.1, 0.1, 0.1, 0.1)
#: The same against a share. A run that keeps everything would take the whole of a bet of size 1.
_AGAINST = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
_RUNS = 50_000


def _capital(won: NDArray[np.float64], sizes: Sequence[float], capital: Sequence[float]) -> float:
    """The logarithm of the greatest capital on the way, of runs of which none loses more than 1."""
    with np.errstate(divide="ignore"):
        paths = [
            np.log(c) + np.log1p(np.maximum(-1.0, size * won)).cumsum()
            for size, c in zip(sizes, capital, strict=True)
        ]
    return float(np.logaddexp.reduce(np.array(paths), axis=0).max(initial=0.0))


def shows(kept: Sequence[int], wanted: Sequence[int], most: int, share: float, level: float) -> bool:
    """Whether runs show the share, wrong with a probability of `level` at most.

    >>> shows([10] * 480, [10] * 480, 10, 0.99, 0.05 / 3), shows([10] * 300, [10] * 300, 10, 0.99, 0.05 / 3)
    (True, False)
    """
    won = _beyond(kept, wanted, share) / (share * most)
    return _capital(won, _SIZES, _CAPITAL) >= -float(np.log(level))


def misses(kept: Sequence[int], wanted: Sequence[int], most: int, share: float, level: float) -> bool:
    """Whether runs show that the share is missed, wrong with a probability of `level` at most.

    >>> misses([9] * 40, [10] * 40, 10, 0.99, 0.05 / 3), misses([9, 10] * 5, [10] * 10, 10, 0.9, 0.05 / 3)
    (True, False)
    """
    won = -_beyond(kept, wanted, share) / ((1 - share) * most)
    return _capital(won, _AGAINST, [1 / len(_AGAINST)] * len(_AGAINST)) >= -float(np.log(level))


def _beyond(kept: Sequence[int], wanted: Sequence[int], share: float) -> NDArray[np.float64]:
    return np.asarray(kept, float) - share * np.asarray(wanted, float)


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
