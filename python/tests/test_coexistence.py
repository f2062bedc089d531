"""Prague beside CUBIC through DualPI2: where the coupling's arithmetic holds (RFC 9332, Appendix C)."""

from __future__ import annotations

import math

from inprofile.experiment.scenario import parse

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
    """RFC 9332, Appendix C, is of a constant probability; one CUBIC flow's saw-tooth makes it swing.

    Prague follows its mean and CUBIC its mean square, which is more than twice the square of the mean.
    """
    assert _ratio(1, 50, 60) > 1.5
