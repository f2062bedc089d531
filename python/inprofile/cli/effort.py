"""The expected cost of a command: shown with `--plan`, and asked about where it is much."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Protocol

import typer

from .common import Refused, emit, say

__all__ = ["ASK_FROM", "Work", "affordable", "effort", "long", "packets_text", "print_plan"]

ASK_FROM = 1_000_000_000
"""Data packets above which a command asks for confirmation: minutes to hours of computing."""
A_PACKET = 0.66e-6
"""Seconds of one core for a data packet, as compare/schemes.toml has them."""
ASK_TRACED_FROM = 20_000_000
"""The same where every verdict is kept in memory."""


def packets_text(packets: float) -> str:
    """A number of packets that is only an estimate.

    >>> packets_text(21_454.3), packets_text(4.3e12)
    ('about 21,000 packets', 'about 4.3e+12 packets')
    """
    shown = f"{float(f'{packets:.2g}'):,.0f}" if packets < 1e12 else f"{packets:.2g}"
    return f"about {shown} packets"


def affordable(
    packets: float,
    yes: bool,
    runs: int,
    *,
    traced: bool = False,
    jobs: int | None = None,
    less: str = "a shorter duration, lower rates, larger packets or fewer seeds",
) -> None:
    """Ask before very many packets are sent, on a terminal; elsewhere `--yes` has to be given.

    `less` is what would make them fewer.
    """
    most = ASK_TRACED_FROM if traced else ASK_FROM
    if yes or packets <= most:
        return
    what = f"{packets_text(packets)} are expected in {runs:,} run{'s' * (runs != 1)}, {long(packets, jobs)}"
    kept = ", every verdict on them kept in memory" if traced else ""
    if sys.stdin.isatty() and sys.stderr.isatty():
        if typer.confirm(f"{what}{kept}. Run anyway?", err=True):
            return
        raise Refused("Nothing was run.")
    raise Refused(f"{what}{kept}, and more than {most:,} are run only with --yes: write --yes, {less}")


def long(packets: float, jobs: int | None = None) -> str:
    """How long they take.

    >>> long(1.9e9, 2)
    'about 10 min on 2 cores'
    """
    from ..run.pool import threads
    from ..studies.reproduce import minutes

    cores = threads(jobs)
    return f"about {minutes(packets * A_PACKET / cores)} on {cores} core{'s' * (cores != 1)}"


def effort(cpu_seconds: float, jobs: int | None, cache: Path) -> str:
    """How long runs take on this machine, and which of them are not run again."""
    from ..run.pool import threads
    from ..studies.reproduce import minutes

    cores = threads(jobs)
    return (
        f"about {minutes(cpu_seconds / cores)} on {cores} core{'s' * (cores != 1)}."
        f" Runs already in {cache} are not repeated."
    )


class Work(Protocol):
    """Runs that are planned."""

    @property
    def runs(self) -> int:
        """How many."""

    @property
    def packets(self) -> float:
        """How many data packets are expected."""

    @property
    def cpu_seconds(self) -> float:
        """How long they take on one core."""

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""


def print_plan(plan: Work, what: str, jobs: int | None, cache: Path, as_json: bool) -> None:
    """Print what would be run, and how long it takes."""
    if as_json:
        emit(plan.to_json())
    else:
        runs = f"{plan.runs} runs, {packets_text(plan.packets)}"
        say(f"{what}: {runs}, {effort(plan.cpu_seconds, jobs, cache)}")
