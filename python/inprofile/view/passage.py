"""What the player shows: a queue packet by packet, with the averages, the windows, and each drop's reason.

A result keeps none of it as a whole, so the run is made again with the same seed, once with every verdict and
fine samples of the windows, and once with a log of the queue, up to the end of the stretch that is shown.

A run's packets: which verdicts there were, and the way of one packet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _internal
from ..experiment.scenario import Scenario
from ..metrics.quantity import bits_per_second, in_seconds
from ..run.results import Result
from .answers import Arrays, pack
from .knobs import levels
from .why import Step, explain

if TYPE_CHECKING:
    import pyarrow as pa


PAGE = 200
"""As many verdicts are sent at once."""


def packets(result: Result, seed: int, given: Mapping[str, str]) -> bytes:
    """Verdicts of a run that `given` asks for, some at a time, and what may be asked for.

    `given` may have `flow`, `point`, `verdict`, `cause`, `from` and `to` (in s), `offset`. Without a verdict
    and a cause: all drops and marks.
    """
    import pyarrow.compute as pc

    own = _of_seed(result.verdicts, seed)
    counts = own.group_by(["point", "verdict", "cause"]).aggregate([("packet", "count")]).to_pylist()
    keep = pc.greater_equal(own["time_ps"], round(float(given.get("from") or 0) * 1e12))
    if given.get("to"):
        keep = pc.and_(keep, pc.less_equal(own["time_ps"], round(float(given["to"]) * 1e12)))
    for column in ("flow", "point", "verdict", "cause"):
        if given.get(column):
            keep = pc.and_(keep, pc.equal(own[column], given[column]))
    if not given.get("verdict") and not given.get("cause"):
        keep = pc.and_(keep, pc.or_(pc.equal(own["verdict"], "drop"), pc.equal(own["verdict"], "mark")))
    found = own.filter(pc.fill_null(keep, False))
    offset = max(0, int(given.get("offset") or 0))
    rows = found.slice(offset, PAGE)
    return pack(
        {
            "seed": seed,
            "total": found.num_rows,
            "offset": offset,
            "all": own.num_rows,
            "counts": [
                {"point": c["point"], "verdict": c["verdict"], "cause": c["cause"], "n": c["packet_count"]}
                for c in counts
            ],
            "flows": own["flow"].unique().sort().to_pylist(),
            "rows": [
                {
                    "time": row["time_ps"] / 1e12,
                    "packet": row["packet"],
                    "flow": row["flow"],
                    "point": row["point"],
                    "verdict": row["verdict"],
                    "cause": row["cause"],
                    "why": row["why"] or "",
                }
                for row in rows.to_pylist()
            ],
        },
        Arrays(),
    )


def packet(result: Result, seed: int, number: int) -> bytes:
    """The way of one packet, every verdict explained. Raises LookupError where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = _of_seed(result.verdicts, seed)
    rows = own.filter(pc.equal(own["packet"], pa.scalar(number, own["packet"].type))).to_pylist()
    if not rows:
        raise LookupError(f"seed {seed} has no packet {number}")
    steps = [
        Step(
            row["time_ps"] / 1e12,
            row["point"],
            row["verdict"],
            row["cause"],
            json.loads(row["why"]) if row["why"] else {},
        )
        for row in rows
    ]
    flow = rows[0]["flow"]
    explained: list[dict[str, Any]] = [e.to_json() for e in explain(result.provenance.effective, flow, steps)]
    return pack({"seed": seed, "packet": number, "flow": flow, "steps": explained})


def _of_seed(table: pa.Table, seed: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)))


PACKETS = 500
"""A stretch that nobody chose lasts as long as the link takes for so many full packets."""
MOST_EVENTS = 60_000
MOST_DROPS = 400
SAMPLES = 3000
"""Samples of each window over a run, ten milliseconds apart at least."""
_CODES = {"+": 0, "-": 1, "d": 2}
_COLOURS = {"in": 0, "out": 1, "red": 2}
_SHOWN = ("avg", "avg_in", "avg_out", "avg_green", "avg_yellow", "avg_red", "virtual_backlog")
"""The lengths that a discipline compares with its thresholds, as verdicts have them."""


def finely(scenario: Scenario) -> Scenario:
    """The experiment with every window sampled finely: what is watched changes nothing that happens."""
    effective = scenario.check().effective
    every = max(0.01, in_seconds(str(effective["duration"])) / SAMPLES)
    groups = [g["name"] for g in effective["flows"] if int(g.get("count", 1))]
    return scenario.with_({"monitors": [{"flows": name, "every": f"{every:.6g} s"} for name in groups]})


def stretch(
    result: Result, seed: int, link: str, start: float | None, end: float | None
) -> tuple[float, float]:
    """From where to where in s: as asked, or from shortly before the first drop in the measured window."""
    effective = result.provenance.effective
    of = next(x for x in effective["links"] if x["name"] == link)
    bits = 8 * float(str(effective["packet"]).split()[0])
    whole = in_seconds(str(effective["duration"]))
    length = min(whole, PACKETS * bits / bits_per_second(str(of["rate"])))
    if start is None:
        measured = in_seconds(str(effective["measure"]["from"]))
        drops = [t for t in _drops(result, seed, link)["time_ps"].to_pylist() if t >= measured * 1e12]
        start = max(0.0, min(drops[0] / 1e12 if drops else measured, whole) - length / 4)
    return start, min(whole, start + length) if end is None or end <= start else min(end, whole)


