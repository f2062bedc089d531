"""Figures fit to print: each chart of a page as a file of its own, SVG or PDF."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["FORMATS", "svg", "write_figures"]

#: What figures can be written as.
FORMATS = ("svg", "pdf")
#: Width of a figure in points: a column of a two-column page.
WIDTH = 252
#: Black on white, as a printer wants it.
PRINT = {
    "background": "white",
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 8, "titleFontSize": 9, "titleFontWeight": "normal", "gridColor": "#e4e4e4"},
    "legend": {"labelFontSize": 8, "titleFontSize": 9},
}


def write_figures(charts: Mapping[str, Mapping[str, Any]], folder: Path, form: str) -> list[Path]:
    """Write every chart into `folder`, named as in the page. Raises `ValueError` for an unknown form."""
    import vl_convert

    if form not in FORMATS:
        raise ValueError(f"figures as {form!r}: choose from {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, spec in charts.items():
        path = folder / f"{re.sub(r'[^A-Za-z0-9.+-]+', '-', name).strip('-').lower()}.{form}"
        if form == "svg":
            path.write_text(svg(spec), encoding="utf-8")
        else:
            path.write_bytes(vl_convert.vegalite_to_pdf(_sized(spec, WIDTH)))
        written.append(path)
    return written


def svg(spec: Mapping[str, Any], width: int = WIDTH) -> str:
    """A chart as SVG, so many points wide."""
    import vl_convert

    made: str = vl_convert.vegalite_to_svg(_sized(spec, width))
    return made


def _sized(spec: Mapping[str, Any], width: int) -> dict[str, Any]:
    return {**spec, "width": width, "config": PRINT}
