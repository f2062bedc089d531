"""Still pictures of a page's charts: what is seen without scripts, and on paper before a chart was drawn.

The page replaces each by the chart itself. They are few and small: the first of a page, of those with little
data; the others are drawn by script alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

__all__ = ["Stills"]

#: At most so many in a page, each of at most so many rows of data and characters of SVG.
MOST, ROWS, SIZE = 16, 400, 60_000
#: Width in pixels of the chart's inside; the page scales the picture to the width it has.
WIDTH = 420
_LOOK = {
    "background": "white",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": 500, "gridColor": "#e4e4e4"},
    "legend": {"labelFontSize": 12, "labelLimit": 280, "orient": "top"},
}


class Stills:
    """Makes a page's still pictures, asked for one by one in the page's order."""

    def __init__(self, charts: Mapping[str, Mapping[str, Any]]) -> None:
        """`charts` by the names that the page asks for."""
        self._charts = charts
        self._made: dict[str, Markup] = {}

    def __call__(self, name: str) -> Markup:
        """Give the picture of this chart; empty where there is to be none."""
        if name not in self._made:
            self._made[name] = self._picture(name)
        return self._made[name]

    def _picture(self, name: str) -> Markup:
        spec = self._charts.get(name)
        if spec is None or sum(map(bool, self._made.values())) >= MOST:
            return Markup()
        if sum(len(rows) for rows in spec.get("datasets", {}).values()) > ROWS:
            return Markup()
        import vl_convert

        svg = vl_convert.vegalite_to_svg({**spec, "width": WIDTH, "config": _LOOK})
        # Inside a page an SVG needs no name of its language, and the page no addresses.
        svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
        svg = re.sub(r"(\d+\.\d\d)\d+", r"\1", svg)
        if len(svg) > SIZE or "://" in svg:
            return Markup()
        return Markup(svg.replace("<svg ", '<svg data-still="" aria-hidden="true" ', 1))  # noqa: S704 (made here)
