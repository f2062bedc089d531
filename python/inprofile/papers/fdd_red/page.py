"""Paper D's own part of its report: Tables 1 and 2, Fig. 4–11, Eq. (1), and which options decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ...charts import curves
from ...charts import kinds as draw
from ...metrics.measures import Measures, Trace
from ...metrics.quantity import mean_pm, number, pm
from ...metrics.stats import SHARE, Estimate, Interval, ci95, jain
from .. import Cell, Entry
from ..claim import INDEX, Judged, Verdict
from ..defaults import value_named
from ..judge import judge
from ..judge_text import listed
from . import boundary
from .experiments import point_values
from .measure import FLOWS
from .tables import ADDED, Added, added, at_point, crossing, placebos, rates

if TYPE_CHECKING:
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]

SHORT = "spread"


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    return {
        "short": list(_in_short(report)),
        "tables": [_tables(report, setup, charts) for setup in report.setups],
        "panels": list(_panels(report, charts)),
        "averages": [_averages(report, topology, charts) for topology in report.paper.topologies],
        "points": list(_points(report, charts)),
        "spreads": list(_spreads(report)),
        "sweeps": list(_sweeps(report)),
        "placebos": list(_placebos(report)),
        "crossed": _crossed(report),
        "boundary": boundary.tables(boundary.found(report.paper, report.cells)),
        "quoted": report.paper.top.tables("quoted"),
        "assumed": report.paper.top.tables("assumed"),
        "shown_seed": report.paper.top.whole("shown_seed"),
    }


def _lines(report: Report, setup: str) -> list[tuple[str, str, str]]:
    """What is shown of a set-up as a scheme: title, scheme and variant."""
    topology = report.paper.topologies[0].id
    others = [
        (v.title, "fdd", v.id)
        for v in report.paper.variants
        if Cell(setup, topology, "fdd", v.id) in report.cells
    ]
    return [("RED", "red", ""), ("FDD-RED", "fdd", ""), *others]


def _titles(report: Report) -> dict[str, str]:
    """RED and FDD-RED by id."""
    return {s.id: s.title for s in report.paper.schemes}


def _side(values: Any, least: float = 0.0) -> int:
    """Whether a mean lies above 0 or below, by more than the least effect worth the name; else 0."""
    interval = ci95([float(v) for v in values])
    if interval is None or not (interval.lo > least or interval.hi < -least):
        return 0
    return 1 if interval.lo > 0 else -1


def _in_short(report: Report) -> Iterator[str]:
    """What the runs say in a few sentences, each of them decided by the figures it gives."""
    for setup in report.setups:
        if _printed_in(setup):
            yield f"{setup.title}: {_against_red(report, setup, '')}."
    printed = _drops_printed(report)
    # Printed numbers are of the main runs, which every set-up has; verdicts also of Fig. 10 and 11.
    judged = judge(report.paper.findings(report.cells))
    yield (
        f"With equal RTTs the paper prints {printed['red']} drops for RED and {printed['fdd']} for FDD-RED."
        " RED's count is no test: TCP and starting times were fitted to it. FDD-RED's depends on whether the"
        " ledger decides the overflow of the first slow start, on which packet it takes, and on when an"
        " account is closed; the text settles none of the three for certain."
    )
    yield (
        f"FDD-RED's {printed['fdd']} drops lie inside the prediction interval of"
        f" {_inside(report, judged, 'drops', 'equal')}; its printed index with unequal RTTs inside that of"
        f" {_inside(report, judged, 'fi', 'unequal')}."
    )
    yield from _without_a_ledger(report)


def _inside(report: Report, judged: Sequence[Judged], measure: str, topology: str) -> str:
    """The set-ups in which the number printed of FDD-RED is inside, as a list."""
    title = report.paper.find("topologies", topology).title
    words = report.paper.top.table("measures").table(measure).word("words")
    there = [
        f"“{report.paper.find('setups', j.setup).title}”"
        for j in judged
        for n in j.numbers
        if n.inside and n.number.label == f"{words}, {_titles(report)['fdd']}" and n.number.topology == title
    ]
    return listed(there) if there else "none"


def _without_a_ledger(report: Report) -> Iterator[str]:
    """How many claims hold with placebos, in the first set-up over 20 s."""
    placebos_run = [
        [j for j in found if j.setup == SHORT]
        for variant, found in report.variants.items()
        if variant in placebos(report.paper) and any(j.setup == SHORT for j in found)
    ]
    with_ledger = {j.claim for j in report.judged if j.setup == SHORT and j.verdict.sound}
    if not placebos_run or not with_ledger:
        return
    with_any = {j.claim for found in placebos_run for j in found if j.verdict.sound}
    yield (
        "Placebos choose the packet without any ledger. Of the claims that are reproduced or mostly so with"
        f" it, {len(with_ledger)} in the first set-up, {len(with_ledger & with_any)} are with at least one of"
        f" {len(placebos_run)} placebos too: that much is not owed to the ledger."
    )


def _against_red(report: Report, setup: Entry, variant: str) -> str:
    """Fairness and drops of FDD-RED beside RED's, in every network."""
    parts = []
    for topology in report.paper.topologies:
        red = report.cell(setup.id, topology.id, "red")
        fdd = report.cell(setup.id, topology.id, "fdd", variant)
        fair = {1: "fairer", 0: "as fair", -1: "less fair"}
        lost = {1: "more drops", 0: "about as many drops", -1: "fewer drops"}
        tenth = 0.1 * float(red["drops"].mean())
        parts.append(
            f"with {topology.title} FDD-RED is {fair[_side(fdd['fi'] - red['fi'], INDEX.size)]}"
            f" ({fdd['fi'].mean():.3f}, RED {red['fi'].mean():.3f}),"
            f" {lost[_side(fdd['drops'] - red['drops'], tenth)]}"
            f" ({number(float(fdd['drops'].mean()))}, RED {number(float(red['drops'].mean()))})"
        )
    return "; ".join(parts)


