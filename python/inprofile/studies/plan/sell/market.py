"""What is sold, and where: an experiment, the groups whose contracts are sold, and it with so many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....experiment.scenario import Scenario, load
from ....metrics.quantity import bits_per_second, in_seconds, quantity
from ...compare.schemes import Place
from .activity import Activity, Stay

_RISE = 1.0
"""Customers who are there when a run begins start within this time, in s."""


class MarketError(ValueError):
    """An experiment in which nothing can be sold; the text says why and what to write."""


@dataclass(frozen=True)
class Group:
    """Customers with one contract."""

    name: str
    count: int
    """As many as the file has."""
    contract: float
    """bit/s."""
    rtts: tuple[float, ...]
    """Of the file's flows, in s."""
    traffic: str

    def rtt(self, customer: int, of: int) -> float:
        """The round trip of a customer, of so many: spread over the file's as the file's are."""
        if of == self.count:
            return self.rtts[customer]
        place = (len(self.rtts) - 1) * (customer / (of - 1) if of > 1 else 0.5)
        low = min(int(place), max(0, len(self.rtts) - 2))
        high = min(low + 1, len(self.rtts) - 1)
        return self.rtts[low] + (place - low) * (self.rtts[high] - self.rtts[low])


@dataclass(frozen=True)
class Market:
    """A link on which contracts are sold."""

    scenario: Scenario
    """Without its goal."""
    place: Place
    link_rate: float
    """bit/s of the measured link."""
    groups: tuple[Group, ...]
    """What is sold, in the proportion that the file has."""
    promised: float
    """bit/s that contracts of other groups promise."""
    kept: float
    """The share of the contracts wanted at a time that is to be kept."""

    @property
    def contract(self) -> float:
        """Mean contract of what is sold, in bit/s."""
        return sum(g.count * g.contract for g in self.groups) / sum(g.count for g in self.groups)

    @property
    def window(self) -> float:
        """How long it is measured, in s."""
        measure = self.scenario.check().effective["measure"]
        return in_seconds(measure["to"]) - in_seconds(measure["from"])

    @property
    def at_most(self) -> int:
        """As many contracts as fill the link, if every customer sends: no more can be kept at a time."""
        return int((self.link_rate - self.promised) / self.contract * (1 + 1e-12))

    def shared(self, sold: int) -> list[int]:
        """How many contracts of each group, of so many: the file's proportion, by largest remainders."""
        total = sum(g.count for g in self.groups)
        exact = [sold * g.count / total for g in self.groups]
        counts = [int(x) for x in exact]
        for i in sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])[: sold - sum(counts)]:
            counts[i] += 1
        return counts

    def experiment(self, sold: int, activity: Activity, seed: int) -> tuple[Scenario, int]:
        """The experiment with so many contracts sold, and how many of them are wanted all the time.

        A contract counts where its customer is there throughout the measured window. Who comes or goes within
        it is load.
        """
        effective = self.scenario.check().effective
        begin, end = (in_seconds(effective["measure"][key]) for key in ("from", "to"))
        values: dict[str, object] = {}
        flows: list[dict[str, Any]] = []
        wanted = 0
        for group, count in zip(self.groups, self.shared(sold), strict=True):
            if activity.always:
                here, passing = [Stay(i) for i in range(count)], []
            else:
                stays = list(activity.draw(count, seed, group.name, end))
                here = [s for s in stays if s.spans(begin, end)]
                passing = [s for s in stays if not s.spans(begin, end)]
            wanted += len(here)
            values |= self._flows(group, count, here, activity, begin)
            if passing:
                flows.append(self._passing(group, count, passing, begin, end))
        if not wanted:
            # Nobody who counts: nothing to run, perhaps no flow at all.
            return self.scenario, 0
        made = self.scenario.with_(values)
        if flows:
            from ....experiment.dump import document

            made = made.with_({"flows": [*document(made)["flows"], *flows]})
        return made, wanted

    def _flows(
        self, group: Group, count: int, stays: Sequence[Stay], activity: Activity, begin: float
    ) -> dict[str, object]:
        key = f"flows.{group.name}"
        values: dict[str, object] = {
            f"{key}.count": len(stays),
            f"{key}.rtt": [_ms(group.rtt(s.customer, count)) for s in stays] or _ms(group.rtts[0]),
        }
        if activity.on is not None:
            starts = [_start(s, count, begin) for s in stays]
            values[f"{key}.start"] = [f"{x:.9f} s" for x in starts] or "0 s"
        return values

    def _passing(
        self, group: Group, count: int, stays: Sequence[Stay], begin: float, end: float
    ) -> dict[str, Any]:
        """Customers who come or go: transfers that do not end until they leave; nobody judges their rate."""
        from ....experiment.dump import document

        table = next(t for t in document(self.scenario)["flows"] if t["name"] == group.name)
        size = max(1.0, 2 * end * self.link_rate / 8)
        return {
            **table,
            "name": f"{group.name}-passing",
            "count": len(stays),
            "rtt": [_ms(group.rtt(s.customer, count)) for s in stays],
            "start": [f"{_start(s, count, begin):.9f} s" for s in stays],
            "stop": [f"{end if s.stop is None else s.stop:.9f} s" for s in stays],
            "traffic": {"kind": "transfer", "size": f"{size:.0f} B"},
        }


