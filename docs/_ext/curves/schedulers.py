"""The shares of two classes of a link; queueing delay, and what a flow gets that does not slow down."""

from __future__ import annotations

from curves.drawn import THRESHOLDS, Curve, Rows, Table, cbr, curve, experiment, series, watched


def _classes(scheduler: str, first: Table, second: Table) -> Curve:
    """The shares of two classes of 10 Mbit/s: one sends more and more, the other always 10 Mbit/s."""
    classes = [
        {"name": name, "aqm": "drop_tail", "limit": "100 packets", **more}
        for name, more in (("first", first), ("second", second))
    ]
    rows: Rows = []
    for rate in range(1, 13):
        flows = [cbr("a", f"{rate} Mbit/s", into="first"), cbr("b", "10 Mbit/s", into="second")]
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


def delays(queues: dict[str, Table]) -> Curve:
    """Waiting time before the link, as few and then many TCP flows fill it."""
    rows: Rows = []
    for line, queue in {"drop_tail": {"aqm": "drop_tail"}, **queues}.items():
        tcp = [{"name": "few", "count": 4}, {"name": "many", "count": 36, "start": "20 s"}]
        # 1040 B at 10 Mbit/s.
        rows += series(watched({"limit": "200 packets", **queue}, tcp, 40), {"packets": line}, scale=0.832)
    return Curve(
        "time (s)",
        "queueing delay (ms)",
        "Four TCP flows, and from 20 s on forty: how long a packet waits.",
        rows,
    )


def _isolation(queues: dict[str, Table]) -> Curve:
    """The throughput of an unresponsive flow beside four TCP flows, over its sending rate."""
    rows: Rows = []
    for line, queue in {"drop_tail": {"aqm": "drop_tail"}, **queues}.items():
        for sent in [0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12]:
            flows = [{"name": "tcp", "count": 4}, cbr("u", f"{sent} Mbit/s")]
            result = experiment({"limit": "200 packets", **queue}, flows, seconds=20).run(1)
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


@curve("ns2_fq")
def _ns2_fq() -> Curve:
    return _isolation({"ns2_fq": {"aqm": "ns2_fq"}})


@curve("pi")
def _pi() -> Curve:
    # Ten times the paper's gains: its link is larger, and has more flows.
    settings = {"q_ref": "20 packets", "a": 0.0001822, "b": 0.0001816}
    return delays({"pi": {"aqm": "pi", **settings}})


@curve("rem")
def _rem() -> Curve:
    return delays({"rem": {"aqm": "rem"}})
