"""Many experiments, each with its seeds: run on any back end, reduced to what is kept, and not run twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._input import seeds_in_order
from ..own.engine import __version__, engine_digest
from .pieces import Piece, whole
from .pool import Backend, Local, Runnable, Seeds, Task
from .results import Result
from .storage import TABLES

if TYPE_CHECKING:
    from ..metrics.measures import Measures


@dataclass(frozen=True)
class Experiment:
    """The experiments and their seeds."""

    scenario: Runnable
    #: How many (1 … n), or which.
    seeds: Seeds
    #: Whatever else decides its measures: the way of measuring, as source text. JSON takes it.
    also: Sequence[object] = ()

    @property
    def key(self) -> str:
        """Digest of all that decides the measures."""
        seeds = self.seeds if isinstance(self.seeds, int) else list(seeds_in_order(self.seeds))
        parts = [self.scenario.canonical, seeds, __version__, engine_digest(), *self.also]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


class _Coming:
    """The runs of one experiment, until all of them have come."""

    def __init__(self, scenario: Runnable, seeds: tuple[int, ...]) -> None:
        self.scenario, self.seeds = scenario, seeds
        #: Where it stands in what was asked for; more than one place where it was asked for more than once.
        self.places: list[int] = []
        self.missing = set(seeds)
        self._pieces: list[Piece] = []

    def take(self, piece: Piece) -> Result | None:
        """Add runs; the result, once they are all there."""
        self.missing -= {seed for _, seed in piece.runs}
        self._pieces.append(piece)
        if self.missing:
            return None
        tables = whole(self._pieces, TABLES, self.seeds)
        self._pieces.clear()
        return Result(tables, self.scenario.provenance(self.seeds))


def run_all(
    work: Sequence[tuple[Runnable, Seeds]],
    done: Callable[[int, Result], None],
    *,
    backend: Backend | None = None,
    trace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run every experiment with its seeds; `done(index, result)` has each as soon as it is finished.

    The same experiment twice in `work` runs once. `backend` is this machine's threads by default; none of
    them changes a byte. `progress(finished, all)` counts runs.
    """
    asked = [(scenario, seeds_in_order(seeds)) for scenario, seeds in work]
    coming: dict[tuple[str, str, tuple[int, ...]], _Coming] = {}
    for index, (scenario, seeds) in enumerate(asked):
        key = (scenario.canonical, scenario.title, seeds)
        coming.setdefault(key, _Coming(scenario, seeds)).places.append(index)
    each = list(coming.values())
    total = sum(len(seeds) for _, seeds in asked)
    tell = progress or (lambda finished, runs: None)

    def take(piece: Piece) -> None:
        for setting, part in piece.by_setting(lambda setting, seed: seed in each[setting].missing):
            one = each[setting]
            if (result := one.take(part)) is not None:
                for index in one.places:
                    done(index, result)

    backend = backend or Local()
    digest = hashlib.sha256(json.dumps([*coming, trace, __version__, engine_digest()]).encode()).hexdigest()
    tell(0, total)
    backend.begin(digest, take)
    tasks = list(_tasks(each))
    left = sum(len(task.seeds) for task in tasks)
    if tasks:
        # Runs that are asked for more than once are made once, and count as finished with it.
        share = total / sum(len(one.seeds) for one in each)

        def beat(made: int) -> None:
            tell(total - round((left - made) * share), total)

        backend.run(tasks, TABLES, take, beat, trace=trace, whole=True)
    tell(total, total)
    backend.end()


def _tasks(each: Sequence[_Coming]) -> Iterator[Task]:
    for setting, one in enumerate(each):
        if left := tuple(seed for seed in one.seeds if seed in one.missing):
            yield Task(setting, one.scenario, left, one.scenario.expected_packets(seeds=1))


def run_many(
    work: Sequence[tuple[Runnable, Seeds]],
    backend: Backend | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    trace: bool = False,
) -> list[Result]:
    """Run every experiment as `run_all` does; the results, in the order of `work`."""
    found: dict[int, Result] = {}
    run_all(work, found.__setitem__, backend=backend, trace=trace, progress=progress)
    return [found[index] for index in range(len(work))]


def measure_all(
    experiments: Sequence[Experiment],
    measure: Callable[[int, Result], Measures],
    *,
    backend: Backend | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Measures]:
    """Measures of every experiment, in order: from the folder `cache`, or run now and put there.

    `measure(index, result)` reduces a result: of tens of millions of values, a few for each seed are kept.
    `progress` is told how many runs are finished, those from the cache included. After KeyboardInterrupt the
    same call goes on where it was.
    """
    from ..metrics.measures import Measures

    found: dict[int, Measures] = {}
    missing: list[tuple[int, Path | None]] = []
    for index, experiment in enumerate(experiments):
        place = None if cache is None else cache / f"{experiment.key}.npz"
        kept = None if place is None else Measures.read(place)
        if kept is None:
            missing.append((index, place))
        else:
            found[index] = kept
    finished = sum(len(seeds_in_order(experiments[index].seeds)) for index in found)
    tell = progress or (lambda finished: None)

    def done(which: int, result: Result) -> None:
        index, place = missing[which]
        measures = measure(index, result)
        # What could not be measured is not kept: whoever asks again is told why again.
        if place is not None and measures.values:
            _keep(place, measures)
        found[index] = measures

    if missing:
        run_all(
            [(experiments[index].scenario, experiments[index].seeds) for index, _ in missing],
            done,
            backend=backend,
            progress=lambda ran, _: tell(finished + ran),
        )
    # In the order asked for, not of completion: what comes of it is the same however it was run.
    return [found[index] for index in range(len(experiments))]


def _keep(place: Path, measures: Measures) -> None:
    """Write whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            measures.write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
