"""A WRED profile drawn: how often each colour is dropped or marked, over the queue's average length."""

from __future__ import annotations

from typing import Any

import altair as alt

from ...charts.theme import PALETTE, themed
from ...metrics.quantity import quantity
from .profile import Port, alike

__all__ = ["curves"]


def curves(port: Port, buffer: int, rate: float | None) -> alt.LayerChart:
    """Probability over average length in bytes, up to the buffer or twice the last threshold."""
    profile = port.profile
    end = 1.05 * max(profile.largest, min(buffer, 2 * profile.largest))
    rows: list[dict[str, Any]] = []
    lines = [(f"{name}, dropped", c, "dropped") for name, c in alike(profile.drop)]
    lines += [(f"{name}, marked", c, "marked") for name, c in alike(profile.mark)]
    for name, curve, kind in lines:
        points = [
            (0.0, 0.0),
            (curve.min_th, 0.0),
            (curve.max_th, curve.max_p),
            (curve.max_th, 1.0),
            (end, 1.0),
        ]
        rows += [
            {"line": name, "kind": kind, "bytes": x, "probability": y, "order": i}
            for i, (x, y) in enumerate(points)
        ]
    title = "average queue (bytes)"
    if rate:
        title += (
            f"; {quantity(buffer, 'B')} are {quantity(8 * buffer / rate, 's')} at {quantity(rate, 'bit/s')}"
        )
    order = [name for name, _, _ in lines]
    base = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2)
    drawn = base.encode(
        x=alt.X("bytes:Q", title=title, scale=alt.Scale(domain=[0, end], nice=False)),
        y=alt.Y("probability:Q", title="probability", scale=alt.Scale(domain=[0, 1])),
        order="order:O",
        color=alt.Color("line:N", sort=order, title=None, scale=alt.Scale(domain=order, range=PALETTE)),
        strokeDash=alt.StrokeDash("line:N", sort=order, title=None, scale=alt.Scale(domain=order)),
    )
    full = alt.Chart(alt.Data(values=[{"bytes": buffer}] if buffer <= end else []))
    rule = full.mark_rule(color="#888888", strokeDash=[2, 3]).encode(x="bytes:Q")
    return themed(alt.LayerChart(layer=[drawn, rule]).properties(title=profile.name))
