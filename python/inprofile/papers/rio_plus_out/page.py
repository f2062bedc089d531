"""Paper B's own part of its report: what decides, Table I, Fig. 1, 2, 5 to 9, buckets, what was left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Array, Measures
from ...metrics.quantity import mean_pm, number
from .. import Cell, Entry
from ..defaults import value_named
from ..report import Figure
from .experiments import levels, subscribed
from .of_table import COLUMNS
from .shared import crossings, kept_share, points, printed_table, profiles, titles

if TYPE_CHECKING:
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    return {
        "short": list(_in_short(report)),
        "table1": list(_table_1(report)),
        "rates": [_rates(report, charts, s) for s in report.paper.setups],
        "shares": _shares(report),
        "loss": [_loss(report, charts, s) for s in report.paper.setups],
        "windows": list(_windows(report, charts)),
        "above": list(_above(report)),
        "seen": [_seen(report, charts, s) for s in _with(report, "figure-2")],
        "against": [
            _figure_7(report, charts, s, level)
            for level in subscribed(report.paper)
            for s in _with(report, "figure-7")
        ],
        "subscribed": [
            _figure_8(report, charts, s, p)
            for p, _ in levels(report.paper)
            for s in _with(report, "figure-8")
            if points(report.cells, s.id, "figure-8", f"{p:g} Mbit/s")
        ],
        "steps": [
            _figure_9(report, charts, s, step)
            for step in report.paper.top.tables("steps")
            for s in _with(report, "figure-9")
        ],
        "buckets": _buckets(report, charts),
        "sweeps": list(_sweeps(report, charts)),
        "shown_seed": report.paper.top.whole("shown_seed"),
    }


def _names(report: Report) -> list[str]:
    """RIO and RI+O, in the order of every chart."""
    return list(titles(report.paper).values())


def _run(
    report: Report, setup: str, topology: str, scheme: str, sweep: str = "", value: str = ""
) -> Measures:
    found: Measures = report.cells[Cell(setup, topology, scheme, "", sweep, value)]
    return found


def _with(report: Report, topology: str) -> list[Entry]:
    """Set-ups in which it was run."""
    run = {c.setup for c in report.cells if c.topology == topology}
    return [s for s in report.paper.setups if s.id in run]


def _in_short(report: Report) -> Iterator[str]:
    """What decides the verdicts and what RI+O costs: each sentence made of the figures it gives."""
    kept = []
    kept_at = report.paper.top.table("bounds").number("kept")
    for setup in report.paper.setups:
        rio = _run(report, setup.id, "table-1", "rio")
        missed = [
            f"{r / 1e3:g}"
            for g, r in profiles(report.paper).items()
            if (rio[f"throughput:{g}"] / r).mean() < kept_at
        ]
        kept.append(f"{', '.join(missed) + ' kbit/s' if missed else 'none'} ({uncapitalized(setup.title)})")
    yield (
        "With smaller token buckets RIO fails as the paper says. Profiles of Table I that it misses:"
        f" {'; '.join(kept)}."
        " With the printed buckets a flow sends its whole profile as IN packets; IN packets are dropped"
        " all the same, in Table I within its first 10 s."
    )
    use = [
        [f"{100 * _run(report, s.id, 'table-1', x)['utilisation'].mean():.1f}" for x in titles(report.paper)]
        for s in report.paper.setups
    ]
    told = "; ".join(
        f"{a} % to {b} % ({uncapitalized(s.title)})"
        for (a, b), s in zip(use, report.paper.setups, strict=True)
    )
    yield (
        f"RI+O costs utilisation, which the paper does not mention: {told};"
        " Table I's throughputs add up to 99.9 % and 99.1 %."
    )


def uncapitalized(title: str) -> str:
    """A title inside a sentence; names in it keep their capitals.

    >>> uncapitalized("Fits the IN counts")
    'fits the IN counts'
    """
    return f"{title[:1].lower()}{title[1:]}"


def _who(report: Report, group: str) -> str:
    found = profiles(report.paper)
    return f"{found[group] / 1e3:g} kbit/s" if group in found else "Best effort (mean of 20)"


_COLUMNS = {
    "throughput": "Throughput (kbit/s)",
    "marked_in": "IN packets",
    "marked_out": "OUT packets",
    "loss_out": "OUT loss",
}


@dataclass(frozen=True)
class Row:
    """A flow's value in the paper, where it has one, and in every set-up, in words."""

    who: str
    ours: Sequence[str]
    paper: str = ""


