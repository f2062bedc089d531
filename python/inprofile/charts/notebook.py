"""How results look in a notebook: tables in one style, and a picture; nothing of it needs a network."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plot import AnyChart

__all__ = ["styled"]

# Colours are the notebook's own: a dark one stays dark.
_STYLE = """<style>
.inprofile table{border-collapse:collapse;margin:0 0 .8em;font-variant-numeric:tabular-nums}
.inprofile th,.inprofile td{padding:.15em .7em;border:0;text-align:right;white-space:nowrap;background:none}
.inprofile th{border-bottom:1px solid;font-weight:600}
.inprofile th:first-child,.inprofile td:first-child{text-align:left}
.inprofile tbody tr:nth-child(even){background:rgba(127,127,127,.09)}
.inprofile img{max-width:100%;background:white}
</style>"""


def styled(tables: str, chart: AnyChart | None = None) -> str:
    """Tables, as HTML, in the style, and the chart's picture below them."""
    return f'{_STYLE}<div class="inprofile">{tables}{"" if chart is None else _picture(chart)}</div>'


def _picture(chart: AnyChart) -> str:
    """An image of its own: names within an SVG would mean those of another picture on the page."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{data}">'
