"""The state of a running inprofiled at one moment, however it was asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..own.engine import __version__

__all__ = [
    "ANSWER_TIMEOUT",
    "COLOURS",
    "LARGEST",
    "Counts",
    "Look",
    "Router",
    "RouterError",
    "measured",
    "too_long",
    "understood",
]

COLOURS = ("in", "out", "red")
ANSWER_TIMEOUT = 10.0
"""So many seconds a router may take to answer."""
LARGEST = 256 << 20
"""The longest answer that is read, in bytes: ten thousand customers take ten million."""


class RouterError(OSError):
    """A router that is not there, may not be asked, or is not understood; the text says what to do."""


@dataclass(frozen=True)
class Counts:
    """A class or a customer in one direction, since the router's start or since he came."""

    kind: str
    """`class` or `customer`."""
    direction: str
    name: str
    arrived: float
    """In bytes."""
    sent: tuple[float, ...]
    """In bytes, as IN, OUT and red."""
    dropped: Mapping[str, float]
    """Packets by cause."""
    marked: float
    """Packets marked CE; NaN where they are not counted."""
    waiting: float
    """Packets that wait now."""
    delays: float = math.nan
    """Packets whose delay from arrival to departure was measured; NaN where none is."""
    delay_sum: float = math.nan
    """The sum of their delays, in s."""
    p99: float = math.nan
    """The 99th percentile of all of them, in s."""
    contract: float | None = None
    """In bit/s."""
    group: str | None = None
    gauges: Mapping[str, float] = field(default_factory=dict)
    """State of the discipline or of the marker: averages, probabilities, tokens."""


@dataclass(frozen=True)
class Look:
    """A router at one moment."""

    version: str
    """Empty for one that does not say."""
    uptime: float
    """In s."""
    mode: str
    """`normal`, `bypass` or `failed`."""
    trouble: tuple[str, ...]
    ports: tuple[tuple[str, str], ...]
    """Interfaces, each with its state."""
    rows: tuple[Counts, ...]


class Router(Protocol):
    """A way to ask."""

    name: str
    """As it was given."""

    def look(self) -> Look:
        """The router now. Raises RouterError."""
        ...


def understood(name: str, read: Callable[[], Look], version: str) -> Look:
    """The snapshot in an answer; one that lacks a key is of another version. Raises RouterError."""
    try:
        return read()
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        lacks = f"lacks {error}" if isinstance(error, LookupError) else f"cannot be understood ({error})"
        which = f"version {version}" if version else "an older version"
        raise RouterError(
            f"{name}: what inprofiled says {lacks}: it is {which}, and this is {__version__};"
            " look at it with the inprofile of its own version"
        ) from None


def too_long(name: str) -> str:
    """Why an answer is not read: half of it would be another router."""
    return (
        f"{name} answers more than {LARGEST >> 20} MiB, as inprofiled never does: is another program there?"
        " Give the socket that control.socket names, or the address of metrics.listen"
    )


def measured(packets: float, value: float | None) -> float:
    """A figure over packets; NaN where there were none."""
    return float(value) if packets and value is not None else math.nan
