"""The first figure of a sweep: metrics along what was varied, and the frontier of a gain and its cost.

Every point is a setting's mean with its 95 % interval; bounded measures have intervals inside their bounds.
The frontier has the settings that no other one beats in both: as much or more of the gain at as little or
less of the cost, by the means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import altair as alt

from ...charts.theme import PALETTE, themed
from ...metrics.quantity import number, scale
from ...run.storage import write_whole
from .axes import DEFAULT_METRICS, short_keys

if TYPE_CHECKING:
    from ...charts.plot import AnyChart

GAINS = (
    "goodput",
    "throughput",
    "fi",
    "utilisation",
    "completions",
    "contracts_kept",
    "all_contracts_kept",
    "assurance_worst",
    "best_effort",
)
"""Metrics of which more is better; of all others, less is."""
MOST_LINES = 8
"""With more combinations of the other axes, settings are points without lines."""
FILE = "sweep.svg"
_WIDTH, _HEIGHT, _ACROSS = 300, 200, 3


class Drawable(Protocol):
    """The interface of a finished sweep to draw: `result.Sweep` is one."""

    folder: Path
    head: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Its experiment's title."""

    @property
    def keys(self) -> Sequence[str]:
        """The axes varied."""

    @property
    def metrics(self) -> Sequence[str]:
        """All there are, by name."""

    def axis(self, key: str) -> tuple[list[Any], str]:
        """The values of a key by setting, and their unit."""

    def check_metrics(self, names: Sequence[str]) -> None:
        """Raise SweepError for a metric that no run has."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


def save(sweep: Drawable, metrics: Sequence[str] = ()) -> Path:
    """Draw the figure as SVG into the sweep's folder; return its path."""
    import vl_convert

    place = sweep.folder / FILE
    write_whole(place, vl_convert.vegalite_to_svg(figure(sweep, metrics).to_dict()).encode())
    return place


def figure(sweep: Drawable, metrics: Sequence[str] = ()) -> AnyChart:
    """The metrics along the longest axis, or along each where they have to stand alone; then the frontier.

    Raises SweepError for a metric that no run has.
    """
    sweep.check_metrics(metrics)
    shown = list(metrics) or [m for m in DEFAULT_METRICS if m in sweep.metrics]
    axes = _axes(sweep)
    along, apart = _arranged(sweep, axes)
    scales = {m: _scale(sweep, m) for m in shown}
    panels = [_response(sweep, axis, m, scales[m], apart) for m in shown for axis in along]
    pair = _pair(shown)
    if pair is not None:
        panels.append(_frontier(sweep, *pair, scales, apart))
    across = len(along) if len(along) > 1 else _ACROSS
    rows = [alt.hconcat(*panels[i : i + across]) for i in range(0, len(panels), across)]
    chart: AnyChart = alt.vconcat(*rows).properties(title=sweep.title)
    return themed(chart)


def panels(
    sweep: Drawable, metrics: Sequence[str] = ()
) -> Iterator[tuple[str, str, list[dict[str, Any]], list[str], bool, bool]]:
    """For a paper, by metric: titles of x and y, points, lines' names, whether x is on a log scale, or words.

    Along the longest axis. Raises SweepError for a metric that no run has.
    """
    sweep.check_metrics(metrics)
    (axis, *_), apart = _arranged(sweep, _axes(sweep))
    for metric in list(metrics) or [m for m in DEFAULT_METRICS if m in sweep.metrics][:1]:
        factor, title = _scale(sweep, metric)
        lines = apart or [""] * len(sweep)
        rows = [
            {**row, "x": axis.values[row["setting"]], "line": lines[row["setting"]]}
            for row in _points(sweep, metric, factor)
        ]
        yield axis.title, title, rows, list(dict.fromkeys(lines)), axis.log, not axis.numeric


@dataclass(frozen=True)
class _Axis:
    title: str
    values: Sequence[float] | Sequence[str]
    log: bool
    named: bool = False

    @property
    def numeric(self) -> bool:
        return not isinstance(self.values[0], str)

    @property
    def distinct(self) -> int:
        return len(set(self.values))

    def encoding(self) -> alt.X:
        """Along this axis."""
        if self.numeric:
            kind: Literal["log", "linear"] = "log" if self.log else "linear"
            return alt.X(
                "x:Q", title=self.title, scale=alt.Scale(type=kind, zero=False, nice=False, padding=8)
            )
        return alt.X("x:N", title=self.title, sort=None, axis=alt.Axis(labelAngle=0))


def _axes(sweep: Drawable) -> list[_Axis]:
    made = []
    for key, short, text in zip(sweep.keys, short_keys(sweep.keys), sweep.head["axes"], strict=True):
        values, unit = sweep.axis(key)
        if values and not isinstance(values[0], str):
            numbers = [float(v) for v in values]
            factor, name = scale(unit, max(map(abs, numbers)))
            title = f"{short} ({name})" if name else short
            log = " log" in text and min(numbers) > 0
            made.append(_Axis(title, [v / factor for v in numbers], log))
        else:
            named = key in sweep.head.get("names", ())
            made.append(_Axis(short, [str(v) for v in values], log=False, named=named))
    return made


