"""How claims B1 to B8 are judged.

A profile is *kept* where at least 98 % of it is shown to be reached, *missed* where the flow is shown to stay
below it. Crossing points of Fig. 7 are interpolated within each seed, so that they have an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number
from .. import Cell, Paper
from ..measures import Array, Measures
from .experiments import BEST_EFFORT, LEVELS, PROFILES, STEPS, SUBSCRIBED

__all__ = ["SCHEMES", "TABLE_1", "crossing", "crossings", "findings", "points", "table"]

Cells = Mapping[Cell, Measures]

#: Titles by the names of `paper.toml`.
SCHEMES = {"rio": "RIO", "rio-plus-out": "RI+O"}
#: Groups of Table I, and their profiles in bit/s.
TABLE_1 = {f"as{i}": 270e3 * (i + 1) for i in range(5)}
BE = "be"
#: What the page calls Table I's columns.
WORDS = {"throughput": "throughput", "loss_out": "OUT loss"}
#: Share of a profile that counts as kept.
KEPT = 0.98
#: Sweeps, whose runs are no part of the paper's experiments.
SWEEPS = ("bucket", "w_q", "avg_update", "segment", "strictness")
#: Share of the time that counts as "always" (claim B7).
ALWAYS = 0.99
#: A count of dropped packets below this is none.
NONE = 0.5
#: Fig. 7: best-effort flows against which the profile is kept, by subscription and scheme.
PRINTED_CROSSINGS = {"40 %": {"rio": 13, "rio-plus-out": 30}, "50 %": {"rio": 9, "rio-plus-out": 17}}
#: Fig. 8: highest subscription in per cent at which a profile (Mbit/s) is kept; 100: at all, 0: at none.
PRINTED_LEVELS = {
    0.5: {"rio": 100, "rio-plus-out": 100},
    1.0: {"rio": 60, "rio-plus-out": 80},
    2.0: {"rio": 0, "rio-plus-out": 60},
}
#: Tolerance of the crossing points.
AROUND = 0.2


def _cell(
    cells: Cells, topology: str, scheme: str, variant: str = "", sweep: str = "", value: str = ""
) -> Measures:
    return cells[Cell("as-described", topology, scheme, variant, sweep, value)]


def points(cells: Cells, topology: str, sweep: str) -> list[str]:
    """Values of a figure's points that were run, in the order in which they were."""
    found = (c.value for c in cells if (c.topology, c.sweep) == (topology, sweep))
    return list(dict.fromkeys(found))


def crossing(x: Sequence[float], ratio: Array) -> Array:
    """Where each row of `ratio` first falls below `KEPT`, interpolated in `x`.

    The first `x` where it begins below, the last where it never falls.

    >>> crossing([0, 10, 20], np.array([[1.0, 0.99, 0.97], [0.9, 0.8, 0.7], [1.0, 1.0, 1.0]]))
    array([15.,  0., 20.])
    """
    found = np.empty(len(ratio))
    for i, row in enumerate(ratio):
        below = np.flatnonzero(row < KEPT)
        if not below.size:
            found[i] = x[-1]
        elif below[0] == 0:
            found[i] = x[0]
        else:
            k = int(below[0])
            share = (row[k - 1] - KEPT) / (row[k - 1] - row[k])
            found[i] = x[k - 1] + share * (x[k] - x[k - 1])
    return found


def crossings(cells: Cells, level: str, scheme: str) -> Array:
    """Best-effort flows against which four assured flows keep their profile, seed by seed."""
    profile = float(SUBSCRIBED[level].split()[0]) * 1e6
    counts = points(cells, "figure-7", level)
    ratio = [_cell(cells, "figure-7", scheme, "", level, n)["throughput:as"] / profile for n in counts]
    return crossing([float(n) for n in counts], np.array(ratio).T)


def _kept(label: str, throughput: Array, profile: float) -> Comparison:
    return Comparison(f"{label} kept", list(throughput / profile), "above", null=KEPT)


def _missed(label: str, throughput: Array, profile: float) -> Comparison:
    return Comparison(f"{label} missed", list(throughput / profile), "below", null=1.0)


def _paired(label: str, ours: Array, base: Array, side: Any, unit: str, topology: str = "") -> Comparison:
    return Comparison(label, list(ours - base), side, unit=unit, topology=topology)


def _kbit(profile: float) -> str:
    return f"{profile / 1e3:g} kbit/s"


def _table_1(cells: Cells, variant: str) -> dict[str, Measures]:
    return {scheme: _cell(cells, "table-1", scheme, variant) for scheme in SCHEMES}


