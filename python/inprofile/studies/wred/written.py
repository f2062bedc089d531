"""A switch's QoS, written as SONiC's `config_db.json` or as OpenConfig QoS: here WRED and where it is used.

What is written reads back as the same (`sonic`, `openconfig`; beside WRED `sonic_qos`, `openconfig_qos`).
What a format cannot say is refused, all of it at once, and nothing is written: a switch that does something
else is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import openconfig_qos, sonic
from .profile import COLOURS, Curve, Profile, Switch, add_sonic, openconfig_fields, queue_of, unsaid

Tree = dict[str, Any]
#: openconfig-if-ethernet, ETHERNET_SPEED.
SPEEDS = ["10MB", "100MB", "1GB", "2500MB", "5GB", "10GB", "25GB", "40GB", "50GB", "100GB", "200GB", "400GB"]


class Unsayable(ValueError):
    """What a format has no word for, a line each: where, what, and what to do."""


def sonic_tree(switch: Switch) -> Tree:
    """SONiC's tables: WRED_PROFILE, QUEUE, PORT, BUFFER_PROFILEs of known pools, and those of `sonic_qos`.

    Raises Unsayable.
    """
    faults: list[str] = []
    tables = ("WRED_PROFILE", "QUEUE", "PORT", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE")
    tree: Tree = {name: {} for name in tables}
    for port in switch.ports:
        profile = port.profile
        fields = _sonic_profile(profile, faults)
        if tree["WRED_PROFILE"].setdefault(profile.name, fields) != fields:
            faults.append(f"{profile.name}: two profiles have this name: give each its own")
        for queue in port.queues:
            interface, _, number = queue.rpartition("|")
            if not interface or not number.isdigit():
                faults.append(
                    f'{queue}: SONiC\'s queues have numbers: write a port and a number, "Ethernet0|3"'
                )
                continue
            tree["QUEUE"][queue] = {"wred_profile": profile.name}
            if port.rate is not None:
                if port.rate % 1e6:
                    faults.append(
                        f"{interface}: SONiC has speeds in whole Mbit/s, and this is {port.rate:g} bit/s"
                    )
                tree["PORT"][interface] = {"speed": f"{port.rate / 1e6:.0f}"}
            if port.allotted is not None:
                add_sonic(tree, queue, port.allotted)
    for name, table in sonic.written(switch, faults).items():
        for key, fields in table.items():
            tree.setdefault(name, {}).setdefault(key, {}).update(fields)
    refuse(faults)
    return {name: table for name, table in tree.items() if table}


def _sonic_profile(profile: Profile, faults: list[str]) -> Tree:
    if profile.weight:
        faults.append(
            f"{profile.name}: weight {profile.weight}: SONiC's WRED_PROFILE has none, and the average is the"
            " queue itself: choose thresholds for that (w_q = 1)"
        )
    marked = [colour for colour in COLOURS if colour in profile.mark]
    ecn = "ecn_all" if len(marked) == len(COLOURS) else "_".join(["ecn", *(marked or ["none"])])
    fields: Tree = {"ecn": ecn}
    for colour in COLOURS:
        drop, mark = profile.drop.get(colour), profile.mark.get(colour)
        fields[f"wred_{colour}_enable"] = "true" if drop else "false"
        # Marks go by the thresholds of drops unless they have their own, which few releases of SONiC take.
        curves = [(drop or mark, "", "drop_probability")]
        if drop and mark and mark != drop:
            curves.append((mark, "ecn_", "mark_probability"))
        for curve, prefix, probability in curves:
            if curve is None:
                continue
            percent = _whole_percent(profile, colour, curve, faults)
            fields[f"{prefix}{colour}_min_threshold"] = str(curve.min_th)
            fields[f"{prefix}{colour}_max_threshold"] = str(curve.max_th)
            fields[f"{prefix}{colour}_{probability}"] = str(percent)
    return fields


def needs(to: str, switch: Switch, tree: Tree) -> list[str]:
    """What a tree that was written needs beyond itself, a sentence each."""
    marked = [n for n, f in tree.get("WRED_PROFILE", {}).items() if any(k.startswith("ecn_") for k in f)]
    found = [
        f"{name}: marks have thresholds of their own, ecn_<colour>_…: a SONiC without them (sonic-swss pull"
        " request 4719, open in July 2026) refuses the whole profile: without them mark where packets are"
        " dropped"
        for name in marked
    ]
    for port in switch.ports:
        if port.queues and port.allotted is not None:
            more = f" and {len(port.queues) - 1} more" if len(port.queues) > 1 else ""
            found.append(unsaid(to, port.queues[0] + more, port.allotted))
    return [one for one in found if one]


def openconfig_tree(switch: Switch) -> Tree:
    """OpenConfig's tree, as RFC 7951 writes it: WRED profiles, queues, speeds, buffers, and `openconfig_qos`.

    Raises Unsayable.
    """
    faults: list[str] = []
    profiles: dict[str, Tree] = {}
    queues: dict[str, list[Tree]] = {}
    allotted: dict[str, list[Tree]] = {}
    speeds: dict[str, str] = {}
    for port in switch.ports:
        entry = _uniform(port.profile, faults)
        name = port.profile.name
        if profiles.setdefault(name, entry) != entry:
            faults.append(f"{name}: two profiles have this name: give each its own")
        for queue in port.queues:
            interface, _, inner = queue.rpartition("|")
            config = {"name": inner, "queue-management-profile": name}
            queues.setdefault(interface, []).append({"name": inner, "config": config})
            if port.allotted is not None:
                fields = {"name": inner, **openconfig_fields(port.allotted)}
                allotted.setdefault(interface, []).append({"name": inner, "config": fields})
            if port.rate is not None:
                speeds[interface] = _speed(interface, port.rate, faults)
    qos: Tree = {}
    if profiles:
        qos["queue-management-profiles"] = {
            "queue-management-profile": [
                {"name": name, "config": {"name": name}, "wred": {"uniform": {"config": fields}}}
                for name, fields in profiles.items()
            ]
        }
    if queues:
        qos["interfaces"] = {
            "interface": [_interface(i, inner, i in allotted) for i, inner in queues.items()]
        }
    if allotted:
        qos["buffer-allocation-profiles"] = {
            "buffer-allocation-profile": [
                {"name": f"buffers-{i}", "config": {"name": f"buffers-{i}"}, "queues": {"queue": inner}}
                for i, inner in allotted.items()
            ]
        }
    openconfig_qos.add(switch, qos, faults)
    refuse(faults)
    # Whatever names a queue refers to this list.
    used = [
        queue_of(queue)[1] for queue in (*(q for port in switch.ports for q in port.queues), *switch.served)
    ]
    listed = [entry["name"] for entry in qos.get("queues", {}).get("queue", [])]
    if names := sorted({*listed, *used}):
        qos["queues"] = {"queue": [{"name": name, "config": {"name": name}} for name in names]}
    tree: Tree = {"openconfig-qos:qos": qos}
    if speeds:
        interfaces = [
            {
                "name": i,
                "config": {"name": i},
                "openconfig-if-ethernet:ethernet": {
                    "config": {"port-speed": f"openconfig-if-ethernet:{speed}"}
                },
            }
            for i, speed in speeds.items()
        ]
        tree["openconfig-interfaces:interfaces"] = {"interface": interfaces}
    return tree


def _interface(name: str, queues: list[Tree], has_buffers: bool) -> Tree:
    output: Tree = {"queues": {"queue": queues}}
    if has_buffers:
        output["config"] = {"buffer-allocation-profile": f"buffers-{name}"}
    return {"interface-id": name, "config": {"interface-id": name}, "output": output}


def _uniform(profile: Profile, faults: list[str]) -> Tree:
    """The one curve of every colour, or nothing: OpenConfig has none by colour."""
    curves = {*profile.drop.values(), *profile.mark.values()}
    whole = all(not of or set(of) == set(COLOURS) for of in (profile.drop, profile.mark))
    if len(curves) > 1 or not whole:
        faults.append(
            f"{profile.name}: curves by colour, or of marks beside drops: OpenConfig's WRED is uniform, one"
            " curve for all: give each colour a queue of its own, or write for SONiC"
        )
        return {}
    if not curves:
        return {"drop": False, "enable-ecn": False}
    (curve,) = curves
    return {
        "min-threshold": str(curve.min_th),
        "max-threshold": str(curve.max_th),
        "max-drop-probability-percent": _whole_percent(profile, "every colour", curve, faults),
        "weight": profile.weight,
        "drop": bool(profile.drop),
        "enable-ecn": bool(profile.mark),
    }


def _whole_percent(profile: Profile, colour: str, curve: Curve, faults: list[str]) -> int:
    percent = round(100 * curve.max_p)
    if abs(100 * curve.max_p - percent) > 1e-9:
        faults.append(
            f"{profile.name}: {colour}'s probability {100 * curve.max_p:g} %: whole percents are all there"
            f" is: write {max(1, percent)} %"
        )
    return percent


def _speed(interface: str, rate: float, faults: list[str]) -> str:
    for speed in SPEEDS:
        if rate == float(speed[:-2]) * (1e9 if speed.endswith("GB") else 1e6):
            return f"SPEED_{speed}"
    faults.append(
        f"{interface}: OpenConfig has no such port-speed, {rate:g} bit/s: write one of {', '.join(SPEEDS)}"
    )
    return "SPEED_UNKNOWN"


def refuse(faults: Sequence[str]) -> None:
    """Raises Unsayable where there are faults. What is said of many, customers mostly, is said once."""
    by_reason: dict[str, list[str]] = {}
    for where, _, why in (fault.partition(": ") for fault in dict.fromkeys(faults)):
        by_reason.setdefault(why, []).append(where)
    lines = [
        f"{where}{f' and {len(more)} more' * bool(more)}: {why}" for why, (where, *more) in by_reason.items()
    ]
    if lines:
        raise Unsayable("\n".join(lines))


FORMATS: Mapping[str, Callable[[Switch], Tree]] = {"sonic": sonic_tree, "openconfig": openconfig_tree}
"""By the name that `inprofile wred --to` has."""
