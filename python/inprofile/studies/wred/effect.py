"""The effect of a WRED profile on TCP at its port: a simulation for each kind of packet that it tells apart.

Senders are as Linux has them, each behind a link as fast as the port, so that they congest it together.
Beside them the same port with a queue that only overflows. What no configuration says (round-trip time,
number of connections, the buffer where it is shared) is asked for, or assumed and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...experiment.scenario import Scenario, parse
from ...metrics.quantity import quantity
from ...metrics.stats import POSITIVE, SHARE, Estimate, estimate
from ...run.experiments import run_many
from ...run.pool import Local
from ...run.results import Result
from .profile import COLOURS, PACKET, Curve, Port, Profile

_MARKS = {"green": "in", "yellow": "out", "red": "red"}
_BUDGET = 3e6
"""Packets of a run, about."""
FIGURES = ("utilisation", "delay_p50", "delay_p99", "loss", "marked", "fi", "timeouts")
"""The measures of a case. Shares, and seconds of queueing delay; RTOs are those of a run."""

_FILE = """\
# What `inprofile wred` ran: {flows} connections on a port with the WRED profile "{profile}".
title = "{profile}: {title}"
duration = "{end:.6g} s"
measure = {{ from = "{start:.6g} s", distributions = true }}
seeds = {seeds}

[tcp]
profile = "linux"
congestion = "{congestion}"
ecn = {ecn}

[[links]]
name = "port"
from = "switch"
to = "receiver"
rate = "{rate}"
delay = "0 ms"
queue = {queue}

[[flows]]
name = "{colour}"
count = {flows}
from = "H*"
join = {{ node = "switch", rate = "{rate}" }}
to = "receiver"
rtt = "{rtt:.6g} us"
start = "uniform 0..{spread:.6g} us"
marker = {{ kind = "colour", colour = "{mark}" }}
"""


@dataclass(frozen=True)
class Traffic:
    """The inputs that no configuration of a switch has."""

    rtt: float = 1e-3
    """Round-trip time without queues, in seconds."""
    flows: int = 8
    """TCP connections that share the queue, each with unlimited data."""
    seeds: int = 5
    rate: float | None = None
    """In bit/s, where the file gives no speed, or instead of it."""
    buffer: int | None = None
    """In bytes, where the file does not say what the queue may take, or instead of it."""

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be run."""
        if not 1e-6 <= self.rtt <= 10 or not 1 <= self.flows <= 10_000 or self.seeds < 2:
            raise ValueError("give a round-trip time of 1 µs to 10 s, 1 to 10,000 flows, and 2 seeds or more")
        if (self.rate is not None and self.rate <= 0) or (
            self.buffer is not None and self.buffer < 2 * PACKET
        ):
            raise ValueError(f"give a rate above 0, and a buffer of {2 * PACKET:,} B or more")


@dataclass(frozen=True)
class Case:
    """One kind of packet on the port."""

    colour: str
    title: str
    congestion: str
    ecn: bool
    tail_drop: bool = False
    """The same buffer without the profile, to compare with."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case."""

    case: Case
    figures: dict[str, Estimate]
    """By name, as `FIGURES` has them."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "colour": self.case.colour,
            "senders": self.case.title,
            "figures": {
                name: {"mean": e.mean, "ci95": None if e.ci95 is None else list(e.ci95), "n": e.n}
                for name, e in self.figures.items()
            },
        }


def cases(profile: Profile) -> Iterator[Case]:
    """CUBIC without ECN, with it, and DCTCP, for each colour with curves of its own; tail drop beside."""
    seen: list[tuple[Curve | None, Curve | None]] = []
    for colour in COLOURS:
        curves = profile.drop.get(colour), profile.mark.get(colour)
        if curves == (None, None) or curves in seen:
            continue
        seen.append(curves)
        yield Case(colour, "CUBIC", "cubic", ecn=False)
        if curves[1] is not None:
            yield Case(colour, "CUBIC with ECN", "cubic", ecn=True)
            yield Case(colour, "DCTCP", "dctcp", ecn=True)
    yield Case("green", "CUBIC, tail drop", "cubic", ecn=False, tail_drop=True)


def buffer_of(port: Port, traffic: Traffic) -> int:
    """The queue's limit in bytes: as given, as the file has it, or twice the largest threshold."""
    return traffic.buffer or port.buffer or max(2 * port.profile.largest, 64 * PACKET)


def rate_of(port: Port, traffic: Traffic) -> float:
    """The port's rate in bit/s. Raises ValueError where nobody says it."""
    rate = traffic.rate or port.rate
    if rate is None:
        raise ValueError(f"no speed is known of a port with {port.profile.name}: give one with --rate")
    return rate


