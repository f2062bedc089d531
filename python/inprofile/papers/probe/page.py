"""Paper C's own part of its report: which RED decides, frontiers, losses, UDP, other flows and markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve, frontier
from ...metrics.measures import Array
from ...metrics.quantity import number
from ...metrics.stats import estimate
from .. import Entry
from ..report import Figure, Panels
from .claims import UDP
from .environment import laws, paper_says
from .experiments import QUICK, SECONDS, SHORT, swept
from .frontiers import Frontier, along, log_ratio
from .measure import BINS
from .runs import ProbeRuns

if TYPE_CHECKING:
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]

HOW = ("soft", "hard")
GOODPUT, DELAY = "goodput (Mbit/s)", "queueing delay (ms)"
MIN_IN = "min_in (packets)"

#: The paper's figures of frontiers: number of flows, differentiation.
FIGURES = (
    ("Fig. 3", "ten", "soft"),
    ("Fig. 4", "forty", "soft"),
    ("Fig. 5", "ten", "hard"),
    ("Fig. 6", "forty", "hard"),
)


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    runs = ProbeRuns(report.cells, report.paper.setups[0].id)
    titles = {t.id: t.title for t in report.paper.topologies}
    panels = [(t, how) for how in ("hard", "soft") for t in titles]
    return {
        "short": list(_in_short(runs, titles)),
        "laws": laws(report),
        "paper_says": paper_says(report.paper),
        "primary": report.paper.setups[0].title,
        "seconds": QUICK if report.quick else SECONDS if report.full else SHORT,
        "stated": SECONDS,
        "gains": _gains(report, runs, titles, charts),
        "frontiers": [_frontier_figure(runs, *figure, titles, charts) for figure in FIGURES],
        "losses": [_losses(runs, how, charts) for how in HOW],
        "udp": [_udp(runs, t, how, titles, charts) for t, how in panels],
        "free": [_free(runs, t, titles, charts) for t in titles],
        "domains": [_domains(report, runs, t, titles, charts) for t in titles],
        "others": [_others(runs, t, titles, charts) for t in titles],
        "load": [_load(runs, t, b, titles, charts) for t in titles for b in BINS],
        "sweeps": list(_sweeps(report, runs, charts)),
        "assumed": report.paper.top.tables("assumed"),
    }


def _range(values: Sequence[float] | Array) -> dict[str, float]:
    e = estimate(float(v) for v in values)
    lo, hi = e.ci95 or (e.mean, e.mean)
    return {"mean": e.mean, "lo": lo, "hi": hi}


def _in_short(runs: ProbeRuns, titles: Mapping[str, str]) -> Iterator[str]:
    """What the frontiers say, in a few sentences made of the figures they give."""
    for topology, title in titles.items():
        changes = []
        for how in HOW:
            if change := changed(runs, topology, how):
                changes.append(f"{_percent(change[0])} to {_percent(change[1])} ({how})")
        delay = (
            f"changes queueing delay at equal goodput by {' and '.join(changes)}, by how much there is of it"
            if changes
            else "reaches no goodput that all IN reaches too, so that delays cannot be compared"
        )
        hard = runs.frontier("frontier", topology, "hard")
        share = 100 * hard["share_in"].mean(axis=1)
        yield (
            f"With {title} the marker {delay};"
            f" {number(share.min(), 3)} to {number(share.max(), 3)} % of packets stay IN (hard)."
        )


def changed(runs: ProbeRuns, topology: str, how: str) -> tuple[float, float] | None:
    """Least and greatest part by which delay differs from all IN's over common goodputs; means of seeds."""
    found = along(runs.frontier("frontier", topology, how), runs.frontier("frontier", topology, "none"))
    if found is None:
        return None
    means = np.expm1(found[1].mean(axis=1))
    return float(means.max()), float(means.min())


def _percent(part: float) -> str:
    return f"{100 * part:+.0f} %".replace("-", "−")


def _gains(report: Report, runs: ProbeRuns, titles: Mapping[str, str], charts: Charts) -> list[Figure]:
    """How the change of delay goes with goodput: by flows and differentiation, and by the queue's law."""
    here = {f"{titles[t]}, {how}": (runs, t, how) for t in titles for how in HOW}
    laws = {s.title: (ProbeRuns(report.cells, s.id), "ten", "hard") for s in report.setups}
    return [
        Figure(_gain(here, "gain", charts), "by number of flows and differentiation"),
        Figure(_gain(laws, "gain-laws", charts), f"{titles['ten']}, hard, by the queue's law"),
    ]


