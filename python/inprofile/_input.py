"""Untrusted input, read with care: files that may be anything, numbers that may be any; their problems."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from operator import index
from pathlib import Path
from typing import BinaryIO

LARGEST_FILE = 16 << 20
"""Bytes an experiment file may have."""
MOST_RUNS = 100_000
"""The most seeds of one call: as many as an experiment file may ask for."""
MOST_POINTS = 4096
"""The most points of a paper's atlas: many times what answers its questions."""
MOST_SEED = (1 << 64) - 1
"""The greatest seed."""
MOST_THREADS = 1024
"""The most threads anybody may ask for."""
MOST_SECONDS = 1e7
"""The longest time to wait for anything: four months."""

_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
    (stat.S_ISSOCK, "is a socket"),
)


class SeedsError(ValueError):
    """Seeds that cannot be run: none, too many, one twice, or what is no seed."""


class UnfitFile(OSError):
    """A file that is not read: a pipe, a device, a folder, or one that is too large."""


def read_file(path: str | Path, most: int = LARGEST_FILE) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Nothing else is opened: a pipe may never end, a device neither. Raises `UnfitFile`, and `OSError` as
    `open` does.
    """
    _fit(path, Path(path).stat(), most)
    # What was a file may be a pipe by now: opening one must not wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _fit(path, os.fstat(file.fileno()), most)
        data = file.read(most + 1)
    if len(data) > most:
        raise _too_large(path, len(data), most)
    return data


def read_stream(stream: BinaryIO, called: str, most: int = LARGEST_FILE) -> bytes:
    """All of a stream that has at most `most` bytes; no more is read of one that never ends.

    Raises `UnfitFile`, which names it as `called`.
    """
    data = stream.read(most + 1)
    if len(data) > most:
        problem = f"has more than {most:,} bytes: an experiment was meant; give flows a count in it"
        raise UnfitFile(errno.EFBIG, problem, called)
    return data


def check_file(path: str | Path) -> None:
    """Raise `UnfitFile` unless it is a regular file, `OSError` where there is none."""
    _fit(path, Path(path).stat(), MOST_SEED)


def _fit(path: str | Path, found: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = next((text for test, text in _KINDS if test(found.st_mode)), "is no regular file")
        problem = f"{what}: name a regular file; what a program prints has to be written to one first"
        raise UnfitFile(errno.EINVAL, problem, str(path))
    if found.st_size > most:
        raise _too_large(path, found.st_size, most)


def _too_large(path: str | Path, size: int, most: int) -> UnfitFile:
    problem = (
        f"has {size:,} bytes, and {most:,} are read at most: name the file that was meant;"
        " in an experiment give flows a count in the place of a table each"
    )
    return UnfitFile(errno.EFBIG, problem, str(path))


def seeds_in_order(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Seeds in order: `3` is 1, 2, 3.

    >>> seeds_in_order(3), seeds_in_order([7, 5])
    ((1, 2, 3), (5, 7))

    Raises `SeedsError` at once for none, more than `MOST_RUNS`, one twice, and one that is not
    0 … 2⁶⁴ − 1.
    """
    numbers: Iterable[int] = range(1, seeds + 1) if isinstance(seeds, int) else seeds
    if isinstance(numbers, (str, bytes)):
        raise SeedsError(f"seeds={_short(numbers)} is a text: give a number of seeds, or a list of them")
    try:
        # Of what may have no end only so many are taken.
        given = tuple(islice(numbers, MOST_RUNS + 1))
        first = tuple(index(n) for n in given)
    except TypeError:
        raise SeedsError(
            f"seeds={_short(seeds)} is no number of seeds and no list of whole numbers: give 20, or [5, 7]"
        ) from None
    if not first:
        raise SeedsError(f"seeds={_short(seeds)} asks for no run: give a number above 0, or seeds")
    if len(first) > MOST_RUNS:
        raise SeedsError(
            f"seeds={_short(seeds)} asks for more than {MOST_RUNS:,} runs: give fewer; a mean over"
            " 30 seeds has an interval already"
        )
    ordered = tuple(sorted(first))
    if len(set(ordered)) < len(ordered):
        raise SeedsError("the same seed twice is the same run twice: give each seed once")
    if ordered[0] < 0 or ordered[-1] > MOST_SEED:
        wrong = ordered[0] if ordered[0] < 0 else ordered[-1]
        raise SeedsError(f"{_short(wrong)} is no seed: a seed is a whole number from 0 to 2^64 − 1")
    return ordered


def _short(value: object) -> str:
    """As Python writes it, cut where it is long."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def seconds(name: str, value: float) -> float:
    """A time to wait, in seconds.

    >>> seconds("timeout", 600)
    600.0

    Raises ValueError unless it is from 1 to ten million.
    """
    if not 1 <= value <= MOST_SECONDS:
        raise ValueError(f"{name} {value:g}: give a number of seconds from 1 to {MOST_SECONDS:,.0f}")
    return float(value)


# Control characters (C0, DEL, C1), and those that turn the direction of what follows them.
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_ACTING_BUT_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str, *, lines: bool = True) -> str:
    r"""The same text, what acts on a terminal written out; `lines`: but for ends of lines.

    >>> visible("red: \x1b[31m\r\n")
    'red: \\u001b[31m\\u000d\n'
    """
    pattern = _ACTING_BUT_LINES if lines else _ACTING
    return pattern.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Problem:
    """Something wrong with an experiment file, and what to write instead."""

    file: str
    line: int | None
    column: int | None
    path: str
    value: str | None
    problem: str
    remedy: str
    severity: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        key = " = ".join(part for part in (self.path, self.value) if part)
        parts = [place, self.severity, key, self.problem] if key else [place, self.severity, self.problem]
        return visible(": ".join(parts) + (f"\n  {self.remedy}" if self.remedy else ""))
