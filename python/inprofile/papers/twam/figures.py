"""Charts of paper E: a line a flow over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from ...charts.theme import DASHES, Spec, chart_of, fill, shape
from ...metrics.measures import Array

#: By contract, the two flows of a pair alike; told apart on white and on black, and without colour by dash.
COLOURS = ("#d08a1d", "#8f9a2a", "#2f9e7e", "#2c7fd6", "#8a63c9")


@shape
def _lines_shape(names: tuple[str, ...], y: str, height: int) -> Any:
    scale = alt.Scale(domain=list(names), range=list(COLOURS[: len(names)]))
    legend = alt.Legend(title=None, orient="top")
    dashes = alt.Scale(domain=list(names), range=[DASHES[i % len(DASHES)] for i in range(len(names))])
    time = alt.X("t:Q", title="time (s)", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(tickCount=6))
    value = alt.Y(
        "v:Q",
        title=y,
        scale=alt.Scale(domainMin=0, domainMax=alt.ExprRef("top"), nice=False, clamp=True),
        axis=alt.Axis(tickCount=4),
    )
    curves = (
        chart_of("lines")
        .mark_line(strokeWidth=1, opacity=0.85, clip=True)
        .encode(
            x=time,
            y=value,
            detail="flow:N",
            color=alt.Color("contract:N", scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("contract:N", scale=dashes, legend=legend),
            tooltip=[
                alt.Tooltip("flow:N"),
                alt.Tooltip("contract:N"),
                alt.Tooltip("t:Q"),
                alt.Tooltip("v:Q"),
            ],
        )
    )
    pan = alt.selection_interval(bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    return curves.add_params(pan).properties(width="container", height=height)


def lines(
    t: Array, flows: Mapping[str, Array], contracts: Sequence[str], *, y: str, top: float, height: int = 190
) -> Spec:
    """Plot one line a flow over time, colour and dash by contract; `contracts` has one a flow, in order."""
    rows = [
        {"flow": name, "contract": contract, "t": float(f"{a:.5g}"), "v": float(f"{b:.4g}")}
        for (name, values), contract in zip(flows.items(), contracts, strict=True)
        for a, b in zip(t, values, strict=True)
    ]
    return fill(
        _lines_shape(tuple(dict.fromkeys(contracts)), y, height), {"top": float(f"{top:.3g}")}, lines=rows
    )