@dataclass(frozen=True)
class Column:
    """A column of Table I under one scheme: a row a flow."""

    title: str
    rows: Sequence[Row]
    #: The one that is not folded away.
    first: bool = False


def _table_1(report: Report) -> Iterator[Column]:
    """A table a column of Table I and scheme: the paper's value and ours in every set-up."""
    for measure in COLUMNS:
        factor = 1e3 if measure == "throughput" else 1
        for scheme, name in titles(report.paper).items():
            printed = printed_table(report.paper, scheme)
            runs = [_run(report, s.id, "table-1", scheme) for s in report.paper.setups]
            rows = [
                Row(
                    _who(report, group),
                    [mean_pm(m[f"{measure}:{group}"], factor) for m in runs],
                    number(printed.numbers(measure)[i] / factor, 6),
                )
                for i, group in enumerate([*profiles(report.paper), "be"])
            ]
            if measure == "throughput":
                share = number(printed.number("utilisation"), 4)
                ours = [
                    mean_pm(m["utilisation"], bounds=(0.0, max(1.0, m["utilisation"].max()))) for m in runs
                ]
                rows.append(Row("Utilisation", ours, share))
            yield Column(f"{_COLUMNS[measure]}, {name}", rows, first=measure == "throughput")


#: What a column of a chart of Table I is.
PROFILE = "profile (kbit/s; BE: best effort)"


def _profile(report: Report, group: str) -> str:
    found = profiles(report.paper)
    return f"{found[group] / 1e3:g}" if group in found else "BE"


def _rates(report: Report, charts: Charts, setup: Entry) -> Figure:
    chart = f"Table I-{setup.id}"
    rows = [
        draw.row(name, m[f"throughput:{g}"] / 1e3, m.seeds, kind=_profile(report, g))
        for g in (*profiles(report.paper), "be")
        for s, name in titles(report.paper).items()
        if (m := _run(report, setup.id, "table-1", s))
    ]
    charts[chart] = draw.bars(rows, _names(report), x=PROFILE, y="kbit/s")
    return Figure(chart, setup.title)


def _shares(report: Report) -> list[Column]:
    """IN packets counted, as parts of the profile, the paper's and ours, by scheme."""
    shown = []
    for scheme, name in titles(report.paper).items():
        rows = []
        marked = printed_table(report.paper, scheme).numbers("marked_in")[:-1]
        for (group, profile), n in zip(profiles(report.paper).items(), marked, strict=True):
            # 576 bytes and 500 s, which fit the paper's rows.
            need = profile * 500 / 8 / 576
            runs = [_run(report, s.id, "table-1", scheme) for s in report.paper.setups]
            ours = [f"{m[f'marked_in:{group}'].mean() / need:.2f}" for m in runs]
            rows.append(Row(_who(report, group), ours, f"{n / need:.2f}"))
        shown.append(Column(name, rows))
    return shown


