"""An access network said level by level: what it stands for, how it is shown, how many fit at each level."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile.cli import app
from inprofile.experiment.scenario import Scenario
from inprofile.experiment.topology import draw, folded, text
from inprofile.run.storage import FolderInUse
from inprofile.studies.plan.tree.answer import as_json, as_text, fits
from inprofile.studies.plan.tree.network import TreeError, classes, network_of

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


# Datagrams at their contract: a link carries as many as it has room for, and not one more. Of three streets
# of 10 Mbit/s each has sold 5 to five customers; the uplink has 18.
ISP = """
title = "A tree"
duration = "2 s"
measure = { from = "500 ms", at = "uplink-1" }
seeds = 1

[[trees]]
name = "isp"
root = "core"
levels = [
  { name = "uplink", fan_out = 1, rate = "18 Mbit/s", delay = "2 ms", queue = QUEUE },
  { name = "street", fan_out = 3, rate = "10 Mbit/s", delay = "1 ms", queue = QUEUE },
]

[[trees.flows]]
name = "house"
count = 5
start = "uniform 0..100 ms"
join = { rate = "50 Mbit/s" }
rtt = "20..40 ms"
contract = "1 Mbit/s"
traffic = { kind = "cbr", rate = "1 Mbit/s", packet = "500 B" }
""".replace("QUEUE", '{ aqm = "drop_tail", limit = "20 packets" }')


def test_a_link_carries_what_it_has_room_for() -> None:
    network = network_of(Scenario(ISP, "tree.toml"))
    assert [(place.node, len(place.leaves)) for place in network.places] == [
        ("street-1-1", 1),
        ("uplink-1", 3),
    ]
    answer = fits(network)
    street, everywhere = answer.fits
    # Three more fill the uplink, which is before a street is full.
    for fit in answer.fits:
        assert fit.by_contract == 3
        assert fit.fits is not None
        assert fit.fits.more == 3
        assert fit.too_many is not None
        assert fit.too_many.broken.link == "uplink-1"
    assert street.too_many is not None
    assert street.too_many.more == 4
    assert everywhere.fits is not None
    assert everywhere.fits.below.wanted == (18,) * 6
    told = as_json(answer)
    assert told["places"][0]["too_many"]["breaks_first"]["level"] == "uplink"
    assert re.search(r"uplink-1 breaks first: \d+ contracts? missed, of whose IN packets", as_text(answer))


def test_what_was_stopped_goes_on_to_the_same_answer(tmp_path: Path) -> None:
    network = network_of(Scenario(ISP, "tree.toml"))
    whole = as_json(fits(network))
    made: list[int] = []

    def stop(runs: int) -> None:
        made.append(runs)
        if runs >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fits(network, place=tmp_path / "runs", count=stop)
    kept, made = max(made), []
    assert as_json(fits(network, place=tmp_path / "runs", count=made.append)) == whole
    assert 0 < max(made) <= whole["runs"] - kept
    # Nothing is left to do; another share needs no other runs of what was tried.
    made = []
    assert as_json(fits(network, place=tmp_path / "runs", count=made.append)) == whole
    assert made == []
    with pytest.raises(FolderInUse, match="another experiment"):
        fits(network_of(Scenario(ISP, "tree.toml").with_({"duration": "3 s"})), place=tmp_path / "runs")


def test_the_answer_is_written_beside_its_runs(tmp_path: Path) -> None:
    file, out = tmp_path / "tree.toml", tmp_path / "answer"
    file.write_text(ISP)
    asked = ["plan", "tree", str(file), "--out", str(out), "--json"]
    first = CliRunner().invoke(app, asked)
    assert first.exit_code == 0
    told = json.loads(first.stdout)
    assert told.pop("format") == 1
    assert told.pop("files") == {"answer.json": str(out / "answer.json")}
    assert json.loads((out / "answer.json").read_text()) == told
    (out / "mine.txt").write_text("")
    second = CliRunner().invoke(app, asked)
    assert second.exit_code == 2
    assert "mine.txt" in json.loads(second.stdout)["error"]


def test_the_street_breaks_first_where_it_is_narrow() -> None:
    scenario = Scenario(ISP, "tree.toml").with_({"trees.isp.levels.uplink.rate": "50 Mbit/s"})
    street = fits(network_of(scenario)).fits[0]
    assert street.fits is not None
    assert street.fits.more == 5
    assert street.too_many is not None
    assert street.too_many.broken.link == "street-1-1"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('contract = "1 Mbit/s"', ""), "nothing was promised"),
        (
            ('start = "uniform 0..100 ms"', 'start = ["0 s", "1 ms", "2 ms", "3 ms", "4 ms"]'),
            "start of house",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(change: tuple[str, str], said: str) -> None:
    with pytest.raises(TreeError, match=said):
        network_of(Scenario(ISP.replace(*change), "tree.toml"))


def test_refused_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "tree.toml"
    file.write_text(ISP)
    for more, said in ((["--group", "x"], "no group of flows x"), (["--tree", "x"], "no tree x")):
        answer = CliRunner().invoke(app, ["plan", "tree", str(file), *more, "--json"])
        assert answer.exit_code == 2
        assert said in json.loads(answer.stdout)["error"]


def test_a_tree_as_classes_of_htb(tmp_path: Path) -> None:
    text, unsaid = classes(Scenario(ISP, "tree.toml"), "eth1")
    assert text.splitlines()[:3] == [
        "qdisc replace dev eth1 root handle 1: htb",
        "# uplink-1",
        "class add dev eth1 parent 1: classid 1:1 htb rate 18000000bit ceil 18000000bit",
    ]
    # A street has what was sold below it, and may take its whole link.
    assert "class add dev eth1 parent 1:1 classid 1:4 htb rate 5000000bit ceil 10000000bit" in text
    assert text.count("pfifo limit 20") == 3
    assert unsaid[0].startswith("drop_tail of uplink: HTB has queues at leaves alone")
    file, out = tmp_path / "tree.toml", tmp_path / "tree.tc"
    file.write_text(ISP)
    answer = CliRunner().invoke(app, ["export", str(file), "--tc", str(out), "--dev", "eth1"])
    assert answer.exit_code == 0
    assert out.read_text() == text


def test_what_htb_cannot_have_is_refused(tmp_path: Path) -> None:
    for change, said in (
        ({"trees.isp.direction": "up"}, "leads up"),
        ({"trees.isp.levels.street.queue": {"aqm": "codel", "limit": "50 packets"}}, "street-1-1 is codel"),
    ):
        with pytest.raises(TreeError, match=said):
            classes(Scenario(ISP, "tree.toml").with_(change), "eth0")
    answer = CliRunner().invoke(app, ["export", "x.toml"])
    assert answer.exit_code == 2
