"""The kinds of chart that reports use, as Vega-Lite specifications made with Altair.

Charts are as wide as the element that holds them and carry no colours of text or background: the page
sets those, for light and dark. Numbers are rounded to what a screen can show, which keeps pages small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

__all__ = ["COLOURS", "bars", "dots", "forest", "response", "spec", "trace"]

#: By scheme; told apart by people with any colour vision, on white and on black.
COLOURS = {"RIO": "#7d8797", "ARM": "#e08e0b", "ARD": "#2c7fd6", "Placebo": "#c25b9e"}
#: What the paper printed.
PAPER = "#d1495b"

Spec = dict[str, Any]


def spec(chart: Any) -> Spec:
    """Give a chart as the page embeds it: without the schema's address, so that no address is in the page."""
    made: Spec = chart.to_dict()
    made.pop("$schema", None)
    made.pop("config", None)
    return made


def _round(x: float, digits: int = 4) -> float:
    return float(f"{x:.{digits}g}")


def _colour(schemes: Sequence[str], **options: Any) -> alt.Color:
    scale = alt.Scale(domain=list(schemes), range=[COLOURS[s] for s in schemes])
    return alt.Color("scheme:N", scale=scale, **options)


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
    rules: Mapping[str, float] | None = None,
    height: int = 170,
) -> Spec:
    """Plot a quantity over time: one seed's line, the band of eight seeds in ten, named levels as rules."""
    rows = [
        {"t": _round(a, 5), "v": _round(b), "lo": _round(c), "hi": _round(d)}
        for a, b, c, d in zip(t, line, low, high, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("t:Q", title="time (s)", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(tickCount=6))
    )
    scale = alt.Scale(domain=[0, top], clamp=True)
    hover = alt.selection_point(fields=["t"], nearest=True, on="pointerover", empty=False, clear="pointerout")
    pan = alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    tips = [
        alt.Tooltip("t:Q", title="time (s)"),
        alt.Tooltip("v:Q", title=f"seed {seed} ({unit})"),
        alt.Tooltip("lo:Q", title=f"10 % of seeds below ({unit})"),
        alt.Tooltip("hi:Q", title=f"10 % of seeds above ({unit})"),
    ]
    band = base.mark_area(opacity=0.22, color=COLOURS[scheme], clip=True).encode(
        y=alt.Y("lo:Q", title=y, scale=scale, axis=alt.Axis(tickCount=4)), y2="hi:Q"
    )
    curve = base.mark_line(strokeWidth=1.4, color=COLOURS[scheme], clip=True).encode(
        y=alt.Y("v:Q", scale=scale)
    )
    point = (
        base.mark_point(filled=True, size=45, color=COLOURS[scheme])
        .encode(
            y=alt.Y("v:Q", scale=scale),
            opacity=alt.condition(hover, alt.value(1), alt.value(0)),
            tooltip=tips,
        )
        .add_params(hover)
    )
    layers = [band, curve.add_params(pan), point]
    for label, level in (rules or {}).items():
        data = alt.Data(values=[{"y": level, "label": label}])
        layers.insert(0, alt.Chart(data).mark_rule(strokeDash=[4, 3], color=PAPER).encode(y="y:Q"))
        layers.append(
            alt.Chart(data)
            .mark_text(align="right", baseline="bottom", dx=-3, dy=-2, fontSize=10, color=PAPER)
            .encode(y="y:Q", x=alt.value("width"), text="label:N")
        )
    return spec(alt.layer(*layers).properties(width="container", height=height))


def dots(
    rows: Sequence[Mapping[str, Any]],
    schemes: Sequence[str],
    *,
    x: str,
    paper: Mapping[str, float],
    domain: tuple[float, float],
    height: int = 40,
) -> Spec:
    """Every seed as a dot, the mean with its 95 % interval, the paper's value as a diamond; a line a scheme.

    `rows` have scheme, values, mean, lo and hi.
    """
    seeds, means = [], []
    for row in rows:
        for seed, value in zip(row["seeds"], row["values"], strict=True):
            # Spread by seed number, not at random: the same page for the same results.
            seeds.append(
                {"scheme": row["scheme"], "v": _round(value, 5), "seed": seed, "d": (seed * 7) % 11 - 5}
            )
        means.append({k: (v if k == "scheme" else _round(v, 5)) for k, v in row.items() if k in _MEAN})
    axis = alt.Y(
        "scheme:N", sort=list(schemes), title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=8)
    )
    scale = alt.Scale(domain=list(domain), nice=False, zero=False, clamp=True)
    value = alt.X("v:Q", title=x, scale=scale)
    cloud = (
        alt.Chart(alt.Data(values=seeds))
        .mark_circle(size=26, opacity=0.55)
        .encode(
            x=value,
            y=axis,
            yOffset=alt.YOffset("d:Q", scale=alt.Scale(domain=[-12, 12])),
            color=_colour(schemes, legend=None),
            tooltip=["scheme:N", alt.Tooltip("seed:Q"), alt.Tooltip("v:Q", title=x)],
        )
    )
    tips = [
        "scheme:N",
        alt.Tooltip("mean:Q"),
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]
    base = alt.Chart(alt.Data(values=means))
    interval = base.mark_rule(strokeWidth=3, opacity=0.9).encode(
        x=alt.X("lo:Q", scale=scale), x2="hi:Q", y=axis, color=_colour(schemes, legend=None), tooltip=tips
    )
    mean = base.mark_tick(thickness=3, size=26).encode(
        x=alt.X("mean:Q", scale=scale), y=axis, color=_colour(schemes, legend=None), tooltip=tips
    )
    layers = [cloud, interval, mean]
    printed = [{"scheme": s, "v": v} for s, v in paper.items()]
    if printed:
        layers.append(
            alt.Chart(alt.Data(values=printed))
            .mark_point(shape="diamond", size=130, strokeWidth=2, color=PAPER, filled=False)
            .encode(x=value, y=axis, tooltip=["scheme:N", alt.Tooltip("v:Q", title="the paper")])
        )
    return spec(alt.layer(*layers).properties(width="container", height=height * len(schemes)))


