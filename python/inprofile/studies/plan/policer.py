"""How large a policer's burst has to be so that TCP gets the rate.

A policer drops what exceeds a rate by more than a burst. TCP answers to drops, so a small burst costs
goodput, and a large one lets a customer send far above the rate for a while. No rule of thumb (a tenth of a
second's worth, 80 % of one, 5 kB) knows round-trip time, number of flows and congestion control; a simulation
does. An answer holds for the round-trip times that were asked for (`round_trips`), so half and twice of them
stand beside it.

    >>> from inprofile.studies.plan.policer import PolicerQuestion, tries
    >>> question = PolicerQuestion("10 Mbit/s", ["20 ms"])
    >>> [burst for burst in tries(question)][:3]
    [4500, 9000, 18000]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...experiment.scenario import Scenario, parse, toml
from ...metrics.quantity import bits_per_second, number, quantity
from ...metrics.stats import POSITIVE, SHARE, Estimate, estimate
from . import round_trips
from .police import GRO, police_action
from .round_trips import RoundTrips

if TYPE_CHECKING:
    from ...metrics.measures import Measures
    from ...run.pool import Backend
    from ...run.results import Result

PACKET = 1500
"""Bytes of a full packet on the wire, from the IP header on."""
PAYLOAD = 1460
"""Of them data: goodput of 1 is this share of the rate."""
_FIRST = 3 * PACKET
_FIGURES = ("throughput", "goodput", "edge_drops", "timeouts")
"""The figures kept of a run."""
_LONGEST = 4.0
"""The largest burst that is tried, in seconds at the rate; larger ones police nothing that lasts as long."""
_REFINED = 3
"""Bisections between the last burst that is too small and the first that is not: 2^(1/8) is left, 9 %."""
OTHERS = (0.5, 2.0)
"""Multiples of the given round-trip time at which the answer's burst is tried."""
_BUDGET = 4e8
"""About how many data packets all runs have: fewer seeds where the rate is high."""
_BURSTS = 24
"""About how many bursts are run."""

FILE = """\
# What `inprofile plan policer` asked: TCP through a policer, and no other bottleneck.
title = "A policer of {rate}"
duration = "{duration:g} s"
measure = {{ from = "{start:g} s", at = "network" }} # after slow start
seeds = {seeds}

[tcp]
profile = "linux"
congestion = "{tcp}"

[[links]]
name = "access"
from = "customer"
to = "policer"
rate = "{link}"
delay = "0 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }} # the customer's own, txqueuelen of Linux

[[links]]
name = "network"
from = "policer"
to = "server"
rate = "{link}"
delay = "0 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}

[[edges]]
node = "policer"
marker = {{ kind = "token_bucket", rate = "{rate}", depth = "{burst} B", action = "drop" }}

[[flows]]
name = "flow"
count = {flows}
from = "H*"
join = {{ node = "customer", rate = "{link}" }}
to = "server"
rtt = {rtt}
start = "uniform 0..1 s"
"""


def _rate(text: str) -> float:
    """In bit/s; ValueError for what is no rate."""
    try:
        found = bits_per_second(text)
    except (KeyError, ValueError):
        found = math.nan
    if not 0 < found < math.inf:
        raise ValueError(f'{text!r} is no rate: write a number above 0 and its unit, such as "10 Mbit/s"')
    return found


