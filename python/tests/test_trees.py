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


def test_results_of_all_leaves_are_shown_together() -> None:
    from inprofile.cli.run import as_json, as_text
    from inprofile.run.trees import by_kind, levels

    result = Scenario(TREE, "tree.toml").run(seeds=2)
    assert [(group.name, group.flows) for group in by_kind(result).groups()] == [("gold", 6), ("basic", 9)]
    uplink, street = levels(result)
    assert (uplink.links, street.links) == (("uplink-1",), ("street-1-1", "street-1-2", "street-1-3"))
    rows = {(row["seed"], row["queue"]): row for row in result.queues.to_pylist()}
    used = [[rows[seed, link]["utilisation"] for link in street.links] for seed in (1, 2)]
    assert abs(street.utilisation.mean - sum(map(sum, used)) / 6) < 1e-12
    most = [sum(of) / 2 for of in zip(*used, strict=True)]
    assert street.most_used == street.links[most.index(max(most))]
    assert abs(street.most.mean - max(most)) < 1e-12
    shown = as_text(result)
    assert "gold-1-2" not in shown
    assert "street-1-2:" in shown or "street-1-2 " not in shown
    found = as_json(result, "tree.toml")
    assert [level["level"] for level in found["levels"]] == ["uplink", "street"]
    assert [kind["group"] for kind in found["kinds"]] == ["gold", "basic"]


def test_kinds_of_one_name_say_whose_they_are() -> None:
    from inprofile.run.trees import by_kind

    again = """
[[trees]]
name = "other"
root = "hub"
levels = [{ name = "road", fan_out = 2, rate = "10 Mbit/s", delay = "1 ms", queue = QUEUE }]
flows = [{ name = "basic", join = { rate = "50 Mbit/s" }, rtt = "20 ms" }]
""".replace("QUEUE", '{ aqm = "drop_tail", limit = "50 packets" }')
    both = by_kind(Scenario(TREE + again, "trees.toml").run(seeds=1))
    assert list(dict.fromkeys(both.flows["group"].to_pylist())) == ["gold", "isp/basic", "other/basic"]


def test_the_schema_gives_no_ends_to_the_flows_of_a_tree() -> None:
    import json

    from inprofile import _internal

    tree = json.loads(_internal.schema([]))["properties"]["trees"]["items"]["properties"]
    flows = tree["flows"]["items"]["properties"]
    assert {"name", "count", "join"} <= set(flows)
    assert not {"from", "to"} & set(flows)
    assert set(flows["join"]["properties"]) == {"rate", "limit"}
