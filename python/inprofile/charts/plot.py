"""Figures of a result, as Vega-Altair charts with one look.

    result.plot.overview()                        # everything that was sampled
    result.plot.dots("throughput").save("dots.svg")

To put charts together, let each keep its colours: `(a | b).resolve_scale(color="independent")`.

Lines longer than a figure can show are thinned to their extremes, stretch by stretch: no peak is lost.

How results look in a notebook: tables in one style, and a picture; nothing of it needs a network.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import altair as alt

from ..metrics.stats import estimate
from ..metrics.summary import unit_of
from .theme import INK, PALETTE, themed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ..metrics.flow_figures import Runs

    Numbers = npt.NDArray[np.float64]
    Reduce = Callable[[Numbers, Numbers, int], tuple[Numbers, Numbers]]


IN = "#0b7a75"
"""The colour of what is in profile, in every figure."""
OUT = "#d1752a"
"""The colour of what is out of profile."""

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart
"""The figures: each can be shown, changed, put together with others and saved."""

_ROOM = 4_800


class NoSeries(LookupError):
    """The result has no samples of what a figure shows."""


class Plots:
    """Figures of one result; each method returns a chart that can be combined, changed and saved."""

    def __init__(self, result: Runs) -> None:
        """Of this result."""
        self._result = result

    def queue(self, queue: str | None = None, seed: int | None = None) -> AnyChart:
        """Packets waiting at a link (the first monitored), and the averages its discipline acts on.

        Raises NoSeries without `[[monitors]] queue = …`.
        """
        points = self._samples(("packets", "avg", "avg_in"), queue, seed, "queue").first()
        names = {"packets": "waiting", "avg": "average", "avg_in": "average of IN"}
        faint = points.only(("packets",))
        firm = points.only(("avg", "avg_in"))
        scale = alt.Scale(domain=[names[w] for w in points.whats()], range=_colours(points.whats()))
        layers = [
            alt.Chart(part.table(names))
            .mark_line(opacity=opacity, strokeWidth=width)
            .encode(
                x=alt.X("t:Q", title="time (s)"),
                y=alt.Y("value:Q", title="packets"),
                color=alt.Color("what:N", title=None, scale=scale),
            )
            for part, opacity, width in ((faint, 0.35, 1.0), (firm, 1.0, 1.8))
            if part
        ]
        chart: AnyChart = alt.layer(*layers).properties(title=f"Queue at {', '.join(points.monitors())}")
        return themed(chart)

    def cwnd(self, flows: Sequence[str] | str | None = None, seed: int | None = None) -> AnyChart:
        """Congestion windows in segments, one line a flow.

        Raises NoSeries without `[[monitors]] flows = …`.
        """
        points = self._samples(("cwnd",), flows, seed, "flows")
        return _lines(points.table(), "segments", "Congestion window", "monitor")

    def tokens(self, place: Sequence[str] | str | None = None, seed: int | None = None) -> AnyChart:
        """Tokens in markers' buckets, one line a marker.

        Raises NoSeries without `[[monitors]] flows = …` or `edge = …`.
        """
        points = self._samples(("tokens",), place, seed, "edge")
        return _lines(points.table(), "tokens", "Tokens in the bucket", "monitor")

    def throughput(self, at: Sequence[str] | str | None = None, seed: int | None = None) -> AnyChart:
        """Rates by colour over time at a queue, a flow or an edge, stacked; headers count.

        Raises NoSeries without a monitor there.
        """
        for kind in ("received", "sent", "arrived"):
            found = self._find((f"{kind}_in", f"{kind}_out"), at, seed)
            if found:
                break
        else:
            raise self._missing("rates by colour", "flows", at)
        rows = [
            {"t": t, "Mbit/s": v / 1e6, "colour": w.rpartition("_")[2].upper(), "monitor": m}
            for m, w, t, v in found.points(averaged)
        ]
        colours = alt.Scale(domain=["IN", "OUT"], range=[IN, OUT])
        chart: AnyChart = (
            alt.Chart({"values": rows})
            .mark_area(opacity=0.85)
            .encode(
                x=alt.X("t:Q", title="time (s)"),
                y=alt.Y("Mbit/s:Q", title="Mbit/s", stack="zero"),
                color=alt.Color("colour:N", title=None, scale=colours),
                order=alt.Order("colour:N"),
            )
        )
        title = f"Throughput by colour ({kind}, headers count)"
        if len(found.monitors()) > 1:
            chart = chart.properties(height=90).facet(row=alt.Row("monitor:N", title=None))
        titled: AnyChart = chart.properties(title=title)
        return themed(titled)

    def overview(self, seed: int | None = None) -> AnyChart:
        """Every seed's throughput, and of one seed whatever was sampled: queue, windows, tokens."""
        charts = [self.dots("throughput")]
        for figure in (self.queue, self.cwnd, self.tokens):
            with suppress(NoSeries):
                charts.append(figure(seed=seed))
        chart: AnyChart = alt.vconcat(*charts).resolve_scale(color="independent")
        return themed(chart)

    def dots(self, what: str = "throughput") -> AnyChart:
        """Every seed a dot, with the mean and its 95 % interval: a metric, or a figure of every flow.

        Where it is a flow's rate, its contract is a dashed line.

        Raises KeyError where there is neither.
        """
        rows, title, unit = self._per_seed(what)
        factor, unit = (1e6, "Mbit/s") if unit == "bit/s" else (1.0, "" if unit == "1" else unit)
        for row in rows:
            row["value"] /= factor
        x = alt.X("of:N", title=None, sort=None, axis=alt.Axis(labelAngle=0))
        y = alt.Y("value:Q", title=f"{title} ({unit})" if unit else title, scale=alt.Scale(zero=False))
        base = alt.Chart({"values": rows})
        known = alt.Chart({"values": _estimates(rows)})
        seeds = base.mark_circle(size=34, opacity=0.45, color=PALETTE[0]).encode(
            x=x,
            y=y,
            xOffset=alt.XOffset("shift:Q", scale=alt.Scale(domain=[-3, 3])),
            tooltip=["of:N", "seed:N", "value:Q"],
        )
        intervals = known.mark_rule(color=INK, strokeWidth=1.6).encode(x=x, y=alt.Y("lo:Q"), y2="hi:Q")
        means = known.mark_tick(color=INK, thickness=2, size=26).encode(x=x, y=alt.Y("mean:Q"))
        contracts = [{"of": of, "contract": rate / factor} for of, rate in self._contracts(what).items()]
        promised = (
            alt.Chart({"values": contracts})
            .mark_tick(color=OUT, thickness=2, size=40, strokeDash=[4, 2])
            .encode(x=x, y=alt.Y("contract:Q"), tooltip=["of:N", "contract:Q"])
        )
        layers = [seeds, intervals, means, *([promised] if contracts else [])]
        chart: AnyChart = alt.layer(*layers).properties(
            title=f"{title[:1].upper()}{title[1:]}, every seed a dot",
            width=max(120, 64 * len({r["of"] for r in rows})),
        )
        return themed(chart)

    def _contracts(self, what: str) -> dict[str, float]:
        """Flows' contracts in bit/s, where they are of the same kind as the figure."""
        flows = self._result.flows
        if what not in ("throughput", "goodput") or what not in flows.column_names:
            return {}
        pairs = zip(flows["flow"].to_pylist(), flows["contract"].to_pylist(), strict=True)
        return {flow: rate for flow, rate in pairs if rate is not None}

    def _per_seed(self, what: str) -> tuple[list[dict[str, Any]], str, str]:
        """Values by seed of a metric or of a column of the flows."""
        summary = self._result.summary()
        flows = self._result.flows
        if what in flows.column_names and what not in ("seed", "flow", "group"):
            names = zip(*(flows.column(c).to_pylist() for c in ("flow", "seed", what)), strict=True)
            found = [(flow, seed, value) for flow, seed, value in names if value is not None]
            unit = unit_of(what)
        elif what in summary:
            found = [(what, seed, value) for seed, value in summary[what].values.items()]
            unit = summary[what].unit
        else:
            raise KeyError(f"{what!r} is neither a metric ({', '.join(summary)}) nor a figure of flows")
        rows = [
            {"of": of, "seed": seed, "value": float(value), "shift": _shift(i)}
            for i, (of, seed, value) in enumerate(found)
        ]
        return rows, what.replace("_", " "), unit

    def _samples(
        self, whats: Sequence[str], at: Sequence[str] | str | None, seed: int | None, monitor: str
    ) -> Samples:
        found = self._find(whats, at, seed)
        if not found:
            raise self._missing(" or ".join(whats), monitor, at)
        return found

    def _find(self, whats: Sequence[str], at: Sequence[str] | str | None, seed: int | None) -> Samples:
        places = None if at is None else ((at,) if isinstance(at, str) else tuple(at))
        return Samples.of(self._result.series, whats, places, self._result.seeds[0] if seed is None else seed)

    def _missing(self, what: str, monitor: str, at: Sequence[str] | str | None = None) -> NoSeries:
        where = f" of {at}" if at else ""
        return NoSeries(
            f"this result has no samples of {what}{where}: add to the experiment\n"
            f'[[monitors]]\n{monitor} = "…"\nevery = "100 ms"'
        )