@dataclass(frozen=True)
class PolicerQuestion:
    """The policed traffic."""

    rate: str
    """The policer's rate, on the wire from the IP header on, as an experiment file has it: `10 Mbit/s`."""
    rtt: Sequence[str]
    """Round-trip times without queues, one or one a flow: a range, `20..80 ms`, or one value, of which runs
    have a tenth more or less (`20..20 ms`: exactly that)."""
    flows: int = 1
    """TCP connections that share the policer, each with unlimited data."""
    tcp: str = "cubic"
    """Their congestion control."""
    link: str | None = None
    """The rate at which packets reach the policer; ten times the policer's where nothing is said."""
    goal: float = 0.95
    """The share of the rate that TCP is to get: goodput over the payload's share of the rate."""
    seeds: int = 20
    """At most so many runs a burst."""

    @property
    def bits(self) -> float:
        """The rate in bit/s."""
        return _rate(self.rate)

    @property
    def arrival(self) -> str:
        """The rate at which packets reach the policer."""
        return self.link or quantity(10 * self.bits, "bit/s", digits=6)

    @cached_property
    def round_trips(self) -> tuple[RoundTrips, ...]:
        """The values given to the runs, one or one a flow."""
        return tuple(map(round_trips.of, self.rtt))

    def at(self, factor: float) -> PolicerQuestion:
        """The same with round-trip times so many times as long."""
        scaled = [one.times(factor) for one in self.round_trips]
        return replace(self, rtt=[f"{1e3 * one.lo:.6g}..{1e3 * one.hi:.6g} ms" for one in scaled])

    def reached(self, point: Point) -> bool:
        """Whether the lower 95 % bound of TCP's share reaches the goal."""
        return point.share.ci95 is not None and point.share.ci95.lo >= self.goal

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be asked; the experiment's own checks find the rest."""
        if not 0 < self.goal < 1:
            raise ValueError(
                f"goal {self.goal:g}: give a share of the rate above 0 and below 1, such as 0.95"
            )
        if self.flows < 1 or self.seeds < 2:
            raise ValueError(f"flows {self.flows}, seeds {self.seeds}: give at least 1 flow and 2 seeds")
        if len(self.round_trips) not in (1, self.flows):
            raise ValueError(
                f"{len(self.rtt)} round-trip times for {self.flows} flow{'s' * (self.flows != 1)}:"
                " give one, a range, or one for each flow"
            )
        if _rate(self.arrival) <= self.bits:
            raise ValueError(
                f"packets reach the policer at {self.arrival}, which is not more than its rate {self.rate}:"
                " it would drop nothing"
            )


