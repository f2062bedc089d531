"""Paper A's own part of its report: Table 1, the placebo, when it helps, Fig. 4–8, rates, what is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ...charts import kinds as draw
from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm, number
from ...metrics.stats import estimate, prediction95
from .. import Cell, Entry
from ..claim import Comparison
from ..defaults import variants_of
from .placebo import placebo_comparisons
from .schemes import level, ran
from .sweeps import side, sweeps, titles

if TYPE_CHECKING:
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]

#: The figures with traces, by scheme and in the paper's order of panels.
FIGURES = (
    ("Fig. 4", "rio", ("queue", "fastest", "slowest")),
    ("Fig. 5", "arm", ("fastest", "slowest", "queue")),
    ("Fig. 6", "ard", ("fastest", "slowest", "queue")),
)
#: Gains of the fairness index worth a sentence at the top of the page.
NOTABLE = 0.01
PANELS = {"queue": "Average queue", "fastest": "Shortest-RTT flow", "slowest": "Longest-RTT flow"}


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    jitter = report.paper.find("variants", "jitter")
    return {
        "short": list(_in_short(report)),
        "views": list(_views(report, charts)),
        "pictured": _pictured(report),
        "fairness": [_fairness(report, variant, charts) for variant in _variants(report)],
        "jittered": len(_variants(report)) > 1,
        "rates": _rates(report),
        "drops": _drops(report),
        "sweeps": sweeps(report, charts),
        "jitter": {t.id: jitter.changes[t.id]["tcp.jitter"] for t in report.paper.topologies},
        "shown_seed": report.paper.top.whole("shown_seed"),
    }


def _variants(report: Report) -> list[str]:
    """The plain condition, and variants under which the paper's schemes were run: with `--full`."""
    return [v for v in variants_of(report.paper) if ran(report.paper, report.cells, v)]


def _in_short(report: Report) -> Iterator[str]:
    """What the runs say, a sentence a set-up, each decided by the figures it gives."""
    paper = report.paper

    def fi(setup: str, topology: str, scheme: str = "rio", variant: str = "") -> Any:
        return report.cells[Cell(setup, topology, scheme, variant)]["fi"]

    def listed(setup: str, scheme: str, variant: str = "") -> str:
        return " and ".join(f"{fi(setup, t.id, scheme, variant).mean():.3f}" for t in paper.topologies)

    def agreed(setup: str, scheme: str, base: str) -> int | None:
        """On which side of 0 the differences of all topologies lie; None where they lie on several."""
        sides = {
            side([float(x) for x in fi(setup, t.id, scheme) - fi(setup, t.id, base)])
            for t in paper.topologies
        }
        return sides.pop() if len(sides) == 1 else None

    flows = " and ".join(str(t["flows"]) for t in paper.topologies)
    for setup in ran(paper, report.cells):
        name = setup.id
        printed = [paper.printed("fi", t.id, "rio") or 0.0 for t in paper.topologies]
        predicted = [prediction95([float(x) for x in fi(name, t.id)]) for t in paper.topologies]
        matches = [p is not None and value in p for value, p in zip(printed, predicted, strict=True)]
        words = " and ".join(f"{value:.3f}" for value in printed)
        text = f"{setup.title}: without an aggregate marker the fairness index is {listed(name, 'rio')}"
        text += f" ({flows} flows); the paper has {words}"
        text += ", inside our prediction intervals" if all(matches) else ""
        changes = {
            1: "ARD raises it to",
            0: "With ARD it is statistically tied:",
            -1: "ARD lowers it to",
            None: "With ARD it is",
        }[agreed(name, "ard", "rio")]
        text += f". {changes} {listed(name, 'ard')}"
        blind = {
            1: ", less fair than ARD",
            -1: ", fairer than ARD",
            0: ", statistically tied with ARD",
            None: "",
        }[agreed(name, "ard", "placebo")]
        text += f"; blind drops at the same rate give {listed(name, 'placebo')}{blind}"
        same = all(not (fi(name, t.id, "arm") - fi(name, t.id)).any() for t in paper.topologies)
        text += "; ARM changes no rate in any seed." if same else f"; ARM gives {listed(name, 'arm')}."
        gains = [fi(name, t.id, variant="jitter") - fi(name, t.id) for t in paper.topologies]
        if all(side([float(x) for x in gain]) > 0 and gain.mean() > NOTABLE for gain in gains):
            text += (
                " Sender jitter alone, without any marker, raises it to"
                f" {listed(name, 'rio', 'jitter')}: at least part of the unfairness is a phase effect."
            )
        yield text


