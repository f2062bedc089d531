"""Markers that adapt, and their placebos."""

from __future__ import annotations

import json

from .drawn import (
    DROP_TAIL,
    IN_CURVE,
    THRESHOLDS,
    Curve,
    Rows,
    Table,
    cbr,
    curve,
    decisions,
    edge,
    experiment,
    thinned,
    traced,
)
from .meters import counted


def _regulating(name: str) -> Curve:
    """Remarked and dropped shares of IN packets against the tokens that they found, at several loads."""
    marker = {
        "kind": name,
        "tpr_max": "8 Mbit/s",
        "bucket": "60 packets",
        "t_rd": "15 packets",
        "interval": "1000 s",
    }
    seen: dict[float, list[str]] = {}
    for load in (8.05, 8.1, 8.3, 8.6, 9.0, 9.5, 10.5, 12.0, 14.0, 20.0):
        # A token lets a full packet by.
        flood = [cbr("u", f"{load} Mbit/s", size=1500)]
        for verdict, _, why in decisions(experiment(DROP_TAIL, flood, seconds=15, more=edge(marker)), "r"):
            seen.setdefault(float(int(why["tokens"])), []).append(verdict)
    rows: Rows = []
    for verdict, line in {"out": "remarked OUT", "drop": "dropped"}.items():
        points = {x: v.count(verdict) / len(v) for x, v in seen.items() if len(v) >= 100 and x <= 30}
        rows += thinned(points, line)
    return Curve(
        "tokens in the bucket (packets)",
        "share of IN packets",
        "Below T_rd = 15 tokens IN packets are remarked, the more the fewer tokens are left.",
        rows,
    )


@curve("arm")
def _arm() -> Curve:
    return _regulating("arm")


@curve("ard")
def _ard() -> Curve:
    return _regulating("ard")


@curve("blind_drop")
def _blind_drop() -> Curve:
    points = {
        p: counted({"kind": "blind_drop", "p": p}, 2.0)["drop"]
        for p in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    }
    return Curve("p", "share dropped", "As many are dropped as p says.", thinned(points, "blind_drop"))


@curve("fair_policer")
def _fair_policer() -> Curve:
    sent = (1, 2, 3, 5, 8)
    flows = [cbr(f"u{rate}", f"{rate} Mbit/s") for rate in sent]
    markers: dict[str, Table] = {
        "fair_policer": {"kind": "fair_policer", "burst": "40 packets"},
        "token_bucket, action = drop": {"kind": "token_bucket", "depth": "40 packets", "action": "drop"},
    }
    rows: Rows = []
    for line, marker in markers.items():
        made = experiment(DROP_TAIL, flows, seconds=20, more=edge(marker | {"rate": "9 Mbit/s"})).run(1)
        got = (row.values["received_in_rate"][0] / 1e6 for row in made.rows("flows"))
        rows += [{"line": line, "x": x, "y": y} for x, y in zip(sent, got, strict=True)]
    says = "Each flow gets 2 Mbit/s or what it sends; a token bucket gives most to those who send most."
    return Curve("sent (Mbit/s)", "passed (Mbit/s)", says, rows)


@curve("every_nth")
def _every_nth() -> Curve:
    points = {
        float(n): counted({"kind": "every_nth", "n": n}, 2.0)["out"]
        for n in (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)
    }
    return Curve("n", "share OUT", "One packet in n is OUT.", thinned(points, "every_nth"))


@curve("probe")
def _probe() -> Curve:
    queue = {"aqm": "rio", "limit": "100 packets", "in": IN_CURVE, "out": THRESHOLDS}
    flow = {"name": "t", "count": 4, "marker": {"kind": "probe"}}
    rows: Rows = []
    for number, (_, _, why) in enumerate(
        decisions(experiment(queue, [flow], seconds=20, rate="3 Mbit/s"), "t.0")
    ):
        if "permitted" in why and number <= 1000:
            rows.append({"line": "A, permitted burst", "x": number, "y": why["permitted"]})
            rows.append({"line": "L, current burst", "x": number, "y": why["length"]})
    return Curve(
        "packet of the flow",
        "packets",
        "L counts packets; at A one packet is OUT, A grows, and a loss shortens it.",
        rows,
    )


@curve("twam")
def _twam() -> Curve:
    queue = {"aqm": "drop_tail", "limit": "60 packets"}
    contracts = [1, 2, 4]
    flow = {"name": "t", "count": 3, "contract": [f"{c} Mbit/s" for c in contracts], "rtt": "40 ms"}
    scenario = experiment(queue, [flow], seconds=60, more=edge({"kind": "twam"}))
    rows: Rows = []
    for row in traced(scenario, "r").to_pylist():
        line = f"contract {contracts[int(row['flow'][2:])]} Mbit/s"
        rows.append({"line": line, "x": row["time_ps"] // 10**12, "y": json.loads(row["why"]).get("p", 1.0)})
    means: dict[tuple[str, int], list[float]] = {}
    for each in rows:
        means.setdefault((each["line"], each["x"]), []).append(each["y"])
    return Curve(
        "time (s)",
        "probability p of IN",
        "A flow whose window is above its share is marked IN less often.",
        [{"line": line, "x": x, "y": sum(v) / len(v)} for (line, x), v in means.items()],
    )
