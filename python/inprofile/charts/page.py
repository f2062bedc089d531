"""The frame of a page: its templates, what every page has inside, and its charts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ..metrics.quantity import bracketed, quantity
from .stills import Stills

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
