"""Compare schemes: plan the runs, do them or take them from the cache, rank what came out, write the page."""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._measured import Experiment, measure_all
from .._version import __version__
from ..measures import Array, Measures
from ..scenario import load
from ..stats import POSITIVE, SHARE, estimated
from . import measure as _measure
from .frontier import Frontier, common_delays
from .measure import MEASURES, RANKED
from .schemes import HERE, Place, Scheme, about, choose, lengths
from .winners import Ranking, rank

if TYPE_CHECKING:
    from ..scenario import Scenario

__all__ = ["CACHE", "Comparison", "Plan", "Study", "compare", "plan"]

#: Where measures are kept, from the working directory.
CACHE = Path("results/cache/compare")

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


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
class Plan:
    """What a comparison will run."""

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


def plan(
    files: Sequence[str | Path] | None = None, quick: bool = False, schemes: Sequence[str] | None = None
) -> Plan:
    """List what `compare` would run.

    Raises `UnknownSchemeError`, `NoContractError` where a scheme needs what a file lacks, `ScenarioError` and
    `OSError` for a file that is none.
    """
    chosen = choose(schemes)
    studies = list(_own(files, quick) if files else _ours(quick))
    for study in studies:
        study.place.check(study.file, chosen)
        for scheme in chosen:
            # A scheme that an experiment cannot take is refused before anything has run.
            study.scenario.with_(scheme.values(study.place, study.lengths[0]))
    return Plan(studies, chosen, quick)


def _ours(quick: bool) -> Iterator[Study]:
    runs = about()["runs"]
    for experiment in about()["experiments"]:
        base = load(HERE / experiment["file"])
        if quick:
            base = base.with_({"duration": f"{runs['quick_seconds']} s"})
        for tcp in about()["tcp"]:
            scenario = base.with_(tcp["set"])
            seeds = runs["quick_seeds" if quick else "seeds"]
            yield _study(
                experiment["id"], (tcp["id"], tcp["title"]), experiment["file"], scenario, seeds, quick
            )


def _own(files: Sequence[str | Path], quick: bool) -> Iterator[Study]:
    """A user's own: TCP, window and number of seeds are the file's."""
    taken: dict[str, int] = {}
    for file in files:
        scenario = load(file)
        name = Path(file).stem
        taken[name] = taken.get(name, 0) + 1
        identity = name if taken[name] == 1 else f"{name}-{taken[name]}"
        seeds = about()["runs"]["quick_seeds"] if quick else len(scenario.seeds)
        yield _study(identity, ("", "TCP as in the file"), str(file), scenario, seeds, quick)


def _study(
    identity: str, tcp: tuple[str, str], file: str, scenario: Scenario, seeds: int, quick: bool
) -> Study:
    place = Place.of(scenario)
    seconds = float(scenario.check().effective["measure"]["to"].removesuffix(" s"))
    cost = about()["runs"]["cost"] * seconds * 0.0012 / place.packet_time
    made = lengths(place, quick)
    return Study(identity, scenario.title, *tcp, file, scenario, place, seeds, made, cost)


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
    """What was compared, and how it came out."""

    plan: Plan
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
        """What `compare --json` prints."""
        return {
            "quick": self.quick,
            "version": self.version,
            "schemes": [{"id": s.id, "title": s.title, "text": s.text} for s in self.plan.schemes],
            "measures": [
                {"id": m.id, "title": m.title, "text": m.text, "ranked": m.higher is not None}
                for m in MEASURES.values()
            ],
            "tally": [
                {"scheme": s, "rankings": n, "alone": alone, "first": first}
                for s, n, alone, first in self.tally()
            ],
            "studies": [_outcome_json(one) for one in self.outcomes],
        }

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
        "winners": {
            name: {
                "best": r.best,
                "alike": r.alike,
                "differences": {
                    s: {
                        "mean": d.difference.mean,
                        "ci95": None if d.difference.ci95 is None else list(d.difference.ci95),
                        "p_holm": r.p_holm[s],
                    }
                    for s, d in r.differences.items()
                },
            }
            for name, r in one.rankings.items()
        },
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


def compare(
    files: Sequence[str | Path] | None = None,
    quick: bool = False,
    schemes: Sequence[str] | None = None,
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
) -> Comparison:
    """Compare `schemes` (all if left out) on our experiments, or on `files`; write the page.

    `quick` runs fewer seeds, settings and, of our own experiments, seconds. `jobs` is the number of threads.
    The page is `<out>/compare/index.html`; beside it are `results.json` and `measures.csv`.

    Raises what `plan` raises, and KeyboardInterrupt when interrupted; `cache` has what is finished.
    """
    planned = plan(files, quick, schemes)
    tell = progress or (lambda finished, runs, what: None)
    outcomes = []
    finished = 0
    for study in planned.studies:
        what = f"{study.title}, {study.tcp_title}"
        before = finished
        outcomes.append(
            _compared(
                planned,
                study,
                jobs,
                None if cache is None else Path(cache),
                lambda done, before=before, what=what: tell(before + done, planned.runs, what),  # type: ignore[misc]
            )
        )
        finished += len(study.lengths) * study.seeds * len(planned.schemes)
        tell(finished, planned.runs, what)
    comparison = Comparison(planned, outcomes)
    from .page import write

    comparison.page = write(comparison, Path(out))
    return comparison


def _compared(
    planned: Plan, study: Study, jobs: int | None, cache: Path | None, progress: Callable[[int], None]
) -> Compared:
    from .. import measures as _measures

    also = [inspect.getsource(_measures), inspect.getsource(_measure)]
    cells = [(scheme, length) for scheme in planned.schemes for length in study.lengths]
    experiments = [
        Experiment(study.scenario.with_(scheme.values(study.place, length)), study.seeds, also)
        for scheme, length in cells
    ]
    measured = measure_all(
        experiments, lambda _, result: _measure.measure(result), jobs=jobs, cache=cache, progress=progress
    )
    points = {(s.id, length): m for (s, length), m in zip(cells, measured, strict=True)}
    digests = {
        (s.id, length): hashlib.sha256(e.scenario.canonical.encode()).hexdigest()
        for (s, length), e in zip(cells, experiments, strict=True)
    }
    return outcome(study, [s.id for s in planned.schemes], points, digests)


def outcome(
    study: Study,
    schemes: Sequence[str],
    points: dict[tuple[str, float], Measures],
    digests: dict[tuple[str, float], str],
) -> Compared:
    """Rank what was measured, by scheme and setting."""
    frontiers = {s: Frontier(study.lengths, [points[s, length] for length in study.lengths]) for s in schemes}
    delays, reaching = common_delays({s: f.reach for s, f in frontiers.items()})
    one = Compared(study, frontiers, digests, np.asarray(delays), reaching, {})
    found = {m.id: one.at_equal_delay(m.id) for m in RANKED}
    found = {name: values for name, values in found.items() if len(values) > 1}
    higher = {m.id: bool(m.higher) for m in RANKED}
    one.rankings.update(rank(found, higher, one.seeds))
    return one
