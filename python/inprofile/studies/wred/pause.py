"""Whether a lossless queue marks before it pauses, and pauses before it drops (PFC, IEEE 802.1Q §36).

A switch counts what waits twice: by the queue that it waits in, whose WRED profile marks, and by the priority
group of the port that it came from. A group that has used up its reserved bytes and its share of the pool
pauses its peer; what still comes goes into the headroom, and what does not fit there is lost.

*Mark before pause.* All that waits in a queue may have come by one port. So marks begin first if the
queue's `min_th` is below what one group may hold; packets of one port that wait in m queues at once are
paused before any is marked unless m·`min_th` is, too (Zhu et al. 2015, §4, have m as the number of ports).

*Pause before drop.* After the decision there still come: what is on the cable both ways, the frame that is
being sent when the pause frame could leave, the one that the peer has begun, and what it sends until
it heeds the pause frame (IEEE 802.3 §31B.3.7). Bytes are wire bytes: the cells of a buffer take more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...metrics.quantity import quantity
from . import sonic
from .profile import Finding, Port, Unreadable

METRES_A_SECOND = 1.98e8
"""Of light in fibre or copper, two thirds of c."""
_QUANTA = {
    1e8: 1, 1e9: 2, 1e10: 67, 2.5e10: 80, 4e10: 118, 5e10: 147, 1e11: 394, 2e11: 453, 4e11: 905, 8e11: 905,
}  # fmt: skip
"""By speed in bit/s, after how many times 512 bits a peer has stopped (IEEE 802.3 §31B.3.7)."""
_FRAME = 9216
"""Bytes of a frame where PORT says no mtu."""
_PAUSE_FRAME = 64


@dataclass(frozen=True)
class Pause:
    """A lossless priority group, and the marking queues with its number. Sizes in bytes."""

    queues: tuple[str, ...]
    profile: str
    """Of the priority group's buffer."""
    pauses_at: int | None
    """What a group may hold while no other is congested; None where the file does not say."""
    marks_from: int | None
    """The lowest `min_th` by which its queue marks; None: it marks nothing."""
    headroom: int | None
    needed: int | None
    """By the cable's length and the port's speed; None where either is not known."""
    findings: tuple[Finding, ...]

    @property
    def queues_at_once(self) -> int | None:
        """In how many queues packets of one port may wait before it is paused without any mark."""
        if self.pauses_at is None or not self.marks_from:
            return None
        return self.pauses_at // self.marks_from

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "queues": list(self.queues),
            "profile": self.profile,
            "pauses_at": self.pauses_at,
            "marks_from": self.marks_from,
            "queues_at_once": self.queues_at_once,
            "headroom": self.headroom,
            "headroom_needed": self.needed,
            "findings": [finding.to_json() for finding in self.findings],
        }

    def text(self) -> str:
        """For a terminal."""
        said = [f"Pause, {self.profile}: {', '.join(self.queues[:3])}{', …' * (len(self.queues) > 3)}"]
        if self.queues_at_once and self.needed is not None and not self.findings:
            said.append("Marks before it pauses, and pauses before it drops.")
        unknown = [
            *(
                ["how much a group may hold (dynamic_th or static_th, and the pool's size)"]
                * (self.pauses_at is None)
            ),
            *(["what may still come after a pause (CABLE_LENGTH, and PORT's speed)"] * (self.needed is None)),
        ]
        said += [f"- the file does not say {what}" for what in unknown]
        if self.pauses_at is not None:
            at = quantity(self.pauses_at, "B")
            said.append(f"- a port is paused from {at} on, while no other is congested")
        if self.queues_at_once:
            from_ = quantity(self.marks_from or 0, "B")
            said.append(
                f"- marks begin before, at {from_}, if its packets wait in no more than"
                f" {self.queues_at_once} queues at once"
            )
        if self.headroom is not None and self.needed is not None:
            said.append(f"- headroom {quantity(self.headroom, 'B')}, needed {quantity(self.needed, 'B')}")
        return "\n".join([*said, *(f"! {finding.says}" for finding in self.findings)])


