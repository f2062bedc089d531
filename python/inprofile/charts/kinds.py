"""The kinds of chart that reports use, as Vega-Lite specifications made with Altair.

A chart is a *shape*, made once by Altair and shared by all charts of its kind, and *data* put in afterwards:
Altair checks, copies and hashes whatever it holds, which for a page of two hundred charts takes a minute.
The tests compile every kind of chart instead.

Charts are as wide as the element that holds them and carry no colours of text or background: the page
sets those, for light and dark. Numbers are rounded to what a screen can show, which keeps pages small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from ..metrics.stats import FREE, Bounds, estimate
from .theme import (
    PAPER,
    Rows,
    Spec,
    chart_of,
    colour_of,
    fill,
    rounded,
    scheme_colour,
    scheme_dash,
    scheme_mark,
    shape,
    short,
    tips_of_mean,
)


@shape
def _trace_shape(scheme: str, y: str, unit: str, seed: int, height: int, levels: bool) -> Any:
    colour = colour_of([scheme])[0]
    scale = alt.Scale(domainMin=0, domainMax=alt.ExprRef("top"), nice=False, clamp=True)
    time = alt.X("t:Q", title="time (s)", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(tickCount=6))
    value = alt.Y("v:Q", title=y, scale=scale, axis=alt.Axis(tickCount=4))
    hover = alt.selection_point(fields=["t"], nearest=True, on="pointerover", empty=False, clear="pointerout")
    pan = alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    tips = [
        alt.Tooltip("t:Q", title="time (s)"),
        alt.Tooltip("v:Q", title=f"seed {seed} ({unit})"),
        alt.Tooltip("lo:Q", title=f"10 % of seeds below ({unit})"),
        alt.Tooltip("hi:Q", title=f"10 % of seeds above ({unit})"),
    ]
    base = chart_of("trace").encode(x=time)
    band = base.mark_area(opacity=0.22, color=colour, clip=True).encode(
        y=alt.Y("lo:Q", title=y, scale=scale, axis=alt.Axis(tickCount=4)), y2=alt.Y2("hi:Q")
    )
    line = base.mark_line(strokeWidth=1.4, color=colour, clip=True).encode(y=value).add_params(pan)
    point = (
        base.mark_point(filled=True, size=45, color=colour)
        .encode(y=value, opacity=alt.condition(hover, alt.value(1), alt.value(0)), tooltip=tips)
        .add_params(hover)
    )
    level = chart_of("rules").mark_rule(strokeDash=[4, 3], color=PAPER).encode(y=alt.Y("y:Q", scale=scale))
    # Without data for it this layer would make Vega complain of an empty scale.
    layers = [level, band, line, point] if levels else [band, line, point]
    return alt.layer(*layers).properties(width="container", height=height)


def trace(
    t: Iterable[float],
    line: Iterable[float],
    low: Iterable[float],
    high: Iterable[float],
    *,
    scheme: str,
    y: str,
    unit: str,
    top: float,
    seed: int,
    rules: Sequence[float] = (),
    height: int = 170,
) -> Spec:
    """Plot a quantity over time: one seed's line, the band of eight seeds in ten, levels as dashed rules."""
    rows = [
        {"t": short(a, 5), "v": short(b), "lo": short(c), "hi": short(d)}
        for a, b, c, d in zip(t, line, low, high, strict=True)
    ]
    levels = [{"y": level} for level in rules if level <= top]
    made = _trace_shape(scheme, y, unit, seed, height, bool(levels))
    return fill(made, {"top": short(top, 3)}, trace=rows, rules=levels)


@shape
def _dots_shape(schemes: tuple[str, ...], x: str, height: int, published: bool) -> Any:
    axis = alt.Axis(ticks=False, domain=False, labelPadding=8)
    line = alt.Y("scheme:N", sort=list(schemes), title=None, axis=axis)
    scale = alt.Scale(domainMin=alt.ExprRef("low"), domainMax=alt.ExprRef("high"), nice=False, zero=False)
    ticks = alt.Axis(tickCount=6)
    colour = scheme_colour(schemes)
    cloud = (
        chart_of("seeds")
        .mark_circle(size=26, opacity=0.55)
        .encode(
            x=alt.X("v:Q", title=x, scale=scale, axis=ticks),
            y=line,
            yOffset=alt.YOffset("d:Q", scale=alt.Scale(domain=[-12, 12])),
            color=colour,
            tooltip=[alt.Tooltip("scheme:N"), alt.Tooltip("seed:Q"), alt.Tooltip("v:Q", title=x)],
        )
    )
    tips = tips_of_mean(["scheme"])
    base = chart_of("means").encode(y=line, color=colour, tooltip=tips)
    interval = base.mark_rule(strokeWidth=3, opacity=0.9).encode(
        x=alt.X("lo:Q", title=x, scale=scale), x2=alt.X2("hi:Q")
    )
    mean = base.mark_tick(thickness=3, size=26).encode(x=alt.X("mean:Q", title=x, scale=scale))
    layers = [cloud, interval, mean]
    # A layer without data has no extent, and the browser's console would say so.
    if published:
        layers.append(
            chart_of("paper")
            .mark_point(shape="diamond", size=130, strokeWidth=2, color=PAPER, filled=False)
            .encode(
                x=alt.X("v:Q", title=x, scale=scale),
                y=line,
                tooltip=[alt.Tooltip("scheme:N"), alt.Tooltip("v:Q", title="the paper")],
            )
        )
    return alt.layer(*layers).properties(width="container", height=height * len(schemes))


