"""The figures a suite keeps of a run: of the measured link, of groups of flows, of phases; and curves.

A figure's name is the measure, behind `:` the group of flows, or behind `@` the phase. Units are bit/s and
seconds; shares and counts have none.

How long each group's packets wait in the measured queue: with two queues behind one link, they differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.stats import FREE, POSITIVE, SHARE, UNLIKE, Bounds
from .scenarios import Definition

if TYPE_CHECKING:
    from ...run.results import Result


#: What is better if it is less; of the others, what is better if it is more.
LOWER = (
    "delay",
    "loss",
    "excess",
    "p99",
    "variation",
    "completion",
    "unfinished",
    "page",
    "stalled",
    "startup",
    "sync",
    "timeouts",
)
_HIGHER = ("goodput", "utilisation", "fi", "bitrate", "completed")

#: A measure in words.
TITLES = {
    "goodput": "goodput",
    "utilisation": "utilisation",
    "fi": "fairness (Jain)",
    "delay": "mean queueing delay",
    "delay_mean": "mean queueing delay",
    "delay_p50": "median",
    "delay_p90": "90th percentile",
    "delay_p99": "99th percentile of queueing delay",
    "delay_p99_9": "99.9th percentile",
    "loss": "packets lost",
    "marked": "packets marked",
    "sync": "loss synchronisation",
    "excess": "mean delay in excess of the path's",
    "p99": "99th percentile of one-way delay",
    "variation_p99": "99th percentile of delay variation",
    "completion": "mean completion time",
    "completion_p99": "99th percentile of completion time",
    "completed": "completed",
    "unfinished": "unfinished",
    "page": "mean page load time",
    "page_p99": "99th percentile of page load time",
    "bitrate": "mean rate of video",
    "stalled": "time that video stalled",
    "startup": "mean start-up time",
    "timeouts": "RTOs",
    "ratio": "ratio of goodputs",
}
_METRICS = {
    "goodput": "goodput",
    "utilisation": "utilisation",
    "fi": "fi",
    "delay_mean": "delay_mean",
    "delay_p50": "delay_p50",
    "delay_p90": "delay_p90",
    "delay_p99": "delay_p99",
    "delay_p99_9": "delay_p99_9",
    "sync": "loss_synchronisation",
    "timeouts": "timeouts",
}
_COUNTS = ("completed", "unfinished")
_SHARES = ("utilisation", "fi", "loss", "marked", "sync")
#: Where the cumulative distribution of queueing delay is kept.
CURVE = (0.0, 0.01, *(i / 20 for i in range(1, 20)), 0.97, 0.99, 0.995, 0.999, 1.0)


def _what(name: str) -> str:
    return name.partition(":")[0].partition("@")[0]


def title(name: str) -> str:
    """A figure's name in words.

    >>> title("goodput:web"), title("delay@mild"), title("ratio:two/one")
    ('goodput, web', 'mean queueing delay, mild', 'ratio of goodputs, two/one')
    """
    what = _what(name)
    of = name.removeprefix(what)[1:]
    return f"{TITLES[what]}, {of}" if of else TITLES[what]


def known(name: str) -> bool:
    """Whether there is such a measure."""
    return _what(name) in TITLES


def unit(name: str) -> str:
    """A figure's unit; empty for a plain number."""
    what = _what(name)
    if what in ("goodput", "bitrate"):
        return "bit/s"
    return "" if what in (*_SHARES, *_COUNTS, "ratio", "timeouts") else "s"


def per_cent(name: str) -> bool:
    """Whether a share is shown as per cent: all but the index of fairness."""
    return name.startswith(("utilisation", "loss", "marked", "sync"))


def bounds(name: str) -> Bounds:
    """The range of a figure."""
    return SHARE if _what(name) in _SHARES else POSITIVE


def bounds_of_difference(name: str) -> Bounds:
    """The range of the difference of two values of a figure."""
    return UNLIKE if _what(name) in _SHARES else FREE


def better(name: str) -> int:
    """1 if more of it is better, −1 if less, 0 if that depends."""
    what = _what(name)
    if what.startswith(LOWER):
        return -1
    return 1 if what.startswith(_HIGHER) else 0


