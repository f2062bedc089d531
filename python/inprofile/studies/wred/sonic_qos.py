"""SONiC's tables beside WRED_PROFILE: POLICER, SCHEDULER, DSCP_TO_TC_MAP, TC_TO_QUEUE_MAP, PORT_QOS_MAP.

Source: SONiC's YANG models (sonic-policer, sonic-scheduler, sonic-queue, sonic-dscp-tc-map, sonic-tc-queue-
map, sonic-port-qos-map); swss, policerorch and qosorch: `cir` and `pir` are bytes or packets a second, and of
`sr_tcm` `pbs` is the excess burst. A policer that no rule of an ACL names is bound to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .profile import COLOURS, Unreadable
from .switch import FORWARD, Policer, Scheduler, Switch, queue_of

Table = Mapping[str, Any]
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
