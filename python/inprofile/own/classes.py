"""The classes that a mechanism in Python derives from, what it declares, and the code that it reaches."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from .. import _internal

Rate = typing.NewType("Rate", float)
"""A parameter in bits per second: `"2 Mbit/s"` in a file, `2e6` in the class."""
Duration = typing.NewType("Duration", float)
"""A parameter in seconds: `"20 ms"` in a file, `0.02` in the class."""
Bytes = typing.NewType("Bytes", int)
"""A parameter in bytes: `"1500 B"` in a file, `1500` in the class."""


@dataclass(frozen=True)
class Declared:
    """The arguments of `parameter`."""

    default: Any
    least: float | None
    most: float | None
    doc: str


def parameter(
    default: Any = ..., *, least: float | None = None, most: float | None = None, doc: str = ""
) -> Any:
    """A parameter that needs more than a plain default: bounds, and its meaning.

    Without a default it has to be given. `least` and `most`, both allowed, are in bit/s, s or B where it has
    a unit.
    """
    return Declared(default, least, most, doc)


class Mechanism:
    """The base of markers and queue disciplines.

    One instance serves one place in one run. All it keeps belongs in its attributes, made in `setup`.
    """

    name: ClassVar[str]
    """The word in an experiment file; default: the class's name in lower case with underscores."""
    source: ClassVar[str] = "written in Python"
    """Where it comes from, for `inprofile list`."""
    oracle: ClassVar[Literal["rtt", "window"] | None] = None
    """The oracle's signals it receives, with this topic: the flows' RTTs in s, or windows in bytes."""
    sends: ClassVar[bool] = False
    """Whether its ticks send signals."""
    tune: ClassVar[Mapping[str, str] | None] = None
    """The parameters that `inprofile compare` tunes, each with a range (`"2..200 log"`, `"10..500 ms"`), or a
    share of T, the queue-delay target of every scheme (`"1/2 T as time"`). `limit` is the queue itself's."""

    link_rate: float | None
    """Rate of the link behind the queue in bit/s, if there is one."""
    contract: float | None
    """The flow's contract in bit/s, if it has one."""
    packet_size: int
    """Size of a full packet on the wire, in bytes."""
    limit: float | None
    """The queue's limit in bytes, if there is one; a limit in packets counts full ones."""

    def setup(self) -> None:
        """Make the first state; parameters are attributes already.

        Raise ValueError for values that do not go together.
        """


class Marker(Mechanism):
    """A marker: decides on the colour of each packet that passes.

    Besides `mark` a class may have these methods, which are called where they are there:

    - `observe(now, packet, direction)`: sees data before its verdict (`"forward"`), and acknowledgements
      (`"reverse"`)
    - `tick(now, outbox)`: called at the start and then at each time, in seconds, that it returns; None: never
      again. `outbox.append((topic, value))` or `(topic, value, flow)` sends a signal where `sends = True`
    - `signal(now, topic, value, flow)`: a signal has arrived; flow is None where it is about all
    - `gauges(now)`: a dict of figures for monitors; `flow_gauges(now)`: the same by `(flow, name)`
    - `stats()`: a dict of counts
    """

    def mark(self, now: float, packet: _internal.Packet, rng: _internal.Random) -> Any:
        """Return `"in"`, `"out"`, `"red"` or `"drop"`; or one of these and a dict of figures behind it.

        `now` is in seconds. Random numbers come from `rng` alone: `rng.random()`, `rng.below(n)`.
        """
        raise NotImplementedError


class Aqm(Mechanism):
    """A queue discipline: decides which packets join the queue, and which leave it.

    `arrive`, `depart` or both are written; the other methods are those of `Marker`. A packet that does not
    fit is dropped whatever is returned.
    """

    def arrive(
        self, now: float, packet: _internal.Packet, queue: _internal.Queue, rng: _internal.Random
    ) -> Any:
        """Return `"accept"`, `"mark"` or `"drop"`; figures as for `Marker.mark`.

        `"mark"` is ECN's: a packet whose transport has none is dropped. The queue does not hold
        the packet yet.
        """
        raise NotImplementedError

    def depart(
        self,
        now: float,
        packet: _internal.Packet,
        waited: float,
        queue: _internal.Queue,
        rng: _internal.Random,
    ) -> Any:
        """Return `"send"`, `"mark"` or `"drop"` for the packet whose turn it is, in the queue for `waited` s.

        The queue does not hold the packet any more.
        """
        raise NotImplementedError


def digest(cls: type) -> str:
    """SHA-256 of the file of the class, or where there is none of the code that its methods reach."""
    import hashlib  # a quarter of what importing this package takes

    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return hashlib.sha256(Path(file).read_bytes() + cls.__qualname__.encode()).hexdigest()
    reached = sorted(_reached(cls, set()))
    return hashlib.sha256("\n".join(reached).encode()).hexdigest()


def source(cls: type) -> tuple[str, str | None]:
    """The name and text of the file of the class; without a name the class's own text, or None."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return Path(file).name, Path(file).read_text("utf-8", errors="replace")
    try:
        return "", inspect.getsource(cls)
    except (OSError, TypeError):
        return "", None


def _reached(of: Any, seen: set[int]) -> Iterator[str]:
    """The code of a class or function and of those it names in its module, and the plain values they name."""
    if id(of) in seen:
        return
    seen.add(id(of))
    if isinstance(of, type):
        for base in of.__mro__[:-1]:
            if base not in (Marker, Aqm, Mechanism):
                for name, value in sorted(vars(base).items()):
                    functions = _functions(value)
                    for function in functions:
                        yield from _reached(function, seen)
                    if not functions and not name.startswith("__"):
                        yield f"{base.__name__}.{name}={_text(value)}"
    elif isinstance(of, types.FunctionType):
        for code in _nested(of.__code__):
            constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
            yield f"{code.co_name}:{code.co_code.hex()}:{code.co_names}:{_text(constants)}"
        yield f"{of.__name__}({_text(of.__defaults__)}, {_text(of.__kwdefaults__)})"
        for name, value in _named(of):
            if isinstance(value, types.FunctionType | type) and value.__module__ == of.__module__:
                yield from _reached(value, seen)
            elif isinstance(value, _PLAIN):
                yield f"{name}={_text(value)}"


#: Values whose text says what they are.
_PLAIN = (int, float, str, bytes, tuple, list, dict, set, frozenset)


def _functions(value: Any) -> list[Any]:
    """The functions behind what is in a class's body."""
    match value:
        case types.FunctionType():
            return [value]
        case staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [f for f in (value.fget, value.fset, value.fdel) if f is not None]
        case functools.cached_property():
            return [value.func]
    return []


def _named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that a function uses from outside: in its module, and in the functions around it."""
    for code in _nested(function.__code__):
        for name in code.co_names:
            yield name, function.__globals__.get(name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _text(value: Any) -> str:
    """A value's text, the same in every process: without addresses, sets in order.

    >>> _text({"b", "a"}), _text([{2: object}])
    ("{'a', 'b'}", "[{2: <class 'object'>}]")
    """
    match value:
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(_text, value))) + "}"
        case tuple():
            return "(" + ", ".join(map(_text, value)) + ")"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _nested(inner)
