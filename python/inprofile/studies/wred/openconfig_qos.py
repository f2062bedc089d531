"""OpenConfig's QoS beside WRED: classifiers, forwarding groups, and scheduler policies.

Source: openconfig-qos-elements and openconfig-qos-interfaces 0.7; openconfig-qos-types: ONE_RATE_TWO_COLOR is
one token bucket, TWO_RATE_THREE_COLOR RFC 2698's two. Rates are bits a second, bursts bytes.

A policer is a scheduler policy of its own with one scheduler and no input. The queues of a port are served by
the policy of its output: each strict queue is a scheduler, and the weighted ones share one. A traffic class
is a forwarding group `MAP.CLASS`, and a map of code points two classifiers, for IPv4 and for IPv6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .openconfig import inside, named, number
from .profile import DROP, FORWARD, Policer, Scheduler, Switch, Unreadable, queue_of

Tree = dict[str, Any]
_ONE, _TWO = "one-rate-two-color", "two-rate-three-color"
_TYPES = {_ONE: "ONE_RATE_TWO_COLOR", _TWO: "TWO_RATE_THREE_COLOR"}
#: The colours of the actions, by kind.
_ACTIONS = {
    _ONE: {"conform": "green", "exceed": "red"},
    _TWO: {"conform": "green", "exceed": "yellow", "violate": "red"},
}
_FAMILIES = ("ipv4", "ipv6")


def add(switch: Switch, qos: Tree, faults: list[str]) -> None:
    """Add everything but the ports to a tree `qos`; `faults` grows by what cannot be said."""
    policies = [_policy(name, [_meter(name, p, faults)]) for name, p in switch.policers.items()]
    by_port: dict[str, dict[str, str]] = {}
    for queue, scheduler in switch.served.items():
        port, inner = queue_of(queue)
        by_port.setdefault(port, {})[inner] = scheduler
    for name in switch.schedulers.keys() - set(switch.served.values()):
        faults.append(f"{name}: no queue has this scheduler: OpenConfig's are a port's: remove it")
    for port, queues in by_port.items():
        policies.append(_policy(f"{port}-output", _served(queues, switch, faults)))
        _of_port(qos, port, "output")["scheduler-policy"] = {"config": {"name": f"{port}-output"}}
    if policies:
        qos["scheduler-policies"] = {"scheduler-policy": policies}
    _classify(switch, qos, faults)


def _of_port(qos: Tree, port: str, way: str) -> Tree:
    """The container `input` or `output` of an interface, made where there is none."""
    listed = qos.setdefault("interfaces", {}).setdefault("interface", [])
    entry = next((one for one in listed if one["interface-id"] == port), None)
    if entry is None:
        entry = {"interface-id": port, "config": {"interface-id": port}}
        listed.append(entry)
    found: Tree = entry.setdefault(way, {})
    return found


def _policy(name: str, schedulers: list[Tree]) -> Tree:
    for i, scheduler in enumerate(schedulers):
        scheduler["sequence"] = scheduler["config"]["sequence"] = i
    return {"name": name, "config": {"name": name}, "schedulers": {"scheduler": schedulers}}


def _meter(name: str, policer: Policer, faults: list[str]) -> Tree:
    kind = _ONE if policer.mode == "sr_tcm" else _TWO
    for refused, why in (
        (
            policer.unit != "bytes",
            "its meter counts packets: OpenConfig's count bytes: write a rate in bytes",
        ),
        (policer.aware, "colour-aware: OpenConfig's meters are colour-blind: write mode = colour_blind"),
        (
            kind == _ONE and bool(policer.pbs),
            f"an excess burst of {policer.pbs} B at one rate (RFC 2697): OpenConfig's single-rate meter has"
            " one bucket and two colours: write an excess burst of 0, or a meter with two rates (RFC 2698)",
        ),
    ):
        if refused:
            faults.append(f"{name}: {why}")
    config: Tree = {"cir": _bits(name, "cir", policer.cir, faults), "bc": policer.cbs}
    if kind == _TWO:
        config |= {"pir": _bits(name, "pir", policer.pir or 0.0, faults), "be": policer.pbs or 0}
    else:
        config["queuing-behavior"] = "POLICE"
    meter: Tree = {"config": config}
    for action, colour in _ACTIONS[kind].items():
        what = _action(name, colour, policer.actions.get(colour, FORWARD), faults)
        if action == "conform" and "drop" in what:
            faults.append(f"{name}: green packets are dropped: OpenConfig lets what conforms through")
        meter[f"{action}-action"] = {"config": what}
    if policer.two_coloured and policer.actions.get("yellow", FORWARD) != FORWARD:
        faults.append(f"{name}: something becomes of yellow packets, and one bucket has none: remove it")
    return {"config": {"type": f"openconfig-qos-types:{_TYPES[kind]}"}, kind: meter}


def _action(name: str, colour: str, action: str, faults: list[str]) -> Tree:
    if action == FORWARD:
        return {}
    if action == DROP:
        return {"drop": True}
    if action.startswith("dscp "):
        return {"set-dscp": int(action[5:])}
    faults.append(f"{name}: {colour} packets: {action}: OpenConfig drops packets, or sets their code point")
    return {}


def _bits(name: str, key: str, rate: float, faults: list[str]) -> str:
    """Bytes a second as bits; RFC 7951 §6.1 writes 64-bit numbers as text."""
    if 8 * rate != int(8 * rate):
        faults.append(f"{name}: {key} of {8 * rate:.10g} bit/s: OpenConfig has whole bits a second")
    return str(int(8 * rate))


def _served(queues: Mapping[str, str], switch: Switch, faults: list[str]) -> list[Tree]:
    """The schedulers of a port's queues: strict ones, the highest queue first, and the weighted ones."""
    found, weighted = [], []
    for inner in sorted(queues, key=lambda q: (q.isdigit(), int(q) if q.isdigit() else 0), reverse=True):
        name = queues[inner]
        scheduler = switch.schedulers[name]
        _shaped_by_bytes(name, scheduler, faults)
        config: Tree = {"id": f"{name}.{inner}", "input-type": "QUEUE", "queue": inner}
        if scheduler.kind == "STRICT":
            one: Tree = {"config": {"priority": "STRICT"}, **_inputs([config])}
            if scheduler.pir is not None:
                one["config"]["type"] = f"openconfig-qos-types:{_TYPES[_ONE]}"
                shape: Tree = {"cir": _bits(name, "pir", scheduler.pir, faults), "queuing-behavior": "SHAPE"}
                if scheduler.pbs is not None:
                    shape["bc"] = scheduler.pbs
                one[_ONE] = {"config": shape}
            found.append(one)
            continue
        if scheduler.kind == "WRR":
            faults.append(f"{name}: weights of packets (WRR): OpenConfig has one kind of weights: write DWRR")
        if scheduler.pir is not None:
            faults.append(
                f"{name}: a rate of its own beside a weight: OpenConfig shapes all weighted queues together:"
                " serve it by priority, or write for SONiC"
            )
        weighted.append({**config, "weight": str(scheduler.weight)})
    return [*found, *([{"config": {}, **_inputs(weighted)}] if weighted else [])]


