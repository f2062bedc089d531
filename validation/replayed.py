"""The guest's events for `linux-replay`, and its verdict on them."""

from __future__ import annotations

import os
import statistics
import subprocess
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from uml import ROOT, Seen

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")

QUICK = 5
"""Per cent of the sends that reach the driver sooner than we think they reach the queue."""

AFTER = 200_000
"""Nanoseconds that may lie between a packet's stamp and the question for the next one. The guest's next
stamp comes after both, and usually sooner."""

STALL = 2_500_000
"""Nanoseconds without a stamp while packets wait, after which the guest cannot have been running: tbf would
have let one go."""


@dataclass(frozen=True)
class Arrivals:
    """When packets came, in nanoseconds since the start."""

    at: list[int]
    earliest: list[int]
    latest: list[int]
    left: list[int | None]
    """When they left, if they did."""
    marked: list[bool]
    order: list[int]
    """Numbers of those that left, in order."""
    began: int
    """When the discipline was made: before 0."""

    @property
    def width(self) -> list[int]:
        """How far each arrival's bounds lie apart."""
        return [b - a for a, b in zip(self.earliest, self.latest, strict=True)]


def arrivals(seen: Seen) -> Arrivals:
    """A packet came a little after the guest's stamp, and before the call returned or the packet left."""
    s = seen.seen
    start = int(s["before"][0]) - 1_000_000
    before, after, left = (s[name].astype(np.int64) for name in ("before", "after", "left"))
    own = (left >= before) & (left <= after)
    lead = int(np.percentile((left - before)[own], QUICK)) if own.any() else 0
    latest = np.where(own, left, after)
    at = np.minimum(before + lead, latest)
    gone = np.flatnonzero(left > 0)
    marked = (s["tos"] & 3) == 3
    return Arrivals(
        at=[int(x) - start for x in at],
        earliest=[int(x) - start for x in before],
        latest=[int(x) - start for x in latest],
        left=[int(x) - start if x else None for x in left],
        marked=[bool(x) for x in marked],
        order=[int(x) for x in gone[np.argsort(s["order"][gone])]],
        began=seen.began - start,
    )


def events(seen: Seen, a: Arrivals, ahead: bool, timer: tuple[int, int] = (0, 1)) -> str:
    """Arrivals, and when the link asked for a packet.

    `ahead`: the discipline is asked for the next packet as soon as one has left, and tbf keeps it. Otherwise
    the packet stays in the discipline until tbf has the tokens for it. `timer`: when the discipline's own
    timer first runs, in nanoseconds since the discipline was made, and then how often.
    """
    lines: list[tuple[int, int, str]] = []
    for number, p in enumerate(seen.planned):
        passed = int(a.left[number] is not None)
        words = (
            number,
            a.at[number],
            p.size,
            p.flow,
            2 * p.ect,
            a.earliest[number],
            a.latest[number],
            passed,
        )
        lines.append((a.at[number], 0, "a " + " ".join(map(str, words))))
    soonest = list(a.order)
    for place in range(len(soonest) - 2, -1, -1):
        soonest[place] = min(soonest[place], soonest[place + 1], key=a.at.__getitem__)
    stamps = sorted([*a.earliest, *a.latest, *(left for left in a.left if left is not None)])
    for place, number in enumerate(a.order):
        left = a.left[number]
        assert left is not None  # noqa: S101
        at, slack = left, 0
        if ahead:
            # The first to come of those that leave from now on: it waits by then, or the link waits for it.
            first = soonest[place]
            gone = a.left[a.order[place - 1]] if place else None
            if gone is not None and a.at[first] <= gone:
                gap = stamps[bisect_right(stamps, gone)] - gone
                at, slack = gone, gap if gap > STALL else min(gap, AFTER)
            else:
                at, slack = a.at[first], a.latest[first] - a.at[first]
        lines.append((at, 1, f"c {at} {slack} {number} {int(a.marked[number])}"))
        lines.append((left, 3, f"l {left}"))
    # An interval before it runs for the first time; where that was before the start, in the same phase.
    first, every = timer
    starts = a.began + first - every
    lines.append((0, 2, f"t {starts if starts >= 0 else starts % every}"))
    lines += [(start, 2, f"s {start} {end}") for start, end in stalls(a, stamps)]
    lines.sort(key=lambda line: line[:2])
    return "\n".join(line for _, _, line in lines) + "\n"


def stalls(a: Arrivals, stamps: list[int]) -> list[tuple[int, int]]:
    """When there was no stamp for long, though packets waited that left later."""
    waits = sorted(
        (at, left) for at, left in zip(a.at, a.left, strict=True) if left is not None and left - at > STALL
    )
    found, place, latest = [], 0, 0
    for start, end in pairwise(stamps):
        while place < len(waits) and waits[place][0] <= start:
            latest = max(latest, waits[place][1])
            place += 1
        if end - start > STALL and latest >= end:
            found.append((start, end))
    return found


def police_events(seen: Seen, a: Arrivals) -> str:
    """Arrivals alone."""
    return "".join(line for line in events(seen, a, ahead=False).splitlines(keepends=True) if line[0] == "a")


@dataclass(frozen=True)
class Lockstep:
    """Decision by decision."""

    decisions: int
    drops: int
    """Linux's."""
    marks: int
    identical: int
    """With the stamps taken as they are."""
    within: int
    """With other times that the stamps leave open."""
    differences: int
    """The rest."""
    kinds: dict[str, int] = field(default_factory=dict)
    """Of the rest: Linux's verdict and ours."""
    median: float = 0.0
    """Of the shifts of those within, in microseconds."""
    shift: float = 0.0
    """The largest of them."""


def lockstep(mode: str, mechanism: str, text: str, limit: int | None = None) -> Lockstep:
    """Of a law without chance; `limit` in packets where the mode wants to know."""
    said = replay(mode, mechanism, *([] if limit is None else [str(limit)]), text=text)
    kinds: Counter[str] = Counter()
    drops = marks = identical = within = total = 0
    shifts = []
    for line in said.splitlines():
        _, linux, ours, shift, possible = line.split()
        total += 1
        drops += linux == "dropped"
        marks += linux == "marked"
        moved = int(shift)
        if moved == 0:
            identical += 1
        elif possible == "1":
            within += 1
            shifts.append(max(0, moved) / 1000)
        else:
            kinds[f"{linux}, ours {ours}"] += 1
    median, most = (statistics.median(shifts), max(shifts)) if shifts else (0.0, 0.0)
    return Lockstep(total, drops, marks, identical, within, sum(kinds.values()), dict(kinds), median, most)


def replay(mode: str, mechanism: str, *more: str, text: str) -> str:
    """Runs our side."""
    program = TARGET / "release" / "examples" / "linux-replay"
    done = subprocess.run(  # noqa: S603
        [program, mode, mechanism, *more], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"linux-replay {mode} failed: {done.stderr.strip()}")
    return done.stdout


def build() -> None:
    """Builds our side."""
    what = ["-p", "inprofile-experiment", "--example", "linux-replay"]
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--release", *what], cwd=ROOT, check=True)  # noqa: S603, S607
