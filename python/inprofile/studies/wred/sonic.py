"""SONiC's `config_db.json`: WRED_PROFILE and what it is used with, and the QoS tables beside it.

Source: SONiC's YANG models (sonic-wred-profile, sonic-queue, sonic-port, sonic-buffer-queue, sonic-
buffer-profile, sonic-buffer-pool); SAI, saiwred.h: a weight that is not set is 0, so that the average is
the queue itself. Non-goals: virtual output queues of a chassis, and buffer pools as the switch computes
them.

Source: SONiC's YANG models (sonic-policer, sonic-scheduler, sonic-queue, sonic-dscp-tc-map, sonic-tc-queue-
map, sonic-port-qos-map); swss, policerorch and qosorch: `cir` and `pir` are bytes or packets a second, and of
`sr_tcm` `pbs` is the excess burst. A policer that no rule of an ACL names is bound to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...metrics.quantity import quantity
from .profile import (
    COLOURS,
    FORWARD,
    Buffer,
    Curve,
    Policer,
    Port,
    Profile,
    Scheduler,
    Switch,
    Unreadable,
    queue_of,
)

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


Tree = dict[str, Any]

TABLES = ("POLICER", "SCHEDULER", "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "PORT_QOS_MAP")
#: QoS that is not carried over: it is said so.
_OTHERS = (
    "DOT1P_TO_TC_MAP",
    "MPLS_TC_TO_TC_MAP",
    "DSCP_TO_FC_MAP",
    "EXP_TO_FC_MAP",
    "TC_TO_PRIORITY_GROUP_MAP",
    "TC_TO_DSCP_MAP",
    "TC_TO_DOT1P_MAP",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "BUFFER_PG",
    "PORT_STORM_CONTROL",
)
_POLICER = {
    *("meter_type", "mode", "color", "color_source", "cir", "cbs", "pir", "pbs"),
    *(f"{c}_packet_action" for c in COLOURS),
}
_SCHEDULER = {"type", "weight", "meter_type", "cir", "cbs", "pir", "pbs"}
_BINDING = {"dscp_to_tc_map", "tc_to_queue_map"}
_ACTIONS = ("drop", "forward", "copy", "copy_cancel", "trap", "log", "deny", "transit")


def read(tree: Table, served: Mapping[str, str]) -> Switch:
    """Everything but the ports; `served` has each queue's scheduler. Raises Unreadable."""
    lost: list[str] = []

    def each(table: str, one: Callable[[str, Table, list[str]], Any]) -> dict[str, Any]:
        entries = tree.get(table, {})
        if not isinstance(entries, dict) or not all(isinstance(v, dict) for v in entries.values()):
            raise Unreadable(table, "is no table of named entries")
        return {name: one(f"{table}|{name}", fields, lost) for name, fields in entries.items()}

    schedulers = each("SCHEDULER", _scheduler)
    dscp_maps, queue_maps = each("DSCP_TO_TC_MAP", _dscp_map), each("TC_TO_QUEUE_MAP", _queue_map)
    for queue, name in served.items():
        _named(f"QUEUE|{queue}", "scheduler", name, schedulers, "SCHEDULER")
    bound: dict[str, tuple[str | None, str | None]] = {}
    for ports, (dscp, queues) in each("PORT_QOS_MAP", _binding).items():
        where = f"PORT_QOS_MAP|{ports}"
        _named(where, "dscp_to_tc_map", dscp, dscp_maps, "DSCP_TO_TC_MAP")
        _named(where, "tc_to_queue_map", queues, queue_maps, "TC_TO_QUEUE_MAP")
        if dscp or queues:
            bound |= dict.fromkeys(ports.split(","), (dscp, queues))
    lost += [f"{name} is not carried over" for name in _OTHERS if tree.get(name)]
    return Switch(
        policers=each("POLICER", _policer),
        schedulers=schedulers,
        served=dict(served),
        dscp_maps=dscp_maps,
        queue_maps=queue_maps,
        bound=bound,
        lost=tuple(lost),
    )