def _loss(report: Report, charts: Charts, setup: Entry) -> Figure:
    """Fig. 5: share of OUT packets dropped, by flow, and assured flows' over best effort's."""
    runs = {s: _run(report, setup.id, "table-1", s) for s in titles(report.paper)}
    rows = [
        draw.row(name, 100 * runs[s][f"loss_out:{g}"], runs[s].seeds, kind=_profile(report, g))
        for g in (*profiles(report.paper), "be")
        for s, name in titles(report.paper).items()
    ]
    chart = f"Fig. 5-{setup.id}"
    charts[chart] = draw.bars(rows, _names(report), x=PROFILE, y="OUT packets dropped (%)")
    ratio = [
        float(np.mean([m[f"loss_out:{g}"].mean() for g in profiles(report.paper)]) / m["loss_out:be"].mean())
        for m in runs.values()
    ]
    words = f"{ratio[0]:.1f} under RIO, {ratio[1]:.1f} under RI+O"
    return Figure(chart, setup.title, words=words)


def _windows_of(report: Report) -> dict[str, float]:
    """Fig. 1: its two flows and their profiles in bit/s."""
    about = report.paper.top.table("windows")
    return {group: about.number(group) for group in about}


def _windows(report: Report, charts: Charts) -> Iterator[Figure]:
    """Fig. 1 in the primary set-up: windows over time, the profile as a level."""
    setup = report.paper.setups[0].id
    for scheme, name in titles(report.paper).items():
        m = _run(report, setup, "figure-1", scheme)
        for group, profile in _windows_of(report).items():
            trace = m.traces[group]
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
                seed=report.paper.top.whole("shown_seed"),
                rules=[float(m[f"need:{group}"].mean())],
            )
            yield Figure(chart, name, f"{profile / 1e6:g} Mbit/s")


def _above(report: Report) -> Iterator[Row]:
    """Fig. 1: share of the time above the profile, in every set-up in which it was run."""
    run = {s.id for s in _with(report, "figure-1")}
    for scheme, name in titles(report.paper).items():
        for group, profile in _windows_of(report).items():
            shares = [
                f"{100 * _run(report, s.id, 'figure-1', scheme)[f'above:{group}'].mean():.1f} %"
                if s.id in run
                else "with --full"
                for s in report.paper.setups
            ]
            yield Row(f"{profile / 1e6:g} Mbit/s, {name}", shares)


def _seen(report: Report, charts: Charts, setup: Entry) -> Figure:
    """Fig. 2 and 6: avg_out at a flow's IN packets, by profile, with fitted lines."""
    rows, lines, slopes = [], [], []
    for scheme, name in titles(report.paper).items():
        m = _run(report, setup.id, "figure-2", scheme)
        rows += [draw.row(name, m[f"seen:{g}"], x=r / 1e3) for g, r in profiles(report.paper).items()]
        x = np.array([r / 1e6 for r in profiles(report.paper).values()])
        level = np.mean([m[f"seen:{g}"].mean() for g in profiles(report.paper)])
        fitted = level + m["slope"].mean() * (x - x.mean())
        lines += [
            {"scheme": f"{name}, fitted", "x": 1e3 * a, "mean": b, "lo": b, "hi": b}
            for a, b in zip(x, fitted, strict=True)
        ]
        slopes.append(f"{name} {_words(m['slope'])}")
    chart = f"Fig. 2 and 6-{setup.id}"
    charts[chart] = curve(
        [*rows, *lines],
        [*_names(report), *(f"{n}, fitted" for n in _names(report))],
        x="profile (kbit/s)",
        y="average of OUT packets (packets)",
    )
    return Figure(chart, setup.title, words=f"{'; '.join(slopes)} packets per Mbit/s")


def _words(values: Array, unit: str = "") -> str:
    return f"{mean_pm(values)} {unit}".replace("-", "−").rstrip()


def _figure_7(report: Report, charts: Charts, setup: Entry, level: str) -> Figure:
    cells, paper, own = report.cells, report.paper, setup.id
    rows = [
        draw.row(
            name,
            kept_share(
                paper, _run(report, own, "figure-7", s, level, n), subscribed(report.paper)[level] * 1e6
            ),
            x=float(n),
        )
        for s, name in titles(report.paper).items()
        for n in points(cells, own, "figure-7", level)
    ]
    chart = f"Fig. 7-{level}-{own}"
    charts[chart] = curve(rows, _names(report), x="best-effort flows", y="throughput over profile")
    found = [
        f"{_words(crossings(paper, cells, own, level, s), 'flows')} ({name})"
        for s, name in titles(report.paper).items()
    ]
    return Figure(chart, setup.title, f"{level} subscribed", ", ".join(found))