class Samples:
    """Sampled lines: by monitor and quantity, times and values."""

    def __init__(self, lines: Mapping[tuple[str, str], tuple[Numbers, Numbers]]) -> None:
        self._lines = lines

    @classmethod
    def of(cls, series: pa.Table, whats: Sequence[str], places: Sequence[str] | None, seed: int) -> Samples:
        """The samples of these quantities at these monitors (default: all), of one seed."""
        import pyarrow as pa
        import pyarrow.compute as pc

        keep = pc.and_(pc.equal(series["seed"], seed), pc.is_in(series["what"], pa.array(whats)))
        if places is not None:
            keep = pc.and_(keep, pc.is_in(series["monitor"], pa.array(places)))
        found = series.filter(keep)
        lines = {}
        monitors, quantities = found["monitor"].to_pylist(), found["what"].to_pylist()
        at: dict[tuple[str, str], list[int]] = {}
        for i, key in enumerate(zip(monitors, quantities, strict=True)):
            at.setdefault(key, []).append(i)
        times, values = found["t"].to_numpy(), found["value"].to_numpy()
        for key, rows in at.items():
            lines[key] = (times[rows], values[rows])
        return cls(lines)

    def __bool__(self) -> bool:
        return bool(self._lines)

    def monitors(self) -> list[str]:
        """Where, in the order of the experiment."""
        return list(dict.fromkeys(m for m, _ in self._lines))

    def whats(self) -> list[str]:
        """Which quantities."""
        return list(dict.fromkeys(w for _, w in self._lines))

    def only(self, whats: Sequence[str]) -> Samples:
        """Only these quantities."""
        return Samples({key: line for key, line in self._lines.items() if key[1] in whats})

    def first(self) -> Samples:
        """Only those of the first monitor."""
        return Samples({key: line for key, line in self._lines.items() if key[0] == self.monitors()[0]})

    def points(self, reduce: Reduce | None = None) -> list[tuple[str, str, float, float]]:
        """Monitor, quantity, time and value of every point, reduced (`thin`) to what a figure can show."""
        room = _ROOM // max(1, len(self._lines))
        made = []
        for (monitor, what), (t, v) in self._lines.items():
            times, values = (reduce or thin)(t, v, room)
            made += [(monitor, what, float(a), float(b)) for a, b in zip(times, values, strict=True)]
        return made

    def table(self, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """For a chart; `names` are what quantities are called there."""
        rows = [
            {"monitor": m, "what": (names or {}).get(w, w), "t": t, "value": v}
            for m, w, t, v in self.points()
        ]
        return {"values": rows}


def thin(times: Numbers, values: Numbers, room: int) -> tuple[Numbers, Numbers]:
    """As many points as there is room for: the least and the greatest of each stretch.

    >>> import numpy as np
    >>> t, v = thin(np.arange(6.0), np.array([0.0, 9, 1, 1, 5, 2]), 4)
    >>> t.tolist(), v.tolist()
    ([0.0, 1.0, 3.0, 4.0], [0.0, 9.0, 1.0, 5.0])
    """
    import numpy as np

    if len(values) <= max(room, 2):
        return times, values
    stretches = np.array_split(np.arange(len(values)), max(1, room // 2))
    kept = np.unique([i for s in stretches for i in (s[values[s].argmin()], s[values[s].argmax()])])
    return times[kept], values[kept]


def averaged(times: Numbers, values: Numbers, room: int) -> tuple[Numbers, Numbers]:
    """As many points as there is room for: the mean of each stretch, at its first time. For rates.

    >>> import numpy as np
    >>> t, v = averaged(np.arange(4.0), np.array([0.0, 2, 4, 8]), 2)
    >>> t.tolist(), v.tolist()
    ([0.0, 2.0], [1.0, 6.0])
    """
    import numpy as np

    if len(values) <= max(room, 1):
        return times, values
    stretches = np.array_split(np.arange(len(values)), room)
    return times[[s[0] for s in stretches]], np.array([values[s].mean() for s in stretches])


def _estimates(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mean and interval of what the rows are of; one value has no interval."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["of"], []).append(row["value"])
    made = []
    for of, xs in values.items():
        e = estimate(xs)
        lo, hi = e.ci95 or (e.mean, e.mean)
        made.append({"of": of, "mean": e.mean, "lo": lo, "hi": hi})
    return made


def _lines(data: dict[str, Any], unit: str, title: str, by: str) -> AnyChart:
    chart: AnyChart = (
        alt.Chart(data)
        .mark_line()
        .encode(
            x=alt.X("t:Q", title="time (s)"),
            y=alt.Y("value:Q", title=unit),
            color=alt.Color(f"{by}:N", title=None, sort=None),
        )
        .properties(title=title)
    )
    return themed(chart)


def _colours(whats: Sequence[str]) -> list[str]:
    known = {"packets": PALETTE[0], "avg": PALETTE[3], "avg_in": IN}
    return [known[w] for w in whats]


def _shift(i: int) -> float:
    """Spread dots that would hide each other: the golden ratio's multiples fill a line evenly."""
    return (i * 0.6180339887498949) % 1.0 - 0.5


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
