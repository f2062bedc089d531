"""Figures for a paper: as wide as one column or as both, fonts embedded, the same bytes each time.

A chart's own title is left to the caption. Lines and points differ in dash and mark besides their colour.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .theme import DASHES, INK, MARKS, PALETTE

WIDTHS: Mapping[str, float] = {"one": 3.5, "two": 7.16}
"""Inches of one column and of both, as IEEE's two-column pages have them; ACM's are 3.33 and 7."""
_POINTS = 72
#: A panel's height beside its width, and its least width, both of what lies within the axes.
_SHAPE, _LEAST = 0.62, 60
# The font comes with vl-convert: the same on every machine, and free to be embedded.
_CONFIG: Mapping[str, Any] = {
    "background": "white",
    "font": "Liberation Sans",
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "labelFontSize": 7, "titleFontSize": 8,
        "titleFontWeight": "normal", "gridColor": "#d9dee3", "domainColor": INK, "tickColor": INK,
        "tickSize": 3, "titlePadding": 4, "labelLimit": 120, "gridWidth": 0.5, "domainWidth": 0.5,
        "tickWidth": 0.5,
    },
    "axisX": {"grid": False},
    "legend": {
        "labelColor": INK, "titleColor": INK, "labelFontSize": 7, "titleFontSize": 7, "orient": "top",
        "symbolSize": 30, "symbolStrokeWidth": 0, "titleFontWeight": "normal", "rowPadding": 1,
        "columnPadding": 6, "labelLimit": 220, "offset": 4,
    },
    "header": {"labelFontSize": 7, "titleFontSize": 8},
    "title": {"fontSize": 8, "fontWeight": "normal", "color": INK, "offset": 4},
    "range": {"category": PALETTE},
    "line": {"strokeWidth": 1},
}  # fmt: skip


class TooNarrow(ValueError):
    """A figure that does not fit the width; the text says what to do."""


def encoded(names: Sequence[str], field: str = "line") -> dict[str, Any]:
    """Colour, dash and mark of lines of these names, in this order; one colour where there is one."""
    if len(names) < 2:
        return {"color": {"value": PALETTE[0]}}
    domain = list(names)

    def channel(values: Sequence[Any]) -> dict[str, Any]:
        chosen = [values[i % len(values)] for i in range(len(domain))]
        return {
            "field": field,
            "type": "nominal",
            "sort": None,
            "scale": {"domain": domain, "range": chosen},
            "legend": {"title": None},
        }

    # A legend's marks are drawn with the dash of their line, which spoils them.
    dash = {**channel(DASHES), "legend": None}
    return {"color": channel(PALETTE), "strokeDash": dash, "shape": channel(MARKS)}


def pdf(spec: Mapping[str, Any], width: float, height: float | None = None) -> bytes:
    """A Vega-Lite figure as a PDF of this width in inches; `height` is of each panel, default: by its width.

    Raises TooNarrow.
    """
    import vl_convert

    return _sorted(vl_convert.svg_to_pdf(svg(spec, width, height)))


def svg(spec: Mapping[str, Any], width: float, height: float | None = None) -> str:
    """The same as SVG, in points. Raises TooNarrow."""
    import vl_convert

    wanted = width * _POINTS
    for columns in (None, 4, 3, 2, 1):
        inner = wanted * 0.8
        made = ""
        for _ in range(8):
            fitted = _fitted(spec, inner, None if height is None else height * _POINTS, columns)
            made = vl_convert.vegalite_to_svg(fitted)
            over = _width(made) - wanted
            # A figure a little narrower than the column has white beside it; a wider one is made narrower.
            if -3 <= over <= 0:
                return _widened(made, wanted)
            inner -= over + 1
            if inner < _LEAST:
                break
    raise TooNarrow(
        f"this figure does not fit {width:g} in: its names are too long, or its panels too many;"
        " write --width two, fewer metrics, or shorter names"
    )


def _fitted(
    spec: Mapping[str, Any], inner: float, height: float | None, columns: int | None
) -> dict[str, Any]:
    made = _sized(copy.deepcopy(dict(spec)), inner, height)
    config = copy.deepcopy(dict(_CONFIG))
    if columns is not None:
        config["legend"]["columns"] = columns
    return {**made, "config": config}


def _sized(view: dict[str, Any], inner: float, height: float | None) -> dict[str, Any]:
    """Every panel of a view so wide that together they take `inner`."""
    view.pop("title", None)
    for kind in ("hconcat", "vconcat", "concat"):
        if kind in view:
            share = inner / len(view[kind]) if kind == "hconcat" else inner
            view[kind] = [_sized(one, share, height) for one in view[kind]]
            view.setdefault("spacing", 10)
            return view
    if "facet" in view:
        view["spec"] = _sized(view["spec"], inner, height or inner * _SHAPE / 2)
        return view
    for layer in view.get("layer", ()):
        layer.pop("width", None)
        layer.pop("height", None)
    view["width"] = round(inner, 2)
    view["height"] = round(height if height is not None else inner * _SHAPE, 2)
    return view


def _width(picture: str) -> float:
    found = re.search(r'<svg[^>]*? width="([0-9.]+)"', picture)
    if found is None:
        raise ArithmeticError("an SVG without a width; this is an error of ours")
    return float(found[1])


def _widened(picture: str, wanted: float) -> str:
    """The picture with white at its right, so that it is exactly as wide as a column."""
    found = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', picture)
    if found is None:
        raise ArithmeticError("an SVG without a view box; this is an error of ours")
    high = found[2]
    head, rest = picture.split(">", 1)
    head = re.sub(r' width="[^"]*"', f' width="{wanted:g}"', head)
    head = re.sub(r' height="[^"]*"', f' height="{high}"', head)
    head = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {wanted:g} {high}"', head)
    return f"{head}>{rest}"


_ENTRIES = re.compile(rb"(?:^ +/[A-Za-z]+\d+ \d+ 0 R\n){2,}", re.MULTILINE)


def _sorted(document: bytes) -> bytes:
    """The same PDF with the names of its resources in order: svg2pdf writes them as its hash table has them.

    Every line keeps its length, and so every object its place.
    """

    def in_order(found: re.Match[bytes]) -> bytes:
        return b"".join(sorted(found[0].splitlines(keepends=True)))

    return _ENTRIES.sub(in_order, document)
