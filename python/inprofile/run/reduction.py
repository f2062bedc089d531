"""Runs reduced to their measures: of tens of millions of values, a few for each seed are kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..metrics.measures import Measures
from ..own.engine import __version__

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario, Seeds
    from .results import Result

__all__ = ["Experiment", "measure_all"]


@dataclass(frozen=True)
class Experiment:
    """What is run with which seeds."""

    scenario: Scenario
    #: How many (1 … n), or which.
    seeds: Seeds
    #: Whatever else decides its measures: the way of measuring, as source text. JSON takes it.
    also: Sequence[object] = ()

    @property
    def key(self) -> str:
        """Digest of all that decides the measures."""
        from .._input import seeds_in_order
        from ..own.engine import engine_digest

        seeds = self.seeds if isinstance(self.seeds, int) else list(seeds_in_order(self.seeds))
        parts = [self.scenario.canonical, seeds, __version__, engine_digest(), *self.also]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def measure_all(
    experiments: Sequence[Experiment],
    measure: Callable[[int, Result], Measures],
    *,
    jobs: int | None = None,
    cache: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Measures]:
    """Measures of every experiment, in order: from the folder `cache`, or run now and put there.

    `measure(index, result)` reduces a result; `progress` is told how many runs are finished, those from the
    cache included. After KeyboardInterrupt the same call goes on where it was.
    """
    from .._input import seeds_in_order
    from .pool import run_many

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
        run_many(
            [(experiments[index].scenario, experiments[index].seeds) for index, _ in missing],
            jobs=jobs,
            progress=lambda ran, _: tell(finished + ran),
            done=done,
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
