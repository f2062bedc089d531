"""Curves over a quantity, and frontiers of two measured ones: means with intervals, a line a scheme.

Made like those of `kinds`: a shape once, data put in afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from .theme import PAPER, Spec, chart_of, fill, rounded, scheme_colour, scheme_dash, scheme_mark, shape

Rows = Sequence[Mapping[str, Any]]
#: For what is a few units for most and hundreds for some: linear up to about 5, then logarithmic.
WIDE = alt.Scale(type="symlog", constant=5, zero=True, nice=True)


def _scale(log: bool, zero: bool) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=True)


@shape
def _curve_shape(
    schemes: tuple[str, ...], x: str, y: str, log: tuple[bool, bool], zero: bool, printed: bool, height: int
) -> Any:
    across = alt.X("x:Q", title=x, scale=_scale(log[0], False), axis=alt.Axis(tickCount=6))
    scale = _scale(log[1], zero)
    base = chart_of("rows").encode(x=across, color=scheme_colour(schemes, legend=True))
    line = base.mark_line(strokeWidth=1.6, opacity=0.8).encode(
        y=alt.Y("mean:Q", title=y, scale=scale, axis=alt.Axis(tickCount=5)),
        strokeDash=scheme_dash(schemes, legend=True),
    )
    interval = base.mark_rule(strokeWidth=2.5, opacity=0.5).encode(
        y=alt.Y("lo:Q", title=y, scale=scale), y2=alt.Y2("hi:Q")
    )
    tips = [
        alt.Tooltip("scheme:N"),
        alt.Tooltip("x:Q", title=x),
        alt.Tooltip("mean:Q", title=y),
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]
    point = base.mark_point(filled=True, size=45).encode(
        y=alt.Y("mean:Q", title=y, scale=scale), shape=scheme_mark(schemes, legend=True), tooltip=tips
    )
    layers = [line, interval, point]
    if printed:
        layers.append(
            chart_of("paper")
            .mark_point(shape="diamond", size=110, strokeWidth=2, color=PAPER, filled=False)
            .encode(
                x=across,
                y=alt.Y("y:Q", title=y, scale=scale),
                tooltip=[alt.Tooltip("label:N"), alt.Tooltip("y:Q", title="the paper")],
            )
        )
    return alt.layer(*layers).properties(width="container", height=height)


def curve(
    rows: Rows,
    schemes: Sequence[str],
    *,
    x: str,
    y: str,
    paper: Rows = (),
    log: tuple[bool, bool] = (False, False),
    zero: bool = False,
    height: int = 220,
) -> Spec:
    """Plot how a measure depends on a quantity: mean and 95 % interval at each value, a line a scheme.

    `rows` have scheme, x, mean, lo and hi; `paper`, the paper's points, label, x and y. `log`: axes x and y.
    """
    made = _curve_shape(tuple(schemes), x, y, log, zero, bool(paper), height)
    data = {"rows": rounded(rows, ("scheme", "x", "mean", "lo", "hi"))}
    if paper:
        data["paper"] = rounded(paper, ("label", "x", "y"))
    return fill(made, None, **data)


@shape
def _frontier_shape(
    schemes: tuple[str, ...], x: str, y: str, log: tuple[bool, bool], legend: bool, height: int
) -> Any:
    scales = _scale(log[0], False), _scale(log[1], False)
    colour = scheme_colour(schemes, legend=legend)
    base = chart_of("rows").encode(color=colour, order="order:Q")
    along = alt.X("x:Q", title=x, scale=scales[0], axis=alt.Axis(tickCount=6))
    up = alt.Y("y:Q", title=y, scale=scales[1], axis=alt.Axis(tickCount=5))
    line = base.mark_line(strokeWidth=1.6, opacity=0.8).encode(
        x=along, y=up, strokeDash=scheme_dash(schemes, legend)
    )
    across = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        x=alt.X("x_lo:Q", title=x, scale=scales[0]), x2=alt.X2("x_hi:Q"), y=up
    )
    upright = base.mark_rule(strokeWidth=2, opacity=0.45).encode(
        x=along, y=alt.Y("y_lo:Q", title=y, scale=scales[1]), y2=alt.Y2("y_hi:Q")
    )
    tips = [
        alt.Tooltip("scheme:N"),
        alt.Tooltip("label:N", title="setting"),
        alt.Tooltip("x:Q", title=x),
        alt.Tooltip("y:Q", title=y),
    ]
    point = base.mark_point(filled=True, size=45).encode(
        x=along, y=up, shape=scheme_mark(schemes, legend), tooltip=tips
    )
    return alt.layer(line, across, upright, point).properties(width="container", height=height)


def frontier(
    rows: Rows,
    schemes: Sequence[str],
    *,
    x: str,
    y: str,
    log: tuple[bool, bool] = (False, False),
    legend: bool = True,
    height: int = 240,
) -> Spec:
    """Plot one measure against another: a point a setting with both intervals, joined by `order`.

    `rows` have scheme, label (the setting), order, x, x_lo, x_hi, y, y_lo and y_hi.
    """
    made = _frontier_shape(tuple(schemes), x, y, log, legend, height)
    keys = ("scheme", "label", "order", "x", "x_lo", "x_hi", "y", "y_lo", "y_hi")
    return fill(made, None, rows=rounded(rows, keys))


@shape
def _lines_shape(names: tuple[str, ...], x: str, y: str, height: int, wide: bool) -> Any:
    scale = WIDE if wide else alt.Scale(nice=False, zero=False)
    across = alt.X("x:Q", title=x, scale=scale, axis=alt.Axis(tickCount=6))
    up = alt.Y("y:Q", title=y, axis=alt.Axis(tickCount=5))
    tips = [alt.Tooltip("scheme:N", title="line"), alt.Tooltip("x:Q", title=x), alt.Tooltip("y:Q", title=y)]
    made = chart_of("rows").mark_line(strokeWidth=1.2, opacity=0.9)
    return made.encode(
        x=across,
        y=up,
        color=scheme_colour(names, legend=True),
        strokeDash=scheme_dash(names, legend=True),
        tooltip=tips,
    ).properties(width="container", height=height)


def lines(rows: Rows, names: Sequence[str], *, x: str, y: str, height: int = 190, wide: bool = False) -> Spec:
    """Plot several lines of one run, such as every flow's window: `rows` have scheme (the line), x and y.

    `wide` is for an x of which most is small: see `WIDE`.
    """
    return fill(
        _lines_shape(tuple(names), x, y, height, wide), None, rows=rounded(rows, ("scheme", "x", "y"))
    )
