"""TCP senders by name (`senders.toml`), and the congestion controls and laws of loss recovery there are."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .mechanisms import schema


@dataclass(frozen=True)
class Law:
    """A congestion control, or a law that a sender follows."""

    name: str
    """Its name; of a congestion control, the word in an experiment file."""
    summary: str
    """Its function, in a sentence."""
    source: str
    """Where it comes from."""
    written: str
    """The keys of `[tcp]` that select it."""


def _control(name: str, summary: str, source: str, profile: str | None = None) -> Law:
    word = f'congestion = "{name}"'
    return Law(name, summary, source, f'profile = "{profile}", {word}' if profile else word)


_CONTROLS = (
    _control("reno", "Fast retransmit and fast recovery; half the window after a loss.", "RFC 5681"),
    _control("newreno", "Recovery lasts until all data sent before it is acknowledged.", "RFC 6582"),
    _control("sack", "Recovery by selective acknowledgements, growth as in Reno.", "RFC 2018, RFC 6675"),
    _control("cubic", "The window is a cubic function of the time since the last loss.", "RFC 9438"),
    _control("dctcp", "The window is reduced by half the fraction of marked packets.", "RFC 8257", "linux"),
    _control(
        "prague",
        "DCTCP for the Internet: L4S traffic, ECT(1), paced, RTT-independent on short paths.",
        "draft-briscoe-iccrg-prague-congestion-control, RFC 9331",
        "linux",
    ),
    _control(
        "bbr",
        "A model of the path's rate and round-trip time sets rate and window.",
        "draft-ietf-ccwg-bbr",
        "linux",
    ),
    _control("ledbat", "Gives way to other traffic as soon as a queue builds up.", "RFC 6817", "linux"),
    _control(
        "copa",
        "The rate aims at two packets of each flow in the queue.",
        "Arun and Balakrishnan, NSDI 2018, default mode",
        "linux",
    ),
    _control(
        "dcqcn",
        "Of RDMA over Converged Ethernet: a rate, cut by notifications, raised by timer and byte counter.",
        "Zhu et al., SIGCOMM 2015",
        "linux",
    ),
)

_LAWS = (
    Law(
        "rack",
        "A packet is lost when one sent later has arrived; probes for lost tails.",
        "RFC 8985",
        'profile = "linux"',
    ),
    Law(
        "prr",
        "During recovery the window is reduced in proportion to delivered data.",
        "RFC 9937, RFC 6937",
        'profile = "linux"; by either RFC: prr = "rfc9937", "rfc6937"',
    ),
    Law(
        "hystart",
        "Slow start ends before it overflows the queue.",
        "Ha and Rhee 2011, as Linux has it",
        'profile = "linux", congestion = "cubic"',
    ),
    Law(
        "hystart++",
        "Slow start ends when round-trip times grow, and resumes if they shrink again.",
        "RFC 9406",
        'slow_start = "hystart++"',
    ),
    Law(
        "pacing",
        "Packets leave at a rate, in trains of about a millisecond.",
        "Linux",
        'profile = "linux", pacing = true',
    ),
    Law("ecn", "Packets are marked instead of dropped, and marks are echoed.", "RFC 3168", "ecn = true"),
    Law(
        "accurate_ecn",
        "Each acknowledgement reports how many packets were marked.",
        "RFC 9768",
        'profile = "linux", ecn = true, accurate_ecn = true',
    ),
)


def laws() -> list[Law]:
    """The congestion controls that an experiment file may name, then the laws that profiles and keys choose.

    >>> [law.source for law in laws() if law.name == "cubic"]
    ['RFC 9438']
    """
    keys = schema()["properties"]["tcp"]["properties"]
    known = keys["congestion"]["enum"]
    return [c for c in _CONTROLS if c.name in known] + list(_LAWS)


class UnknownSenderError(LookupError):
    """No sender of that name."""

    def __init__(self, name: str) -> None:
        known = [s.id for s in all_senders()]
        near = difflib.get_close_matches(name.lower(), [*known, *_congestions()], n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        super().__init__(f'there is no sender "{name}": {hint}Choose from {", ".join(known)}')


@dataclass(frozen=True)
class Sender:
    """How a host sends today."""

    id: str
    title: str
    text: str
    #: What `[tcp]` has; anything else is the profile's default.
    tcp: Mapping[str, str | bool]
    #: CPU time of a packet beside that of ns-2's Reno: for estimates only.
    cost: float
    #: It sends at a rate of its own: jitter has no place.
    paced: bool = False

    @property
    def changes(self) -> dict[str, object]:
        """The keys of an experiment that it replaces; the rest of `[tcp]` stays.

        >>> senders()[0].changes
        {'tcp.profile': 'linux', 'tcp.congestion': 'cubic'}
        """
        found: dict[str, object] = {f"tcp.{key}": value for key, value in self.tcp.items()}
        return found | {"tcp.jitter": "0 s"} if self.paced else found


@cache
def _read() -> dict[str, tuple[Sender, ...]]:
    with (Path(__file__).parent / "senders.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)
    return {kind: tuple(Sender(**entry) for entry in entries) for kind, entries in found.items()}


def senders() -> tuple[Sender, ...]:
    """Today's, in the order in which tables have them.

    >>> [sender.id for sender in senders()]
    ['linux', 'prague', 'bbr']
    """
    return _read()["senders"]


def sender(name: str) -> Sender:
    """One by its name, or by that of its congestion control. Raises UnknownSenderError.

    >>> sender("bbr").title, sender("cubic").id
    ('BBR version 3', 'linux')
    """
    for one in all_senders():
        if name in (one.id, one.tcp["congestion"]):
            return one
    raise UnknownSenderError(name)


def all_senders() -> tuple[Sender, ...]:
    """Today's, then the others that there is a name for."""
    return (*senders(), *_read()["others"])


def _congestions() -> list[str]:
    return [str(one.tcp["congestion"]) for one in all_senders()]