def _figure_8(report: Report, charts: Charts, setup: Entry, profile: float) -> Figure:
    sweep, own = f"{profile:g} Mbit/s", setup.id
    rows = [
        draw.row(
            name,
            kept_share(report.paper, _run(report, own, "figure-8", s, sweep, n), profile * 1e6),
            x=float(n),
        )
        for s, name in titles(report.paper).items()
        for n in points(report.cells, own, "figure-8", sweep)
    ]
    chart = f"Fig. 8-{sweep}-{own}"
    charts[chart] = curve(rows, _names(report), x="subscription (%)", y="throughput over profile")
    return Figure(chart, setup.title, f"Profile {sweep}")


def _figure_9(report: Report, charts: Charts, setup: Entry, step: Entry) -> Figure:
    count, own, unit = step.whole("flows"), setup.id, float(step.id)
    rows = [
        draw.row(
            name,
            _run(report, own, "figure-9", s, "step", step.id)[f"throughput:as{i}"] / 1e6,
            x=unit * (i + 1),
        )
        for s, name in titles(report.paper).items()
        for i in range(count)
    ]
    ends = (unit, unit * count)
    profile = [{"scheme": "Profile", "x": x, "mean": x, "lo": x, "hi": x} for x in ends]
    chart = f"Fig. 9-{step.id}-{own}"
    charts[chart] = curve(
        [*rows, *profile], [*_names(report), "Profile"], x="profile (Mbit/s)", y="throughput (Mbit/s)"
    )
    return Figure(chart, setup.title, f"Steps of {step.id} Mbit/s")


def _buckets(report: Report, charts: Charts) -> str:
    """The study of bucket sizes: the largest profile's share against the bucket; RI+O's with `--full`."""
    own, largest = report.paper.setups[0].id, profiles(report.paper)["as4"]
    rows = [
        draw.row(name, 100 * report.cells[cell]["throughput:as4"] / largest, x=float(b) / 1e3)
        for s, name in titles(report.paper).items()
        for b in points(report.cells, own, "table-1", "bucket")
        if (cell := Cell(own, "table-1", s, "", "bucket", b)) in report.cells
    ]
    charts["Buckets"] = curve(
        rows,
        [name for name in _names(report) if any(row["scheme"] == name for row in rows)],
        x="bucket of the 270 kbit/s flow (KB)",
        y="1350 kbit/s flow (% of profile)",
        log=(True, False),
    )
    return "Buckets"


def _sweeps(report: Report, charts: Charts) -> Iterator[Figure]:
    """Only with --full: how the largest profile fares under each value of what was left open."""
    for sweep in report.paper.sweeps:
        for setup in sweep.words("setups"):
            found = points(report.cells, setup, "table-1", sweep.id)
            values = [value_named(report.paper, sweep, value) for value in found]
            rows = [
                draw.row(
                    titles(report.paper)[c.scheme],
                    100 * m["throughput:as4"] / profiles(report.paper)["as4"],
                    value=value_named(report.paper, sweep, c.value),
                )
                for c, m in report.cells.items()
                if (c.setup, c.sweep) == (setup, sweep.id)
            ]
            # One value alone is of the advice, and varies nothing.
            if sweep.id == "bucket" or len(found) < 2:
                continue
            chart = f"sweep-{sweep.id}-{setup}"
            names = [n for n in _names(report) if any(r["scheme"] == n for r in rows)]
            charts[chart] = draw.response(
                rows, values, names, x=sweep.title, y="1350 kbit/s flow (% of profile)"
            )
            yield Figure(chart, report.paper.find("setups", setup).title, sweep.title)
