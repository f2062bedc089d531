"""Claims D7 to D13: what the text says besides its tables and Fig. 8 to 11."""

from __future__ import annotations

import numpy as np

from ...metrics.measures import Measures
from ...metrics.stats import UNLIKE
from .. import Cell
from ..claim import INDEX, Comparison, Effect, of_base
from .experiments import DROP_TAIL
from .measure import FLOWS
from .view import View

#: D12: by how much the index of the first 20 s may differ from that of later 20 s, and where those are run.
CONSISTENT, STEADY = 0.02, "all-drops-long"


def d7(v: View) -> list[Comparison]:
    """D7: windows converge; nothing where the first 20 s are not measured."""
    pair = v.pair("equal")
    if "windows_late" not in pair.base.values or "windows_late" not in pair.ours.values:
        return []
    red, early, late = pair.base["windows_late"], pair.ours["windows_early"], pair.ours["windows_late"]
    return [
        pair.compare(
            "variation of the windows over flows, second half, FDD-RED − RED",
            "windows_late",
            "below",
            effect=of_base(red, 0.25, "a quarter of RED's: what Fig. 4 and 5 show must be seen in traces"),
        ),
        Comparison(
            "variation of the windows over flows under FDD-RED, second half − first",
            [float(x) for x in late - early],
            "below",
            topology=pair.title,
            effect=of_base(early, 0.1, "a tenth of the first half's: they converge"),
        ),
    ]


def d8(v: View) -> list[Comparison]:
    """D8: more is gained with unequal round-trip times."""
    equal, unequal = v.pairs()
    gains = [np.array(p.difference("fi")) for p in (unequal, equal)]
    label = "gain of the fairness index over RED, unequal round-trip times − equal ones"
    return [Comparison(label, [float(x) for x in gains[0] - gains[1]], "above", bounds=UNLIKE, effect=INDEX)]


def d9(v: View) -> list[Comparison]:
    """D9: RED concentrates drops."""
    return _concentrated("RED", v.pair("equal").base, v)


def d11(v: View) -> list[Comparison]:
    """D11: drop-tail does; nothing where it was not run."""
    topology = v.paper.topologies[0].id
    found = v.cells.get(Cell(v.setup, topology, "red", "", *DROP_TAIL))
    return [] if found is None else _concentrated(f"drop-tail of {DROP_TAIL[1]}", found, v)


def _concentrated(queue: str, m: Measures, v: View) -> list[Comparison]:
    """That drops fall on few flows, by two measures, each beside drops at random."""
    where = v.pair("equal").title
    return [
        Comparison(
            f"variance of drops over flows, over that of drops at random, {queue}",
            over_random(m),
            "above",
            1.0,
            topology=where,
            effect=Effect(0.5, "half as much again as drops at random have"),
        ),
        Comparison(
            f"flows that lose packets in a loss event, over those of a random choice, {queue}",
            [float(x) for x in m["in_event"]],
            "below",
            1.0,
            topology=where,
            effect=Effect(0.2, "a fifth fewer flows than drops at random hit"),
        ),
    ]


def over_random(m: Measures) -> list[float]:
    """Variance of the flows' drops over their mean, which it equals where each drop is anybody's."""
    drops = np.stack([m[f"drops{i}"] for i in range(FLOWS)], axis=1)
    some = drops[drops.sum(axis=1) > 0]
    return [float(x) for x in some.var(axis=1, ddof=1) / some.mean(axis=1)]


def d12(v: View) -> list[Comparison]:
    """D12: the index of the first 20 s less that of later 20 s, of seeds that both have."""
    made = []
    for topology in v.paper.topologies:
        for scheme in v.paper.schemes:
            short, steady = (v.cells.get(Cell(setup, topology.id, scheme.id)) for setup in (v.setup, STEADY))
            if short is None or steady is None or "fi_later" not in steady.values:
                return []
            n = min(len(short.seeds), len(steady.seeds))
            made.append(
                Comparison(
                    f"fairness index of {scheme.title}, first 20 s − mean of later 20 s",
                    [float(x) for x in short["fi"][:n] - steady["fi_later"][:n]],
                    "within",
                    -CONSISTENT,
                    topology=topology.title,
                    upper=CONSISTENT,
                    bounds=UNLIKE,
                    effect=Effect(0.0, f"within {CONSISTENT:g} of Jain's index they are consistent (ours)"),
                )
            )
    return made


def d13(v: View) -> list[Comparison]:
    """D13: FDD-RED beside the same with a victim at random, which spreads drops less evenly."""
    made = []
    for topology in v.paper.topologies:
        blind = v.cells.get(Cell(v.setup, topology.id, "fdd", "blind"))
        if blind is None or v.variant:
            return []
        ours = v.pair(topology.id).ours
        made.append(
            Comparison(
                "packets dropped, FDD-RED − a victim at random",
                [float(x) for x in ours["drops"] - blind["drops"]],
                "below",
                unit="packets",
                topology=topology.title,
                effect=of_base(blind["drops"], 0.1, "a tenth of those of a victim at random"),
            )
        )
    return made
