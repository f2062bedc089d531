"""The experiments behind the pictures, and what is taken from their runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

import inprofile

Rows = list[dict[str, Any]]
Table = dict[str, Any]

THRESHOLDS = {"min_th": "20 packets", "max_th": "60 packets", "max_p": 0.1}
COLOURS = {"in": "IN (green)", "out": "OUT (yellow)", "red": "red"}
IN_CURVE = {"min_th": "60 packets", "max_th": "90 packets", "max_p": 0.05}
DROP_TAIL = {"aqm": "drop_tail", "limit": "400 packets"}


@dataclass(frozen=True)
class Curve:
    """Lines over one quantity."""

    x: str
    y: str
    says: str
    """The alternative text of the picture."""
    rows: Rows = field(repr=False)
    """`line`, `x` and `y`."""
    most: tuple[float, float] | None = None
    """Where the axes end, x and y, if not at the largest values."""


CURVES: dict[str, Callable[[], Curve]] = {}
"""By the mechanism's name."""


def curve(name: str) -> Callable[[Callable[[], Curve]], Callable[[], Curve]]:
    """Say whose curve a function draws."""

    def keep(function: Callable[[], Curve]) -> Callable[[], Curve]:
        CURVES[name] = function
        return function

    return keep


def experiment(
    queue: Table, flows: list[Table], *, seconds: float, rate: str = "10 Mbit/s", more: str = ""
) -> inprofile.Scenario:
    """One link, a queue, and flows that each come over a fast link of their own; `more` is put behind it."""
    link = {"name": "b", "from": "r", "to": "s", "rate": rate, "delay": "5 ms", "queue": queue}
    host = {"from": "H*", "join": {"node": "r", "rate": "1 Gbit/s"}, "to": "s", "rtt": "20 ms"}
    tables = [("links", link), *(("flows", {**host, **flow}) for flow in flows)]
    text = _toml({"title": "curve", "duration": f"{seconds} s"})
    text += "".join(f"[[{kind}]]\n{_toml(table)}" for kind, table in tables)
    return inprofile.parse(text + more)


def edge(marker: Table) -> str:
    """A marker for all that enters the link."""
    return f'[[edges]]\nnode = "r"\nmarker = {_value(marker)}\n'


def _toml(table: Table) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def cbr(
    name: str, rate: str, marker: Table | None = None, *, into: str = "", size: int = 1000, **more: Any
) -> Table:
    """A flow that sends at a constant rate."""
    marked = ({"marker": marker} if marker else {}) | ({"class": into} if into else {})
    return {
        "name": name,
        "traffic": {"kind": "cbr", "rate": rate, "packet": f"{size} B", "dither": 1.0},
        **marked,
        **more,
    }


def decisions(scenario: inprofile.Scenario, point: str) -> Iterator[tuple[str, str | None, dict[str, float]]]:
    """Verdict, cause and reasons of every decision at a place."""
    for row in traced(scenario, point).to_pylist():
        yield row["verdict"], row["cause"], json.loads(row["why"])


def traced(scenario: inprofile.Scenario, point: str) -> Any:
    """The verdicts of a run at a place, as a table."""
    verdicts = scenario.run(1, trace=True).verdicts
    return verdicts.filter(pc.equal(verdicts["point"], point))


def thinned(points: dict[float, float], line: str) -> Rows:
    """Rows of one line, a point an x."""
    return [{"line": line, "x": x, "y": y} for x, y in sorted(points.items())]


def watched(queue: Table, flows: list[Table], seconds: float) -> inprofile.Scenario:
    """An experiment whose queue is sampled four times a second."""
    return experiment(queue, flows, seconds=seconds, more='[[monitors]]\nqueue = "b"\nevery = "250 ms"\n')


def series(scenario: inprofile.Scenario, wanted: dict[str, str], scale: float = 1.0) -> Rows:
    """Samples over time; `wanted` names the line of each quantity."""
    return [
        {"line": wanted[row["what"]], "x": row["t"], "y": row["value"] * scale}
        for row in scenario.run(1).series.to_pylist()
        if row["what"] in wanted and row["value"] is not None
    ]
