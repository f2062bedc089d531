"""The cases put to Linux and to ours: drawn arrivals, and their queues."""

from __future__ import annotations

import random
from dataclasses import dataclass

from uml import LINK, RATE, Job, Plan, Planned

SECONDS = 15

MS = 1_000_000
"""Nanoseconds."""

TIMER = (505 * MS, 30 * MS)
"""When PIE's timer first runs, half a second and half a tick after it was made, and then how often."""


def uneven(load: float, shares: tuple[int, ...], sizes: tuple[int, ...] = (1000,)) -> Plan:
    """Poisson arrivals at a load, by flows with these shares of the packets."""

    def draw(rng: random.Random) -> list[Planned]:
        at, packets = 0.0, []
        mean, flows = sum(sizes) / len(sizes), range(len(shares))
        while at < SECONDS:
            at += rng.expovariate(load * RATE / 8 / mean)
            size = rng.choice(sizes) if len(sizes) > 1 else sizes[0]
            packets.append(Planned(round(at * 1e9), size, rng.choices(flows, shares)[0]))
        return packets

    return draw


def poisson(loads: tuple[float, ...], sizes: tuple[int, ...], *, flows: int = 1, ect: float = 0.0) -> Plan:
    """Poisson arrivals, each load for the same time; sizes, flows and ECN-capable packets at random."""

    def draw(rng: random.Random) -> list[Planned]:
        mean = sum(sizes) / len(sizes)
        at, packets = 0.0, []
        while at < SECONDS:
            load = loads[int(at / SECONDS * len(loads))]
            at += rng.expovariate(load * RATE / 8 / mean)
            size, flow = rng.choice(sizes), rng.randrange(flows)
            packets.append(Planned(round(at * 1e9), size, flow, rng.random() < ect))
        return packets

    return draw


def bursts(sizes: tuple[int, ...], most: int, load: float) -> Plan:
    """Packets back to back, then a pause, so long that the mean load is this."""

    def draw(rng: random.Random) -> list[Planned]:
        at, packets = 0.0, []
        while at < SECONDS:
            burst = [rng.choice(sizes) for _ in range(rng.randint(1, most))]
            packets += [Planned(round(at * 1e9), size) for size in burst]
            at += rng.expovariate(1.0) * sum(burst) * 8 / RATE / load
        return packets

    return draw


@dataclass(frozen=True)
class Exact:
    """A law without chance: every decision is compared."""

    job: Job
    title: str
    ours: str
    """The mechanism's table."""
    rfc: str | None = None
    """The same by the RFC, where Linux departs from it."""
    mode: str = "lockstep"
    limit: int | None = None
    """Of packets, where the mode wants to know."""


def codel(
    name: str, title: str, plan: Plan, target: int = 5, interval: int = 100, *, ecn: bool = False
) -> Exact:
    """CoDel below the link."""
    option = "ecn" if ecn else "noecn"
    line = (
        f"tc qdisc add dev v0 parent 1:1 codel limit 10000 target {target}ms interval {interval}ms {option}"
    )
    ours = (
        f'aqm = "codel"\ntarget = "{target} ms"\ninterval = "{interval} ms"\necn = {str(ecn).lower()}\n'
        'mtu = "1514 B"\n'
    )
    job = Job(name, ("sch_codel",), (LINK, line), plan)
    return Exact(job, title, f'{ours}variant = "linux"', f'{ours}variant = "rfc8289"')


def cobalt(name: str, title: str, plan: Plan, interval: int = 100, *, ecn: bool = False) -> Exact:
    """COBALT below the link: CAKE with one queue for all flows and no shaper. Its target is interval/20."""
    line = (
        f"tc qdisc add dev v0 parent 1:1 cake unlimited besteffort flowblind rtt {interval}ms memlimit 64mb"
    )
    ours = (
        f'aqm = "cobalt"\ntarget = "{interval / 20:g} ms"\ninterval = "{interval} ms"\nmtu_time = "0 s"\n'
        f"ecn = {str(ecn).lower()}\n"
    )
    job = Job(name, ("sch_cake",), (LINK, line), plan)
    return Exact(job, title, f'{ours}variant = "linux"', f'{ours}variant = "exact"')


