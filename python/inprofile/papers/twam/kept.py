"""How claims E3, E4, E7, E12 are judged: contracts kept, shares in proportion, the baseline's misses."""

from __future__ import annotations

from itertools import pairwise

from ...metrics.measures import Array
from ...metrics.stats import UNLIKE
from ..claim import BOUND, CONTRACT, INDEX, Comparison, Effect, Room
from .scenarios import SCENARIOS, Load, Scenario, mbit


def _keeps(s: Scenario, what: str) -> list[Comparison]:
    """Every flow keeps its contract under ours."""
    kept = s.bounds.number("kept")
    return [
        s.compared(
            f"flow {i + 1} ({mbit(s.contracts[i])}), throughput over contract, ours, above {kept:g}",
            share,
            "above",
            kept,
            effect=BOUND,
        )
        for i, share in enumerate(s.shares(s.ours, what).T)
    ]


def e3a(load: Load) -> list[Comparison]:
    """Contracts kept with more than is sold."""
    return _keeps(load("scenario-2"), "x")


def e3b(load: Load) -> list[Comparison]:
    """Rates in the contracts' order, and shared more fairly than under the baseline."""
    s = load("scenario-3")
    rates = s.shares(s.ours) * s.contracts
    return [
        *(
            s.compared(
                f"throughput of flows of {mbit(larger)} above that of flows of {mbit(smaller)}, ours",
                rates[:, more].mean(axis=1) - rates[:, less].mean(axis=1),
                "above",
                unit="bit/s",
                effect=Effect((larger - smaller) / 10, "a tenth of the contracts' difference"),
            )
            for (smaller, less), (larger, more) in pairwise(s.groups())
        ),
        s.compared(
            "index of throughput over contract, ours − baseline",
            s.difference("fi"),
            "above",
            bounds=UNLIKE,
            effect=INDEX,
            room=Room([1 - float(x) for x in s.base["fi"]], "from the baseline's index to 1 there are"),
        ),
    ]


def e3c(load: Load) -> list[Comparison]:
    """Contracts kept while priority traffic bursts."""
    return _keeps(load("scenario-4"), "burst")


def e3d(load: Load) -> list[Comparison]:
    """Shares in proportion to the contracts while priority traffic bursts."""
    s = load("scenario-4")
    return _in_proportion(s, s.shares(s.ours, "burst"))


def e4(load: Load) -> list[Comparison]:
    """The worst second of a burst."""
    s = load("scenario-4")
    room = Room([1 - float(x) for x in s.base["fi_worst"]], "from the baseline's index to 1 there are")
    label = "index of the worst second, ours − baseline"
    return [s.compared(label, s.difference("fi_worst"), "above", effect=INDEX, room=room)]


def e7(load: Load) -> list[Comparison]:
    """§3's Proposition, in every scenario."""
    return [c for s in map(load, SCENARIOS) for c in _in_proportion(s, s.shares(s.ours))]


def _in_proportion(s: Scenario, shares: Array) -> list[Comparison]:
    """Whether each group gets its part, by r/Σr, of what the flows get together.

    So how far the link is used does not count.
    """
    low, high = s.bounds.numbers("in_proportion")
    fair = shares @ s.contracts / s.contracts.sum()
    return [
        s.compared(
            f"throughput of flows of {mbit(contract)} over their part of the sum, r/Σr, ours",
            shares[:, flows].mean(axis=1) / fair,
            "within",
            low,
            upper=high,
            effect=Effect(0.0, 'the bounds are what we take "analogous" for'),
        )
        for contract, flows in s.groups()
    ]


def e12(load: Load) -> list[Comparison]:
    """What the text says of the baseline alone: who misses a contract."""
    two, three, four = (load(scenario) for scenario in SCENARIOS[1:])
    contract, flows = two.groups()[-1]
    kept = four.bounds.number("kept")
    return [
        two.compared(
            f"flows of {mbit(contract)}, throughput over contract, baseline, below 1",
            two.shares(two.base)[:, flows].mean(axis=1),
            "below",
            1.0,
            effect=CONTRACT,
        ),
        *(
            three.compared(
                f"flow {i + 1} ({mbit(three.contracts[i])}), throughput over contract, baseline, below 1",
                three.shares(three.base)[:, i],
                "below",
                1.0,
                effect=CONTRACT,
            )
            for i in (int(flow) - 1 for flow in three.about.numbers("missed"))
        ),
        four.compared(
            f"worst flow's throughput over contract in the bursts, baseline, below {kept:g}",
            four.shares(four.base, "burst").min(axis=1),
            "below",
            kept,
            effect=BOUND,
        ),
    ]