def _tables(report: Report, setup: Entry, charts: Charts) -> dict[str, Any]:
    """Table 2 with a column a network and scheme, the paper's beside ours; Table 1."""
    printed = _printed_in(setup)
    columns, cells = [], []
    for topology in report.paper.topologies:
        for scheme, title in _titles(report).items():
            if printed:
                columns.append({"title": f"{topology.title}, {title}: paper"})
                cells.append(_printed_column(report, topology.id, scheme))
            columns.append(
                {"title": f"{topology.title}, {title}: ours" if printed else f"{topology.title}, {title}"}
            )
            cells.append(_measured_column(report.cell(setup.id, topology.id, scheme)))
    labels = [
        *(f"Flow{i} (kbit/s)" for i in range(FLOWS)),
        "Sum (kbit/s)",
        "At the link (kbit/s)",
        "Fairness index",
    ]
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
    sent = rates(report.paper, topology, scheme)
    index = report.paper.printed("fi", topology, scheme) or 0.0
    own = jain(sent)
    odd = f" ({own:.4f})" if abs(own - index) > 0.001 else ""
    return [*(f"{x / 1e3:.1f}" for x in sent), f"{sum(sent) / 1e3:.1f}", "–", f"{index:.3f}{odd}"]


def _measured_column(m: Measures) -> list[str]:
    return [
        *(mean_pm(m[f"flow{i}"], 1e3) for i in range(FLOWS)),
        mean_pm(m["total"], 1e3),
        mean_pm(m["link"], 1e3),
        mean_pm(m["fi"], bounds=SHARE),
    ]


def _printed_in(setup: Entry) -> bool:
    """Whether the paper's numbers are of this set-up: 20 s from the start."""
    return setup.numbers("window")[0] == 0


def _drops_printed(report: Report) -> dict[str, str]:
    """Table 1, by scheme."""
    return {s: f"{report.paper.printed('drops', 'equal', s) or 0:g}" for s in _titles(report)}