@dataclass(frozen=True)
class Slots:
    """The settings of SFQ."""

    limit: int
    """In packets, of all queues."""
    flows: int = 128
    depth: int = 127
    headdrop: bool = False


def sfq(name: str, title: str, plan: Plan, slots: Slots) -> Exact:
    """SFQ below the link, with so many values of the hash that no two of a few flows share one."""
    line = (
        f"tc qdisc add dev v0 parent 1:1 sfq limit {slots.limit} flows {slots.flows} depth {slots.depth}"
        f" quantum 1514 divisor 65536 perturb 0{' headdrop' if slots.headdrop else ''}"
    )
    ours = (
        f'aqm = "sfq"\nflow_quantum = "1514 B"\nflows = {slots.flows}\ndepth = {slots.depth}\n'
        f"divisor = 1024\nheaddrop = {str(slots.headdrop).lower()}"
    )
    job = Job(name, ("sch_sfq",), (LINK, line), plan)
    return Exact(job, title, ours, mode="turns", limit=slots.limit)


def police(name: str, title: str, rate: int, burst: int, plan: Plan) -> Exact:
    """A policer of what leaves, before any queue."""
    lines = (
        "tc qdisc add dev v0 clsact",
        "tc filter add dev v0 egress matchall"
        f" action police rate {rate} burst {burst} conform-exceed drop/ok",
    )
    ours = f'kind = "token_bucket"\nrate = "{rate} bit/s"\ndepth = "{burst} B"\naction = "drop"'
    modules = ("sch_ingress", "cls_matchall", "act_police")
    return Exact(Job(name, modules, lines, plan), title, ours, mode="police")


@dataclass(frozen=True)
class Random:
    """A law with chance in it: drops, delays and gaps are compared with those of many runs of ours."""

    job: Job
    title: str
    ours: dict[str, str]
    """Tables, by what they are called on the page; the first is the one that has to agree."""
    efficient: tuple[float, float, float, int] | None = None
    """RED: min_th and max_th in bytes, max_p, and w_q as a power of 1/2."""
    ahead: bool = False
    """Whether a packet is ours no more as soon as tbf has it, and not only when it leaves."""
    timer: tuple[int, int] = (0, 1)
    """When the discipline's own timer first runs, in nanoseconds since it was made, and then how often."""


def burst(min_th: int, wlog: int) -> int:
    """The burst for which `tc red` takes w_q = 2^-wlog, with packets of 1,000 B (tc-red(8)).

    >>> burst(15_000, 9)
    91
    """
    for packets in range(1, 100_000):
        room = packets + 1 - min_th / 1000
        found = (k for k in range(1, 32) if room <= (1 - (1 - 0.5**k) ** packets) * 2**k)
        if room >= 1 and next(found) == wlog:
            return packets
    raise ValueError("there is none")


def red(name: str, title: str, plan: Plan, curve: tuple[int, int, float], wlog: int = 9) -> Random:
    """RED below the link: thresholds in bytes and max_p, w_q 2^-wlog."""
    min_th, max_th, max_p = curve
    line = (
        f"tc qdisc add dev v0 parent 1:1 red limit 10000000 min {min_th} max {max_th} avpkt 1000"
        f" burst {burst(min_th, wlog)} probability {max_p} bandwidth {RATE}"
    )
    ours = (
        f'aqm = "red"\nmin_th = "{min_th} B"\nmax_th = "{max_th} B"\nmax_p = {max_p}\n'
        f"w_q = {0.5**wlog}\ngentle = false"
    )
    job = Job(name, ("sch_red",), (LINK, line), plan)
    return Random(job, title, {"red": ours}, (min_th, max_th, max_p, wlog))


