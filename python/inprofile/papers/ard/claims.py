"""How claims A1–A8 are judged: what is compared with what, seed by seed.

Every claim is about both topologies, so each set-up's finding holds the comparisons of both. A marker that
hardly ever acts decides nothing: whatever would be compared of it is undecidable, with the measured reason.
Likewise where its remarks are without consequence, because the queue that drops does not look at colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number
from ...stats import FREE, SHARE, UNLIKE, ci95, estimated
from .. import Cell, Paper
from ..measures import Array, Measures
from ..pairing import paired, ratios
from .experiments import VARIANTS
from .measure import placebo_rate

__all__ = ["derived", "findings", "level", "more", "placebo_comparisons", "ranked", "table"]

Cells = Mapping[Cell, Measures]

#: A marker that remarks or drops less than this share of the IN packets is inert (our bound).
INERT = 0.001
#: Below so many drops a run at the RIO queue, colours decide nothing.
FEW_DROPS = 1.0
#: "No large decrease": at least this share of RIO's rate is kept (claim A3); how near to the TPR "to the TPR"
#: is (claims A5 and A7). Both bounds are ours.
KEPT = 0.95
#: Share of the token level's samples that have to lie in the remarking region (claim A5; ours).
MOSTLY = 0.95

ORDER = (("rio", "arm"), ("arm", "ard"))
TITLES = {"rio": "RIO", "arm": "ARM", "ard": "ARD", "placebo": "placebo"}
#: Words and units of the measures that papers' numbers are compared with.
MEASURES = {
    "fi": ("fairness index", ""),
    "greedy": ("greediest flow's throughput", "bit/s"),
}
BOUNDS = {"fi": SHARE, "greedy": (0.0, np.inf)}


class _Schemes:
    """The runs of one set-up and topology, by scheme."""

    def __init__(self, cells: Cells, setup: str, topology: Mapping[str, Any], variant: str) -> None:
        self.title = str(topology["title"])
        self.flows = int(topology["flows"])
        self.stated: Mapping[str, Any] = topology["stated"]
        self._runs = {
            scheme: cells[cell]
            for scheme in ("rio", "arm", "ard", "placebo")
            if (cell := Cell(setup, topology["id"], scheme, variant)) in cells
        }

    def __getitem__(self, scheme: str) -> Measures:
        return self._runs[scheme]

    def difference(self, measure: str, scheme: str, base: str) -> list[float]:
        """`scheme` − `base`, seed by seed."""
        return paired(self[scheme], self[base], measure)

    def inert(self, scheme: str) -> str | None:
        """Why this marker cannot matter here, if it cannot: it hardly touches a packet."""
        m = self[scheme]
        touched, came = float((m["remarked"] + m["drops_marker"]).mean()), float(m["arrived_in"].mean())
        if touched >= INERT * came:
            return None
        ratio, tokens = (float(m[name].mean()) for name in ("lambda_in_over_tpr", "tokens_mean"))
        return (
            f"{TITLES[scheme]} is inert: it touches {touched:.2g} of {came:.0f} IN packets in 100 s, as λ_IN"
            f" is {ratio:.2f} of the TPR and the bucket stays at {tokens:.0f} of {self.stated['bucket']:g}"
            " packets"
        )

    def idle(self, base: str, scheme: str) -> str | None:
        """Why `scheme` cannot differ from `base` here, if so: it is inert, or its remarks mean nothing."""
        reason = self.inert(scheme)
        if reason or scheme == "ard":
            return reason
        drops = max(float(self[s]["drops_core"].mean()) for s in (base, scheme))
        if drops < FEW_DROPS:
            held = float(self["rio"]["queue_core"].mean())
            return (
                f"the RIO queue drops {drops:.2g} packets in 100 s and holds {held:.2g} on average, so a"
                " remarked packet is treated like any other"
            )
        if not np.any(self.difference("fi", scheme, base)):
            remarked = float(self[scheme]["remarked"].mean())
            return (
                f"{TITLES[scheme]} remarks {remarked:.0f} packets in 100 s and every seed's rates stay"
                f" exactly {TITLES[base]}'s: the queue that drops does not look at colours"
            )
        return None


def ranked(rio: Array, seed: int) -> tuple[int, int]:
    """Greediest and most damaged flow, by throughput under RIO in all seeds but this one.

    `rio` is seeds × flows; `seed` the index. Ranked on the seed itself, either would regress to the mean
    under any scheme.
    """
    mean = np.delete(rio, seed, axis=0).mean(axis=0)
    return int(mean.argmax()), int(mean.argmin())


def _of_rank(s: _Schemes, scheme: str, which: int) -> Array:
    """Throughput of the greediest (0) or most damaged (1) flow under a scheme, ranked on other seeds."""
    rio, own = s["rio"].by_flow["throughput"], s[scheme].by_flow["throughput"]
    return np.array([own[i, ranked(rio, i)[which]] for i in range(len(rio))])


def level(lambda_in: Array, tpr: Array, stated: Mapping[str, Any], p_drop: float) -> Array:
    """Token level at which as much is admitted as fills up (§2.1, Eq. 1), in packets.

    (1 − P_drop)(1 − P_rem)·λ_IN = TPR. NaN where that is not inside (0, T_rd): the bucket fills, or runs out.
    """
    share = 1 - tpr / ((1 - p_drop) * lambda_in)
    inside = (share > 0) & (share < stated["max_rem"])
    return np.where(inside, stated["t_rd"] * (1 - share / stated["max_rem"]), np.nan)


def _a1(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"fairness index of {TITLES[better]} above {TITLES[base]}",
            s.difference("fi", better, base),
            "above",
            topology=s.title,
            obstacle=s.idle(base, better),
            bounds=UNLIKE,
        )
        for base, better in ORDER
    ]


def _a2(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"spread of {what} throughput, {TITLES[better]} below {TITLES[base]}",
            s.difference(measure, better, base),
            "below",
            unit="bit/s",
            topology=s.title,
            # IN throughput counts colours, so it shows remarking even where no packet's fate depends on it.
            obstacle=s.idle(base, better) if measure == "std_total" else s.inert(better),
        )
        for measure, what in (("std_in", "IN"), ("std_total", "total"))
        for base, better in ORDER
    ]


def _a3(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"{what} throughput of {TITLES[scheme]} at least {KEPT:g} of RIO's",
            ratios(s[scheme], s["rio"], measure),
            "above",
            null=KEPT,
            topology=s.title,
        )
        for measure, what in (("total", "total"), ("total_in", "IN"))
        for scheme in ("arm", "ard")
        # A marker that does nothing costs nothing: that is no answer.
        if s.inert(scheme) is None
    ]


def _a4(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"{what} of the average queue, ARD below RIO",
            s.difference(measure, "ard", "rio"),
            "below",
            unit=unit,
            topology=s.title,
            obstacle=s.inert("ard"),
            bounds=bounds,
        )
        for measure, what, unit, bounds in (
            ("queue_std", "standard deviation", "packets", FREE),
            ("queue_cycle", "autocorrelation peak", "", UNLIKE),
        )
    ]


def _a5(s: _Schemes) -> list[Comparison]:
    if s.inert("ard"):
        return []
    return [
        Comparison(
            f"share of token levels at or below T_rd, above {MOSTLY:g}",
            list(s["ard"]["tokens_low"]),
            "above",
            null=MOSTLY,
            topology=s.title,
            bounds=SHARE,
        ),
        Comparison(
            "admitted IN equal to the TPR, as a ratio",
            list(s["ard"]["admitted_over_tpr"]),
            "within",
            null=KEPT,
            upper=2 - KEPT,
            topology=s.title,
        ),
    ]


def _a6(s: _Schemes) -> list[Comparison]:
    def change(which: int) -> list[float]:
        return list(_of_rank(s, "ard", which) - _of_rank(s, "rio", which))

    reason = s.inert("ard")
    return [
        Comparison("greediest flow loses, ARD − RIO", change(0), "below", 0.0, "bit/s", s.title, reason),
        Comparison("most damaged flow gains, ARD − RIO", change(1), "above", 0.0, "bit/s", s.title, reason),
    ]


def _a7(s: _Schemes) -> list[Comparison]:
    if s.inert("ard"):
        return []
    ard = s["ard"]
    return [
        Comparison(
            "admitted IN above λ_IN of the interval before",
            list(ard["admitted_in"] - ard["lambda_in_before"]),
            "above",
            unit="bit/s",
            topology=s.title,
        ),
        # Without this a rise that comes with time alone would pass for the marker's doing.
        Comparison(
            "admitted IN above RIO's IN in the same interval",
            s.difference("admitted_in", "ard", "rio"),
            "above",
            unit="bit/s",
            topology=s.title,
        ),
        Comparison(
            f"admitted IN at least {KEPT:g} of the TPR",
            list(ard["admitted_over_tpr"]),
            "above",
            null=KEPT,
            topology=s.title,
        ),
        Comparison(
            "standard deviation of admitted IN (per second) below RIO's",
            s.difference("admitted_std", "ard", "rio"),
            "below",
            unit="bit/s",
            topology=s.title,
        ),
    ]


def _a8(s: _Schemes) -> list[Comparison]:
    base = float(s["rio"]["drops_core"].mean())
    obstacle = s.inert("ard")
    if obstacle is None and base < FEW_DROPS:
        before, after = (float(s[scheme]["drops_upstream"].mean()) for scheme in ("rio", "ard"))
        obstacle = (
            f"the core drops {base:.2g} packets in 100 s under RIO, so there are none to move; the queue"
            f" before the edge link drops {before:.0f} under RIO and {after:.0f} under ARD"
        )
    return [
        Comparison(
            "drops at the core, ARD below RIO",
            s.difference("drops_core", "ard", "rio"),
            "below",
            unit="packets",
            topology=s.title,
            obstacle=obstacle,
        ),
        *(
            [
                Comparison(
                    "drops by the edge marker, ARD above RIO",
                    s.difference("drops_marker", "ard", "rio"),
                    "above",
                    unit="packets",
                    topology=s.title,
                )
            ]
            if s.inert("ard") is None
            else []
        ),
    ]


_CLAIMS = {"A1": _a1, "A2": _a2, "A3": _a3, "A4": _a4, "A5": _a5, "A6": _a6, "A7": _a7, "A8": _a8}


def _notes(claim: str, s: _Schemes) -> list[str]:
    """Circumstances behind a verdict: an inert marker, who is greedy, where the level should be."""
    notes = []
    for scheme in ("arm", "ard"):
        if (scheme == "ard" or claim in ("A1", "A2", "A3")) and (reason := s.inert(scheme)):
            notes.append(f"With {s.title} {reason}.")
    if claim in ("A5", "A7") and s.inert("ard") is None:
        notes.append(_level_words(s))
    if claim == "A6":
        rio = s["rio"]
        damaged, greedy = (float(_of_rank(s, "rio", which).mean()) / 1e3 for which in (1, 0))
        picked = [float(rio[name].mean()) / 1e3 for name in ("best", "worst")]
        share = float(rio["total"].mean()) / s.flows / 1e3
        notes.append(
            f"Under RIO, with {s.title}, the flow that is greediest in the other seeds gets {greedy:.0f}"
            f" kbit/s, the most damaged {damaged:.0f}; picked by each seed's own outcome, as the paper does,"
            f" {picked[0]:.0f} and {picked[1]:.0f}. An equal share of what gets through is {share:.0f}."
        )
    return notes


def _level_words(s: _Schemes) -> str:
    """Input, admitted and level beside what §2.1 makes of the input."""
    ard = s["ard"]
    expected = level(ard["lambda_in"], ard["tpr"], s.stated, s.stated["p_drop"])
    inside = expected[np.isfinite(expected)]
    text = (
        f"With {s.title} λ_IN arrives at {ard['lambda_in_over_tpr'].mean():.2f} times the TPR and"
        f" {ard['admitted_over_tpr'].mean():.3f} times the TPR is admitted; mean token level"
        f" {ard['tokens_mean'].mean():.1f}"
    )
    if not len(inside):
        return f"{text}, where Eq. (1) has no level inside the region in any seed."
    return (
        f"{text}, {inside.mean():.1f} by the fixed point of Eq. (1) in the {len(inside)} of"
        f" {len(expected)} seeds that have one."
    )


def derived(scheme: str, source: Measures) -> Mapping[str, object]:
    """Values of a scheme that follow from another's runs: the placebo drops as often as ARD did."""
    if scheme != "placebo":
        raise KeyError(scheme)
    return {"edges.ER.marker": {"kind": "blind_drop", "p": placebo_rate(source), "of": "in"}}


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            comparisons: list[Comparison] = []
            numbers: list[Number] = []
            notes: list[str] = []
            for topology in paper.topologies:
                schemes = _Schemes(cells, setup["id"], topology, variant)
                comparisons += _CLAIMS[claim["id"]](schemes)
                notes += _notes(claim["id"], schemes)
                numbers += [
                    _number(schemes, entry)
                    for entry in claim.get("numbers", ())
                    if entry["topology"] == topology["id"]
                ]
            # Every marker that the claim is about is inert: its notes say so, measured.
            nothing = None if comparisons else "No comparison can be made: the markers do not act."
            found.append(Finding(claim["id"], setup["id"], comparisons, numbers, notes, nothing))
    return found


