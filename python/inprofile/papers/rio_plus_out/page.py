"""Paper B's own part of its report: Table I, Fig. 1, 2, 5 to 9, bucket sizes, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...quantity import number, pm
from ...report import charts as draw
from ...report.curves import curve
from ...stats import estimate
from .. import Cell
from ..measures import Measures
from .claims import SCHEMES, TABLE_1, crossings, points
from .experiments import PROFILES, STEPS, SUBSCRIBED
from .measure import PACKET, RTT

if TYPE_CHECKING:
    from ...reproduce import Report

__all__ = ["context"]

Charts = MutableMapping[str, Mapping[str, Any]]

#: Value and reason of what the paper does not state; the scenario files say the same beside each value.
ASSUMED = (
    ("Packet", "536 B of data + 40 B of headers", "with runs of 500 s it fits all counts of Table I"),
    (
        "Buckets",
        "8 KB at 270 kbit/s, in proportion",
        "as printed, (i + 1) · 320 KB, more would be marked IN than is",
    ),
    ("TCP", "Reno as ns-2 has it, least timeout 1 s, window never the limit", "ns-2 of 1999"),
    (
        "w_q",
        "0.5",
        "the paper calls that of Fig. 2 large; with 0.002 the link is not full, as Table I has it",
    ),
    (
        "Averages",
        "both at every arrival",
        "the paper's Fig. 4; only so is their difference that of OUT packets",
    ),
    ("Queue", "room for 1000 packets", "no packet is ever lost to the limit"),
    ("Fig. 7 to 9", "150 s, of which 30 s to 150 s count", "the paper gives no length"),
    ("Start", "uniform in the first second", "the paper gives no starting times"),
)


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    return {
        "short": list(_in_short(report)),
        "table1": _table_1(report, charts),
        "windows": list(_windows(report, charts)),
        "seen": _seen(report, charts),
        "loss": _loss(report, charts),
        "against": _figure_7(report, charts),
        "subscribed": _figure_8(report, charts),
        "steps": _figure_9(report, charts),
        "buckets": _buckets(report, charts),
        "sweeps": list(_sweeps(report, charts)),
        "assumed": ASSUMED,
        "shown_seed": report.paper.about["shown_seed"],
    }


def _run(
    report: Report, topology: str, scheme: str, sweep: str = "", value: str = "", variant: str = ""
) -> Measures:
    found: Measures = report.cells[Cell("as-described", topology, scheme, variant, sweep, value)]
    return found


def _in_short(report: Report) -> Iterator[str]:
    """What the runs say in a few sentences, each made of the figures it gives."""
    rio, plus = (_run(report, "table-1", s) for s in SCHEMES)
    shares = {
        name: [float((m[f"throughput:{g}"] / r).mean()) for g, r in TABLE_1.items()]
        for name, m in (("RIO", rio), ("RI+O", plus))
    }
    for name, share in shares.items():
        listed = ", ".join(f"{100 * x:.0f}" for x in share)
        yield f"Table I, {name}: assured flows get {listed} % of their profiles (270 to 1350 kbit/s)."
    be = [float(m["throughput:be"].mean()) / 1e3 for m in (rio, plus)]
    yield f"A best-effort flow gets {be[0]:.0f} kbit/s under RIO and {be[1]:.0f} under RI+O."
    for level in SUBSCRIBED:
        found = [crossings(report.cells, level, s) for s in SCHEMES]
        yield (
            f"At {level} subscription four assured flows keep their profile against {found[0].mean():.0f}"
            f" best-effort flows under RIO and {found[1].mean():.0f} under RI+O."
        )


def _table_1(report: Report, charts: Charts) -> list[dict[str, Any]]:
    """Every flow's throughput: the paper's value, ours, and a dot for each seed."""
    shown = []
    for printed in report.paper.about["table1"]:
        scheme = printed["scheme"]
        m = _run(report, "table-1", scheme)
        rows = []
        for i, group in enumerate([*TABLE_1, "be"]):
            cells: dict[str, dict[str, str]] = {}
            for measure, factor in (
                ("throughput", 1e3),
                ("marked_in", 1),
                ("marked_out", 1),
                ("loss_out", 1),
            ):
                cells[measure] = {
                    "paper": number(printed[measure][i] / factor, 6),
                    "ours": pm(estimate(float(v) / factor for v in m[f"{measure}:{group}"])),
                }
            who = "Best effort (mean of 20)" if group == "be" else f"{TABLE_1[group] / 1e3:g} kbit/s"
            rows.append({"who": who, "cells": cells})
        shown.append({"scheme": SCHEMES[scheme], "rows": rows})
    bars = [
        draw.row(name, m[f"throughput:{g}"] / 1e3, m.seeds, kind=_profile(g))
        for g in (*TABLE_1, "be")
        for s, name in SCHEMES.items()
        if (m := _run(report, "table-1", s))
    ]
    charts["table-1"] = draw.bars(bars, list(SCHEMES.values()), x=PROFILE, y="kbit/s")
    return shown


def _windows(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    """Fig. 1: windows over time, the profile as a level."""
    for scheme, name in SCHEMES.items():
        m = _run(report, "figure-1", scheme)
        for group, profile in (("large", 3.0), ("small", 0.5)):
            trace = m.traces[group]
            need = profile * 1e6 * RTT / 8 / PACKET
            keep = slice(200, 600)
            chart = f"Fig. 1-{scheme}-{group}"
            charts[chart] = draw.trace(
                trace.t[keep],
                trace.line[keep],
                trace.low[keep],
                trace.high[keep],
                scheme=name,
                y="window (packets)",
                unit="packets",
                top=float(trace.high[keep].max()) * 1.05,
                seed=report.paper.about["shown_seed"],
                rules=[need],
            )
            share = estimate(float(v) for v in m[f"above:{group}"])
            yield {
                "chart": chart,
                "scheme": name,
                "flow": f"{profile:g} Mbit/s",
                "share": f"{100 * share.mean:.1f} %",
            }


def _seen(report: Report, charts: Charts) -> list[dict[str, Any]]:
    """Fig. 2 and 6: avg_out at a flow's IN packets, by profile, with fitted lines."""
    rows, lines = [], []
    for scheme, name in SCHEMES.items():
        m = _run(report, "table-1", scheme)
        rows += [draw.row(name, m[f"seen:{g}"], x=r / 1e3) for g, r in TABLE_1.items()]
        x = np.array([r / 1e6 for r in TABLE_1.values()])
        level = np.mean([m[f"seen:{g}"].mean() for g in TABLE_1])
        fitted = level + m["slope"].mean() * (x - x.mean())
        lines += [
            {"scheme": f"{name}, fitted", "x": 1e3 * a, "mean": b, "lo": b, "hi": b}
            for a, b in zip(x, fitted, strict=True)
        ]
    names = [*SCHEMES.values(), *(f"{n}, fitted" for n in SCHEMES.values())]
    charts["Fig. 2 and 6"] = curve(
        [*rows, *lines], names, x="profile (kbit/s)", y="average of OUT packets (packets)"
    )
    return [
        {
            "scheme": name,
            "slope": _words(_run(report, "table-1", s)["slope"], "packets per Mbit/s"),
        }
        for s, name in SCHEMES.items()
    ]


