"""Who wins: the scheme with the best mean, and those that the runs cannot tell apart from it.

The best is compared with every other scheme seed by seed (paired t-tests); Holm's correction runs over all
comparisons of one experiment. Who is statistically tied with the best is listed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...metrics.stats import UNLIKE, Paired, holm, mean, paired
from ...papers.judge import ALPHA

__all__ = ["Ranking", "rank"]


@dataclass(frozen=True)
class Ranking:
    """One measure's order of schemes, and what is shown of it."""

    #: From best to worst, by mean.
    order: Sequence[str]
    #: By scheme, one value a seed.
    values: Mapping[str, Sequence[float]]
    #: The best against each of the others: difference and adjusted p.
    differences: Mapping[str, Paired]
    p_holm: Mapping[str, float]

    @property
    def best(self) -> str:
        """The scheme with the best mean; the first of equals."""
        return self.order[0]

    @property
    def alike(self) -> list[str]:
        """Schemes that cannot be told from the best, in order."""
        return [s for s in self.order[1:] if self.p_holm[s] >= ALPHA]

    @property
    def first(self) -> list[str]:
        """The best, and those alike."""
        return [self.best, *self.alike]


def rank(
    found: Mapping[str, Mapping[str, Sequence[float]]],
    higher: Mapping[str, bool],
    seeds: Sequence[int],
) -> dict[str, Ranking]:
    """Rankings of one experiment, by measure, from `found`: by measure and scheme, one value a seed.

    >>> kept = {"a": [0.9, 0.8, 0.91], "b": [0.5, 0.4, 0.52], "c": [0.9, 0.79, 0.92]}
    >>> found = rank({"kept": kept}, {"kept": True}, [1, 2, 3])["kept"]
    >>> found.best, found.alike
    ('a', ['c'])
    """
    made = {}
    for name, values in found.items():
        sign = -1 if higher[name] else 1
        order = sorted(values, key=lambda s: sign * mean(values[s]))
        by_seed = {s: dict(zip(seeds, values[s], strict=True)) for s in values}
        made[name] = order, {s: paired(by_seed[order[0]], by_seed[s], UNLIKE) for s in order[1:]}
    # One seed tells nothing of chance: nothing is shown.
    ps = [1.0 if d.p is None else d.p for _, differences in made.values() for d in differences.values()]
    adjusted = iter(holm(ps))
    return {
        name: Ranking(order, found[name], differences, {s: next(adjusted) for s in differences})
        for name, (order, differences) in made.items()
    }