def dots(
    rows: Rows,
    schemes: Sequence[str],
    *,
    x: str,
    paper: Mapping[str, float],
    domain: tuple[float, float],
    height: int = 40,
) -> Spec:
    """Plot every seed as a dot, the mean with its 95 % interval, the paper's value as a diamond.

    `rows` have scheme, seeds, values, mean, lo and hi; each scheme has a line.
    """
    seeds = [
        # Spread by the seed's number, not at random: the same page for the same results.
        {"scheme": row["scheme"], "v": short(value, 5), "seed": seed, "d": (seed * 7) % 11 - 5}
        for row in rows
        for seed, value in zip(row["seeds"], row["values"], strict=True)
    ]
    return fill(
        _dots_shape(tuple(schemes), x, height, bool(paper)),
        {"low": domain[0], "high": domain[1]},
        seeds=seeds,
        means=rounded(rows, ("scheme", "mean", "lo", "hi"), 5),
        paper=[{"scheme": s, "v": v} for s, v in paper.items()],
    )


@shape
def _bars_shape(
    kinds: tuple[str, ...], schemes: tuple[str, ...], x: str | None, y: str, height: int, floor: bool
) -> Any:
    across = alt.X("kind:N", sort=list(kinds), title=x, axis=alt.Axis(labelAngle=0, ticks=False))
    offset = alt.XOffset("scheme:N", sort=list(schemes))
    # Few seeds make intervals that reach below 0, where such a quantity cannot be.
    scale = alt.Scale(domainMin=0, nice=True) if floor else alt.Scale()
    tips = tips_of_mean(["kind", "scheme"])
    base = chart_of("means").encode(x=across, xOffset=offset, tooltip=tips)
    column = base.mark_bar(opacity=0.75, stroke="#2f3640", strokeWidth=1.2).encode(
        y=alt.Y("mean:Q", title=y, scale=scale, axis=alt.Axis(tickCount=5)),
        color=scheme_colour(schemes, legend=True),
        # Columns differ by the dash of their outline.
        strokeDash=scheme_dash(schemes, legend=True),
    )
    cloud = (
        chart_of("seeds")
        .mark_circle(size=9, opacity=0.5, color="#56606f")
        .encode(
            x=across,
            xOffset=offset,
            y=alt.Y("v:Q", title=y, scale=scale),
            tooltip=[alt.Tooltip("scheme:N"), alt.Tooltip("seed:Q"), alt.Tooltip("v:Q", title=y)],
        )
    )
    interval = base.mark_rule(strokeWidth=2, color="#808a99", clip=True).encode(
        y=alt.Y("lo:Q", title=y, scale=scale), y2=alt.Y2("hi:Q")
    )
    return alt.layer(column, cloud, interval).properties(width="container", height=height)


def row(
    scheme: str, values: Iterable[float], seeds: Iterable[int] = (), bounds: Bounds = FREE, **more: Any
) -> dict[str, Any]:
    """Make a row of a chart: every seed's value, their mean and its 95 % interval, inside `bounds`.

    >>> made = row("RIO", [1.0, 3.0], [1, 2], kind="IN")
    >>> made["kind"], made["mean"], made["values"], made["seeds"]
    ('IN', 2.0, [1.0, 3.0], [1, 2])
    """
    own = [float(v) for v in values]
    e = estimate(own, bounds)
    lo, hi = e.ci95 or (e.mean, e.mean)
    return {"scheme": scheme, "seeds": list(seeds), "values": own, "mean": e.mean, "lo": lo, "hi": hi, **more}


def bars(rows: Rows, schemes: Sequence[str], *, x: str | None = None, y: str, height: int = 190) -> Spec:
    """Plot grouped bars (`kind`: IN, total) with 95 % intervals and every seed as a dot.

    `rows` have kind, scheme, seeds, values, mean, lo and hi; `x` says what a kind is where it doesn't
    itself. The axis starts at 0 where no value is negative.
    """
    kinds = tuple(dict.fromkeys(row["kind"] for row in rows))
    seeds = [
        {"kind": row["kind"], "scheme": row["scheme"], "seed": seed, "v": short(value)}
        for row in rows
        for seed, value in zip(row["seeds"], row["values"], strict=True)
    ]
    means = rounded(rows, ("kind", "scheme", "mean", "lo", "hi"))
    floor = all(value >= 0 for row in rows for value in row["values"])
    return fill(_bars_shape(kinds, tuple(schemes), x, y, height, floor), means=means, seeds=seeds)


