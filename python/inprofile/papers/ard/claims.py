"""How claims A1–A8 are judged: what is compared with what, seed by seed.

Every claim is about both topologies, so each set-up's finding holds the comparisons of both. Where the
core drops next to nothing, a remarked packet fares like any other: there, whatever ARM should do by
remarking cannot show, and the comparison carries that as its obstacle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number
from ...stats import ci95, estimated
from .. import Cell, Paper
from ..measures import Measures
from .experiments import VARIANTS
from .measure import placebo_rate

__all__ = ["derived", "findings", "more", "placebo_comparisons", "table"]

Cells = Mapping[Cell, Measures]

#: Below so many drops a run at the RIO queue, colours decide nothing.
FEW_DROPS = 1.0
#: "No decrease": at least this share of RIO's rate is kept (claim A3).
KEPT = 0.97
#: Share of the token level's samples that have to lie in the remarking region (claim A5).
MOSTLY = 0.95

ORDER = (("rio", "arm"), ("arm", "ard"))
TITLES = {"rio": "RIO", "arm": "ARM", "ard": "ARD", "placebo": "placebo"}
#: Words and units of the measures that papers' numbers are compared with.
MEASURES = {
    "fi": ("fairness index", ""),
    "fastest": ("shortest-RTT flow's throughput", "bit/s"),
    "slowest": ("longest-RTT flow's throughput", "bit/s"),
    "lambda_in_over_tpr": ("IN rate over TPR", ""),
}
BOUNDS = {"fi": (0.0, 1.0), "fastest": (0.0, np.inf), "slowest": (0.0, np.inf)}


class _Schemes:
    """The runs of one set-up and topology, by scheme."""

    def __init__(self, cells: Cells, setup: str, topology: Mapping[str, Any], variant: str) -> None:
        self.title = str(topology["title"])
        self.flows = int(topology["flows"])
        self._runs = {
            scheme: cells[cell]
            for scheme in ("rio", "arm", "ard", "placebo")
            if (cell := Cell(setup, topology["id"], scheme, variant)) in cells
        }

    def __getitem__(self, scheme: str) -> Measures:
        return self._runs[scheme]

    def difference(self, measure: str, scheme: str, base: str) -> Sequence[float]:
        """`scheme` − `base`, seed by seed."""
        a, b = self[scheme], self[base]
        if a.seeds != b.seeds:
            raise ValueError(f"{scheme} and {base} were run with different seeds: nothing to pair")
        return list(a[measure] - b[measure])

    def ratio(self, measure: str, scheme: str, base: str) -> Sequence[float]:
        """`scheme` / `base`, seed by seed."""
        a, b = self[scheme], self[base]
        if a.seeds != b.seeds:
            raise ValueError(f"{scheme} and {base} were run with different seeds: nothing to pair")
        return list(a[measure] / b[measure])

    def idle_core(self, *schemes: str) -> str | None:
        """Why remarking cannot matter here, if it cannot: the RIO queue hardly drops."""
        drops = max(float(self[s]["drops_core"].mean()) for s in schemes)
        held = float(self["rio"]["queue_core"].mean())
        if drops >= FEW_DROPS:
            return None
        return (
            f"the RIO queue drops {drops:.2g} packets in 100 s and holds {held:.2g} on average, so a remarked"
            " packet fares like any other"
        )


def _a1(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"fairness index of {TITLES[better]} above {TITLES[base]}",
            s.difference("fi", better, base),
            "above",
            topology=s.title,
            obstacle=s.idle_core(base, better) if better == "arm" else None,
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
            obstacle=s.idle_core(base, better) if better == "arm" and measure == "std_total" else None,
        )
        for measure, what in (("std_in", "IN"), ("std_total", "total"))
        for base, better in ORDER
    ]


def _a3(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"{what} throughput of {TITLES[scheme]} at least {KEPT:g} of RIO's",
            s.ratio(measure, scheme, "rio"),
            "above",
            null=KEPT,
            topology=s.title,
        )
        for measure, what in (("total", "total"), ("total_in", "IN"))
        for scheme in ("arm", "ard")
    ]


def _a4(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"{what} of the average queue, ARD below RIO",
            s.difference(measure, "ard", "rio"),
            "below",
            unit=unit,
            topology=s.title,
        )
        for measure, what, unit in (
            ("queue_std", "standard deviation", "packets"),
            ("queue_cycle", "autocorrelation peak", ""),
        )
    ]


def _a5(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            f"share of token levels at or below T_rd above {MOSTLY:g}",
            list(s["ard"]["tokens_low"]),
            "above",
            null=MOSTLY,
            topology=s.title,
        )
    ]


def _a6(s: _Schemes) -> list[Comparison]:
    return [
        Comparison(
            "shortest-RTT flow loses, ARD − RIO",
            s.difference("fastest", "ard", "rio"),
            "below",
            unit="bit/s",
            topology=s.title,
        ),
        Comparison(
            "longest-RTT flow gains, ARD − RIO",
            s.difference("slowest", "ard", "rio"),
            "above",
            unit="bit/s",
            topology=s.title,
        ),
    ]


def _a7(s: _Schemes) -> list[Comparison]:
    ard = s["ard"]
    return [
        Comparison(
            "IN rate under ARD above that of the interval before",
            list(ard["lambda_in"] - ard["lambda_in_before"]),
            "above",
            unit="bit/s",
            topology=s.title,
        ),
        # Without this a rise that comes with time alone would pass for the marker's doing.
        Comparison(
            "IN rate under ARD above RIO's in the same interval",
            s.difference("lambda_in", "ard", "rio"),
            "above",
            unit="bit/s",
            topology=s.title,
        ),
    ]


def _a8(s: _Schemes) -> list[Comparison]:
    base = float(s["rio"]["drops_core"].mean())
    obstacle = None
    if base < FEW_DROPS:
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
        Comparison(
            "drops by the edge marker, ARD above RIO",
            s.difference("drops_marker", "ard", "rio"),
            "above",
            unit="packets",
            topology=s.title,
        ),
    ]


_CLAIMS = {"A1": _a1, "A2": _a2, "A3": _a3, "A4": _a4, "A5": _a5, "A6": _a6, "A7": _a7, "A8": _a8}


def _notes(claim: str, s: _Schemes) -> list[str]:
    """Circumstances behind a verdict: a marker that never acts, flows that are not the greedy ones."""
    notes = []
    ard = s["ard"]
    if float((ard["remarked"] + ard["drops_marker"]).mean()) < 1:
        notes.append(
            f"With {s.title} the edge marker never acts: the TPR it sets itself"
            f" ({ard['tpr'].mean() / 1e3:.0f} kbit/s) stays above the rate of IN packets"
            f" ({ard['lambda_in'].mean() / 1e3:.0f} kbit/s), so its bucket does not run low."
        )
    if claim == "A6":
        fastest, slowest = (float(s["rio"][name].mean()) / 1e3 for name in ("fastest", "slowest"))
        share = float(s["rio"]["total"].mean()) / s.flows / 1e3
        notes.append(
            f"Under RIO, with {s.title}, the shortest-RTT flow gets {fastest:.0f} kbit/s and the longest-RTT"
            f" flow {slowest:.0f}; an equal share of what gets through is {share:.0f}."
        )
    return notes


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
            found.append(Finding(claim["id"], setup["id"], comparisons, numbers, notes))
    return found


def _number(schemes: _Schemes, entry: Mapping[str, Any]) -> Number:
    words, unit = MEASURES[entry["measure"]]
    return Number(
        f"{words}, {TITLES[entry['scheme']]}",
        list(schemes[entry["scheme"]][entry["measure"]]),
        entry["value"],
        entry["where"],
        unit,
        schemes.title,
        BOUNDS.get(entry["measure"], (-np.inf, np.inf)),
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
                **estimated(c.values),
            }
            for setup in paper.setups
            for variant in VARIANTS
            for c in placebo_comparisons(paper, cells, setup["id"], variant)
        ]
    }


def _excludes_zero(c: Comparison) -> bool:
    interval = ci95(c.values)
    return interval is not None and 0.0 not in interval