def pie(name: str, title: str, plan: Plan, *, estimator: bool = False) -> Random:
    """PIE below the link.

    Linux's clock has ticks of 10 ms, and a timer that is set for two ticks from now runs at the third, so as
    not to be early: the interval is 30 ms where 20 are asked for.

    The packet that tbf asked for ahead is still in Linux's backlog. Where the delay comes from the backlog,
    it has to be in ours too: so ours is asked when the packet leaves, and measurements of the rate begin and
    end later by a packet's time. Where the delay is the packet's own, ours is asked ahead as tbf asks; of
    the two full packets below which nothing is dropped one is tbf's then, and ours counts 2,028 B.
    """
    options = "dq_rate_estimator" if estimator else "no_dq_rate_estimator"
    line = f"tc qdisc add dev v0 parent 1:1 pie limit 10000 target 15ms tupdate 20ms noecn {options}"
    ours = f'aqm = "pie"\nt_update = "{TIMER[1] // MS} ms"\n'
    ours += (
        'mean_packet = "1514 B"\ndelay_from = "dequeue_rate"\n' if estimator else 'mean_packet = "1014 B"\n'
    )
    variants = {f"pie, {v}": f'{ours}variant = "{v}"' for v in ("linux", "rfc8033")}
    job = Job(name, ("sch_pie",), (LINK, line), plan)
    return Random(job, title, variants, ahead=not estimator, timer=TIMER)


def choke(name: str, title: str, plan: Plan) -> Random:
    """CHOKe below the link, w_q 1/512.

    Linux counts whole packets and rounds its average down where it updates it, avg += w_q · (q − ⌊avg⌋): it
    settles half a packet above the mean. So Linux's thresholds are half a packet lower to an average of ours.
    """
    line = (
        "tc qdisc add dev v0 parent 1:1 choke limit 10000 min 15 max 45 avpkt 1000"
        f" burst {burst(15_000, 9)} probability 0.1 bandwidth {RATE}"
    )
    ours = {
        reading: f'aqm = "choke"\nmin_th = "{15 - less} packets"\nmax_th = "{45 - less} packets"\n'
        "max_p = 0.1\nw_q = 0.001953125"
        for reading, less in (("choke, thresholds half a packet lower", 0.5), ("choke, thresholds as set", 0))
    }
    return Random(Job(name, ("sch_choke",), (LINK, line), plan), title, ours)


def sfb(name: str, title: str, plan: Plan) -> Random:
    """SFB below the link, quick enough to be seen within seconds."""
    figures = {"max": 25, "target": 20, "increment": 0.005, "decrement": 0.0005, "penalty_rate": 50}
    words = " ".join(f"{name} {value}" for name, value in figures.items())
    line = f"tc qdisc add dev v0 parent 1:1 sfb limit 10000 {words} penalty_burst 20"
    ours = 'aqm = "sfb"\nincrement = 0.005\ndecrement = 0.0005\npenalty_rate = 50\necn = true'
    return Random(Job(name, ("sch_sfb",), (LINK, line), plan), title, {"sfb": ours})


def fq_codel(name: str, title: str, plan: Plan) -> Random:
    """FQ-CoDel below the link."""
    line = "tc qdisc add dev v0 parent 1:1 fq_codel limit 10000 flows 1024 quantum 1514 noecn"
    ours = 'aqm = "fq_codel"\nflow_quantum = "1514 B"\nmtu = "1514 B"\nvariant = "linux"'
    job = Job(name, ("sch_fq_codel",), (LINK, line), plan)
    return Random(job, title, {"fq_codel": ours}, ahead=True)


def steady(load: float) -> Plan:
    """Packets of 1,000 B at a constant rate."""

    def draw(_: random.Random) -> list[Planned]:
        step = 8e12 / (load * RATE)
        return [Planned(round(i * step), 1000) for i in range(int(SECONDS * 1e9 / step))]

    return draw


FULL = (1000,)
MIXED = (64, 200, 576, 1000, 1500)

