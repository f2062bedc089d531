"""SONiC's `config_db.json`: WRED_PROFILE, and the queues, ports and buffers that it is used with.

Source: SONiC's YANG models (sonic-wred-profile, sonic-queue, sonic-port, sonic-buffer-queue, sonic-
buffer-profile, sonic-buffer-pool); SAI, saiwred.h: a weight that is not set is 0, so that the average is
the queue itself. Non-goals: virtual output queues of a chassis, and buffer pools as the switch computes
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...metrics.quantity import quantity
from .profile import COLOURS, Buffer, Curve, Port, Profile, Unreadable

_ECN = {
    "ecn_none": (),
    "ecn_green": ("green",),
    "ecn_yellow": ("yellow",),
    "ecn_red": ("red",),
    "ecn_green_yellow": ("green", "yellow"),
    "ecn_green_red": ("green", "red"),
    "ecn_yellow_red": ("yellow", "red"),
    "ecn_all": COLOURS,
}
_KNOWN = {
    "ecn",
    *(f"wred_{c}_enable" for c in COLOURS),
    *(f"{c}_{what}" for c in COLOURS for what in ("min_threshold", "max_threshold", "drop_probability")),
    *(f"ecn_{c}_{what}" for c in COLOURS for what in ("min_threshold", "max_threshold", "mark_probability")),
}
_YES = {"true": True, "false": False}
Table = Mapping[str, Any]


def ports(tree: Table) -> list[Port]:
    """As `read` returns them. Raises `Unreadable`."""
    profiles = {name: _profile(name, fields) for name, fields in table(tree, "WRED_PROFILE").items()}
    groups: dict[tuple[str, float | None, int | None, tuple[str, ...], Buffer | None], list[str]] = {}
    buffers = dict(by_queue(table(tree, "BUFFER_QUEUE"), "profile", "BUFFER_QUEUE"))
    for queue, name in by_queue(table(tree, "QUEUE"), "wred_profile", "QUEUE"):
        if name not in profiles:
            there = ", ".join(sorted(profiles)) or "none"
            raise Unreadable(
                f"QUEUE|{queue}", f'wred_profile "{name}" is not in WRED_PROFILE; there are: {there}'
            )
        buffer, notes, allotted = buffer_of(tree, buffers.get(queue))
        rate = _rate(tree, queue.rpartition("|")[0])
        groups.setdefault((name, rate, buffer, notes, allotted), []).append(queue)
    found = [
        Port(profiles[name], tuple(queues), rate, buffer, notes, allotted)
        for (name, rate, buffer, notes, allotted), queues in groups.items()
    ]
    used = {port.profile.name for port in found}
    return [*found, *(Port(profile) for name, profile in profiles.items() if name not in used)]


def served(tree: Table) -> dict[str, str]:
    """By queue, the scheduler that QUEUE gives it. Raises `Unreadable`."""
    return dict(by_queue(table(tree, "QUEUE"), "scheduler", "QUEUE"))


def table(tree: Table, name: str) -> Table:
    """A table of named entries; empty where there is none. Raises `Unreadable`."""
    table = tree.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(v, dict) for v in table.values()):
        raise Unreadable(name, "is no table of named entries")
    return table


def _reference(text: object) -> str:
    """A name, also as old files have it: `[WRED_PROFILE|name]`."""
    return str(text).strip("[]").rpartition("|")[2]


def by_queue(table: Table, key: str, name: str) -> Iterator[tuple[str, str]]:
    """Each queue (`Ethernet0|3`) with what `key` names; an entry is for ports and a range of queues."""
    for entry, fields in table.items():
        if not fields.get(key):
            continue
        names, _, queues = entry.rpartition("|")
        bounds = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", queues)
        if not names or not bounds:
            raise Unreadable(
                f"{name}|{entry}", 'is no queue: write a port and queues, such as "Ethernet0|3-4"'
            )
        first, last = int(bounds[1]), int(bounds[2] or bounds[1])
        if last < first:
            raise Unreadable(
                f"{name}|{entry}", f"queues {first} to {last}: the first is greater than the last"
            )
        for port in names.split(","):
            for queue in range(first, last + 1):
                yield f"{port}|{queue}", _reference(fields[key])


def _profile(name: str, fields: Table) -> Profile:
    where = f"WRED_PROFILE|{name}"
    notes = [f"{key} is not known and was not read" for key in sorted(set(fields) - _KNOWN)]
    ecn = fields.get("ecn", "ecn_none")
    if ecn not in _ECN:
        raise Unreadable(where, f'ecn = "{ecn}": write one of {", ".join(_ECN)}')
    drop, mark = {}, {}
    for colour in COLOURS:
        enabled = fields.get(f"wred_{colour}_enable", "false")
        if str(enabled).lower() not in _YES:
            raise Unreadable(where, f'wred_{colour}_enable = "{enabled}": write true or false')
        own = any(f"ecn_{colour}_{what}_threshold" in fields for what in ("min", "max"))
        if (own or f"ecn_{colour}_mark_probability" in fields) and colour not in _ECN[ecn]:
            raise Unreadable(
                where, f'ecn_{colour}_… is set, and ecn = "{ecn}" marks no {colour}: write ecn_{colour}'
            )
        if _YES[str(enabled).lower()]:
            drop[colour] = _curve(where, fields, f"{colour}_", "drop_probability")
        elif colour not in _ECN[ecn] and any(f"{colour}_{w}_threshold" in fields for w in ("min", "max")):
            notes.append(f"{colour} has thresholds, and wred_{colour}_enable is false: they do nothing")
        if colour in _ECN[ecn]:
            mark[colour] = _curve(where, fields, f"{colour}_", "drop_probability", f"ecn_{colour}_")
    return Profile(name, where, drop, mark, notes=tuple(notes))


def _curve(where: str, fields: Table, prefix: str, probability: str, own: str = "") -> Curve:
    """A curve; of marks each attribute that is not their `own` is that of drops (SAI, saiwred.h)."""
    keys = [
        next((k for k in (f"{own}{mine}", f"{prefix}{theirs}") if own and k in fields), f"{prefix}{theirs}")
        for mine, theirs in (
            ("min_threshold", "min_threshold"),
            ("max_threshold", "max_threshold"),
            ("mark_probability", probability),
        )
    ]
    low, high = (number(where, fields, key, None) for key in keys[:2])
    percent = number(where, fields, keys[2], 100)
    if percent > 100:
        raise Unreadable(where, f"{keys[2]} = {percent}: write 0 to 100, in percent")
    if high < low:
        raise Unreadable(where, f"{keys[1]} = {high} is below {keys[0]} = {low}: swap them")
    return Curve(low, high, percent / 100)


def number(where: str, fields: Table, key: str, default: int | None) -> int:
    """A whole number of an entry; without a default it has to be there. Raises `Unreadable`."""
    text = fields.get(key, default)
    if text is None:
        raise Unreadable(where, f"{key} is missing: its colour is enabled; write a number of bytes")
    if not re.fullmatch(r"\d{1,15}", str(text)):
        raise Unreadable(where, f'{key} = "{str(text)[:40]}" is no whole number')
    return int(str(text))


def _rate(tree: Table, port: str) -> float | None:
    """PORT's speed is in Mbit/s."""
    fields = table(tree, "PORT").get(port, {})
    return 1e6 * number(f"PORT|{port}", fields, "speed", None) if "speed" in fields else None


