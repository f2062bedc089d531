"""What plans have in common: runs that are counted, and kept where they are interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from .._input import visible
from ..run.storage import FolderInUse
from .common import INTERRUPTED, TERMINATED, Terminated, terminable

__all__ = ["RUNS", "SHORT", "check_answer_place", "kept_runs"]

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
