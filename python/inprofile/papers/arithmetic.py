"""What is computed from a cell's measures, as a `paper.toml` writes it: `bbr.goodput / cubic.goodput`.

Names of measures, numbers, `+ - * /`, parentheses, and `max( … , … )` and `min`. Names may have hyphens, so
there is a space on either side of an operator.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..metrics.measures import Array

_TOKEN = re.compile(r"\s*([(),]|[^\s(),]+)")
_NUMBER = re.compile(r"-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
#: Parentheses within one another: more is no expression that somebody has written.
_DEEPEST = 50
_CALLS: Mapping[str, Callable[..., Array]] = {"max": np.maximum, "min": np.minimum}
_SIGNS = ("+", "-", "*", "/")


class ArithmeticProblem(ValueError):
    """What cannot be computed, and what to write instead."""


def value_of(text: str, measures: Mapping[str, Array]) -> Array:
    """The value of `text`, one a seed.

    >>> value_of("2 * (a + b)", {"a": np.array([1.0]), "b": np.array([0.5])})
    array([3.])

    Raises `ArithmeticProblem` for a name that is not among the measures, and for what is no expression.
    """
    reader = _Reader(text, measures)
    found = reader.sum()
    if (rest := reader.peek()) is not None:
        raise ArithmeticProblem(f"“{text}”: {rest} is not expected there; put a space around + - * /")
    return found


def names_in(text: str) -> list[str]:
    """The names that `text` has, without its numbers and functions.

    >>> names_in("max(a.b-c, 2) / d")
    ['a.b-c', 'd']
    """
    tokens = [t for t in _TOKEN.findall(text) if t not in (*_SIGNS, "(", ")", ",")]
    return [t for t in dict.fromkeys(tokens) if not _NUMBER.fullmatch(t) and t not in _CALLS]


class _Reader:
    """Reads an expression from left to right, computing as it goes."""

    def __init__(self, text: str, measures: Mapping[str, Array]) -> None:
        self._text, self._measures = text, measures
        self._tokens = list(_TOKEN.findall(text))
        if self._tokens.count("(") > _DEEPEST:
            raise ArithmeticProblem(f"“{text[:40]}…” has more than {_DEEPEST} parentheses: write it in parts")

    def peek(self) -> str | None:
        return self._tokens[0] if self._tokens else None

    def _take(self) -> str:
        if not self._tokens:
            raise ArithmeticProblem(f"“{self._text}” ends where a measure, a number or ) is expected")
        return str(self._tokens.pop(0))

    def sum(self) -> Array:
        found = self._product()
        while (sign := self.peek()) in ("+", "-"):
            self._take()
            other = self._product()
            found = found + other if sign == "+" else found - other
        return found

    def _product(self) -> Array:
        found = self._factor()
        while (sign := self.peek()) in ("*", "/"):
            self._take()
            other = self._factor()
            if sign == "/" and not np.all(other):
                raise ArithmeticProblem(f"“{self._text}” divides by a measure that is 0 with some seed")
            found = found * other if sign == "*" else found / other
        return found

    def _factor(self) -> Array:
        part = self._take()
        if part == "(":
            found = self.sum()
            self._expect(")")
            return found
        if part in _CALLS and self.peek() == "(":
            self._take()
            found = self.sum()
            self._expect(",")
            found = _CALLS[part](found, self.sum())
            self._expect(")")
            return found
        if _NUMBER.fullmatch(part):
            return np.asarray(float(part))
        return self._measure(part)

    def _measure(self, name: str) -> Array:
        if name in self._measures:
            return np.asarray(self._measures[name], dtype=float)
        raise ArithmeticProblem(f"“{self._text}”: {unknown(name, self._measures)}")

    def _expect(self, sign: str) -> None:
        if (found := self._take()) != sign:
            raise ArithmeticProblem(f"“{self._text}”: write {sign} before {found}")


def unknown(name: str, there: Iterable[str]) -> str:
    """Say that there is no such measure, and which are near.

    >>> unknown("goodputs", ["goodput", "fi"])
    'there is no measure goodputs: write goodput'
    """
    known = sorted(there)
    near = difflib.get_close_matches(name, known, 4, 0.6) or known[:40]
    return f"there is no measure {name}: write {' or '.join(near) if near else 'one of the cell'}"
