"""The frame of a page: its templates, what every page has inside, and its charts.

Charts as pictures: figures fit to print, each a file of its own, and stills within a page.

Still pictures of a page's charts: what is seen without scripts, and on paper before a chart was drawn. The
page replaces each by the chart itself. They are few and small: the first of a page, of those with little
data; the others are drawn by script alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..metrics.quantity import bracketed, quantity

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


#: At most so many in a page, each of at most so many rows of data and characters of SVG.
MOST, ROWS, SIZE = 16, 400, 60_000
#: Width in pixels of the chart's inside; the page scales the picture to the width it has.
INSIDE = 420
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

        svg = vl_convert.vegalite_to_svg({**spec, "width": INSIDE, "config": _LOOK})
        # Inside a page an SVG needs no name of its language, and the page no addresses.
        svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
        svg = re.sub(r"(\d+\.\d\d)\d+", r"\1", svg)
        if len(svg) > SIZE or "://" in svg:
            return Markup()
        return Markup(svg.replace("<svg ", '<svg data-still="" aria-hidden="true" ', 1))  # noqa: S704 (made here)


#: Vega-Lite specifications by the name the page calls them.
Charts = dict[str, Mapping[str, Any]]

_TEMPLATES = Path(__file__).parent / "templates"


def environment(*folders: Path, charts: Charts | None = None) -> jinja2.Environment:
    """Where templates are found: in `folders`, then among the common ones.

    Where a template asks for `still`, it gets a still picture of the chart of that name, if there is one.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(folder) for folder in (*folders, _TEMPLATES)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["figures"] = figure
    made.filters["bracketed"] = bracketed
    made.globals["still"] = Stills(charts or {})
    return made


def page_parts(charts: Charts) -> dict[str, Markup]:
    """The parts common to every page with charts: `base.html.j2` asks for it."""
    return {
        "css": Markup(asset("page.css")),  # noqa: S704 (our own file)
        "script": Markup(asset("page.js")),  # noqa: S704 (our own file)
        "vega": Markup(_vega()),  # noqa: S704 (a packaged library)
        "charts": _embedded(charts),
    }


def asset(name: str) -> str:
    """One of the files that every page has inside."""
    return (_TEMPLATES / name).read_text("utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and the embedder in one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _embedded(data: object) -> Markup:
    """JSON for a script element, where only `</` and `<!--` could end it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (escaped in this line)


def figure(value: float, unit: str = "", digits: int = 4) -> str:
    """A number with its unit, as the page writes it.

    >>> figure(0.78612), figure(494e3, "bit/s")
    ('0.7861', '494 kbit/s')
    """
    return quantity(value, unit, digits).replace("-", "−")
