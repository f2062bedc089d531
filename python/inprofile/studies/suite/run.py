"""Carry a suite out: make the runs that are not kept, and write the report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...metrics import measures as _measures
from ...metrics.measures import Measures
from ...run.experiments import Experiment, measure_all
from ...run.pool import Backend, Local
from . import measure as _measure
from .outcome import Suite
from .page import earlier, write
from .scenarios import Definition
from .work import Case, plan

if TYPE_CHECKING:
    from ...run.results import Result

#: Where measures are kept, from the working directory.
CACHE = Path("results/cache/suite")

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


def suite(
    name: str = "rfc7928",
    *,
    aqms: Sequence[str] | None = None,
    scenarios: Sequence[str] | None = None,
    tcp: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    files: Path | None = None,
    own: Sequence[str] = (),
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
    backend: Backend | None = None,
) -> Suite:
    """Run every scenario of a suite for every contestant; write the report to `<out>/<name>`.

    `aqms` are contestants by name (default: all; drop-tail is always there), `scenarios` names or sections,
    `tcp` what standard senders have, by name (the suite's, or `experiment.mechanisms`), `files` a folder of
    experiment files as `write_files` writes them. `own` are registered classes that take part besides. `jobs`
    is the number of threads, `backend` makes the runs elsewhere (`run.clusters`); neither changes anything of
    the report.

    Raises what `plan` raises, FolderInUse where the report would be written over files of something else, and
    KeyboardInterrupt when interrupted; `cache` has what is finished, and an earlier report is whole.
    """
    made = plan(name, aqms=aqms, scenarios=scenarios, tcp=tcp, quick=quick, seeds=seeds, files=files, own=own)
    earlier(Path(out), name)
    where = backend or Local(jobs)
    tell = progress or (lambda finished, runs, what: None)
    also = [inspect.getsource(_measures), inspect.getsource(_measure)]
    found: dict[Case, Measures] = {}
    finished = 0
    for definition in made.definitions:
        cells = [cell for cell in made.work if cell.scenario == definition.id]
        before = finished

        def told(done: int, before: int = before, what: str = definition.id) -> None:
            tell(before + done, made.runs, what)

        ways = [*also, list(definition.measures), [repr(p) for p in definition.phases]]
        by_group = any(m.startswith("delay_") and ":" in m for m in definition.measures)

        def reduced(_: int, result: Result, d: Definition = definition, more: bool = by_group) -> Measures:
            kept = _measure.measure(result, d)
            return Measures(kept.seeds, {**kept.values, **_measure.waits(result)}, {}) if more else kept

        measured = measure_all(
            [Experiment(made.work[cell], made.seeds, ways) for cell in cells],
            reduced,
            backend=where,
            cache=None if cache is None else Path(cache),
            progress=told,
        )
        found.update(zip(cells, measured, strict=True))
        finished += len(cells) * made.seeds
        tell(finished, made.runs, definition.id)
    done = Suite(made, found)
    tell(made.runs, made.runs, "the report")
    done.page = write(done, Path(out))
    return done
