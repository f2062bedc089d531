"""The tables of a `paper.toml`, typed: a wrong value is told with its file, key and what to write instead.

A wrong value is told with its line, too: `tomllib` keeps no positions. A path is the table's name, its number
where there are several, and the key: `("claims", 2, "says")`. What is written inside a value (an inline
table, a list over several lines) has the line on which that value begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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


class PaperError(ValueError):
    """A `paper.toml` that cannot be used: file, line, key, value, and what to write instead."""


class Entry(Mapping[str, Any]):
    """A table of a `paper.toml`; its values by type, each refused with its place where it is another.

    >>> Entry({"id": "a", "flows": "four"}, "paper.toml", "topologies.a").number("flows")
    Traceback (most recent call last):
    ...
    inprofile.papers.entry.PaperError: paper.toml: topologies.a.flows = 'four': write a number
    """

    def __init__(self, raw: Mapping[str, Any], file: str, path: str = "", at: At = ()) -> None:
        """`path` and `at` are where in `file` it is, by name and for its line; empty for the whole file."""
        self._raw, self._file, self._path, self._at = raw, file, path, tuple(at)

    def __getitem__(self, key: str) -> Any:
        return self._raw[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"Entry({self.place()})"

    def place(self, key: str = "") -> str:
        """What messages call it, or one of its keys."""
        path = ".".join(part for part in (self._path, key) if part)
        line = line_of(self._file, (*self._at, key) if key else self._at)
        file = self._file if line is None else f"{self._file}:{line}"
        return f"{file}: {path}" if path else file

    # Words that every entry has; what is missing is empty.

    @property
    def id(self) -> str:
        """Its name among the entries of its table."""
        return self.word("id")

    @property
    def title(self) -> str:
        """Its title."""
        return self.word("title", "")

    @property
    def text(self) -> str:
        """What it is, in a sentence."""
        return self.word("text", "")

    @property
    def where(self) -> str:
        """Its place in the paper."""
        return self.word("where", "")

    @property
    def fitted(self) -> bool:
        """Whether it was found after seeing the paper's numbers."""
        return self.flag("fitted")

    @property
    def changes(self) -> Mapping[str, Any]:
        """`set`: paths of the experiment and what they are set to."""
        return self.table("set") if "set" in self._raw else {}

    def word(self, key: str, default: str | None = None) -> str:
        """Text."""
        value = self._value(key, default)
        return value if isinstance(value, str) else self._refuse(key, "text")

    def words(self, key: str) -> list[str]:
        """A list of texts."""
        value = self._value(key, None)
        good = isinstance(value, list) and all(isinstance(x, str) for x in value)
        return list(value) if good else self._refuse(key, "a list of texts")

    def listed(self, key: str) -> list[str]:
        """A text, or a list of them, as a list; empty where there is none."""
        if key not in self._raw:
            return []
        return [self.word(key)] if isinstance(self._raw[key], str) else self.words(key)

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        value = self._value(key, default)
        return float(value) if _is_number(value) else self._refuse(key, "a number")

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        value = self._value(key, default)
        good = isinstance(value, int) and not isinstance(value, bool)
        return int(value) if good else self._refuse(key, "a whole number")

    def numbers(self, key: str) -> list[float]:
        """A list of numbers."""
        value = self._value(key, None)
        good = isinstance(value, list) and all(map(_is_number, value))
        return [float(x) for x in value] if good else self._refuse(key, "a list of numbers")

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self._value(key, default)
        return value if isinstance(value, bool) else self._refuse(key, "true or false")

    def table(self, key: str) -> Entry:
        """A table within it."""
        value = self._value(key, None)
        if not isinstance(value, Mapping):
            self._refuse(key, "a table")
        path = ".".join(part for part in (self._path, key) if part)
        return Entry(value, self._file, path, (*self._at, key))

    def tables(self, key: str) -> list[Entry]:
        """A list of tables within it; none where it has no such key."""
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(x, Mapping) for x in value):
            self._refuse(key, "a list of tables")
        path = f"{self._path}.{key}" if self._path else key
        return [
            x
            if isinstance(x, Entry)
            else Entry(x, self._file, f"{path}.{x.get('id', i)}", (*self._at, key, i))
            for i, x in enumerate(value)
        ]

    def _value(self, key: str, default: Any) -> Any:
        if key in self._raw:
            return self._raw[key]
        if default is None:
            raise PaperError(f"{self.place()} lacks {key}: write {key} = … there")
        return default

    def _refuse(self, key: str, kind: str) -> Any:
        raise PaperError(f"{self.place(key)} = {self._raw[key]!r}: write {kind}")


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)
