"""Found settings: of every scheme the one that keeps contracts best, as TOML to paste.

Best is the setting with the highest mean of contract kept (fairness, where nobody has a contract); of those
that keep as much, within a tenth of a per cent, the one that leaves best effort most, then the one with the
shortest delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...experiment.dump import inline, written

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario
    from .frontier import Frontier
    from .schemes import Place, Scheme

__all__ = ["Tuned", "tuned"]

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