def _printed(report: Report, topology: str) -> dict[str, float]:
    """The paper's fairness indices, by scheme."""
    found = {title: report.paper.printed("fi", topology, s) for s, title in titles(report.paper).items()}
    return {title: value for title, value in found.items() if value is not None}


def _fairness(report: Report, variant: str, charts: Charts) -> dict[str, Any]:
    """Table 1 and the placebo, for all set-ups and topologies."""
    blocks = []
    for topology in report.paper.topologies:
        printed = _printed(report, topology.id)
        found = {
            setup.id: [
                draw.row(title, m["fi"], m.seeds)
                for s, title in titles(report.paper).items()
                if (m := report.cells[Cell(setup.id, topology.id, s, variant)])
            ]
            for setup in ran(report.paper, report.cells, variant)
        }
        low = min([*printed.values(), *(v for rows in found.values() for row in rows for v in row["values"])])
        columns = []
        for setup in ran(report.paper, report.cells, variant):
            name = f"fi-{setup.id}-{topology.id}-{variant}"
            rows = found[setup.id]
            charts[name] = draw.dots(
                rows,
                list(titles(report.paper).values()),
                x="fairness index",
                paper=printed,
                domain=(round(low - 0.02, 2), 1.002),
            )
            versus = [
                c
                for c in placebo_comparisons(report.paper, report.cells, setup.id, variant)
                if c.topology == topology.id
            ]
            charts[f"placebo-{name}"] = draw.forest(
                [_difference(c) for c in versus], x="difference of fairness index, paired by seed"
            )
            made = report.derived[Cell(setup.id, topology.id, "placebo", variant)]
            rates = [float(one["edges.ER.marker"]["p"]) for one in made]  # type: ignore[index]
            columns.append(
                {
                    "setup": setup,
                    "chart": name,
                    "rows": rows,
                    "verdict": _placebo_words(versus),
                    "rate": mean_pm(np.array(rates), 0.01),
                }
            )
        blocks.append({"topology": topology, "printed": printed, "columns": columns})
    return {"variant": variant, "blocks": blocks}


class _Difference(TypedDict):
    """A comparison as its chart takes it."""

    label: str
    scheme: str
    mean: float
    lo: float
    hi: float


def _difference(c: Comparison) -> _Difference:
    e = estimate(c.values)
    lo, hi = e.ci95 or (e.mean, e.mean)
    return {"label": c.label, "scheme": c.label.split(" − ")[0], "mean": e.mean, "lo": lo, "hi": hi}


def _placebo_words(versus: list[Comparison]) -> str:
    """In words, whether ARD does better than blind drops at the same rate."""
    placebo_rio, ard_rio, ard_placebo = versus
    if not any(c for comparison in versus for c in comparison.values):
        return "ARD drops and remarks nothing here, so there is nothing for a placebo to imitate."

    against = {
        1: "ARD is fairer than the placebo: more than randomness",
        0: "ARD and the placebo are statistically tied",
        -1: "the placebo is fairer than ARD: blind drops do better",
    }[side(list(ard_placebo.values))]
    gains = {
        (1, 1): "Both ARD and blind drops are fairer than no edge marker",
        (1, 0): "ARD is significantly fairer than no edge marker, blind drops are not",
        (0, 1): "Blind drops are significantly fairer than no edge marker, ARD is not",
        (0, 0): "ARD, blind drops and no edge marker are statistically tied",
    }.get(
        (side(list(ard_rio.values)), side(list(placebo_rio.values))),
        "At least one of ARD and blind drops is less fair than no edge marker",
    )
    return f"{gains}; {against}."


