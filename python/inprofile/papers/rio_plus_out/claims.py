"""How claims B1 to B8 are judged.

A profile is *kept* where at least 98 % of it is shown to be reached, *missed* where the flow is shown to stay
below it. Crossing points of Fig. 7 are interpolated within each seed, so that they have an interval. A claim
is judged in every set-up whose cells were run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...judge import Comparison, Finding, Number
from .. import Cell, Paper
from ..measures import Array, Measures
from .experiments import FIGURES, LEVELS, PROFILES, STEPS, SUBSCRIBED

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
#: Share of the time that counts as "always" (claim B7).
ALWAYS = 0.99
#: IN packets dropped a run, below which it is none (claim B8).
NONE = 0.5
#: Fig. 7: best-effort flows against which the profile is kept, by subscription and scheme.
PRINTED_CROSSINGS = {"40 %": {"rio": 13, "rio-plus-out": 30}, "50 %": {"rio": 9, "rio-plus-out": 17}}
#: Fig. 8: highest subscription in per cent at which a profile (Mbit/s) is kept; 100: at all, 0: at none.
PRINTED_LEVELS = {
    0.5: {"rio": 100, "rio-plus-out": 100},
    1.0: {"rio": 60, "rio-plus-out": 80},
    2.0: {"rio": 0, "rio-plus-out": 60},
}


def _cell(cells: Cells, setup: str, topology: str, scheme: str, sweep: str = "", value: str = "") -> Measures:
    return cells[Cell(setup, topology, scheme, "", sweep, value)]


def points(cells: Cells, setup: str, topology: str, sweep: str) -> list[str]:
    """Values of a figure's points that were run, in the order in which they were."""
    found = (c.value for c in cells if (c.setup, c.topology, c.sweep) == (setup, topology, sweep))
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


def kept_share(paper: Paper, m: Measures, profile: float) -> Array:
    """Throughput over profile of flows with equal profiles: their mean, or the least (reading `maintain`)."""
    return m["worst"] if paper.about["maintain"] == "worst" else m["throughput:as"] / profile


def crossings(paper: Paper, cells: Cells, setup: str, level: str, scheme: str) -> Array:
    """Best-effort flows against which four assured flows keep their profile, seed by seed."""
    profile = SUBSCRIBED[level] * 1e6
    counts = points(cells, setup, "figure-7", level)
    ratio = [kept_share(paper, _cell(cells, setup, "figure-7", scheme, level, n), profile) for n in counts]
    return crossing([float(n) for n in counts], np.array(ratio).T)


def _kept(label: str, share: Array) -> Comparison:
    return Comparison(f"{label} kept", list(share), "above", null=KEPT)


def _missed(label: str, share: Array) -> Comparison:
    return Comparison(f"{label} missed", list(share), "below", null=1.0)


def _paired(label: str, ours: Array, base: Array, side: Any, unit: str, topology: str = "") -> Comparison:
    return Comparison(label, list(ours - base), side, unit=unit, topology=topology)


def _kbit(profile: float) -> str:
    return f"{profile / 1e3:g} kbit/s"


def _table_1(cells: Cells, setup: str) -> dict[str, Measures]:
    return {scheme: _cell(cells, setup, "table-1", scheme) for scheme in SCHEMES}


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


