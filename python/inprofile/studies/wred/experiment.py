"""The measured link of an experiment and the markers before it as a switch's configuration: a plan, deployed.

A switch holds a curve by colour against the average of the whole queue, in bytes. RED and WRED with one
average say that; RIO, whose IN packets have an average of their own, does not, nor do other disciplines.
Drop-tail is a queue without a profile. A link's classes are queues of one port, the first the highest.

The markers of an experiment as a switch's policers, one for each customer. A switch's meters are RFC 2697's
and RFC 2698's; a token bucket is the former without an excess burst, whose second colour is red. Flows that
nobody meters and that are OUT are metered at a rate of 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...experiment.scenario import Scenario
from ...metrics.quantity import bits_per_second
from .profile import COLOURS, DROP, Buffer, Curve, Policer, Port, Profile, Scheduler, Switch, queue_of
from .written import Unsayable, refuse

#: RFC 2597 §6, class 1: what OpenConfig's meters write, which have no colour within the switch.
_AF1 = {"green": 10, "yellow": 12, "red": 14}
_ELSE = "a switch has RFC 2697's and RFC 2698's meters: plan with --schemes switch, or set kind = srtcm"


def policers_of(
    effective: Mapping[str, Any], link: str, remark: bool, faults: list[str]
) -> dict[str, Policer]:
    """The policers of all that crosses a link; `remark`: colours are code points.

    `faults` grows by what a switch has no meter for.
    """
    found: dict[str, Policer] = {}
    for group in effective["flows"]:
        marker, bought = group["marker"], group["contract"]
        if link not in group["route"] or group["count"] == 0 or marker is None:
            continue
        each = bought if isinstance(bought, list) else [bought] * group["count"]
        for i, contract in enumerate(each):
            policer = _policer(f"flows.{group['name']}.marker", marker, contract, remark, faults)
            if policer is not None and marker["kind"] == "colour":
                # One for all of them: what is never green needs no bucket of its own.
                found[group["name"]] = policer
                break
            if policer is not None:
                found[f"{group['name']}-{i}"] = policer
    for edge in effective.get("edges") or []:
        policer = _policer(f"edges.{edge['node']}.marker", edge["marker"], None, remark, faults)
        if policer is not None:
            found[edge["node"]] = policer
    return found


def gives_out(marker: Mapping[str, Any]) -> bool:
    """Whether its second colour is OUT, which is yellow."""
    if marker["kind"] == "colour":
        return bool(marker["colour"] == "out")
    return bool(marker["kind"] == "token_bucket" and marker["action"] == "mark")


def _policer(
    where: str, marker: Mapping[str, Any], contract: str | None, remark: bool, faults: list[str]
) -> Policer | None:
    kind = marker["kind"]
    faults += _unsayable(where, marker)
    actions = {c: f"dscp {_AF1[c]}" for c in COLOURS} if remark else {}
    if remark and gives_out(marker):
        actions["red"] = actions["yellow"]
    if marker.get("action") == "drop":
        actions["red"] = DROP
    two = {c: action for c, action in actions.items() if c != "yellow"}
    if kind == "colour":
        return None if marker["colour"] == "in" else Policer("sr_tcm", 0, 0, actions=two)
    if kind == "token_bucket":
        return Policer("sr_tcm", _rate(marker, "rate", contract), _size(marker, "depth"), actions=two)
    if kind not in ("srtcm", "trtcm"):
        faults.append(f'{where}: kind = "{kind}": {_ELSE}')
        return None
    cir, cbs = _rate(marker, "cir", contract), _size(marker, "cbs")
    aware = marker["mode"] == "colour_aware"
    if kind == "trtcm":
        pir, pbs = _rate(marker, "pir", contract), _size(marker, "pbs")
        return Policer("tr_tcm", cir, cbs, pir, pbs, aware, actions=actions)
    excess = _size(marker, "ebs") or None
    return Policer("sr_tcm", cir, cbs, None, excess, aware, actions=actions if excess else two)


def _unsayable(where: str, marker: Mapping[str, Any]) -> Iterator[str]:
    if marker.get("starts_full") is False:
        yield f"{where}: starts_full = false: a switch's bucket is full at first: write true"
    if marker.get("conforms") == "more_than":
        yield f'{where}: conforms = "more_than": a switch\'s bucket serves its last token: write "at_least"'


def _rate(marker: Mapping[str, Any], key: str, contract: str | None) -> int:
    """In bytes a second: whole ones, none less than is sold."""
    text = marker[key]
    if text == "the flow's contract":
        assert contract is not None  # noqa: S101 (the experiment was checked)
        text = contract
    return math.ceil(bits_per_second(text) / 8)


def _size(marker: Mapping[str, Any], key: str) -> int:
    return math.ceil(float(marker[key]["bytes"]))


_NAME = "inprofile"
#: What a switch's WRED is like, by the keys of red and wred that say otherwise.
_PLAIN = {
    "byte_scaled": False,
    "wait": False,
    "drop": "tail",
    "variant": "floyd93",
    "mean_packet": "a full packet",
}
_INSTEAD = {
    "byte_scaled": "a switch drops small packets as large ones: write false",
    "wait": "a switch waits for no packets after a drop: write false",
    "drop": 'a switch whose buffer is full drops what arrives: write "tail"',
    "variant": 'a switch has no simulator\'s arithmetic: write "floyd93"',
    "mean_packet": "a switch's average knows no size of packets: leave it out",
}


def switch_of(
    scenario: Scenario,
    queue: str | None = None,
    dscp: Mapping[str, Sequence[int]] | None = None,
    remark: bool = False,
) -> Switch:
    """The measured link as a switch's `queue` (`Ethernet0|3`), with its classes and the policers of flows.

    With classes the first has that queue, and those after it the ones below; `dscp` has their code points
    where their names do not say them. `remark`: the policers' colours are code points. Raises Unsayable with
    everything that a switch cannot say.
    """
    effective = scenario.check().effective
    at = effective["measure"]["at"]
    link = next(one for one in effective["links"] if one["name"] == at)
    faults: list[str] = []
    found = _classes(link, queue, dscp or {}, faults) if "classes" in link["queue"] else None
    if found is None:
        if dscp:
            faults.append(f"{at}: --dscp, and it has no classes: leave it out")
        found = _one_queue(link, queue or "Ethernet0|0", faults)
    policers = policers_of(effective, at, remark, faults)
    _one_curve(found.ports, effective, faults)
    refuse(faults)
    said = (_TWICE.format(where=port.profile.where) for port in found.ports)
    return replace(found, policers=policers, lost=(*found.lost, *said))


_TWICE = (
    "{where}: probabilities are twice max_p (100 % from 0.5 on): a switch drops packets with its probability,"
    " and RED, which spaces drops evenly, drops 2p/(1 + p) of them"
)


def _one_queue(link: Mapping[str, Any], queue: str, faults: list[str]) -> Switch:
    where = f"{link['name']}.queue"
    if link["queue"]["aqm"] == "drop_tail":
        return Switch(lost=(_buffer_says(where, link["queue"], queue),))
    profile = _profile(where, link["queue"], _NAME, faults)
    return Switch((_port(link, link["queue"], profile, queue),))


def _classes(
    link: Mapping[str, Any], first: str | None, dscp: Mapping[str, Sequence[int]], faults: list[str]
) -> Switch:
    where, classes = f"{link['name']}.queue", link["queue"]["classes"]
    port, number = queue_of(first or f"Ethernet0|{len(classes) - 1}")
    top = int(number) if number.isdigit() else -1
    if top < len(classes) - 1:
        raise Unsayable(
            f'{where}: {len(classes)} classes, and the first would be "{first}": a switch serves its highest'
            f' queue first: write --queue "{port or "Ethernet0"}|{len(classes) - 1}" or a higher one'
        )
    names = [one["name"] for one in classes]
    of = code_points(where, names, dscp, faults)
    queues = {name: f"{port}|{top - i}" for i, name in enumerate(names)}
    ports, lost = [], []
    for one in classes:
        inside = f"{where}.classes.{one['name']}"
        if one["aqm"] == "drop_tail":
            lost.append(_buffer_says(inside, one, queues[one["name"]]))
        else:
            profile = _profile(inside, one, f"{_NAME}-{one['name']}", faults)
            ports.append(_port(link, one, profile, queues[one["name"]]))
    schedulers = dict(zip(names, schedulers_of(where, link["queue"], faults), strict=True))
    classes_of = {dscp: top - i for i, name in enumerate(names) for dscp in of[name]}
    return Switch(
        tuple(ports),
        schedulers=schedulers,
        served={queues[name]: name for name in names},
        dscp_maps={_NAME: classes_of},
        queue_maps={_NAME: {top - i: str(top - i) for i in range(len(names))}},
        bound={port: (_NAME, _NAME)},
        lost=tuple(lost),
    )


def _port(link: Mapping[str, Any], queue: Mapping[str, Any], profile: Profile, name: str) -> Port:
    limit = int(queue["limit"]["bytes"])
    return Port(profile, (name,), bits_per_second(link["rate"]), limit, allotted=Buffer(limit))


def _buffer_says(where: str, queue: Mapping[str, Any], name: str) -> str:
    return (
        f"{where}: drop-tail with {queue['limit']['is']} is a queue without a profile, and as long as the"
        f" switch's buffer lets {name} be: set that there"
    )


def _profile(where: str, found: Mapping[str, Any], name: str, faults: list[str]) -> Profile:
    kind = found["aqm"]
    if kind not in ("red", "wred"):
        faults.append(
            f'{where}: aqm = "{kind}": a WRED profile holds curves against the average of the whole queue, as'
            " red and wred do: plan with --schemes switch"
        )
        return Profile(name, where, {})
    if found.get("averages", "shared") != "shared":
        faults.append(f'{where}: averages = "{found["averages"]}": a switch has one average: write "shared"')
    if found.get("gentle") is True:
        faults.append(
            f"{where}: gentle = true: a switch drops everything from max_th on: write gentle = false"
        )
    for key, plain in _PLAIN.items():
        if found.get(key, plain) != plain:
            shown = json.dumps(found[key], ensure_ascii=False)
            faults.append(f"{where}: {key} = {shown}: {_INSTEAD[key]}")
    # Where red is "as for yellow ones" it is a text.
    given = {c: found if kind == "red" else found[c] for c in COLOURS}
    drop = {
        c: _curve(fields if isinstance(fields, Mapping) else given["yellow"]) for c, fields in given.items()
    }
    mark = {c: _curve(found[f"{c}_ecn"]) for c in COLOURS if isinstance(found.get(f"{c}_ecn"), Mapping)}
    if found.get("ecn") is True and not mark:
        mark = dict(drop)
    weight = -math.log2(found["w_q"])
    if abs(weight - round(weight)) > 1e-9:
        near = 2.0 ** -round(weight)
        faults.append(
            f"{where}: w_q = {found['w_q']:g}: a switch has powers of two: write {near:g},"
            " or plan with --schemes switch"
        )
    return Profile(name, where, drop, mark, round(weight))


def _curve(fields: Mapping[str, Any]) -> Curve:
    """A switch drops packets with its probability; RED's law, which spaces drops, loses twice as many."""
    low, high = (round(fields[key]["bytes"]) for key in ("min_th", "max_th"))
    return Curve(low, high, min(1.0, 2 * float(fields["max_p"])))


