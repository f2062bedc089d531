"""How every figure looks, without a change to how anybody else's charts do.

Altair's theme is one for the whole process, so ours is enabled only while a chart of ours is made into text.
In a notebook a chart of ours is an SVG picture: it needs no network and is kept with the notebook.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import altair as alt

PALETTE = ["#2f5d8a", "#d1752a", "#0b7a75", "#a23e48", "#6d597a", "#8a8d3a", "#4aa3c7", "#8c5a3c"]
"""Colours of lines, in order."""
INK, _FAINT = "#22303c", "#d9dee3"
_NAME = "inprofile"

C = TypeVar("C", bound=alt.TopLevelMixin)


@alt.theme.register(_NAME, enable=False)
def _theme() -> alt.theme.ThemeConfig:
    """Quiet axes, the data in front."""
    font = "Inter, 'Helvetica Neue', Arial, sans-serif"
    return {
        "background": "white",
        "config": {
            "font": font,
            "view": {"continuousWidth": 480, "continuousHeight": 260, "discreteHeight": 260, "stroke": None},
            "title": {"color": INK, "fontSize": 14, "anchor": "start", "fontWeight": 600, "offset": 12},
            "axis": {
                "labelColor": INK,
                "titleColor": INK,
                "labelFontSize": 11,
                "titleFontSize": 12,
                "titleFontWeight": 400,
                "gridColor": _FAINT,
                "domainColor": _FAINT,
                "tickColor": _FAINT,
            },
            "axisX": {"grid": False},
            "legend": {"labelColor": INK, "titleColor": INK, "titleFontWeight": 400, "orient": "top"},
            "range": {"category": PALETTE},
            "line": {"strokeWidth": 1.4},
        },
    }


def themed(chart: C) -> C:
    """The same chart, which keeps its look however it is changed, saved, shown, or put beside others."""
    # Altair's charts take what is assigned to them for a part of the chart.
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _class(kind))
    return chart


@cache
def _class(of: Any) -> Any:
    return of if issubclass(of, _Themed) else type(of.__name__, (_Themed, of), {"__module__": of.__module__})


class _Themed:
    """The preamble of a kind of chart."""

    def to_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        with alt.theme.enable(_NAME):
            made: dict[str, Any] = super().to_dict(*args, **kwargs)  # type: ignore[misc]
        return made

    def _repr_mimebundle_(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """An SVG picture: Altair's own answer loads Vega from a server."""
        import vl_convert

        return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_dict()), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"inprofile figure ({type(self).__name__}): shown as a picture in a notebook, or .save(FILE)"

    def __or__(self, other: Any) -> Any:
        return themed(super().__or__(other))  # type: ignore[misc]

    def __and__(self, other: Any) -> Any:
        return themed(super().__and__(other))  # type: ignore[misc]

    def __add__(self, other: Any) -> Any:
        return themed(super().__add__(other))  # type: ignore[misc]