def _gain(lines: Mapping[str, tuple[ProbeRuns, str, str]], name: str, charts: Charts) -> str:
    rows = []
    for scheme, (runs, topology, how) in lines.items():
        if ("frontier", topology, how) not in runs:
            continue
        found = along(runs.frontier("frontier", topology, how), runs.frontier("frontier", topology, "none"))
        for goodput, ratios in zip(*found, strict=True) if found else ():
            part = {k: 100 * float(np.expm1(v)) for k, v in _range(ratios).items()}
            rows.append({"scheme": scheme, "x": float(goodput) / 1e6, **part})
    shown = [scheme for scheme in lines if any(row["scheme"] == scheme for row in rows)]
    charts[name] = curve(rows, shown, x=GOODPUT, y="delay against all IN (%)", zero=True)
    return name


def points(f: Frontier, scheme: str) -> list[dict[str, Any]]:
    """Rows of a frontier chart."""
    rows = []
    for at, goodput, delay in zip(f.values, f["goodput"], f["delay"], strict=True):
        x, y = _range(goodput / 1e6), _range(delay * 1e3)
        rows.append(
            {
                "scheme": scheme,
                "label": f"min_in {at}",
                "order": at,
                "x": x["mean"],
                "x_lo": x["lo"],
                "x_hi": x["hi"],
                "y": y["mean"],
                "y_lo": y["lo"],
                "y_hi": y["hi"],
            }
        )
    return rows


def _frontiers(lines: Mapping[str, Frontier], name: str, charts: Charts) -> str:
    rows = [row for scheme, f in lines.items() for row in points(f, scheme)]
    charts[name] = frontier(rows, list(lines), x=GOODPUT, y=DELAY, log=(False, True))
    return name


def _frontier_figure(
    runs: ProbeRuns, title: str, topology: str, how: str, titles: Mapping[str, str], charts: Charts
) -> Figure:
    lines = {
        line: runs.frontier("frontier", topology, scheme)
        for line, scheme in (("All IN", "none"), ("Probe", how), ("Probe, A+1", f"{how}-one"))
        if ("frontier", topology, scheme) in runs
    }
    words = []
    for scheme in [s for s in lines if s != "All IN"]:
        ratio = log_ratio(lines[scheme], lines["All IN"])
        if ratio is not None:
            made = {k: 100 * np.expm1(v) for k, v in _range(ratio).items()}
            words.append(
                f"{scheme}: delay {made['mean']:+.0f} % at equal goodput, mean over goodputs"
                f" (95 % {made['lo']:+.0f} to {made['hi']:+.0f})"
            )
    return Figure(
        _frontiers(lines, f"frontier-{topology}-{how}", charts),
        f"{titles[topology]}, {how} differentiation",
        title,
        "; ".join(words).replace("-", "−"),
    )


def _losses(runs: ProbeRuns, how: str, charts: Charts) -> Figure:
    """Fig. 7: share of packets lost over goodput, 10 flows."""
    f = runs.frontier("frontier", "ten", how)
    goodput = f["goodput"].mean(axis=1) / 1e6
    rows = [
        {"scheme": scheme, "x": float(x), **_range(100 * loss)}
        for scheme, name in (("all", "loss"), ("IN", "loss_in"), ("OUT", "loss_out"))
        for x, loss in zip(goodput, f[name], strict=True)
    ]
    name = f"loss-{how}"
    charts[name] = curve(rows, ["all", "IN", "OUT"], x=GOODPUT, y="packets lost (%)", log=(False, True))
    return Figure(name, f"10 flows, {how}")


def _udp(runs: ProbeRuns, topology: str, how: str, titles: Mapping[str, str], charts: Charts) -> Panels:
    """Fig. 8, and the same for the other periods of the UDP source: one panel each."""
    panels = []
    for study in [study for study in UDP if (study, topology, how) in runs]:
        lines = {
            "All IN": runs.frontier(study, topology, "none"),
            "Probe": runs.frontier(study, topology, how),
        }
        chart = _frontiers(lines, f"{study}-{topology}-{how}", charts)
        period = study.removeprefix("udp-")
        shown = "Fig. 8: " if (period, topology, how) == ("5", "ten", "hard") else ""
        panels.append(Figure(chart, f"{shown}{period} s"))
    return Panels(f"{titles[topology]}, {how}", panels)


def _curves(
    lines: Mapping[str, tuple[Sequence[int], Array]], name: str, y: str, charts: Charts, x: str = MIN_IN
) -> str:
    rows = [
        {"scheme": scheme, "x": float(at), **_range(values)}
        for scheme, (thresholds, found) in lines.items()
        for at, values in zip(thresholds, found, strict=True)
    ]
    charts[name] = curve(rows, list(lines), x=x, y=y, log=(True, False), zero=True)
    return name


def _free(runs: ProbeRuns, topology: str, titles: Mapping[str, str], charts: Charts) -> Figure:
    """A marked flow's goodput over the mean of all flows, where others go unmarked: all IN or all OUT."""
    lines = {}
    for study, words in (("free-in", "free IN"), ("free-out", "free OUT")):
        for how in HOW:
            f = runs.frontier(study, topology, how)
            share = f["goodput_marked"] / f["goodput_tcp"]
            lines[f"{words}, {how}"] = (f.values, share)
    return Figure(_curves(lines, f"free-{topology}", "marked flow / fair share", charts), titles[topology])


