"""A suite's report: the checklist with our figures, each scenario as a table beside drop-tail, its graphs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from ..quantity import number, scale
from ..report import write_overview
from ..report.curves import WIDE, frontier, lines
from ..report.page import Charts, environment, page_parts
from ..report.shapes import Spec, chart_of, colour_of, fill, scheme_colour, scheme_mark, shape, short
from ..storage import replace_text
from .coexistence import beside_published, maps, overview
from .contestants import DROP_TAIL, Contestant
from .ellipse import ellipse
from .measure import CURVE, better, title, unit
from .published import Published, published
from .run import Entry, Suite
from .scenarios import Definition, write_files

__all__ = ["as_text", "checklist", "render", "write"]

#: Of drop-tail's goodput, what little is lost to.
_ENOUGH = 0.95
#: Measures shown as per cent.
_PER_CENT = ("utilisation", "loss", "marked", "sync")
#: Signs beside a figure, against drop-tail.
SIGNS = {"better": "▲", "worse": "▼", "alike": "", "": ""}


def write(suite: Suite, out: Path) -> Path:
    """Write the page, its data and the experiment files to `<out>/<suite>`; return the page's path."""
    folder = out / suite.plan.about.name
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(
        folder / "results.json",
        json.dumps(suite.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n",
    )
    replace_text(folder / "measures.csv", measures_csv(suite))
    replace_text(folder / "report.txt", as_text(suite) + "\n")
    write_files(suite.plan.about, folder / "files")
    replace_text(folder / "index.html", render(suite))
    write_overview(out)
    return folder / "index.html"


def measures_csv(suite: Suite) -> str:
    """Every figure of every run, a row each."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["scenario", "variant", "contestant", "parameter", "value", "measure", "seed", "measured"])
    for cell, found in suite.found.items():
        first = (cell.scenario, cell.variant, cell.contestant, *(cell.setting or ("", "")))
        for name, values in found.values.items():
            for seed, x in zip(found.seeds, values, strict=True):
                if np.isfinite(x):
                    out.writerow([*first, name, seed, repr(float(x))])
    return text.getvalue()


def figure(entry: Entry, name: str) -> str:
    """Mean and 95 % interval with the unit; a dash where there is none."""
    mean, interval = parts(entry, name)
    return f"{mean} ({interval})" if interval else mean


def parts(entry: Entry, name: str) -> tuple[str, str]:
    """Mean with its unit, and the 95 % interval in the same, as far as it is a thousandth of the mean.

    Shares are per cent but for the index of fairness. Where every seed has the same value there is none.
    """
    if name not in entry:
        return "–", ""
    found = entry[name]
    size = max(abs(found.mean), found.half or 0.0) if math.isfinite(found.half or 0.0) else abs(found.mean)
    factor, word = (0.01, "%") if name.startswith(_PER_CENT) else scale(unit(name), size)
    text = f"{number(found.mean / factor, 4)} {word}".rstrip()
    if len(set(entry.values(name))) == 1 or found.ci95 is None:
        return text, ""
    lo, hi = (x / factor for x in found.ci95)
    mean = found.mean / factor
    if max(hi - mean, mean - lo) < 0.001 * abs(mean):
        return text, "± under 0.1 %"
    digits = max(0, min(8, 1 - math.floor(math.log10(max(hi - mean, mean - lo)))))
    if hi - mean > 1.2 * (mean - lo) or mean - lo > 1.2 * (hi - mean):
        return f"{mean:.{digits}f} {word}".rstrip(), f"{lo:.{digits}f} to {hi:.{digits}f}"
    return f"{mean:.{digits}f} {word}".rstrip(), f"± {hi - mean:.{digits}f}"


def cell(entry: Entry | None, name: str) -> dict[str, str]:
    """A figure as a table shows it."""
    if entry is None:
        return _plain("–")
    mean, interval = parts(entry, name)
    verdict = entry.verdict(name)
    return {
        "text": figure(entry, name),
        "mean": mean,
        "interval": interval,
        "verdict": verdict,
        "sign": SIGNS[verdict],
    }


def _plain(text: str) -> dict[str, str]:
    return {"text": text, "mean": text, "interval": "", "verdict": "", "sign": ""}


def tables(suite: Suite, definition: Definition) -> Iterator[dict[str, Any]]:
    """For each variant: heading and rows, drop-tail first."""
    if definition.matrix is not None:
        return
    if definition.sensitivity:
        yield _sensitivity(suite, definition)
        return
    if definition.control:
        yield from _by_control(suite, definition)
        return
    for variant in definition.variants:
        entries = suite.entries(definition, variant)
        if not entries:
            continue
        measures = [m for m in definition.measures if any(m in e for e in entries)]
        yield {
            "variant": _variant(suite, definition, variant),
            "measures": [title(m) for m in measures],
            "rows": [
                {
                    "title": suite.title(e.cell.contestant),
                    "cells": [cell(e, m) for m in measures],
                }
                for e in entries
            ],
        }


def _variant(suite: Suite, definition: Definition, variant: str) -> str:
    """What a variant is called; empty where there is one only."""
    if definition.vary:
        return f"{definition.vary['key']} = {variant}"
    if definition.beside is not None and definition.beside.contestants:
        return f"{suite.title(variant)} at the first router"
    return f"{variant} times its value" if variant else ""


def _by_control(suite: Suite, definition: Definition) -> Iterator[dict[str, Any]]:
    """A table for each measure: a row a contestant, a column for each factor of what sets its delay."""
    by = {v: {e.cell.contestant: e for e in suite.entries(definition, v)} for v in definition.variants}
    for name in definition.measures:
        rows = []
        for contestant in suite.plan.contestants:
            found = [by[v].get(contestant.id) for v in definition.variants]
            if any(e is not None for e in found):
                cells = [cell(e, name) for e in found]
                own = _plain(_controls(contestant))
                rows.append({"title": contestant.title, "cells": [own, *cells]})
        if rows:
            heads = ["what is turned", *(f"× {v}" for v in definition.variants)]
            yield {"variant": title(name), "measures": heads, "rows": rows}


def _controls(contestant: Contestant) -> str:
    if not contestant.control:
        return "nothing"
    if contestant.control == "T":
        return "T = 30 ms"
    found = contestant.scheme.queue.get(contestant.control) or contestant.default(contestant.control)
    return f"{contestant.control} = {str(found).strip(chr(34))}"


def settings_table(suite: Suite) -> list[dict[str, str]]:
    """RFC 7928 §4.5, §4.6, §11.2 and §12.2: what there is to set of each contestant, and where it decides."""
    rows = []
    for c in suite.plan.contestants:
        numeric = [n for n, kind in c.parameters.items() if kind not in ("flag", "choice")]
        given = [f"{n} = {v}" for n, v in _flat(c.scheme.queue).items() if n not in ("aqm", "limit")]
        rows.append(
            {
                "title": c.title,
                "decides": c.decides,
                "ecn": "yes" if c.has_ecn else "no",
                "control": _controls(c),
                "numbers": str(len(numeric)),
                "given": ", ".join(given) or "none",
            }
        )
    return rows


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found.update(_flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {before + key: value})
    return found


def _sensitivity(suite: Suite, definition: Definition) -> dict[str, Any]:
    """Least and greatest mean over the settings, and the setting that has the greatest delay."""
    rows = []
    for contestant in suite.plan.contestants:
        entries = suite.settings(definition, contestant.id)
        cells = []
        for name in definition.measures:
            means = [(e[name].mean, e.cell.setting) for e in entries if name in e]
            if not means:
                cells.append(_plain("–"))
                continue
            own = next((m for m, setting in means if setting is None), means[0][0])
            (low, at_low), (high, at_high) = min(means, key=lambda m: m[0]), max(means, key=lambda m: m[0])
            factor, word = scale(unit(name), own)
            worst = at_high if better(name) < 0 else at_low
            where = f" (at {worst[0]} = {worst[1]})" if worst and low != high else ""
            shown = [number(x / factor, 3) for x in (low, own, high)]
            text = f"{shown[0]} … {shown[1]} … {shown[2]} {word}{where}"
            cells.append(_plain(text))
        if any(c["text"] != "–" for c in cells):
            cells.append(_plain(str(len(entries) - 1)))
            rows.append({"title": contestant.title, "cells": cells})
    measures = [f"{title(m)}: least … own … greatest" for m in definition.measures]
    return {"variant": "", "measures": [*measures, "settings"], "rows": rows}


def checklist(suite: Suite) -> list[dict[str, Any]]:
    """RFC 7928, Figure 4: each scenario with drop-tail's figures, and who does better for little goodput."""
    rows = []
    for definition in suite.plan.definitions:
        if definition.matrix is not None:
            continue
        row: dict[str, Any] = {"definition": definition, "why": suite.plan.absent.get((definition.id, ""))}
        entries = [e for v in definition.variants for e in suite.entries(definition, v)]
        of_drop_tail = [e for e in entries if e.cell.contestant == DROP_TAIL]
        if of_drop_tail:
            first = of_drop_tail[0]
            row["delay"], row["goodput"] = (parts(first, m)[0] for m in ("delay_p99", "goodput"))
            others = [e for e in entries if e.baseline is not None and e.cell.variant == first.cell.variant]
            less = [e for e in others if e.verdict("delay_mean") == "better"]
            floor = _ENOUGH * first["goodput"].mean if "goodput" in first else 0.0
            free = [e for e in less if "goodput" in e and e["goodput"].mean >= floor]
            row["less"], row["free"], row["others"] = len(less), len(free), len(others)
            if least := [e for e in others if "delay_p99" in e]:
                best = min(least, key=lambda e: e["delay_p99"].mean)
                row["least"] = f"{suite.title(best.cell.contestant)}: {parts(best, 'delay_p99')[0]}"
                row["its_goodput"] = parts(best, "goodput")[0]
        rows.append(row)
    return rows


def as_text(suite: Suite) -> str:
    """The report as plain text: the checklist, then every table."""
    from ..summary import text_table

    made = suite.plan
    head = [
        f"{made.about.title}",
        f"{len(made.contestants)} contestants, {made.seeds} seeds"
        + f", {made.tcp.title}"
        + (", quick: fewer seeds and shorter runs, do not quote" if made.quick else ""),
    ]
    body = [
        [
            f"{r['definition'].section} {r['definition'].id}",
            r["definition"].weight,
            *(
                [r["delay"], r["goodput"], f"{r['less']}, {r['free']} of {r['others']}", r.get("least", "–")]
                if "delay" in r
                else [r["why"] or "not run", "", "", ""]
            ),
        ]
        for r in checklist(suite)
    ]
    heading = [
        "scenario", made.about.words["weight"], "drop-tail: 99th percentile of delay", "its goodput",
        "less mean delay, with 95 % of the goodput", "least 99th percentile",
    ]  # fmt: skip
    parts = ["\n".join(head), *([text_table(heading, body)] if body else [])]
    for definition in made.definitions:
        if definition.matrix is not None and (rows := overview(suite, definition)):
            heads = [
                "",
                "",
                "median ratio",
                "least to greatest",
                "between 1/2 and 2",
                "longest wait of the first",
            ]
            heads += ["… of the second", "least utilisation"]
            parts.append(
                f"{definition.section} {definition.id}: {definition.text}\n{text_table(heads, rows)}"
            )
        for table in tables(suite, definition):
            name = f"{definition.section} {definition.id}" + (
                f", {table['variant']}" if table["variant"] else ""
            )
            rows = [
                [r["title"], *(f"{c['text']} {c['sign']}".rstrip() for c in r["cells"])]
                for r in table["rows"]
            ]
            parts.append(f"{name}: {definition.text}\n{text_table(['', *table['measures']], rows)}")
    parts += [f"{s}{f', {c}' if c else ''}: {why}" for (s, c), why in made.absent.items()]
    parts.append("▲ better, ▼ worse than drop-tail: the 95 % interval of the paired difference excludes 0.")
    return "\n\n".join(parts)


def render(suite: Suite) -> str:
    """The whole page as HTML; it needs no network and no other file."""
    charts: Charts = {}
    titles = [c.title for c in suite.plan.contestants]
    known = published(suite.plan.about.folder)
    views = [
        {
            "definition": d,
            "tables": list(tables(suite, d)),
            "why": suite.plan.absent.get((d.id, "")),
            "absent": [(suite.title(c), why) for (s, c), why in suite.plan.absent.items() if s == d.id and c],
            "file": suite.plan.about.text(d),
            "charts": list(_charts(suite, d, titles, charts)),
            **_mapped(suite, d, known),
        }
        for d in suite.plan.definitions
    ]
    return (
        environment(Path(__file__).parent, charts=charts)
        .get_template("page.html.j2")
        .render(
            suite=suite,
            views=views,
            checklist=checklist(suite),
            settings=settings_table(suite),
            words=suite.plan.about.words,
            legend=list(zip(titles, colour_of(titles), strict=True)),
            **page_parts(charts),
        )
    )


def _mapped(suite: Suite, definition: Definition, known: Sequence[Published]) -> dict[str, Any]:
    """Maps of a scenario that is a matrix, and what was published; empty lists of others."""
    if definition.matrix is None:
        return {"maps": [], "overview": [], "published": [], "sources": []}
    beside = beside_published(suite, definition, known)
    return {
        "maps": list(maps(suite, definition)),
        "overview": overview(suite, definition),
        "published": beside,
        "sources": list({r["source"].id: r["source"] for r in beside}.values()),
    }


def _charts(
    suite: Suite, definition: Definition, titles: Sequence[str], charts: Charts
) -> Iterator[dict[str, str]]:
    """Delay over goodput with ellipses, the delay's distribution, and both over time where phases differ."""
    if definition.sensitivity or definition.matrix is not None:
        return
    if definition.control:
        charts[f"{definition.id}-frontier"] = _frontier(suite, definition, titles)
        yield {
            "name": f"{definition.id}-frontier",
            "title": "Goodput over delay",
            "text": "a line a contestant through the values of what sets its delay, each with 95 % intervals;"
            " left and up is better",
        }
        return
    for variant in definition.variants:
        entries = suite.entries(definition, variant)
        if not entries:
            continue
        name = f"{definition.id}-{variant}".strip("-").replace(" ", "")
        of = f", {_variant(suite, definition, variant)}" if variant else ""
        for group in definition.groups if definition.each else ():
            charts[f"{name}-of-{group}"] = _trade_off(suite, entries, titles, group)
            yield {
                "name": f"{name}-of-{group}",
                "title": f"Goodput over delay in excess of the path's, {group}{of}",
                "text": "of this class of traffic alone",
            }
        charts[f"{name}-goodput"] = _trade_off(suite, entries, titles)
        yield {
            "name": f"{name}-goodput",
            "title": f"Goodput over delay in excess of the path's{of}",
            "text": "one point a run, the circle the median, and the ellipse that holds 95 % of the Gaussian"
            " distribution which explains the points; left and up is better",
        }
        charts[f"{name}-cdf"] = lines(
            [
                {
                    "scheme": suite.title(e.cell.contestant),
                    "x": 1e3 * float(np.nanmean(e.measures[key])),
                    "y": share,
                }
                for e in entries
                for share in CURVE
                if (key := f"cdf:{share:g}") in e
            ],
            titles,
            x="queueing delay (ms)",
            y="share of packets",
            height=240,
            wide=True,
        )
        yield {
            "name": f"{name}-cdf",
            "title": f"Queueing delay{of}",
            "text": "cumulative distribution: each share's delay, mean over the seeds",
        }
        if definition.phases:
            for what, factor, y in (
                ("delay", 1e3, "queueing delay (ms)"),
                ("goodput", 1e-6, "goodput (Mbit/s)"),
            ):
                charts[f"{name}-{what}-time"] = _over_time(suite, entries, titles, what, factor, y)
                yield {
                    "name": f"{name}-{what}-time",
                    "title": f"{y.partition(' (')[0].capitalize()} over time",
                    "text": "mean over the seeds, second by second",
                }


def _frontier(suite: Suite, definition: Definition, titles: Sequence[str]) -> Spec:
    rows = []
    for variant in definition.variants:
        for e in suite.entries(definition, variant):
            if "delay_mean" not in e or "goodput" not in e:
                continue
            x, y = e["delay_mean"], e["goodput"]
            (x_lo, x_hi), (y_lo, y_hi) = x.ci95 or (x.mean, x.mean), y.ci95 or (y.mean, y.mean)
            rows.append(
                {
                    "scheme": suite.title(e.cell.contestant),
                    "label": f"× {variant}",
                    "order": float(variant),
                    "x": 1e3 * x.mean,
                    "x_lo": 1e3 * x_lo,
                    "x_hi": 1e3 * x_hi,
                    "y": 1e-6 * y.mean,
                    "y_lo": 1e-6 * y_lo,
                    "y_hi": 1e-6 * y_hi,
                }
            )
    rows.sort(key=lambda r: (titles.index(str(r["scheme"])), r["order"]))
    return frontier(rows, titles, x="mean queueing delay (ms)", y="goodput (Mbit/s)", height=300)


def _over_time(
    suite: Suite, entries: Sequence[Entry], titles: Sequence[str], what: str, factor: float, y: str
) -> Spec:
    start = f"time:{what}:"
    rows = [
        {
            "scheme": suite.title(e.cell.contestant),
            "x": float(key.removeprefix(start)),
            "y": factor * float(np.nanmean(values)),
        }
        for e in entries
        for key, values in sorted(e.measures.values.items())
        if key.startswith(start) and np.isfinite(values).any()
    ]
    rows.sort(key=lambda r: (titles.index(str(r["scheme"])), r["x"]))
    return lines(rows, titles, x="time (s)", y=y)


def _trade_off(suite: Suite, entries: Sequence[Entry], titles: Sequence[str], group: str = "") -> Spec:
    """RFC 7928 §2.7: of all flows, or of one class of traffic."""
    runs, contour, median = [], [], []
    across, up = (f"{what}:{group}" if group else what for what in ("excess", "goodput"))
    for e in entries:
        if across not in e or up not in e:
            continue
        both = np.isfinite(e.measures[across]) & np.isfinite(e.measures[up])
        x, y = 1e3 * e.measures[across][both], 1e-6 * e.measures[up][both]
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        name = suite.title(e.cell.contestant)
        runs += [{"scheme": name, "x": short(a, 5), "y": short(b, 5)} for a, b in points]
        around = ellipse(points, suite.plan.about.epsilon)
        contour += [
            {"scheme": name, "x": short(a, 5), "y": short(b, 5), "order": i}
            for i, (a, b) in enumerate(around)
        ]
        median.append(
            {"scheme": name, "x": short(float(np.median(x)), 5), "y": short(float(np.median(y)), 5)}
        )
    return fill(_trade_off_shape(tuple(titles)), None, runs=runs, contour=contour, median=median)


@shape
def _trade_off_shape(schemes: tuple[str, ...]) -> Any:
    x = alt.X("x:Q", title="mean delay in excess of the path's (ms)", scale=WIDE)
    y = alt.Y("y:Q", title="goodput (Mbit/s)", scale=alt.Scale(zero=False, nice=True))
    colour = scheme_colour(schemes, legend=True)
    tips = [
        alt.Tooltip("scheme:N"),
        alt.Tooltip("x:Q", title="delay (ms)"),
        alt.Tooltip("y:Q", title="Mbit/s"),
    ]
    around = (
        chart_of("contour")
        .mark_line(strokeWidth=1.2, opacity=0.7)
        .encode(x=x, y=y, color=colour, order="order:Q")
    )
    each = chart_of("runs").mark_circle(size=14, opacity=0.45).encode(x=x, y=y, color=colour, tooltip=tips)
    middle = (
        chart_of("median")
        .mark_point(filled=True, size=70)
        .encode(x=x, y=y, color=colour, shape=scheme_mark(schemes, legend=True), tooltip=tips)
    )
    return alt.layer(around, each, middle).properties(width="container", height=260)
