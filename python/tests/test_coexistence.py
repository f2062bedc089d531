"""Senders that share a queue: the map of `suite l4s`, and where the arithmetic of DualPI2's coupling holds.

RFC 9332, Appendix C.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import inprofile
from inprofile.experiment.scenario import parse
from inprofile.metrics.measures import Measures
from inprofile.studies.suite import Suite, UnknownTcpError, plan, read
from inprofile.studies.suite.coexistence import _shade, balance, beside_published, maps, overview
from inprofile.studies.suite.matrix import Matrix, Point, Published, Source, periods, published
from inprofile.studies.suite.tables import pair_figures

#: Base round trip and the discipline's target, in seconds; the coupling factor (RFC 9332 §2.1).
_BASE, _TARGET, _K = 0.080, 0.015, 2.0

_FILE = """
title = "Prague beside CUBIC"
duration = "{seconds} s"
measure = {{ from = "{begin} s" }}
tcp = {{ profile = "linux", ecn = true, window = "10000 packets" }}

[[links]]
name = "bottleneck"
from = "a"
to = "b"
rate = "{rate} Mbit/s"
delay = "40 ms"
queue = {{ aqm = "dualpi2", limit = "10000 packets" }}

[[flows]]
name = "prague"
count = {count}
from = "a"
to = "b"
start = "uniform 0..5 s"
tcp = {{ congestion = "prague", accurate_ecn = true }}

