"""Shares of colours against the rate sent, or the length of a burst."""

from __future__ import annotations

from .drawn import COLOURS, DROP_TAIL, Curve, Rows, Table, cbr, curve, decisions, experiment, traced

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