def _one_curve(ports: Sequence[Port], effective: Mapping[str, Any], faults: list[str]) -> None:
    """OUT packets are yellow in an experiment, and red where a switch's meter has one bucket."""
    markers = [(f"flows.{g['name']}", g["marker"]) for g in effective["flows"] if g["marker"]]
    out = next((name for name, marker in markers if gives_out(marker)), None)
    for port in ports if out is not None else ():
        for curves in (port.profile.drop, port.profile.mark):
            if curves.get("red") != curves.get("yellow"):
                faults.append(
                    f"{port.profile.where}: red has a curve of its own, and {out} is marked IN and OUT:"
                    " a switch's meter with one bucket makes OUT packets red, not yellow: leave red out, or"
                    " mark by srtcm or trtcm"
                )


PHBS = {
    "ef": (46,),
    **{f"af{i}": tuple(8 * i + 2 * j for j in (1, 2, 3)) for i in range(1, 5)},
    **{f"af{i}{j}": (8 * i + 2 * j,) for i in range(1, 5) for j in (1, 2, 3)},
    **{f"cs{i}": (8 * i,) for i in range(8)},
    "le": (1,),
    "df": (0,),
    "be": (0,),
    "best_effort": (0,),
}
"""Code points of the classes that have a standard's name (RFC 2474, 2597, 3246, 8622)."""