def window(rate: float, traffic: Traffic) -> tuple[float, float]:
    """When measuring begins and ends, in seconds; less where a run would have too many packets.

    CUBIC's cycle lasts (0.75 W)^⅓ seconds at a window of W segments (RFC 9438 §4.2) and no longer than
    Reno's, some W round trips, where the round trip is short.
    """
    segments = max(2.0, rate / 8 / PACKET / traffic.flows * traffic.rtt)
    cycle = max(40 * traffic.rtt, min((0.75 * segments) ** (1 / 3), segments * traffic.rtt))
    start, length = 50 * traffic.rtt + 3 * cycle, 10 * cycle
    factor = min(1.0, _BUDGET / ((start + length) * rate / 8 / PACKET))
    return start * factor, (start + length) * factor


def scenario(port: Port, traffic: Traffic, case: Case) -> Scenario:
    """The experiment of a case. Raises ScenarioError for values that cannot run."""
    rate = rate_of(port, traffic)
    start, end = window(rate, traffic)
    text = _FILE.format(
        profile=port.profile.name,
        title=f"{case.colour}, {case.title}",
        start=start,
        end=end,
        seeds=traffic.seeds,
        congestion=case.congestion,
        ecn=str(case.ecn).lower(),
        rate=quantity(rate, "bit/s", digits=9),
        queue=_queue(port.profile, buffer_of(port, traffic), case),
        colour=case.colour,
        mark=_MARKS[case.colour],
        flows=traffic.flows,
        rtt=traffic.rtt * 1e6,
        spread=max(1.0, 5 * traffic.rtt * 1e6),
    )
    return parse(text, f"{port.profile.name}.toml")


def _queue(profile: Profile, limit: int, case: Case) -> str:
    if case.tail_drop:
        return f'{{ aqm = "drop_tail", limit = "{limit} B" }}'
    parts = ['aqm = "wred"', f'limit = "{limit} B"', f"w_q = {2.0**-profile.weight!r}"]
    parts += [f"{colour} = {_curve(profile.drop.get(colour), limit)}" for colour in COLOURS]
    if profile.mark:
        parts.append("ecn = true")
        parts += [f"{colour}_ecn = {_curve(profile.mark.get(colour), limit)}" for colour in COLOURS]
    return f"{{ {', '.join(parts)} }}"


def _curve(curve: Curve | None, limit: int) -> str:
    """A colour without a curve has one that the queue cannot reach; a step is one byte wide.

    A switch drops packets with the probability; RED's law spaces drops evenly, by up to 1/p packets, and
    loses 2p/(1 + p) of them: with half of the probability as many, but for a part of p/2.
    """
    low, high, p = (limit, 2 * limit, 1.0) if curve is None else (curve.min_th, curve.max_th, curve.max_p / 2)
    if high == low or p == 0:
        low, high, p = max(0, high - 1), max(1, high), 1.0
    return f'{{ min_th = "{low} B", max_th = "{high} B", max_p = {p!r} }}'


def outcomes(
    port: Port, traffic: Traffic, jobs: int | None = None, progress: Callable[[int, int], None] | None = None
) -> list[Outcome]:
    """Run every case; `progress(finished, all)` counts runs.

    Raises ScenarioError, and ValueError where the rate is not known.
    """
    found = list(cases(port.profile))
    work = [(scenario(port, traffic, case), range(1, traffic.seeds + 1)) for case in found]
    results = run_many(work, Local(jobs), progress)
    return [Outcome(case, _figures(result)) for case, result in zip(found, results, strict=True)]


def _figures(result: Result) -> dict[str, Estimate]:
    values: dict[str, list[float]] = {}
    for row in result.metrics.to_pylist():
        if row["name"] in FIGURES and row["value"] is not None:
            values.setdefault(row["name"], []).append(row["value"])
    for name, per_seed in _shares(result).items():
        values[name] = per_seed
    bounds = {"utilisation": SHARE, "loss": SHARE, "marked": SHARE, "fi": SHARE}
    return {name: estimate(values[name], bounds.get(name, POSITIVE)) for name in FIGURES if name in values}


def _shares(result: Result) -> dict[str, list[float]]:
    """Of the packets that came to the port: dropped, and marked."""
    sums: dict[int, list[float]] = {seed: [0.0, 0.0, 0.0] for seed in result.seeds}
    for row in result.queues.to_pylist():
        if row["queue"] == "port":
            of = sums[row["seed"]]
            of[0] += row["arrived_in"] + row["arrived_out"] + row["arrived_red"]
            of[1] += row["dropped_in"] + row["dropped_out"] + row["dropped_red"]
            of[2] += row["marked"]
    share = {"loss": 1, "marked": 2}
    return {name: [s[i] / s[0] if s[0] else 0.0 for s in sums.values()] for name, i in share.items()}
