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
#: Size of its letters, and of those that are read on a phone, where a page as wide shows them smaller.
PRINTED, SHOWN = 8, 12


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


def svg(spec: Mapping[str, Any], width: int = WIDTH, letters: int = PRINTED) -> str:
    """A chart as SVG, so many points wide, with letters of this size."""
    import vl_convert

    made: str = vl_convert.vegalite_to_svg(_sized(spec, width, letters))
    return made


def _sized(spec: Mapping[str, Any], width: int, letters: int = PRINTED) -> dict[str, Any]:
    """The chart as wide as that, black on white, as a printer wants it."""
    sizes = {"labelFontSize": letters, "titleFontSize": letters + 1}
    config = {
        "background": "white",
        "font": "Helvetica, Arial, sans-serif",
        "view": {"stroke": None},
        "axis": {**sizes, "titleFontWeight": "normal", "gridColor": "#e4e4e4"},
        # Large letters leave room for two or three names side by side.
        "legend": {**sizes, "columns": 2 if letters > PRINTED else 0},
    }
    return {**spec, "width": width, "config": config}
