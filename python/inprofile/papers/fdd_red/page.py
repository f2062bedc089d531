"""Paper D's own part of its report: Tables 1 and 2, Fig. 4–11, Eq. (1), and which options decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from ...quantity import number
from ...report import charts as draw
from ...report import curves
from ...stats import ci95, estimate
from .. import Cell
from ..measures import Measures, Trace
from .claims import PRINTED, TITLES, at_point, jain
from .experiments import point_values
from .measure import FLOWS

if TYPE_CHECKING:
    from ...reproduce import Report

__all__ = ["context"]

Charts = MutableMapping[str, Mapping[str, Any]]

#: What is shown as a scheme: title, scheme and variant.
LINES = (
    ("RED", "red", ""),
    ("FDD-RED", "fdd", ""),
    ("FDD-RED, overflows too", "fdd", "overflow"),
    ("FDD-RED, true RTTs", "fdd", "oracle"),
    ("FDD-RED, queue in RTTs", "fdd", "queue"),
    ("FDD-RED, penalties kept", "fdd", "keep"),
    ("FDD-RED, both of these", "fdd", "both"),
)
SHORT = "twenty-seconds"


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    return {
        "short": list(_in_short(report)),
        "tables": [_tables(report, setup, charts) for setup in report.paper.setups],
        "panels": list(_panels(report, charts)),
        "averages": [_averages(report, topology, charts) for topology in report.paper.topologies],
        "points": list(_points(report, charts)),
        "spreads": list(_spreads(report)),
        "sweeps": list(_sweeps(report)),
        "assumed": ASSUMED,
        "shown_seed": report.paper.about["shown_seed"],
    }


#: Value and reason of what the paper does not state; the scenario files say the same beside each value.
ASSUMED = (
    (
        "Packet, TCP, starts",
        "500 + 40 B; SACK, window of 1,000 packets, one acknowledgement a packet; all flows at 0.1 s",
        "pinned: the digits of Table 2, and RED's 149 drops and 977 kbit/s in ns-2",
    ),
    (
        "Links",
        "hosts at 10 Mbit/s; bottleneck 4 ms each way",
        "never the narrowest; the paper gives round-trip times only",
    ),
    ("RED", "gentle, waiting, ns-2's variant", "ns-2's defaults; the paper extended ns-2's RED"),
    (
        "Round-trip times",
        "estimated at the router from what passes",
        "the paper refers to estimators of others",
    ),
    (
        "Partner charged",
        "the flow whose last drop is longest ago",
        "Fig. 2 says “latest time”; the other reading is swept",
    ),
    ("Victim's packet", "its last; without one, the arrival", "Fig. 2: “a packet from flow”; swept"),
    (
        "Overflows",
        "not the ledger's",
        "Fig. 2 speaks of RED's probability; the other reading is judged beside",
    ),
)


def _figures(values: Any, scale: float = 1.0, digits: int = 4) -> str:
    e = estimate(float(v) / scale for v in values)
    mean = number(e.mean, digits)
    return mean if e.half is None else f"{mean} ± {number(e.half, 2)}"


def _side(values: Any) -> int:
    interval = ci95([float(v) for v in values])
    if interval is None or 0.0 in interval:
        return 0
    return 1 if interval.lo > 0 else -1


def _in_short(report: Report) -> Iterator[str]:
    """What the runs say in a few sentences, each of them decided by the figures it gives."""
    for setup in report.paper.setups:
        yield f"{setup['title']}: {_against_red(report, setup, '')}."
        yield (
            f"{setup['title']}, with the wait in the queue counted as round-trip time and the penalties of"
            f" flows that were away kept: {_against_red(report, setup, 'both')}."
        )
    printed = report.paper.find("claims", "D2")["numbers"]
    overflow = report.cell(SHORT, "equal", "fdd", "overflow")
    yield (
        f"The paper prints {printed[0]['value']} drops for RED and {printed[1]['value']} for FDD-RED."
        " Most of RED's come in the first slow start and for want of room, before any mechanism here"
        " decides anything; when the ledger places those too, there are"
        f" {overflow['drops'].mean():.0f}: placing a drop does not save one."
    )


def _against_red(report: Report, setup: Mapping[str, Any], variant: str) -> str:
    """Fairness and drops of FDD-RED beside RED's, in every network."""
    parts = []
    for topology in report.paper.topologies:
        red = report.cell(setup["id"], topology["id"], "red")
        fdd = report.cell(setup["id"], topology["id"], "fdd", variant)
        fair = {1: "fairer", 0: "not shown to differ in fairness", -1: "less fair"}
        lost = {1: "more drops", 0: "drops not shown to differ", -1: "fewer drops"}
        parts.append(
            f"with {topology['title']} FDD-RED is {fair[_side(fdd['fi'] - red['fi'])]}"
            f" ({fdd['fi'].mean():.3f}, RED {red['fi'].mean():.3f}),"
            f" {lost[_side(fdd['drops'] - red['drops'])]}"
            f" ({number(float(fdd['drops'].mean()))}, RED {number(float(red['drops'].mean()))})"
        )
    return "; ".join(parts)


