"""Smallest effects worth the name that more than one paper's claims need. See `claim.Effect`."""

from __future__ import annotations

from collections.abc import Iterable

from ..metrics.stats import mean
from .claim import Effect

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