EXACT = (
    codel("codel-steady", "CoDel, Poisson arrivals at 1.2 times the rate", poisson((1.2,), FULL)),
    codel("codel-waves", "CoDel, loads of 0.7 to 1.5", poisson((1.4, 0.7, 1.1, 0.9, 1.5, 0.8), FULL)),
    codel("codel-sizes", "CoDel, packets of 64 to 1,500 B", poisson((1.2, 0.8, 1.4, 0.9), MIXED)),
    codel("codel-short", "CoDel, target 2 ms, interval 20 ms", poisson((1.1, 0.8, 1.3), FULL), 2, 20),
    codel("codel-bursts", "CoDel, bursts of 1 to 80 packets", bursts(FULL, 80, 1.0)),
    codel(
        "codel-ecn",
        "CoDel, half of the packets ECN-capable",
        poisson((1.2, 0.8, 1.3), FULL, ect=0.5),
        ecn=True,
    ),
    cobalt("cobalt-steady", "COBALT in CAKE, Poisson arrivals at 1.2 times the rate", poisson((1.2,), FULL)),
    cobalt(
        "cobalt-waves", "COBALT in CAKE, loads of 0.7 to 1.5", poisson((1.4, 0.7, 1.1, 0.9, 1.5, 0.8), FULL)
    ),
    cobalt("cobalt-sizes", "COBALT in CAKE, packets of 64 to 1,500 B", poisson((1.2, 0.8, 1.4, 0.9), MIXED)),
    cobalt("cobalt-short", "COBALT in CAKE, interval 40 ms", poisson((1.1, 0.8, 1.3), FULL), 40),
    cobalt(
        "cobalt-ecn",
        "COBALT in CAKE, half of the packets ECN-capable",
        poisson((1.2, 0.8, 1.3), FULL, ect=0.5),
        ecn=True,
    ),
    sfq("sfq-one", "SFQ, one flow with most of 1.4 times the rate", uneven(1.4, (10, 3, 2, 1, 1)), Slots(60)),
    sfq(
        "sfq-sizes",
        "SFQ, packets of 64 to 1,500 B, drops at the head",
        uneven(1.3, (4, 3, 2, 1), MIXED),
        Slots(40, headdrop=True),
    ),
    sfq(
        "sfq-depth",
        "SFQ, no more than 8 packets a flow",
        uneven(1.2, (8, 2, 1, 1), MIXED),
        Slots(100, depth=8),
    ),
    sfq(
        "sfq-slots",
        "SFQ, twelve flows and eight queues",
        uneven(1.3, (1,) * 12),
        Slots(24, flows=8, depth=6, headdrop=True),
    ),
    police("police-slow", "act_police, 200 kbit/s, 5 kB, in bursts", 200_000, 5_000, bursts(MIXED, 40, 0.05)),
    police(
        "police-fast", "act_police, 4 Mbit/s, 15 kB, in bursts", 4_000_000, 15_000, bursts(MIXED, 60, 0.8)
    ),
    police(
        "police-deep",
        "act_police, 1 Mbit/s, 60 kB, Poisson arrivals",
        1_000_000,
        60_000,
        poisson((0.2, 0.05), MIXED),
    ),
)

RANDOM = (
    red("red-cbr-1.1", "RED, 1.1 times the rate", steady(1.1), (15_000, 45_000, 0.2)),
    red("red-cbr-1.5", "RED, 1.5 times the rate", steady(1.5), (15_000, 45_000, 0.2)),
    red("red-low", "RED, 1.1 times the rate, 5 and 15 kB", steady(1.1), (5_000, 15_000, 0.02)),
    red(
        "red-waves",
        "RED, Poisson, loads of 0.9 to 1.3",
        poisson((1.3, 0.9, 1.1), FULL),
        (15_000, 45_000, 0.1),
    ),
    red(
        "red-edge",
        "RED, Poisson, 1.4 times the rate, w_q 1/8",
        poisson((1.4,), FULL),
        (5_000, 15_000, 0.5),
        3,
    ),
    pie("pie-steady", "PIE, Poisson, 1.2 times the rate", poisson((1.2,), FULL)),
    pie("pie-waves", "PIE, Poisson, loads of 0.8 to 1.4", poisson((1.1, 0.8, 1.4), FULL)),
    pie(
        "pie-rate",
        "PIE with dequeue rate, Poisson, 1.2 times the rate",
        poisson((1.2,), FULL),
        estimator=True,
    ),
    choke("choke-even", "CHOKe, five flows alike", uneven(1.2, (1, 1, 1, 1, 1))),
    choke("choke-one", "CHOKe, one flow with half of 1.6 times the rate", uneven(1.6, (4, 1, 1, 1, 1))),
    sfb("sfb-one", "SFB, one flow with more than the rate", uneven(1.4, (10, 1, 1, 1, 1))),
    fq_codel(
        "fq-codel-one", "FQ-CoDel, one flow with most of 1.4 times the rate", uneven(1.4, (10, 1, 1, 1, 1))
    ),
)
