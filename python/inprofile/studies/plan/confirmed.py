"""The test of a candidate on seeds that nothing has used.

As many runs as show, with at most so many failures, that the share of runs that keep every contract is what
was asked for: the exact binomial test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...metrics.contracts import figure_over_runs
from ...metrics.stats import Estimate
from .bench import Bench, RunFigures
from .question import Question
from .search import Tried

__all__ = ["CANDIDATES", "LEVEL", "SAFEST", "Confirmed", "confirmation", "confirmed", "figure_of"]

_FRESH = 1_000_001
"""The first of the seeds that nothing has used."""
CANDIDATES, LEVEL = 3, 0.05
"""So many candidates are tested at most; the answer is wrong with a probability of at most LEVEL."""
SAFEST = (0.04, 0.005, 0.005)
"""The levels where a run takes long, together LEVEL: the safest is tested first, and with fewer runs."""
_BEGUN = 16
"""A test looks after so many runs whether it has failed, and after twice as many each time."""
_LEAST_RUNS = 300
"""A share of runs is shown with at least so many."""


@dataclass(frozen=True)
class Confirmed:
    """A candidate on fresh seeds."""

    tried: Tried
    """With the runs of the selection."""
    runs: RunFigures
    """The fresh ones."""
    wanted: int
    """How many runs the test has; fewer were made where it had failed before."""
    allowed: int
    """Failures that it allows."""
    met: bool
    level: float = LEVEL / CANDIDATES
    """Of the test: the probability, at most, that it passes a share below the goal's."""

    @property
    def failures(self) -> int:
        """Fresh runs that did not keep every contract."""
        return len(self.runs.seeds) - self.runs.kept

    @property
    def lower(self) -> float:
        """Lower bound of the share of runs that keep every contract, at the level of the test."""
        from scipy.special import betaincinv

        good, n = self.runs.kept, len(self.runs.seeds)
        return 0.0 if good == 0 else float(betaincinv(good, n - good + 1, self.level))


def confirmation(share: float, level: float = LEVEL / CANDIDATES) -> tuple[int, int]:
    """How many fresh runs a test has, and how many failures it allows, at a third of 5 % or another level.

    >>> confirmation(0.99), confirmation(0.95), confirmation(0.99, SAFEST[0])
    ((408, 0), (300, 7), (321, 0))
    """
    from scipy.special import bdtr

    failures = 1.0 - share
    runs = _LEAST_RUNS
    while bdtr(0, runs, failures) > level:
        runs += 1
    allowed = 0
    while bdtr(allowed + 1, runs, failures) <= level:
        allowed += 1
    return runs, allowed


def confirmed(
    question: Question,
    bench: Bench,
    candidate: Tried,
    number: int,
    level: float,
    tell: Callable[[str], None],
) -> Confirmed:
    """Run a candidate on fresh seeds, until the test is decided."""
    wanted, allowed = confirmation(question.goal.kept, level)
    tell(f"{candidate.scheme.title} on {wanted} fresh seeds")
    start = _FRESH + 100_000 * number
    experiment = question.put(candidate.scheme, candidate.settings)
    end = min(_BEGUN, wanted)
    runs = bench.run([(experiment, range(start, start + end))])[0]
    # With more failures than are allowed the rest would change nothing.
    while end < wanted and end - runs.kept <= allowed:
        end = min(2 * end, wanted)
        runs = bench.run([(experiment, range(start, start + end))])[0]
    n = len(runs.seeds)
    met = n == wanted and n - runs.kept <= allowed and _others_met(question, runs)
    return Confirmed(candidate, runs, wanted, allowed, met, level)


def _others_met(question: Question, runs: RunFigures) -> bool:
    """Whether delay and best effort are what was asked for, by their intervals."""
    goal = question.goal
    delay = figure_of(runs, "delay_mean")
    if goal.delay is not None and (delay.ci95 is None or delay.ci95.hi > goal.delay):
        return False
    if goal.best_effort > 0:
        got = figure_of(runs, "best_effort")
        return got.ci95 is not None and got.ci95.lo >= goal.best_effort
    return True


def figure_of(runs: RunFigures, name: str) -> Estimate:
    """A figure's mean over runs with its 95 % interval."""
    return figure_over_runs(name, runs[name].tolist())