def headroom(rate: float, metres: float, frame: int) -> int | None:
    """Bytes that still come once a port at `rate` bit/s decides to pause; None for a speed that is none.

    >>> headroom(100e9, 300, 9216)
    81591
    """
    quanta = _QUANTA.get(rate)
    if quanta is None:
        return None
    on_the_cable = 2 * metres / METRES_A_SECOND * rate / 8
    return round(on_the_cable + 2 * frame + _PAUSE_FRAME + 64 * quanta)


def pauses(tree: Mapping[str, Any], ports: list[Port]) -> list[Pause]:
    """The lossless groups of SONiC's `config_db.json` whose queue has a WRED profile, alike ones together.

    A group is lossless where its profile has `xoff`. Raises `Unreadable`.
    """
    profile_of = {queue: port for port in ports for queue in port.queues}
    groups = dict(sonic.by_queue(sonic.table(tree, "BUFFER_PG"), "profile", "BUFFER_PG"))
    found: dict[tuple[Any, ...], list[str]] = {}
    for queue, name in groups.items():
        fields = sonic.table(tree, "BUFFER_PROFILE").get(name)
        if queue not in profile_of or name == "NULL":
            continue
        if fields is None:
            raise Unreadable(f"BUFFER_PROFILE|{name}", "is not there, and a BUFFER_PG names it")
        if "xoff" not in fields:
            continue
        port, physical = profile_of[queue], queue.rpartition("|")[0]
        marks = [curve.min_th for curve in port.profile.mark.values()]
        key = (name, min(marks, default=None), port.rate, _metres(tree, physical), _frame(tree, physical))
        found.setdefault(key, []).append(queue)
    return [_pause(tree, tuple(queues), *key) for key, queues in found.items()]


def _pause(
    tree: Mapping[str, Any],
    queues: tuple[str, ...],
    name: str,
    marks_from: int | None,
    rate: float | None,
    metres: float | None,
    frame: int,
) -> Pause:
    where, fields = f"BUFFER_PROFILE|{name}", sonic.table(tree, "BUFFER_PROFILE")[name]
    room = sonic.number(where, fields, "xoff", None)
    allowed, _, said = sonic.buffer_of(tree, name)
    pool = dict(said.pool_fields) if said is not None else {}
    # Without a shared pool of headroom the group's own bytes hold it too.
    if allowed is not None and int(str(pool.get("xoff", 0)) or 0) == 0:
        allowed -= room
    needed = None if rate is None or metres is None else headroom(rate, metres, frame)
    findings = []
    if marks_from is None:
        findings.append("its queue marks nothing: every congestion pauses; write ecn = ecn_all")
    elif allowed is not None and marks_from >= allowed:
        findings.append(
            f"marks begin at {quantity(marks_from, 'B')}, and a port is paused from"
            f" {quantity(allowed, 'B')} on: senders are paused before they are told to slow down;"
            f" write a min_threshold below {allowed}"
        )
    if needed is not None and room < needed:
        findings.append(
            f"xoff = {room} B of headroom, and {needed} B may still come over {metres:g} m after the pause:"
            " the rest is lost; write at least that"
        )
    made = tuple(Finding(where, says) for says in findings)
    return Pause(queues, name, allowed, marks_from, room, needed, made)


def _metres(tree: Mapping[str, Any], port: str) -> float | None:
    for fields in sonic.table(tree, "CABLE_LENGTH").values():
        if port in fields:
            text = str(fields[port])
            if not text.endswith("m") or not text[:-1].isdecimal():
                raise Unreadable("CABLE_LENGTH", f'{port} = "{text}": write metres, such as "5m"')
            return float(text[:-1])
    return None


def _frame(tree: Mapping[str, Any], port: str) -> int:
    """With Ethernet's header, a VLAN tag and the checksum."""
    fields = sonic.table(tree, "PORT").get(port, {})
    return sonic.number(f"PORT|{port}", fields, "mtu", None) + 22 if "mtu" in fields else _FRAME
