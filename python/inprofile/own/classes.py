"""The classes that a mechanism in Python derives from, and what it declares."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass
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
