"""The question: an experiment, whose markers and measured link's queue are to be found, and a goal.

The file is an experiment file, and its table `[plan]` is read as all of it is (docs/experiment.md); without
the table its defaults hold. It is today's network: its queue has the buffer that all schemes get along with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...experiment.scenario import Scenario, load
from ...metrics.quantity import bits_per_second, in_seconds
from ..compare.schemes import Place, Scheme, SchemeFileError, choose
from ..compare.settings import SettingError
from .customers import Customers


class PlanError(ValueError):
    """A plan that cannot be made from this file; the text says why and what to write."""


@dataclass(frozen=True)
class Goal:
    """The goal to keep."""

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
    customers: Customers | None = None
    """Those who are there, where a file says so; else the router's file has made-up ones."""
    scale: float = 1.0
    """Of a smaller network that stands for another: how many times as large that is (`variants`)."""

    @property
    def whole_rate(self) -> float:
        """bit/s of the link that is asked about."""
        return self.scale * self.link_rate

    @property
    def shortest(self) -> float:
        """The least T in seconds: three packets, or a millisecond."""
        return max(1e-3, 3 * self.place.packet_time)

    @property
    def longest(self) -> float:
        """The greatest T in seconds: half the buffer, or half a second."""
        return min(0.5, max(2 * self.shortest, 0.5 * self.place.buffer * self.place.packet_time))

    @property
    def bought(self) -> float:
        """The sum of all contracts, in bit/s."""
        groups = self.scenario.check().effective["flows"]
        return sum(
            sum(map(bits_per_second, g["contract"]))
            if isinstance(g["contract"], list)
            else g["count"] * bits_per_second(g["contract"])
            for g in groups
            if g["name"] in self.place.contracted
        )

    def put(self, scheme: Scheme, settings: Mapping[str, float]) -> Scenario:
        """The experiment with a scheme at these settings; `T` is in seconds."""
        others = {key: x for key, x in settings.items() if key != "T"}
        if self.scale != 1.0:
            units = {s.key: s.unit for s in scheme.settings}
            others = {key: _scaled(key, x, units[key], self.scale) for key, x in others.items()}
        return self.scenario.with_(scheme.set(others).values(self.place, settings["T"]))

    def of(self, scenario: Scenario) -> Question:
        """The same question of a changed network."""
        return replace(self, scenario=scenario, place=_place(scenario), link_rate=_rate(scenario))


def read_question(
    path: str | Path, names: Sequence[str] | None = None, customers: Customers | None = None
) -> Question:
    """Read a plan's file; `names` take the place of its schemes, `customers` that of its contracts.

    Raises PlanError, UnknownSchemeError, SchemeFileError, CustomerError, and ScenarioError for the experiment
    and its goal.
    """
    return question_of(load(path), names, customers)


def question_of(
    scenario: Scenario, names: Sequence[str] | None = None, customers: Customers | None = None
) -> Question:
    """The question of an experiment; as `read_question`."""
    if customers is not None:
        scenario = scenario.with_(customers.values(_contracts(scenario)))
    if "plan" not in scenario.check().effective:
        scenario = scenario.with_({"plan.kept": "99 %"})
    asked = scenario.check().effective["plan"]
    # What is run has no goal: with more customers its numbers may no longer go round.
    bare = scenario.with_({"plan": {}})
    place = _place(bare)
    schemes = _schemes(asked["schemes"], scenario.file, names)
    _fit(bare, place, schemes)
    router = Router(**asked["router"])
    return Question(bare, place, _rate(bare), _goal(asked), schemes, router, customers)


def _contracts(scenario: Scenario) -> dict[str, str]:
    """The groups that customers may be of, with their contracts."""
    place = Place.of(scenario)
    groups = scenario.check().effective["flows"]
    for name in place.contracted:
        if name not in place.contracts:
            raise PlanError(
                f"{scenario.file}: the flows of {name} have different contracts, and a file says who the"
                " customers are: give each contract a group of its own"
            )
    return {g["name"]: g["contract"] for g in groups if g["name"] in place.contracted}


def _scaled(key: str, x: float, unit: str, scale: float) -> float:
    """A setting of the network on the smaller one.

    >>> round(_scaled("queue.w_q", 0.002, "", 5), 5), _scaled("edge.bucket", 300.0, "packets", 5)
    (0.00996, 60.0)
    """
    if key.rsplit(".", 1)[-1] == "w_q":
        return -math.expm1(scale * math.log1p(-x)) if x < 1 else 1.0
    # All flows together: a kth of their packets arrives.
    return x / scale if key.startswith("edge.") and unit == "packets" else x


def _goal(asked: Mapping[str, Any]) -> Goal:
    delay = None if asked["delay"] is None else in_seconds(asked["delay"])
    return Goal(asked["kept"], delay, bits_per_second(asked["best_effort"]))


def _place(scenario: Scenario) -> Place:
    """Where schemes go, with the buffer that the file's own queue has."""
    place = Place.of(scenario)
    link = next(one for one in scenario.check().effective["links"] if one["name"] == place.link)
    return replace(place, buffer=float(link["queue"]["limit"]["packets"]))


def _rate(scenario: Scenario) -> float:
    effective = scenario.check().effective
    return next(
        bits_per_second(one["rate"])
        for one in effective["links"]
        if one["name"] == effective["measure"]["at"]
    )


def _schemes(listed: Sequence[str] | None, file: str, names: Sequence[str] | None) -> tuple[Scheme, ...]:
    if names is None and listed is not None:
        # A file of schemes lies beside the plan's.
        names = [str(Path(file).parent / n) if n.endswith(".toml") else n for n in listed]
    return tuple(choose(names))


def _fit(scenario: Scenario, place: Place, schemes: Sequence[Scheme]) -> None:
    """Refuse a scheme that this experiment cannot take, before anything has run."""
    place.check(scenario.file, schemes)
    for scheme in schemes:
        try:
            for setting in scheme.settings:
                scheme.set({setting.key: setting.low}).values(place, 0.02)
        except (SettingError, SchemeFileError) as error:
            raise PlanError(f"{scenario.file}: {error}") from None
        scenario.with_(scheme.values(place, 0.02))
