"""How claims A11a–A14 are judged: what the text says beside its figures of the rival, the TPR and drops."""

from __future__ import annotations

from dataclasses import replace

from ...metrics.measures import Array
from ...metrics.stats import SHARE, UNLIKE
from .. import Cell, Paper
from ..claim import BOUND, INDEX, Comparison, Effect, Finding, Pair, of_base
from .schemes import PHASE, Cells, Schemes, of_rank

#: The sweep in which traffic grows and the TPR is renewed, or not: [adaptive, fixed] of its values.
CHANGE, ADAPTIVE, FIXED = "change", "100 s", "200 s"
#: How far from its share of the packets a flow's share of the drops may be and still be in proportion.
APART = Effect(0.1, "a tenth of its share: what is nearer would be called in proportion")


def a11a(s: Schemes) -> list[Comparison]:
    """Whether RIO is unfair."""
    unfair = s.bounds.number("unfair")
    compared = Comparison(
        f"RIO's fairness index, below {unfair:g}",
        list(s["rio"]["fi"]),
        "below",
        null=unfair,
        topology=s.title,
        bounds=SHARE,
        effect=BOUND,
    )
    return _of_rio(s, [compared])


def a11b(s: Schemes) -> list[Comparison]:
    """Whether RIO is so by a phase effect: sender jitter would end that. Not asked with jitter itself."""
    if s.jittered is None:
        return []
    label = "autocorrelation peak of RIO's average queue, above that with sender jitter"
    locked = Pair(s.jittered, s["rio"], s.title)
    return _of_rio(s, [locked.compare(label, "queue_cycle", "above", bounds=UNLIKE, effect=PHASE)])


def _of_rio(s: Schemes, compared: list[Comparison]) -> list[Comparison]:
    """What is claimed of RIO's queue: undecidable where another one drops."""
    if s.rio_drops:
        return compared
    why = "the queue that drops here is a tail-drop one, and the claim is of RIO's"
    return [replace(one, obstacle=why, measured=False) for one in compared]


def a12(s: Schemes) -> list[Comparison]:
    """§2.2: whether the TPR is larger than the λ_IN that it was computed from."""
    return [
        Comparison(
            "TPR over λ_IN of the interval before, ARD",
            list(s["ard"]["tpr"] / s["ard"]["lambda_in_before"]),
            "above",
            null=1.0,
            topology=s.title,
            effect=Effect(0.0, '"always larger", by whatever amount', stated=True),
        )
    ]


def a13(s: Schemes) -> list[Comparison]:
    """§1, §2.1: whether the edge drops in proportion to IN rates, and the core's queue not to rates."""
    edge, none_there = _over_share(s, "ard", 0, "edge_drops", "sent_in")
    core, none_here = _over_share(s, "rio", 1, "queue_drops", "sent")
    return [
        Comparison(
            "share of the edge marker's drops over share of the IN packets, greediest flow, ARD",
            edge,
            "within",
            null=1 - APART.size,
            upper=1 + APART.size,
            topology=s.title,
            obstacle=s.inert("ard") or none_there,
            measured=none_there is None,
            effect=BOUND,
        ),
        Comparison(
            f"share of the queues' drops over share of the packets, most damaged flow, {s.titles['rio']}",
            core,
            "above",
            null=1.0,
            topology=s.title,
            obstacle=s.healthy("rio") or none_here,
            measured=none_here is None,
            effect=APART,
        ),
    ]


def _over_share(
    s: Schemes, scheme: str, which: int, drops: str, packets: str
) -> tuple[list[float], str | None]:
    """A flow's share of the drops over its share of the packets, by seed; why there is none, if so.

    A run counts by its drops, so that one without any does not stand in the way: 1 + (drops − expected) over
    mean expected, where a flow's share of the packets would have it lose `expected` of the run's drops.
    """
    mine, whose = (of_rank(s, scheme, which, what) for what in (drops, packets))
    lost, sent = (s[scheme].by_flow[what].sum(axis=1) for what in (drops, packets))
    expected: Array = lost * whose / sent
    if not expected.any():
        return [1.0] * len(lost), "nothing is dropped there in any run"
    share: Array = 1 + (mine - expected) / expected.mean()
    return [float(x) for x in share], None


def a14(paper: Paper, cells: Cells, setup: str) -> Finding | None:
    """§2.2: whether a TPR that is renewed does better than one that is not, once the traffic has changed."""
    topology = paper.topologies[0]
    found = [cells.get(Cell(setup, topology.id, "ard", "", CHANGE, value)) for value in (FIXED, ADAPTIVE)]
    fixed, adaptive = found
    if fixed is None or adaptive is None:
        return None
    pair = Pair(fixed, adaptive, topology.title)
    why = '1 % of what the fixed one carries: a "decrease in the link utilization" that shows'
    total, fi = of_base(fixed["total"], 0.01, why), INDEX
    told = ", ".join(
        f"{name} {m['total'].mean() / 1e3:.0f} kbit/s at an index of {m['fi'].mean():.4f},"
        f" {m['drops_marker'].mean():.0f} packets dropped by the marker"
        for name, m in (("renewed", adaptive), ("fixed", fixed))
    )
    return Finding(
        "A14",
        setup,
        [
            pair.compare("total throughput, TPR renewed − fixed", "total", "above", "bit/s", effect=total),
            pair.compare("fairness index, TPR renewed − fixed", "fi", "above", bounds=UNLIKE, effect=fi),
        ],
        notes=[f"After two flows have become four: {told}."],
    )
