"""The seeds of one experiment, kept while they are run: what was interrupted goes on where it was.

Until the result is written whole, its finished runs are in a folder beside its place, `<out>.unfinished`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import seeds_in_order
from ..own.engine import __version__, engine_digest
from .ledger import Ledger, check_head
from .pieces import whole
from .pool import Local, Runnable, Seeds, Task
from .storage import TABLES, check_place

if TYPE_CHECKING:
    from .results import Result

HEAD = "unfinished.json"
SAYS = {
    "format": "another format",
    "version": "another version of Inprofile",
    "engine": "another build of the simulator",
    "experiment": "another experiment",
    "trace": "another --trace",
}


class InterruptedRun(KeyboardInterrupt):
    """Ctrl-C or SIGTERM after some of the runs, which are kept."""

    def __init__(self, folder: Path, finished: int, runs: int) -> None:
        """So many of the runs, in this folder."""
        super().__init__(
            f"Interrupted after {finished:,} of {runs:,} runs. They are kept in {folder}:"
            " the same command goes on from there."
        )


def run_kept(
    scenario: Runnable,
    seeds: Seeds | None,
    out: str | Path,
    *,
    jobs: int | None = None,
    trace: bool = False,
    progress: Callable[[int, int], None] | None = None,
    under_way: Callable[[float], None] | None = None,
    threads_per_run: int = 1,
) -> Result:
    """Run an experiment as `Scenario.run` does and write its result into `out`; keep what has finished.

    Runs that an interrupted call of the same experiment has kept are not made again, whichever seeds it was
    for. Raises InterruptedRun once any run has finished, FolderInUse where `out`, or what is kept beside it,
    is of something else, and OSError where the disk refuses.
    """
    from .results import Result

    which = seeds_in_order(len(scenario.seeds) if seeds is None else seeds)
    out = check_place(out)
    place = out.with_name(f"{out.name}.unfinished")
    head: dict[str, Any] = {
        "format": 1,
        "version": __version__,
        "engine": engine_digest(),
        "title": scenario.title,
        "experiment": scenario.canonical,
        "trace": trace,
    }
    check_head(place, HEAD, head, SAYS)
    ledger = Ledger(place, HEAD, head, now=False)
    each = scenario.expected_packets(seeds=1)
    wanted = {(0, seed) for seed in which}

    def beat(_: int = 0) -> None:
        ledger.beat()
        if progress is not None:
            progress(len(wanted & ledger.done), len(which))

    try:
        beat()
        if left := tuple(seed for seed in which if (0, seed) not in ledger.done):
            backend = Local(jobs, under_way, threads_per_run)
            backend.run([Task(0, scenario, left, each)], TABLES, ledger.keep, beat, trace=trace)
        tables = whole(ledger.take_all(), TABLES, which)
        result = Result(tables, scenario.provenance(which))
        result.write(out)
        ledger.remove()
    except BaseException as error:
        with contextlib.suppress(OSError):
            ledger.flush()
        finished = len(wanted & ledger.done)
        if isinstance(error, KeyboardInterrupt) and finished:
            raise InterruptedRun(place, finished, len(which)) from error
        raise
    finally:
        ledger.close()
    return result
