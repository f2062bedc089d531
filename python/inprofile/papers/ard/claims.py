"""How claims A1–A10 are judged (A11a–A14: `beside`): what is compared with what, seed by seed.

Every claim is about both topologies, so each set-up's finding holds the comparisons of both. A marker that
hardly ever acts decides nothing: whatever would be compared of it is undecidable, with the measured reason.
Likewise where its remarks are without consequence, because the queue that drops does not look at colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.stats import FREE, SHARE, UNLIKE
from .. import Cell, Entry, Paper
from ..claim import BOUND, INDEX, Comparison, Effect, Finding, Number, of_base, ratios
from . import beside
from .measure import SOON, placebo_rate
from .notes import circumstances, shown
from .placebo import more, table
from .schemes import BLIND, PHASE, Cells, Schemes, of_rank, ran

__all__ = ["derived", "findings", "more", "rests_on", "table"]

ORDER = (("rio", "arm"), ("arm", "ard"))
#: Rank under RIO, and which way ARM and, further, ARD take that flow.
_FLOWS: tuple[tuple[int, str, Literal["above", "below"]], ...] = (
    (0, "greediest flow loses", "below"),
    (1, "most damaged flow gains", "above"),
)
BOUNDS = {"fi": SHARE, "greedy": (0.0, np.inf)}


def _a1(s: Schemes) -> list[Comparison]:
    return [
        s.pair(better, base).compare(
            f"fairness index of {s.titles[better]} above {s.titles[base]}",
            "fi",
            "above",
            obstacle=s.idle(base, better) or s.healthy(base),
            bounds=UNLIKE,
            effect=INDEX,
        )
        for base, better in ORDER
    ]


def _of_contract(s: Schemes, share: float = 0.02) -> Effect:
    """A share of the contract, in bit/s."""
    return Effect(share * s.stated.number("contract"), f"{100 * share:g} % of the contract")


def _a2(s: Schemes) -> list[Comparison]:
    return [
        s.pair(better, base).compare(
            f"spread of {what} throughput, {s.titles[better]} below {s.titles[base]}",
            measure,
            "below",
            "bit/s",
            # IN throughput counts colours, so it shows remarking even where no packet's fate depends on it.
            obstacle=(s.idle(base, better) if measure == "std_total" else s.inert(better)) or s.healthy(base),
            effect=_of_contract(s),
        )
        for measure, what in (("std_in", "IN"), ("std_total", "total"))
        for base, better in ORDER
    ]


def _a3(s: Schemes) -> list[Comparison]:
    kept = s.bounds.number("kept")
    return [
        Comparison(
            f"{what} {'rate' if measure == 'lambda_in' else 'throughput'} of {s.titles[scheme]}"
            f" at least {kept:g} of {s.titles['rio']}'s",
            ratios(s[scheme], s["rio"], measure),
            "above",
            null=kept,
            topology=s.title,
            effect=Effect(0.0, 'the bound is what we take "no large decrease" for'),
        )
        for measure, what in (("total", "total"), ("total_in", "IN"), ("lambda_in", "input IN"))
        for scheme in ("arm", "ard")
        # A marker that does nothing costs nothing: that is no answer.
        if s.inert(scheme) is None
    ]


def _a4(s: Schemes) -> list[Comparison]:
    # §III: under ARM "there still exists the phase effect", so ARD is to be below ARM too.
    return [
        s.pair("ard", base).compare(
            f"{what} of the average queue, ARD below {s.titles[base]}",
            measure,
            "below",
            unit,
            obstacle=s.inert("ard") or s.no_phase,
            bounds=bounds,
            effect=PHASE
            if measure == "queue_cycle"
            else of_base(s[base][measure], 0.25, 'a quarter: the phase effect is to be "mitigated much"'),
        )
        for base in ("rio", "arm")
        for measure, what, unit, bounds in (
            ("queue_std", "standard deviation", "packets", FREE),
            ("queue_cycle", "autocorrelation peak", "", UNLIKE),
        )
    ]


def _a5(s: Schemes) -> list[Comparison]:
    if s.inert("ard"):
        return []
    mostly, kept = s.bounds.number("mostly"), s.bounds.number("kept")
    return [
        Comparison(
            f"share of token levels at or below T_rd, above {mostly:g}",
            list(s["ard"]["tokens_low"]),
            "above",
            null=mostly,
            topology=s.title,
            bounds=SHARE,
            effect=Effect(0.0, 'the bound is what we take "stays in" for'),
        ),
        Comparison(
            "admitted IN equal to the TPR, as a ratio",
            list(s["ard"]["admitted_over_tpr"]),
            "within",
            null=kept,
            upper=2 - kept,
            topology=s.title,
            obstacle=(near := _as_near(s)),
            measured=near is None,
            effect=BOUND,
        ),
    ]


def _as_near(s: Schemes) -> str | None:
    """Why an IN rate at the TPR shows nothing of ARD: without an edge marker's doing it is as near."""
    kept = s.bounds.number("kept")
    plain = float((s["rio"]["admitted_in"] / s["ard"]["tpr"]).mean())
    if not kept <= plain <= 2 - kept:
        return None
    return (
        f"under {s.titles['rio']}, which has no TPR, the IN rate is {plain:.3f} times it, within the same"
        " bounds"
    )