def _number(schemes: _Schemes, entry: Mapping[str, Any]) -> Number:
    words, unit = MEASURES[entry["measure"]]
    scheme, measure = entry["scheme"], entry["measure"]
    values = _of_rank(schemes, scheme, 0) if measure == "greedy" else schemes[scheme][measure]
    return Number(
        f"{words}, {TITLES[scheme]}",
        list(values),
        entry["value"],
        entry["where"],
        unit,
        schemes.title,
        BOUNDS.get(measure, FREE),
    )


def placebo_comparisons(paper: Paper, cells: Cells, setup: str, variant: str) -> list[Comparison]:
    """Is it the scheme, or any randomness? ARD and the placebo against RIO, and against each other.

    Not among the paper's claims, so outside Holm's family: plain 95 % intervals.
    """
    compared = []
    for topology in paper.topologies:
        s = _Schemes(cells, setup, topology, variant)
        for scheme, base in (("placebo", "rio"), ("ard", "rio"), ("ard", "placebo")):
            compared.append(
                Comparison(
                    f"{TITLES[scheme]} − {TITLES[base]}",
                    s.difference("fi", scheme, base),
                    "above",
                    topology=topology["id"],
                    bounds=UNLIKE,
                )
            )
    return compared


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Table 1 beside ours: one row a set-up, topology, scheme and variant."""
    printed = {
        (n["topology"], n["scheme"]): n["value"]
        for claim in paper.claims
        for n in claim.get("numbers", ())
        if n["measure"] == "fi"
    }
    return [
        {
            "table": "Table 1",
            "what": "fairness index",
            "label": f"{paper.find('topologies', cell.topology)['title']}, {TITLES[cell.scheme]}",
            "unit": "",
            "setup": cell.setup,
            "topology": cell.topology,
            "scheme": cell.scheme,
            "variant": cell.variant,
            "paper": printed.get((cell.topology, cell.scheme)),
            "values": [float(x) for x in measures["fi"]],
            "seeds": list(measures.seeds),
            "bounds": SHARE,
        }
        for cell, measures in cells.items()
        if not cell.sweep
    ]


def more(paper: Paper, cells: Cells) -> dict[str, Any]:
    """What `results.json` has beside claims and tables: the schemes against the placebo."""
    return {
        "placebo": [
            {
                "setup": setup["id"],
                "topology": c.topology,
                "variant": variant,
                "compared": c.label,
                "differs": _excludes_zero(c),
                **estimated(c.values, c.bounds),
            }
            for setup in paper.setups
            for variant in VARIANTS
            for c in placebo_comparisons(paper, cells, setup["id"], variant)
        ]
    }


def _excludes_zero(c: Comparison) -> bool:
    interval = ci95(c.values, c.bounds)
    return interval is not None and 0.0 not in interval