def _schemes_apart(runs: Mapping[str, Measures], measure: str, side: Any, unit: str) -> list[Comparison]:
    """RI+O on that side of RIO for every assured flow of Table I, and on the other for best effort."""
    flows = [(group, f"the {_kbit(profile)} flow", side) for group, profile in TABLE_1.items()]
    flows.append((BE, "a best-effort flow", "below" if side == "above" else "above"))
    return [
        _paired(
            f"{WORDS[measure]} of {flow}, RI+O {where} RIO",
            runs["rio-plus-out"][f"{measure}:{group}"],
            runs["rio"][f"{measure}:{group}"],
            where,
            unit,
        )
        for group, flow, where in flows
    ]


def _b1a(paper: Paper, cells: Cells, variant: str) -> Finding:
    runs = _table_1(cells, variant)
    compared = _schemes_apart(runs, "throughput", "above", "bit/s")
    return Finding("B1a", "as-described", compared, list(_numbers(paper, runs, "throughput", "bit/s")))


def _numbers(paper: Paper, runs: Mapping[str, Measures], measure: str, unit: str) -> Iterator[Number]:
    """Table I's column of this measure beside ours."""
    for printed in paper.about["table1"]:
        for group, value in zip((*TABLE_1, BE), printed[measure], strict=True):
            who = "best effort" if group == BE else _kbit(TABLE_1[group])
            yield Number(
                f"{WORDS[measure]}, {who}, {SCHEMES[printed['scheme']]}",
                list(runs[printed["scheme"]][f"{measure}:{group}"]),
                value,
                "Table I",
                unit,
                bounds=(0.0, np.inf),
            )


def _b1b(paper: Paper, cells: Cells, variant: str) -> Finding:
    runs = _table_1(cells, variant)
    compared = []
    for group, profile in TABLE_1.items():
        rio = runs["rio"][f"throughput:{group}"]
        judged = _missed if profile >= 810e3 else _kept
        compared.append(judged(f"RIO: profile of {_kbit(profile)}", rio, profile))
        plus = runs["rio-plus-out"][f"throughput:{group}"]
        compared.append(_kept(f"RI+O: profile of {_kbit(profile)}", plus, profile))
    return Finding("B1b", "as-described", compared)


def _b1c(paper: Paper, cells: Cells, variant: str) -> Finding:
    runs = _table_1(cells, variant)
    gain = {g: runs["rio-plus-out"][f"throughput:{g}"] - runs["rio"][f"throughput:{g}"] for g in TABLE_1}
    compared = [
        _paired(
            "gain of the 1350 kbit/s flow above that of the 270 kbit/s flow",
            gain["as4"],
            gain["as0"],
            "above",
            "bit/s",
        )
    ]
    means = ", ".join(f"{gain[g].mean() / 1e3:+.0f}" for g in TABLE_1)
    return Finding("B1c", "as-described", compared, notes=[f"Gains by profile: {means} kbit/s."])


def _b2(paper: Paper, cells: Cells, variant: str) -> Finding:
    slopes = {s: m["slope"] for s, m in _table_1(cells, variant).items()}
    compared = [
        Comparison(
            "slope of avg_out on the profile, RIO above 0",
            list(slopes["rio"]),
            "above",
            unit="packets per Mbit/s",
        ),
        Comparison(
            "slope of avg_out on the profile, RI+O below 0",
            list(slopes["rio-plus-out"]),
            "below",
            unit="packets per Mbit/s",
        ),
    ]
    return Finding("B2", "as-described", compared)


def _b3(paper: Paper, cells: Cells, variant: str) -> Finding:
    compared, notes = [], []
    for level, printed in PRINTED_CROSSINGS.items():
        found = {scheme: crossings(cells, level, scheme) for scheme in SCHEMES}
        compared.append(
            _paired(
                f"best-effort flows withstood at {level}, RI+O above RIO",
                found["rio-plus-out"],
                found["rio"],
                "above",
                "flows",
            )
        )
        for scheme, number in printed.items():
            values = found[scheme]
            compared.append(
                Comparison(
                    f"best-effort flows withstood at {level}, {SCHEMES[scheme]}, near {number}",
                    list(values),
                    "within",
                    null=number * (1 - AROUND),
                    upper=number * (1 + AROUND),
                    unit="flows",
                )
            )
            if (values == BEST_EFFORT[-1]).any():
                never = int((values == BEST_EFFORT[-1]).sum())
                notes.append(
                    f"{SCHEMES[scheme]} at {level}: in {never} of {len(values)} seeds the profile is kept"
                    f" against all {BEST_EFFORT[-1]} flows; that many stand for more."
                )
    return Finding("B3", "as-described", compared, notes=notes)