def _b1a(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(cells, setup)
    compared = _schemes_apart(runs, "throughput", "above", "bit/s")
    return Finding("B1a", setup, compared, list(_numbers(paper, runs, "throughput", "bit/s")))


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


def _b1b(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(cells, setup)
    compared = []
    for group, profile in TABLE_1.items():
        rio, plus = (runs[scheme][f"throughput:{group}"] / profile for scheme in SCHEMES)
        compared.append((_missed if profile >= 810e3 else _kept)(f"RIO: profile of {_kbit(profile)}", rio))
        compared.append(_kept(f"RI+O: profile of {_kbit(profile)}", plus))
    return Finding("B1b", setup, compared)


def _b1c(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(cells, setup)
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
    ours = ", ".join(f"{gain[g].mean() / 1e3:+.0f}" for g in TABLE_1)
    rio, plus = (next(t["throughput"] for t in paper.about["table1"] if t["scheme"] == s) for s in SCHEMES)
    printed = ", ".join(f"{(b - a) / 1e3:+.0f}" for a, b in zip(rio[:-1], plus[:-1], strict=True))
    note = (
        f"Gains by profile: {ours} kbit/s; in the paper's own Table I {printed}, which contradicts its words,"
        " the more so relative to the profile."
    )
    return Finding("B1c", setup, compared, notes=[note])


def _b2(paper: Paper, cells: Cells, setup: str) -> Finding:
    slopes = {s: _cell(cells, setup, "figure-2", s)["slope"] for s in SCHEMES}
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
    return Finding("B2", setup, compared)


def _b3(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared, numbers = [], []
    for level, printed in PRINTED_CROSSINGS.items():
        found = {scheme: crossings(paper, cells, setup, level, scheme) for scheme in SCHEMES}
        most = max(float(n) for n in points(cells, setup, "figure-7", level))
        kept = all((values == most).all() for values in found.values())
        compared.append(
            Comparison(
                f"best-effort flows withstood at {level}, RI+O above RIO",
                list(found["rio-plus-out"] - found["rio"]),
                "above",
                unit="flows",
                # A profile that is kept against all flows crosses nowhere.
                obstacle=f"the profile is kept against all {most:g} best-effort flows by both in every seed"
                if kept
                else None,
            )
        )
        numbers += [
            Number(
                f"best-effort flows withstood at {level}, {SCHEMES[scheme]}",
                list(found[scheme]),
                number,
                "§4",
                "flows",
                bounds=(0.0, np.inf),
            )
            for scheme, number in printed.items()
        ]
    return Finding("B3", setup, compared, numbers)


def _b4(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for profile in PROFILES:
        sweep = f"{profile:g} Mbit/s"
        for level in points(cells, setup, "figure-8", sweep):
            for scheme, last in PRINTED_LEVELS[profile].items():
                m = _cell(cells, setup, "figure-8", scheme, sweep, level)
                judged = _kept if int(level) <= last else _missed
                share = kept_share(paper, m, profile * 1e6)
                compared.append(judged(f"{SCHEMES[scheme]}: {sweep} at {level} %", share))
    return Finding("B4", setup, compared)


def _b5(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for step, (count, _, first) in STEPS.items():
        runs = {s: _cell(cells, setup, "figure-9", s, "step", step) for s in SCHEMES}
        for i in range(count):
            profile = float(step) * 1e6 * (i + 1)
            rio, plus = (runs[s][f"throughput:as{i}"] for s in SCHEMES)
            where = f"{i + 1} × {step} Mbit/s"
            compared.append((_missed if i + 1 >= first else _kept)(f"RIO: {where}", rio / profile))
            compared.append(_kept(f"RI+O: {where}", plus / profile))
            compared.append(_paired(f"{where}: RI+O above RIO", plus, rio, "above", "bit/s"))
    return Finding("B5", setup, compared)


def _b6(paper: Paper, cells: Cells, setup: str) -> Finding:
    runs = _table_1(cells, setup)
    compared = _schemes_apart(runs, "loss_out", "below", "")
    ratio = [
        float(np.mean([runs[s][f"loss_out:{g}"].mean() for g in TABLE_1]) / runs[s]["loss_out:be"].mean())
        for s in SCHEMES
    ]
    printed = [_printed_ratio(paper, s) for s in SCHEMES]
    note = (
        f"OUT loss of an assured flow over that of best effort: {ratio[0]:.1f} under RIO,"
        f" {ratio[1]:.1f} under RI+O (Table I: {printed[0]:.1f} and {printed[1]:.1f})."
    )
    return Finding("B6", setup, compared, list(_numbers(paper, runs, "loss_out", "")), [note])


def _printed_ratio(paper: Paper, scheme: str) -> float:
    """Table I: mean OUT loss of the assured flows over that of best effort."""
    loss = next(t["loss_out"] for t in paper.about["table1"] if t["scheme"] == scheme)
    return float(np.mean(loss[:-1]) / loss[-1])


def _b7(paper: Paper, cells: Cells, setup: str) -> Finding:
    rio = _cell(cells, setup, "figure-1", "rio")
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
    return Finding("B7", setup, compared)


def _b8(paper: Paper, cells: Cells, setup: str) -> Finding:
    compared = []
    for scheme, name in SCHEMES.items():
        own = [
            m["in_drops"]
            for c, m in cells.items()
            if (c.setup, c.scheme, c.variant) == (setup, scheme, "") and not _beyond(c)
        ]
        # Every run below 100 % is a sample of its own.
        every = np.concatenate(own)
        label = f"{name}: no IN packet dropped, {len(own)} experiments"
        compared.append(Comparison(label, list(every), "below", null=NONE, unit="packets a run"))
    worst = max(
        ((c, float(m["in_drops"].mean())) for c, m in cells.items() if c.setup == setup and not _beyond(c)),
        key=lambda found: found[1],
    )
    notes = [f"Most in {worst[0]}: {worst[1]:.0f} a run."] if worst[1] > 0 else []
    return Finding("B8", setup, compared, notes=notes)


def _beyond(c: Cell) -> bool:
    """Whether claim B8 says nothing of it: full subscription, a sweep, or another's experiment."""
    if c.topology not in (*FIGURES, "table-1") or (c.topology == "table-1" and c.sweep):
        return True
    return c.topology == "figure-8" and int(c.value) >= LEVELS[-1]


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
#: The topology without whose cells a claim is not judged.
_NEEDS = {"B2": "figure-2", "B3": "figure-7", "B4": "figure-8", "B5": "figure-9", "B7": "figure-1"}


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim, in every set-up whose experiments were run."""
    run = {(c.setup, c.topology) for c in cells}
    return [
        _CLAIMS[claim["id"]](paper, cells, setup["id"])
        for setup in paper.setups
        for claim in paper.claims
        if (setup["id"], _NEEDS.get(claim["id"], "table-1")) in run
    ]


#: Columns of Table I, with their units.
COLUMNS = {"throughput": "bit/s", "marked_in": "packets", "marked_out": "packets", "loss_out": ""}


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Table I beside ours: a row a flow, column, scheme and set-up; and the link's utilisation."""
    made = []
    for setup in paper.setups:
        for printed in paper.about["table1"]:
            scheme = printed["scheme"]
            m = _cell(cells, setup["id"], "table-1", scheme)
            common = {
                "setup": setup["id"],
                "topology": "table-1",
                "scheme": scheme,
                "variant": "",
                "seeds": list(m.seeds),
            }
            for measure, unit in COLUMNS.items():
                for group, value in zip((*TABLE_1, BE), printed[measure], strict=True):
                    who = "best effort" if group == BE else _kbit(TABLE_1[group])
                    values = [float(x) for x in m[f"{measure}:{group}"]]
                    label = f"{SCHEMES[scheme]}, {who}"
                    made.append(
                        {"table": "Table I", "what": measure, "label": label, "unit": unit, "paper": value,
                         "values": values, **common}
                    )  # fmt: skip
            values = [float(x) for x in m["utilisation"]]
            made.append(
                {"table": "Table I", "what": "utilisation", "label": SCHEMES[scheme], "unit": "",
                 "paper": printed["utilisation"], "values": values, **common}
            )  # fmt: skip
    return made
