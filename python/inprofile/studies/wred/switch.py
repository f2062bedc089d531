"""A switch's QoS: WRED profiles and, beside them, policers, schedulers, and maps from code points to queues.

Rates are per second and bursts sizes, both in bytes or in packets. A policer's colours are those of RFC 2697
(`sr_tcm`; without an excess burst it has two, green and red) and RFC 2698 (`tr_tcm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .profile import Port

FORWARD, DROP = "forward", "drop"


@dataclass(frozen=True)
class Policer:
    """A meter with what becomes of each colour."""

    mode: str
    """`sr_tcm` or `tr_tcm`."""
    cir: float
    cbs: int
    pir: float | None = None
    """`tr_tcm` alone has one."""
    pbs: int | None = None
    """Of `sr_tcm` the excess burst; None: there is none."""
    aware: bool = False
    """Whether the colour that a packet comes with counts."""
    unit: str = "bytes"
    """`bytes` or `packets`."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """By colour, where it is not `forward`: `drop`, `dscp 10` to remark, or a word of the switch."""

    @property
    def two_coloured(self) -> bool:
        """One bucket: what finds it empty is red."""
        return self.mode == "sr_tcm" and not self.pbs


@dataclass(frozen=True)
class Scheduler:
    """How a queue is served."""

    kind: str
    """`STRICT`, `DWRR` (by bytes) or `WRR` (by packets)."""
    weight: int = 1
    cir: float | None = None
    """The rate that it gets at least."""
    cbs: int | None = None
    pir: float | None = None
    """The rate that it gets at most."""
    pbs: int | None = None
    unit: str = "bytes"


@dataclass(frozen=True)
class Switch:
    """What a switch's configuration says of QoS. Queues are a port and a queue, `Ethernet0|3`."""

    ports: tuple[Port, ...] = ()
    """Queues with a WRED profile, or with a known buffer."""
    policers: Mapping[str, Policer] = field(default_factory=dict)
    schedulers: Mapping[str, Scheduler] = field(default_factory=dict)
    served: Mapping[str, str] = field(default_factory=dict)
    """By queue, its scheduler."""
    dscp_maps: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By name: code points with their traffic classes."""
    queue_maps: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By name: traffic classes with their queues."""
    bound: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """By port: its map of code points and its map of traffic classes."""
    lost: tuple[str, ...] = ()
    """What the file says of QoS beyond this."""


def queue_of(text: str) -> tuple[str, str]:
    """The port and the queue of `Ethernet0|3`; both empty where it is none."""
    port, _, queue = text.rpartition("|")
    return (port, queue) if port and queue else ("", "")