def _shaped_by_bytes(name: str, scheduler: Scheduler, faults: list[str]) -> None:
    if scheduler.cir is not None or scheduler.cbs is not None:
        faults.append(
            f"{name}: a rate that it gets at least: OpenConfig's schedulers have rates at most alone: serve"
            " it by priority, above what may take its rate, or write for SONiC"
        )
    if scheduler.unit != "bytes":
        faults.append(f"{name}: rates in packets: OpenConfig's are in bits: write meter_type bytes")
    if scheduler.pbs is not None and scheduler.pir is None:
        faults.append(f"{name}: a burst without a rate: give it pir")


def _inputs(configs: list[Tree]) -> Tree:
    return {
        "inputs": {"input": [{"id": config["id"], "config": config} for config in configs]},
        "output": {"config": {"output-type": "INTERFACE"}},
    }


def _classify(switch: Switch, qos: Tree, faults: list[str]) -> None:
    used: dict[str, str] = {}
    for port, (dscp, queues) in switch.bound.items():
        if dscp is None or queues is None:
            lacking = "DSCP_TO_TC_MAP" if dscp is None else "TC_TO_QUEUE_MAP"
            faults.append(
                f"{port}: no {lacking}: OpenConfig's classifiers lead to queues: give the port both"
            )
            continue
        if used.setdefault(dscp, queues) != queues:
            faults.append(
                f"{dscp}: ports with {used[dscp]} and with {queues} have it: an OpenConfig classifier leads"
                " to one set of queues: give each a map of code points of its own"
            )
        config = [
            {"type": f.upper(), "config": {"name": f"{dscp}.{f}", "type": f.upper()}} for f in _FAMILIES
        ]
        _of_port(qos, port, "input")["classifiers"] = {"classifier": config}
    for maps, has in ((switch.dscp_maps, used.keys()), (switch.queue_maps, set(used.values()))):
        for name, entries in maps.items():
            if name not in has or not entries:
                faults.append(f"{name}: {'no port has this map' if entries else 'is empty'}: remove it")
    groups = [(f"{name}.{tc}", queue) for name, of in switch.queue_maps.items() for tc, queue in of.items()]
    if groups:
        inner = dict.fromkeys(queue for _, queue in groups)
        qos["queues"] = {"queue": [{"name": q, "config": {"name": q}} for q in inner]}
        qos["forwarding-groups"] = {
            "forwarding-group": [
                {"name": name, "config": {"name": name, "output-queue": queue}} for name, queue in groups
            ]
        }
    listed = []
    for name, classes in switch.dscp_maps.items():
        if used.get(name) is None:
            continue
        lacking_queue = set(classes.values()) - switch.queue_maps[used[name]].keys()
        if lacking_queue:
            faults.append(f"{name}: class {min(lacking_queue)} has no queue in {used[name]}: give it one")
        listed += [_classifier(name, family, classes, used[name]) for family in _FAMILIES]
    if listed:
        qos["classifiers"] = {"classifier": listed}


