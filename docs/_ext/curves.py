"""What each mechanism does, drawn from what its code did: the pictures of the pages on concepts.

Every point of a drop curve is a decision of a run, with the average and the probability that the mechanism
itself gave as its reason (`trace`); every share of colours was counted. Nothing comes from a formula here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

import inprofile

__all__ = ["CURVES", "Curve", "NotDrawable", "draw"]

Rows = list[dict[str, Any]]
Table = dict[str, Any]


class NotDrawable(ValueError):
    """A mechanism without a curve of its own that has settings nobody gave."""


@dataclass(frozen=True)
class Curve:
    """Lines over one quantity."""

    x: str
    y: str
    says: str
    """What is to be seen, for those who do not see it."""
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


def draw(name: str) -> Curve:
    """Draw a mechanism's curve; one without a curve of its own is drawn at its defaults.

    Raises `NotDrawable` where it has settings without a default.
    """
    if name in CURVES:
        return CURVES[name]()
    mechanism = next(m for m in inprofile.mechanisms() if m.name == name)
    needed = [p.name for p in mechanism.parameters if p.default is None]
    if needed or mechanism.kind == "scheduler":
        raise NotDrawable(f"docs/_ext/curves.py has no curve of {name}, which needs {', '.join(needed)}")
    return _shares({name: {"kind": name}}) if mechanism.kind == "marker" else _delays({name: {"aqm": name}})


# Experiments


def _experiment(
    queue: Table, flows: list[Table], *, seconds: float, rate: str = "10 Mbit/s", more: str = ""
) -> inprofile.Scenario:
    """One link, a queue, and flows that each come over a fast link of their own; `more` is put behind it."""
    link = {"name": "b", "from": "r", "to": "s", "rate": rate, "delay": "5 ms", "queue": queue}
    host = {"from": "H*", "join": {"node": "r", "rate": "1 Gbit/s"}, "to": "s", "rtt": "20 ms"}
    tables = [("links", link), *(("flows", {**host, **flow}) for flow in flows)]
    text = _toml({"title": "curve", "duration": f"{seconds} s"})
    text += "".join(f"[[{kind}]]\n{_toml(table)}" for kind, table in tables)
    return inprofile.parse(text + more)


def _edge(marker: Table) -> str:
    return f'[[edges]]\nnode = "r"\nmarker = {_value(marker)}\n'


def _toml(table: Table) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _cbr(
    name: str, rate: str, marker: Table | None = None, *, into: str = "", size: int = 1000, **more: Any
) -> Table:
    marked = ({"marker": marker} if marker else {}) | ({"class": into} if into else {})
    return {
        "name": name,
        "traffic": {"kind": "cbr", "rate": rate, "packet": f"{size} B", "dither": 1.0},
        **marked,
        **more,
    }


def _decisions(
    scenario: inprofile.Scenario, point: str
) -> Iterator[tuple[str, str | None, dict[str, float]]]:
    """Verdict, cause and reasons of every decision at a place."""
    for row in _traced(scenario, point).to_pylist():
        yield row["verdict"], row["cause"], json.loads(row["why"])


def _traced(scenario: inprofile.Scenario, point: str) -> Any:
    verdicts = scenario.run(1, trace=True).verdicts
    return verdicts.filter(pc.equal(verdicts["point"], point))


def _thinned(points: dict[float, float], line: str) -> Rows:
    return [{"line": line, "x": x, "y": y} for x, y in sorted(points.items())]


# Queue disciplines

THRESHOLDS = {"min_th": "20 packets", "max_th": "60 packets", "max_p": 0.1}
COLOURS = {"in": "IN (green)", "out": "OUT (yellow)", "red": "red"}


def _drop_curve(queue: Table, colour: str, line: str, average: str = "avg") -> Rows:
    """Probability of an early drop at each average that an overload of one colour takes the queue through."""
    flood = _cbr("u", "100 Mbit/s", {"kind": "colour", "colour": colour})
    points: dict[float, float] = {}
    for verdict, cause, why in _decisions(
        _experiment({"limit": "400 packets", **queue}, [flood], seconds=1.5), "b"
    ):
        if average not in why or cause == "overflow":
            continue
        kept = 1.0 - why.get("p_b", 0.0)
        # RI+O's third curve is tried after the second has let the packet pass.
        kept *= 1.0 - why.get("p_b_of_out", 0.0)
        p = 1.0 if verdict == "drop" and "p_b" not in why else 1.0 - kept
        # A packet that failed the first of two tests says nothing of the second.
        if verdict != "drop" or p in (0.0, 1.0):
            points[round(why[average] * 2) / 2] = p
    return _thinned(points, line)


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
    flood = _cbr("u", "100 Mbit/s")
    lost: dict[float, list[bool]] = {}
    for verdict, _, why in _decisions(
        _experiment({"aqm": "drop_tail", "limit": "60 packets"}, [flood], seconds=0.5), "b"
    ):
        lost.setdefault(why["packets"], []).append(verdict == "drop")
    points = {x: sum(seen) / len(seen) for x, seen in lost.items()}
    return Curve(
        "packets waiting",
        "share dropped",
        "Nothing is dropped before 60 packets wait, then everything.",
        _thinned(points, "limit 60 packets"),
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


IN_CURVE = {"min_th": "60 packets", "max_th": "90 packets", "max_p": 0.05}


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
    rows = _series(_watched(link, tcp, 90), {"max_p": "max_p"})
    return Curve("time (s)", "max_p", "max_p grows when sixty TCP flows join four at 30 s.", rows)


def _coupled(queue: Table) -> Rows:
    """Shares of each code point marked and dropped, against what senders send that never slow down."""
    rows: Rows = []
    for load in (1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 1.7, 2.0):
        seen: dict[str, list[str]] = {"ect1.0": [], "not_ect.0": []}
        decided = _traced(_experiment({"limit": "1000 packets", **queue}, _halves(load), seconds=30), "b")
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
    flows = [_cbr(kind, f"{load * 5:.2f} Mbit/s") for kind in ("ect1", "not_ect")]
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
        made = _watched({"limit": "1000 packets", **queue}, _halves(load), seconds)
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
        [row for what, line in points.items() for row in _thinned(line, names[what])],
    )


@curve("fdd_red")
def _fdd_red() -> Curve:
    sent = [5, 10, 15, 30, 40]
    flows = [_cbr(f"u{share}", f"{share * 0.12:.1f} Mbit/s") for share in sent]
    rows: Rows = []
    for name in ("red", "fdd_red"):
        queue = {"aqm": name, "limit": "400 packets", **THRESHOLDS}
        lost = [
            row.values["dropped"][0] for row in _experiment(queue, flows, seconds=30).run(1).rows("flows")
        ]
        rows += [{"line": name, "x": x, "y": 100 * n / sum(lost)} for x, n in zip(sent, lost, strict=True)]
    return Curve(
        "share of the packets sent (%)",
        "share of the drops (%)",
        "RED takes from each flow in proportion to what it sends; FDD-RED spreads the drops more evenly.",
        rows,
    )


def _watched(queue: Table, flows: list[Table], seconds: float) -> inprofile.Scenario:
    return _experiment(queue, flows, seconds=seconds, more='[[monitors]]\nqueue = "b"\nevery = "250 ms"\n')


def _series(scenario: inprofile.Scenario, wanted: dict[str, str], scale: float = 1.0) -> Rows:
    return [
        {"line": wanted[row["what"]], "x": row["t"], "y": row["value"] * scale}
        for row in scenario.run(1).series.to_pylist()
        if row["what"] in wanted and row["value"] is not None
    ]


def _delays(queues: dict[str, Table]) -> Curve:
    """Waiting time before the link, as few and then many TCP flows fill it."""
    rows: Rows = []
    for line, queue in {"drop_tail": {"aqm": "drop_tail"}, **queues}.items():
        tcp = [{"name": "few", "count": 4}, {"name": "many", "count": 36, "start": "20 s"}]
        # 1040 B at 10 Mbit/s.
        rows += _series(_watched({"limit": "200 packets", **queue}, tcp, 40), {"packets": line}, scale=0.832)
    return Curve(
        "time (s)",
        "queueing delay (ms)",
        "Four TCP flows, and from 20 s on forty: how long a packet waits.",
        rows,
    )


def _isolation(queues: dict[str, Table]) -> Curve:
    """What a flow gets that sends whatever happens, beside four TCP flows, over what it sends."""
    rows: Rows = []
    for line, queue in {"drop_tail": {"aqm": "drop_tail"}, **queues}.items():
        for sent in [0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12]:
            flows = [{"name": "tcp", "count": 4}, _cbr("u", f"{sent} Mbit/s")]
            result = _experiment({"limit": "200 packets", **queue}, flows, seconds=20).run(1)
            got = next(row["throughput"] for row in result.flows.to_pylist() if row["flow"].startswith("u"))
            rows.append({"line": line, "x": sent, "y": got / 1e6})
    return Curve(
        "rate sent (Mbit/s)",
        "rate received (Mbit/s)",
        "A flow that sends at a constant rate, and four TCP flows at a link of 10 Mbit/s: what it gets.",
        rows,
    )


@curve("fq_codel")
def _fq_codel() -> Curve:
    return _isolation({"codel": {"aqm": "codel"}, "fq_codel": {"aqm": "fq_codel"}})


@curve("fq_pie")
def _fq_pie() -> Curve:
    return _isolation({"pie": {"aqm": "pie"}, "fq_pie": {"aqm": "fq_pie"}})


@curve("sfq")
def _sfq() -> Curve:
    return _isolation({"sfq": {"aqm": "sfq"}})


@curve("choke")
def _choke() -> Curve:
    red = {"aqm": "red", **THRESHOLDS}
    return _isolation({"red": red, "choke": {**red, "aqm": "choke"}})


@curve("sfb")
def _sfb() -> Curve:
    return _isolation({"sfb": {"aqm": "sfb", "penalty_rate": 100}})


@curve("ns2_sfq")
def _ns2_sfq() -> Curve:
    return _isolation({"ns2_sfq": {"aqm": "ns2_sfq"}})


@curve("ns2_drr")
def _ns2_drr() -> Curve:
    return _isolation({"ns2_drr": {"aqm": "ns2_drr"}})


# Markers

RATES = [0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0]
BUCKET = "8 packets"
DROP_TAIL = {"aqm": "drop_tail", "limit": "400 packets"}


def _counted(marker: Table, rate: float) -> dict[str, float]:
    """Share of each verdict among the packets of a flow with a contract of 1 Mbit/s that sends at `rate`."""
    flow = _cbr("u", f"{rate} Mbit/s", marker, contract="1 Mbit/s")
    own = _traced(_experiment(DROP_TAIL, [flow], seconds=30), "u.0")
    # The first half goes: full buckets, and rates not yet measured.
    own = own.slice(own.num_rows // 2)
    counts = {str(each["values"]): int(each["counts"]) for each in own["verdict"].value_counts().to_pylist()}
    return {verdict: counts.get(verdict, 0) / own.num_rows for verdict in ("in", "out", "red", "drop")}


def _shares(markers: dict[str, Table], colours: tuple[str, ...] = ("in",)) -> Curve:
    """Shares of colours against what a flow with a contract of 1 Mbit/s sends."""
    rows: Rows = []
    for line, marker in markers.items():
        for rate in RATES:
            shares = _counted(marker, rate)
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
    return _shares({"token_bucket": {"kind": "token_bucket", "depth": BUCKET}}, ("in", "out"))


@curve("tsw2cm")
def _tsw2cm() -> Curve:
    return _shares({f'excess = "{e}"': {"kind": "tsw2cm", "excess": e} for e in ("share", "all")})


@curve("tsw3cm")
def _tsw3cm() -> Curve:
    return _shares({"tsw3cm": {"kind": "tsw3cm", "ptr": "2 Mbit/s"}}, ("in", "out", "red"))


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
        seen = [verdict for verdict, _, _ in _decisions(_experiment(DROP_TAIL, [flow], seconds=5), "u.0")]
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
    return _shares(
        {"trtcm": {"kind": "trtcm", "pir": "2 Mbit/s", "cbs": BUCKET, "pbs": BUCKET}}, ("in", "out", "red")
    )


@curve("rfc4115")
def _rfc4115() -> Curve:
    return _shares(
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
        flood = [_cbr("u", f"{load} Mbit/s", size=1500)]
        for verdict, _, why in _decisions(_experiment(DROP_TAIL, flood, seconds=15, more=_edge(marker)), "r"):
            seen.setdefault(float(int(why["tokens"])), []).append(verdict)
    rows: Rows = []
    for verdict, line in {"out": "remarked OUT", "drop": "dropped"}.items():
        points = {x: v.count(verdict) / len(v) for x, v in seen.items() if len(v) >= 100 and x <= 30}
        rows += _thinned(points, line)
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
        p: _counted({"kind": "blind_drop", "p": p}, 2.0)["drop"]
        for p in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    }
    return Curve("p", "share dropped", "As many are dropped as p says.", _thinned(points, "blind_drop"))


@curve("every_nth")
def _every_nth() -> Curve:
    points = {
        float(n): _counted({"kind": "every_nth", "n": n}, 2.0)["out"]
        for n in (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30)
    }
    return Curve("n", "share OUT", "One packet in n is OUT.", _thinned(points, "every_nth"))


@curve("probe")
def _probe() -> Curve:
    queue = {"aqm": "rio", "limit": "100 packets", "in": IN_CURVE, "out": THRESHOLDS}
    flow = {"name": "t", "count": 4, "marker": {"kind": "probe"}}
    rows: Rows = []
    for number, (_, _, why) in enumerate(
        _decisions(_experiment(queue, [flow], seconds=20, rate="3 Mbit/s"), "t.0")
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
    scenario = _experiment(queue, [flow], seconds=60, more=_edge({"kind": "twam"}))
    rows: Rows = []
    for row in _traced(scenario, "r").to_pylist():
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


# Schedulers


def _classes(scheduler: str, first: Table, second: Table) -> Curve:
    """What two classes get of 10 Mbit/s: one sends more and more, the other always 10 Mbit/s."""
    classes = [
        {"name": name, "aqm": "drop_tail", "limit": "100 packets", **more}
        for name, more in (("first", first), ("second", second))
    ]
    rows: Rows = []
    for rate in range(1, 13):
        flows = [
            _cbr("a", f"{rate} Mbit/s", into="first"),
            _cbr("b", "10 Mbit/s", into="second"),
        ]
        made = _experiment({"scheduler": scheduler, "classes": classes}, flows, seconds=10).run(1)
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
