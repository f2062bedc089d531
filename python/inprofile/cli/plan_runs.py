"""What plans have in common: runs that are counted, and kept where they are interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from .._input import visible
from .common import INTERRUPTED, TERMINATED, Terminated, terminable

__all__ = ["SHORT", "kept_runs"]

SHORT = 1
"""The exit code where nothing meets the goal."""


@contextmanager
def kept_runs(place: Path) -> Iterator[Callable[[int], None]]:
    """Count runs on a terminal; what is interrupted says what is kept, and leaves with code 130 (or 143)."""
    made = [0]

    def count(runs: int) -> None:
        made[0] = runs
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{runs:,} runs\r")

    try:
        with terminable():
            yield count
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted after {made[0]:,} runs. They are kept in {visible(str(place))}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None