[[flows]]
name = "cubic"
count = {count}
from = "a"
to = "b"
start = "uniform 0..5 s"
tcp = {{ congestion = "cubic" }}
"""


def _ratio(count: int, rate: int, seconds: int) -> float:
    """Prague's rate over CUBIC's, so many of each sharing this rate in Mbit/s."""
    result = parse(_FILE.format(count=count, rate=rate, seconds=seconds, begin=seconds // 2)).run(seeds=[1])
    rates = {"prague": 0.0, "cubic": 0.0}
    for row in result.flows.to_pylist():
        rates[row["flow"].split(".")[0]] += row["goodput"]
    return rates["prague"] / rates["cubic"]


def test_many_flows_share_as_the_coupled_probability_says() -> None:
    """RFC 9332, Appendix C, Eq. (10): R_C · w / (1.22 · k · R_L), where Prague's window is w/p.

    w is 2 by Eq. (6), 1 + √3 where a reduction waits for the mark that begins it, as here; R_C is 0.85 of
    base and target, Eq. (8).
    """
    r_c = 0.85 * (_BASE + _TARGET)
    law = r_c * (1 + math.sqrt(3)) / (math.sqrt(1.5) * _K * _BASE)
    # Windows of some thirty segments: CUBIC's is Reno's below 72.
    assert 0.85 * law < _ratio(12, 120, 30) < 1.1 * law


def test_one_of_each_is_not_in_that_state() -> None:
    """RFC 9332, Appendix C, assumes a constant probability; one CUBIC flow's saw-tooth makes it swing.

    Prague follows its mean and CUBIC its mean square, which is more than twice the square of the mean.
    """
    assert _ratio(1, 50, 60) > 1.5


def test_a_map_has_every_pair_at_every_rate_and_round_trip() -> None:
    about = read("l4s")
    d = next(d for d in about.definitions if d.id == "map")
    assert d.matrix is not None
    points = list(d.matrix.points())
    # The fastest link at two round trips only.
    each = (len(d.matrix.rates) - 1) * len(d.matrix.rtts) + 2
    # Prague of 2020 at the two rates that were measured.
    measured = 2 * len(d.matrix.rtts)
    assert len(points) == len(set(points)) == (len(d.matrix.pairs) - 1) * each + measured
    # RFC 9438, Eq. 2: half of 1 Gbit/s and 175 ms are 7292 packets, K = (7292 · 0.3/0.4)^(1/3) = 17.6 s.
    assert periods(1e9, 0.16) == (18.0, 18.0)
    # 500 round trips of 20 ms, a quarter longer for the queue; from 25 ms on, no such wait.
    assert (periods(4e6, 0.02)[0], periods(4e6, 0.025)[0]) == (13.0, 5.0)
    # All of 200 Mbit/s and 270 ms are 4500 packets, K = 15 s; of 1 Gbit/s and 410 ms 34,167, K = 29.5 s.
    assert periods(200e6, 0.02, 0.25) == (120.0, 60.0)
    assert periods(1e9, 0.16, 0.25) == (236.0, 59.0)
    with pytest.raises(UnknownTcpError, match="leave --tcp out"):
        about.tcp("linux")


@pytest.fixture(scope="module")
def quick_map() -> inprofile.studies.suite.SuitePlan:  # type: ignore[name-defined]
    return plan("l4s", aqms=["dualpi2"], scenarios=["map"], quick=True)


def test_a_point_of_the_map_is_what_it_says(quick_map) -> None:  # type: ignore[no-untyped-def]
    found = {(c.contestant, c.variant): s for c, s in quick_map.work.items()}
    effective = found["dualpi2", "reno/cubic, 50 Mbit/s, 80 ms"].check().effective
    link, *_ = effective["links"]
    # 250 ms of 50 Mbit/s.
    assert (link["rate"], link["queue"]["limit"]["bytes"]) == ("50 Mbit/s", 1_562_500)
    a, b = effective["flows"]
    assert (a["tcp"]["congestion"], b["tcp"]["congestion"]) == ("sack", "cubic")
    assert a["rtt"] == b["rtt"] == "80 ms"
    assert int(a["tcp"]["window"].split()[0]) > 1.2 * 50e6 * 0.33 / 12000


def test_drop_tail_has_the_time_that_its_buffer_asks_for() -> None:
    made = plan("l4s", aqms=["dualpi2"], scenarios=["map"])
    at = "prague/cubic, 200 Mbit/s, 20 ms"
    found = {c.contestant: s.check().effective for c, s in made.work.items() if c.variant == at}
    assert [found[c]["measure"]["from"] for c in ("drop-tail", "dualpi2")] == ["120 s", "15 s"]
    assert [found[c]["duration"] for c in ("drop-tail", "dualpi2")] == ["180 s", "25 s"]


def test_prague_is_measured_once_it_has_come_to_its_share() -> None:
    """A segment a round trip of 80 ms: measured from 6 s on it had 0.93 of CUBIC's goodput."""
    made = plan("l4s", aqms=["dualpi2"], scenarios=["map"])
    at = ("dualpi2", "prague/cubic, 50 Mbit/s, 80 ms")
    (cell,) = [c for c in made.work if (c.contestant, c.variant) == at]
    of: dict[str, float] = {}
    for row in made.work[cell].run(seeds=[2]).flows.to_pylist():
        of[row["group"]] = row["goodput"]
    # Heist and Morton 2020: 1.7; settled here: 1.8.
    assert 1.6 < of["a"] / of["b"] < 2.0


def test_prague_does_not_keep_the_link_from_cubic_before_drop_tail() -> None:
    """It answers losses as Reno does, and CUBIC grows faster (RFC 9438 §5.2).

    Prague fills the buffer in slow start, which CUBIC's HyStart leaves as soon as round trips grow: a window
    that ended with the first recovery had ten times CUBIC's goodput.
    """
    made = plan("l4s", aqms=["drop-tail"], scenarios=["map"])
    (cell,) = [c for c in made.work if c.variant == "prague/cubic, 50 Mbit/s, 80 ms"]
    of: dict[str, float] = {}
    for row in made.work[cell].run(seeds=[2]).flows.to_pylist():
        of[row["group"]] = row["goodput"]
    # Heist and Morton 2020: 3.95 and 3.74 Mbit/s beside 43.6 and 43.7.
    assert of["a"] / of["b"] < 0.25