_MEAN = ("scheme", "mean", "lo", "hi")


def bars(rows: Sequence[Mapping[str, Any]], schemes: Sequence[str], *, y: str, height: int = 190) -> Spec:
    """Plot grouped bars (`kind`: IN, total) with 95 % intervals and every seed as a dot.

    `rows` have kind, scheme, seeds, values, mean, lo and hi.
    """
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    means, seeds = [], []
    for row in rows:
        means.append(
            {k: (v if isinstance(v, str) else _round(v)) for k, v in row.items() if k in (*_MEAN, "kind")}
        )
        seeds += [
            {"kind": row["kind"], "scheme": row["scheme"], "seed": s, "v": _round(v)}
            for s, v in zip(row["seeds"], row["values"], strict=True)
        ]
    base = alt.Chart(alt.Data(values=means))
    place: dict[str, Any] = {
        "x": alt.X("kind:N", sort=kinds, title=None, axis=alt.Axis(labelAngle=0, ticks=False)),
        "xOffset": alt.XOffset("scheme:N", sort=list(schemes)),
    }
    tips = [
        "kind:N",
        "scheme:N",
        "mean:Q",
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]
    column = base.mark_bar(opacity=0.75).encode(
        **place,
        y=alt.Y("mean:Q", title=y, axis=alt.Axis(tickCount=5)),
        color=_colour(schemes, legend=alt.Legend(title=None, orient="top")),
        tooltip=tips,
    )
    cloud = (
        alt.Chart(alt.Data(values=seeds))
        .mark_circle(size=9, opacity=0.5, color="#56606f")
        .encode(**place, y="v:Q", tooltip=["scheme:N", "seed:Q", alt.Tooltip("v:Q", title=y)])
    )
    interval = base.mark_rule(strokeWidth=2).encode(**place, y="lo:Q", y2="hi:Q", tooltip=tips)
    return spec(alt.layer(column, cloud, interval).properties(width="container", height=height))


def forest(rows: Sequence[Mapping[str, Any]], *, x: str, height: int = 30) -> Spec:
    """Paired differences with their 95 % intervals; 0 is a line.

    `rows` have label, mean, lo, hi and scheme.
    """
    labels = [row["label"] for row in rows]
    data = alt.Data(
        values=[{k: (v if isinstance(v, str) else _round(v)) for k, v in row.items()} for row in rows]
    )
    axis = alt.Y("label:N", sort=labels, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=220))
    tips = ["label:N", "mean:Q", alt.Tooltip("lo:Q", title="95 % from"), alt.Tooltip("hi:Q", title="to")]
    colour = _colour([s for s in COLOURS if any(row["scheme"] == s for row in rows)], legend=None)
    base = alt.Chart(data)
    zero = (
        alt.Chart(alt.Data(values=[{"x": 0}])).mark_rule(strokeDash=[4, 3], color="#8a93a3").encode(x="x:Q")
    )
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("lo:Q", title=x, axis=alt.Axis(tickCount=5)), x2="hi:Q", y=axis, color=colour, tooltip=tips
    )
    mean = base.mark_point(filled=True, size=90).encode(x="mean:Q", y=axis, color=colour, tooltip=tips)
    return spec(alt.layer(zero, interval, mean).properties(width="container", height=height * len(rows)))


def response(
    rows: Sequence[Mapping[str, Any]],
    values: Sequence[str],
    schemes: Sequence[str],
    *,
    x: str,
    y: str,
    assumed: str | None = None,
    height: int = 170,
) -> Spec:
    """How a figure answers to a parameter: mean and 95 % interval at each value, a line a scheme.

    `rows` have value, scheme, mean, lo and hi; `assumed` is the value the scenario file has.
    """
    data = alt.Data(
        values=[{k: (v if isinstance(v, str) else _round(v, 5)) for k, v in row.items()} for row in rows]
    )
    across = alt.X("value:O", sort=list(values), title=x, axis=alt.Axis(labelAngle=0, labelOverlap=False))
    scale = alt.Scale(zero=False, nice=True)
    colour = _colour(schemes, legend=alt.Legend(title=None, orient="top"))
    tips = [
        "value:O",
        "scheme:N",
        "mean:Q",
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]
    base = alt.Chart(data)
    line = base.mark_line(strokeWidth=1.6, opacity=0.7).encode(
        x=across, y=alt.Y("mean:Q", title=y, scale=scale, axis=alt.Axis(tickCount=4)), color=colour
    )
    interval = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        x=across, y="lo:Q", y2="hi:Q", color=colour
    )
    point = base.mark_point(filled=True, size=55).encode(x=across, y="mean:Q", color=colour, tooltip=tips)
    layers = [line, interval, point]
    if assumed in values:
        mark = alt.Data(values=[{"value": assumed}])
        layers.insert(
            0, alt.Chart(mark).mark_rule(strokeWidth=14, opacity=0.12, color=PAPER).encode(x=across)
        )
    return spec(alt.layer(*layers).properties(width="container", height=height))
