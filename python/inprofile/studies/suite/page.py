"""A suite's report: the checklist with our figures, each scenario as a table beside drop-tail, its graphs.

A suite's graphs: goodput over delay with ellipses, the distributions of both, both over time.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from ...charts.curves import WIDE, frontier, lines
from ...charts.page import Charts, environment, page_parts
from ...charts.theme import Spec, chart_of, colour_of, fill, scheme_colour, scheme_mark, shape, short
from ...run.storage import FolderInUse, replace_files
from ..reproduce.report import write_overview
from ..reproduce.report.overview import check_overview, read_results
from .coexistence import beside_published, maps, overview
from .matrix import Published, published
from .measure import CURVE
from .outcome import Entry, Suite
from .scenarios import Definition, files_of
from .tables import as_text, checklist, pair_figures, settings_table, tables, variant_title


def charts_of(
    suite: Suite, definition: Definition, titles: Sequence[str], charts: Charts
) -> Iterator[dict[str, str]]:
    """Delay over goodput with ellipses, the distributions of both, and both over time where phases differ."""

    def put(name: str, chart: Spec, title: str, text: str) -> dict[str, str]:
        charts[name] = chart
        return {"name": name, "title": title, "text": text}

    if definition.sensitivity or definition.matrix is not None:
        return
    if definition.control:
        yield put(
            f"{definition.id}-frontier",
            _frontier(suite, definition, titles),
            "Goodput over delay",
            "one line per contestant, through the values of the parameter that sets its delay, with"
            " 95 % intervals; left and up is better",
        )
        return
    for variant in definition.variants:
        entries = suite.entries(definition, variant)
        if not entries:
            continue
        name = f"{definition.id}-{variant}".strip("-").replace(" ", "")
        of = f", {variant_title(suite, definition, variant)}" if variant else ""
        over = "Goodput over delay in excess of the path's"
        for group in definition.groups if definition.each else ():
            chart = _trade_off(suite, entries, titles, group)
            yield put(f"{name}-of-{group}", chart, f"{over}, {group}{of}", "of this class of traffic alone")
        yield put(
            f"{name}-goodput",
            _trade_off(suite, entries, titles),
            f"{over}{of}",
            "one point per run; the circle is the median, and the ellipse holds 95 % of the Gaussian"
            " distribution fitted to the points; left and up is better",
        )
        text = "cumulative distribution: each share's delay, mean over the seeds"
        yield put(f"{name}-cdf", _delay_distribution(suite, entries, titles), f"Queueing delay{of}", text)
        text = "cumulative distribution over the seconds of all runs, of all flows together"
        chart = _goodput_distribution(suite, entries, titles)
        yield put(f"{name}-goodput-cdf", chart, f"Goodput{of}", text)
        for what, factor, y in (
            (("delay", 1e3, "queueing delay (ms)"), ("goodput", 1e-6, "goodput (Mbit/s)"))
            if definition.phases
            else ()
        ):
            title = f"{y.partition(' (')[0].capitalize()} over time"
            chart = _over_time(suite, entries, titles, what, factor, y)
            yield put(f"{name}-{what}-time", chart, title, "mean over the seeds, second by second")


def _delay_distribution(suite: Suite, entries: Sequence[Entry], titles: Sequence[str]) -> Spec:
    rows = [
        {"scheme": suite.title(e.cell.contestant), "x": 1e3 * float(np.nanmean(e.measures[key])), "y": share}
        for e in entries
        for share in CURVE
        if (key := f"cdf:{share:g}") in e
    ]
    return lines(rows, titles, x="queueing delay (ms)", y="share of packets", height=240, wide=True)


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


def _goodput_distribution(suite: Suite, entries: Sequence[Entry], titles: Sequence[str]) -> Spec:
    """RFC 7928 §2.7: the distribution of goodput per second, over all seconds and seeds."""
    rows = []
    for e in entries:
        samples = [x for key in e.measures.values if key.startswith("time:goodput:") for x in e.values(key)]
        if not samples:
            continue
        shares = [share for share in CURVE if share in (0.0, 1.0) or share * len(samples) >= 1]
        values = np.quantile(samples, shares, method="inverted_cdf")
        name = suite.title(e.cell.contestant)
        rows += [
            {"scheme": name, "x": 1e-6 * float(value), "y": share}
            for share, value in zip(shares, values, strict=True)
        ]
    return lines(rows, titles, x="goodput in a second (Mbit/s)", y="share of seconds", height=240)


def _trade_off(suite: Suite, entries: Sequence[Entry], titles: Sequence[str], group: str = "") -> Spec:
    """RFC 7928 §2.7: goodput over delay, of all flows or of one class of traffic."""
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


Point = tuple[float, float]


def ellipse(points: Sequence[Point], epsilon: float, corners: int = 48) -> list[Point]:
    """The contour that holds 1 − ε of the distribution's mass, as points around it; closed.

    With fewer than three points, or where they do not spread, there is none but the points' mean.

    >>> round = [(math.cos(a), math.sin(a)) for a in (0, math.pi / 2, math.pi, 3 * math.pi / 2)]
    >>> around = ellipse(round, 0.5)
    >>> {f"{math.hypot(*p):.3f}" for p in around}
    {'0.833'}
    """
    n = len(points)
    mx, my = (sum(p[i] for p in points) / n for i in (0, 1))
    if n < 3:
        return [(mx, my)]
    # Maximum likelihood: divided by n, not by n − 1.
    xx = sum((x - mx) ** 2 for x, _ in points) / n
    yy = sum((y - my) ** 2 for _, y in points) / n
    xy = sum((x - mx) * (y - my) for x, y in points) / n
    # Of two dimensions the mass within Mahalanobis distance r is 1 − exp(−r²/2).
    r = math.sqrt(-2 * math.log(epsilon))
    # The covariance is L Lᵀ, and L turns a circle into the ellipse.
    a = math.sqrt(xx)
    b = xy / a if a > 0 else 0.0
    c = math.sqrt(max(0.0, yy - b * b))
    turns = (2 * math.pi * k / corners for k in range(corners + 1))
    return [(mx + r * a * math.cos(t), my + r * (b * math.cos(t) + c * math.sin(t))) for t in turns]


_FILES = ("results.json", "measures.csv", "report.txt", "index.html")


def write(suite: Suite, out: Path) -> Path:
    """Write the page, its data and the experiment files to `<out>/<suite>`; return the page's path.

    Raises OSError where the disk refuses; an earlier report is then as it was.
    """
    folder = out / suite.plan.about.name
    data = json.dumps(suite.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    # All of it first: who is interrupted here keeps the earlier report whole.
    texts = (data, measures_csv(suite), as_text(suite) + "\n", render(suite))
    files = files_of(suite.plan.about, folder / "files")
    (folder / "files").mkdir(parents=True, exist_ok=True)
    replace_files(files | {folder / n: text.encode() for n, text in zip(_FILES, texts, strict=True)})
    write_overview(out)
    return folder / "index.html"


def earlier(out: Path, name: str) -> dict[str, Any] | None:
    """The inputs of a suite's report in `out`, as its `results.json` has them; None where there is none.

    Raises FolderInUse where its files would be written over files of something else.
    """
    check_overview(out)
    folder = out / name
    taken = [n for n in _FILES if (folder / n).exists()]
    if not taken:
        return None
    data = read_results(folder)
    if data is None or data.get("suite") != name:
        raise FolderInUse(
            f"{folder / taken[0]} would be written over, and {folder} is no report of the suite {name}:"
            " choose another place"
        )
    return data


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
            "files": suite.plan.about.texts(d),
            "charts": list(charts_of(suite, d, titles, charts)),
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
        "maps": [m | pair_figures(suite, definition, m["points"]) for m in maps(suite, definition)],
        "overview": overview(suite, definition),
        "published": beside,
        "sources": list({r["source"].id: r["source"] for r in beside}.values()),
    }
