"""The markers of an experiment as a switch's policers, one for each customer.

A switch's meters are RFC 2697's and RFC 2698's; a token bucket is the former without an excess burst, whose
second colour is red. Flows that nobody meters and that are OUT are metered at a rate of 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...metrics.quantity import bits_per_second
from .profile import COLOURS
from .switch import DROP, Policer

__all__ = ["gives_out", "policers_of"]

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
