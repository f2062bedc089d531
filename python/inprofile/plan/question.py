"""What is asked: an experiment, whose markers and measured link's queue are to be found, and a goal.

The file is an experiment file with one more table:

    [plan]
    kept = "99 %"                  # every contract is kept in at least this share of the runs
    delay = "30 ms"                # mean queueing delay at the measured link, at most
    best_effort = "1 Mbit/s"       # what flows without a contract get together, at least
    schemes = ["rio", "own.toml"]  # schemes to choose from, and files of schemes; default: all

Without the table it is today's network: its queue has the buffer that every scheme gets along with.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._input import read_file
from ..compare.schemes import Place, Scheme, SchemeFileError, choose
from ..compare.settings import SettingError
from ..quantity import bits_per_second
from ..scenario import Scenario, parse

__all__ = ["Goal", "PlanError", "Question", "Router", "read_question"]

KEYS = ("kept", "delay", "best_effort", "schemes", "router")
ROUTER_KEYS = ("inside", "outside", "direction", "customers", "first")
#: How customers are told apart, with the least and the greatest number: 10.0.0.0/24 to 10.255.255.0/24, VLANs
#: (IEEE 802.1Q), PPPoE sessions (RFC 2516; 0 is discovery's, 65535 reserved).
NUMBERS = {"prefix": (0, 65_535), "vlan": (1, 4094), "session": (1, 65_534)}
KINDS = tuple(NUMBERS)


class PlanError(ValueError):
    """A plan that cannot be made from this file; the text says why and what to write."""


@dataclass(frozen=True)
class Goal:
    """What has to be kept."""

    kept: float = 0.99
    """Share of the runs in which every contract is kept."""
    delay: float | None = None
    """Mean queueing delay in s, at most."""
    best_effort: float = 0.0
    """bit/s that flows without a contract get, at least."""


@dataclass(frozen=True)
class Router:
    """How the router's file tells customers apart."""

    inside: str = "lan0"
    outside: str = "wan0"
    direction: str = "upstream"
    customers: str = "prefix"
    """`prefix`, `vlan` or `session`."""
    first: int = 1
    """The first customer's number; the others follow."""


@dataclass(frozen=True)
class Question:
    """A network, its goal, and what to choose from."""

    scenario: Scenario
    place: Place
    link_rate: float
    """bit/s of the measured link."""
    goal: Goal
    schemes: tuple[Scheme, ...]
    router: Router = field(default_factory=Router)

    @property
    def shortest(self) -> float:
        """The least T in seconds: three packets, or a millisecond."""
        return max(1e-3, 3 * self.place.packet_time)

    @property
    def longest(self) -> float:
        """The greatest T in seconds: half the buffer, or half a second."""
        return min(0.5, max(2 * self.shortest, 0.5 * self.place.buffer * self.place.packet_time))

    def put(self, scheme: Scheme, settings: Mapping[str, float]) -> Scenario:
        """The experiment with a scheme at these settings; `T` is in seconds."""
        others = {key: x for key, x in settings.items() if key != "T"}
        return self.scenario.with_(scheme.set(others).values(self.place, settings["T"]))

    def of(self, scenario: Scenario) -> Question:
        """The same question of a changed network."""
        return replace(self, scenario=scenario, place=_place(scenario), link_rate=_rate(scenario))


def read_question(path: str | Path, names: Sequence[str] | None = None) -> Question:
    """Read a plan's file; `names` take the place of its schemes.

    Raises PlanError, UnknownSchemeError, SchemeFileError, and ScenarioError for the experiment in it.
    """
    try:
        text = read_file(path).decode("utf-8")
        whole = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: this is no TOML: {error}") from None
    asked = whole.pop("plan", {})
    if not isinstance(asked, Mapping):
        raise PlanError(f"{path}: plan is to be a table: write [plan], and kept, delay, … below it")
    bare = _without_plan(text)
    if tomllib.loads(bare) != whole:
        raise PlanError(
            f"{path}: write the goal as a table [plan] of its own lines, and nothing of it elsewhere"
        )
    scenario = parse(bare, str(path))
    place = _place(scenario)
    if not place.contracted:
        raise PlanError(
            f"{path}: no flow that crosses {place.link} has a contract: there is nothing to keep."
            ' Write contract = "2 Mbit/s" at a group of flows'
        )
    rate = _rate(scenario)
    goal = _goal(asked, str(path), rate, bool(place.free))
    schemes = _schemes(asked, path, names)
    _fit(scenario, place, schemes, str(path))
    router = _router(asked.get("router", {}), str(path), _customers(scenario, place))
    return Question(scenario, place, rate, goal, schemes, router)


def _without_plan(text: str) -> str:
    """The text with the lines of `[plan]` and its subtables empty: other lines keep their numbers."""
    lines, inside = [], False
    for line in text.splitlines():
        if re.match(r"\s*\[", line):
            inside = re.match(r"\s*\[\s*plan\s*[.\]]", line) is not None
        lines.append("" if inside else line)
    return "\n".join(lines) + "\n"


def _place(scenario: Scenario) -> Place:
    """Where schemes go, with the buffer that the file's own queue has."""
    place = Place.of(scenario)
    link = next(one for one in scenario.check().effective["links"] if one["name"] == place.link)
    if "classes" in link["queue"]:
        raise PlanError(
            f"{scenario.file}: {place.link} has classes: plan the assured one alone, as a link of its rate"
        )
    return replace(place, buffer=float(link["queue"]["limit"]["packets"]))


