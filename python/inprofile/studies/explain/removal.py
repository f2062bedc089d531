"""Whether a named cause is one: the same experiment without it, with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...metrics.quantity import quantity
from ...metrics.stats import mean
from .cause import KINDS, Cause

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario
    from ...run.results import Result
    from . import Explanation

MENDED = 0.5
"""A flow is mended when it reaches what it missed, or this share of the gap is closed."""


@dataclass(frozen=True)
class Removed:
    """What a flow got once causes were gone."""

    causes: tuple[Cause, ...]
    goal: float
    """bit/s: the contract, or what the others got before."""
    before: float
    after: float

    @property
    def closed(self) -> float:
        """The share of the gap that closed; of seeds in which there was none, 1 where there still is none."""
        if self.before >= self.goal:
            return float(self.after >= self.goal)
        return (self.after - self.before) / (self.goal - self.before)

    @property
    def mended(self) -> bool:
        """Whether it reached the goal, or half of the gap closed."""
        return self.closed >= MENDED

    def words(self) -> str:
        """One sentence."""
        with_ = " and ".join(KINDS[cause.kind] for cause in self.causes)
        done = f"it got {quantity(self.after, 'bit/s', 3)} instead of {quantity(self.before, 'bit/s', 3)}"
        share = f"{100 * min(max(self.closed, 0), 1):.0f} % of the gap closed"
        verdict = "" if self.mended else ": that was not, or not alone, the cause"
        return f"Run again with {with_}, {done}: {share}{verdict}."

    def to_json(self) -> dict[str, Any]:
        """As `explain --try --json` prints it."""
        return {
            "kinds": [cause.kind for cause in self.causes],
            "goal": self.goal,
            "before": self.before,
            "after": self.after,
            "closed": self.closed,
            "mended": self.mended,
        }


def without(scenario: Scenario, causes: Sequence[Cause]) -> Scenario:
    """The experiment with these removed. Raises ScenarioError where the rest does not go with that."""
    changes: dict[str, object] = {}
    for cause in causes:
        changes.update(cause.changes)
    return scenario.with_(changes)


Run = Callable[["Scenario", Sequence[int]], "Result"]


def removed(
    scenario: Scenario, found: Explanation, run: Run, seeds: Sequence[int] = ()
) -> tuple[Removed, ...]:
    """Run the experiment again without the cause, with the same seeds or these; of a tie, without each."""
    groups = [found.causes] if found.together else [(cause,) for cause in found.causes]
    return tuple(tried(scenario, found, causes, run, seeds) for causes in groups)


def tried(
    scenario: Scenario, found: Explanation, causes: tuple[Cause, ...], run: Run, seeds: Sequence[int] = ()
) -> Removed:
    """Run it again without these."""
    chosen = tuple(seeds) or found.seeds
    result = run(without(scenario, causes), chosen)
    rates = [float(row["throughput"]) for row in result.flows.to_pylist() if row["flow"] in found.flows]
    before = mean(rate for seed, rate in found.rates if seed in chosen)
    return Removed(causes, found.goal or 0.0, before, mean(rates))
