"""When CoDel and COBALT drop."""

from __future__ import annotations

from itertools import pairwise

from .drawn import Curve, Rows, Table, cbr, curve, experiment, traced

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