def _a6(s: Schemes) -> list[Comparison]:
    def change(better: str, base: str, which: int, *what: str) -> list[float]:
        return list(of_rank(s, better, which, *what) - of_rank(s, base, which, *what))

    def placebos(which: int, *what: str) -> dict[str, list[float]]:
        return {BLIND: change("ard", "placebo", which, *what)}

    counts = _of_share(s)
    levels = [
        Comparison(
            f"{words}, {s.titles[better]} − {s.titles[base]}",
            change(better, base, which),
            side,
            0.0,
            "bit/s",
            s.title,
            s.idle(base, better) or _no_extreme(s, base, which, counts),
            effect=counts,
            placebos=placebos(which) if better == "ard" else {},
        )
        for base, better in ORDER
        for which, words, side in _FLOWS
    ]
    # §III: under ARD the one "decreases faster", the other "increases faster" than under ARM.
    faster = [
        Comparison(
            f"{words}, change over the {SOON:g} s after the TPR is set, ARD − ARM",
            sooner,
            side,
            0.0,
            "bit/s",
            s.title,
            s.inert("ard") or _no_extreme(s, "rio", which, counts) or _not_yet(sooner),
            effect=counts,
            placebos=placebos(which, "soon"),
        )
        for which, words, side in _FLOWS
        for sooner in [change("ard", "arm", which, "soon")]
    ]
    return [*levels, *faster]


def _of_share(s: Schemes) -> Effect:
    return Effect(0.05 * s.share, "5 % of an equal share: it must be seen in a trace of one flow")


def _no_extreme(s: Schemes, base: str, which: int, counts: Effect) -> str | None:
    """Why no flow is greedy, or damaged: the one that was so before is hardly off the mean flow."""
    mean = s[base]["total"] / s.flows
    off = float((of_rank(s, base, which) - mean).mean()) * (1 if which == 0 else -1)
    if off > counts.size:
        return None
    who, kind = (("greediest", "greedy"), ("most damaged", "damaged"))[which]
    side = "above" if (off > 0) == (which == 0) else "below"
    return (
        f"the flow that was {who} until then is {abs(off) / 1e3:.1f} kbit/s"
        f" {side} the mean flow under {s.titles[base]}, less than the {counts.size / 1e3:g} from which on a"
        f" difference counts: no flow is {kind}"
    )


def _not_yet(differences: list[float]) -> str | None:
    """Why ARD's speed cannot be compared: 45 packets have to leave the full bucket before it acts."""
    equal = sum(d == 0 for d in differences)
    if 2 * equal <= len(differences):
        return None
    return (
        f"in {equal} of {len(differences)} seeds the bucket, full when the TPR is set, has not drained to"
        f" T_rd within {SOON:g} s, so that ARD has done nothing that ARM has not"
    )