def measure(result: Result, definition: Definition) -> Measures:
    """Reduce the runs of one contestant in one scenario."""
    seeds = result.seeds
    at = {seed: i for i, seed in enumerate(seeds)}
    values: dict[str, Array] = {}

    def put(name: str, seed: int, value: float | None) -> None:
        if value is not None and np.isfinite(value):
            values.setdefault(name, np.full(len(seeds), np.nan))[at[seed]] = value

    effective = result.provenance.effective
    link = effective["measure"]["at"]
    for row in result.metrics.to_pylist():
        for name, metric in _METRICS.items():
            if row["name"] == metric:
                put(name, row["seed"], row["value"])
    _of_queue(result, link, put)
    _of_groups(result, put)
    _of_downloads(result, put)
    for pair in (m.partition(":")[2] for m in definition.measures if m.startswith("ratio:")):
        over, under = (values.get(f"goodput:{g}") for g in pair.split("/"))
        if over is not None and under is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                values[f"ratio:{pair}"] = np.where(under > 0, over / under, np.nan)
    _of_periods(result, definition, link, put)
    wanted = set(CURVE)
    for row in result.cdf.to_pylist():
        if row["measure"] == "queueing_delay" and row["point"] == link and row["group"] is None:
            near = min(wanted, key=lambda share: abs(share - row["share"]))
            if abs(near - row["share"]) < 1e-9:
                put(f"cdf:{near:g}", row["seed"], row["value"])
    return Measures(seeds, values, {})


def _of_queue(result: Result, link: str, put: Any) -> None:
    for row in result.queues.to_pylist():
        if row["queue"] == link:
            arrived = row["arrived_in"] + row["arrived_out"] + row["arrived_red"]
            dropped = row["dropped_in"] + row["dropped_out"] + row["dropped_red"]
            if arrived:
                put("loss", row["seed"], dropped / arrived)
                put("marked", row["seed"], row["marked"] / arrived)


def _of_groups(result: Result, put: Any) -> None:
    """Goodput, losses, completion and start-up of each group in the window; delays from the distributions.

    Times are of the transfers that completed within the window; how many these are is a figure, too, and how
    many had begun and were unfinished at its end.
    """
    sums: dict[tuple[int, str], dict[str, float]] = {}
    causes = [c for c in result.flows.column_names if c.startswith("dropped_")]
    for row in result.flows.to_pylist():
        key = (row["seed"], row["group"])
        into = sums.setdefault(key, dict.fromkeys(("goodput", "sent", "dropped"), 0.0))
        into["goodput"] += row["goodput"]
        into["sent"] += row["sent_in"] + row["sent_out"]
        into["dropped"] += sum(row[c] or 0 for c in causes)
    for (seed, group), found in sums.items():
        put(f"goodput:{group}", seed, found["goodput"])
        if found["sent"]:
            put(f"loss:{group}", seed, found["dropped"] / found["sent"])
    for row in result.flow_times():
        _put_times({(s, row.group, row.measure): x.tolist() for s, x in row.times.items() if len(x)}, put)
        if row.measure == "completion":
            _put_counts(
                {
                    (seed, row.group): {"completed": len(x), "unfinished": row.unfinished[seed]}
                    for seed, x in row.times.items()
                },
                put,
            )
    kinds = {"excess_delay": ("excess", "mean"), "one_way_delay": ("p99", "p99")}
    kinds["delay_variation"] = ("variation_p99", "p99")
    excess: dict[int, list[tuple[float, float]]] = {}
    for row in result.delays.to_pylist():
        if row["measure"] in kinds and row["colour"] is None and row["group"] is not None:
            name, figure = kinds[row["measure"]]
            put(f"{name}:{row['group']}", row["seed"], row[figure])
            if row["measure"] == "excess_delay":
                excess.setdefault(row["seed"], []).append((row["count"], row["mean"]))
    for seed, rows in excess.items():
        put("excess", seed, sum(n * mean for n, mean in rows) / sum(n for n, _ in rows))


def _of_downloads(result: Result, put: Any) -> None:
    """Page load times, and the rate and stalls of video, of what was complete within the window."""
    measured = result.provenance.effective["measure"]
    begins, ends = (_seconds(measured[k]) for k in ("from", "to"))
    kinds = {g["name"]: g["traffic"] for g in result.provenance.effective["flows"]}
    times: dict[tuple[int, str, str], list[float]] = {}
    video: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for row in result.downloads.to_pylist():
        if not begins <= row["completed"] < ends:
            continue
        if kinds[row["group"]]["kind"] == "web":
            times.setdefault((row["seed"], row["group"], "page"), []).append(row["completed"] - row["asked"])
        else:
            video.setdefault((row["seed"], row["group"]), []).append((row["size"], row["stalled"]))
    _put_times(times, put)
    web = {name: kind for name, kind in kinds.items() if kind["kind"] == "web"}
    unfinished = _pages_unfinished(result, web, ends)
    _put_counts(
        {
            (seed, group): {"completed": len(times.get((seed, group, "page"), ())), "unfinished": n}
            for (seed, group), n in unfinished.items()
        },
        put,
    )
    for (seed, group), rows in video.items():
        played = len(rows) * _seconds(kinds[group]["chunk"])
        put(f"bitrate:{group}", seed, 8 * sum(size for size, _ in rows) / played)
        put(f"stalled:{group}", seed, sum(stalled for _, stalled in rows))


