"""The axes of a sweep: the values of each key, and the settings that a design makes of them.

An axis is a list of values, as `--set` takes them, each with a name or none of them, or a range. Where values
have names, tables, legends and the dataset have these. A design combines axes:

- `grid`: every value of each with every value of the others,
- `list`: the first value of every axis together, then the second, …,
- `lhs`, `sobol`: so many samples of the box that the axes span (scipy's Latin hypercube and scrambled Sobol
  sequence, from a seed that only the keys decide). A list is cut into equal shares of its side of the box.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from ...experiment.mechanisms import sender
from ...experiment.scenario import Scenario, toml
from ...metrics.quantity import number


def sobol(dimensions: int, count: int, name: str) -> list[list[float]]:
    """Give the first `count` points of a scrambled Sobol sequence in [0, 1)."""
    if count == 0:
        return []
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=True, rng=_seed(name))
    points = sequence.random_base2(math.ceil(math.log2(count)) if count > 1 else 0)
    rows: list[list[float]] = points[:count].tolist()
    return rows


def latin_hypercube(dimensions: int, count: int, name: str) -> list[list[float]]:
    """Give `count` points in [0, 1): each of `count` equal slices of every dimension has one."""
    from scipy.stats import qmc

    rows: list[list[float]] = qmc.LatinHypercube(dimensions, rng=_seed(name)).random(count).tolist()
    return rows


def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


DEFAULT_METRICS = ("all_contracts_kept", "goodput", "fi", "utilisation", "delay_mean", "loss_in")
"""The metrics shown by default."""

Design = Literal["grid", "list", "lhs", "sobol"]
DESIGNS: tuple[Design, ...] = get_args(Design)

MOST_SETTINGS = 100_000
"""The most settings of one sweep."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(
    rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})"
    r"(?:\s*(?P<unit>(?!log\b|whole\b|in\b)[A-Za-zµ%/]+))?"
    r"(?P<log>\s+log)?(?P<whole>\s+whole)?(?:\s+in\s+(?P<count>\d+))?"
)
_QUANTITY = re.compile(rf"({_NUMBER})\s*([A-Za-zµ/]*)")
_UNITS = {
    "": (1.0, ""),
    **{f"{p}bit/s": (f, "bit/s") for p, f in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{p}s": (f, "s") for p, f in (("", 1.0), ("m", 1e-3), ("µ", 1e-6), ("u", 1e-6), ("n", 1e-9))},
    "B": (1.0, "B"),
    "kB": (1e3, "B"),
    "MB": (1e6, "B"),
    "KiB": (1024.0, "B"),
    "MiB": (1048576.0, "B"),
    "packet": (1.0, "packets"),
    "packets": (1.0, "packets"),
}


class SweepError(ValueError):
    """A sweep that cannot be run as it was asked for; the text says what to write instead."""


@dataclass(frozen=True)
class Range:
    """Every value from `low` to `high`, both included.

    A grid takes `count` of them, evenly spaced; the designs that sample take any.

    >>> Range(2, 10, "Mbit/s", count=3).values()
    ['2 Mbit/s', '6 Mbit/s', '10 Mbit/s']
    >>> Range(1, 100, "packets", log=True, whole=True, count=3).values()
    ['1 packets', '10 packets', '100 packets']

    Raises SweepError for a range that is empty, and on a log scale for one that does not lie above 0.
    """

    low: float
    high: float
    unit: str = ""
    log: bool = False
    """Evenly spaced in the logarithm."""
    whole: bool = False
    """Whole numbers only."""
    count: int | None = None
    """How many values a grid takes."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SweepError(f"{self}: give the smaller end first, and two different ends")
        if self.log and self.low <= 0:
            raise SweepError(f"{self}: a log scale has no {number(self.low)}: give ends above 0")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise SweepError(f"{self}: the ends of a whole range are whole numbers")
        if self.count is not None and not 2 <= self.count <= MOST_SETTINGS:
            raise SweepError(f"{self}: give 2 to {MOST_SETTINGS:,} values, such as in 5")

    def at(self, share: float) -> str:
        """The value at this share of the way from low to high."""
        if self.whole and not self.log:
            # Every whole number has an equal share.
            x = min(math.floor(self.low + share * (self.high - self.low + 1)), self.high)
        else:
            x = self._between(share)
        return self._text(round(x) if self.whole else x)

    def values(self) -> list[str]:
        """The `count` values of a grid."""
        if self.count is None:
            raise SweepError(f"{self}: say how many values a grid takes, such as {self} in 5")
        found = [self._between(i / (self.count - 1)) for i in range(self.count)]
        return list(dict.fromkeys(self._text(round(x) if self.whole else x) for x in found))

    def _between(self, share: float) -> float:
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def _text(self, x: float) -> str:
        return f"{number(x, 6)} {self.unit}".rstrip()

    def __str__(self) -> str:
        ends = f"{number(self.low, 12)}..{number(self.high, 12)} {self.unit}".rstrip()
        more = f" in {self.count}" if self.count is not None else ""
        return f"{ends}{' log' * self.log}{' whole' * self.whole}{more}"


@dataclass(frozen=True)
class Axis:
    """A key and what it takes."""

    key: str
    values: tuple[str, ...] | Range
    names: tuple[str, ...] = ()
    """Of its values, one by one; empty where they have none."""

    def __str__(self) -> str:
        if isinstance(self.values, Range):
            return f"{self.key}={self.values}"
        names = [f"{name}:" for name in self.names] or [""] * len(self.values)
        return f"{self.key}={','.join(n + v for n, v in zip(names, self.values, strict=True))}"

    @property
    def named(self) -> dict[str, str]:
        """The name of each value; empty where they have none."""
        return dict(zip(self.values, self.names, strict=True)) if self.names else {}  # type: ignore[arg-type]

    def listed(self) -> tuple[str, ...]:
        """Its values; of a range as many as it says."""
        return tuple(self.values.values()) if isinstance(self.values, Range) else self.values

    def at(self, share: float) -> str:
        """The value at a share of its side of the box, in [0, 1)."""
        if isinstance(self.values, Range):
            return self.values.at(share)
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    @classmethod
    def of(cls, key: str, values: object) -> Axis:
        """An axis from Python: a Range, or values as `Scenario.with_` takes them, perhaps by name."""
        if isinstance(values, Range):
            return cls(key, values)
        if isinstance(values, Mapping):
            names = tuple(map(str, values))
            if strange := next((n for n in names if not _NAME.fullmatch(n)), None):
                raise SweepError(f'{key}: "{strange}" cannot be a name: {_NAMES}')
            return replace(cls.of(key, list(values.values())), names=names)
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise SweepError(f"{key}: give a list of values or a Range, such as [{values!r}]")
        return cls(key, _distinct(key, [v if isinstance(v, str) else toml(v) for v in values]))


def axis_of_senders(base: Scenario, names: Sequence[str]) -> Axis:
    """The experiment's `[tcp]` with each of these senders (`experiment.mechanisms`), by their names.

    Raises UnknownSenderError, SweepError.
    """
    changed = {name: sender(name).changes for name in names}
    if len(changed) < len(names):
        raise SweepError(f"--tcp {','.join(names)}: a sender is given twice: give each once")
    own = dict(base.as_written.get("tcp", {}))
    tables = {
        name: {**own, **{key.removeprefix("tcp."): value for key, value in changes.items()}}
        for name, changes in changed.items()
    }
    return Axis.of("tcp", tables)


def axis_of(text: str, design: Design) -> Axis:
    """An axis as `--axis` takes it.

    >>> axis_of("a.rate=1 Mbit/s, 2 Mbit/s", "grid").values
    ('1 Mbit/s', '2 Mbit/s')
    >>> axis_of('q={ aqm = "red", limit = "9 packets" },{ aqm = "pie" }', "grid").values
    ('{ aqm = "red", limit = "9 packets" }', '{ aqm = "pie" }')
    >>> axis_of("a.rate=1..9 Mbit/s in 3", "grid").listed()
    ('1 Mbit/s', '5 Mbit/s', '9 Mbit/s')

    >>> axis_of("queue=mine:{ aqm = 'pie' }, its twin:{ aqm = 'red' }", "grid").names
    ('mine', 'its twin')

    A range is one where the design samples or `in N` follows it; `rtt=20..40 ms` in a grid is the one
    value that an experiment may write so. Raises SweepError.
    """
    key, equals, rest = text.partition("=")
    key, rest = key.strip(), rest.strip()
    if not equals or not key or not rest:
        raise SweepError(
            f'--axis {text}: write KEY=V1,V2,…, such as links.bottleneck.rate="2 Mbit/s,4 Mbit/s"'
        )
    found = _RANGE.fullmatch(rest)
    if found and (found["count"] or design in ("lhs", "sobol")):
        count = None if found["count"] is None else int(found["count"])
        ends = float(found["low"]), float(found["high"])
        return Axis(key, Range(*ends, found["unit"] or "", bool(found["log"]), bool(found["whole"]), count))
    names, values = _apart(key, _split(rest))
    return Axis(key, _distinct(key, values), names)


#: What stands before a value's colon; a quoted value has none.
_NAME = re.compile(r"[^\W_][\w .+/()-]*(?<! )")
_NAMED = re.compile(rf"({_NAME.pattern})\s*:\s*(.+)", re.DOTALL)
_NAMES = "write letters, digits, spaces and .+/()-_, a letter or digit first"


def _apart(key: str, texts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names and values; no names where values have none. Raises SweepError."""
    found = [_NAMED.fullmatch(text) for text in texts]
    if not any(found):
        return (), list(texts)
    if (bare := next((t for t, m in zip(texts, found, strict=True) if m is None), None)) is not None:
        raise SweepError(f"{key}: {bare} has no name, and others have one: write NAME:VALUE for all or none")
    pairs = [(m[1], m[2]) for m in found if m is not None]
    names = [name for name, _ in pairs]
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise SweepError(f'{key}: the name "{twice}" is used twice: give each value a name of its own')
    return tuple(names), [value for _, value in pairs]


def _distinct(key: str, values: Sequence[str]) -> tuple[str, ...]:
    if not values or not all(values):
        raise SweepError(
            f"{key}: {'an empty value' if values else 'no value'} among its values: give each one"
        )
    twice = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if twice is not None:
        raise SweepError(f"{key}: {twice} is given twice: give each value once")
    return tuple(values)


def _split(text: str) -> list[str]:
    """Cut at commas outside of quotes and brackets."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}":
            depth -= 1
        if c == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]


def design_of(text: str) -> Design:
    """The design of this name; raise SweepError where there is none."""
    if text not in DESIGNS:
        raise SweepError(f'there is no design "{text}": choose from {", ".join(DESIGNS)}')
    return next(design for design in DESIGNS if design == text)


def settings_of(axes: Sequence[Axis], design: Design, samples: int | None) -> list[tuple[str, ...]]:
    """The settings: a value of every axis each, in the order in which they are run.

    Raises SweepError where axes and design do not fit.
    """
    design_of(design)
    if not axes:
        raise SweepError("nothing is varied: give an axis, such as --axis links.bottleneck.rate=…")
    keys = [axis.key for axis in axes]
    twice = next((k for i, k in enumerate(keys) if k in keys[:i]), None)
    if twice is not None:
        raise SweepError(f"{twice} has two axes: give all of its values in one")
    if design in ("grid", "list"):
        if samples is not None:
            raise SweepError(
                f"--samples is for the designs lhs and sobol: a {design} has as many as it has values"
            )
        return _combined(axes, design)
    if samples is None:
        raise SweepError(f"say how many samples of the box {design} takes, such as --samples 64")
    if not 1 <= samples <= MOST_SETTINGS:
        raise SweepError(f"--samples {samples}: give a number from 1 to {MOST_SETTINGS:,}")
    draw = sobol if design == "sobol" else latin_hypercube
    rows = draw(len(axes), samples, f"sweep {design} {' '.join(keys)}")
    # Whole numbers and lists can meet twice.
    made = dict.fromkeys(tuple(a.at(u) for a, u in zip(axes, row, strict=True)) for row in rows)
    return list(made)


def _combined(axes: Sequence[Axis], design: Design) -> list[tuple[str, ...]]:
    lists = [axis.listed() for axis in axes]
    if design == "list":
        lengths = {axis.key: len(found) for axis, found in zip(axes, lists, strict=True)}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key} has {n}" for key, n in lengths.items())
            raise SweepError(
                f"a list takes as many values of every axis, and {shown}: give as many, or --design grid"
            )
        return list(zip(*lists, strict=True))
    if math.prod(map(len, lists)) > MOST_SETTINGS:
        raise SweepError(
            f"{' × '.join(str(len(v)) for v in lists)} settings are more than {MOST_SETTINGS:,}:"
            " give fewer values, or --design sobol"
        )
    return list(itertools.product(*lists))


def named_settings(
    keys: Sequence[str], settings: Sequence[Sequence[str]], names: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, ...]]:
    """Settings as they are shown: names in place of values, of the keys whose values have some.

    >>> named_settings(["q", "r"], [("{}", "1"), ("{}", "2")], {"q": {"{}": "mine"}})
    [('mine', '1'), ('mine', '2')]
    """
    return [tuple(names.get(k, {}).get(v, v) for k, v in zip(keys, s, strict=True)) for s in settings]


def measured(text: str) -> tuple[float, str] | None:
    """A value as a number in its unit's base, or None where it is none.

    >>> measured("2 Mbit/s"), measured("0.5"), measured("rio")
    ((2000000.0, 'bit/s'), (0.5, ''), None)
    """
    found = _QUANTITY.fullmatch(text.strip().strip('"'))
    if found is None or found[2] not in _UNITS:
        return None
    factor, unit = _UNITS[found[2]]
    return float(found[1]) * factor, unit


def column_of(texts: Sequence[str]) -> tuple[list[float] | list[str], str]:
    """Values of a key as numbers with their unit where all have one kind, else as texts.

    >>> column_of(["1 ms", "2 s"]), column_of(["red", "rio"])
    (([0.001, 2.0], 's'), (['red', 'rio'], ''))
    """
    numbers = [measured(text) for text in texts]
    if any(n is None for n in numbers):
        return list(texts), ""
    known = cast("list[tuple[float, str]]", numbers)
    units = {unit for _, unit in known}
    if len(units) > 1:
        return list(texts), ""
    return [x for x, _ in known], units.pop()


def short_keys(keys: Sequence[str]) -> list[str]:
    """Keys by their last words, as many as tell them apart.

    >>> short_keys(["links.a.queue.in.max_p", "links.a.queue.out.max_p", "links.a.rate"])
    ['in.max_p', 'out.max_p', 'rate']
    """
    found = []
    for key in keys:
        words = key.split(".")
        others = [k for k in keys if k != key]
        short = (
            next(
                tail
                for n in range(1, len(words) + 1)
                if not any(o == (tail := ".".join(words[-n:])) or o.endswith(f".{tail}") for o in others)
            )
            if others
            else words[-1]
        )
        found.append(short)
    return found
