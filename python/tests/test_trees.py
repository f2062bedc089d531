"""An access network said level by level: what it stands for, how it is shown, what is sold at each level."""

from __future__ import annotations

from inprofile.experiment.scenario import Scenario
from inprofile.experiment.topology import draw, folded, text

TREE = """
title = "A tree"
duration = "1 s"
seeds = 1
measure = { at = "uplink-1" }

[[trees]]
name = "isp"
root = "core"

[[trees.levels]]
name = "uplink"
fan_out = 1
rate = "40 Mbit/s"
delay = "2 ms"
queue = { aqm = "drop_tail", limit = "50 packets" }

[[trees.levels]]
name = "street"
fan_out = 3
rate = "20 Mbit/s"
delay = "1..3 ms"
contract = "12 Mbit/s"
queue = { aqm = "drop_tail", limit = "50 packets" }

[[trees.flows]]
name = "gold"
count = 2
join = { rate = "50 Mbit/s" }
rtt = "20 ms"
contract = "5 Mbit/s"

[[trees.flows]]
name = "basic"
count = 3
join = { rate = "50 Mbit/s" }
rtt = "20..40 ms"
"""


def test_a_tree_stands_for_links_and_flows() -> None:
    scenario = Scenario(TREE, "tree.toml")
    assert scenario.flows == 15
    effective = scenario.check().effective
    forward = [one for one in effective["links"] if "reverse_of" not in one]
    assert [(one["name"], one["from"], one["to"], one["delay"]) for one in forward] == [
        ("uplink-1", "core", "uplink-1", "2 ms"),
        ("street-1-1", "uplink-1", "street-1-1", "1 ms"),
        ("street-1-2", "uplink-1", "street-1-2", "2 ms"),
        ("street-1-3", "uplink-1", "street-1-3", "3 ms"),
    ]
    assert [flow["name"] for flow in effective["flows"]] == [
        f"{kind}-1-{i}" for i in (1, 2, 3) for kind in ("gold", "basic")
    ]
    assert {flow["route"][0] for flow in effective["flows"]} == {"uplink-1"}
    uplink, street = effective["trees"][0]["levels"]
    # Three streets that have bought 12 Mbit/s each; below each two customers with 5.
    assert uplink["promised"] == ["36 Mbit/s"]
    assert street["promised"] == ["10 Mbit/s"] * 3
    assert abs(uplink["sold"] - 0.9) < 1e-9


def test_upwards_everything_is_turned_round() -> None:
    scenario = Scenario(TREE.replace('root = "core"', 'root = "core"\ndirection = "up"'), "tree.toml")
    effective = scenario.check().effective
    assert effective["flows"][0]["join"]["node"] == "street-1-1"
    assert effective["flows"][0]["route"] == ["street-1-1", "uplink-1"]


def test_check_draws_one_node_of_each_level() -> None:
    scenario = Scenario(TREE, "tree.toml")
    found = scenario.check()
    shown = text(draw(found.effective, found.warnings))
    assert "street-1-1" in shown
    assert "street-1-2" not in shown
    assert "36 Mbit/s" in shown
    assert [flow["name"] for flow in folded(found.effective)["flows"]] == ["gold-1-1", "basic-1-1"]


def test_a_tree_runs_as_what_it_stands_for() -> None:
    result = Scenario(TREE, "tree.toml").run(seeds=1)
    rows = result.flows.to_pylist()
    assert len(rows) == 15
    assert all(row["sent"] > 0 for row in rows)
    assert {row["queue"] for row in result.queues.to_pylist()} >= {"uplink-1", "street-1-3"}


def test_what_is_drawn_is_the_same_for_every_seed() -> None:
    drawn = TREE.replace("fan_out = 3", 'fan_out = "uniform 2..9"').replace('"1..3 ms"', '"uniform 1..3 ms"')
    drawn = drawn.replace('contract = "12 Mbit/s"\n', "oversubscription = 2\n")
    drawn = drawn.replace("fan_out = 1\n", "fan_out = 1\noversubscription = 3\n")
    one, again = (Scenario(drawn, "tree.toml").check().effective["links"] for _ in range(2))
    assert one == again
    other = Scenario(drawn.replace('root = "core"', 'root = "core"\ndraw = 2'), "tree.toml").check().effective
    assert other["links"] != one
