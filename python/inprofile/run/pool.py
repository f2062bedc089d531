"""Where runs are made: what every back end does, and this machine's threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from .. import _internal
from .._input import MOST_THREADS
from ..own import NotDeterministic
from ..own.registry import spent
from .pieces import Gathered, Piece
from .storage import TABLES

if TYPE_CHECKING:
    from .results import Provenance


Seeds = int | Iterable[int]
"""How many seeds (`20` is 1…20), or which ones."""


class Runnable(Protocol):
    """An experiment that has been checked and can run."""

    _inner: _internal.Scenario
    _overrides: tuple[tuple[str, str], ...]

    @property
    def _text(self) -> str: ...

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def file(self) -> str:
        """The file it came from, as messages call it."""

    @property
    def canonical(self) -> str:
        """All that decides its runs."""

    @property
    def own(self) -> list[str]:
        """The mechanisms among its own that are written in Python."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds that it asks for."""

    def place_of(self, *keys: str) -> str:
        """Where the first of these keys that is written stands."""

    def expected_packets(self, seeds: Seeds | None = None) -> float:
        """About how many data packets its runs send."""

    def provenance(self, seeds: tuple[int, ...]) -> Provenance:
        """Where results of its runs with these seeds come from."""


#: Data packets of runs that one thread makes in one go: some hundredths of a second.
_CHUNK_PACKETS = 20_000
#: Finished runs are handed over after so many, or so many seconds.
_TOGETHER, _BEAT = 256, 0.1


class BackendError(ValueError):
    """A back end that is not there, or cannot be used as it is."""


@dataclass(frozen=True)
class Task:
    """Runs of one experiment."""

    setting: int
    """The experiment's number among those that are run together."""
    scenario: Runnable
    seeds: tuple[int, ...]
    packets: float
    """How many data packets one of the runs is expected to send."""


Tasks = Sequence[Task]
Names = Sequence[str]
Done = Callable[[Piece], None]
Beat = Callable[[int], None]


class Backend(Protocol):
    """Where runs are made."""

    together: int
    """How many runs it is given at a time, about."""

    def begin(self, work: str, done: Done) -> None:
        """Get ready for the work of this digest; `done` takes what an interrupted one has left elsewhere.

        Nothing has to be made ready, is left or is held unless a back end says so.
        """
        return

    def run(
        self, tasks: Tasks, tables: Names, done: Done, beat: Beat, *, trace: bool = False, whole: bool = False
    ) -> None:
        """Make all of the runs, and have these tables of them.

        `done` takes the runs as they finish; with `whole` an experiment's may come together, which is cheaper
        where nothing is done with some of them. `beat` is told a few times a second
        how many are made. What either raises ends it, and so does KeyboardInterrupt.
        """

    def end(self) -> None:
        """Clear away what is left of the work: whoever asked for it has all of it."""
        return

    def close(self) -> None:
        """Let go of other machines, however it ended."""
        return


class Local(Backend):
    """This process, on some threads."""

    together = 1024

    def __init__(
        self,
        jobs: int | None = None,
        under_way: Callable[[float], None] | None = None,
        threads_per_run: int = 1,
    ) -> None:
        """On `jobs` threads, one a core by default, of which each run has up to `threads_per_run`.

        `under_way` is told what the runs are worth that have not finished, by the time that is simulated.
        """
        self._threads = threads(jobs)
        self._under_way = under_way
        self._per_run = threads_per_run

    def run(
        self, tasks: Tasks, tables: Names, done: Done, beat: Beat, *, trace: bool = False, whole: bool = False
    ) -> None:
        """See `Backend`."""
        runs = sum(len(task.seeds) for task in tasks)
        chunks = list(tasks) if whole else chunked(tasks, _CHUNK_PACKETS, -(-runs // (4 * self._threads)))
        gathered = Gathered(tables)

        def hand_over() -> None:
            if gathered:
                done(gathered.piece())

        def take(index: int, raw: _internal.Results) -> None:
            gathered.add(chunks[index].setting, chunks[index].seeds, raw)
            if whole or len(gathered) >= _TOGETHER:
                hand_over()

        def tell(finished: int, runs: int) -> None:
            if time.monotonic() - beaten[0] >= _BEAT or finished == runs:
                beaten[0] = time.monotonic()
                hand_over()
                beat(finished)

        beaten = [time.monotonic()]
        try:
            work = [(task.scenario, task.seeds) for task in chunks]
            run_each(
                work,
                self._threads,
                take,
                tell,
                trace=trace,
                under_way=self._under_way,
                threads_per_run=self._per_run,
            )
        finally:
            hand_over()


def in_parts(scenario: Runnable, threads: int, seed: int = 1, *, trace: bool = False) -> str:
    """A sentence on the parts in which a run is simulated on so many threads, or why it is in one piece."""
    parts, lookahead, largest, speed_up, whole = scenario._inner.in_parts(seed, threads, trace)
    if whole is not None:
        return f"Each run in one piece: {whole}."
    return (
        f"Each run in {parts} parts: lookahead {1e3 * lookahead:.3g} ms, {100 * largest:.0f} % of the work in"
        f" the largest, expected to be {speed_up:.1f} times as fast on {parts} cores as in one piece."
    )


def chunked(tasks: Sequence[Task], packets: float, most: int) -> list[Task]:
    """The same runs in tasks of about so many data packets, and at most so many runs, each."""
    made = []
    for task in tasks:
        size = max(1, min(int(packets / max(1.0, task.packets)), most))
        made += [replace(task, seeds=task.seeds[i : i + size]) for i in range(0, len(task.seeds), size)]
    return made


def threads(jobs: int | None) -> int:
    """How many threads: `jobs`, or one a core this process may use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 <= jobs <= MOST_THREADS:
        raise ValueError(f"jobs={jobs}: give a number of threads from 1 to {MOST_THREADS}")
    return jobs


def shared_out(jobs: int | None, threads_per_run: int) -> tuple[int, int]:
    """How many runs at a time, and on how many threads each: `jobs` threads at most in all.

    >>> shared_out(5, 2), shared_out(2, 8), shared_out(3, 1)
    ((2, 2), (1, 2), (3, 1))
    """
    per_run = min(threads_per_run, threads(jobs))
    return threads(jobs) // per_run, per_run


def run_each(
    work: Sequence[tuple[Runnable, Sequence[int]]],
    jobs: int,
    done: Callable[[int, _internal.Results], None],
    progress: Callable[[int, int], None] | None = None,
    *,
    trace: bool = False,
    under_way: Callable[[float], None] | None = None,
    threads_per_run: int = 1,
) -> None:
    """Run every experiment with its seeds; `done(index, results)` has each as soon as it is finished.

    Each run has up to `threads_per_run` of the `jobs` threads. `progress(finished, all)` is told of runs,
    `under_way` what those that have not finished are worth. What any of them raises ends the runs, and so
    does Ctrl-C (KeyboardInterrupt). Where a mechanism is written in Python, the first run that has it is made
    twice: NotDeterministic says that the two differ.
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
        chosen = [(s._inner, list(seeds)) for s, seeds in work]
        at_once, per_run = shared_out(jobs, threads_per_run)
        _internal.run(chosen, at_once, trace, done, tell, per_run)
    finally:
        spent(own, time.process_time() - began)


def _same_twice(scenario: Runnable, seed: int) -> None:
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
