"""Drop curves of the RED family."""

from __future__ import annotations

from .drawn import (
    COLOURS,
    IN_CURVE,
    THRESHOLDS,
    Curve,
    Rows,
    Table,
    cbr,
    curve,
    decisions,
    experiment,
    series,
    thinned,
    watched,
)


def _drop_curve(queue: Table, colour: str, line: str, average: str = "avg", ecn: str = "not_ect") -> Rows:
    """Probability of an early drop, or of a mark, at each average that an overload of one colour meets."""
    flood = cbr("u", "100 Mbit/s", {"kind": "colour", "colour": colour})
    flood["traffic"] |= {"ecn": ecn}
    points: dict[float, float] = {}
    for verdict, cause, why in decisions(
        experiment({"limit": "400 packets", **queue}, [flood], seconds=1.5), "b"
    ):
        if average not in why or cause == "overflow":
            continue
        kept = 1.0 - why.get("p_b", 0.0)
        # RI+O's third curve is tried after the second has let the packet pass.
        kept *= 1.0 - why.get("p_b_of_out", 0.0)
        struck = verdict == ("drop" if ecn == "not_ect" else "mark")
        p = 1.0 if struck and "p_b" not in why else 1.0 - kept
        # A packet that failed the first of two tests says nothing of the second.
        if verdict != "drop" or p in (0.0, 1.0):
            points[round(why[average] * 2) / 2] = p
    return thinned(points, line)


def _curves(
    lines: dict[str, tuple[Table, str, str]], says: str, most: tuple[float, float] = (120.0, 0.25)
) -> Curve:
    rows = [
        row
        for line, (queue, colour, average) in lines.items()
        for row in _drop_curve(queue, colour, line, average)
    ]
    return Curve(
        "average queue (packets)",
        "drop probability p_b",
        says if most[1] == 1.0 else f"{says} A line that leaves the top goes on at 1.",
        rows,
        most,
    )


@curve("drop_tail")
def _drop_tail() -> Curve:
    flood = cbr("u", "100 Mbit/s")
    lost: dict[float, list[bool]] = {}
    for verdict, _, why in decisions(
        experiment({"aqm": "drop_tail", "limit": "60 packets"}, [flood], seconds=0.5), "b"
    ):
        lost.setdefault(why["packets"], []).append(verdict == "drop")
    points = {x: sum(seen) / len(seen) for x, seen in lost.items()}
    return Curve(
        "packets waiting",
        "share dropped",
        "Nothing is dropped before 60 packets wait, then everything.",
        thinned(points, "limit 60 packets"),
    )


@curve("red")
def _red() -> Curve:
    red = {"aqm": "red", **THRESHOLDS}
    return _curves(
        {
            "gentle = true": ({**red, "gentle": True}, "out", "avg"),
            "gentle = false": ({**red, "gentle": False}, "out", "avg"),
        },
        "From min_th to max_th the probability rises to max_p; gentle RED goes on to 1 at twice max_th.",
        most=(150.0, 1.0),
    )


def _two(queue: Table, says: str) -> Curve:
    return _curves({COLOURS["in"]: (queue, "in", "avg_in"), COLOURS["out"]: (queue, "out", "avg")}, says)


@curve("rio")
def _rio() -> Curve:
    return _two(
        {"aqm": "rio", "in": IN_CURVE, "out": THRESHOLDS},
        "OUT packets are dropped from an average of 20 packets on, IN packets only from 60 IN packets on.",
    )


@curve("rio_plus_out")
def _rio_plus_out() -> Curve:
    return _two(
        {
            "aqm": "rio_plus_out",
            "in": IN_CURVE,
            "total": THRESHOLDS,
            "out": {**THRESHOLDS, "max_th": "40 packets"},
        },
        "An OUT packet passes two tests, here on the same average: the curve is steeper than RIO's.",
    )


