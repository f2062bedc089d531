"""How long experiments take here: each begun, for a moment, and timed.

What a packet costs depends on the machine and its build, on the flows' TCP, the queue discipline and what is
measured. A run's first moment has all of that, so its time per expected packet tells the whole run's; what
the expectation is wrong by cancels. As many are begun at once as will run at once: cores that share a clock,
a cache or a memory are slower together than one is alone.
"""

from __future__ import annotations

import bisect
import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Protocol, TypeVar

from .. import _internal
from .pool import threads

T = TypeVar("T")

A_PACKET = 0.66e-6
"""Seconds of one core for a data packet, where nothing can be begun: a middle of compare's schemes."""
MOST = 6
"""Experiments that are begun, of however many there are."""
_BEGUN = 20_000
"""Expected packets of the shorter moment; the longer has four times as many, or the whole run."""
_ENOUGH = 0.03
"""Seconds: a moment of less is followed by a longer one."""

_MANY = 10_000
"""Flows: an experiment of more is not begun, as a second one takes as much memory as it does."""
#: Decimals of a time, which is a whole number of picoseconds.
_DIGITS = {"s": 9, "ms": 9, "us": 6, "µs": 6, "ns": 3, "ps": 0}
_TIME = re.compile(r"([0-9][0-9.e+-]*) (s|ms|us|µs|ns|ps)\b")


class Timed(Protocol):
    """An experiment that can be cut short."""

    def expected_packets(self, seeds: Any = None) -> float:
        """How many data packets are to be expected."""

    def check(self) -> Any:
        """Its effective values."""

    def with_(self, changes: Any) -> Any:
        """The same with other values, which has `run(seeds, jobs)`."""


def took(scenario: Timed, cores: int = 1) -> tuple[float, float]:
    """Seconds of one core for a run while `cores` are busy: what building it takes, and each expected packet.

    Raises ValueError for one that cannot be begun, ScenarioError for one that cannot be cut short.
    """
    from ..metrics.quantity import in_seconds

    whole = scenario.expected_packets(seeds=1)
    effective = scenario.check().effective
    duration = in_seconds(effective["duration"])
    if sum(int(group.get("count", 1)) for group in effective.get("flows", ())) > _MANY:
        raise ValueError("too many flows to be begun")
    times = {
        f"flows.{group['name']}.{key}": group[key]
        for group in effective.get("flows", ())
        for key in ("start", "stop")
        if group.get(key) is not None
    }
    points: list[tuple[float, float]] = []
    packets = _BEGUN
    # Longer ones where packets cost little: slow start, too, is then a smaller part.
    while len(points) < 2 or (points[-1][1] < _ENOUGH and points[-1][0] < whole):
        share = min(1.0, packets / max(whole, 1.0))
        # The lesser of two: a process's first run also loads what all share.
        points.append((share * whole, min(_timed(scenario, times, duration, share, cores) for _ in range(2))))
        packets *= 4
    (fewer, short), (more, long) = points[-2:]
    if more <= fewer:
        # The whole run is short.
        return 0.0, min(short, long) / max(more, 1.0)
    each = max(long - short, 0.1 * long) / (more - fewer)
    return max(0.0, short - fewer * each), each


def _timed(scenario: Timed, times: Mapping[str, Any], duration: float, share: float, cores: int) -> float:
    """Seconds of one core for a run of so much of its duration, measured from the beginning."""
    end = f"{max(share * duration, 1e-6):.6f} s"
    changes: dict[str, object] = {"duration": end, "measure.from": "0 s", "measure.to": end}
    if share < 1:
        changes |= {key: _sooner(when, share) for key, when in times.items()}
    cut = scenario.with_(changes)
    begun = _cpu()
    cut.run(seeds=cores, jobs=cores)
    return (_cpu() - begun) / cores


def _cpu() -> float:
    """Seconds of one core so far, those of programs that it ran and that have ended included."""
    return math.fsum(os.times()[:4])


def _sooner(when: str | Sequence[str], share: float) -> str | list[str]:
    """A time or times, as an effective experiment writes them, after so much of each.

    >>> _sooner("uniform 0 s..100 s", 0.01), _sooner(["20 s", "500 us"], 0.1)
    ('uniform 0.000000000 s..1.000000000 s', ['2.000000000 s', '50.000000 us'])
    """
    if not isinstance(when, str):
        return [str(_sooner(one, share)) for one in when]
    return _TIME.sub(lambda found: f"{share * float(found[1]):.{_DIGITS[found[2]]}f} {found[2]}", when)


def sampled(items: Sequence[T]) -> list[T]:
    """A few of them, evenly spaced, the first and the last among them."""
    if len(items) <= MOST:
        return list(items)
    return [items[round(i * (len(items) - 1) / (MOST - 1))] for i in range(MOST)]


def weighted(items: Sequence[tuple[T, float]]) -> list[T]:
    """A few of them, as often as their weights are of all: the middles of equal parts of the sum.

    >>> weighted([("a", 1.0), ("b", 5.0), ("c", 0.0)])
    ['a', 'b', 'b', 'b', 'b', 'b']

    Where none has a weight, all have the same.

    >>> weighted([("a", 0.0), ("b", 0.0)])
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    if not any(weight for _, weight in items):
        items = [(item, 1.0) for item, _ in items]
    sums = [*itertools.accumulate(weight for _, weight in items)]
    places = [(i + 0.5) / MOST * sums[-1] for i in range(MOST)]
    return [items[bisect.bisect(sums, place)][0] for place in places]


def seconds(work: Sequence[tuple[Timed, float]], cores: int = 1) -> float:
    """Seconds of one core for so many runs of each experiment, of which a few are begun."""
    found = [_took(scenario, cores) for scenario, _ in sampled(work)]
    building = sum(once for once, _ in found) / len(found)
    each = sum(packet for _, packet in found) / len(found)
    return sum((building + each * s.expected_packets(seeds=1)) * runs for s, runs in work)


def corrected(told: Sequence[tuple[Timed, float]], cores: int = 1) -> float:
    """By how much seconds that are told of experiments, each of one run, are to be multiplied here.

    Each counts as much as any other: they are drawn by what they take of the whole (`weighted`). Of those of
    which nothing is told, none says anything.

    >>> corrected([])
    1.0
    """
    return fmean([seconds([(scenario, 1)], cores) / one for scenario, one in told if one > 0] or [1.0])


def _took(scenario: Timed, cores: int) -> tuple[float, float]:
    try:
        return took(scenario, cores)
    except (ValueError, _internal.ScenarioError):
        # It has too many flows, or something happens at a time that the moment does not reach.
        return 0.0, A_PACKET


def wall(cpu_seconds: float, runs: float, jobs: int | None) -> float:
    """How long that takes on `jobs` threads (default: one a core), of which the last round is not full."""
    return cpu_seconds / runs * math.ceil(runs / threads(jobs))