def _rate(scenario: Scenario) -> float:
    effective = scenario.check().effective
    return next(
        bits_per_second(one["rate"])
        for one in effective["links"]
        if one["name"] == effective["measure"]["at"]
    )


def _goal(asked: Mapping[str, Any], file: str, rate: float, others: bool) -> Goal:
    for key in asked:
        if key not in KEYS:
            raise PlanError(f"{file}: plan.{key} is not known: write one of {', '.join(KEYS)}")
    kept = _share(asked.get("kept", "99 %"), f"{file}: plan.kept")
    if not 0.5 <= kept < 1:
        raise PlanError(
            f'{file}: plan.kept = "{asked["kept"]}": write a share of the runs from 50 % to below 100 %:'
            " no number of runs shows that something always holds"
        )
    delay = None
    if "delay" in asked:
        delay = _seconds(asked["delay"], f"{file}: plan.delay")
    best_effort = 0.0
    if "best_effort" in asked:
        if not others:
            raise PlanError(f"{file}: plan.best_effort: every flow has a contract: leave it out")
        best_effort = _part_of(asked["best_effort"], rate, f"{file}: plan.best_effort")
    return Goal(kept, delay, best_effort)


def _share(text: object, where: str) -> float:
    found = re.fullmatch(r"([0-9.]+) ?%", text.strip()) if isinstance(text, str) else None
    try:
        return float(found[1]) / 100 if found else float(str(text) if isinstance(text, float) else "?")
    except ValueError:
        raise PlanError(f'{where} = {text!r}: write a share, such as "99 %" or 0.99') from None


def _seconds(text: object, where: str) -> float:
    found = re.fullmatch(r"([0-9.]+) ?(s|ms|us)", text.strip()) if isinstance(text, str) else None
    try:
        seconds = float(found[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[found[2]] if found else 0.0
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise PlanError(f'{where} = {text!r}: write a time above 0, such as "30 ms"')
    return seconds


def _part_of(text: object, rate: float, where: str) -> float:
    """A rate, or a share of the link's."""
    try:
        if isinstance(text, str) and not text.strip().endswith("%"):
            found = bits_per_second(text)
        else:
            found = _share(text, where) * rate
    except (KeyError, ValueError, PlanError):
        raise PlanError(
            f'{where} = {text!r}: write a rate, "1 Mbit/s", or a share of the link, "5 %"'
        ) from None
    if not 0 <= found < rate:
        raise PlanError(f"{where} = {text!r} is not less than the link's rate")
    return found


def _schemes(asked: Mapping[str, Any], path: str | Path, names: Sequence[str] | None) -> tuple[Scheme, ...]:
    if names is None and "schemes" in asked:
        listed = asked["schemes"]
        if not isinstance(listed, list) or not listed or not all(isinstance(n, str) for n in listed):
            raise PlanError(f'{path}: plan.schemes: write a list of names, such as ["rio", "srtcm-wred"]')
        # A file of schemes lies beside the plan's.
        names = [str(Path(path).parent / n) if n.endswith(".toml") else n for n in listed]
    return tuple(choose(names))


def _fit(scenario: Scenario, place: Place, schemes: Sequence[Scheme], file: str) -> None:
    """Refuse a scheme that this experiment cannot take, before anything has run."""
    place.check(file, schemes)
    for scheme in schemes:
        try:
            for setting in scheme.settings:
                scheme.set({setting.key: setting.low}).values(place, 0.02)
        except (SettingError, SchemeFileError) as error:
            raise PlanError(f"{file}: {error}") from None
        scenario.with_(scheme.values(place, 0.02))


def _customers(scenario: Scenario, place: Place) -> int:
    """How many flows have a contract: each is a customer of the router."""
    groups = scenario.check().effective["flows"]
    return sum(g["count"] for g in groups if g["name"] in place.contracted)


def _router(asked: object, file: str, customers: int) -> Router:
    if not isinstance(asked, Mapping):
        raise PlanError(f"{file}: plan.router is to be a table")
    for key, value in asked.items():
        if key not in ROUTER_KEYS:
            raise PlanError(f"{file}: plan.router.{key} is not known: write one of {', '.join(ROUTER_KEYS)}")
        if not isinstance(value, int if key == "first" else str) or isinstance(value, bool):
            raise PlanError(f"{file}: plan.router.{key} = {value!r}: that is of another kind than is needed")
    found = Router(**asked)
    if found.customers not in KINDS:
        raise PlanError(
            f'{file}: plan.router.customers = "{found.customers}": write one of {", ".join(KINDS)}'
        )
    if found.direction not in ("upstream", "downstream"):
        raise PlanError(f'{file}: plan.router.direction: write "upstream" or "downstream"')
    least, most = NUMBERS[found.customers]
    last = found.first + customers - 1
    if found.first < least or last > most:
        raise PlanError(
            f"{file}: plan.router.first = {found.first}: with {customers:,} customers the last number is"
            f" {last:,}, and {found.customers} numbers go from {least} to {most:,}:"
            + (
                f" write a number from {least} to {most - customers + 1:,}"
                if customers <= most - least + 1
                else ' tell customers apart by another kind, such as customers = "session"'
            )
        )
    return found