def _tables(report: Report, setup: Mapping[str, Any], charts: Charts) -> dict[str, Any]:
    """Table 2 with a column a network and scheme, the paper's beside ours; Table 1."""
    printed = setup["id"] == SHORT
    columns, cells = [], []
    for topology in report.paper.topologies:
        for scheme, title in TITLES.items():
            if printed:
                columns.append({"title": f"{topology['title']}, {title}: paper"})
                cells.append(_printed_column(report, topology["id"], scheme))
            columns.append(
                {
                    "title": f"{topology['title']}, {title}: ours"
                    if printed
                    else f"{topology['title']}, {title}"
                }
            )
            cells.append(_measured_column(report.cell(setup["id"], topology["id"], scheme)))
    labels = [*(f"Flow{i} (kbit/s)" for i in range(FLOWS)), "Sum (kbit/s)", "Fairness index"]
    rows = [{"what": label, "cells": [c[i] for c in cells]} for i, label in enumerate(labels)]
    return {
        "setup": setup,
        "printed": printed,
        "columns": columns,
        "rows": rows,
        "fairness": [_fairness(report, setup, topology, charts) for topology in report.paper.topologies],
        "drops": list(_drops(report, setup)),
    }


def _printed_column(report: Report, topology: str, scheme: str) -> list[str]:
    rates = PRINTED[topology, scheme]
    index = _printed(report, topology, scheme)
    own = jain(rates)
    odd = f" ({own:.4f})" if abs(own - index) > 0.001 else ""
    return [*(f"{x / 1e3:.1f}" for x in rates), f"{sum(rates) / 1e3:.1f}", f"{index:.3f}{odd}"]


def _measured_column(m: Measures) -> list[str]:
    return [
        *(_figures(m[f"flow{i}"], 1e3) for i in range(FLOWS)),
        _figures(m["total"], 1e3),
        _figures(m["fi"]),
    ]


def _printed(report: Report, topology: str, scheme: str) -> float:
    """The paper's fairness index."""
    numbers = report.paper.find("claims", "D1")["numbers"]
    return float(next(n["value"] for n in numbers if (n["topology"], n["scheme"]) == (topology, scheme)))


def _fairness(
    report: Report, setup: Mapping[str, Any], topology: Mapping[str, Any], charts: Charts
) -> dict[str, Any]:
    rows = [
        draw.row(title, m["fi"], m.seeds)
        for title, scheme, variant in LINES
        if (m := report.cell(setup["id"], topology["id"], scheme, variant))
    ]
    paper = (
        {title: _printed(report, topology["id"], scheme) for scheme, title in TITLES.items()}
        if setup["id"] == SHORT
        else {}
    )
    low = min([*paper.values(), *(v for row in rows for v in row["values"])])
    name = f"fi-{setup['id']}-{topology['id']}"
    charts[name] = draw.dots(
        rows,
        [line[0] for line in LINES],
        x="fairness index",
        paper=paper,
        domain=(round(low - 0.01, 3), 1.001),
    )
    return {"chart": name, "topology": topology}