def _fairness(report: Report, setup: Entry, topology: Entry, charts: Charts) -> dict[str, Any]:
    rows = [
        draw.row(title, m["fi"], m.seeds)
        for title, scheme, variant in _lines(report, setup.id)
        if (m := report.cell(setup.id, topology.id, scheme, variant))
    ]
    paper = (
        {t: report.paper.printed("fi", topology.id, s) or 0.0 for s, t in _titles(report).items()}
        if _printed_in(setup)
        else {}
    )
    low = min([*paper.values(), *(v for row in rows for v in row["values"])])
    name = f"fi-{setup.id}-{topology.id}"
    charts[name] = draw.dots(
        rows,
        [line[0] for line in _lines(report, setup.id)],
        x="fairness index",
        paper=paper,
        domain=(round(low - 0.01, 3), 1.001),
    )
    return {"chart": name, "topology": topology}


def _drops(report: Report, setup: Entry) -> Iterator[dict[str, str]]:
    printed = _drops_printed(report)
    start, end = setup.numbers("window")
    for topology in report.paper.topologies:
        for title, scheme, variant in _lines(report, setup.id):
            m = report.cell(setup.id, topology.id, scheme, variant)
            shown = not variant and topology.id == "equal" and _printed_in(setup)
            yield {
                "scheme": title,
                "topology": topology.title,
                "paper": printed[scheme] if shown else "–",
                "drops": mean_pm(m["drops"]),
                "rate": number(float(m["drops"].mean()) / (end - start), 3),
                "overflow": mean_pm(m["drops_overflow"]),
                "early": mean_pm(m["drops_early"]),
                "evicted": mean_pm(m["drops_evicted"]),
            }


def _panels(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    """Fig. 4 and 5 (windows), 6 (each flow's share), 8 (the link), 9 (the queue)."""
    pairs = {scheme: report.cell(SHORT, "equal", scheme) for scheme in _titles(report)}
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
            yield {"title": title, "scheme": _titles(report)[scheme], "chart": name}
    for title, trace, y, factor in (
        ("Fig. 8: throughput of the link", "sent", "kbit/s", 1e3),
        ("Fig. 9: queue length", "queue", "packets", 1.0),
    ):
        top = max(float(max(m.traces[trace].line.max(), m.traces[trace].high.max())) for m in pairs.values())
        for scheme, m in pairs.items():
            name = f"{trace}-{scheme}"
            charts[name] = _band(m.traces[trace], _titles(report)[scheme], y, factor, 1.05 * top, report)
            yield {"title": title, "scheme": _titles(report)[scheme], "chart": name}


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
        seed=report.paper.top.whole("shown_seed"),
    )


def _averages(report: Report, topology: Entry, charts: Charts) -> dict[str, Any]:
    """Fig. 7: each flow's throughput, a bar a scheme."""
    rows = [
        draw.row(title, m[f"flow{i}"] / 1e3, m.seeds, kind=f"Flow{i}")
        for i in range(FLOWS)
        for scheme, title in _titles(report).items()
        if (m := report.cell(SHORT, topology.id, scheme))
    ]
    name = f"averages-{topology.id}"
    charts[name] = draw.bars(rows, list(_titles(report).values()), y="kbit/s")
    return {"chart": name, "topology": topology}


