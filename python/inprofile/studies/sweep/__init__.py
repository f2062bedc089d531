"""Sweeps: an experiment over the values of some of its keys, each setting with some seeds, all of it kept.

`axes` says what is varied and `plan` checks it from end to end. `execution` starts the runs on a back end of
`run`, whose ledger keeps finished ones through any interruption: the same command goes on from there. It also
writes the dataset; `result` makes and reads its files, `figure` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...experiment.scenario import Scenario, Seeds, load
from ...run.ledger import Ledger, check_head
from ...run.pool import Backend, Local
from .axes import DEFAULT_METRICS, Axis, Design, Range, SweepError
from .execution import State, carry_out
from .plan import HEAD, SAYS, SweepPlan, Until, make, until_of
from .result import Sweep, read_sweep

__all__ = [
    "Range",
    "State",
    "Sweep",
    "SweepError",
    "SweepPlan",
    "Until",
    "check_folder_of",
    "make",
    "read_sweep",
    "run_plan",
    "sweep",
]


def sweep(
    experiment: Scenario | str | Path,
    axes: Mapping[str, Sequence[object] | Mapping[str, object] | Range],
    out: str | Path,
    *,
    design: Design = "grid",
    samples: int | None = None,
    seeds: Seeds | None = None,
    until: Mapping[str, str | float] | None = None,
    jobs: int | None = None,
    backend: Backend | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Run an experiment over the values of some of its keys; everything is in the folder `out` afterwards.

    >>> import inprofile, tempfile
    >>> short = inprofile.parse(inprofile.STARTER).with_(duration="5 s", measure={"from": "1 s"}, monitors=[])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     axes = {"links.bottleneck.rate": ["2 Mbit/s", "3 Mbit/s"]}
    ...     found = inprofile.sweep(short, axes, folder, seeds=3)
    ...     [s.metrics["goodput"].estimate.n for s in found]
    [3, 3]

    `axes` has, by key, a list of values as `Scenario.with_` takes them, a dictionary of them by the names
    that tables and legends shall have, or a `Range`. `design` is `grid`,
    `list` (the values of all axes one by one), `lhs` or `sobol` (`samples` points of the box). `seeds` is
    how many, or which; the file's number by default. `until`, by metric half a width of its 95 % interval
    (`0.01`, `"50 kbit/s"`, `"2 %"` of the mean), ends a setting before it has had all of the seeds. `jobs`
    is the number of threads. `backend` makes the runs elsewhere (`inprofile.run.clusters`). None
    of these two changes a byte of what is written. `progress` is told runs finished and runs in all.

    Whatever ends it, Ctrl-C or a kill, what was finished stays in `out`, and the same call goes on from
    there.

    Raises ScenarioError where a setting cannot run, SweepError and SeedsError where what is asked for does
    not fit together, FolderInUse where `out` holds anything else, all before anything has run; OSError where
    the disk refuses.
    """
    base = experiment if isinstance(experiment, Scenario) else load(experiment)
    planned = make(
        base,
        [Axis.of(key, values) for key, values in axes.items()],
        design,
        samples=samples,
        seeds=seeds,
        until=[until_of(f"{metric}={width}") for metric, width in (until or {}).items()],
    )

    def watch(state: State) -> None:
        if progress is not None:
            progress(state.finished, state.runs)

    return run_plan(planned, out, backend or Local(jobs), watch=watch)


def check_folder_of(planned: SweepPlan, out: str | Path) -> None:
    """Raise FolderInUse, ResultError or OSError where this sweep cannot be kept in `out`."""
    check_head(Path(out), HEAD, planned.head(), SAYS)


def run_plan(
    planned: SweepPlan,
    out: str | Path,
    backend: Backend,
    *,
    watch: Callable[[State], None] = lambda state: None,
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> Sweep:
    """Carry out what was planned, in `out`; `watch` is shown how far it is and the figures of `metrics`."""
    place = Path(out)
    check_folder_of(planned, place)
    ledger = Ledger(place, HEAD, planned.head())
    try:
        carry_out(planned, ledger, backend, State(planned, ledger, metrics), watch)
    finally:
        ledger.close()
    return read_sweep(place)