#: What a column of a chart of Table I is.
PROFILE = "profile (kbit/s; BE: best effort)"


def _profile(group: str) -> str:
    return f"{TABLE_1[group] / 1e3:g}" if group in TABLE_1 else "BE"


def _words(values: Any, unit: str = "") -> str:
    e = estimate(float(v) for v in values)
    half = "" if e.half is None else f" ± {e.half:.2g}"
    return f"{e.mean:.3g}{half} {unit}".replace("-", "−").rstrip()


def _loss(report: Report, charts: Charts) -> str:
    """Fig. 5: share of OUT packets dropped, by flow."""
    rows = [
        draw.row(name, 100 * m[f"loss_out:{g}"], m.seeds, kind=_profile(g))
        for g in (*TABLE_1, "be")
        for s, name in SCHEMES.items()
        if (m := _run(report, "table-1", s))
    ]
    charts["Fig. 5"] = draw.bars(rows, list(SCHEMES.values()), x=PROFILE, y="OUT packets dropped (%)")
    return "Fig. 5"


def _figure_7(report: Report, charts: Charts) -> list[dict[str, Any]]:
    shown = []
    for level, profile in SUBSCRIBED.items():
        rows = [
            draw.row(name, _run(report, "figure-7", s, level, n)["throughput:as"] / 1e6, x=float(n))
            for s, name in SCHEMES.items()
            for n in points(report.cells, "figure-7", level)
        ]
        chart = f"Fig. 7-{level}"
        charts[chart] = curve(rows, list(SCHEMES.values()), x="best-effort flows", y="assured flow (Mbit/s)")
        found = {name: _words(crossings(report.cells, level, s), "flows") for s, name in SCHEMES.items()}
        shown.append({"chart": chart, "level": level, "profile": profile, "crossings": found})
    return shown