def buffer_of(tree: Table, name: str | None) -> tuple[int | None, tuple[str, ...], Buffer | None]:
    """Bytes that one queue may take while it alone is congested, how that was computed, and what is said.

    With `dynamic_th` n a queue may take 2ⁿ of what is free of the pool: x = 2ⁿ·(pool − x). SAI,
    SAI_BUFFER_PROFILE_ATTR_SHARED_DYNAMIC_TH.
    """
    if name is None:
        return None, (), None
    where = f"BUFFER_PROFILE|{name}"
    fields = table(tree, "BUFFER_PROFILE").get(name)
    if fields is None:
        raise Unreadable(where, "is not there, and a BUFFER_QUEUE names it")
    reserved = number(where, fields, "size", 0)
    pool_name = _reference(fields.get("pool", ""))
    pool = table(tree, "BUFFER_POOL").get(pool_name, {})
    known = tuple(sorted((str(key), str(value)) for key, value in pool.items()))
    said = Buffer(reserved, name=name, pool=pool_name, pool_fields=known)
    if "static_th" in fields:
        shared = number(where, fields, "static_th", None)
        note = f"buffer: {where}, size and static_th"
        return reserved + shared, (note,), replace(said, static=shared)
    if "dynamic_th" not in fields:
        note = f"buffer: {where} and its pool do not say how much a queue may take"
        return None, (note,), said
    power = re.fullmatch(r"(-?\d{1,2})", str(fields["dynamic_th"]))
    if not power or not -8 <= int(power[1]) <= 8:
        raise Unreadable(where, f'dynamic_th = "{fields["dynamic_th"]}": write a whole number from -8 to 8')
    said = replace(said, dynamic=int(power[1]))
    if "size" not in pool:
        return None, (f"buffer: {where} and its pool do not say how much a queue may take",), said
    alpha = 2.0 ** int(power[1])
    size = number(f"BUFFER_POOL|{pool_name}", pool, "size", None)
    shared = int(size * alpha / (1 + alpha))
    free = f"2^{power[1]} of what is free of {quantity(size, 'B')}"
    note = f"buffer: {where}, {free}, while no other queue is congested"
    return reserved + shared, (note,), said
