"""Many experiments, each with its seeds, on all cores; what is finished is kept."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _internal
from .._input import MOST_THREADS, seeds_in_order
from ..own import NotDeterministic
from ..own.engine import __version__, engine_digest
from ..own.registry import spent
from .results import Result, ResultError, read
from .storage import TABLES

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario, Seeds

__all__ = ["run_each", "run_many", "threads"]


def threads(jobs: int | None) -> int:
    """How many threads: `jobs`, or one a core this process may use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= jobs <= MOST_THREADS:
        raise ValueError(f"jobs={jobs}: give a number of threads from 1 to {MOST_THREADS}")
    return jobs


def run_many(
    work: Sequence[tuple[Scenario, Seeds]],
    jobs: int | None = None,
    cache: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    trace: bool = False,
    done: Callable[[int, Result], None] | None = None,
    under_way: Callable[[float], None] | None = None,
) -> list[Result]:
    """Run every experiment with its seeds; results in the order of `work`.

    With `cache`, a folder, what is finished is written there at once under a digest of the experiment,
    its seeds and the simulator, and taken from there the next time: after Ctrl-C (KeyboardInterrupt)
    the same call goes on where it was. The same experiment twice in `work` runs once.
    `progress(finished, all)` counts runs, those from the cache included; `under_way` is told what the others
    are worth meanwhile, by the share of their time that is simulated; `done(index, result)` comes as soon as
    an experiment is finished.
    """
    count = threads(jobs)
    jobs_to_do = [(scenario, seeds_in_order(seeds)) for scenario, seeds in work]
    keys = [_key(scenario, seeds, trace) for scenario, seeds in jobs_to_do]
    places: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        places.setdefault(key, []).append(index)

    results: list[Result | None] = [None] * len(jobs_to_do)
    total = sum(len(seeds) for _, seeds in jobs_to_do)
    finished = 0

    def deliver(key: str, result: Result) -> None:
        for index in places[key]:
            results[index] = result
            if done is not None:
                done(index, result)

    missing: list[str] = []
    for key, indices in places.items():
        kept = None if cache is None else _kept(Path(cache) / key)
        if kept is None:
            missing.append(key)
        else:
            finished += len(kept.seeds) * len(indices)
            deliver(key, kept)
    if progress is not None:
        progress(finished, total)
    if not missing:
        return [result for result in results if result is not None]

    first = {key: jobs_to_do[places[key][0]] for key in missing}
    runs = sum(len(seeds) for _, seeds in first.values())
    # Runs that need not be done because another entry of `work` is the same count as finished with it.
    share = (total - finished) / runs

    def take(index: int, raw: _internal.Results) -> None:
        key = missing[index]
        scenario, seeds = first[key]
        result = Result.from_engine(raw, scenario.provenance(seeds))
        if cache is not None:
            result.write(Path(cache) / key)
        deliver(key, result)

    def tell(ran: int, _: int) -> None:
        if progress is not None:
            progress(finished + round(ran * share), total)

    within = None if under_way is None else lambda worth: under_way(worth * share)
    run_each(list(first.values()), count, take, tell, trace=trace, under_way=within)
    tell(runs, runs)
    return [result for result in results if result is not None]


def run_each(
    work: Sequence[tuple[Scenario, Sequence[int]]],
    jobs: int,
    done: Callable[[int, _internal.Results], None],
    progress: Callable[[int, int], None] | None = None,
    *,
    trace: bool = False,
    under_way: Callable[[float], None] | None = None,
) -> None:
    """Run every experiment with its seeds; `done(index, results)` has each as soon as it is finished.

    `progress(finished, all)` is told of runs, `under_way` what those that have not finished are worth. What
    any of them raises ends the runs, and so does Ctrl-C (KeyboardInterrupt). Where a mechanism is written in
    Python, the first run that has it is made twice: NotDeterministic says that the two differ.
    """

    def tell(finished: int, runs: int, worth: float) -> None:
        if under_way is not None:
            under_way(worth)
        if progress is not None:
            progress(finished, runs)

    own: set[str] = set()
    began = time.process_time()
    for scenario, seeds in work:
        if not own.issuperset(scenario._inner.own):
            own.update(scenario._inner.own)
            _same_twice(scenario, seeds[0])
    try:
        _internal.run([(s._inner, list(seeds)) for s, seeds in work], jobs, trace, done, tell)
    finally:
        spent(own, time.process_time() - began)


def _same_twice(scenario: Scenario, seed: int) -> None:
    """Raise NotDeterministic if two runs of the same seed differ."""
    import pyarrow as pa

    made: list[_internal.Results] = []
    job = (scenario._inner, [seed])
    _internal.run([job, job], 1, False, lambda _, raw: made.append(raw), lambda *_: None)
    for name in TABLES:
        one, other = (repr(pa.table(raw.table(name)).to_pylist()) for raw in made)
        if one != other:
            raise NotDeterministic(
                f"{', '.join(scenario._inner.own)}: seed {seed} gave two results (their {name} differ)."
                " Keep all state in attributes that setup makes, draw from rng alone, and read no clock"
            )


def _key(scenario: Scenario, seeds: tuple[int, ...], trace: bool) -> str:
    """Digest of all that a result depends on; the title only because the result carries it."""
    parts = [scenario.canonical, scenario.title, list(seeds), trace, __version__, engine_digest()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _kept(folder: Path) -> Result | None:
    """A finished result, if it is there and whole."""
    try:
        return read(folder)
    except (FileNotFoundError, ResultError):
        return None