def _pictured(report: Report) -> list[Entry]:
    """Set-ups whose figures over time are shown: none twice."""
    return [setup for setup in ran(report.paper, report.cells) if "variant_of" not in setup]


def _views(report: Report, charts: Charts) -> Iterator[dict[str, Any]]:
    """Fig. 4–8, once a set-up and jitter."""
    for setup in _pictured(report):
        for variant in _variants(report):
            yield {
                "setup": setup,
                "variant": variant,
                "figures": [
                    _traces(report, setup, variant, title, scheme, panels, charts)
                    for title, scheme, panels in FIGURES
                ],
                "tokens": _tokens(report, setup, variant, charts),
                "bars": _bars(report, setup, variant, charts),
            }


def _traces(
    report: Report,
    setup: Entry,
    variant: str,
    title: str,
    scheme: str,
    panels: tuple[str, ...],
    charts: Charts,
) -> dict[str, Any]:
    shown = []
    for panel in panels:
        for topology in report.paper.topologies:
            cells = {s: report.cells[Cell(setup.id, topology.id, s, variant)] for s in ("rio", "arm", "ard")}
            trace = cells[scheme].traces[panel]
            # One scale for the three schemes, so that the figures can be compared.
            rates = panel != "queue"
            factor = 1e3 if rates else 1.0
            top = max(
                max(float(m.traces[panel].line.max()), float(m.traces[panel].high.max()))
                for m in cells.values()
            )
            name = f"{title}-{setup.id}-{topology.id}-{panel}-{variant}"
            charts[name] = draw.trace(
                trace.t,
                trace.line / factor,
                trace.low / factor,
                trace.high / factor,
                scheme=titles(report.paper)[scheme],
                y="kbit/s" if rates else "packets",
                unit="kbit/s" if rates else "packets",
                top=max(1.0, 1.05 * top / factor),
                seed=report.paper.top.whole("shown_seed"),
                rules=[300.0] if rates else _thresholds(setup, topology),
            )
            level = "dashed: fair share, 300 kbit/s" if rates else _threshold_words(setup, topology)
            shown.append({"chart": name, "panel": PANELS[panel], "topology": topology, "level": level})
    return {"title": title, "scheme": titles(report.paper)[scheme], "panels": shown}


def _thresholds(setup: Entry, topology: Entry) -> list[float]:
    """RIO's OUT thresholds, where the RIO queue is the one that is shown."""
    return topology.numbers("out_thresholds") if setup.flag("thresholds") else []


def _threshold_words(setup: Entry, topology: Entry) -> str:
    low, high = topology.numbers("out_thresholds")
    return f"dashed: OUT thresholds, {low:g} and {high:g}" if _thresholds(setup, topology) else ""


def _tokens(report: Report, setup: Entry, variant: str, charts: Charts) -> list[dict[str, Any]]:
    shown = []
    for topology in report.paper.topologies:
        for scheme in ("rio", "arm", "ard"):
            measures = report.cells[Cell(setup.id, topology.id, scheme, variant)]
            trace = measures.traces["tokens"]
            name = f"tokens-{setup.id}-{topology.id}-{scheme}-{variant}"
            charts[name] = draw.trace(
                trace.t,
                trace.line,
                trace.low,
                trace.high,
                scheme=titles(report.paper)[scheme],
                y="tokens (packets)",
                unit="packets",
                top=62,
                seed=report.paper.top.whole("shown_seed"),
                rules=[topology.table("stated").number("t_rd")],
                height=150,
            )
            share = estimate(float(v) for v in measures["tokens_low"])
            shown.append(
                {
                    "chart": name,
                    "scheme": titles(report.paper)[scheme] + (" (passive bucket)" if scheme == "rio" else ""),
                    "topology": topology,
                    "share": f"{100 * share.mean:.0f} %",
                    "t_rd": topology.table("stated").number("t_rd"),
                }
            )
    return shown


