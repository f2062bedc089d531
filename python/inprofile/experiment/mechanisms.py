"""The markers, queue disciplines, schedulers and TCP senders there are, and an experiment's keys by name.

Senders have their names in `senders.toml`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .. import _internal
from ..own.registry import engine_classes


@dataclass(frozen=True)
class Parameter:
    """Something an operator sets."""

    name: str
    """Its key; `in.min_th` is `min_th` in the table `in`."""
    kind: str
    """`rate`, `duration`, `bytes`, `backlog`, `number`, `count`, `flag` or `choice`."""
    unit: str | None
    """The units it may have."""
    bounds: str | None
    """The values it may have."""
    default: str | None
    """Its default, as it would be written; `None` where it has none."""
    doc: str
    """Its meaning."""


@dataclass(frozen=True)
class Mechanism:
    """A marker, a queue discipline or a scheduler."""

    name: str
    """The word in an experiment file."""
    kind: str
    """`marker`, `aqm`, or `scheduler`, whose parameters are set of each class."""
    summary: str
    """Its function, in a sentence."""
    source: str
    """Where it comes from."""
    parameters: tuple[Parameter, ...]
    """The operator's settings."""


def mechanisms() -> list[Mechanism]:
    """Every mechanism.

    >>> [m.name for m in mechanisms() if m.kind == "scheduler"]
    ['priority', 'drr']
    """
    return [_mechanism(entry) for entry in json.loads(_internal.mechanisms(engine_classes()))]


def schema() -> dict[str, Any]:
    """JSON Schema of the experiment file.

    >>> schema()["type"]
    'object'
    """
    made: dict[str, Any] = json.loads(_internal.schema(engine_classes()))
    return made


def _mechanism(entry: Mapping[str, Any]) -> Mechanism:
    return Mechanism(
        entry["name"],
        entry["kind"],
        entry["summary"],
        entry["source"],
        tuple(Parameter(**parameter) for parameter in entry["parameters"]),
    )


_Schema = Mapping[str, Any]


class Key(NamedTuple):
    """One that may be set."""

    name: str
    """Its parts joined by points: `links.bottleneck.rate`."""
    doc: str
    """Its meaning."""
    values: tuple[str, ...]
    """The words allowed, where there are only a few."""


def keys(given: Mapping[str, Any]) -> Iterator[Key]:
    """Those there are, of the tables and mechanisms of an experiment: the tree of its file, or of none.

    A table of a list goes by its name, or by its number from 0.

    >>> [key.name for key in keys({"links": [{"name": "slow", "queue": {"aqm": "pie"}}]})
    ...  if key.name.startswith("links.slow.queue.t")]
    ['links.slow.queue.t_update', 'links.slow.queue.target']
    >>> next(key.values for key in keys({}) if key.name == "tcp.profile")
    ('rfc', 'linux', 'ns2')
    """
    whole = schema()
    return _within(whole, whole["$defs"], given, "")


def _within(table: _Schema, shared: _Schema, given: object, path: str) -> Iterator[Key]:
    there = given if isinstance(given, Mapping) else {}
    for name, key in table.get("properties", {}).items():
        yield from _at(key, shared, there.get(name), f"{path}{name}")


def _at(key: _Schema, shared: _Schema, given: object, path: str) -> Iterator[Key]:
    key = shared[key["$ref"].removeprefix("#/$defs/")] if "$ref" in key else key
    forms = key.get("oneOf", key.get("anyOf", ()))
    if "properties" in key:
        yield from _within(key, shared, given, f"{path}.")
    elif any("properties" in form for form in forms):
        yield from _one_of(forms, shared, given, path)
    elif "properties" in key.get("items", {}):
        tables = given if isinstance(given, Sequence) and not isinstance(given, str) else [{}]
        for number, one in enumerate(tables):
            named = one if isinstance(one, Mapping) else {}
            name = named.get("name", named.get("node", number))
            yield from _within(key["items"], shared, one, f"{path}.{name}.")
    else:
        words = ("true", "false") if key.get("type") == "boolean" else key.get("enum", ())
        yield Key(path, key.get("description", ""), tuple(map(str, words)))


def _one_of(forms: Sequence[_Schema], shared: _Schema, given: object, path: str) -> Iterator[Key]:
    """The word that says which it is, and the keys of the one that is given."""
    there = given if isinstance(given, Mapping) else {}
    told: dict[str, list[str]] = {}
    for form in forms:
        for name, key in form.get("properties", {}).items():
            if "const" in key:
                told.setdefault(name, []).append(str(key["const"]))
    for name, words in told.items():
        yield Key(f"{path}.{name}", "Which it is.", tuple(words))
    for form in forms:
        its = form.get("properties", {})
        if any(name in its and its[name].get("const") == there.get(name, "") for name in told):
            for name, key in its.items():
                if "const" not in key:
                    yield from _at(key, shared, there.get(name), f"{path}.{name}")
            return


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