def _b4(paper: Paper, cells: Cells, variant: str) -> Finding:
    compared = []
    for profile in PROFILES:
        sweep = f"{profile:g} Mbit/s"
        for level in points(cells, "figure-8", sweep):
            for scheme, last in PRINTED_LEVELS[profile].items():
                throughput = _cell(cells, "figure-8", scheme, "", sweep, level)["throughput:as"]
                judged = _kept if int(level) <= last else _missed
                compared.append(judged(f"{SCHEMES[scheme]}: {sweep} at {level} %", throughput, profile * 1e6))
    return Finding("B4", "as-described", compared)


def _b5(paper: Paper, cells: Cells, variant: str) -> Finding:
    compared = []
    for step, (count, _, first) in STEPS.items():
        runs = {s: _cell(cells, "figure-9", s, "", "step", step) for s in SCHEMES}
        for i in range(count):
            profile = float(step) * 1e6 * (i + 1)
            rio, plus = (runs[s][f"throughput:as{i}"] for s in SCHEMES)
            where = f"{i + 1} × {step} Mbit/s"
            compared.append((_missed if i + 1 >= first else _kept)(f"RIO: {where}", rio, profile))
            compared.append(_kept(f"RI+O: {where}", plus, profile))
            compared.append(_paired(f"{where}: RI+O above RIO", plus, rio, "above", "bit/s"))
    return Finding("B5", "as-described", compared)


def _b6(paper: Paper, cells: Cells, variant: str) -> Finding:
    runs = _table_1(cells, variant)
    compared = _schemes_apart(runs, "loss_out", "below", "")
    return Finding("B6", "as-described", compared, list(_numbers(paper, runs, "loss_out", "")))


def _b7(paper: Paper, cells: Cells, variant: str) -> Finding:
    rio = _cell(cells, "figure-1", "rio")
    compared = [
        Comparison(
            "share of the time the 0.5 Mbit/s flow's window is above its profile",
            list(rio["above:small"]),
            "above",
            null=ALWAYS,
        ),
        Comparison(
            "share of the time the 3 Mbit/s flow's window is above its profile, in and out",
            list(rio["above:large"]),
            "within",
            null=0.05,
            upper=0.95,
        ),
    ]
    return Finding("B7", "as-described", compared)


def _b8(paper: Paper, cells: Cells, variant: str) -> Finding:
    compared = []
    for topology, title in (
        ("table-1", "Table I"),
        ("figure-7", "Fig. 7"),
        ("figure-8", "Fig. 8"),
        ("figure-9", "Fig. 9"),
    ):
        for scheme, name in SCHEMES.items():
            own = [
                m["in_drops"]
                for c, m in cells.items()
                if (c.topology, c.scheme, c.variant) == (topology, scheme, "")
                and c.sweep not in SWEEPS
                and not (topology == "figure-8" and int(c.value) >= LEVELS[-1])
            ]
            # Every run of the family counts: the sum over its experiments, seed by seed.
            compared.append(
                Comparison(
                    f"{name}: no IN packet dropped",
                    list(np.sum(own, axis=0)),
                    "below",
                    null=NONE,
                    unit="packets",
                    topology=title,
                )
            )
    return Finding("B8", "as-described", compared)


_CLAIMS = {
    "B1a": _b1a,
    "B1b": _b1b,
    "B1c": _b1c,
    "B2": _b2,
    "B3": _b3,
    "B4": _b4,
    "B5": _b5,
    "B6": _b6,
    "B7": _b7,
    "B8": _b8,
}
#: Claims about Table I alone, which is also run under the variants.
_VARIED = ("B1a", "B1b", "B1c", "B2", "B6")


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim; under a variant, about those on Table I."""
    return [
        _CLAIMS[claim["id"]](paper, cells, variant)
        for claim in paper.claims
        if not variant or claim["id"] in _VARIED
    ]


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Table I beside ours: a row a flow, column and scheme."""
    made = []
    for printed in paper.about["table1"]:
        for variant in ("", *(v["id"] for v in paper.variants)):
            m = _cell(cells, "table-1", printed["scheme"], variant)
            for measure, unit in (
                ("throughput", "bit/s"),
                ("marked_in", "packets"),
                ("marked_out", "packets"),
                ("loss_out", ""),
            ):
                for group, value in zip((*TABLE_1, BE), printed[measure], strict=True):
                    who = "best effort" if group == BE else _kbit(TABLE_1[group])
                    made.append(
                        {
                            "table": "Table I",
                            "what": measure,
                            "label": f"{SCHEMES[printed['scheme']]}, {who}",
                            "unit": unit,
                            "setup": "as-described",
                            "topology": "table-1",
                            "scheme": printed["scheme"],
                            "variant": variant,
                            "paper": value,
                            "values": [float(x) for x in m[f"{measure}:{group}"]],
                            "seeds": list(m.seeds),
                        }
                    )
    return made