@dataclass(frozen=True)
class Point:
    """A burst, and what came of it."""

    burst: int
    """In bytes."""
    share: Estimate
    """Goodput over the payload's share of the rate."""
    loss: Estimate
    """The share of packets that the policer dropped."""
    timeouts: Estimate
    """Retransmission timeouts of a run."""
    least: float
    """The least share of any run: each has its own round-trip times."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "burst": self.burst,
            "share_least": self.least,
            **{
                name: {"mean": e.mean, "ci95": None if e.ci95 is None else list(e.ci95), "n": e.n}
                for name, e in (("share", self.share), ("loss", self.loss), ("timeouts", self.timeouts))
            },
        }


@dataclass(frozen=True)
class Answer:
    """The smallest burst that is enough, and all that was tried."""

    question: PolicerQuestion
    chosen: Point | None
    """On seeds that its choice did not use; None where no burst is enough."""
    curve: tuple[Point, ...]
    """By burst."""
    rules: Mapping[str, Point]
    """Rules of thumb: what each gives."""
    others: Mapping[float, Point] = field(default_factory=dict)
    """The outcome of the best burst at other round-trip times, by their ratio."""

    @property
    def best(self) -> Point:
        """The burst that is enough, or the one that gives most where none is."""
        return self.chosen or max(self.curve, key=lambda p: p.share.mean)

    def above(self, window: float) -> float:
        """The most that can pass in this many seconds, over the rate: 1 is the rate itself."""
        if self.chosen is None:
            raise ValueError("there is no burst that is enough")
        question = self.question
        passed = min(_rate(question.arrival) * window, question.bits * window + 8 * self.chosen.burst)
        return passed / (question.bits * window)


def tries(question: PolicerQuestion) -> Iterator[int]:
    """The bursts of the first round in bytes, each twice the one before, up to four seconds at the rate."""
    burst = _FIRST
    most = max(_LONGEST * question.bits / 8, 8 * _FIRST)
    while burst < most:
        yield burst
        burst *= 2
    yield int(most)


def rules_of_thumb(question: PolicerQuestion) -> dict[str, int]:
    """Bursts that people use, in bytes."""
    second = question.bits / 8
    rules = {
        "5 kB": 5_000,
        "10 % of the rate a second": round(0.1 * second),
        "80 % of the rate a second (Open vSwitch)": round(0.8 * second),
        "one second at the rate": round(second),
    }
    return {name: burst for name, burst in rules.items() if burst >= PACKET}


def scenario(question: PolicerQuestion, burst: int, seed: int | None = None) -> Scenario:
    """The experiment of this burst as the run with this seed has it; else with the middle of each range.

    Raises ScenarioError for values that cannot run.
    """
    asked = question.round_trips
    if seed is not None:
        rtts = [round_trips.text(s) for s in round_trips.drawn(asked, question.flows, seed)]
    elif question.flows == len(asked):
        rtts = [round_trips.text(one.middle) for one in asked]
    else:
        rtts = [str(asked[0])]
    start, end = _window(question)
    return parse(
        FILE.format(
            rate=question.rate,
            duration=end,
            start=start,
            seeds=question.seeds,
            tcp=question.tcp,
            link=question.arrival,
            burst=burst,
            flows=question.flows,
            rtt=toml(rtts[0] if len(rtts) == 1 else rtts),
        ),
        "policer.toml",
    )


def _window(question: PolicerQuestion) -> tuple[int, int]:
    """When measuring begins and ends, in whole seconds.

    CUBIC's cycle lasts (0.75 W)^⅓ seconds at a window of W segments (RFC 9438 §4.2): three
    before, twelve within.
    """
    longest = max(one.hi for one in question.round_trips)
    segments = max(2.0, question.bits / 8 / PACKET / question.flows * longest)
    cycle = (0.75 * segments) ** (1 / 3)
    start = math.ceil(5 + 3 * cycle)
    return start, start + math.ceil(max(30.0, 12 * cycle))


def expected(question: PolicerQuestion) -> tuple[Scenario, int]:
    """The experiment of a middling burst, and how many runs there are, about."""
    one = scenario(question, _FIRST)
    return one, _BURSTS * _seeds(question, one)


def _seeds(question: PolicerQuestion, one: Scenario) -> int:
    packets = one.expected_packets(seeds=1)
    return max(5, min(question.seeds, int(_BUDGET / max(1.0, packets) / _BURSTS)))


def answer(
    question: PolicerQuestion,
    jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
    cache: str | Path | None = None,
    *,
    backend: Backend | None = None,
) -> Answer:
    """Find the smallest burst of which the lower 95 % bound of TCP's share reaches the goal, there and above.

    `progress` is told in words what is run; `backend` makes the runs elsewhere than on `jobs` threads. The
    folder `cache` keeps what is finished. Raises ScenarioError for a question that cannot run.
    """
    from ...run.experiments import Experiment, measure_all
    from ...run.pool import Local

    tell = progress or (lambda _: None)
    seeds = _seeds(question, scenario(question, _FIRST))
    known: dict[int, Point] = {}
    where = backend or Local(jobs)

    def look(bursts: Sequence[int], which: range, asked: PolicerQuestion = question) -> dict[int, Point]:
        work = [
            Experiment(scenario(asked, burst, seed), [seed], _FIGURES) for burst in bursts for seed in which
        ]
        measured = measure_all(work, _figures, backend=where, cache=None if cache is None else Path(cache))
        results = iter(measured)
        start, end = _window(asked)
        found = {}
        for burst in bursts:
            found[burst] = _point(asked, burst, [next(results) for _ in which], end - start)
        return found

    fresh = range(seeds + 1, 2 * seeds + 1)
    first = list(tries(question))
    rules = rules_of_thumb(question)
    tell(f"{len({*first, *rules.values()})} bursts, {seeds} runs each")
    known.update(look(sorted({*first, *rules.values()}), range(1, seeds + 1)))
    chosen = None
    enough = _enough(question, known)
    if enough is not None:
        below = max((b for b in known if b < enough), default=None)
        for _ in range(_REFINED):
            if below is None:
                break
            middle = round(math.sqrt(below * enough))
            tell(f"a burst of {quantity(middle, 'B')}")
            known.update(look([middle], range(1, seeds + 1)))
            enough = _enough(question, known) or enough
            below = max((b for b in known if b < enough), default=below)
        for burst in sorted(b for b in known if b >= enough):
            tell(f"{quantity(burst, 'B')} again, with fresh seeds")
            chosen = look([burst], fresh)[burst]
            if question.reached(chosen):
                break
            chosen = None
    curve = tuple(known[burst] for burst in sorted(known))
    found = Answer(question, chosen, curve, {name: known[burst] for name, burst in rules.items()})
    tell("half and twice the round-trip time")
    burst = found.best.burst
    factors = [x for x in OTHERS if all(one.times(x).possible for one in question.round_trips)]
    return replace(found, others={x: look([burst], fresh, question.at(x))[burst] for x in factors})


def _enough(question: PolicerQuestion, known: Mapping[int, Point]) -> int | None:
    """The smallest burst that reaches the goal, as all larger ones do."""
    found = None
    for burst in sorted(known, reverse=True):
        if not question.reached(known[burst]):
            break
        found = burst
    return found


def _figures(_: int, result: Result) -> Measures:
    """The figures kept of a run."""
    import numpy as np

    from ...metrics.measures import Measures

    rows = result.metrics.to_pylist()
    values = {n: [r["value"] for r in rows if r["name"] == n and r["value"] is not None] for n in _FIGURES}
    return Measures(result.seeds, {name: np.array(x) for name, x in values.items()}, {})


def _point(question: PolicerQuestion, burst: int, runs: Sequence[Measures], window: float) -> Point:
    """From the figures of the runs, which were measured for so many seconds."""
    by_name = {name: [x for run in runs for x in run[name].tolist()] for name in _FIGURES}
    most = question.bits * PAYLOAD / PACKET
    # Packets that passed in the window, counted as full ones.
    passed = [rate * window / 8 / PACKET for rate in by_name["throughput"]]
    loss = [d / (d + p) if d else 0.0 for d, p in zip(by_name["edge_drops"], passed, strict=True)]
    shares = [goodput / most for goodput in by_name["goodput"]]
    return Point(
        burst,
        estimate(shares, POSITIVE),
        estimate(loss, SHARE),
        estimate(by_name["timeouts"], POSITIVE),
        min(shares),
    )


def batch(question: PolicerQuestion, burst: int, dev: str = "DEV") -> str:
    """The policer for `tc -batch`, all that comes in by `dev`."""
    line = commands(question, burst)["tc"].removeprefix("tc ").replace("DEV", dev)
    return "\n".join([GRO.format(dev=dev), f"qdisc add dev {dev} clsact", line, ""])


def commands(question: PolicerQuestion, burst: int) -> dict[str, str]:
    """How some systems are told, by name. Bursts are rounded up to what each can say."""
    kbit = math.ceil(question.bits / 1e3)
    return {
        "tc": (
            "tc filter add dev DEV ingress protocol all matchall "
            + police_action(question.bits, burst, "drop")
        ),
        "Open vSwitch": (
            f"ovs-vsctl set interface PORT ingress_policing_rate={kbit}"
            f" ingress_policing_burst={math.ceil(8 * burst / 1e3)}"
        ),
        "P4Runtime": (
            "meter_entry { config {"
            f" cir: {question.bits / 8:.0f} cburst: {burst}"
            f" pir: {question.bits / 8:.0f} pburst: {burst} }} }}"
        ),
        "inprofiled": (
            f'marker = {{ kind = "token_bucket", rate = "{question.rate}", depth = "{number(burst)} B",'
            ' action = "drop" }'
        ),
    }
