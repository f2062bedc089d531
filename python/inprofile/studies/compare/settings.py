"""The settings of a scheme and their ranges: the entries of its table `plan`.

"queue.w_q"        = "0.0005..0.02 log"               # a number, on a logarithmic scale
"flows.win_length" = "0.1..4 s log"                   # with a unit
"flows.rate"       = "1..1.5 of contract"             # a rate: so many times the contract
"flows.depth"      = "0.05..4 s of contract log"      # a size: what that rate brings in this time
"queue.out.*_th"   = "0.1..1 times log"               # so many times the present value, at all that match
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ...metrics.quantity import number

#: The parts of a scheme that have settings.
_PARTS = ("queue", "flows", "others", "edge")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?"
_RANGE = re.compile(
    rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})(?: (?P<unit>packets|s|ms|us|B|kB|kbit/s|Mbit/s|Gbit/s))?"
    r"(?P<of> of contract)?(?P<times> times)?(?P<log> log)?"
)
_AMOUNT = re.compile(rf"({_NUMBER})(.*)")


class SettingError(ValueError):
    """A range that cannot be read, or that belongs to nothing."""


def rounded(x: float) -> float:
    """Three significant digits: what is tried is what a file can say.

    >>> rounded(0.0123456), rounded(98765.0)
    (0.0123, 98800.0)
    """
    return float(f"{x:.3g}")


@dataclass(frozen=True)
class Setting:
    """One value, or several that are scaled together."""

    key: str
    """Its path: `queue.w_q`, or a pattern, `queue.out.*_th`."""
    low: float
    high: float
    unit: str = ""
    of_contract: bool = False
    times: bool = False
    log: bool = False

    def put(self, parts: Mapping[str, Any], x: float) -> dict[str, Any]:
        """The scheme's parts with the setting at `x`."""
        first, *rest = self.key.split(".")
        made = dict(parts)
        made[first] = self._put(made[first] or {}, rest, x)
        return made

    def _put(self, table: Mapping[str, Any], path: list[str], x: float) -> dict[str, Any]:
        first, *rest = path
        made = dict(table)
        names = [k for k in made if fnmatchcase(k, first)] or [first]
        for name in names:
            if rest:
                made[name] = self._put(made.get(name, {}), rest, x)
            else:
                made[name] = self._value(made.get(name), x)
        return made

    def _value(self, present: object, x: float) -> object:
        if self.times:
            if isinstance(present, (int, float)):
                return rounded(present * x)
            found = _AMOUNT.fullmatch(str(present))
            if found is None:
                raise SettingError(f"{self.key}: {present} is no amount that could be scaled")
            return f"{float(f'{float(found[1]) * x:.4g}')}{found[2]}"
        if self.of_contract:
            return f"{number(x, 3)}{f' {self.unit}' if self.unit else ''} of contract"
        return f"{number(x, 3)} {self.unit}" if self.unit else x

    def words(self, x: float) -> str:
        """The value as people read it.

        >>> setting_of("flows.depth", "0.05..4 s of contract log", {"flows": {"depth": "1 T"}}).words(0.3)
        '0.3 s of the contract'
        """
        unit = f" {self.unit}" if self.unit else ""
        return f"{number(x, 3)}{unit}" + (
            " of the contract" if self.of_contract else " times" if self.times else ""
        )


_OVER = re.compile(
    rf"({_NUMBER})\.\.({_NUMBER})(?: (packets|s|ms|us|B|kB|bit/s|kbit/s|Mbit/s|Gbit/s))?( log)?( whole)?"
    " over T"
)


@dataclass(frozen=True)
class Over:
    """A value that goes from one end of a range to the other while T goes through its settings."""

    first: float
    last: float
    unit: str
    log: bool
    whole: bool

    @staticmethod
    def of(text: str) -> Over | None:
        """Read `"2..200 log over T"`; None where that is something else.

        >>> Over.of("2..200 log whole over T").at(0.5), Over.of("10..30 ms over T").at(1.0)
        (20, '30 ms')
        """
        found = _OVER.fullmatch(text)
        if found is None:
            return None
        over = Over(float(found[1]), float(found[2]), found[3] or "", bool(found[4]), bool(found[5]))
        return None if over.log and min(over.first, over.last) <= 0 else over

    def at(self, share: float) -> float | str:
        """The value after this share of the way."""
        if self.log:
            x = self.first * (self.last / self.first) ** share
        else:
            x = self.first + (self.last - self.first) * share
        x = round(x) if self.whole else rounded(x)
        return f"{x:g} {self.unit}" if self.unit else x

    @property
    def words(self) -> str:
        """The range as people read it.

        >>> Over.of("2..200 log over T").words
        '2 to 200, in equal ratios'
        """
        unit = f" {self.unit}" if self.unit else ""
        steps = "in equal ratios" if self.log else "in equal steps"
        return f"{number(self.first, 6)} to {number(self.last, 6)}{unit}, {steps}"


def setting_of(key: str, text: object, parts: Mapping[str, Any]) -> Setting:
    """Read one entry of a table `plan`; `parts` are the scheme's tables. Raises SettingError.

    >>> setting_of("queue.w_q", "0.0005..0.02 log", {"queue": {"aqm": "red"}}).high
    0.02
    """
    first, *rest = key.split(".")
    if first not in _PARTS or not rest or not all(rest):
        raise SettingError(f"{key}: write its path, such as queue.w_q or flows.depth")
    if parts.get(first) is None:
        raise SettingError(f"{key}: the scheme has no {first}")
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise SettingError(
            f'{key} = {text!r}: write a range, such as "0.001..0.01 log", "0.1..2 s of contract" or'
            ' "0.2..1 times"'
        )
    low, high = float(found["low"]), float(found["high"])
    if not low < high or (found["log"] and low <= 0):
        raise SettingError(f'{key} = "{text}": the range has to go up, and from above 0 where it is log')
    if found["of"] and (first != "flows" or found["unit"] not in (None, "s", "ms", "us")):
        raise SettingError(
            f'{key} = "{text}": a share or a time of the contract is for markers of flows that have one'
        )
    if found["times"] and (found["unit"] or found["of"]):
        raise SettingError(f'{key} = "{text}": what is scaled has its unit already')
    if ("*" in key or "?" in key or found["times"]) and not any(_matches(parts[first], rest)):
        raise SettingError(f"{key}: nothing of that name is in {first}")
    return Setting(
        key, low, high, found["unit"] or "", bool(found["of"]), bool(found["times"]), bool(found["log"])
    )


def _matches(table: object, path: list[str]) -> Iterator[str]:
    """Names of values under a pattern."""
    if not isinstance(table, Mapping):
        return
    first, *rest = path
    for name, value in table.items():
        if fnmatchcase(name, first):
            if rest:
                yield from _matches(value, rest)
            else:
                yield name
