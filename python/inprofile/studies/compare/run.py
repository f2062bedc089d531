"""Compare schemes: plan the runs, do them or take them from the cache, rank what came out, write the page."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...experiment.mechanisms import Sender, mechanisms, sender, senders
from ...experiment.scenario import load
from ...metrics.measures import Measures
from ...own.registry import registered
from ...run.experiments import Experiment, measure_all
from ...run.pool import Backend, Local
from . import measure as _measure
from .comparison import Compared, Comparison, ComparisonPlan, Study
from .frontier import Frontier, common_delays, rank
from .measure import RANKED
from .own import own_scheme
from .schemes import HERE, Place, Scheme, about, choose, lengths

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario

#: Where measures are kept, from the working directory.
CACHE = Path("results/cache/compare")

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


def plan(
    files: Sequence[str | Path] | None = None,
    quick: bool = False,
    schemes: Sequence[str] | None = None,
    own: Sequence[str] = (),
    overrides: Sequence[tuple[str, str]] = (),
    tcps: Sequence[str] | None = None,
    seeds: int | None = None,
) -> ComparisonPlan:
    """List what `compare` would run.

    `schemes` are names, and files of schemes (`schemes.read_schemes`). `own` are names of registered classes
    of one's own that take part besides, each as a scheme of its own name. `overrides` of each file are keys
    and values as `--set` takes them. `tcps` are senders by name (`senders.toml`), each an experiment of
    its own, in place of our default ones or of the files' `[tcp]`; `seeds` is how many.

    Raises `UnknownSenderError`, `UnknownSchemeError`, `SchemeFileError`, `TuneError`, `NoContractError` where
    a scheme needs what a file lacks, `ScenarioError` and `OSError` for a file that is none.
    """
    chosen = chosen_of(schemes, own)
    named = None if tcps is None else list({s.id: s for s in map(sender, tcps)}.values())
    studies = list(_own(files, quick, overrides, named) if files else _ours(quick, named))
    if seeds is not None:
        studies = [replace(study, seeds=seeds) for study in studies]
    for study in studies:
        study.place.check(study.file, chosen)
        for scheme in chosen:
            # A scheme that an experiment cannot take is refused before anything has run.
            for length in {study.lengths[0], study.lengths[-1]}:
                study.scenario.with_(scheme.values(study.place, length))
    return ComparisonPlan(studies, chosen, quick)


def _ours(quick: bool, named: Sequence[Sender] | None) -> Iterator[Study]:
    runs = about()["runs"]
    for experiment in about()["experiments"]:
        base = load(HERE / experiment["file"])
        if quick:
            base = base.with_({"duration": f"{runs['quick_seconds']} s"})
        seeds = runs["quick_seeds" if quick else "seeds"]
        identity, file = experiment["id"], experiment["file"]
        for tcp in about()["tcp"] if named is None else ():
            yield _study(identity, (tcp["id"], tcp["title"]), file, base.with_(tcp["set"]), seeds, quick)
        for one in senders() if named is None else named:
            yield _sent(identity, file, base, one, seeds, quick)


def _sent(identity: str, file: str, base: Scenario, one: Sender, seeds: int, quick: bool) -> Study:
    tcp = (one.id, one.title)
    return _study(identity, tcp, file, base.with_(one.changes), seeds, quick, cost=one.cost)


def _own(
    files: Sequence[str | Path],
    quick: bool,
    overrides: Sequence[tuple[str, str]],
    named: Sequence[Sender] | None,
) -> Iterator[Study]:
    """A user's own: TCP (unless named), window and number of seeds are the file's."""
    taken: dict[str, int] = {}
    for file in files:
        scenario = load(file, overrides)
        name = Path(file).stem
        taken[name] = taken.get(name, 0) + 1
        identity = name if taken[name] == 1 else f"{name}-{taken[name]}"
        seeds = about()["runs"]["quick_seeds"] if quick else len(scenario.seeds)
        if named is None:
            yield _study(identity, ("", "TCP as in the file"), str(file), scenario, seeds, quick)
        for one in named or ():
            yield _sent(identity, str(file), scenario, one, seeds, quick)


def _study(
    identity: str,
    tcp: tuple[str, str],
    file: str,
    scenario: Scenario,
    seeds: int,
    quick: bool,
    cost: float = 1.0,
) -> Study:
    place = Place.of(scenario)
    seconds = float(scenario.check().effective["measure"]["to"].removesuffix(" s"))
    cost *= about()["runs"]["cost"] * seconds * 0.0012 / place.packet_time
    made = lengths(place, quick)
    return Study(identity, scenario.title, *tcp, file, scenario, place, seeds, made, cost)


def chosen_of(schemes: Sequence[str] | None, own: Sequence[str]) -> list[Scheme]:
    """Schemes by name and by file, and mechanisms of one's own that none of them has. Raises TuneError."""
    classes = registered()
    mine = {m.name: m for m in mechanisms() if m.name in own}
    named = choose(None if schemes is None else [s for s in schemes if s not in mine])
    used = {str(part.get("aqm", part.get("kind"))) for s in named for part in (s.queue, s.flows or {})}
    taken = used | {s.id for s in named}
    # A class that a file of schemes has put in its place needs none of its own.
    return named + [own_scheme(m, classes[m.name]) for m in mine.values() if m.name not in taken]


def compare(
    files: Sequence[str | Path] | None = None,
    quick: bool = False,
    schemes: Sequence[str] | None = None,
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
    own: Sequence[str] = (),
    overrides: Sequence[tuple[str, str]] = (),
    *,
    tcps: Sequence[str] | None = None,
    seeds: int | None = None,
    backend: Backend | None = None,
) -> Comparison:
    """Compare `schemes` (default: all) on our experiments, or on `files`; write the page.

    `quick` runs fewer seeds, settings and, of our own experiments, seconds. `jobs` is the number of threads;
    `backend` makes the runs elsewhere (`run.clusters`).
    `own` are mechanisms of one's own that take part; `overrides` (of `files`), `tcps` and `seeds` are as
    `plan` has them. The page is `<out>/compare/index.html`; beside it are `results.json`, `measures.csv`, and
    in `settings` each experiment with each scheme at its best setting.

    Raises what `plan` raises, and KeyboardInterrupt when interrupted; `cache` has what is finished.
    """
    planned = plan(files, quick, schemes, own, overrides, tcps, seeds)
    tell = progress or (lambda finished, runs, what: None)
    outcomes = []
    finished = 0
    where = backend or Local(jobs)
    for study in planned.studies:
        what = f"{study.title}, {study.tcp_title}"
        before = finished
        outcomes.append(
            _compared(
                planned,
                study,
                where,
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
    planned: ComparisonPlan,
    study: Study,
    backend: Backend,
    cache: Path | None,
    progress: Callable[[int], None],
) -> Compared:
    from ...metrics import measures as _measures

    also = [inspect.getsource(_measures), inspect.getsource(_measure)]
    cells = [(scheme, length) for scheme in planned.schemes for length in study.lengths]
    experiments = [
        Experiment(study.scenario.with_(scheme.values(study.place, length)), study.seeds, also)
        for scheme, length in cells
    ]
    measured = measure_all(
        experiments,
        lambda _, result: _measure.measure(result),
        backend=backend,
        cache=cache,
        progress=progress,
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
    left = one.at_equal_delay("best_effort")
    if len(left) > 1:
        price = rank({"best_effort": left}, {"best_effort": True}, one.seeds)["best_effort"]
        one = replace(one, price=price)
    return one
