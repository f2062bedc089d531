"""How every figure looks: its theme, and the elements shared by all charts of a kind.

Altair's theme is one for the whole process, so ours is enabled only while a chart of ours is made into text.
In a notebook a chart of ours is an SVG picture: it needs no network and is kept with the notebook.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ParamSpec, TypeVar

import altair as alt
from altair.utils.schemapi import debug_mode

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


#: By scheme; told apart by people with any colour vision, on white and on black.
COLOURS = {
    # What the papers compare with.
    "RIO": "#7d8797",
    "RED": "#7d8797",
    "WRED": "#7d8797",
    "All IN": "#7d8797",
    "TSW2CM + WRED": "#7d8797",
    "Drop-tail": "#2f3640",
    # What they propose.
    "ARM": "#e08e0b",
    "ARD": "#2c7fd6",
    "RI+O": "#2c7fd6",
    "Probe": "#2c7fd6",
    "FDD-RED": "#2c7fd6",
    "TWAM + DWRED": "#2c7fd6",
    # Controls and variations.
    "Placebo": "#c25b9e",
    "Theory": "#d1495b",
}
#: For lines that are no scheme of those: numbered settings, classes, flows.
CYCLE = (
    "#2c7fd6",
    "#e08e0b",
    "#2f9e77",
    "#c25b9e",
    "#7d8797",
    "#8a5cd1",
    "#b5651d",
    "#00a3b4",
    "#d1495b",
    "#6b8e23",
)
#: What the paper printed, and levels it names.
PAPER = "#d1495b"

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
P = ParamSpec("P")


def shape(make: Callable[P, Any]) -> Callable[P, Spec]:
    """Make each distinct shape once, without Altair's check of every value against its schema."""

    @functools.cache
    def cached(*args: Any) -> Spec:
        with debug_mode(False):
            made: Spec = make(*args).to_dict(validate=False)  # type: ignore[call-arg]
        # The schema's address: nothing needs it, and no address shall be in the page.
        made.pop("$schema", None)
        made.pop("config", None)
        return made

    return cached  # type: ignore[return-value]


def fill(made: Spec, numbers: Mapping[str, float] | None = None, **rows: Sequence[Mapping[str, Any]]) -> Spec:
    """A shape with its data, and with the numbers it refers to by name."""
    params = [*made.get("params", ()), *({"name": k, "value": v} for k, v in (numbers or {}).items())]
    return {**made, "params": params, "datasets": {name: list(found) for name, found in rows.items()}}


def short(x: float, digits: int = 4) -> float:
    """A number with as many digits as a screen can show."""
    return float(f"{x:.{digits}g}")


def rounded(rows: Rows, keys: Sequence[str], digits: int = 4) -> list[dict[str, Any]]:
    """These keys of every row, text as it is and numbers rounded."""
    return [{k: row[k] if isinstance(row[k], str) else short(row[k], digits) for k in keys} for row in rows]


def colour_of(lines: Sequence[str]) -> list[str]:
    """A colour for each line: the scheme's own, else the next of the cycle that none of the schemes has.

    Where schemes of several papers stand together, the first has the colour that they share.

    >>> colour_of(["RIO", "40 flows"]), colour_of(["ARD", "RI+O"])
    (['#7d8797', '#2c7fd6'], ['#2c7fd6', '#e08e0b'])
    """
    own: dict[str, str] = {}
    for line in lines:
        if line in COLOURS and COLOURS[line] not in own.values():
            own[line] = COLOURS[line]
    free = itertools.cycle([c for c in CYCLE if c not in own.values()] or CYCLE)
    return [own.get(line) or next(free) for line in lines]


def scheme_colour(schemes: Sequence[str], legend: bool = False) -> alt.Color:
    """Colour by scheme."""
    scale = alt.Scale(domain=list(schemes), range=colour_of(schemes))
    return alt.Color("scheme:N", scale=scale, legend=_legend(legend))


#: Dashes of lines and marks of points, in the order of a chart's schemes: told apart without colour. How many
#: there are of each has no common divisor, so that 56 lines differ.
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 3], [1, 3])
MARKS = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)


def _legend(shown: bool) -> alt.Legend | None:
    return alt.Legend(title=None, orient="top") if shown else None


def scheme_dash(schemes: Sequence[str], legend: bool = False) -> alt.StrokeDash:
    """Dash by scheme, in the legend of its colour."""
    dashes = [DASHES[i % len(DASHES)] for i in range(len(schemes))]
    return alt.StrokeDash(
        "scheme:N", scale=alt.Scale(domain=list(schemes), range=dashes), legend=_legend(legend)
    )


def scheme_mark(schemes: Sequence[str], legend: bool = False) -> alt.Shape:
    """Mark by scheme, in the legend of its colour."""
    marks = [MARKS[i % len(MARKS)] for i in range(len(schemes))]
    return alt.Shape("scheme:N", scale=alt.Scale(domain=list(schemes), range=marks), legend=_legend(legend))


def tips_of_mean(first: Sequence[str]) -> list[alt.Tooltip]:
    """Tooltips of a mean and its interval, after those named `first`."""
    named = [alt.Tooltip(f"{name}:N") for name in first]
    return [
        *named,
        alt.Tooltip("mean:Q"),
        alt.Tooltip("lo:Q", title="95 % from"),
        alt.Tooltip("hi:Q", title="to"),
    ]


def chart_of(name: str) -> alt.Chart:
    """A chart of the rows that will be put in by this name."""
    return alt.Chart(alt.NamedData(name=name))
