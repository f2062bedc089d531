"""Figures for a paper of what a folder holds: a result, a sweep, a comparison's or a suite's report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._input import read_file
from ..charts.paper import encoded
from ..charts.plot import NoSeries
from ..metrics.quantity import scale
from ..run.results import read
from ..run.storage import LARGEST_MANIFEST, MANIFEST, ResultError
from .compare.measure import MEASURES
from .suite.measure import per_cent, title, unit
from .sweep import read_sweep
from .sweep.figure import panels
from .sweep.plan import HEAD

KINDS = ("dots", "throughput", "queue", "cwnd", "tokens")
"""The figures of a result."""


class NoFigure(ValueError):
    """A folder that has no such figure; the text says which it has."""


@dataclass(frozen=True)
class Figure:
    """A figure, to be drawn by `charts.paper`."""

    name: str
    """For a file."""
    spec: Mapping[str, Any]


def figure(folder: str | Path, kind: str | None = None, metrics: Sequence[str] = (), at: str = "") -> Figure:
    """The figure of a folder.

    Of a result, `kind` is one of KINDS (default: dots) and `at` a monitored queue or flow, or a flow's figure
    or metric that dots show. Of a sweep, `metrics` along what was varied, a panel each. Of a comparison, a
    measure over queueing delay, and `at` the experiment; of a suite's report, a measure over mean queueing
    delay where one parameter is varied (RFC 7928 §4.3.1), and `at` the scenario.

    Raises NoFigure, ResultError, SweepError for a metric that no run has, NoSeries, OSError.
    """
    place = Path(folder)
    if (place / HEAD).exists():
        return _of_sweep(place, metrics)
    if (place / MANIFEST).exists():
        return _of_result(place, kind or "dots", metrics, at)
    for inner in (place, place / "compare"):
        if (inner / "results.json").exists():
            return _of_report(inner, metrics, at)
    raise NoFigure(
        f"{place} holds no result, sweep or report: give a folder that run --out, sweep --out, compare or"
        " suite has written"
    )


def _of_result(place: Path, kind: str, metrics: Sequence[str], at: str) -> Figure:
    if kind not in KINDS:
        raise NoFigure(f'there is no figure "{kind}" of a result: choose from {", ".join(KINDS)}')
    plots = read(place).plot
    try:
        if kind == "dots":
            what = metrics[0] if metrics else "throughput"
            return Figure(what, plots.dots(what).to_dict())
        drawn: Callable[..., Any] = getattr(plots, kind)
        return Figure(kind, drawn(at or None).to_dict())
    except NoSeries as error:
        raise NoFigure(str(error)) from None
    except KeyError as error:
        raise NoFigure(str(error.args[0])) from None


def _of_sweep(place: Path, metrics: Sequence[str]) -> Figure:
    found = read_sweep(place)
    made = [_curves(*one) for one in panels(found, metrics)]
    return Figure("-".join(metrics) or "sweep", made[0] if len(made) == 1 else {"hconcat": made})


Point = Mapping[str, Any]
"""Of a line: `x` or its interval, `y`, `lo` and `hi`."""


def _curves(
    x: str, y: str, points: Sequence[Point], lines: Sequence[str], log: bool, words: bool
) -> dict[str, Any]:
    """Means with their intervals along `x`, a line each; unjoined where `x` is words."""
    look = encoded(lines)
    across: dict[str, Any] = {"field": "x", "title": x}
    if words:
        across |= {"type": "nominal", "sort": None, "axis": {"labelAngle": 0}}
    else:
        kind = {"type": "log"} if log else {"zero": False}
        across |= {
            "type": "quantitative",
            "scale": {**kind, "nice": False, "padding": 6},
            "axis": {"tickCount": 5},
        }
    base: dict[str, Any] = {"x": across, "color": look["color"]}
    if words and len(lines) > 1:
        base["xOffset"] = {"field": "line", "sort": list(lines)}
    up = {
        "field": "y",
        "type": "quantitative",
        "title": y,
        "scale": {"zero": False},
        "axis": {"tickCount": 5},
    }
    marks = {k: look[k] for k in ("shape",) if k in look}
    dash = {k: look[k] for k in ("strokeDash",) if k in look}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "strokeWidth": 0.8},
            "encoding": {**base, "y": {**up, "field": "lo"}, "y2": {"field": "hi"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 16, "opacity": 1},
            "encoding": {**base, "y": up, **marks},
        },
    ]
    if not words:
        layers.insert(0, {"mark": "line", "encoding": {**base, "y": up, **dash}})
    return {"data": {"values": [dict(p) for p in points]}, "layer": layers}


def _of_report(place: Path, metrics: Sequence[str], at: str) -> Figure:
    try:
        data = json.loads(read_file(place / "results.json", LARGEST_MANIFEST))
        if "studies" in data:
            return _of_comparison(data, metrics, at)
        if "suite" in data:
            return _of_suite(data, metrics, at)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ResultError(f"{place / 'results.json'} is no report that can be read: {error}") from None
    raise NoFigure(f"{place} has the report of another command: compare and suite have figures")


def _of_comparison(data: Mapping[str, Any], metrics: Sequence[str], at: str) -> Figure:
    def named(study: Mapping[str, Any]) -> str:
        return "-".join(part for part in (study["experiment"], study["tcp"]) if part)

    study = _chosen(data["studies"], named, at)
    rows = study["frontiers"]
    name = metrics[0] if metrics else ("kept" if any("kept" in r for r in rows) else "fairness")
    there = [m for m in MEASURES if any(m in r for r in rows)]
    if name not in there:
        raise NoFigure(f'{named(study)} has no measure "{name}": choose from {", ".join(there)}')
    titles = {s["id"]: s["title"] for s in data["schemes"]}
    factor, word = (0.01, " (%)") if MEASURES[name].percent else (1.0, "")
    points = [
        {
            **_around("x", r["delay"], 1e-3),
            **_around("y", r[name], factor),
            "line": titles[r["scheme"]],
            "order": r["t"],
        }
        for r in rows
        if name in r
    ]
    return Figure(
        f"{named(study)}-{name}", _frontier("mean queueing delay (ms)", MEASURES[name].title + word, points)
    )


def _of_suite(data: Mapping[str, Any], metrics: Sequence[str], at: str) -> Figure:
    at = next((str(s["id"]) for s in data["scenarios"] if at == s["section"]), at) or "targets"
    scenario = _chosen(data["scenarios"], lambda s: str(s["id"]), at)
    there = [m for m in scenario["measures"] if m != "delay_mean"]
    name = metrics[0] if metrics else next((m for m in there if m == "goodput"), "")
    if name not in there or not any("delay_mean" in r["figures"] for r in scenario["results"]):
        raise NoFigure(
            f'{scenario["id"]} has no "{name}" over mean queueing delay: choose from {", ".join(there)}'
        )
    titles = {c["id"]: c["title"] for c in data["contestants"]}
    rows = [r for r in scenario["results"] if name in r["figures"] and "delay_mean" in r["figures"]]
    most = max(abs(r["figures"][name]["mean"]) for r in rows)
    factor, word = (0.01, "%") if per_cent(name) else scale(unit(name), most)
    points = [
        {
            **_around("x", r["figures"]["delay_mean"], 1e-3),
            **_around("y", r["figures"][name], factor),
            "line": titles[r["contestant"]],
            "order": float(r["variant"]) if scenario["id"] == "targets" else 0.0,
        }
        for r in rows
        if r["setting"] is None
    ]
    shown = f"{title(name)} ({word})" if word else title(name)
    return Figure(f"{scenario['id']}-{name}", _frontier("mean queueing delay (ms)", shown, points))


def _chosen(found: Sequence[Mapping[str, Any]], named: Callable[[Any], str], at: str) -> Mapping[str, Any]:
    names = [named(one) for one in found]
    if not found or (at and at not in names):
        raise NoFigure(
            f'there is no "{at}" in this report: choose from {", ".join(names) or "nothing"} by --at'
        )
    return found[names.index(at)] if at in names else found[0]


def _around(axis: str, figure: Mapping[str, Any], factor: float) -> dict[str, float]:
    mean, (lo, hi) = figure["mean"], figure["ci95"] or (None, None)
    ends = (mean if end is None else end for end in (lo, hi))
    return dict(zip((axis, f"{axis}_lo", f"{axis}_hi"), (v / factor for v in (mean, *ends)), strict=True))


def _frontier(x: str, y: str, points: Sequence[Point]) -> dict[str, Any]:
    """A measure over another: points of a line joined in their order, with both intervals."""
    lines = list(dict.fromkeys(str(p["line"]) for p in points))
    look = encoded(lines)

    def of(field: str, heading: str) -> dict[str, Any]:
        return {
            "field": field,
            "type": "quantitative",
            "title": heading,
            "scale": {"zero": False},
            "axis": {"tickCount": 5},
        }

    colour = {"color": look["color"]}
    marks, dash = ({k: look[k] for k in (of_,) if k in look} for of_ in ("shape", "strokeDash"))
    rule = {"type": "rule", "strokeWidth": 0.7, "opacity": 0.6}
    return {
        "data": {"values": [dict(p) for p in points]},
        "layer": [
            {
                "mark": "line",
                "encoding": {
                    "x": of("x", x),
                    "y": of("y", y),
                    "order": {"field": "order", "type": "quantitative"},
                    **colour,
                    **dash,
                },
            },
            {
                "mark": rule,
                "encoding": {"x": of("x_lo", x), "x2": {"field": "x_hi"}, "y": of("y", y), **colour},
            },
            {
                "mark": rule,
                "encoding": {"x": of("x", x), "y": of("y_lo", y), "y2": {"field": "y_hi"}, **colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 16, "opacity": 1},
                "encoding": {"x": of("x", x), "y": of("y", y), **colour, **marks},
            },
        ],
    }
