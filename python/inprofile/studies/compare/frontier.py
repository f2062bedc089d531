"""Frontiers: what each setting of a scheme gives at which mean queueing delay; and schemes at equal delay.

A setting moves a scheme along its frontier, so equal settings compare nothing: one scheme may buy its
fairness with delay. Schemes are therefore compared at the same delays, seed by seed, each interpolated
between its own settings, inside the widest range of delays that most of them reach with every seed.

Who wins: the scheme with the best mean, and those that the runs cannot tell apart from it. The best is
compared with every other scheme seed by seed (paired t-tests); Holm's correction runs over all comparisons
of one experiment. Who is statistically tied with the best is listed beside it.

Found settings: of every scheme the one that keeps contracts best, as TOML to paste. Best is the setting
with the highest mean of contract kept (fairness, where nobody has a contract); of those that keep as much,
within a tenth of a per cent, the one that leaves best effort most, then the one with the shortest delay.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...experiment.dump import inline, written
from ...metrics.measures import Array, Measures
from ...metrics.stats import UNLIKE, Paired, holm, mean, paired
from ...papers.judge import ALPHA

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario
    from .schemes import Place, Scheme


#: How many delays schemes are compared at, evenly spread on a logarithmic scale.
MATCHED = 5
#: A range narrower than this ratio of its ends is a point, no range.
NARROW = 1.25


@dataclass(frozen=True)
class Frontier:
    """One scheme's points, in the order of its settings."""

    #: T in seconds.
    settings: Sequence[float]
    points: Sequence[Measures]

    def __contains__(self, name: object) -> bool:
        return all(name in m.values for m in self.points)

    def __getitem__(self, name: str) -> Array:
        """A measure as settings × seeds."""
        return np.stack([m[name] for m in self.points])

    @property
    def reach(self) -> tuple[float, float]:
        """Delays (s) that lie between its settings with every seed; the lower may be above the upper."""
        delay = self["delay"]
        return float(delay.min(axis=0).max()), float(delay.max(axis=0).min())

    def at(self, delays: Array, name: str) -> list[float]:
        """A measure's mean over `delays` (s), one a seed, each between the settings that enclose it.

        >>> def point(delay, kept):
        ...     return Measures((1, 2), {"delay": np.array(delay), "kept": np.array(kept)}, {})
        >>> f = Frontier((1, 2), (point([0.01, 0.01], [1.0, 0.5]), point([0.04, 0.01 * 2**4], [0.0, 0.1])))
        >>> [round(x, 9) for x in f.at(np.array([0.02]), "kept")]  # half and a quarter of the way
        [0.5, 0.4]

        Raises ValueError where it does not reach one of them.
        """
        low, high = self.reach
        if delays.min() < low * (1 - 1e-9) or delays.max() > high * (1 + 1e-9):
            raise ValueError(f"delays of {delays.min()} to {delays.max()} s are not inside {low} to {high} s")
        found = []
        for x, y in zip(self["delay"].T, self[name].T, strict=True):
            order = np.argsort(x, kind="stable")
            between = np.interp(np.log(delays), np.log(x[order]), y[order])
            # What differs in the last bits only is the same: schemes that meet every contract are equal.
            found.append(round(float(between.mean()), 12))
        return found


def common_delays(reach: Mapping[str, tuple[float, float]]) -> tuple[Array, list[str]]:
    """Choose the delays to compare at, and say which schemes reach them.

    Of all ranges, the one that most schemes reach, and of those the widest; none where no two share one.

    >>> delays, schemes = common_delays({"a": (1, 10), "b": (2, 20), "c": (30, 40)})
    >>> [round(float(d), 2) for d in delays], schemes
    ([2.0, 2.99, 4.47, 6.69, 10.0], ['a', 'b'])
    """
    lows, highs = {lo for lo, _ in reach.values()}, {hi for _, hi in reach.values()}
    best: tuple[int, float, float, float] | None = None
    for low, high in itertools.product(sorted(lows), sorted(highs)):
        if low <= 0 or high < low * NARROW:
            continue
        inside = sum(lo <= low and high <= hi for lo, hi in reach.values())
        if inside >= 2 and (best is None or (inside, high / low) > best[:2]):
            best = inside, high / low, low, high
    if best is None:
        return np.empty(0), []
    low, high = best[2:]
    delays = np.geomspace(low, high, MATCHED)
    return delays, [name for name, (lo, hi) in reach.items() if lo <= low and high <= hi]


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
    found: Mapping[str, Mapping[str, Sequence[float]]], higher: Mapping[str, bool], seeds: Sequence[int]
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


#: Shares that differ by less are as good as each other.
_ALIKE = 1e-3


@dataclass(frozen=True)
class Tuned:
    """A scheme at its best setting on one experiment."""

    scheme: Scheme
    #: T in seconds.
    length: float
    #: Means over the seeds, of those measures that exist.
    means: dict[str, float]
    #: Overrides of the experiment.
    values: dict[str, object]
    scenario: Scenario

    @property
    def order(self) -> tuple[float, float, float]:
        """More is better: contract kept, what best effort gets, a shorter delay."""
        return _order(self.means)

    @property
    def toml(self) -> str:
        """The settings as lines of an experiment file, each with the table it belongs to."""
        lines = [f"# {self.scheme.title}, T = {1e3 * self.length:.4g} ms"]
        for key, value in self.values.items():
            kind, _, rest = key.partition(".")
            if rest:
                name, _, last = rest.rpartition(".")
                lines.append(f'{last} = {inline(value)} # in [[{kind}]] "{name}"')
            elif isinstance(value, list):
                for table in value:
                    lines += ["", f"[[{kind}]]", *(f"{k} = {inline(v)}" for k, v in table.items())]
        return "\n".join(lines) + "\n"

    @property
    def experiment(self) -> str:
        """The whole experiment with these settings: `inprofile run` takes it."""
        head = (
            f"{self.scheme.title} at the setting that keeps contracts best, T = {1e3 * self.length:.4g} ms."
        )
        return written(self.scenario.with_(self.values), head)

    def to_json(self) -> dict[str, Any]:
        """As `compare --json` prints it."""
        return {"scheme": self.scheme.id, "t": self.length, **self.means, "toml": self.toml}


def tuned(scheme: Scheme, frontier: Frontier, place: Place, scenario: Scenario) -> Tuned:
    """A scheme at its best on an experiment."""
    means = [
        {name: float(values.mean()) for name, values in point.values.items()} for point in frontier.points
    ]
    which = max(range(len(means)), key=lambda i: _order(means[i]))
    length = frontier.settings[which]
    return Tuned(scheme, length, means[which], scheme.values(place, length), scenario)


def _order(means: dict[str, float]) -> tuple[float, float, float]:
    kept = means.get("kept", means["fairness"])
    return round(kept / _ALIKE), means.get("best_effort", 0.0), -means["delay"]
