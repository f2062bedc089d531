"""What a switch's QoS has beside WRED: policers, schedulers and maps, written, read back, and refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inprofile import STARTER, parse
from inprofile.cli import app
from inprofile.experiment.dump import written as as_file
from inprofile.studies.wred import Switch, Unreadable, read_switch
from inprofile.studies.wred.experiment import switch_of
from inprofile.studies.wred.profile import Policer, Scheduler
from inprofile.studies.wred.written import FORMATS, Unsayable

WRED = {
    "aqm": "wred",
    "limit": "60 packets",
    "green": {"min_th": "20 packets", "max_th": "40 packets", "max_p": 0.02},
    "yellow": {"min_th": "10 packets", "max_th": "20 packets", "max_p": 0.1},
    "w_q": 1.0,
}
CLASSES = {
    "scheduler": "priority",
    "classes": [
        {"name": "ef", "aqm": "drop_tail", "limit": "50 packets", "rate": "1 Mbit/s"},
        {"name": "gold", **WRED},
        {"name": "rest", "aqm": "drop_tail", "limit": "50 packets", "rate": "500 kbit/s"},
    ],
}
DRR = {
    "scheduler": "drr",
    "classes": [
        {"name": "af1", "aqm": "drop_tail", "limit": "50 packets", "quantum": "4500 B"},
        {"name": "be", "aqm": "drop_tail", "limit": "50 packets", "quantum": "3000 B"},
    ],
}


def drawn(chance: random.Random, to: str) -> Switch:
    """Anything that the format can say."""
    sonic = to == "sonic"

    def rate() -> float:
        return chance.randrange(1, 10**9) if sonic else chance.randrange(1, 10**9) / 8

    def policer() -> Policer:
        two = chance.random() < 0.5
        words = ("drop", "copy", "trap") if sonic else ("drop", "dscp 10", "dscp 46", "dscp 0")
        colours = ["yellow", "red"] if two or sonic else ["red"]
        actions = {c: chance.choice(words) for c in colours if chance.random() < 0.6}
        unit = chance.choice(["bytes", "packets"]) if sonic else "bytes"
        cir, cbs = rate(), chance.randrange(0, 10**6)
        aware = sonic and chance.random() < 0.5
        if two:
            return Policer("tr_tcm", cir, cbs, cir + rate(), chance.randrange(10**6), aware, unit, actions)
        pbs = chance.choice([None, 5000]) if sonic else None
        return Policer("sr_tcm", cir, cbs, None, pbs, aware, unit, actions)

    def scheduler() -> Scheduler:
        if chance.random() < 0.5:
            pir = chance.choice([None, rate()])
            return Scheduler("STRICT", pir=pir, pbs=None if pir is None else chance.choice([None, 9000]))
        weight = chance.randrange(1, 101)
        if not sonic:
            return Scheduler("DWRR", weight)
        kind = chance.choice(["DWRR", "WRR"])
        rates: dict[str, Any] = {k: rate() for k in ("cir", "cbs", "pir", "pbs") if chance.random() < 0.5}
        return Scheduler(
            kind, weight, unit=chance.choice(["bytes", "packets"]) if rates else "bytes", **rates
        )

    ports = [f"Ethernet{4 * i}" for i in range(chance.randrange(1, 4))]
    schedulers = {f"s{i}": scheduler() for i in range(chance.randrange(1, 4))}
    served = {
        f"{p}|{q}": chance.choice([*schedulers]) for p in ports for q in range(8) if chance.random() < 0.4
    }
    classes = range(chance.randrange(1, 8))
    queue_maps = {"Q": {tc: str(chance.randrange(8)) for tc in classes}}
    dscp_maps = {
        name: {dscp: chance.choice(classes) for dscp in chance.sample(range(64), chance.randrange(1, 30))}
        for name in ("D", "E.1")
    }
    return Switch(
        policers={f"p-{i}": policer() for i in range(chance.randrange(0, 4))},
        schedulers=schedulers if sonic else {k: v for k, v in schedulers.items() if k in served.values()},
        served=served,
        dscp_maps=dscp_maps,
        queue_maps=queue_maps,
        bound={p: (name, "Q") for p, name in zip(["Ethernet0", "Ethernet48"], dscp_maps, strict=True)},
    )


@pytest.mark.parametrize("to", FORMATS)
def test_drawn_switches_read_back_as_they_were(to: str, tmp_path: Path) -> None:
    chance, file = random.Random(11), tmp_path / "config.json"  # noqa: S311
    for _ in range(300):
        switch = drawn(chance, to)
        tree = FORMATS[to](switch)
        file.write_text(json.dumps(tree), "utf-8")
        found = read_switch(file)
        assert found == switch
        assert FORMATS[to](found) == tree, "and is written again the same"


def test_what_both_say_goes_from_one_to_the_other_and_back(tmp_path: Path) -> None:
    chance, file, said = random.Random(12), tmp_path / "config.json", 0  # noqa: S311
    for _ in range(300):
        switch = drawn(chance, "openconfig")
        file.write_text(json.dumps(FORMATS["openconfig"](switch)), "utf-8")
        try:
            file.write_text(json.dumps(FORMATS["sonic"](read_switch(file))), "utf-8")
        except Unsayable as refused:
            assert "a second" in str(refused) or "does not remark" in str(refused)  # noqa: PT017
            continue
        said += 1
        assert read_switch(file) == switch
    assert said > 20


METER = Policer("sr_tcm", 1000, 2000)
STRICT = Scheduler("STRICT")


@pytest.mark.parametrize(
    ("to", "switch", "said"),
    [
        ("sonic", Switch(policers={"p": replace(METER, cir=0.125)}), "whole bytes a second: write 8 bit/s"),
        ("sonic", Switch(policers={"p": replace(METER, actions={"red": "dscp 12"})}), "does not remark"),
        ("sonic", Switch(served={"eth0|gold": "s"}, schedulers={"s": STRICT}), "queues have numbers"),
        ("sonic", Switch(schedulers={"s": Scheduler("DWRR", 101)}), "whole weights from 1 to 100"),
        ("openconfig", Switch(policers={"p": replace(METER, pbs=1)}), "one bucket and two colours"),
        ("openconfig", Switch(policers={"p": replace(METER, aware=True)}), "meters are colour-blind"),
        ("openconfig", Switch(policers={"p": replace(METER, unit="packets")}), "count bytes"),
        ("openconfig", Switch(policers={"p": replace(METER, cir=0.01)}), "whole bits a second"),
        ("openconfig", Switch(policers={"p": replace(METER, actions={"red": "trap"})}), "sets their code"),
        (
            "openconfig",
            Switch(policers={"p": replace(METER, actions={"green": "drop"})}),
            "lets what conforms",
        ),
        ("openconfig", Switch(policers={"p": replace(METER, actions={"yellow": "drop"})}), "yellow packets"),
        ("openconfig", Switch(schedulers={"s": STRICT}), "no queue has this scheduler"),
        (
            "openconfig",
            Switch(served={"e|1": "s"}, schedulers={"s": replace(STRICT, cir=1)}),
            "a rate that it gets at least",
        ),
        (
            "openconfig",
            Switch(served={"e|1": "s"}, schedulers={"s": Scheduler("DWRR", 2, pir=1)}),
            "shapes all weighted queues together",
        ),
        ("openconfig", Switch(served={"e|1": "s"}, schedulers={"s": Scheduler("WRR")}), "write DWRR"),
        ("openconfig", Switch(dscp_maps={"D": {46: 5}}), "no port has this map"),
        ("openconfig", Switch(dscp_maps={"D": {46: 5}}, bound={"e": ("D", None)}), "give the port both"),
        (
            "openconfig",
            Switch(dscp_maps={"D": {46: 5}}, queue_maps={"Q": {1: "1"}}, bound={"e": ("D", "Q")}),
            "class 5 has no queue in Q",
        ),
    ],
)
def test_what_a_format_cannot_say_is_refused(to: str, switch: Switch, said: str) -> None:
    with pytest.raises(Unsayable, match=said):
        FORMATS[to](switch)


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"POLICER": {"p": {"meter_type": "bytes", "mode": "storm"}}},
            r"POLICER\|p: mode = .storm.: write one of",
        ),
        ({"POLICER": {"p": {"meter_type": "bytes", "mode": "sr_tcm", "cir": "-1"}}}, "no whole number"),
        ({"POLICER": {"p": {"meter_type": "bytes", "mode": "tr_tcm", "cir": "2", "pir": "1"}}}, "below cir"),
        ({"POLICER": []}, "POLICER: is no table"),
        ({"SCHEDULER": {"s": {"type": "DWRR", "weight": "0"}}}, "weight = 0: write 1 to 100"),
        ({"QUEUE": {"Ethernet0|3": {"scheduler": "gone"}}}, r'QUEUE\|Ethernet0\|3: scheduler "gone"'),
        ({"DSCP_TO_TC_MAP": {"D": {"64": "1"}}}, "code point: .64.: write a whole number from 0 to 63"),
        ({"PORT_QOS_MAP": {"Ethernet0": {"tc_to_queue_map": "Q"}}}, "not in TC_TO_QUEUE_MAP"),
        (
            {"qos": {"scheduler-policies": {"scheduler-policy": [{"name": "x", "schedulers": {}}]}}},
            "it is no policer",
        ),
    ],
)
def test_what_cannot_be_read_says_where(tree: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(tree), "utf-8")
    with pytest.raises(Unreadable, match=said):
        read_switch(tmp_path / "config.json")


def test_what_is_not_carried_over_is_said(tmp_path: Path) -> None:
    tree = {
        "SCHEDULER": {"s": {"type": "STRICT", "priority": "1"}},
        "TC_TO_QUEUE_MAP": {"Q": {"0": "0"}},
        "PORT_QOS_MAP": {"Ethernet0,Ethernet4": {"tc_to_queue_map": "Q", "pfc_enable": "3,4"}},
        "TC_TO_PRIORITY_GROUP_MAP": {"A": {"0": "0"}},
    }
    (tmp_path / "config_db.json").write_text(json.dumps(tree), "utf-8")
    answer = CliRunner().invoke(app, ["wred", str(tmp_path / "config_db.json"), "--to", "sonic"])
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["PORT_QOS_MAP"] == {
        port: {"tc_to_queue_map": "Q"} for port in ("Ethernet0", "Ethernet4")
    }
    for lost in ("SCHEDULER|s: priority", "Ethernet4: pfc_enable", "TC_TO_PRIORITY_GROUP_MAP"):
        assert f"{lost} is not carried over" in answer.stderr


def marked(marker: dict[str, Any], queue: dict[str, Any] | None = None) -> Any:
    found = parse(STARTER).set("links.bottleneck.queue", queue or WRED)
    return found.set("flows.assured.marker", marker).set("flows.assured.contract", "1 Mbit/s")


@pytest.mark.parametrize(
    ("marker", "first"),
    [
        ({"kind": "token_bucket", "depth": "9000 B"}, Policer("sr_tcm", 125_000, 9000)),
        (
            {"kind": "token_bucket", "depth": "9000 B", "action": "drop", "rate": "1000001 bit/s"},
            Policer("sr_tcm", 125_001, 9000, actions={"red": "drop"}),
        ),
        (
            {"kind": "srtcm", "cbs": "9 kB", "ebs": "3 kB", "mode": "colour_aware"},
            Policer("sr_tcm", 125_000, 9000, pbs=3000, aware=True),
        ),
        (
            {"kind": "trtcm", "pir": "2 Mbit/s", "cbs": "9 kB", "pbs": "3 kB", "action": "drop"},
            Policer("tr_tcm", 125_000, 9000, 250_000, 3000, actions={"red": "drop"}),
        ),
    ],
)
def test_contracts_are_policers(marker: dict[str, Any], first: Policer) -> None:
    scenario = marked(marker)
    found = switch_of(scenario).policers
    count = next(g for g in scenario.check().effective["flows"] if g["name"] == "assured")["count"]
    assert [n for n in found if n.startswith("assured")] == [f"assured-{i}" for i in range(count)]
    assert found["assured-0"] == first
    [port] = switch_of(scenario).ports
    assert port.profile.drop["red"] == port.profile.drop["yellow"], "OUT is red where a bucket is single"


def test_openconfig_has_code_points_for_colours() -> None:
    found = switch_of(marked({"kind": "token_bucket", "depth": "9000 B"}), remark=True).policers["assured-0"]
    assert found.actions == {"green": "dscp 10", "red": "dscp 12"}


@pytest.mark.parametrize(
    ("marker", "queue", "said"),
    [
        ({"kind": "tsw2cm"}, WRED, 'flows.assured.marker: kind = "tsw2cm": a switch has RFC 2697'),
        ({"kind": "tsw3cm", "ptr": "2 Mbit/s"}, WRED, 'kind = "tsw3cm"'),
        ({"kind": "rfc4115", "eir": "1 Mbit/s", "cbs": "9 kB", "ebs": "9 kB"}, WRED, 'kind = "rfc4115"'),
        (
            {"kind": "token_bucket", "depth": "9 kB", "starts_full": False, "conforms": "more_than"},
            WRED,
            "starts_full = false: .*\n.*more_than",
        ),
        (
            {"kind": "token_bucket", "depth": "9 kB"},
            {**WRED, "red": {"min_th": "1 packets", "max_th": "2 packets", "max_p": 0.5}},
            "flows.assured is marked IN and OUT",
        ),
        ({"kind": "colour", "colour": "in"}, CLASSES, "class gold: which code points are its"),
        (
            {"kind": "colour", "colour": "in"},
            {**DRR, "classes": [{**DRR["classes"][0], "quantum": "4501 B"}, DRR["classes"][1]]},  # type: ignore[dict-item]
            "are weights up to 4501",
        ),
    ],
)
def test_what_a_switch_cannot_say_is_refused(
    marker: dict[str, Any], queue: dict[str, Any], said: str
) -> None:
    scenario = with_classes(queue, marker) if "classes" in queue else marked(marker, queue)
    with pytest.raises(Unsayable, match=said):
        switch_of(scenario)


def with_classes(queue: dict[str, Any], marker: dict[str, Any] | None = None) -> Any:
    found = parse(STARTER)
    names = [group["name"] for group in found.check().effective["flows"]]
    values: dict[str, Any] = {f"flows.{name}.class": queue["classes"][-1]["name"] for name in names}
    values["links.bottleneck.queue"] = queue
    if marker is not None:
        values["flows.assured.marker"] = marker
    return found.with_(values)


def test_classes_are_queues_the_first_the_highest() -> None:
    found = switch_of(with_classes(CLASSES), "Ethernet8|6", {"gold": (10, 12), "rest": (0,)})
    assert found.served == {"Ethernet8|6": "ef", "Ethernet8|5": "gold", "Ethernet8|4": "rest"}
    assert found.schedulers == {
        "ef": Scheduler("STRICT", pir=125_000),
        "gold": Scheduler("STRICT"),
        # gold may take everything: what rest has is a guarantee as well.
        "rest": Scheduler("STRICT", cir=62_500, pir=62_500),
    }
    assert found.dscp_maps == {"inprofile": {46: 6, 10: 5, 12: 5, 0: 4}}
    assert found.queue_maps == {"inprofile": {6: "6", 5: "5", 4: "4"}}
    assert found.bound == {"Ethernet8": ("inprofile", "inprofile")}
    assert [port.queues for port in found.ports] == [("Ethernet8|5",)]
    assert sum("drop-tail with 50 packets" in line for line in found.lost) == 2
    weighted = switch_of(with_classes(DRR))
    assert [s.weight for s in weighted.schedulers.values()] == [3, 2]
    with pytest.raises(Unsayable, match=r'write --queue "Ethernet8\|2" or a higher one'):
        switch_of(with_classes(CLASSES), "Ethernet8|1")


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(as_file(with_classes(DRR)), "utf-8")
    invoke: Callable[..., Any] = CliRunner().invoke
    for to in FORMATS:
        answer = invoke(app, ["wred", str(file), "--to", to, "--dscp", "af1=10,12,14"])
        assert answer.exit_code == 0, answer.output
        assert json.loads(answer.stdout)
        assert "set that there" in answer.stderr
    answer = invoke(app, ["wred", str(file), "--to", "sonic", "--dscp", "af1=64"])
    assert answer.exit_code == 2
    assert "code points, 0 to 63" in answer.stderr