def written(switch: Switch, faults: list[str]) -> Tree:
    """These tables, and QUEUE with the schedulers; `faults` grows by what they cannot say."""
    tree: Tree = {name: {} for name in (*TABLES, "QUEUE")}
    for name, policer in switch.policers.items():
        tree["POLICER"][name] = _policer_fields(name, policer, faults)
    for name, scheduler in switch.schedulers.items():
        tree["SCHEDULER"][name] = _scheduler_fields(name, scheduler, faults)
    for queue, name in switch.served.items():
        port, number = queue_of(queue)
        if not number.isdigit():
            faults.append(f'{queue}: SONiC\'s queues have numbers: write a port and a number, "Ethernet0|3"')
            continue
        tree["QUEUE"][f"{port}|{number}"] = {"scheduler": name}
    for name, classes in switch.dscp_maps.items():
        tree["DSCP_TO_TC_MAP"][name] = {str(dscp): str(tc) for dscp, tc in classes.items()}
    for name, queues in switch.queue_maps.items():
        if strange := [q for q in queues.values() if not q.isdigit()]:
            faults.append(f"{name}: SONiC's queues have numbers, and this has {', '.join(strange)}")
        tree["TC_TO_QUEUE_MAP"][name] = {str(tc): queue for tc, queue in queues.items()}
    for port, (dscp, queues_of) in switch.bound.items():
        named = {"dscp_to_tc_map": dscp, "tc_to_queue_map": queues_of}
        tree["PORT_QOS_MAP"][port] = {key: name for key, name in named.items() if name is not None}
    return {name: table for name, table in tree.items() if table}


def _policer_fields(name: str, policer: Policer, faults: list[str]) -> Tree:
    fields: Tree = {
        "meter_type": policer.unit,
        "mode": policer.mode,
        "color": "aware" if policer.aware else "blind",
        **_buckets(name, policer, faults),
    }
    for colour in COLOURS:
        action = policer.actions.get(colour, FORWARD)
        if action not in _ACTIONS:
            faults.append(
                f"{name}: {colour} packets: {action}: SONiC's policer colours packets for its WRED and drops"
                " them, and does not remark: forward them"
            )
        fields[f"{colour}_packet_action"] = action
    return fields


def _scheduler_fields(name: str, scheduler: Scheduler, faults: list[str]) -> Tree:
    fields: Tree = {"type": scheduler.kind}
    if scheduler.kind != "STRICT":
        if not 1 <= scheduler.weight <= 100:
            faults.append(f"{name}: weight {scheduler.weight}: SONiC has whole weights from 1 to 100")
        fields["weight"] = str(scheduler.weight)
    rates = _buckets(name, scheduler, faults)
    return fields | ({"meter_type": scheduler.unit, **rates} if rates else {})


def _buckets(name: str, of: Policer | Scheduler, faults: list[str]) -> Tree:
    fields: Tree = {}
    for key in ("cir", "cbs", "pir", "pbs"):
        value = getattr(of, key)
        if value is None:
            continue
        if value != int(value):
            faults.append(
                f"{name}: {key} of {value:.10g} {of.unit} a second: SONiC has whole {of.unit} a second: write"
                f" {8 * int(value + 1):,} bit/s"
            )
        fields[key] = str(int(value))
    return fields