class _Bars(TypedDict):
    """A bar chart, by its name among the page's charts."""

    chart: str
    what: str
    topology: Entry


def _bars(report: Report, setup: Entry, variant: str, charts: Charts) -> list[_Bars]:
    shown: list[_Bars] = []
    for what, names, label in (
        ("Spread between flows (standard deviation)", ("std_in", "std_total"), "kbit/s"),
        ("Aggregate throughput", ("total_in", "total"), "kbit/s"),
    ):
        for topology in report.paper.topologies:
            rows = []
            for name, kind in zip(names, ("IN", "total"), strict=True):
                for scheme in ("rio", "arm", "ard", "placebo"):
                    m = report.cells[Cell(setup.id, topology.id, scheme, variant)]
                    rows.append(draw.row(titles(report.paper)[scheme], m[name] / 1e3, m.seeds, kind=kind))
            chart = f"{names[0]}-{setup.id}-{topology.id}-{variant}"
            charts[chart] = draw.bars(rows, list(titles(report.paper).values()), y=label)
            shown.append({"chart": chart, "what": what, "topology": topology})
    return shown


def _kbit(values: Array) -> str:
    return mean_pm(values, 1e3)


class _Rates(TypedDict):
    """Rates of a topology in a set-up, each with its interval, in kbit/s."""

    topology: Entry
    setup: Entry
    lambda_in: str
    lambda_out: str
    tpr: str
    second_ard: str
    admitted: str
    second_rio: str
    #: Tokens in the bucket, measured and where the fixed point is.
    level: str
    expected: str
    #: Whether TPR is above λ_IN in most seeds.
    above: bool


def _rates(report: Report) -> list[_Rates]:
    """λ and TPR of the first interval, beside the paper's, and λ_IN of the second."""
    rows: list[_Rates] = []
    for topology in report.paper.topologies:
        for setup in ran(report.paper, report.cells):
            ard = report.cells[Cell(setup.id, topology.id, "ard")]
            rio = report.cells[Cell(setup.id, topology.id, "rio")]
            rows.append(
                {
                    "topology": topology,
                    "setup": setup,
                    "lambda_in": _kbit(ard["lambda_in_before"]),
                    "lambda_out": _kbit(ard["lambda_out_before"]),
                    "tpr": _kbit(ard["tpr"]),
                    "second_ard": _kbit(ard["lambda_in"]),
                    "admitted": _kbit(ard["admitted_in"]),
                    "second_rio": _kbit(rio["lambda_in"]),
                    "level": mean_pm(ard["tokens_mean"]),
                    "expected": _expected(ard, topology.table("stated")),
                    "above": bool((ard["tpr"] > ard["lambda_in_before"]).mean() > 0.5),
                }
            )
    return rows


def _expected(ard: Measures, stated: Entry) -> str:
    """The fixed point's level, of the seeds that have one."""
    levels = level(ard["lambda_in"], ard["tpr"], stated, stated.number("p_drop"))
    inside = levels[~np.isnan(levels)]
    if not len(inside):
        return "none"
    return f"{number(float(inside.mean()), 3)} ({len(inside)} of {len(levels)} seeds)"


class _Drops(TypedDict):
    """Packets dropped under a scheme, by place, and the aggregate throughput in kbit/s."""

    topology: Entry
    setup: Entry
    scheme: str
    core: str
    upstream: str
    marker: str
    total: str


def _drops(report: Report) -> list[_Drops]:
    """Packets dropped in the window, by place."""
    return [
        {
            "topology": topology,
            "setup": setup,
            "scheme": titles(report.paper)[scheme],
            "core": mean_pm(m["drops_core"]),
            "upstream": mean_pm(m["drops_upstream"]),
            "marker": mean_pm(m["drops_marker"]),
            "total": _kbit(m["total"]),
        }
        for topology in report.paper.topologies
        for setup in ran(report.paper, report.cells)
        for scheme in titles(report.paper)
        if (m := report.cells[Cell(setup.id, topology.id, scheme)])
    ]