def _a7(s: Schemes) -> list[Comparison]:
    what, kept = "admitted IN", s.bounds.number("kept")
    compared = _steadier_and_more(s, what, "admitted_in", "admitted_std", _permits_less(s))
    if compared:
        over = list(s["ard"]["admitted_over_tpr"])
        compared.append(
            Comparison(
                f"{what} over the TPR",
                over,
                "within",
                null=kept,
                upper=2 - kept,
                topology=s.title,
                obstacle=(near := _as_near(s)),
                measured=near is None,
                effect=BOUND,
            )
        )
    return compared


def _a10(s: Schemes) -> list[Comparison]:
    # Not "to the TPR": while packets are remarked or dropped more arrive than that (§2.1).
    return _steadier_and_more(s, "arriving IN", "lambda_in", "arrived_std")


def _permits_less(s: Schemes) -> str | None:
    """Why what is admitted cannot exceed the λ_IN before, if so: each packet takes a token."""
    tpr, before = (float(s["ard"][name].mean()) for name in ("tpr", "lambda_in_before"))
    if tpr >= before:
        return None
    return f"the TPR is {tpr / before:.3f} of the λ_IN before, and no more than the TPR can be admitted"


def _steadier_and_more(
    s: Schemes, what: str, rate: str, deviation: str, obstacle: str | None = None
) -> list[Comparison]:
    """Whether an IN rate is "stabilized and increased" (§2.2, §III).

    `obstacle`: why it cannot be above the λ_IN of the interval before, if so.
    """
    if s.inert("ard"):
        return []
    ard = s["ard"]
    # The blind dropper has no TPR, so its rates after the change are not measured.
    rio, arm = (replace(s.pair("ard", base), placebos={}) for base in ("rio", "arm"))
    third = "a third of the 15 % that §III prints (494 and 570 kbit/s)"
    steadier = "a tenth"
    return [
        Comparison(
            f"{what} above λ_IN of the interval before",
            list(ard[rate] - ard["lambda_in_before"]),
            "above",
            unit="bit/s",
            topology=s.title,
            obstacle=obstacle,
            effect=of_base(ard["lambda_in_before"], 0.05, third),
        ),
        # Without this a rise that comes with time alone would pass for the marker's doing.
        rio.compare(
            f"{what} above {s.titles['rio']}'s in the same interval",
            rate,
            "above",
            "bit/s",
            effect=of_base(s["rio"][rate], 0.05, third),
        ),
        rio.compare(
            f"standard deviation of {what} (per second) below {s.titles['rio']}'s",
            deviation,
            "below",
            "bit/s",
            effect=of_base(s["rio"][deviation], 0.1, steadier),
        ),
        # Fig. 7(b): what uses up tokens "still fluctuates although the ARM scheme works".
        arm.compare(
            f"standard deviation of {what} (per second) below ARM's",
            deviation,
            "below",
            "bit/s",
            effect=of_base(s["arm"][deviation], 0.1, steadier),
        ),
    ]


def _a8(s: Schemes) -> list[Comparison]:
    # §2.1: packets that ARM would remark, and the core drop, are dropped at the edge; RIO alone remarks none.
    if reason := s.inert("ard"):
        return [_fewer(s, base, reason) for base in ("arm", "rio")]
    some = Comparison(
        "drops by the edge marker, ARD",
        list(s["ard"]["drops_marker"]),
        "above",
        unit="packets",
        topology=s.title,
        effect=Effect(1.0, "a packet a run"),
    )
    return [*(_fewer(s, base, _none_to_move(s, base)) for base in ("arm", "rio")), some]


def _fewer(s: Schemes, base: str, obstacle: str | None) -> Comparison:
    """Whether the core drops fewer packets under ARD than under `base`."""
    likely = 'half of what the edge drops: those are "likely" to have been dropped in the core'
    # Where packets are dropped, not what for: blind drops at the edge would move as many.
    return replace(s.pair("ard", base), placebos={}).compare(
        f"drops at the core, ARD below {s.titles[base]}",
        "drops_core",
        "below",
        "packets",
        obstacle=obstacle,
        effect=of_base(s["ard"]["drops_marker"], 0.5, likely),
    )