def _figure_8(report: Report, charts: Charts) -> list[dict[str, Any]]:
    shown = []
    for profile in PROFILES:
        sweep = f"{profile:g} Mbit/s"
        rows = [
            draw.row(name, _run(report, "figure-8", s, sweep, n)["throughput:as"] / 1e6, x=float(n))
            for s, name in SCHEMES.items()
            for n in points(report.cells, "figure-8", sweep)
        ]
        chart = f"Fig. 8-{sweep}"
        charts[chart] = curve(rows, list(SCHEMES.values()), x="subscription (%)", y="assured flow (Mbit/s)")
        shown.append({"chart": chart, "profile": sweep})
    return shown


def _figure_9(report: Report, charts: Charts) -> list[dict[str, Any]]:
    shown = []
    for letter, (step, (count, _, _)) in zip("abcd", STEPS.items(), strict=True):
        rows = [
            draw.row(
                name,
                _run(report, "figure-9", s, "step", step)[f"throughput:as{i}"] / 1e6,
                x=float(step) * (i + 1),
            )
            for s, name in SCHEMES.items()
            for i in range(count)
        ]
        ends = (float(step), float(step) * count)
        profile = [{"scheme": "Profile", "x": x, "mean": x, "lo": x, "hi": x} for x in ends]
        chart = f"Fig. 9({letter})"
        names = [*SCHEMES.values(), "Profile"]
        charts[chart] = curve([*rows, *profile], names, x="profile (Mbit/s)", y="throughput (Mbit/s)")
        shown.append({"chart": chart, "step": step})
    return shown


def _buckets(report: Report, charts: Charts) -> str:
    """The study of bucket sizes: the largest profile's share against the bucket."""
    rows = [
        draw.row(
            name,
            100 * _run(report, "table-1", s, "bucket", b)["throughput:as4"] / TABLE_1["as4"],
            x=float(b) / 1e3,
        )
        for s, name in SCHEMES.items()
        for b in points(report.cells, "table-1", "bucket")
    ]
    charts["Buckets"] = curve(
        rows,
        list(SCHEMES.values()),
        x="bucket of the 270 kbit/s flow (KB)",
        y="1350 kbit/s flow (% of profile)",
        log=(True, False),
    )
    return "Buckets"


_TITLES = {
    "w_q": "Averaging weight w_q",
    "avg_update": "When the averages are updated",
    "segment": "Payload of a packet",
    "strictness": "OUT thresholds stricter when few IN packets wait (future work in the paper)",
}


def _sweeps(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    """Only with --sweeps: how the largest profile fares under each assumed parameter."""
    for sweep, title in _TITLES.items():
        values = points(report.cells, "table-1", sweep)
        rows = [
            draw.row(SCHEMES[c.scheme], 100 * m["throughput:as4"] / TABLE_1["as4"], value=c.value)
            for c, m in report.cells.items()
            if c.sweep == sweep
        ]
        if not rows:
            continue
        chart = f"sweep-{sweep}"
        names = [n for n in SCHEMES.values() if any(r["scheme"] == n for r in rows)]
        charts[chart] = draw.response(rows, values, names, x=title, y="1350 kbit/s flow (% of profile)")
        yield {"chart": chart, "title": title}
