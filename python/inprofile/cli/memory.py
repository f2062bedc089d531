"""Whether an experiment's flows fit into this machine's memory: said before they are built, else refused."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..run.memory import physical
from .common import Refused

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario

__all__ = ["MANY", "gigabytes", "room_for"]

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
