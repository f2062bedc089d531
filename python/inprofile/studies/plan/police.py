"""Customers' markers as filters of the kernel, in the form that `tc -batch` reads.

A token bucket that drops is `police` (tc-police(8)). One that marks, and trTCM that drops, are policers in a
chain: what one lets through goes on to the next action, what conforms to all of them gets the DSCP of IN, and
what `continue`s to the next filter that of OUT. trTCM's two buckets see the same packets in the order of
RFC 2698 §3: the peak's first.

What cannot be said is a comment that begins with `# cannot`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...metrics.quantity import bits_per_second

if TYPE_CHECKING:
    from .question import Question, Router
    from .search import Tried

_MARKED = "action pedit ex munge ip dsfield set {octet:#04x} retain 0xfc pipe action csum ip4h"
"""Sets the DSCP, keeps the ECN bits, and mends the header's checksum."""
_IN, _OUT = 0x28, 0x30
"""AF11 and AF12 (RFC 2597 §6) in their octet."""
GRO = "# A burst smaller than 64 kB needs packets as they come: ethtool -K {dev} gro off lro off"


def police_action(rate: float, burst: float, otherwise: str) -> str:
    """One policer: bit/s, bytes, and what becomes of what exceeds it and of the rest (`drop/pipe`).

    Without `mtu` the kernel takes every packet above 2,040 bytes for too long, and GRO makes such packets.

    >>> police_action(1e6, 18_750, "drop")
    'action police rate 1000000bit burst 18750 mtu 65535 conform-exceed drop'
    """
    bucket = f"rate {math.ceil(rate)}bit burst {math.ceil(burst)}"
    return f"action police {bucket} mtu 65535 conform-exceed {otherwise}"


def batch(question: Question, best: Tried) -> str | None:
    """The filters of every customer of a plan; None where none has a marker that the kernel could have."""
    effective = question.put(best.scheme, best.settings).check().effective
    groups = {g["name"]: g for g in effective["flows"]}
    router = question.router
    dev = router.inside if router.direction == "upstream" else router.outside
    lines, number, filters, colours = [], router.first, 0, False
    for name in question.place.contracted:
        group = groups[name]
        bought = group["contract"]
        each = bought if isinstance(bought, list) else [bought] * group["count"]
        actions = [_actions(group["marker"], bits_per_second(str(c)), router.customers) for c in each]
        if isinstance(actions[0], str):
            lines.append(f"# cannot: {name}: {actions[0]}")
            number += len(each)
            continue
        lines.append(f"# {name}")
        if group["marker"]["kind"] == "trtcm" and router.customers == "session":
            lines.append("# cannot: trTCM's colours: pedit does not find an IP header inside of PPPoE")
        for found in actions:
            match = _match(router, number)
            lines.append(f"filter add dev {dev} ingress {match} {' '.join(found)}")
            colours = colours or any("continue" in action for action in found)
            number += 1
            filters += 1
    if not filters:
        return None
    if colours:
        lines.append("# Everything else, and what exceeds a customer's rate: OUT.")
        every = "protocol ip pref 2 matchall"
        if router.customers == "vlan":
            every = "protocol 802.1Q pref 2 flower vlan_ethtype ip"
        lines.append(f"filter add dev {dev} ingress {every} {_MARKED.format(octet=_OUT)}")
    head = [
        f"# {best.scheme.title}, found by `inprofile plan`: tc -batch police.tc",
        f"# Replace the customers' numbers and {dev} by yours.",
        GRO.format(dev=dev),
        f"qdisc add dev {dev} clsact",
    ]
    return "\n".join([*head, *lines]) + "\n"


def _actions(marker: Mapping[str, Any] | None, contract: float, customers: str) -> list[str] | str:
    """A marker as a chain of actions, or why there is none."""
    if marker is None:
        return "no marker of their own"
    kind, drops = marker["kind"], marker.get("action") == "drop"
    marked = [_MARKED.format(octet=_IN)]
    if kind == "token_bucket":
        rate, depth = _rate(marker["rate"], contract), float(marker["depth"]["bytes"])
        if drops:
            return [police_action(rate, depth, "drop")]
        if customers == "session":
            return "token_bucket that marks: pedit does not find an IP header inside of PPPoE"
        return [police_action(rate, depth, "continue/pipe"), *marked]
    if kind == "trtcm" and drops and marker.get("mode") == "colour_blind":
        peak = police_action(_rate(marker["pir"], contract), float(marker["pbs"]["bytes"]), "drop/{}")
        if customers == "session":
            return [peak.format("ok")]
        committed = _rate(marker["cir"], contract), float(marker["cbs"]["bytes"])
        return [peak.format("pipe"), police_action(*committed, "continue/pipe"), *marked]
    what = f"{kind} that {'drops' if drops else 'marks'}"
    return f"{what}: two policers in a chain are a token bucket or trTCM, and nothing else"


def _rate(text: str, contract: float) -> float:
    return contract if text == "the flow's contract" else bits_per_second(text)


def _match(router: Router, number: int) -> str:
    """Which packets are a customer's; sessions and VLANs as the filter `flower` knows them."""
    if router.customers == "vlan":
        return f"protocol 802.1Q pref 1 flower vlan_id {number} vlan_ethtype ip"
    if router.customers == "session":
        return f"protocol ppp_ses pref 1 flower pppoe_sid {number}"
    side = "src" if router.direction == "upstream" else "dst"
    return f"protocol ip pref 1 flower {side}_ip 10.{number // 256}.{number % 256}.0/24"