def _classifier(name: str, family: str, classes: Mapping[int, int], queues: str) -> Tree:
    by_class: dict[int, list[int]] = {}
    for dscp, tc in classes.items():
        by_class.setdefault(tc, []).append(dscp)
    terms = [
        {
            "id": str(tc),
            "config": {"id": str(tc)},
            "conditions": {family: {"config": {"dscp-set": dscps}}},
            "actions": {"config": {"target-group": f"{queues}.{tc}"}},
        }
        for tc, dscps in by_class.items()
    ]
    return {
        "name": f"{name}.{family}",
        "config": {"name": f"{name}.{family}", "type": family.upper()},
        "terms": {"term": terms},
    }


Outputs = Mapping[str, str]
"""By port, the scheduler policy of its output."""


def read(qos: Mapping[str, Any]) -> Switch:
    """Everything but the ports, of the tree below `qos` without modules' names. Raises Unreadable."""
    lost: list[str] = []
    policies = dict(named(qos, "scheduler-policies", "scheduler-policy"))
    policers: dict[str, Policer] = {}
    schedulers: dict[str, Scheduler] = {}
    served: dict[str, str] = {}
    dscp_maps: dict[str, dict[int, int]] = {}
    bound: dict[str, tuple[str | None, str | None]] = {}
    queue_maps, group_of = _groups(qos)
    at_output = set()
    for port, entry in named(qos, "interfaces", "interface", key="interface-id"):
        policy = inside(inside(inside(entry, "output"), "scheduler-policy"), "config").get("name")
        if policy is not None:
            if policy not in policies:
                raise Unreadable(
                    f"qos/interfaces/interface[{port}]", f'scheduler-policy "{policy}" is not there'
                )
            at_output.add(policy)
            for queue, name, scheduler in _queues(policy, policies[policy]):
                if schedulers.setdefault(name, scheduler) != scheduler:
                    raise Unreadable(
                        f"scheduler-policy[{policy}]",
                        f'input "{name}" is served in two ways: name each its own',
                    )
                served[f"{port}|{queue}"] = name
        found = _bound(qos, port, entry, group_of, dscp_maps)
        if found is not None:
            bound[port] = found
    for name, entry in policies.items():
        if name not in at_output:
            policers[name] = _policer(name, entry)
    return Switch((), policers, schedulers, served, dscp_maps, queue_maps, bound, tuple(lost))


