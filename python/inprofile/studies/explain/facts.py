"""What a cause is looked for in: the flow's figures, its way, its losses, and who else was there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...metrics.quantity import bits_per_second, in_seconds
from ...metrics.response import Law, law_of, with_timeouts
from ...metrics.stats import mean

Row = Mapping[str, Any]
Table = Mapping[str, Any]

COLOURED = frozenset({"rio", "rio_plus_out", "wred", "dsred", "dwred"})
"""Disciplines that drop what is OUT before what is IN."""
TCP = frozenset({"bulk", "transfer", "web", "video"})
"""Traffic that slows down when packets are lost."""
DATAGRAMS = frozenset({"cbr", "poisson", "on_off"})
"""Traffic that does not, at a rate of its own."""
LOSS_BASED = frozenset({"reno", "newreno", "sack", "cubic"})
"""Congestion controls that grow until something is lost."""


@dataclass(frozen=True)
class Loss:
    """What was lost in one place for one cause, per run."""

    place: str
    cause: str
    green: float
    """IN packets."""
    other: float
    """OUT and red ones."""

    @property
    def packets(self) -> float:
        """All of them."""
        return self.green + self.other


@dataclass(frozen=True)
class Facts:
    """The figures of one flow, or of a group's mean flow, over the seeds of a result."""

    name: str
    group: str
    flows: Sequence[str]
    """The flow itself, or all of the group."""
    mine: Sequence[Row]
    peers: Sequence[str]
    rows: Mapping[str, Sequence[Row]]
    effective: Table
    goal: float
    """bit/s: the contract, or what the others got."""
    losses: Sequence[Loss]
    queueing: float
    """Mean queueing delay at the measured link, in s."""
    utilisation: Mapping[str, float]
    """By link."""

    def of(self, column: str) -> float:
        """Mean over the seeds of one of its figures."""
        return mean(float(row[column]) for row in self.mine)

    def peers_of(self, column: str) -> float:
        """Mean over seeds and peers."""
        return mean(float(row[column]) for peer in self.peers for row in self.rows[peer])

    @cached_property
    def got(self) -> float:
        """bit/s on the wire, over the measured window."""
        return self.of("throughput")

    @cached_property
    def settings(self) -> Table:
        """Its group in the experiment."""
        return self.group_of(self.group)

    def group_of(self, name: str) -> Table:
        """A group in the experiment."""
        return next((g for g in self.effective.get("flows", ()) if g["name"] == name), {})

    @cached_property
    def traffic(self) -> str:
        """The kind of its traffic."""
        return str(self.settings.get("traffic", {}).get("kind", "bulk"))

    @cached_property
    def is_tcp(self) -> bool:
        """Whether it slows down when packets are lost."""
        return self.traffic in TCP

    @cached_property
    def tcp(self) -> Table:
        """What its sender does."""
        found: Table = self.settings.get("tcp") or self.effective.get("tcp", {})
        return found

    @cached_property
    def packet(self) -> float:
        """A full packet on the wire, in bits."""
        sizes = [float(str(self.tcp.get(key, "0 B")).split()[0]) for key in ("segment", "header")]
        return 8 * sum(sizes)

    @cached_property
    def links(self) -> Mapping[str, Table]:
        """All links of the experiment, by name."""
        return {str(link["name"]): link for link in self.effective.get("links", ())}

    @cached_property
    def route(self) -> Sequence[str]:
        """The links that its data crosses, without its access link."""
        return [str(name) for name in self.settings.get("route", ())]

    def crossing(self, link: str) -> dict[str, Table]:
        """The groups whose data crosses a link."""
        return {str(g["name"]): g for g in self.effective.get("flows", ()) if link in g.get("route", ())}

    @cached_property
    def loss(self) -> float:
        """Share of its packets that was lost."""
        return self.of("dropped") / max(self.of("sent"), 1.0)

    @cached_property
    def worst(self) -> Loss | None:
        """Where most was lost, and for what."""
        return max(self.losses, key=lambda loss: loss.packets, default=None)

    @cached_property
    def lost(self) -> float:
        """Packets lost per run."""
        return sum(loss.packets for loss in self.losses)

    @cached_property
    def bottleneck(self) -> str | None:
        """The link whose queue drops most of its packets."""
        by: dict[str, float] = {}
        for loss in self.losses:
            place = loss.place.partition("/")[0]
            if place in self.links:
                by[place] = by.get(place, 0.0) + loss.packets
        return max(by, key=by.__getitem__, default=None)

    def queue_of(self, link: str) -> Table:
        """Its queue there: the class's, where a scheduler has classes."""
        queue = self.links[link].get("queue", {})
        own = [c for c in queue.get("classes", ()) if c["name"] == self.settings.get("class")]
        found: Table = own[0] if own else queue
        return found

    @cached_property
    def coloured(self) -> bool:
        """Whether its bottleneck tells what is within contracts from the rest."""
        return self.bottleneck is not None and str(self.queue_of(self.bottleneck).get("aqm")) in COLOURED

    def held_by(self, link: str) -> dict[str, float]:
        """By group, and without itself, the share of what passed a link.

        Of a first in, first out queue it is also the share of the buffer: all wait alike (Little's law).
        """
        passed: dict[str, float] = {}
        mine = 0.0
        for runs in self.rows.values():
            group = str(runs[0]["group"])
            if group not in self.crossing(link):
                continue
            n = mean(float(row["received_in"]) + float(row["received_out"]) for row in runs)
            if str(runs[0]["flow"]) in self.flows:
                mine += n
            else:
                passed[group] = passed.get(group, 0.0) + n
        total = max(mine + sum(passed.values()), 1e-300)
        return {group: n / total for group, n in passed.items()}

    def sold(self, link: str) -> float:
        """bit/s of contracts whose flows cross a link, while they are there."""
        return sum(
            float(runs[0]["contract"] or 0.0) * self.presence(flow)
            for flow, runs in self.rows.items()
            if str(runs[0]["group"]) in self.crossing(link)
        )

    def rate(self, link: str) -> float:
        """bit/s of a link: mean over the measured window where its capacity varies."""
        full = bits_per_second(str(self.links[link]["rate"]))
        return mean_capacity(full, self.links[link].get("capacity"), *self.window)

    @cached_property
    def window(self) -> tuple[float, float]:
        """Begin and end of what is measured, in s."""
        measure = self.effective["measure"]
        return in_seconds(str(measure["from"])), in_seconds(str(measure["to"]))

    def stop_of(self, flow: str) -> float:
        """When a flow ends by the experiment, in s; infinite where it says nothing."""
        group = str(self.rows[flow][0]["group"])
        stop = self.group_of(group).get("stop")
        if isinstance(stop, list):
            stop = stop[[f for f, runs in self.rows.items() if runs[0]["group"] == group].index(flow)]
        return math.inf if stop is None else in_seconds(str(stop))

    def presence(self, flow: str) -> float:
        """The share of the measured window that a flow was there, mean over the seeds."""
        begin, end = self.window
        until = min(end, self.stop_of(flow))
        return mean(
            max(0.0, until - max(begin, float(row.get("start") or 0.0))) / (end - begin)
            for row in self.rows[flow]
        )

    @cached_property
    def there(self) -> float:
        """The same of the flow, or of the mean flow of a group."""
        return mean(self.presence(flow) for flow in self.flows)

    @cached_property
    def got_there(self) -> float:
        """bit/s while it was there."""
        return self.got / self.there if self.there else self.got

    @cached_property
    def law(self) -> Law:
        """The response function of its TCP."""
        return law_of(str(self.tcp.get("congestion", "reno")))

    def by_losses(self, loss: float, rtt: float) -> float:
        """bit/s that its TCP gets at this loss rate and round-trip time, with nothing else in its way."""
        rto = max(in_seconds(str(self.tcp.get("min_rto", "1 s"))), 2 * rtt)
        return with_timeouts(self.law, loss, rtt, rto) * self.packet

    @cached_property
    def rtt(self) -> float:
        """Round-trip time in s, with the mean wait at the measured link."""
        return self.of("rtt") + self.queueing