def _pages_unfinished(
    result: Result, web: Mapping[str, Mapping[str, Any]], ends: float
) -> dict[tuple[int, str], int]:
    """By seed and group, how many pages had begun and were not complete at the end of the window.

    A page has `connections` flows in a row, which begin together; what never began has a start after the end.
    """
    starts: dict[tuple[int, str], list[float]] = {}
    for row in result.flows.to_pylist():
        if row["group"] in web:
            starts.setdefault((row["seed"], row["group"]), []).append(row["start"])
    unfinished = {
        (seed, group): sum(start < ends for start in of[:: web[group]["connections"]])
        for (seed, group), of in starts.items()
    }
    for row in result.downloads.to_pylist():
        if row["group"] in web and row["completed"] < ends:
            unfinished[row["seed"], row["group"]] -= 1
    return unfinished


def _put_times(times: Mapping[tuple[int, str, str], Sequence[float]], put: Any) -> None:
    """Mean and 99th percentile, the least time that 99 % did not exceed: of fewer than 100, the longest."""
    for (seed, group, name), found in times.items():
        put(f"{name}:{group}", seed, float(np.mean(found)))
        if name != "startup":
            put(f"{name}_p99:{group}", seed, float(np.quantile(found, 0.99, method="inverted_cdf")))


def _put_counts(counts: Mapping[tuple[int, str], Mapping[str, int]], put: Any) -> None:
    for (seed, group), found in counts.items():
        for name, count in found.items():
            put(f"{name}:{group}", seed, count)


def _of_periods(result: Result, definition: Definition, link: str, put: Any) -> None:
    """Goodput of all groups and mean queueing delay by period; and over each phase."""
    width = _seconds(result.provenance.effective["measure"]["every"])
    goodput: dict[tuple[int, float], float] = {}
    delay: dict[tuple[int, float], float] = {}
    for row in result.series.to_pylist():
        key = (row["seed"], row["t"])
        if row["what"] == "goodput":
            goodput[key] = goodput.get(key, 0.0) + row["value"]
        elif row["what"] == "queueing_delay" and row["monitor"] == link and row["value"] is not None:
            delay[key] = row["value"]
    for what, found in (("goodput", goodput), ("delay", delay)):
        for (seed, t), value in found.items():
            put(f"time:{what}:{t:g}", seed, value)
        for phase in definition.phases:
            of_seed: dict[int, list[float]] = {}
            for (seed, t), value in found.items():
                if phase.has(t, width):
                    of_seed.setdefault(seed, []).append(value)
            for seed, rows in of_seed.items():
                put(f"{what}@{phase.name}", seed, float(np.mean(rows)))


_FACTORS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}


def _seconds(text: str) -> float:
    """A time as an effective experiment writes it.

    >>> _seconds("20 s"), _seconds("100 ms")
    (20.0, 0.1)
    """
    amount, name = text.split()
    return float(amount) * _FACTORS[name]


_FIGURES = {"delay_mean": "mean", "delay_p50": "p50", "delay_p99": "p99"}


def waits(result: Result) -> dict[str, Array]:
    """Mean, median and 99th percentile of queueing delay (s) by group, a value a seed, as `delay_p99:web`."""
    seeds = result.seeds
    at = {seed: i for i, seed in enumerate(seeds)}
    link = result.provenance.effective["measure"]["at"]
    values: dict[str, Array] = {}
    for row in result.delays.to_pylist():
        here = row["measure"] == "queueing_delay" and row["point"] == link
        if not here or row["group"] is None or row["colour"] is not None:
            continue
        for name, figure in _FIGURES.items():
            if row[figure] is not None:
                key = f"{name}:{row['group']}"
                values.setdefault(key, np.full(len(seeds), np.nan))[at[row["seed"]]] = row[figure]
    return values
