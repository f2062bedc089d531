"""OpenConfig QoS: queue management profiles, the queues of interfaces that have them, and their buffers.

JSON as RFC 7951 writes it, with or without the names of modules. Source: openconfig-qos 0.11 and its
submodules qos-mem-mgmt and qos-interfaces; openconfig-if-ethernet (port-speed). Non-goals: buffers given
in microseconds, and shares of a pool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .profile import COLOURS, Buffer, Curve, Port, Profile, Unreadable

_KNOWN = {
    "min-threshold",
    "max-threshold",
    "min-threshold-percent",
    "max-threshold-percent",
    "enable-ecn",
    "drop",
    "weight",
    "max-drop-probability-percent",
}
_SPEED = {"MB": 1e6, "GB": 1e9}
Tree = Mapping[str, Any]


def without_modules(tree: Any) -> Any:
    """The same tree; `openconfig-qos:qos` is called `qos`."""
    if isinstance(tree, dict):
        return {key.rpartition(":")[2]: without_modules(value) for key, value in tree.items()}
    return [without_modules(value) for value in tree] if isinstance(tree, list) else tree


def ports(tree: Tree, needed: bool = True) -> list[Port]:
    """As `read` returns them; `needed`: there have to be profiles. Raises `Unreadable`."""
    qos = inside(tree, "qos")
    profiles = dict(named(qos, "queue-management-profiles", "queue-management-profile"))
    if not profiles and needed:
        raise Unreadable("qos/queue-management-profiles", "is not there: no WRED profile is in the file")
    buffers = {
        (name, queue): inside(fields, "config")
        for name, entry in named(qos, "buffer-allocation-profiles", "buffer-allocation-profile")
        for queue, fields in named(entry, "queues", "queue")
    }
    groups: dict[tuple[str, float | None, int | None, Buffer | None], list[str]] = {}
    for interface, entry in named(qos, "interfaces", "interface", key="interface-id"):
        output = inside(entry, "output")
        allocation = str(inside(output, "config").get("buffer-allocation-profile", ""))
        for queue, fields in named(output, "queues", "queue"):
            profile = inside(fields, "config").get("queue-management-profile")
            if profile is None:
                continue
            if profile not in profiles:
                where = f"qos/interfaces/interface[{interface}]/output/queues/queue[{queue}]"
                raise Unreadable(
                    where,
                    f'queue-management-profile "{profile}" is not there; there are: {", ".join(profiles)}',
                )
            said = buffers.get((allocation, queue), {})
            buffer = _buffer(said, f"{allocation}, queue {queue}")
            allotted = Buffer.of_openconfig(said) if {*said} - {"name"} else None
            groups.setdefault((profile, _rate(tree, interface), buffer, allotted), []).append(
                f"{interface}|{queue}"
            )
    found = [
        Port(_profile(name, profiles[name], buffer), tuple(queues), rate, buffer, allotted=allotted)
        for (name, rate, buffer, allotted), queues in groups.items()
    ]
    used = {port.profile.name for port in found}
    return [
        *found,
        *(Port(_profile(name, entry, None)) for name, entry in profiles.items() if name not in used),
    ]


def inside(tree: Tree, key: str) -> Tree:
    """The container below a key, empty where there is none. Raises `Unreadable`."""
    value = tree.get(key, {})
    if not isinstance(value, dict):
        raise Unreadable(key, "is no container")
    return value


def named(tree: Tree, container: str, entry: str, key: str = "name") -> Iterator[tuple[str, Tree]]:
    """The entries of a list, by name."""
    listed = inside(tree, container).get(entry, [])
    if not isinstance(listed, list) or not all(isinstance(e, dict) for e in listed):
        raise Unreadable(f"{container}/{entry}", "is no list of entries")
    for each in listed:
        name = each.get(key, inside(each, "config").get(key))
        if not isinstance(name, str):
            raise Unreadable(f"{container}/{entry}", f"an entry has no {key}")
        yield name, each


def _profile(name: str, entry: Tree, buffer: int | None) -> Profile:
    where = f"qos/queue-management-profiles/queue-management-profile[{name}]"
    kind = next((k for k in ("wred", "red") if k in entry), None)
    fields = inside(inside(inside(entry, kind), "uniform"), "config") if kind else {}
    notes = [f"{key} is not known and was not read" for key in sorted(set(fields) - _KNOWN)]
    drop, ecn = _flag(where, fields, "drop"), _flag(where, fields, "enable-ecn")
    if not drop and not ecn:
        return Profile(name, where, {}, notes=tuple(notes))
    weight = int(number(where, fields, "weight", 0))
    if "weight" not in fields:
        notes.append("weight is not given, and each switch has its own: taken as 0, the queue as it is")
    if weight > 30:
        raise Unreadable(where, f"weight = {weight}: write the exponent, 0 to 30")
    percent = number(where, fields, "max-drop-probability-percent", 100)
    if percent > 100:
        raise Unreadable(where, f"max-drop-probability-percent = {percent:g}: write 0 to 100")
    low, high = (_threshold(where, fields, f"{end}-threshold", buffer) for end in ("min", "max"))
    if high < low:
        raise Unreadable(where, f"max-threshold = {high} is below min-threshold = {low}: swap them")
    # Uniform: every colour alike.
    curves = dict.fromkeys(COLOURS, Curve(low, high, percent / 100))
    return Profile(name, where, curves if drop else {}, curves if ecn else {}, weight, tuple(notes))


def _threshold(where: str, fields: Tree, key: str, buffer: int | None) -> int:
    share = fields.get(f"{key}-percent")
    if (share is None) == (key not in fields):
        raise Unreadable(where, f"write either {key} in bytes or {key}-percent")
    if share is None:
        return int(number(where, fields, key, 0))
    if buffer is None:
        raise Unreadable(
            where, f"{key}-percent is of a buffer that the file does not give in bytes: write {key}"
        )
    return int(buffer * number(where, fields, f"{key}-percent", 0) / 100)


def _flag(where: str, fields: Tree, key: str) -> bool:
    value = fields.get(key, False)
    if not isinstance(value, bool):
        raise Unreadable(where, f"{key} = {value!r}: write true or false")
    return value


def number(where: str, fields: Tree, key: str, default: float) -> float:
    """RFC 7951 §6.1 writes 64-bit numbers as text."""
    value = fields.get(key, default)
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,15}(\.\d+)?", str(value)):
        raise Unreadable(where, f"{key} = {str(value)[:40]!r} is no number of 0 or more")
    return float(str(value))


def _buffer(fields: Tree, name: str) -> int | None:
    """The queue's own buffer, and its share of the shared pool if that is a number of bytes."""
    where = f"buffer-allocation-profile {name}"
    if "dedicated-buffer" not in fields and "static-shared-buffer-limit" not in fields:
        return None
    own = number(where, fields, "dedicated-buffer", 0)
    if fields.get("use-shared-buffer") is True:
        if not str(fields.get("shared-buffer-limit-type", "")).endswith("STATIC"):
            return None
        own += number(where, fields, "static-shared-buffer-limit", 0)
    return int(own)


def _rate(tree: Tree, interface: str) -> float | None:
    """`SPEED_100GB` is 100 Gbit/s."""
    for name, entry in named(tree, "interfaces", "interface"):
        if name == interface:
            speed = str(inside(inside(entry, "ethernet"), "config").get("port-speed", "")).rpartition(":")[2]
            read = re.fullmatch(r"SPEED_(\d{1,4})(MB|GB)", speed)
            return float(read[1]) * _SPEED[read[2]] if read else None
    return None
