"""What is put to Linux and to ours: arrivals that are drawn, and what they meet with."""

from __future__ import annotations

import random
from dataclasses import dataclass

from uml import LINK, RATE, Job, Plan, Planned

SECONDS = 15


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


def codel(
    name: str, title: str, plan: Plan, target: int = 5, interval: int = 100, *, ecn: bool = False
) -> Exact:
    """CoDel below the link."""
    option = "ecn" if ecn else "noecn"
    line = (
        f"tc qdisc add dev v0 parent 1:1 codel limit 10000 target {target}ms interval {interval}ms {option}"
    )
    ours = f'aqm = "codel"\ntarget = "{target} ms"\ninterval = "{interval} ms"\necn = {str(ecn).lower()}\n'
    variants = (f'{ours}mtu = "1514 B"\nvariant = "{variant}"' for variant in ("linux", "rfc8289"))
    return Exact(Job(name, ("sch_codel",), (LINK, line), plan), title, *variants)


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
