"""Schemes, as schemes.toml and files of your own have them, and how one is put on an experiment.

A scheme is a set of overrides, nothing else. Every scheme gets the same experiment, and the same number of
settings of one length T: how long the queue is meant to get. An experiment says which link is measured; the
scheme has that link's queue, the markers of the flows that cross it, and the place where they enter it.

In a scheme's values `"2 T"` is a length of twice T, `"1/3 T as time, at least 100 ms"` a time,
`"4 longest T"` a length of four times the longest T that is tried, `"2..200 log over T"` goes from 2 to 200
while T goes from its shortest to its longest, `"link rate"` the measured link's,
`"0.95 of link rate"` so much of it, `"1.2 of contract"` a rate
and `"300 ms of contract"` a size: what arrives at the contract's rate in that time. What `plan` may set
besides T is in the scheme's table `plan` (`settings`).
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._input import read_file
from ...experiment.mechanisms import mechanisms
from ...metrics.quantity import bits_per_second
from .settings import Over, Setting, SettingError, setting_of

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario

HERE = Path(__file__).parent
#: Schemes that take part only where they are named, each with its file.
_NAMED = {name: HERE / f"{name}.toml" for name in ("switch", "kernel")}
#: A length in schemes.toml: so many T, in packets or, where a discipline wants a time, as time,
#: perhaps with a least value.
_LENGTH = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)(?:/([0-9]+))? T( as time(?:, at least ([0-9.]+) ms)?)?")
#: A length that no setting changes: so many times the longest T.
_FIXED = re.compile(r"([0-9.]+) longest T")
#: In place of a rate: the measured link's.
_LINK_RATE = "link rate"
#: So much of it.
_OF_LINK_RATE = re.compile(r"([0-9.]+) of link rate")
#: A rate, or what arrives in a time at it, of the contract of the flow that is marked.
_OF_CONTRACT = re.compile(r"([0-9.]+(?:e-?[0-9]+)?)(?: (s|ms|us))? of contract")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


class UnknownSchemeError(LookupError):
    """No scheme of that name."""

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        names = list(known) or [s["id"] for s in about()["schemes"]]
        near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        if kind := next((m.kind for m in mechanisms() if m.name == name), None):
            part = f'flows = {{ kind = "{name}" }}' if kind == "marker" else f'queue = {{ aqm = "{name}" }}'
            hint = f"it is a mechanism, and a scheme of yours in a file may have it: {part}. "
        super().__init__(f'there is no scheme "{name}": {hint}Choose from {", ".join(names)}')


class SchemeFileError(ValueError):
    """A file of schemes that cannot be used; the text says where and why."""


class NoContractError(ValueError):
    """Schemes that mark by contract, on an experiment without one."""

    def __init__(self, file: str, schemes: Sequence[Scheme]) -> None:
        free = ",".join(s["id"] for s in about()["schemes"] if "needs" not in s)
        super().__init__(
            f"{file}: no flow that crosses the measured link has a contract, and"
            f" {', '.join(s.title for s in schemes)} mark{'s' * (len(schemes) == 1)} by it\n"
            f'  add contract = "500 kbit/s" to a group of flows, or compare without: --schemes {free}'
        )


@cache
def about() -> dict[str, Any]:
    """Read schemes.toml."""
    return tomllib.loads((HERE / "schemes.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Scheme:
    """One entry of schemes.toml."""

    id: str
    title: str
    text: str
    queue: Mapping[str, Any]
    #: Markers: of flows with a contract, of those without, and of all at the edge.
    flows: Mapping[str, Any] | None = None
    others: Mapping[str, Any] | None = None
    edge: Mapping[str, Any] | None = None
    #: Whether what the edge tells goes to the queue.
    tells: bool = False
    #: "contracts", or nothing in particular.
    needs: str = ""
    #: What `plan` may set besides T: ranges by dotted key, as `settings` reads them.
    plan: Mapping[str, str] = field(default_factory=dict)

    @property
    def tuned(self) -> list[str]:
        """The parameters that T sets, as the method of a comparison names it: `rio in.max_th = 2 T`."""
        named = (
            (self.flows, "kind", "marker of flows with a contract, "),
            (self.others, "kind", "marker of the others, "),
            (self.edge, "kind", "edge, "),
            (self.queue, "aqm", "queue, "),
        )
        return [
            f"{what}{part[kind]}: {', '.join(found)}"
            for part, kind, what in named
            if part is not None and (found := list(_set_by_t(part)))
        ]

    @property
    def settings(self) -> list[Setting]:
        """The parameters that `plan` may set besides T. Raises SettingError."""
        parts = {"queue": self.queue, "flows": self.flows, "others": self.others, "edge": self.edge}
        return [setting_of(key, text, parts) for key, text in self.plan.items()]

    def set(self, chosen: Mapping[str, float]) -> Scheme:
        """The scheme with these of its settings, by key."""
        made: dict[str, Any] = {
            "queue": self.queue,
            "flows": self.flows,
            "others": self.others,
            "edge": self.edge,
        }
        for setting in self.settings:
            if setting.key in chosen:
                made = setting.put(made, chosen[setting.key])
        return replace(self, **made)

    def filled(self, value: Any, place: Place, length: float, key: str = "", contract: float = 0.0) -> Any:
        """One of its settings with lengths and rates filled in, for a T of `length` seconds.

        `contract` (bit/s) is that of the flows whose marker it is. Raises SchemeFileError where such a
        setting is of a contract and there is none, or more than one.
        """
        if isinstance(value, Mapping):
            return {k: self.filled(v, place, length, k, contract) for k, v in value.items()}
        if value == _LINK_RATE:
            return place.rate
        if not isinstance(value, str):
            return value
        if found := _OF_LINK_RATE.fullmatch(value):
            return f"{float(found[1]) * bits_per_second(place.rate):.0f} bit/s"
        if over := Over.of(value):
            tried = lengths(place)
            return over.at(math.log(length / tried[0]) / math.log(tried[-1] / tried[0]))
        if fixed := _FIXED.fullmatch(value):
            return self.filled(f"{fixed[1]} T", place, lengths(place)[-1], key)
        if found := _OF_CONTRACT.fullmatch(value):
            if contract <= 0:
                raise SchemeFileError(
                    f'{self.title}: {key} = "{value}" needs flows with one contract a group: give flows with'
                    " other contracts a group of their own"
                )
            if found[2] is None:
                return f"{float(found[1]) * contract:.0f} bit/s"
            size = float(found[1]) * _SECONDS[found[2]] * contract / 8
            return f"{max(place.packet, round(size))} B"
        match = _LENGTH.fullmatch(value)
        if match is None:
            return value
        amount = float(match[1]) / float(match[2] or 1) * length
        if match[3]:
            return f"{max(1e3 * amount, float(match[4] or 0)):.6g} ms"
        packets = amount / place.packet_time
        if key == "limit":
            # A limit is a whole number of packets, and none is above the buffer.
            return f"{max(1, round(min(packets, place.buffer)))} packets"
        if key == "virtual_limit":
            # So is this, of packets that nobody has to keep.
            return f"{max(1, round(packets))} packets"
        return f"{packets:.6g} packets"

    def values(self, place: Place, length: float) -> dict[str, object]:
        """Overrides that put the scheme in its place, with a T of `length` seconds."""

        def filled(value: Any, contract: float = 0.0) -> Any:
            return self.filled(value, place, length, contract=contract)

        values: dict[str, object] = {"monitors": [], f"links.{place.link}.queue": filled(self.queue)}
        for groups, marker in ((place.contracted, self.flows), (place.free, self.others)):
            # A group whose marker the experiment set keeps none of it.
            values.update(
                {
                    f"flows.{group}.marker": filled(marker, place.contracts.get(group, 0.0))
                    for group in groups
                    if marker is not None
                }
            )
        values["edges"] = [] if self.edge is None else [{"node": place.node, "marker": filled(self.edge)}]
        values["signals"] = [{"from": place.node, "to": place.link}] if self.tells else []
        return values


def read_schemes(path: str | Path) -> list[Scheme]:
    """The schemes of a file of one's own, in the form of schemes.toml. Raises SchemeFileError, OSError."""
    try:
        found = tomllib.loads(read_file(path).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SchemeFileError(f"{path}: this is no TOML: {error}") from None
    strange = set(found) - {"schemes"}
    entries = found.get("schemes")
    if strange or not isinstance(entries, list) or not entries:
        named = f"{', '.join(sorted(strange))} is not known here" if strange else "there is no [[schemes]]"
        raise SchemeFileError(f"{path}: {named}: write a table [[schemes]] for each scheme")
    made: list[Scheme] = []
    for number, entry in enumerate(entries, start=1):
        scheme = _scheme_of(entry, f"{path}: [[schemes]] number {number}")
        if any(scheme.id == other.id for other in made):
            raise SchemeFileError(f'{path}: the id "{scheme.id}" is given twice: give each scheme its own')
        made.append(scheme)
    return made


def _scheme_of(entry: Any, where: str) -> Scheme:
    """Check one entry of a file."""
    known = {f.name for f in fields(Scheme)}
    if not isinstance(entry, Mapping):
        raise SchemeFileError(f"{where} is no table")
    for key, value in entry.items():
        if key not in known:
            raise SchemeFileError(f"{where}: {key} is no key of a scheme: write one of {', '.join(known)}")
        wanted = bool if key == "tells" else str if key in ("id", "title", "text", "needs") else Mapping
        if not isinstance(value, wanted):
            kind = {bool: "true or false", str: "a text", Mapping: "a table"}[wanted]
            raise SchemeFileError(f"{where}: {key} = {value!r} is not {kind}")
    for key in ("id", "queue"):
        if not entry.get(key):
            raise SchemeFileError(f"{where}: {key} is missing")
    if not re.fullmatch(r"[A-Za-z0-9][\w-]*", entry["id"]):
        raise SchemeFileError(f'{where}: id = "{entry["id"]}": write letters, digits and hyphens')
    if "aqm" not in entry["queue"]:
        raise SchemeFileError(f"{where}: queue has no aqm: write which discipline it is")
    if entry.get("needs", "contracts") != "contracts":
        raise SchemeFileError(f'{where}: needs = "{entry["needs"]}": write "contracts" or leave it out')
    made = Scheme(**{"title": entry["id"], "text": "", **entry})
    try:
        _ = made.settings
    except SettingError as error:
        raise SchemeFileError(f"{where}, plan: {error}") from None
    return made


def _set_by_t(part: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The values that follow T, each with its key."""
    for key, value in part.items():
        if isinstance(value, Mapping):
            yield from _set_by_t(value, f"{path}{key}.")
        elif isinstance(value, str) and _LENGTH.fullmatch(value):
            yield f"{path}{key} = {value}"
        elif isinstance(value, str) and (over := Over.of(value)):
            yield f"{path}{key} from {over.words}"


def is_length(text: str) -> bool:
    """Whether it is a length of T.

    >>> is_length("1/2 T as time"), is_length("2..200 over T")
    (True, False)
    """
    return _LENGTH.fullmatch(text) is not None


def has_length(scheme: Scheme) -> bool:
    """Whether any of its values is a length of T."""

    def inside(value: object) -> bool:
        if isinstance(value, Mapping):
            return any(inside(v) for v in value.values())
        return isinstance(value, str) and (_LENGTH.fullmatch(value) or Over.of(value)) is not None

    return any(inside(part) for part in (scheme.queue, scheme.flows, scheme.others, scheme.edge))


def choose(names: Sequence[str] | None = None, own: Sequence[Scheme] = ()) -> list[Scheme]:
    """Schemes by name, in the order of schemes.toml (default: all), and `own` ones after them.

    A name that ends in `.toml` is a file of schemes, all of which take part; one of ours with the same id
    gives way. `switch` is what a switch can have, `kernel` what the router's datapath there can have,
    each of a file of ours. Raises `UnknownSchemeError`, and what `read_schemes` raises.
    """
    known = {s["id"]: Scheme(**s) for s in about()["schemes"]} | {s.id: s for s in own}
    if names is None:
        return list(known.values())
    wanted: list[str] = []
    for name in names:
        if name.endswith(".toml") or name in _NAMED:
            read = read_schemes(_NAMED.get(name, name))
            known |= {s.id: s for s in read}
            wanted += [s.id for s in read]
        else:
            wanted.append(name)
    for name in wanted:
        if name not in known:
            raise UnknownSchemeError(name, list(known))
    return [scheme for name, scheme in known.items() if name in wanted]


@dataclass(frozen=True)
class Place:
    """Where in an experiment a scheme goes."""

    #: The measured link, its rate as written, and the node where it begins.
    link: str
    rate: str
    node: str
    #: What a full packet takes to send there, in seconds.
    packet_time: float
    #: Groups of flows that cross it, with a contract and without.
    contracted: tuple[str, ...]
    free: tuple[str, ...]
    #: By group, in bit/s, where all of its flows have the same.
    contracts: Mapping[str, float] = field(default_factory=dict)
    #: The most packets that the queue may hold.
    buffer: float = math.inf
    #: A full packet's size in bytes.
    packet: int = 1500

    @staticmethod
    def of(scenario: Scenario) -> Place:
        """Find it in the effective experiment."""
        effective = scenario.check().effective
        name = effective["measure"]["at"]
        link = next(one for one in effective["links"] if one["name"] == name)
        rate, packet = bits_per_second(link["rate"]), int(effective["packet"].removesuffix(" B"))
        crossing = [g for g in effective["flows"] if name in g["route"] and g["count"] > 0]
        return Place(
            name,
            link["rate"],
            link["from"],
            8 * packet / rate,
            tuple(g["name"] for g in crossing if g["contract"] is not None),
            tuple(g["name"] for g in crossing if g["contract"] is None),
            {g["name"]: bits_per_second(g["contract"]) for g in crossing if isinstance(g["contract"], str)},
            packet=packet,
        )

    def check(self, file: str, schemes: Sequence[Scheme]) -> None:
        """Raise `NoContractError` where a scheme needs contracts and there are none."""
        lacking = [s for s in schemes if s.needs == "contracts"]
        if lacking and not self.contracted:
            raise NoContractError(file, lacking)


def lengths(place: Place, quick: bool = False) -> list[float]:
    """Settings of T in seconds, the same for every scheme: each twice the one before.

    >>> place = Place("bottleneck", "10 Mbit/s", "edge", 0.0012, (), ())
    >>> [round(1000 * t) for t in lengths(place)]
    [6, 12, 24, 48, 96, 192]
    """
    tuning = about()["tuning"]
    shortest = float(tuning["shortest"].removesuffix(" ms")) / 1e3
    least = float(tuning["least"].removesuffix(" packets")) * place.packet_time
    first = max(shortest, least)
    made = [first * 2**k for k in range(tuning["settings"])]
    return made[1::2] if quick else made