def passage(scenario: Scenario, result: Result, seed: int, link: str, start: float, end: float) -> bytes:
    """The events at a link's queue between two times in s, and what goes with them.

    `result` is of `finely(scenario)`, with every verdict. Raises LookupError for a link that is not there,
    ValueError for a stretch with too many packets.
    """
    effective = result.provenance.effective
    of = next((x for x in effective["links"] if x["name"] == link), None)
    if of is None:
        raise LookupError(f"there is no link {link}")
    ps = round(start * 1e12), round(end * 1e12)
    rows = _internal.queue_log(scenario._inner, seed, link, *ps)
    if len(rows) > MOST_EVENTS:
        raise ValueError(
            f"{len(rows):,} arrivals and departures are too many to show: choose a shorter stretch"
        )
    names = _flow_names(result, seed)
    causes = sorted({row[6] for row in rows if row[6]})
    arrays = Arrays()
    columns = {
        "t": [row[0] / 1e12 for row in rows],
        "what": [_CODES[row[1]] for row in rows],
        "packet": [row[2] for row in rows],
        "flow": [row[3] for row in rows],
        "colour": [_COLOURS[row[4]] for row in rows],
        "size": [row[5] for row in rows],
        "cause": [-1 if row[6] is None else causes.index(row[6]) for row in rows],
    }
    return pack(
        {
            "link": link,
            "links": [x["name"] for x in effective["links"] if "reverse_of" not in x],
            "seed": seed,
            "from": start,
            "to": end,
            "duration": in_seconds(str(effective["duration"])),
            "rate": bits_per_second(str(of["rate"])),
            "flows": names,
            "causes": causes,
            "levels": [level for level in levels(effective) if level["monitor"] == link],
            "events": {name: arrays.put(np.array(values, float)) for name, values in columns.items()},
            "averages": _averages(result, seed, link, ps, arrays),
            "windows": _windows(result, seed, start, end, names, arrays),
            "drops": _reasons(result, effective, seed, link, ps),
        },
        arrays,
    )


def _flow_names(result: Result, seed: int) -> list[str]:
    """By the engine's numbers, which are in the order of the experiment, as the rows are."""
    return [row["flow"] for row in result.flows.select(["seed", "flow"]).to_pylist() if row["seed"] == seed]


def _own(table: pa.Table, seed: int, link: str, ps: Sequence[int] = ()) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    keep = pc.and_(
        pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)), pc.equal(table["point"], link)
    )
    if ps:
        after = pc.greater_equal(table["time_ps"], pa.scalar(ps[0], table["time_ps"].type))
        before = pc.less_equal(table["time_ps"], pa.scalar(ps[1], table["time_ps"].type))
        keep = pc.and_(keep, pc.and_(after, before))
    return table.filter(keep)


def _drops(result: Result, seed: int, link: str) -> pa.Table:
    import pyarrow.compute as pc

    own = _own(result.verdicts, seed, link)
    return own.filter(pc.equal(own["verdict"], "drop"))


def _averages(
    result: Result, seed: int, link: str, ps: Sequence[int], arrays: Arrays
) -> list[dict[str, Any]]:
    """What verdicts note of averages, over the time of the arrivals."""
    own = _own(result.verdicts, seed, link, ps)
    found: dict[str, tuple[list[float], list[float]]] = {}
    for t, why in zip(own["time_ps"].to_pylist(), own["why"].to_pylist(), strict=True):
        for name, value in json.loads(why or "{}").items():
            if name in _SHOWN:
                times, values = found.setdefault(name, ([], []))
                times.append(t / 1e12)
                values.append(float(value))
    return [
        {"name": name, "t": arrays.put(np.array(times)), "v": arrays.put(np.array(values))}
        for name, (times, values) in found.items()
    ]


def _windows(
    result: Result, seed: int, start: float, end: float, names: Sequence[str], arrays: Arrays
) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = result.series
    keep = pc.and_(
        pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)), pc.equal(table["what"], "cwnd")
    )
    keep = pc.and_(keep, pc.and_(pc.greater_equal(table["t"], start - 0.1), pc.less_equal(table["t"], end)))
    own = table.filter(keep)
    made = []
    for flow in own["monitor"].unique().to_pylist():
        line = own.filter(pc.equal(own["monitor"], flow))
        t, v = (arrays.put(line[column].to_numpy()) for column in ("t", "value"))
        made.append({"flow": names.index(flow), "t": t, "v": v})
    return made


def _reasons(
    result: Result, effective: Mapping[str, Any], seed: int, link: str, ps: Sequence[int]
) -> list[dict[str, Any]]:
    """Of each drop, in order, what decided it."""
    import pyarrow.compute as pc

    own = _own(result.verdicts, seed, link, ps)
    drops = own.filter(pc.equal(own["verdict"], "drop")).slice(0, MOST_DROPS).to_pylist()
    colours = _colours(result, seed, [row["packet"] for row in drops])
    made = []
    for row in drops:
        marked = colours.get(row["packet"], [])
        step = Step(row["time_ps"] / 1e12, link, "drop", row["cause"], json.loads(row["why"] or "{}"))
        words = explain(effective, row["flow"], [*marked, step])[-1].what
        made.append(
            {
                "t": step.time,
                "packet": row["packet"],
                "flow": row["flow"],
                "cause": row["cause"],
                "words": words,
            }
        )
    return made


def _colours(result: Result, seed: int, packets: Sequence[int]) -> dict[int, list[Step]]:
    """The markers' verdicts on these packets."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = result.verdicts
    keep = pc.and_(
        pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)),
        pc.and_(
            pc.is_in(table["packet"], pa.array(packets, table["packet"].type)),
            pc.is_in(table["verdict"], pa.array(list(_COLOURS))),
        ),
    )
    made: dict[int, list[Step]] = {}
    for row in table.filter(keep).to_pylist():
        step = Step(row["time_ps"] / 1e12, row["point"], row["verdict"], None, json.loads(row["why"] or "{}"))
        made.setdefault(row["packet"], []).append(step)
    return made
