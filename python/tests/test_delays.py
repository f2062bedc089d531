"""Distributions of delays: whose they are."""

import pytest

from inprofile import Result, load
from inprofile.metrics.times import Delays

EXPERIMENT = """
title    = "Expedited beside assured forwarding"
duration = "10 s"
measure  = { from = "2 s", to = "10 s", at = "bottleneck", distributions = true }

[[links]]
name  = "bottleneck"
from  = "R1"
to    = "R2"
rate  = "4 Mbit/s"
delay = "5 ms"
[links.queue]
scheduler = "priority"
classes = [
  { name = "ef", aqm = "drop_tail", limit = "50 packets" },
  { name = "af", aqm = "drop_tail", limit = "50 packets" },
]

[[flows]]
name     = "voice"
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = "20 ms"
class    = "ef"
traffic  = { kind = "cbr", rate = "500 kbit/s" }

[[flows]]
name     = "assured"
count    = 2
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = ["20 ms", "60 ms"]
class    = "af"
contract = "500 kbit/s"
marker   = { kind = "token_bucket", depth = "3 packets" }

[[flows]]
name     = "best-effort"
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = "40 ms"
class    = "af"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    file = tmp_path_factory.mktemp("delays") / "classes.toml"
    file.write_text(EXPERIMENT, "utf-8")
    return load(file).run(seeds=2)


def _count(delays: Delays, measure: str, point: str, group: str | None, colour: str | None) -> float:
    found = delays.find(measure, point, group, colour)
    return 0.0 if found is None else sum(found.values["count"])


@pytest.mark.parametrize("measure", ["one_way_delay", "excess_delay", "delay_variation", "queueing_delay"])
def test_delays_are_told_by_class_colour_and_group(result: Result, measure: str) -> None:
    delays = result.distributions()
    point = "bottleneck" if measure == "queueing_delay" else "receivers"

    def count(point: str, group: str | None = None, colour: str | None = None) -> float:
        return _count(delays, measure, point, group, colour)

    groups = [count(point, group) for group in ("voice", "assured", "best-effort")]
    assert min(groups) > 0
    assert count(point) == sum(groups)
    assert [count(f"{point}/ef"), count(f"{point}/af")] == [groups[0], groups[1] + groups[2]]
    for at, group in [(point, None), (f"{point}/af", None), (point, "assured")]:
        colours = [count(at, group, colour) for colour in ("in", "out")]
        assert min(colours) > 0
        assert sum(colours) == count(at, group)
    # Of one colour only: its row is that of all colours.
    assert delays.find(measure, f"{point}/ef", None, "in") is None
    assert delays.find(measure, point, "voice", "in") is None


def test_variation_of_a_colour_is_against_the_least_of_its_flow(result: Result) -> None:
    """RFC 5481 §4.2: so that colours can be compared; a colour of its own reference would begin at 0, too."""
    delays = result.distributions()

    def least(colour: str | None) -> list[float]:
        found = delays.find("delay_variation", "receivers", "assured", colour)
        assert found is not None
        return list(found.values["min"])

    colours = [least("in"), least("out")]
    assert least(None) == [0.0, 0.0]
    assert [min(of_seed) for of_seed in zip(*colours, strict=True)] == [0.0, 0.0]
    whole, own = (delays.find("delay_variation", at) for at in ("receivers", "receivers/ef"))
    assert whole is not None
    assert own is not None
    assert own["p99"].mean < whole["p99"].mean, "expedited packets wait for one packet at most"