def test_a_map_shows_balance_waits_and_what_was_published(quick_map) -> None:  # type: ignore[no-untyped-def]
    def measured(ratios: list[float]) -> Measures:
        figures = {"ratio:a/b": ratios, "goodput:a": [1e6, 1e6], "goodput:b": [1e6, 1e6]}
        figures |= {f"delay_{p}:{g}": [0.001, 0.001] for p in ("p50", "p99") for g in "ab"}
        figures |= {"utilisation": [0.9, 1.0]}
        return Measures((1, 2), {k: np.asarray(v) for k, v in figures.items()}, {})

    about = next(d for d in quick_map.definitions if d.id == "map")
    found = {c: measured([2.0, 0.5] if "50 Mbit/s" in c.variant else [16.0, 25.0]) for c in quick_map.work}
    made = Suite(quick_map, found)
    entries = [e for v in about.variants for e in made.entries(about, v)]
    # Of twice and half it is 1, of 16 and 25 it is 20: the geometric mean.
    assert {round(x, 9) for e in entries if (x := balance(e)) is not None} == {1.0, 20.0}
    row = next(r for r in overview(made, about) if r[:2] == ["Reno / CUBIC", "DualPI2"])
    assert row[3:] == ["1 to 20", "2 of 4", "1 ms", "1 ms", "95 %"]
    source = Source("x", "Somebody", "")
    point = Point("reno", "cubic", "10 Mbit/s", "10 ms")
    known = [Published(source, point, "dualpi2", [(5.0, 1.0)]), Published(source, point, "pie", [(5.0, 1.0)])]
    (beside,) = beside_published(made, about, known)
    assert beside["cells"] == ["Reno / CUBIC", "10 Mbit/s", "10 ms", "DualPI2", "5", "20", "4 ×"]
    pair = next(m for m in maps(made, about) if (m["a"], m["b"]) == ("Reno", "CUBIC"))
    grid = next(p for p in pair["panels"] if p["title"] == "DualPI2")["balance"]
    # The fastest link is at the top.
    assert [(row["rate"], [c["text"] for c in row["cells"]]) for row in grid] == [
        ("50 Mbit/s", ["1", "1"]),
        ("10 Mbit/s", ["20", "20"]),
    ]
    # Below the maps every figure has its interval; a ratio's is that of its logarithm.
    below = pair_figures(made, about, pair["points"])
    assert below["measures"][0] == "ratio of goodputs, a/b"
    cells = next(
        r["cells"]
        for r in below["rows"]
        if (r["title"], r["rate"], r["rtt"]) == ("DualPI2", "10 Mbit/s", "10 ms")
    )
    assert (cells[0]["mean"], cells[0]["interval"]) == ("20", "1.2 to 341")
    almost = Suite(quick_map, {c: measured([0.995, 0.995]) for c in quick_map.work})
    grid = next(iter(maps(almost, about)))["panels"][0]["balance"]
    assert {c["text"] for r in grid for c in r["cells"]} == {"1"}


def test_two_of_a_kind_are_run_in_one_order_only() -> None:
    matrix = Matrix([["x", "x"], ["x", "y"]], ["1 Mbit/s"], ["1 ms/2 ms", "2 ms/1 ms"], "9 ms", {})
    assert [p.name for p in matrix.points()] == [
        "x/x, 1 Mbit/s, 1 ms/2 ms",
        "x/y, 1 Mbit/s, 1 ms/2 ms",
        "x/y, 1 Mbit/s, 2 ms/1 ms",
    ]


def test_published_points_are_of_the_map() -> None:
    about = read("l4s")
    points = {p.name for d in about.definitions if d.matrix for p in d.matrix.points()}
    known = published(about.folder)
    assert known
    assert {p.aqm for p in known} <= set(about.contestants)
    assert sum(p.point.name in points for p in known) > 60
    assert all(a > 0 and b > 0 for p in known for a, b in p.goodput)


def test_a_balance_is_shaded_by_who_has_more() -> None:
    assert _shade((0, 0, 0), 0.0) == "background:rgb(255,255,255);color:#111"
    assert _shade((33, 102, 172), 1.0) == "background:rgb(33,102,172);color:#fff"
