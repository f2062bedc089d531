"""How commands carry out many runs: where (`--backend`), with what progress shown, kept where interrupted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from .._input import visible
from ..run.storage import FolderInUse
from .common import INTERRUPTED, TERMINATED, Refused, Terminated, full_disk, terminable

if TYPE_CHECKING:
    from rich.console import Console

    from ..run.pool import Backend


Where = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="threads|ADDRESS|slurm",
        help="Where runs are made: on this machine's threads, on the Dask cluster with this scheduler"
        " (tcp://host:8786), or as SLURM array jobs. Does not change any result.",
    ),
]
SlurmSet = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm-set",
        metavar="KEY=VALUE",
        help="What submitit takes: slurm_partition=short, timeout_min=60; cluster=local tries it here."
        " Repeatable.",
        show_default=False,
    ),
]


@contextmanager
def made_by(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Iterator[Backend]:
    """The back end that `--backend` names; SLURM's jobs leave their runs beside `place`.

    What it refuses, or finds wrong elsewhere, is refused here.
    """
    from ..run.pool import BackendError

    try:
        with closing(_backend(where, jobs, slurm_set, place)) as backend:
            yield backend
    except BackendError as error:
        raise Refused(str(error)) from None


def _backend(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Backend:
    slurm = where == "slurm" or (where == "threads" and bool(slurm_set))
    if where == "threads" and not slurm:
        from ..run.pool import Local

        return Local(jobs)
    if slurm_set and not slurm:
        raise Refused(f"--slurm-set is for --backend slurm, and --backend is {where}: choose one")
    if jobs is not None:
        raise Refused("--jobs is for this machine's threads: elsewhere the cluster says how many there are")
    if not slurm and ":" not in where:
        raise Refused(
            f'--backend "{where}" is no place: write threads, slurm, or the address of a Dask scheduler,'
            " such as tcp://host:8786"
        )
    from ..run import clusters

    if not slurm:
        return clusters.Dask(where)
    settings: dict[str, Any] = {}
    for text in slurm_set or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise Refused(f"--slurm-set {text}: write KEY=VALUE, such as --slurm-set slurm_partition=short")
        settings[key.strip()] = int(value) if value.strip().isdigit() else value.strip()
    return clusters.Slurm(place, **settings)


EVERY = 30.0
"""Seconds between two lines, and before the first: what is over sooner leaves a log as it is."""


class Show(Protocol):
    """Shows runs finished, those under way by the share of them that is done; runs in all; what is run."""

    def __call__(self, done: float, runs: int, what: str) -> None:
        """Show it."""


class Told:
    """A command's progress: `finished, runs, what` as runs finish, and meanwhile how much is under way."""

    def __init__(self, what: str, runs: int, show: Show) -> None:
        self.finished, self.runs = 0, runs
        self._what, self._under_way, self._most, self._show = what, 0.0, 0.0, show

    def __call__(self, finished: int, runs: int, what: str | None = None) -> None:
        """So many runs have finished, of so many; of another number, something else is run from here on."""
        if runs != self.runs:
            self._most = 0.0
        self.finished, self.runs = finished, runs
        self._what = self._what if what is None else what
        self._tell()

    def under_way(self, share: float) -> None:
        """The share of unfinished runs that is done, by the share of their time that is simulated."""
        self._under_way = share
        self._tell()

    def _tell(self) -> None:
        # A run that has just ended may not yet be counted.
        self._most = max(self._most, min(self.finished + self._under_way, float(self.runs)))
        self._show(self._most, self.runs, visible(self._what, lines=False))


def lines(unit: str = "runs", clock: Callable[[], float] = time.monotonic) -> Show:
    """A line on standard error every `EVERY` seconds: for logs."""
    last = began = clock()

    def show(done: float, runs: int, what: str) -> None:
        nonlocal last
        now = clock()
        if now - last < EVERY or done >= runs:
            return
        last = now
        of = f"{int(done):,} of {runs:,} {unit}, " if runs > 1 else ""
        head = f"{what}: " if what else ""
        sys.stderr.write(f"{head}{of}{100 * done / max(1, runs):.0f} % after {now - began:.0f} s\n")
        sys.stderr.flush()

    return show


@contextmanager
def progress(what: str, unit: str = "runs") -> Iterator[Told]:
    """Show how far the runs of one experiment are."""
    from rich.console import Console

    with _shown(Console(stderr=True), unit, words_first=True) as show:
        yield Told(what, 0, show)


@contextmanager
def _shown(console: Console, unit: str, words_first: bool) -> Iterator[Show]:
    if not console.is_terminal:
        yield lines(unit)
        return
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    words = TextColumn("{task.description}")
    figures = BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    columns = (words, *figures) if words_first else (*figures, words)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: float, runs: int, what: str) -> None:
            bar.update(task, completed=done, total=runs, description=escape(what))

        yield show


@contextmanager
def resumable(cache: Path, runs: int) -> Iterator[Told]:
    """Show how far many runs are that `cache` keeps; told runs finished, runs in all, what is being run.

    What is interrupted says where `cache` has what is finished, and leaves with code 130 (or 143); so does
    a full disk, with code 2.
    """
    from rich.console import Console

    told = Told("", runs, lambda *_: None)
    try:
        with (
            terminable(),
            full_disk(cache),
            _shown(Console(stderr=True), "runs", words_first=False) as show,
        ):
            told = Told("", runs, show)
            yield told
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted after {told.finished} of {told.runs} runs. What is finished is kept in {cache}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None


RUNS = "runs"
"""The folder of runs beside an answer."""

SHORT = 1
"""The exit code where nothing meets the goal."""


def check_answer_place(out: Path, files: Sequence[str]) -> None:
    """Refuse a folder that holds anything but an answer's files and its runs."""
    names = (p.name for p in out.iterdir()) if out.is_dir() else ()
    if others := sorted(n for n in names if n not in (RUNS, *files) and not n.startswith(".")):
        raise FolderInUse(
            f"{out} holds other things ({', '.join(others[:3])}):"
            " choose a new or an empty folder for the answer"
        )


@contextmanager
def kept_runs(place: Path, expected: int | None = None) -> Iterator[Callable[[int], None]]:
    """Count runs on a terminal, of about so many.

    What is interrupted says what is kept, and leaves with code 130 (or 143).
    """
    made = [0]

    def count(runs: int) -> None:
        made[0] = runs
        if sys.stderr.isatty():
            of = "" if expected is None else f" of about {expected:,}"
            sys.stderr.write(f"\r{runs:,}{of} runs\r")

    try:
        with terminable():
            yield count
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted after {made[0]:,} runs. They are kept in {visible(str(place))}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None