def _points(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    topology = report.paper.topologies[0].id
    for setup in report.setups:
        panels = []
        lines = [line for line in _lines(report, setup.id) if line[2] != "oracle"]
        for point in report.paper.top.tables("points"):
            rows = []
            for title, scheme, variant in lines:
                for value in point_values(point):
                    cell = Cell(setup.id, topology, scheme, variant)
                    m = at_point(report.cells, topology, point, value, cell)
                    if m is not None:
                        rows.append(draw.row(title, m["drops"], x=float(value)))
            if len(rows) > len(lines):
                name = f"{point.id}-{setup.id}"
                charts[name] = curves.curve(
                    rows, [line[0] for line in lines], x=point.word("axis"), y="packets dropped", zero=True
                )
                panels.append({"chart": name, "title": point.title})
        if panels:
            yield {"setup": setup, "panels": panels}


def _spreads(report: Report) -> Iterator[dict[str, str]]:
    for setup in report.setups:
        for topology in report.paper.topologies:
            for title, scheme, variant in _lines(report, setup.id):
                m = report.cell(setup.id, topology.id, scheme, variant)
                known = "rtt_error" in m.values
                yield {
                    "setup": setup.title,
                    "topology": topology.title,
                    "scheme": title,
                    "packets": mean_pm(m["spread_packets"]),
                    "drops": mean_pm(m["spread_drops"]),
                    "eq1": mean_pm(m["spread_eq1"]),
                    "goal": mean_pm(m["spread_goal"]),
                    "fi": mean_pm(m["fi"], bounds=SHARE),
                    "error": f"{100 * float(m['rtt_error'].mean()):.1f} %" if known else "–",
                }


def _placebos(report: Report) -> Iterator[dict[str, Any]]:
    """What the ledger adds over each placebo: one row a placebo, FDD-RED less it."""
    titles = {"tail": "RED as it is (the arrival)", **{v.id: v.title for v in report.paper.variants}}
    entries = added(report.paper, report.cells)
    for setup in report.setups:
        for topology in report.paper.topologies:
            here = [e for e in entries if (e["setup"], e["topology"]) == (setup.id, topology.id)]
            names = list(dict.fromkeys(e["placebo"] for e in here))
            if len(names) < 2:
                continue
            yield {
                "setup": setup,
                "topology": topology,
                "columns": [words for words, _, _ in ADDED.values()],
                "rows": [
                    {
                        "title": titles[name].removeprefix("placebo: "),
                        "cells": [_added(e) for e in here if e["placebo"] == name],
                    }
                    for name in names
                ],
            }


class _Cell(TypedDict):
    """A cell of the table of placebos."""

    text: str
    words: str


def _added(entry: Added) -> _Cell:
    unit = ADDED[entry["measure"]][1]
    factor = 1e3 if unit == "bit/s" else 1.0
    interval = None if entry["ci95"] is None else Interval(*(x / factor for x in entry["ci95"]))
    text = pm(Estimate(entry["mean"] / factor, interval, 0)).replace("-", "−")
    text += " kbit/s" if unit == "bit/s" else ""
    return {"text": text, "words": {1: "better", 0: "open", -1: "worse"}[entry["better"]]}


def _crossed(report: Report) -> dict[str, Any] | None:
    """Verdicts in every cell of the crossed readings; None where they were not run."""
    rows = crossing(report.paper, report.cells)
    if not rows:
        return None
    claims = list(rows[0]["verdicts"])
    names = report.paper.top.table("crossed").words("readings")
    titles = {
        (name, a.id): a.title
        for name in names
        for a in report.paper.find("readings", name).tables("alternatives")
    }
    return {
        "claims": claims,
        "readings": [report.paper.find("readings", name).title for name in names],
        "rows": [
            {
                "readings": [titles[name, row["readings"][name]] for name in names],
                "verdicts": [Verdict(row["verdicts"][claim]) for claim in claims],
                "numbers": f"{row['inside']} of {row['numbers']}",
                **{
                    f"{what}_{t.id}": number(row[f"{what}_{t.id}"], digits)
                    for t in report.paper.topologies
                    for what, digits in (("drops", 3), ("fi", 4))
                },
            }
            for row in rows
        ],
        "counts": {
            claim: {
                verdict.words: n
                for verdict in Verdict
                if (n := sum(row["verdicts"][claim] == verdict.value for row in rows))
            }
            for claim in claims
        },
        "seeds": report.paper.seeds.whole("crossed"),
    }


def _sweeps(report: Report) -> Iterator[dict[str, Any]]:
    """Effects of each option, as far as they were run."""
    for sweep in report.paper.sweeps:
        rows = []
        seeds = 0
        for cell, m in report.cells.items():
            if cell.sweep != sweep.id:
                continue
            seeds = len(m.seeds)
            rows.append(
                {
                    "setup": report.paper.find("setups", cell.setup).title,
                    "topology": report.paper.find("topologies", cell.topology).title,
                    "value": value_named(report.paper, sweep, cell.value),
                    "scheme": _titles(report)[cell.scheme],
                    "fi": mean_pm(m["fi"], bounds=SHARE),
                    "drops": mean_pm(m["drops"]),
                    "goal": mean_pm(m["spread_goal"]),
                }
            )
        if rows:
            yield {"title": sweep.title, "rows": rows, "seeds": seeds}