def mean_capacity(full: float, capacity: Table | None, begin: float, end: float) -> float:
    """Mean over a window of a link's capacity, which is its rate up to the first step.

    >>> step = {"steps": [{"at": "10 s", "rate": "1 Mbit/s"}]}
    >>> mean_capacity(3e6, None, 5, 15), mean_capacity(3e6, step, 5, 15), mean_capacity(3e6, step, 20, 30)
    (3000000.0, 2000000.0, 1000000.0)
    >>> mean_capacity(3e6, step | {"repeat": "20 s"}, 5, 25)
    2000000.0
    """
    if not capacity:
        return full
    steps = [(in_seconds(str(s["at"])), bits_per_second(str(s["rate"]))) for s in capacity["steps"]]
    every = in_seconds(str(capacity["repeat"])) if capacity.get("repeat") else max(end, steps[-1][0] + 1)
    steps = [(0.0, full), *steps]
    ends = [*(at for at, _ in steps[1:]), every]
    bits = 0.0
    # Each round begins with the link's own rate.
    for turn in range(math.ceil(end / every)):
        for (at, rate), until in zip(steps, ends, strict=True):
            bits += rate * max(0.0, min(end, turn * every + until) - max(begin, turn * every + at))
    return bits / (end - begin)


def own_room(f: Facts, link: str) -> dict[str, object]:
    """The queue told apart by colour, on average as long as it was: what was bought has room above that."""
    rate = f.rate(link) / max(f.packet, 1.0)
    mean = max(5.0, f.queueing * rate)
    room = max(50.0, 0.2 * rate)
    changes: dict[str, object] = {
        f"links.{link}.queue": {
            "aqm": "rio",
            "limit": f"{2 * mean + 2 * room:.0f} packets",
            "w_q": 0.002,
            "in": _curve(2 * mean + room, 2 * mean + 2 * room, 0.02),
            "out": _curve(mean / 2, 2 * mean, 0.1),
        }
    }
    for name, group in f.crossing(link).items():
        if group.get("contract") is None:
            changes[f"flows.{name}.marker"] = {"kind": "colour", "colour": "out"}
        elif (group.get("marker") or {}).get("action") != "drop":
            contracts = group["contract"] if isinstance(group["contract"], list) else [group["contract"]]
            deep = max(bits_per_second(str(c)) for c in contracts) * 0.5 / 8
            changes[f"flows.{name}.marker"] = {"kind": "token_bucket", "depth": f"{max(deep, 30e3):.0f} B"}
    return changes


def _curve(low: float, high: float, max_p: float) -> dict[str, object]:
    return {"min_th": f"{low:.0f} packets", "max_th": f"{high:.0f} packets", "max_p": max_p}


def packets_of(value: object) -> float | None:
    """A length of a queue, where it is known in packets."""
    found = value.get("packets") if isinstance(value, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def count(n: float) -> str:
    """Packets per run, as a count where they are many."""
    return f"{n:.0f}" if n >= 10 or n == int(n) else f"{n:.1f}"


def kbit(rate: float) -> str:
    """A rate as an experiment has it."""
    return f"{rate / 1e3:.6g} kbit/s"