def _arranged(sweep: Drawable, axes: Sequence[_Axis]) -> tuple[list[_Axis], list[str] | None]:
    """The axes along which panels are drawn, and the line that each setting is on, if there are lines."""
    varied = [axis for axis in axes if axis.distinct > 1] or list(axes[:1])
    longest = max(varied, key=lambda a: (a.numeric, a.distinct))
    others = [
        (a, s) for a, s in zip(axes, short_keys(sweep.keys), strict=True) if a in varied and a is not longest
    ]
    lines = [
        ", ".join(_value(axis, n) if axis.named else f"{short} {_value(axis, n)}" for axis, short in others)
        for n in range(len(sweep))
    ]
    if sweep.head["design"] == "grid" and len(set(lines)) <= MOST_LINES:
        return [longest], lines
    if sweep.head["design"] == "list":
        return [longest], [""] * len(sweep)
    return varied, None


def _value(axis: _Axis, setting: int) -> str:
    value = axis.values[setting]
    unit = axis.title.partition("(")[2].removesuffix(")")
    return value if isinstance(value, str) else f"{number(value)} {unit}".rstrip()


def _scale(sweep: Drawable, metric: str) -> tuple[float, str]:
    """The divisor of a metric's values, and the title of its axis."""
    found = [s.metrics[metric] for s in sweep if metric in s.metrics]
    unit = "" if found[0].unit == "1" else found[0].unit
    factor, name = scale(unit, max(abs(f.estimate.mean) for f in found))
    title = metric.replace("_", " ")
    return factor, f"{title} ({name})" if name else title


def _points(sweep: Drawable, metric: str, factor: float) -> list[dict[str, Any]]:
    """Mean and interval of each setting that has the metric; one seed has no interval."""
    rows = []
    for setting in sweep:
        if metric in setting.metrics:
            e = setting.metrics[metric].estimate
            lo, hi = e.ci95 or (e.mean, e.mean)
            rows.append(
                {
                    "setting": setting.number,
                    "y": e.mean / factor,
                    "lo": lo / factor,
                    "hi": hi / factor,
                    "seeds": e.n,
                }
            )
    return rows


def _colour(apart: Sequence[str] | None) -> dict[str, Any]:
    if apart is None or len(set(apart)) < 2:
        return {"color": alt.value(PALETTE[0])}
    names = list(dict.fromkeys(apart))
    domain = alt.Scale(domain=names, range=PALETTE[: len(names)])
    return {"color": alt.Color("line:N", title=None, scale=domain)}


def _response(
    sweep: Drawable, axis: _Axis, metric: str, scaled: tuple[float, str], apart: Sequence[str] | None
) -> AnyChart:
    factor, title = scaled
    rows = [
        {**row, "x": axis.values[row["setting"]], "line": "" if apart is None else apart[row["setting"]]}
        for row in _points(sweep, metric, factor)
    ]
    base = alt.Chart({"values": rows}).encode(x=axis.encoding(), **_colour(apart))
    y = alt.Y("y:Q", title=title, scale=alt.Scale(zero=False))
    layers = [
        base.mark_rule(opacity=0.6, strokeWidth=1.4).encode(y=alt.Y("lo:Q", title=title), y2="hi:Q"),
        base.mark_circle(size=30).encode(y=y, tooltip=["setting:Q", "y:Q", "lo:Q", "hi:Q", "seeds:Q"]),
    ]
    if apart is not None and axis.numeric:
        layers.insert(0, base.mark_line().encode(y=y, detail="line:N"))
    made: AnyChart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)
    return made


def _pair(metrics: Sequence[str]) -> tuple[str, str] | None:
    """The first gain and the first cost that are shown."""
    gain = next((m for m in metrics if m in GAINS), None)
    cost = next((m for m in metrics if m not in GAINS), None)
    return None if gain is None or cost is None else (gain, cost)


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which points, gain and cost each, no other one beats; by rising cost.

    >>> frontier([(1.0, 1.0), (3.0, 2.0), (2.0, 2.0), (2.0, 3.0)])
    [0, 1]
    """
    order = sorted(range(len(points)), key=lambda i: (points[i][1], -points[i][0]))
    best: list[int] = []
    for i in order:
        if not best or points[i][0] > points[best[-1]][0]:
            best.append(i)
    return best


def _frontier(
    sweep: Drawable,
    gain: str,
    cost: str,
    scales: Mapping[str, tuple[float, str]],
    apart: Sequence[str] | None,
) -> AnyChart:
    across = {row["setting"]: row for row in _points(sweep, cost, scales[cost][0])}
    rows = []
    for row in _points(sweep, gain, scales[gain][0]):
        if (other := across.get(row["setting"])) is not None:
            line = "" if apart is None else apart[row["setting"]]
            rows.append({**row, "x": other["y"], "from": other["lo"], "to": other["hi"], "line": line})
    best = [rows[i] for i in frontier([(row["y"], row["x"]) for row in rows])]
    base = alt.Chart({"values": rows}).encode(**_colour(apart))
    x = alt.X("x:Q", title=scales[cost][1], scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", title=scales[gain][1], scale=alt.Scale(zero=False))
    made: AnyChart = alt.layer(
        base.mark_rule(opacity=0.6).encode(x=x, y=alt.Y("lo:Q"), y2="hi:Q"),
        base.mark_rule(opacity=0.6).encode(x=alt.X("from:Q"), x2="to:Q", y=y),
        base.mark_circle(size=36).encode(x=x, y=y, tooltip=["setting:Q", "x:Q", "y:Q"]),
        alt.Chart({"values": best})
        .mark_line(interpolate="step-after", color="#22303c", strokeDash=[5, 3])
        .encode(x=x, y=y, order="x:Q"),
    ).properties(width=_WIDTH, height=_HEIGHT, title=f"Frontier of {gain} and {cost}".replace("_", " "))
    return made
