"""A comparison: what it runs, how it came out, and both as JSON and as a table of measures."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...metrics.measures import Array
from ...metrics.stats import POSITIVE, SHARE, estimated
from ...own.engine import __version__
from .frontier import Frontier, Ranking, Tuned, tuned
from .measure import MEASURES
from .schemes import Place, Scheme

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario


@dataclass(frozen=True)
class Study:
    """One experiment with one way of doing TCP, on which all schemes are compared."""

    experiment: str
    title: str
    tcp: str
    tcp_title: str
    file: str
    scenario: Scenario
    place: Place
    #: Seeds 1 to this one.
    seeds: int
    #: T in seconds.
    lengths: Sequence[float]
    #: CPU seconds a run, roughly: for the estimate of `--plan` only.
    cost: float

    @property
    def id(self) -> str:
        """For files and links."""
        return f"{self.experiment}-{self.tcp}" if self.tcp else self.experiment


@dataclass(frozen=True)
class ComparisonPlan:
    """The runs of a comparison."""

    studies: Sequence[Study]
    schemes: Sequence[Scheme]
    quick: bool

    @property
    def experiments(self) -> int:
        """Schemes × settings × studies."""
        return sum(len(s.lengths) * len(self.schemes) for s in self.studies)

    @property
    def runs(self) -> int:
        """How many simulations that is."""
        return sum(len(s.lengths) * s.seeds for s in self.studies) * len(self.schemes)

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core."""
        return sum(len(s.lengths) * s.seeds * s.cost for s in self.studies) * len(self.schemes)

    @property
    def packets(self) -> float:
        """How many data packets are to be expected in all, estimated from rates and duration."""
        each = (len(s.lengths) * s.seeds * s.scenario.expected_packets(seeds=1) for s in self.studies)
        return sum(each) * len(self.schemes)

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""
        return {
            "schemes": [s.id for s in self.schemes],
            "studies": [s.id for s in self.studies],
            "quick": self.quick,
            "experiments": self.experiments,
            "runs": self.runs,
            "expected_packets": round(self.packets),
            "cpu_seconds": round(self.cpu_seconds, 1),
        }


@dataclass(frozen=True)
class Compared:
    """A study's outcome."""

    study: Study
    #: By scheme.
    frontiers: dict[str, Frontier]
    #: Digest of each effective experiment, by scheme and setting.
    digests: dict[tuple[str, float], str]
    #: The delays (s) that schemes are compared at, and the schemes that reach them with every seed.
    delays: Array
    reaching: list[str]
    #: By measure.
    rankings: dict[str, Ranking]
    #: Who leaves best effort most, with a correction of its own: it is the price of what is ranked above.
    price: Ranking | None = None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds all schemes ran with."""
        return next(iter(self.frontiers.values())).points[0].seeds

    def at_equal_delay(self, measure: str) -> dict[str, list[float]]:
        """A measure of every scheme that reaches the common delays and has it, one value a seed."""
        return {
            s: self.frontiers[s].at(self.delays, measure)
            for s in self.reaching
            if measure in self.frontiers[s]
        }


@dataclass
class Comparison:
    """A comparison and its outcome."""

    plan: ComparisonPlan
    outcomes: list[Compared]
    version: str = __version__
    #: The page, once written.
    page: Path | None = field(default=None)

    @property
    def quick(self) -> bool:
        """Whether fewer seeds, settings and seconds were run."""
        return self.plan.quick

    def title(self, scheme: str) -> str:
        """A scheme's name as people write it."""
        return next(s.title for s in self.plan.schemes if s.id == scheme)

    def tally(self) -> list[tuple[str, int, int, int]]:
        """Of each scheme: how many rankings it is in, alone at the top of, and at the top of; best first."""
        rankings = [r for one in self.outcomes for r in one.rankings.values()]
        counts = [
            (
                s.id,
                sum(s.id in r.values for r in rankings),
                sum(r.first == [s.id] for r in rankings),
                sum(s.id in r.first for r in rankings),
            )
            for s in self.plan.schemes
        ]
        return sorted(counts, key=lambda c: (-c[3], -c[2]))

    def to_json(self) -> dict[str, Any]:
        """The output of `compare --json`."""
        return {
            "quick": self.quick,
            "version": self.version,
            "schemes": [
                {"id": s.id, "title": s.title, "text": s.text, "tuned": s.tuned} for s in self.plan.schemes
            ],
            "measures": [
                {"id": m.id, "title": m.title, "text": m.text, "ranked": m.higher is not None}
                for m in MEASURES.values()
            ],
            "tally": [
                {"scheme": s, "rankings": n, "alone": alone, "first": first}
                for s, n, alone, first in self.tally()
            ],
            "studies": [
                {**_outcome_json(one), "settings": [t.to_json() for t in self.tuned(one)]}
                for one in self.outcomes
            ],
        }

    def tuned(self, one: Compared) -> list[Tuned]:
        """Every scheme at its best setting in a study, those that keep contracts best first."""
        study = one.study
        made = [tuned(s, one.frontiers[s.id], study.place, study.scenario) for s in self.plan.schemes]
        return sorted(made, key=lambda t: t.order, reverse=True)

    def measures_csv(self) -> str:
        """Every measure of every run, a row each."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(["experiment", "tcp", "scheme", "t_seconds", "measure", "seed", "measured"])
        for one in self.outcomes:
            for scheme, frontier in one.frontiers.items():
                for length, point in zip(frontier.settings, frontier.points, strict=True):
                    for name, values in point.values.items():
                        for seed, x in zip(point.seeds, values, strict=True):
                            first = (one.study.experiment, one.study.tcp, scheme, f"{length:.6g}")
                            out.writerow([*first, name, seed, repr(float(x))])
        return text.getvalue()


def _ranking_json(r: Ranking) -> dict[str, Any]:
    return {
        "best": r.best,
        "alike": r.alike,
        "order": list(r.order),
        "differences": {
            s: {
                "mean": d.difference.mean,
                "ci95": None if d.difference.ci95 is None else list(d.difference.ci95),
                "p_holm": r.p_holm[s],
            }
            for s, d in r.differences.items()
        },
    }


def _outcome_json(one: Compared) -> dict[str, Any]:
    return {
        "experiment": one.study.experiment,
        "title": one.study.title,
        "tcp": one.study.tcp or None,
        "tcp_title": one.study.tcp_title,
        "file": one.study.file,
        "seeds": list(one.seeds),
        "delays": [float(d) for d in one.delays],
        "at_equal_delay": {
            name: {s: estimated(values, SHARE) for s, values in found.items()}
            for name in MEASURES
            if (found := one.at_equal_delay(name))
        },
        "no_point_there": {s: list(f.reach) for s, f in one.frontiers.items() if s not in one.reaching},
        "winners": {name: _ranking_json(r) for name, r in one.rankings.items()},
        "price": None if one.price is None else _ranking_json(one.price),
        "frontiers": [
            {
                "scheme": s,
                "t": length,
                "digest": one.digests[s, length],
                **{
                    name: estimated(values.tolist(), POSITIVE if name == "delay" else SHARE)
                    for name, values in point.values.items()
                },
            }
            for s, f in one.frontiers.items()
            for length, point in zip(f.settings, f.points, strict=True)
        ],
    }