def _policer(where: str, fields: Table, lost: list[str]) -> Policer:
    _strange(where, fields, _POLICER, lost)
    mode = _one_of(where, fields, "mode", ("sr_tcm", "tr_tcm"), None)
    unit = _one_of(where, fields, "meter_type", ("bytes", "packets"), None)
    # swss reads color_source, the YANG model has color.
    key = "color" if "color" in fields else "color_source"
    aware = _one_of(where, fields, key, ("aware", "blind"), "aware") == "aware"
    actions = {c: _one_of(where, fields, f"{c}_packet_action", _ACTIONS, FORWARD) for c in COLOURS}
    cir = _number(where, fields, "cir", 0 if mode == "sr_tcm" else None)
    pir = _number(where, fields, "pir", None) if mode == "tr_tcm" else None
    if pir is not None and pir < cir:
        raise Unreadable(where, f"pir = {pir} is below cir = {cir}: RFC 2698 has a peak of at least cir")
    return Policer(
        mode=mode,
        cir=cir,
        cbs=_number(where, fields, "cbs", 0),
        pir=pir,
        # No excess burst is the same as one of nothing.
        pbs=(_number(where, fields, "pbs", 0) or None)
        if mode == "sr_tcm"
        else _number(where, fields, "pbs", 0),
        aware=aware,
        unit=unit,
        actions={c: action for c, action in actions.items() if action != FORWARD},
    )


def _scheduler(where: str, fields: Table, lost: list[str]) -> Scheduler:
    _strange(where, fields, _SCHEDULER, lost)
    kind = _one_of(where, fields, "type", ("DWRR", "WRR", "STRICT"), "WRR")
    weight = 1 if kind == "STRICT" else _number(where, fields, "weight", 1)
    rates = {key: _number(where, fields, key, None) for key in ("cir", "cbs", "pir", "pbs") if key in fields}
    if not 1 <= weight <= 100:
        raise Unreadable(where, f"weight = {weight}: write 1 to 100")
    unit = _one_of(where, fields, "meter_type", ("bytes", "packets"), "bytes") if rates else "bytes"
    return Scheduler(kind, weight, unit=unit, **rates)


def _dscp_map(where: str, fields: Table, lost: list[str]) -> dict[int, int]:
    return {_whole(where, dscp, 63, "code point"): _whole(where, tc, 15, dscp) for dscp, tc in fields.items()}


def _queue_map(where: str, fields: Table, lost: list[str]) -> dict[int, str]:
    return {_whole(where, tc, 15, "class"): str(_whole(where, q, 63, tc)) for tc, q in fields.items()}


def _binding(where: str, fields: Table, lost: list[str]) -> tuple[str | None, str | None]:
    _strange(where, fields, _BINDING, lost)
    names = [fields.get(key) for key in ("dscp_to_tc_map", "tc_to_queue_map")]
    dscp, queues = (None if name is None else str(name).strip("[]").rpartition("|")[2] for name in names)
    return dscp, queues


def _named(where: str, key: str, name: str | None, there: Mapping[str, Any], table: str) -> None:
    if name is not None and name not in there:
        raise Unreadable(
            where, f'{key} "{name}" is not in {table}; there are: {", ".join(sorted(there)) or "none"}'
        )


def _strange(where: str, fields: Table, known: set[str], lost: list[str]) -> None:
    lost += [f"{where}: {key} is not carried over" for key in sorted(set(fields) - known)]


def _one_of(where: str, fields: Table, key: str, words: tuple[str, ...], default: str | None) -> str:
    value = fields.get(key, default)
    for word in words:
        if str(value).lower() == word.lower():
            return word
    said = "is missing" if value is None else f'= "{str(value)[:40]}"'
    raise Unreadable(where, f"{key} {said}: write one of {', '.join(words)}")


def _number(where: str, fields: Table, key: str, default: int | None) -> int:
    value = fields.get(key, default)
    if value is None:
        raise Unreadable(where, f"{key} is missing: write a whole number")
    if not re.fullmatch(r"\d{1,15}", str(value)):
        raise Unreadable(where, f'{key} = "{str(value)[:40]}" is no whole number')
    return int(str(value))


def _whole(where: str, text: object, most: int, what: str) -> int:
    if not re.fullmatch(r"\d{1,3}", str(text)) or int(str(text)) > most:
        raise Unreadable(where, f'{what}: "{str(text)[:40]}": write a whole number from 0 to {most}')
    return int(str(text))
