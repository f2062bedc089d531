"""Schemes, as schemes.toml has them, and how one is put on an experiment: a set of overrides, nothing else.

Every scheme gets the same experiment, and the same number of settings of one length T: how long the queue is
meant to get. An experiment says which link is measured; the scheme has that link's queue, the markers of the
flows that cross it, and the place where they enter it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..quantity import bits_per_second

if TYPE_CHECKING:
    from ..scenario import Scenario

__all__ = ["HERE", "NoContractError", "Place", "Scheme", "UnknownSchemeError", "about", "choose", "lengths"]

HERE = Path(__file__).parent
#: A length in schemes.toml: so many T, in packets or, where a discipline wants a time, as time.
_LENGTH = re.compile(r"([0-9.]+)(?:/([0-9]+))? T( as time)?")
#: In place of a rate: the measured link's.
_LINK_RATE = "link rate"


class UnknownSchemeError(LookupError):
    """No scheme of that name."""

    def __init__(self, name: str) -> None:
        known = [s["id"] for s in about()["schemes"]]
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        super().__init__(f'there is no scheme "{name}": {hint}Choose from {", ".join(known)}')


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

    def filled(self, value: Any, place: Place, length: float) -> Any:
        """One of its settings with lengths and rates filled in, for a T of `length` seconds."""
        if isinstance(value, Mapping):
            return {key: self.filled(v, place, length) for key, v in value.items()}
        if value == _LINK_RATE:
            return place.rate
        match = _LENGTH.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        amount = float(match[1]) / float(match[2] or 1) * length
        return f"{1e3 * amount:.6g} ms" if match[3] else f"{amount / place.packet_time:.6g} packets"

    def values(self, place: Place, length: float) -> dict[str, object]:
        """Overrides that put the scheme in its place, with a T of `length` seconds."""

        def filled(value: Any) -> Any:
            return self.filled(value, place, length)

        values: dict[str, object] = {"monitors": [], f"links.{place.link}.queue": filled(self.queue)}
        for groups, marker in ((place.contracted, self.flows), (place.free, self.others)):
            # A group whose marker the experiment set keeps none of it.
            values.update({f"flows.{group}.marker": filled(marker) for group in groups if marker is not None})
        values["edges"] = [] if self.edge is None else [{"node": place.node, "marker": filled(self.edge)}]
        values["signals"] = [{"from": place.node, "to": place.link}] if self.tells else []
        return values


def choose(names: Sequence[str] | None = None) -> list[Scheme]:
    """Schemes by name, in the order of schemes.toml; all if left out. Raises `UnknownSchemeError`."""
    known = {s["id"]: Scheme(**s) for s in about()["schemes"]}
    for name in names or ():
        if name not in known:
            raise UnknownSchemeError(name)
    return [scheme for name, scheme in known.items() if names is None or name in names]


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