def _three(name: str) -> Table:
    yellow, red = (
        {**THRESHOLDS, "max_th": "50 packets"},
        {"min_th": "5 packets", "max_th": "25 packets", "max_p": 0.2},
    )
    return {"aqm": name, "green": IN_CURVE, "yellow": yellow, "red": red}


@curve("wred")
def _wred() -> Curve:
    lines = {label: (_three("wred"), colour, "avg") for colour, label in COLOURS.items()}
    return _curves(lines, "Three curves on one average: red from 5 packets, yellow from 20, green from 60.")


@curve("wred_marks")
def _wred_marks() -> Curve:
    queue = _three("wred") | {
        "green_ecn": {"min_th": "40 packets", "max_th": "80 packets", "max_p": 0.2},
        "yellow_ecn": {"min_th": "10 packets", "max_th": "40 packets", "max_p": 0.2},
    }
    rows = [
        row
        for colour in ("in", "out")
        for ecn, word in (("ect0", "marked"), ("not_ect", "dropped"))
        for row in _drop_curve(queue, colour, f"{COLOURS[colour]}, {word}", ecn=ecn)
    ]
    says = (
        "ECN-capable packets are marked, yellow ones from 10 packets on and green ones from 40; others of"
        " their colour are dropped, from 20 and from 60. Where all are dropped, none is marked."
        " A line that leaves the top goes on at 1."
    )
    return Curve("average queue (packets)", "probability p_b", says, rows, (120.0, 0.25))


@curve("dsred")
def _dsred() -> Curve:
    lines = {label: (_three("dsred"), colour, "avg") for colour, label in COLOURS.items()}
    return _curves(lines, "Three curves as in ns-2: red from 5 packets, yellow from 20, green from 60.")


@curve("dwred")
def _dwred() -> Curve:
    lines = {
        f"max_th {n} packets": ({"aqm": "dwred", "fallback_max_th": f"{n} packets"}, "out", "avg")
        for n in (40, 80, 120)
    }
    return _curves(lines, "The same curve stretched: min_th is 15 % of max_th, which the edge tells it.")


@curve("ared")
def _ared() -> Curve:
    link = {"aqm": "ared", "limit": "400 packets", "target_delay": "20 ms"}
    tcp = [{"name": "few", "count": 4}, {"name": "many", "count": 60, "start": "30 s"}]
    rows = series(watched(link, tcp, 90), {"max_p": "max_p"})
    return Curve("time (s)", "max_p", "max_p grows when sixty TCP flows join four at 30 s.", rows)


@curve("virtual_queue")
def _virtual_queue() -> Curve:
    link = {
        "aqm": "virtual_queue",
        "limit": "400 packets",
        "virtual_rate": "9.5 Mbit/s",
        "virtual_limit": "200 packets",
        "law": "red",
        "red": THRESHOLDS,
    }
    found = {"virtual_backlog": "virtual backlog", "packets": "real queue"}
    rows = series(watched(link, [{"name": "tcp", "count": 10}], 40), found)
    says = "The virtual backlog goes up and down about RED's thresholds; the real queue stays nearly empty."
    return Curve("time (s)", "packets", says, rows)


@curve("fdd_red")
def _fdd_red() -> Curve:
    sent = [5, 10, 15, 30, 40]
    flows = [cbr(f"u{share}", f"{share * 0.12:.1f} Mbit/s") for share in sent]
    rows: Rows = []
    for name in ("red", "fdd_red"):
        queue = {"aqm": name, "limit": "400 packets", **THRESHOLDS}
        lost = [row.values["dropped"][0] for row in experiment(queue, flows, seconds=30).run(1).rows("flows")]
        rows += [{"line": name, "x": x, "y": 100 * n / sum(lost)} for x, n in zip(sent, lost, strict=True)]
    return Curve(
        "share of the packets sent (%)",
        "share of the drops (%)",
        "RED takes from each flow in proportion to what it sends; FDD-RED spreads the drops more evenly.",
        rows,
    )
