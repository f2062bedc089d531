"""Ties the exact profile to the ns-2 profile, which is ns-2's event by event: the same experiment in both.

Compared twice: once with ns-2's random numbers, so that only the clock (picoseconds for doubles) and the
order of events at the same moment (by kind for by insertion) differ; and once as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from inprofile import Scenario, _internal
from inprofile.studies.validate import OURS, compare

PROFILES = ("exact_ns2_random", "exact")
MICROSECOND = 1.5e-6
"""Times that print within this of each other may be the same moment, rounded otherwise."""


@dataclass(frozen=True)
class Tied:
    """One experiment in one profile against the ns-2 profile."""

    profile: str
    events: int
    """Before the first moment that differs."""
    moments: int
    """Events up to the first difference that is more than order within a printed microsecond."""
    cause: str
    """Of the latter; empty where there is none."""
    lines: tuple[str, str]
    """Of the latter: ours and the ns-2 profile's."""

    def to_json(self) -> dict[str, Any]:
        """As docs/validation.json has it."""
        return {
            "profile": self.profile,
            "events": self.events,
            "moments": self.moments,
            "cause": self.cause,
            "lines": list(self.lines),
        }


def tie(scenario: Scenario, seed: int, folder: Path) -> list[Tied]:
    """Both comparisons; the ns-2 profile's own trace is in `folder`."""
    tied = []
    for profile in PROFILES:
        path = folder / f"{profile}.tr"
        other = scenario.set("engine.profile", profile)
        _internal.ns2_log(other._inner, seed, str(path))
        with path.open("rb") as a, (folder / OURS).open("rb") as b:
            same = common(a, b)
        with path.open("rb") as a, (folder / OURS).open("rb") as b:
            # What is the same is the same in any order.
            rest = [by_moment(islice(lines, same, None)) for lines in (a, b)]
            moments = compare(*rest)
        path.unlink()
        difference = moments.divergence
        lines = ("", "")
        if difference is not None:
            lines = (
                difference.ours[-1] if difference.ours else "",
                difference.theirs[-1] if difference.theirs else "",
            )
        cause = "" if difference is None else cause_of(*lines)
        tied.append(Tied(profile, same, same + moments.events, cause, lines))
    return tied


def common(ours: BinaryIO, theirs: BinaryIO) -> int:
    r"""How many whole moments, in lines, two traces have in common from the start.

    >>> from io import BytesIO
    >>> common(BytesIO(b"+ 1 a\n+ 2 a\n+ 2 b\n"), BytesIO(b"+ 1 a\n+ 2 a\n+ 2 c\n"))
    1
    """
    lines = begun = 0
    moment = b""
    for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        lines = n
        if (now := a.split(b" ", 2)[1]) != moment:
            moment, begun = now, n
        if a != b:
            return begun
    return lines + 1 if lines else 0


def by_moment(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of the same printed time in one order, without the packet's number, which tells who was first.

    >>> list(by_moment([b"+ 1 b 9", b"- 1 a 8", b"+ 2 a 7"]))
    [b'+ 1 b', b'- 1 a', b'+ 2 a']
    """
    for _, together in groupby(lines, key=lambda line: line.split(b" ", 2)[1]):
        yield from sorted(line.rsplit(b" ", 1)[0] for line in together)


def cause_of(ours: str, theirs: str) -> str:
    """The kind of difference between two lines.

    >>> cause_of("r 1.000002 0 1 tcp", "r 1.000001 0 1 tcp")
    'a microsecond rounds otherwise'
    >>> cause_of("d 1 0 1 tcp", "- 1 0 1 tcp")
    'a drop'
    """
    if not ours or not theirs:
        return "one ends"
    (a_code, a_time, *a), (b_code, b_time, *b) = ours.split(" "), theirs.split(" ")
    if (a_code, a) == (b_code, b) and abs(float(a_time) - float(b_time)) < MICROSECOND:
        return "a microsecond rounds otherwise"
    if "d" in (a_code, b_code):
        return "a drop"
    if abs(float(a_time) - float(b_time)) < MICROSECOND:
        return "who goes first at one moment"
    return "another time"