def _schedulers(policy: str, entry: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    listed = inside(entry, "schedulers").get("scheduler", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise Unreadable(f"scheduler-policy[{policy}]/schedulers/scheduler", "is no list of entries")
    return [(f"scheduler-policy[{policy}]/scheduler[{one.get('sequence', '?')}]", one) for one in listed]


def _policer(name: str, entry: Mapping[str, Any]) -> Policer:
    found = _schedulers(name, entry)
    if len(found) != 1 or not (found[0][1].keys() & {_ONE, _TWO}):
        raise Unreadable(
            f"scheduler-policy[{name}]",
            f"no port has it at its output, and it is no policer: one scheduler with {_ONE} or {_TWO}",
        )
    where, scheduler = found[0]
    kind = _TWO if _TWO in scheduler else _ONE
    meter = inside(scheduler, kind)
    config = inside(meter, "config")
    actions = {}
    for action, colour in _ACTIONS[kind].items():
        what = inside(inside(meter, f"{action}-action"), "config")
        if what.get("drop") is True:
            actions[colour] = DROP
        elif "set-dscp" in what:
            actions[colour] = f"dscp {_dscp(where, what['set-dscp'])}"
    two = kind == _TWO
    return Policer(
        "tr_tcm" if two else "sr_tcm",
        number(where, config, "cir", 0) / 8,
        int(number(where, config, "bc", 0)),
        number(where, config, "pir", 0) / 8 if two else None,
        int(number(where, config, "be", 0)) if two else None,
        actions=actions,
    )


def _queues(policy: str, entry: Mapping[str, Any]) -> list[tuple[str, str, Scheduler]]:
    """Each queue with its scheduler and that one's name."""
    found, strict = [], []
    for where, scheduler in sorted(_schedulers(policy, entry), key=lambda one: one[1].get("sequence", 0)):
        is_strict = inside(scheduler, "config").get("priority") == "STRICT"
        shape = inside(inside(scheduler, _ONE), "config")
        for name, listed in named(scheduler, "inputs", "input", key="id"):
            config = inside(listed, "config")
            queue = str(config.get("queue", ""))
            if not queue:
                raise Unreadable(where, f'input "{name}" is no queue: write queue')
            own = name.removesuffix(f".{queue}") if name.endswith(f".{queue}") else f"{policy}.{name}"
            rates: dict[str, Any] = {}
            if shape.get("queuing-behavior") == "SHAPE":
                rates["pir"] = number(where, shape, "cir", 0) / 8
                if "bc" in shape:
                    rates["pbs"] = int(number(where, shape, "bc", 0))
            weight = 1 if is_strict else int(number(where, config, "weight", 1))
            found.append((queue, own, Scheduler("STRICT" if is_strict else "DWRR", weight, **rates)))
            strict += [int(queue)] if is_strict and queue.isdigit() else []
    if strict != sorted(strict, reverse=True):
        raise Unreadable(
            f"scheduler-policy[{policy}]",
            f"strict queues in the order {', '.join(map(str, strict))}: a switch serves the highest number"
            " first: number them so",
        )
    return found


def _groups(qos: Mapping[str, Any]) -> tuple[dict[str, dict[int, str]], dict[str, tuple[str, int]]]:
    """Maps of classes to queues, and of each forwarding group its map and class."""
    groups = {
        name: str(inside(entry, "config").get("output-queue", ""))
        for name, entry in named(qos, "forwarding-groups", "forwarding-group")
    }
    if all(re.fullmatch(r".+\.\d{1,2}", name) for name in groups):
        group_of = {name: (name.rpartition(".")[0], int(name.rpartition(".")[2])) for name in groups}
    else:
        # Groups with names of their own: classes in the order of the file.
        group_of = {name: ("openconfig", i) for i, name in enumerate(groups)}
    maps: dict[str, dict[int, str]] = {}
    for name, (of, tc) in group_of.items():
        if not groups[name]:
            raise Unreadable(f"qos/forwarding-groups/forwarding-group[{name}]", "has no output-queue")
        maps.setdefault(of, {})[tc] = groups[name]
    return maps, group_of


def _bound(
    qos: Mapping[str, Any],
    port: str,
    entry: Mapping[str, Any],
    group_of: Mapping[str, tuple[str, int]],
    maps: dict[str, dict[int, int]],
) -> tuple[str, str] | None:
    """The maps of a port, from its classifiers for IPv4 and IPv6, which have to say the same."""
    classifiers = dict(named(qos, "classifiers", "classifier"))
    found: dict[str, tuple[dict[int, int], set[str]]] = {}
    for _, one in named(inside(entry, "input"), "classifiers", "classifier", key="type"):
        name = str(inside(one, "config").get("name", ""))
        where = f"qos/classifiers/classifier[{name}]"
        if name not in classifiers:
            raise Unreadable(f"qos/interfaces/interface[{port}]", f'classifier "{name}" is not there')
        classes: dict[int, int] = {}
        queues: set[str] = set()
        for term, fields in named(classifiers[name], "terms", "term", key="id"):
            group = str(inside(inside(fields, "actions"), "config").get("target-group", ""))
            if group not in group_of:
                raise Unreadable(f"{where}/term[{term}]", f'target-group "{group}" is not there')
            queues.add(group_of[group][0])
            for family in _FAMILIES:
                config = inside(inside(inside(fields, "conditions"), family), "config")
                single = [config["dscp"]] if "dscp" in config else []
                for dscp in config.get("dscp-set", single):
                    classes.setdefault(_dscp(where, dscp), group_of[group][1])
        found[name] = (classes, queues)
    if not found:
        return None
    if any(one != next(iter(found.values())) for one in found.values()):
        raise Unreadable(
            f"qos/interfaces/interface[{port}]",
            f"its classifiers {', '.join(found)} say different things of the same code points: a switch has"
            " one map: make them alike",
        )
    name, (classes, queues) = next(iter(found.items()))
    if len(queues) != 1:
        raise Unreadable(
            f"qos/classifiers/classifier[{name}]", "has terms of more than one set of groups, or none"
        )
    own = re.sub(r"\.ipv[46]$", "", name)
    maps[own] = classes
    return own, queues.pop()


def _dscp(where: str, value: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,2}", str(value)) or int(str(value)) > 63:
        raise Unreadable(where, f"code point {str(value)[:40]!r}: write a whole number from 0 to 63")
    return int(str(value))