def _domains(
    report: Report, runs: ProbeRuns, topology: str, titles: Mapping[str, str], charts: Charts
) -> Figure:
    """Fig. 9's outcome: marked over free flows, by domain 2's threshold."""
    lines = {}
    for scheme in ("out-30-90", "out-2-6", "out-0.1-0.3"):
        f = runs.frontier("two-domains", topology, scheme)
        title = report.paper.find("schemes", scheme).title
        lines[title] = (f.values, f["goodput_marked"] / f["goodput_free"])
    chart = _curves(
        lines, f"domains-{topology}", "marked / free goodput", charts, "domain 2's min_th (packets)"
    )
    return Figure(chart, titles[topology])


def _others(runs: ProbeRuns, topology: str, titles: Mapping[str, str], charts: Charts) -> Figure:
    lines = {
        "All IN": runs.frontier("frontier", topology, "none"),
        "Probe": runs.frontier("frontier", topology, "hard"),
        "Token bucket": runs.frontier("others", topology, "bucket"),
        "Every n-th": runs.frontier("others", topology, "every-nth"),
    }
    return Figure(_frontiers(lines, f"others-{topology}", charts), titles[topology])


def _load(runs: ProbeRuns, topology: str, bins: str, titles: Mapping[str, str], charts: Charts) -> Figure:
    """C10: the load's variance in bins of one length, relative to its squared mean, over goodput."""
    rows = []
    for scheme, title in (("none", "All IN"), ("soft", "Probe, soft"), ("hard", "Probe, hard")):
        f = runs.frontier("frontier", topology, scheme)
        rows += [
            {"scheme": title, "x": float(goodput.mean() / 1e6), **_range(variance)}
            for goodput, variance in zip(f["goodput"], f[f"load_variance:{bins}"], strict=True)
        ]
    name = f"load-{topology}-{bins}"
    charts[name] = curve(
        rows,
        ["All IN", "Probe, soft", "Probe, hard"],
        x=GOODPUT,
        y="variance of the load / mean²",
        log=(False, True),
    )
    return Figure(name, f"{titles[topology]}, bins of {0.16 * BINS[bins]:g} s")


#: The axis of what a sweep shows.
SHOWN = {
    "delay": "delay / all IN at equal goodput, less 1",
    "share": "a marked flow's goodput / fair share",
    "over_free": "marked / free goodput",
    "goodput": "greatest goodput less all IN's (Mbit/s)",
}


def _sweeps(report: Report, runs: ProbeRuns, charts: Charts) -> Iterator[Figure]:
    """How much a reading or an assumption matters: what the sweep shows, at each value."""
    first = runs
    for sweep in report.paper.sweeps:
        rows = []
        setup = sweep.word("setup", report.paper.setups[0].id)
        runs = ProbeRuns(report.cells, setup) if "setup" in sweep else first
        for value in report.paper.top.table(sweep.word("values")):
            study = swept(sweep, value)
            for scheme in [s for s in sweep.words("schemes") if s != "none"]:
                if (study, sweep.word("topology"), scheme) in runs:
                    shown = _shown(runs, sweep, study, scheme)
                    label = f"{value}, {report.paper.find('schemes', scheme).title}"
                    if shown is not None:
                        rows.append({"label": label, "scheme": scheme, **_range(shown)})
        if rows:
            name = f"sweep-{sweep.id}"
            charts[name] = draw.forest(rows, x=SHOWN[sweep.word("shows")])
            seeds = next(
                j.seeds
                for c, j in report.jobs.items()
                if c.setup == setup and c.sweep.startswith(swept(sweep, ""))
            )
            flows = report.paper.find("topologies", sweep.word("topology")).title
            yield Figure(name, f"{seeds} seeds, {flows}", sweep.title)


def _shown(runs: ProbeRuns, sweep: Entry, study: str, scheme: str) -> Sequence[float] | None:
    """One value of a sweep."""
    flows, shows = sweep.word("topology"), sweep.word("shows")
    found = runs.frontier(study, flows, scheme)
    if shows in ("share", "over_free"):
        under = {"share": "goodput_tcp", "over_free": "goodput_free"}[shows]
        return [float(x) for x in (found["goodput_marked"] / found[under]).mean(axis=0)]
    base = study if (study, flows, "none") in runs else sweep.word("study")
    none = runs.frontier(base, flows, "none")
    if shows == "goodput":
        most = found["goodput"].max(axis=0) - none["goodput"].max(axis=0)[: found["goodput"].shape[1]]
        return [float(x) / 1e6 for x in most]
    ratio = log_ratio(found, none)
    return None if ratio is None else [float(np.expm1(r)) for r in ratio]
