"""The expected time and memory of a command: shown with `--plan`; asked about or refused where it is much."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from ..run.tables import physical
from .common import Refused, emit, say

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario
    from ..run.pace import Timed


MANY = 100_000
"""Flows from which on it is said what they take: a second or so to build."""
A_FLOW = 10e-6
"""Seconds of one core to build a flow."""


def gigabytes(bytes_: float) -> str:
    """In the unit of memory.

    >>> gigabytes(1_834_000_000), gigabytes(23_400_000_000)
    ('1.8 GB', '23 GB')
    """
    return f"{bytes_ / 1e9:.2g} GB"


def _less(scenario: Scenario, seeds: Sequence[int], there: float, at_once: int, per_run: int) -> str:
    """The remedy that makes it fit: fewer at a time or in fewer parts, else fewer seeds, else fewer flows."""
    for runs in range(at_once - 1, 0, -1):
        if scenario.expected_memory(seeds, runs * per_run, per_run) <= there:
            return f"--jobs {runs * per_run}"
    for jobs in range(per_run - 1, 0, -1):
        if scenario.expected_memory(seeds, jobs, per_run) <= there:
            return f"--jobs {jobs}"
    for runs in range(len(seeds) - 1, 0, -1):
        if scenario.expected_memory(seeds[:runs], 1) <= there:
            return f"--jobs 1 --seeds {runs}"
    fewer = int(scenario.flows * there / scenario.expected_memory(seeds[:1], 1))
    return f"a count of at most {fewer:,} in all, and --jobs 1 --seeds 1"


def room_for(scenario: Scenario, seeds: Sequence[int], jobs: int | None, threads_per_run: int = 1) -> None:
    """Say what very many flows take; refuse what is more than memory holds."""
    flows = scenario.flows
    if flows < MANY:
        return
    from ..run.pool import shared_out

    needed, there = scenario.expected_memory(seeds, jobs, threads_per_run), physical()
    at_once, per_run = shared_out(jobs, threads_per_run)
    runs, at_once = len(seeds), min(len(seeds), at_once)
    parts = f" in up to {per_run} parts" * (per_run > 1)
    what = (
        f"{flows:,} flows in {runs:,} run{'s' * (runs != 1)}, {at_once} at a time{parts}:"
        f" at least {gigabytes(needed)} of memory, of {gigabytes(there)}"
    )
    if needed > there:
        raise Refused(f"{what}: write {_less(scenario, seeds, there, at_once, per_run)}")
    print(f"{what}. Building takes about {flows * A_FLOW:.0f} s a run.", file=sys.stderr, flush=True)


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
