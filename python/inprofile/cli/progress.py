"""How far runs are, on standard error: a bar while a terminal looks on, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from .._input import visible
from .common import INTERRUPTED, TERMINATED, Terminated, full_disk, terminable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["EVERY", "Told", "lines", "progress", "resumable"]

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