def _none_to_move(s: Schemes, base: str) -> str | None:
    """Why drops cannot move to the edge, if so: without ARD the core has none."""
    core = float(s[base]["drops_core"].mean())
    if core >= s.bounds.number("few_drops"):
        return None
    before, after = (float(s[scheme]["drops_upstream"].mean()) for scheme in (base, "ard"))
    return (
        f"the core drops {core:.2g} packets in 100 s without ARD, so there are none to move; the queue"
        f" before the edge link drops {before:.0f} without ARD and {after:.0f} with it"
    )


def _a9(s: Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"distance of the flows' throughput from the contract, ARD below {s.titles['rio']}",
            list(s.from_contract("ard", "total") - s.from_contract("rio", "total")),
            "below",
            topology=s.title,
            obstacle=s.inert("ard") or s.healthy("rio"),
            effect=Effect(0.02, "2 % of the contract"),
            placebos={BLIND: list(s.from_contract("ard", "total") - s.from_contract("placebo", "total"))},
        )
    ]


_CLAIMS = {
    "A1": _a1, "A2": _a2, "A3": _a3, "A4": _a4, "A5": _a5, "A6": _a6, "A7": _a7, "A8": _a8, "A9": _a9,
    "A10": _a10, "A11a": beside.a11a, "A11b": beside.a11b, "A12": beside.a12, "A13": beside.a13,
}  # fmt: skip


def derived(scheme: str, source: Measures) -> Mapping[str, object]:
    """Values of a scheme that follow from another's runs: the placebo drops as often as ARD did."""
    if scheme != "placebo":
        raise KeyError(scheme)
    return {"edges.ER.marker": {"kind": "blind_drop", "p": placebo_rate(source), "of": "in"}}


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict in a set-up needs this cell: A14's is of traffic that changes."""
    return (cell.sweep == beside.CHANGE) if claim == "A14" else not cell.sweep


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in ran(paper, cells, variant):
            if claim.id == "A14":
                made = None if variant else beside.a14(paper, cells, setup.id)
                found += [] if made is None else [made]
                continue
            comparisons: list[Comparison] = []
            numbers: list[Number] = []
            notes: list[str] = []
            told: list[str] = []
            for topology in paper.topologies:
                schemes = Schemes(paper, cells, setup.id, topology, variant)
                comparisons += _CLAIMS[claim.id](schemes)
                notes += circumstances(claim.id, schemes)
                told += [shown(claim.id, schemes)]
                numbers += [
                    _number(paper, schemes, entry)
                    for entry in claim.tables("numbers")
                    if entry.word("topology") == topology.id
                ]
            if claim.id == "A11b" and not comparisons:
                continue
            # Every marker that the claim is about is inert: its notes say so, measured.
            nothing = None if comparisons else "No comparison can be made: the markers do not act."
            figures = "; ".join(filter(None, told))
            found.append(Finding(claim.id, setup.id, comparisons, numbers, notes, nothing, figures))
    return found


def _number(paper: Paper, schemes: Schemes, entry: Entry) -> Number:
    scheme, measure = entry.word("scheme"), entry.word("measure")
    about = paper.top.table("measures").table(measure)
    return Number(
        f"{about.word('words')}, {schemes.titles[scheme]}",
        list(_measured(schemes, scheme, measure)),
        entry.number("value"),
        entry.where,
        about.word("unit"),
        schemes.title,
        BOUNDS.get(measure, FREE),
        # Without its doing the number would be RIO's.
        None if scheme == "rio" else schemes.idle("rio", scheme),
        rival=list(_measured(schemes, "ard" if scheme == "rio" else "rio", measure)),
    )


def _measured(schemes: Schemes, scheme: str, measure: str) -> Array:
    return of_rank(schemes, scheme, 0) if measure == "greedy" else schemes[scheme][measure]
