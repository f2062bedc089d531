"""Markers: shares of colours against the rate sent or a burst's length; those that adapt, and placebos."""

from __future__ import annotations

import json

from curves.drawn import (
    COLOURS,
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

RATES = [0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0]
BUCKET = "8 packets"


def counted(marker: Table, rate: float) -> dict[str, float]:
    """Share of each verdict among the packets of a flow with a contract of 1 Mbit/s that sends at `rate`."""
    flow = cbr("u", f"{rate} Mbit/s", marker, contract="1 Mbit/s")
    own = traced(experiment(DROP_TAIL, [flow], seconds=30), "u.0")
    # The first half goes: full buckets, and rates not yet measured.
    own = own.slice(own.num_rows // 2)
    counts = {str(each["values"]): int(each["counts"]) for each in own["verdict"].value_counts().to_pylist()}
    return {verdict: counts.get(verdict, 0) / own.num_rows for verdict in ("in", "out", "red", "drop")}


def shares(markers: dict[str, Table], colours: tuple[str, ...] = ("in",)) -> Curve:
    """Shares of colours against what a flow with a contract of 1 Mbit/s sends."""
    rows: Rows = []
    for line, marker in markers.items():
        for rate in RATES:
            shares = counted(marker, rate)
            rows += [
                {"line": COLOURS[c] if len(markers) == 1 else line, "x": rate, "y": shares[c]}
                for c in colours
            ]
    return Curve(
        "sent (Mbit/s), contract 1 Mbit/s",
        "share of packets",
        f"{' and '.join(COLOURS[c] for c in colours)}: share of the packets, against the rate sent.",
        rows,
    )


@curve("token_bucket")
def _token_bucket() -> Curve:
    return shares({"token_bucket": {"kind": "token_bucket", "depth": BUCKET}}, ("in", "out"))


@curve("tsw2cm")
def _tsw2cm() -> Curve:
    return shares({f'excess = "{e}"': {"kind": "tsw2cm", "excess": e} for e in ("share", "all")})


@curve("tsw3cm")
def _tsw3cm() -> Curve:
    return shares({"tsw3cm": {"kind": "tsw3cm", "ptr": "2 Mbit/s"}}, ("in", "out", "red"))


@curve("srtcm")
def _srtcm() -> Curve:
    marker = {"kind": "srtcm", "cbs": BUCKET, "ebs": BUCKET}
    rows: Rows = []
    for packets in range(1, 31):
        # 0.8 ms a packet while on; the buckets are full again when the next burst comes.
        traffic = {
            "kind": "on_off",
            "peak": "10 Mbit/s",
            "on": f"{packets * 0.8:.1f} ms",
            "off": "500 ms",
            "packet": "1000 B",
        }
        flow = {"name": "u", "contract": "1 Mbit/s", "marker": marker, "traffic": traffic}
        seen = [verdict for verdict, _, _ in decisions(experiment(DROP_TAIL, [flow], seconds=5), "u.0")]
        rows += [
            {"line": COLOURS[c], "x": packets, "y": packets * seen.count(c) / len(seen)} for c in COLOURS
        ]
    return Curve(
        "length of the burst (packets)",
        "packets of each colour",
        "Of a burst the first 8 packets (cbs) are green, the next 8 (ebs) yellow, the rest red.",
        rows,
    )


@curve("trtcm")
def _trtcm() -> Curve:
    return shares(
        {"trtcm": {"kind": "trtcm", "pir": "2 Mbit/s", "cbs": BUCKET, "pbs": BUCKET}}, ("in", "out", "red")
    )


@curve("rfc4115")
def _rfc4115() -> Curve:
    return shares(
        {"rfc4115": {"kind": "rfc4115", "eir": "1 Mbit/s", "cbs": BUCKET, "ebs": BUCKET}},
        ("in", "out", "red"),
    )


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