def _start(stay: Stay, count: int, begin: float) -> float:
    """When a customer begins to send: those who are there already one after the other, before the window."""
    if stay.start is not None:
        return stay.start
    first = min(_RISE, begin) * (stay.customer + 0.5) / count
    return first if stay.stop is None else min(first, stay.stop / 2)


def _ms(seconds: float) -> str:
    return f"{round(1e3 * seconds, 9)} ms"


def read_market(path: str | Path, groups: Sequence[str] | None = None, kept: float | None = None) -> Market:
    """Read an experiment whose contracts are sold: those of `groups`, or all that cross the link.

    `kept` takes the place of the file's `plan.kept`. Raises MarketError, and ScenarioError.
    """
    return market_of(load(path), groups, kept)


def market_of(scenario: Scenario, groups: Sequence[str] | None = None, kept: float | None = None) -> Market:
    """As `read_market`, of an experiment."""
    asked = scenario.check().effective.get("plan")
    share = kept if kept is not None else asked["kept"] if asked else 0.99
    if not 0.5 <= share < 1:
        raise MarketError(f"--kept {100 * share:g} %: write a share from 50 % to below 100 %")
    bare = scenario.with_({"plan": {}, "monitors": []})
    effective = bare.check().effective
    place = Place.of(bare)
    if not place.contracted:
        raise MarketError(
            f"{scenario.file}: no flow that crosses {place.link} has a contract, and nothing is sold:"
            ' add contract = "500 kbit/s" to a group of flows'
        )
    names = list(place.contracted if groups is None else dict.fromkeys(groups))
    for name in names:
        if name not in place.contracted:
            raise MarketError(
                f"{scenario.file}: there is no group {name} with a contract at {place.link}: write --group"
                f" with one of {', '.join(place.contracted)}"
            )
    tables = {g["name"]: g for g in effective["flows"]}
    promised = sum(
        sum(map(bits_per_second, c))
        if isinstance(c := tables[n]["contract"], list)
        else tables[n]["count"] * bits_per_second(c)
        for n in place.contracted
        if n not in names
    )
    rate = bits_per_second(place.rate)
    if promised >= rate:
        raise MarketError(
            f"{scenario.file}: the other contracts promise {quantity(promised, 'bit/s')} of {place.rate}"
            f" already: there is nothing left to sell"
        )
    return Market(bare, place, rate, tuple(_group(scenario, tables[n]) for n in names), promised, share)


def _group(scenario: Scenario, table: Mapping[str, Any]) -> Group:
    name = table["name"]
    if isinstance(table["contract"], list):
        raise MarketError(
            f"{scenario.place_of(f'flows.{name}.contract')}: the customers of {name} have different"
            " contracts: give those with another contract a group of their own"
        )
    if table["traffic"]["kind"] == "transfer":
        raise MarketError(
            f"{scenario.place_of(f'flows.{name}.traffic')}: a transfer is over when all of it was sent, and"
            f' {name} has no rate to keep: write traffic = "bulk"'
        )
    if table["from"] != "H*":
        raise MarketError(
            f"{scenario.place_of(f'flows.{name}.from')}: the customers of {name} share one host, and have its"
            ' round trip: write from = "H*" and rtt'
        )
    for key in ("start", "stop"):
        if isinstance(table[key], list):
            raise MarketError(
                f"{scenario.place_of(f'flows.{name}.{key}')}: {key} is a list for {table['count']}"
                f' customers, and others are sold: write one value, such as start = "uniform 0..1 s"'
            )
    rtts = tuple(map(in_seconds, table["rtt"] if isinstance(table["rtt"], list) else [table["rtt"]]))
    contract = bits_per_second(table["contract"])
    return Group(
        name,
        table["count"],
        contract,
        rtts * (table["count"] if len(rtts) == 1 else 1),
        table["traffic"]["kind"],
    )
