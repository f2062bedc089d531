"""A diagnosis drawn: data sent and lost over time, the token bucket's line, and below how full it was."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from ...charts.theme import PALETTE, themed
from ...metrics.quantity import quantity, scale
from .bucket import deficit
from .verdict import KINDS, Diagnosis

_POINTS = 800
_DROPS = 1500
_RED = "#a23e48"


def picture(found: Diagnosis, name: str) -> alt.VConcatChart:
    """Panels over time: cumulated data, and the bucket's tokens, or the delay where it is known."""
    sent = found.traffic
    data = np.cumsum(np.where(sent.passed, sent.size, 0)).astype(float)
    factor, unit = scale("B", float(data[-1]))
    rows = _thinned(len(data))
    lost = np.flatnonzero(sent.dropped)
    lost = lost[:: max(1, len(lost) // _DROPS)]
    lines: list[dict[str, Any]] = [
        {"t": _s(sent.time[i]), "y": _y(data[i] / factor), "what": "arrived"} for i in rows
    ]
    tokens = None
    if found.kind in ("policer", "either") and found.rate and found.burst:
        missing = deficit(sent.time, sent.size, sent.passed, found.rate / 8)
        tokens = np.clip(found.burst - missing, 0, None)
        most = data + tokens
        lines += [
            {"t": _s(sent.time[i]), "y": _y(most[i] / factor), "what": "most that the bucket passes"}
            for i in rows
        ]
    drops = [{"t": _s(sent.time[i]), "y": _y(data[i] / factor), "what": "lost"} for i in lost]
    title = (
        name
        if found.rate is None
        else f"{name}: {KINDS[found.kind].split(',')[0]}, {quantity(found.rate, 'bit/s')}"
    )
    upper = _panel(lines, drops, f"data ({unit})", title)
    if tokens is not None:
        factor, unit = scale("B", float(found.burst or 1.0))
        fill = [{"t": _s(sent.time[i]), "y": _y(tokens[i] / factor), "what": "tokens"} for i in rows]
        at = [{"t": _s(sent.time[i]), "y": _y(tokens[i] / factor), "what": "lost"} for i in lost]
        lower = [_panel(fill, at, f"tokens ({unit})", "")]
    else:
        known = np.flatnonzero(np.isfinite(sent.delay))
        known = known[_thinned(len(known))]
        waits = [{"t": _s(sent.time[i]), "y": _y(1e3 * sent.delay[i]), "what": "delay"} for i in known]
        lower = [_panel(waits, [], "delay above the least (ms)", "")] if waits else []
    made: alt.VConcatChart = themed(alt.vconcat(upper, *lower).resolve_scale(color="independent"))
    return made


def _thinned(count: int) -> Any:
    return (
        np.unique(np.linspace(0, max(0, count - 1), min(count, _POINTS)).astype(int))
        if count
        else np.empty(0, int)
    )


def _s(value: float) -> float:
    return round(float(value), 5)


def _y(value: float) -> float:
    return float(f"{value:.6g}")


def _panel(lines: list[dict[str, Any]], drops: list[dict[str, Any]], y: str, title: str) -> alt.LayerChart:
    names = list(dict.fromkeys(row["what"] for row in [*lines, *drops]))
    colours = [_RED if name == "lost" else PALETTE[i] for i, name in enumerate(names)]
    colour = alt.Color("what:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours))
    along = alt.X("t:Q", title="time (s)", scale=alt.Scale(nice=False))
    up = alt.Y("y:Q", title=y)
    line = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=1.2).encode(x=along, y=up, color=colour)
    dots = alt.Chart(alt.Data(values=drops)).mark_point(filled=True, size=9, opacity=0.8)
    layers = [line, dots.encode(x=along, y=up, color=colour)] if drops else [line]
    return alt.LayerChart(layer=layers).properties(width=640, height=200, title=title)