def schedulers_of(where: str, queue: Mapping[str, Any], faults: list[str]) -> list[Scheduler]:
    """The scheduler of each class, in their order; `faults` grows by what a switch cannot say."""
    classes = queue["classes"]
    weights = [1] * len(classes)
    if queue["scheduler"] == "drr":
        quanta = [round(one["quantum"]["bytes"]) for one in classes]
        common = math.gcd(*quanta)
        weights = [quantum // common for quantum in quanta]
        if max(weights) > 100:
            faults.append(
                f"{where}: quanta of {', '.join(f'{q} B' for q in quanta)} are weights up to {max(weights)}:"
                " a switch has 1 to 100: write quanta that are whole multiples of their least"
            )
    found, limited = [], True
    for one, weight in zip(classes, weights, strict=True):
        rate = one.get("rate")
        bytes_each = None if rate is None else math.ceil(bits_per_second(rate) / 8)
        strict = queue["scheduler"] == "priority"
        # Where all that goes first has a rate, what is left is certain; else the rate is a guarantee as well.
        least = None if strict and limited else bytes_each
        limited = limited and bytes_each is not None
        kind = "STRICT" if strict else "DWRR"
        found.append(Scheduler(kind, 1 if strict else weight, cir=least, pir=bytes_each))
    return found


def code_points(
    where: str, names: Sequence[str], given: Mapping[str, Sequence[int]], faults: list[str]
) -> dict[str, tuple[int, ...]]:
    """By class its code points: those given, or what its name says."""
    found: dict[str, tuple[int, ...]] = {}
    taken: dict[int, str] = {}
    for name in given.keys() - set(names):
        faults.append(f"{where}: --dscp {name}=…: there is no class {name}; there are: {', '.join(names)}")
    for name in names:
        dscps = tuple(given.get(name, PHBS.get(re.sub(r"[-\s]", "_", name.lower()), ())))
        if not dscps:
            faults.append(f"{where}: class {name}: which code points are its? Say --dscp {name}=10,12,14")
        for dscp in dscps:
            if taken.setdefault(dscp, name) != name:
                faults.append(f"{where}: code point {dscp} is {taken[dscp]}'s and {name}'s: give it to one")
        found[name] = dscps
    return found
