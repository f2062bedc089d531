"""What a queue may take of a switch's buffer, as a configuration says it, and how each format writes it.

Bytes of its own, and of a shared pool either so many or, with n, 2ⁿ of what is free of it. They stay apart: a
share of a pool that all queues have is no buffer of one. SONiC's profiles are of a pool; OpenConfig's pools
are the switch's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Buffer", "add_sonic", "openconfig_fields", "unsaid"]

_DYNAMIC, _STATIC = "DYNAMIC_BASED_ON_SCALING_FACTOR", "STATIC"


@dataclass(frozen=True)
class Buffer:
    """What a queue may take."""

    reserved: int = 0
    """Bytes of its own."""
    static: int | None = None
    """Bytes of the pool at most."""
    dynamic: int | None = None
    """n: 2ⁿ of what is free of the pool."""
    name: str = ""
    """SONiC's profile."""
    pool: str = ""
    """SONiC's pool, which a profile needs; empty where the file has none."""
    pool_fields: tuple[tuple[str, str], ...] = ()
    """What the file says of the pool."""

    @property
    def shares(self) -> bool:
        """Whether it takes of a pool."""
        return self.static is not None or self.dynamic is not None

    @classmethod
    def of_openconfig(cls, fields: Mapping[str, Any]) -> Buffer:
        """From a queue of a buffer-allocation-profile whose numbers have been checked."""
        reserved = int(float(str(fields.get("dedicated-buffer", 0))))
        if fields.get("use-shared-buffer") is not True:
            return cls(reserved)
        kind = str(fields.get("shared-buffer-limit-type", ""))
        if kind.endswith(_STATIC):
            return cls(reserved, static=int(float(str(fields.get("static-shared-buffer-limit", 0)))))
        factor = fields.get("dynamic-limit-scaling-factor")
        return cls(reserved, dynamic=factor if isinstance(factor, int) else None)


def add_sonic(tree: dict[str, Any], queue: str, buffer: Buffer) -> bool:
    """Add a queue's buffer to SONiC's tables; False where that cannot be said."""
    if not buffer.pool or not buffer.shares:
        return False
    threshold = {"static_th": str(buffer.static)} if buffer.static is not None else {}
    threshold |= {"dynamic_th": str(buffer.dynamic)} if buffer.dynamic is not None else {}
    fields = {"pool": buffer.pool, "size": str(buffer.reserved), **threshold}
    tree["BUFFER_PROFILE"][buffer.name] = fields
    if buffer.pool_fields:
        tree["BUFFER_POOL"][buffer.pool] = dict(buffer.pool_fields)
    tree["BUFFER_QUEUE"][queue] = {"profile": buffer.name}
    return True


def openconfig_fields(buffer: Buffer) -> dict[str, Any]:
    """Leaves of a queue of a buffer-allocation-profile."""
    fields: dict[str, Any] = {
        "dedicated-buffer": str(buffer.reserved),
        "use-shared-buffer": buffer.shares,
    }
    if buffer.static is not None:
        fields["shared-buffer-limit-type"] = f"openconfig-qos:{_STATIC}"
        fields["static-shared-buffer-limit"] = buffer.static
    elif buffer.dynamic is not None:
        fields["shared-buffer-limit-type"] = f"openconfig-qos:{_DYNAMIC}"
        fields["dynamic-limit-scaling-factor"] = buffer.dynamic
    return fields


def unsaid(to: str, queues: str, buffer: Buffer) -> str:
    """What of a buffer the other format does not have, and what to do; empty where it has all of it."""
    if to == "sonic":
        if buffer.pool and buffer.shares:
            return ""
        return (
            f"{queues}: the buffer ({buffer.reserved:,} B of its own) is not written: SONiC's are of a pool,"
            " and the switch's pools are not known here: give the queue a BUFFER_PROFILE of one there"
        )
    if buffer.pool_fields:
        return (
            f"{queues}: the pool {buffer.pool}, of which it takes, is not written: OpenConfig's pools are the"
            " switch's own"
        )
    return ""
