"""The measures of one set-up of paper C, by study, number of flows and scheme; comparisons of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.stats import FREE, Bounds
from .. import Cell, Entry
from ..claim import BOUND, Comparison, Effect
from .frontiers import MATCHED, Frontier, at_equal_delay, log_ratios

Cells = Mapping[Cell, Measures]
Side = Literal["above", "below"]


class ProbeRuns:
    """The measures of a set-up's studies, by what they are asked for."""

    def __init__(self, cells: Cells, setup: str) -> None:
        """`cells` as they were run."""
        self._points: dict[tuple[str, str, str], dict[int, Measures]] = {}
        for cell, measures in cells.items():
            if cell.setup == setup:
                key = (cell.sweep, cell.topology, cell.scheme)
                self._points.setdefault(key, {})[int(cell.value)] = measures

    def points(self, study: str, topology: str, scheme: str) -> dict[int, Measures]:
        """Measures by threshold. Raises `KeyError`."""
        return self._points[study, topology, scheme]

    def frontier(self, study: str, topology: str, scheme: str) -> Frontier:
        """The same as a frontier; the baseline of studies that have none of their own is the common one."""
        if (study, topology, scheme) not in self._points:
            study = "frontier"
        return Frontier.of(self.points(study, topology, scheme))

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        return key in self._points

    def keys(self) -> list[tuple[str, str, str]]:
        """Study, topology and scheme of everything that was run."""
        return list(self._points)


def per_seed(values: Array) -> list[float]:
    """Mean over thresholds: thresholds × seeds to one a seed."""
    return [float(x) for x in values.mean(axis=0)]


def minus(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Difference seed by seed; NaN where there are not both."""
    return [x - y for x, y in zip(a, b, strict=True)]


def _less(ours: Mapping[int, Measures], theirs: Mapping[int, Measures], name: str) -> list[float]:
    """`ours` − `theirs`, mean over the thresholds of both."""
    return per_seed(np.stack([m[name] - theirs[at][name] for at, m in ours.items() if at in theirs]))


class Flows:
    """Comparisons with one number of flows."""

    def __init__(self, runs: ProbeRuns, topology: Entry) -> None:
        """`topology`: the paper's entry, "ten" or "forty"."""
        self.runs, self.id, self.title = runs, topology.id, topology.title

    def frontier(self, scheme: str, study: str = "frontier") -> Frontier:
        """A scheme's frontier in a study."""
        return self.runs.frontier(study, self.id, scheme)

    def ratio(
        self,
        a: str,
        b: str = "none",
        study: str = "frontier",
        name: str = "delay",
        at: slice = slice(MATCHED),
        above: int = 0,
    ) -> list[float]:
        """Mean ln(a / b) at the matched goodputs `at`, thresholds `above` one; NaN of a seed without any."""
        ours, theirs = (self.frontier(scheme, study).above(above) for scheme in (a, b))
        return log_ratios(ours, theirs, name, at)

    def compare(
        self,
        label: str,
        values: Sequence[float],
        side: Side,
        null: float = 0.0,
        unit: str = "",
        bounds: Bounds = FREE,
        *,
        effect: Effect = BOUND,
    ) -> Comparison:
        """A comparison over the seeds in which the frontiers have a goodput or delay in common.

        What most seeds do not have cannot be compared.
        """
        known = [x for x in values if not np.isnan(x)]
        if 2 * len(known) <= len(values):
            why = (
                "the two frontiers have a goodput or delay in common in"
                f" {len(known) or 'none'} of {len(values)} seeds"
            )
            return Comparison(
                label, [null] * len(values), side, null, unit, self.title, why, measured=False, effect=effect
            )
        if len(known) < len(values):
            label += f" (in {len(known)} of {len(values)} seeds; in the others frontiers share nothing)"
        return Comparison(label, known, side, null, unit, self.title, bounds=bounds, effect=effect)

    def within(
        self, label: str, values: Sequence[float], low: float, high: float, bounds: Bounds = FREE
    ) -> Comparison:
        """A comparison between two bounds."""
        return Comparison(
            label, values, "within", low, topology=self.title, upper=high, bounds=bounds, effect=BOUND
        )

    def difference(self, name: str, scheme: str, study: str, base: str) -> list[float]:
        """A measure in one study less in another, mean over the thresholds that both have.

        Raises `ValueError` where they share none.
        """
        ours, theirs = (self.runs.points(s, self.id, scheme) for s in (study, base))
        if not set(ours) & set(theirs):
            raise ValueError(f"{study} and {base} share no threshold: give the two studies one")
        return _less(ours, theirs, name)

    def beside_all_in(self, name: str, scheme: str, study: str) -> list[float]:
        """A measure under a scheme less that of all IN in the same study, mean over its thresholds."""
        return _less(self.runs.points(study, self.id, scheme), self.runs.points(study, self.id, "none"), name)

    def at_equal_delay(self, name: str, scheme: str, study: str) -> list[float]:
        """The same at equal delays; NaN of a seed in which the two share none."""
        return at_equal_delay(self.frontier(scheme, study), self.frontier("none", study), name)

    def swept(self, how: str, value: str) -> list[float]:
        """Mean ln(delay, the scheme at a value of a sweep / all IN), over the seeds that the sweep has."""
        ours = Frontier.of(self.runs.points(value, self.id, how))
        return log_ratios(ours, self.frontier("none").first(len(ours.points[0].seeds)))

    def beside_blind(self, value: str) -> tuple[Frontier, Frontier, Frontier]:
        """The hard marker in a study or sweep, all IN, and the blind marker at its thresholds."""
        ours = self.frontier("hard", value)
        base, blind = self.frontier("none"), self.frontier("blind", "others").only(ours.values)
        seeds = len(ours.points[0].seeds)
        return ours, base.first(seeds), blind.first(seeds)

    def high_load(self, bins: str) -> list[float]:
        """C10: mean ln(variance of the load, hard / all IN) over the upper half of the goodputs of both."""
        return self.ratio("hard", name=f"load_variance:{bins}", at=slice(MATCHED // 2, MATCHED))

    def over_free(self, scheme: str) -> list[float]:
        """Two domains: goodput of a marked flow over that of a free one, mean over thresholds."""
        f = self.frontier(scheme, "two-domains")
        return per_seed(f["goodput_marked"] / f["goodput_free"])

    def fair_share(self, how: str, study: str) -> Array:
        """A marked flow's goodput over the mean of all flows', as thresholds × seeds."""
        f = self.frontier(how, study)
        return f["goodput_marked"] / f["goodput_tcp"]

    def reach(
        self,
        label: str,
        a: str,
        b: str,
        side: Side,
        study: str = "frontier",
        *,
        effect: Effect,
        null: float = 0.0,
    ) -> Comparison:
        """The most goodput that any threshold of both gives, of one scheme less another."""
        ours, theirs = self.frontier(a, study), self.frontier(b)
        common = [at for at in ours.values if at in theirs.values]
        most = [
            np.stack([f["goodput"][list(f.values).index(at)] for at in common]).max(axis=0)
            for f in (ours, theirs)
        ]
        return self.compare(label, [float(x) for x in most[0] - most[1]], side, null, "bit/s", effect=effect)
