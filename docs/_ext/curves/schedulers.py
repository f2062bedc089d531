"""The shares of two classes of a link."""

from __future__ import annotations

from .drawn import Curve, Rows, Table, cbr, curve, experiment


def _classes(scheduler: str, first: Table, second: Table) -> Curve:
    """The shares of two classes of 10 Mbit/s: one sends more and more, the other always 10 Mbit/s."""
    classes = [
        {"name": name, "aqm": "drop_tail", "limit": "100 packets", **more}
        for name, more in (("first", first), ("second", second))
    ]
    rows: Rows = []
    for rate in range(1, 13):
        flows = [
            cbr("a", f"{rate} Mbit/s", into="first"),
            cbr("b", "10 Mbit/s", into="second"),
        ]
        made = experiment({"scheduler": scheduler, "classes": classes}, flows, seconds=10).run(1)
        got = {row.keys["flow"]: row.values["throughput"][0] / 1e6 for row in made.rows("flows")}
        rows += [
            {"line": "first class", "x": rate, "y": got["a.0"]},
            {"line": "second class", "x": rate, "y": got["b.0"]},
        ]
    return Curve(
        "sent by the first class (Mbit/s)",
        "throughput (Mbit/s)",
        "What two classes get of a link of 10 Mbit/s.",
        rows,
    )


@curve("priority")
def _priority() -> Curve:
    return _classes("priority", {}, {})


@curve("drr")
def _drr() -> Curve:
    return _classes("drr", {"quantum": "3000 B"}, {"quantum": "1500 B"})