def _drops(report: Report, setup: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    printed = {n["scheme"]: n["value"] for n in report.paper.find("claims", "D2")["numbers"]}
    seconds = setup["window"][1] - setup["window"][0]
    for topology in report.paper.topologies:
        for title, scheme, variant in LINES:
            m = report.cell(setup["id"], topology["id"], scheme, variant)
            shown = not variant and topology["id"] == "equal" and setup["id"] == SHORT
            yield {
                "scheme": title,
                "topology": topology["title"],
                "paper": str(printed[scheme]) if shown else "–",
                "drops": _figures(m["drops"]),
                "rate": number(float(m["drops"].mean()) / seconds, 3),
                "overflow": _figures(m["drops_overflow"]),
                "early": _figures(m["drops_early"]),
                "evicted": _figures(m["drops_evicted"]),
            }


def _panels(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    """Fig. 4 and 5 (windows), 6 (each flow's share), 8 (the link), 9 (the queue)."""
    pairs = {scheme: report.cell(SHORT, "equal", scheme) for scheme in TITLES}
    for title, trace, y, factor in (
        ("Fig. 4 and 5: congestion windows", "cwnd", "cwnd (packets)", 1.0),
        ("Fig. 6: throughput of each flow", "rate", "kbit/s", 1e3),
    ):
        for scheme, m in pairs.items():
            name = f"{trace}-{scheme}"
            rows = [
                {"scheme": f"Flow{i}", "x": float(t), "y": float(v) / factor}
                for i in range(FLOWS)
                for t, v in zip(m.traces[f"{trace}{i}"].t, m.traces[f"{trace}{i}"].line, strict=True)
            ]
            charts[name] = curves.lines(rows, [f"Flow{i}" for i in range(FLOWS)], x="time (s)", y=y)
            yield {"title": title, "scheme": TITLES[scheme], "chart": name}
    for title, trace, y, factor in (
        ("Fig. 8: throughput of the link", "sent", "kbit/s", 1e3),
        ("Fig. 9: queue length", "queue", "packets", 1.0),
    ):
        top = max(float(max(m.traces[trace].line.max(), m.traces[trace].high.max())) for m in pairs.values())
        for scheme, m in pairs.items():
            name = f"{trace}-{scheme}"
            charts[name] = _band(m.traces[trace], TITLES[scheme], y, factor, 1.05 * top, report)
            yield {"title": title, "scheme": TITLES[scheme], "chart": name}


def _band(trace: Trace, scheme: str, y: str, factor: float, top: float, report: Report) -> Mapping[str, Any]:
    return draw.trace(
        trace.t,
        trace.line / factor,
        trace.low / factor,
        trace.high / factor,
        scheme=scheme,
        y=y,
        unit=y,
        top=top / factor,
        seed=report.paper.about["shown_seed"],
    )


def _averages(report: Report, topology: Mapping[str, Any], charts: Charts) -> dict[str, Any]:
    """Fig. 7: each flow's throughput, a bar a scheme."""
    rows = [
        draw.row(TITLES[scheme], m[f"flow{i}"] / 1e3, m.seeds, kind=f"Flow{i}")
        for i in range(FLOWS)
        for scheme in TITLES
        if (m := report.cell(SHORT, topology["id"], scheme))
    ]
    name = f"averages-{topology['id']}"
    charts[name] = draw.bars(rows, list(TITLES.values()), y="kbit/s")
    return {"chart": name, "topology": topology}


def _points(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    topology = report.paper.topologies[0]["id"]
    for setup in report.paper.setups:
        panels = []
        for point in report.paper.about["points"]:
            rows = []
            for title, scheme, variant in LINES[:3]:
                for value in point_values(point):
                    cell = Cell(setup["id"], topology, scheme, variant)
                    m = at_point(report.cells, topology, point, value, cell)
                    if m is not None:
                        rows.append(draw.row(title, m["drops"], x=float(value)))
            if len(rows) > len(LINES[:3]):
                name = f"{point['id']}-{setup['id']}"
                charts[name] = curves.curve(
                    rows, [line[0] for line in LINES[:3]], x=point["axis"], y="packets dropped", zero=True
                )
                panels.append({"chart": name, "title": point["title"]})
        if panels:
            yield {"setup": setup, "panels": panels}


def _spreads(report: Report) -> Iterator[dict[str, str]]:
    for setup in report.paper.setups:
        for topology in report.paper.topologies:
            for title, scheme, variant in LINES:
                m = report.cell(setup["id"], topology["id"], scheme, variant)
                known = "rtt_error" in m.values
                yield {
                    "setup": setup["title"],
                    "topology": topology["title"],
                    "scheme": title,
                    "drops": _figures(m["spread_drops"], digits=3),
                    "eq1": _figures(m["spread_eq1"], digits=3),
                    "goal": _figures(m["spread_goal"], digits=3),
                    "fi": _figures(m["fi"]),
                    "error": f"{100 * float(m['rtt_error'].mean()):.1f} %" if known else "–",
                }


def _sweeps(report: Report) -> Iterator[dict[str, Any]]:
    """Effects of each option, as far as they were run."""
    for sweep in report.paper.sweeps:
        rows = []
        seeds = 0
        for cell, m in report.cells.items():
            if cell.sweep != sweep["id"]:
                continue
            seeds = len(m.seeds)
            rows.append(
                {
                    "setup": report.paper.find("setups", cell.setup)["title"],
                    "topology": report.paper.find("topologies", cell.topology)["title"],
                    "value": cell.value,
                    "scheme": TITLES[cell.scheme],
                    "fi": _figures(m["fi"]),
                    "drops": _figures(m["drops"]),
                    "goal": _figures(m["spread_goal"], digits=3),
                }
            )
        if rows:
            yield {"title": sweep["title"], "rows": rows, "seeds": seeds}
