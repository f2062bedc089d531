"""When disciplines drop and mark by delay: CoDel and COBALT; the coupled ones, ECT(1) and Not-ECT apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from curves.drawn import Curve, Rows, Table, cbr, curve, experiment, thinned, traced, watched

OVERLOADS = (("0 s", "1.5 s"), ("2 s", "3.5 s"), ("6 s", "7.5 s"))
"""When there is more than the link can send."""


def _drops(queue: Table, flows: list[Table], seconds: float) -> list[float]:
    """When packets are dropped, in milliseconds."""
    decided = traced(experiment({"limit": "2000 packets", **queue}, flows, seconds=seconds), "b")
    return [row["time_ps"] / 1e9 for row in decided.to_pylist() if row["verdict"] == "drop"]


@curve("codel")
def _codel() -> Curve:
    rows: Rows = []
    for line, variant in {"RFC 8289": "rfc8289", "Linux": "linux"}.items():
        times = _drops({"aqm": "codel", "variant": variant}, [cbr("u", "12 Mbit/s")], 2.0)[:25]
        waits = pairwise(times)
        rows += [{"line": line, "x": n, "y": after - at} for n, (at, after) in enumerate(waits, 1)]
    return Curve(
        "drops since the delay stays above its target",
        "time to the next drop (ms)",
        "The time to the next drop is the interval of 100 ms over the square root of the number of drops; "
        "Linux, which computes the root step by step, makes the second too short.",
        rows,
    )


@curve("cobalt")
def _cobalt() -> Curve:
    rows: Rows = []
    extra = [cbr(f"more{n}", "5 Mbit/s", start=start, stop=stop) for n, (start, stop) in enumerate(OVERLOADS)]
    for name in ("codel", "cobalt"):
        times = _drops({"aqm": name}, [cbr("u", "7 Mbit/s"), *extra], 9.0)
        rows += [{"line": name, "x": at / 1000, "y": n} for n, at in enumerate(times, 1)]
    return Curve(
        "time (s)",
        "drops since the start",
        "The link is offered 1.2 times its rate for a second and a half, three times, with 0.7 of it in the "
        "pauses: after the long pause CoDel starts over, and COBALT drops as often as before it.",
        rows,
    )


def _coupled(queue: Table) -> Rows:
    """Shares of each code point marked and dropped, against what senders send that never slow down."""
    rows: Rows = []
    for load in (1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 1.7, 2.0):
        seen: dict[str, list[str]] = {"ect1.0": [], "not_ect.0": []}
        decided = traced(experiment({"limit": "1000 packets", **queue}, _halves(load), seconds=30), "b")
        for row in decided.to_pylist():
            if row["time_ps"] > 15 * 10**12:
                seen[row["flow"]].append(row["verdict"])
        for name, line, verdict in (
            ("ect1.0", "ECT(1) marked", "mark"),
            ("ect1.0", "ECT(1) dropped", "drop"),
            ("not_ect.0", "Not-ECT dropped", "drop"),
        ):
            sent = max(1, seen[name].count("admit"))
            rows.append({"line": line, "x": load, "y": seen[name].count(verdict) / sent})
    return rows


def _halves(load: float) -> list[Table]:
    """So much of the link's rate, half of it ECT(1), half Not-ECT, of senders that never slow down."""
    flows = [cbr(kind, f"{load * 5:.2f} Mbit/s") for kind in ("ect1", "not_ect")]
    for flow in flows:
        flow["traffic"] |= {"ecn": flow["name"]}
    return flows


@curve("pi2")
def _pi2() -> Curve:
    return Curve(
        "sent / rate of the link, half of it ECT(1)",
        "share of the packets",
        "ECT(1) packets are marked with twice the root of what Not-ECT packets are dropped with, "
        "and dropped too once all are marked.",
        _coupled({"aqm": "pi2"}),
    )


def _gauges(queue: Table, loads: list[float], seconds: float = 20.0) -> Iterator[tuple[float, Rows]]:
    """Samples of the second half of a run at each load."""
    for load in loads:
        made = watched({"limit": "1000 packets", **queue}, _halves(load), seconds)
        rows = made.run(1).series.to_pylist()
        yield load, [row for row in rows if row["t"] > seconds / 2]


@curve("dualpi2")
def _dualpi2() -> Curve:
    rows: Rows = []
    wanted = {"delay_l4s": "L4S queue", "delay_classic": "Classic queue"}
    for load, seen in _gauges({"aqm": "dualpi2"}, [0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5]):
        for what, line in wanted.items():
            waits = [row["value"] for row in seen if row["what"] == what]
            rows.append({"line": line, "x": load, "y": 1000 * sum(waits) / len(waits)})
    return Curve(
        "sent / rate of the link, half of it ECT(1)",
        "delay of the head of the queue (ms)",
        "The Classic queue comes to its target of 15 ms; the L4S queue stays nearly empty, "
        "under overload too.",
        rows,
    )


@curve("curvy_red")
def _curvy_red() -> Curve:
    points: dict[str, dict[float, float]] = {"p_cl": {}, "p_c": {}}
    for _, seen in _gauges({"aqm": "curvy_red", "l4s_priority": "wrr"}, [1.02, 1.05, 1.1, 1.2, 1.4, 1.8]):
        by_time: dict[float, dict[str, float]] = {}
        for row in seen:
            by_time.setdefault(row["t"], {})[row["what"]] = row["value"]
        for sample in by_time.values():
            for what, line in points.items():
                line[round(1000 * sample["q_c"])] = sample[what]
    names = {"p_cl": "L4S marks, p_CL", "p_c": "Classic drops, p_C"}
    return Curve(
        "average delay of the Classic queue (ms)",
        "probability",
        "The probability of a Classic drop grows with the square of the average delay, that of an L4S mark "
        "with twice the delay, until it is 1.",
        [row for what, line in points.items() for row in thinned(line, names[what])],
    )