@shape
def _forest_shape(labels: tuple[str, ...], schemes: tuple[str, ...], x: str, height: int) -> Any:
    axis = alt.Axis(ticks=False, domain=False, labelLimit=220)
    line = alt.Y("label:N", sort=list(labels), title=None, axis=axis)
    base = chart_of("rows").encode(y=line, color=scheme_colour(schemes), tooltip=tips_of_mean(["label"]))
    zero = chart_of("zero").mark_rule(strokeDash=[4, 3], color="#8a93a3").encode(x=alt.X("x:Q", title=x))
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("lo:Q", title=x, axis=alt.Axis(tickCount=5), scale=alt.Scale(padding=10)), x2=alt.X2("hi:Q")
    )
    mean = base.mark_point(filled=True, size=90).encode(x=alt.X("mean:Q", title=x))
    return alt.layer(zero, interval, mean).properties(width="container", height=height * len(labels))


def forest(rows: Rows, *, x: str, height: int = 30) -> Spec:
    """Plot paired differences with their 95 % intervals; 0 is a line.

    `rows` have label, mean, lo, hi and scheme.
    """
    labels = tuple(row["label"] for row in rows)
    schemes = tuple(dict.fromkeys(row["scheme"] for row in rows))
    shown = rounded(rows, ("label", "scheme", "mean", "lo", "hi"))
    return fill(_forest_shape(labels, schemes, x, height), rows=shown, zero=[{"x": 0}])


@shape
def _response_shape(values: tuple[str, ...], schemes: tuple[str, ...], x: str, y: str, height: int) -> Any:
    axis = alt.Axis(labelAngle=0, labelOverlap=False)
    # The order is the scale's: layers with other data would bring their own.
    across = alt.X("value:O", sort=None, scale=alt.Scale(domain=list(values)), title=x, axis=axis)
    scale = alt.Scale(zero=False, nice=True)
    base = chart_of("rows").encode(x=across, color=scheme_colour(schemes, legend=True))
    line = base.mark_line(strokeWidth=1.6, opacity=0.7).encode(
        y=alt.Y("mean:Q", title=y, scale=scale, axis=alt.Axis(tickCount=4)),
        strokeDash=scheme_dash(schemes, legend=True),
    )
    interval = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        y=alt.Y("lo:Q", title=y, scale=scale), y2=alt.Y2("hi:Q")
    )
    point = base.mark_point(filled=True, size=55).encode(
        y=alt.Y("mean:Q", title=y, scale=scale),
        shape=scheme_mark(schemes, legend=True),
        tooltip=tips_of_mean(["value", "scheme"]),
    )
    mark = chart_of("assumed").mark_rule(strokeWidth=14, opacity=0.12, color=PAPER).encode(x=across)
    return alt.layer(mark, line, interval, point).properties(width="container", height=height)


def response(
    rows: Rows,
    values: Sequence[str],
    schemes: Sequence[str],
    *,
    x: str,
    y: str,
    assumed: str | None = None,
    height: int = 170,
) -> Spec:
    """Plot how a figure answers to a parameter: mean and 95 % interval at each value, a line a scheme.

    `rows` have value, scheme, mean, lo and hi; `assumed` is the value the scenario file has. A unit that all
    values share is written once, behind `x`.
    """
    bare, unit = _unit_apart(values)
    return fill(
        _response_shape(tuple(bare.values()), tuple(schemes), f"{x} ({unit})" if unit else x, y, height),
        rows=rounded(
            [{**r, "value": bare[r["value"]]} for r in rows], ("value", "scheme", "mean", "lo", "hi"), 5
        ),
        assumed=[{"value": bare[assumed]}] if assumed in bare else [],
    )


def _unit_apart(values: Sequence[str]) -> tuple[dict[str, str], str]:
    """Each value without the unit that all share, and that unit; as they are where they share none.

    >>> _unit_apart(["1 packets", "1.5 packets"]), _unit_apart(["ns2", "rfc"])
    (({'1 packets': '1', '1.5 packets': '1.5'}, 'packets'), ({'ns2': 'ns2', 'rfc': 'rfc'}, ''))
    """
    numbers = {value: value.partition(" ")[0] for value in values}
    units = {value.partition(" ")[2] for value in values}
    if len(units) > 1:
        return {value: value for value in values}, ""
    return numbers, units.pop()
