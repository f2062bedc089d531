"""On which line of a TOML file a key stands: for messages, as `tomllib` keeps no positions.

A path is the table's name, its number where there are several, and the key: `("claims", 2, "says")`. What is
written inside a value (an inline table, a list over several lines) has the line on which that value begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

#: Names of tables and keys, and numbers among tables of one name.
At = Sequence[str | int]

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w\-.\"' ]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]*\"|'[^']*')\s*(\.|=)")
#: What opens, closes or ends a value: strings as a whole, so that a bracket in one counts for nothing.
_PART = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[{(]|[\]})]|\n', re.S
)


def line_of(file: str | Path, at: At) -> int | None:
    """The line of the longest beginning of `at` that `file` has; None where it has none or cannot be read."""
    try:
        known = lines_in(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    for end in range(len(at), 0, -1):
        if (found := known.get(tuple(at[:end]))) is not None:
            return found
    return None


def lines_in(text: str) -> dict[tuple[str | int, ...], int]:
    r"""The line, from 1, of every table and key.

    >>> found = lines_in('year = 1\n[[claims]]\nid = "A"\nlist = [\n 1]\n[[claims]]\nid = "B"\n')
    >>> found["year",], found["claims", 0, "list"], found["claims", 1], found["claims", 1, "id"]
    (1, 4, 6, 7)
    """
    found: dict[tuple[str | int, ...], int] = {}
    counted: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in _statements(text):
        if header := _HEADER.match(line):
            table = _table(header[2], header[1] == "[[", counted)
            found.setdefault(table, number)
            found.setdefault(table[:1], number)
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1].strip("\"'")), number)
    return found


def _table(name: str, listed: bool, counted: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """The place of a header: of `[[a]]` the next of its name, and what is under one belongs to the last."""
    at: tuple[str | int, ...] = ()
    parts = [part.strip().strip("\"'") for part in name.split(".")]
    for depth, part in enumerate(parts):
        at = (*at, part)
        if listed and depth == len(parts) - 1:
            counted[at] = counted.get(at, -1) + 1
        if at in counted:
            at = (*at, counted[at])
    return at


def _statements(text: str) -> list[tuple[int, str]]:
    """The first line of every header and `key = value`, with its number."""
    lines = text.split("\n")
    depth, number, starts = 0, 1, [1]
    for found in _PART.finditer(text):
        part = found[0]
        if part == "\n":
            number += 1
            if depth == 0:
                starts.append(number)
        elif part in "[{(":
            depth += 1
        elif part in "]})":
            depth = max(0, depth - 1)
        else:
            number += part.count("\n")
    return [(n, lines[n - 1]) for n in starts if n <= len(lines)]
