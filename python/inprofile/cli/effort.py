"""The expected cost of a command: shown with `--plan`, and asked about where it is much."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from .common import Refused, emit, say

if TYPE_CHECKING:
    from ..run.pace import Timed

__all__ = [
    "ASK_FROM",
    "TRACED",
    "Work",
    "affordable",
    "announce",
    "effort",
    "long",
    "packets_text",
    "print_plan",
]

ASK_FROM = 1_000_000_000
"""Data packets above which a command asks for confirmation: minutes to hours of computing."""
SAY_FROM = 5.0
"""Seconds from which on a command says before how long it takes."""
A_SLOW_PACKET = 20e-6
"""Seconds of one core that hardly any packet takes: what is short even so is not timed."""
TRACED = 3.0
"""A run that keeps every verdict takes as long as so many that do not: 2 to 4.7 measured."""
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
    from ..run.pace import A_PACKET
    from ..run.pool import threads
    from ..studies.reproduce import minutes

    cores = threads(jobs)
    return f"about {minutes(packets * A_PACKET / cores)} on {cores} core{'s' * (cores != 1)}"


def announce(
    work: Sequence[tuple[Timed, float]],
    jobs: int | None,
    *,
    told: float | None = None,
    alone: float = 0.0,
    kept: Path | None = None,
) -> None:
    """Say on standard error how long so many runs of each experiment take, where that is long.

    Some of the experiments are begun and timed. `told` is how many seconds of one core all of it takes by
    what its files say, where `work` are only examples with the seconds of each, and `alone` those besides in
    which other cores have nothing to do; `kept` is where finished runs are.
    """
    from ..run.pace import corrected, seconds, wall
    from ..run.pool import threads
    from ..studies.reproduce import minutes

    cores = threads(jobs)
    if told is None:
        runs = sum(n for _, n in work)
        if sum(s.expected_packets(seeds=1) * n for s, n in work) * A_SLOW_PACKET / cores < SAY_FROM:
            return
        takes = wall(seconds(work, cores), runs, jobs)
    else:
        takes = (told / cores + alone) * corrected(work, cores)
    if takes >= SAY_FROM:
        less = f", less what is kept in {kept}" if kept is not None and kept.exists() else ""
        at_once = f"{cores} core{'s' * (cores != 1)}"
        print(f"It takes about {minutes(takes)} on {at_once}{less}.", file=sys.stderr, flush=True)


def effort(cpu_seconds: float, jobs: int | None, cache: Path, alone: float = 0.0) -> str:
    """How long runs take on this machine, and what one core does `alone`; which of them are not run again."""
    from ..run.pool import threads
    from ..studies.reproduce import minutes

    cores = threads(jobs)
    return (
        f"about {minutes(cpu_seconds / cores + alone)} on {cores} core{'s' * (cores != 1)}."
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
