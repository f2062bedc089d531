"""WRED profiles written for SONiC and OpenConfig: they read back, and what cannot be said is refused."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile import STARTER, Scenario, parse
from inprofile.cli import app
from inprofile.experiment.dump import written as as_file
from inprofile.studies.compare.schemes import Place, choose
from inprofile.studies.wred import Port, Switch, read
from inprofile.studies.wred.experiment import switch_of
from inprofile.studies.wred.profile import COLOURS, Buffer, Curve, Profile
from inprofile.studies.wred.written import FORMATS, SPEEDS, Unsayable, needs, refuse

WRED = {
    "aqm": "wred",
    "limit": "60 packets",
    "green": {"min_th": "20 packets", "max_th": "40 packets", "max_p": 0.02},
    "yellow": {"min_th": "10 packets", "max_th": "20 packets", "max_p": 0.1},
    "red": {"min_th": "5 packets", "max_th": "10 packets", "max_p": 0.5},
    "w_q": 1.0,
}

UNIFORM = Profile("p", "", dict.fromkeys(COLOURS, Curve(10_000, 20_000, 0.1)))


def bare(ports: list[Port]) -> list[Port]:
    """Without what says where something was read, in one order."""
    found = [replace(p, notes=(), profile=replace(p.profile, where="", notes=())) for p in ports]
    return sorted(found, key=lambda p: (p.profile.name, p.queues))


def drawn(chance: random.Random, uniform: bool) -> list[Port]:
    ports = []
    for i in range(chance.randrange(1, 5)):

        def curve() -> Curve:
            low = chance.randrange(0, 10**6)
            return Curve(low, low + chance.randrange(0, 10**6), chance.randrange(0, 101) / 100)

        if uniform:
            one = curve()
            drop, mark = (dict.fromkeys(COLOURS, one) if chance.random() < 0.7 else {} for _ in range(2))
            weight = chance.randrange(0, 12) if drop or mark else 0
        else:
            drop, mark = ({c: curve() for c in COLOURS if chance.random() < 0.6} for _ in range(2))
            weight = 0
        profile = Profile(f"p{i}", "", drop, mark, weight)
        if chance.random() < 0.2:
            ports.append(Port(profile))
            continue
        rate = chance.choice([1e9, 2.5e9, 25e9, 100e9])
        queues = tuple(
            f"Ethernet{4 * i}|{q}" for q in sorted(chance.sample(range(8), chance.randrange(1, 4)))
        )
        ports.append(Port(profile, queues, rate, *_buffer(chance, uniform)))
    return ports


def _buffer(chance: random.Random, uniform: bool) -> tuple[int | None, tuple[str, ...], Buffer | None]:
    """What a queue may take in all, and how that is said."""
    own, part, kind = chance.randrange(10**5), chance.randrange(10**6), chance.randrange(4)
    if kind == 0:
        return None, (), None
    if kind == 1 and uniform:
        return own, (), Buffer(own)
    # Half of what is free is a third of it.
    found = Buffer(own, dynamic=-1) if kind == 2 else Buffer(own, static=part)
    if uniform:
        return (None if kind == 2 else own + part), (), found
    found = replace(
        found, name=f"q-{kind}-{own}", pool="pool", pool_fields=(("size", "30000000"), ("type", "egress"))
    )
    return own + (10**7 if kind == 2 else part), (), found


@pytest.mark.parametrize("to", FORMATS)
def test_drawn_configurations_read_back_as_they_were(to: str, tmp_path: Path) -> None:
    chance, file = random.Random(7), tmp_path / "config.json"  # noqa: S311
    for _ in range(300):
        ports = drawn(chance, uniform=to == "openconfig")
        file.write_text(json.dumps(FORMATS[to](Switch(tuple(ports)))), "utf-8")
        found = bare(read(file))
        assert found == bare(ports)
        assert FORMATS[to](Switch(tuple(found))) == FORMATS[to](Switch(tuple(bare(ports)))), (
            "and is written again the same"
        )


@pytest.mark.parametrize(
    ("to", "change", "said"),
    [
        ("sonic", {"weight": 9}, "weight 9: SONiC's WRED_PROFILE has none"),
        ("sonic", {"drop": {"green": Curve(1, 2, 0.125)}}, "12.5 %: whole percents"),
        ("openconfig", {"drop": {"green": Curve(1, 2, 0.1)}}, "OpenConfig's WRED is uniform"),
        ("openconfig", {"mark": dict.fromkeys(COLOURS, Curve(5, 6, 0.1))}, "OpenConfig's WRED is uniform"),
    ],
)
def test_what_a_format_cannot_say_is_refused(to: str, change: dict[str, object], said: str) -> None:
    profile = Profile("p", "", dict.fromkeys(COLOURS, Curve(1, 2, 0.1)))
    port = Port(replace(profile, **change), ("Ethernet0|3",), 25e9, None)
    with pytest.raises(Unsayable, match=said):
        FORMATS[to](Switch((port,)))
    with pytest.raises(Unsayable, match="two profiles have this name"):
        FORMATS[to](Switch((Port(profile), Port(replace(profile, drop={}, mark={})))))
    with pytest.raises(Unsayable, match=r"speeds in whole Mbit/s|no such port-speed"):
        FORMATS[to](Switch((Port(profile, ("Ethernet0|3",), 25.0000001e9),)))
    assert "25GB" in SPEEDS


def test_the_scheme_that_a_switch_can_have_is_written_at_any_setting() -> None:
    base = parse(STARTER).with_({"flows.assured.contract": "500 kbit/s"})
    place = Place.of(base)
    [scheme] = choose(["switch"])
    assert "switch" not in {one.id for one in choose()}
    for end in ("low", "high"):
        values = scheme.set({s.key: getattr(s, end) for s in scheme.settings}).values(place, 0.02)
        made = switch_of(base.with_(values), "Ethernet0|3")
        assert FORMATS["sonic"](made)["WRED_PROFILE"]
        yellow, red = (made.ports[0].profile.drop[colour] for colour in ("yellow", "red"))
        assert yellow.min_th >= red.min_th, "the better colour is not dropped sooner"


def test_a_plans_wred_is_a_switchs_and_its_weight_is_asked_about(tmp_path: Path) -> None:
    base = parse(STARTER)
    base = base.set("flows.assured.marker", {"kind": "colour", "colour": "in"})
    switch = switch_of(base.set("links.bottleneck.queue", WRED), "Ethernet0|3")
    [port] = switch.ports
    assert port.profile.drop["green"] == Curve(20 * port_bytes(port), 40 * port_bytes(port), 0.04)
    tree = FORMATS["sonic"](switch)
    assert tree["QUEUE"] == {"Ethernet0|3": {"wred_profile": "inprofile"}}
    assert tree["WRED_PROFILE"]["inprofile"]["red_drop_probability"] == "100"
    for queue, said in (
        ({**WRED, "w_q": 0.002}, "w_q = 0.002: a switch has powers of two: write 0.00195312"),
        ({**WRED, "averages": "coupled"}, "a switch has one average"),
        ({**WRED, "gentle": True}, "a switch drops everything from max_th on"),
    ):
        with pytest.raises(Unsayable, match=said):
            switch_of(base.set("links.bottleneck.queue", queue), "Ethernet0|3")
    with pytest.raises(Unsayable, match='aqm = "rio"'):
        switch_of(base, "Ethernet0|3")
    written(tmp_path / "wred.toml", base.set("links.bottleneck.queue", WRED))
    answer = CliRunner().invoke(
        app, ["wred", str(tmp_path / "wred.toml"), "--to", "sonic", "--queue", "Ethernet0|3"]
    )
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout) == tree, "a switch's file, and nothing of ours in it"
    (tmp_path / "mine.toml").write_text(STARTER, "utf-8")
    answer = CliRunner().invoke(app, ["wred", str(tmp_path / "mine.toml"), "--to", "sonic"])
    assert answer.exit_code == 2
    assert "sonic cannot say this, and nothing is written" in answer.stderr
    assert answer.stdout == ""


def test_what_is_said_of_many_customers_is_said_once() -> None:
    with pytest.raises(Unsayable) as refused:
        refuse(["a: no meter: write another", "link: no such speed", "b: no meter: write another"])
    assert str(refused.value) == "a and 1 more: no meter: write another\nlink: no such speed"
    refuse([])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"byte_scaled": True}, "byte_scaled = true: a switch drops small packets as large ones"),
        ({"wait": True}, "wait = true"),
        ({"drop": "front"}, 'drop = "front"'),
        ({"variant": "ns2"}, 'variant = "ns2"'),
        ({"mean_packet": "500 B"}, 'mean_packet = "500 B"'),
    ],
)
def test_what_no_switch_does_is_refused(change: dict[str, object], said: str) -> None:
    curve = {"min_th": "20 packets", "max_th": "60 packets", "max_p": 0.1}
    red = {"aqm": "red", "limit": "200 packets", "w_q": 1.0, **curve, **change}
    with pytest.raises(Unsayable, match=said):
        switch_of(parse(STARTER).set("links.bottleneck.queue", red))


def test_marks_have_thresholds_of_their_own_only_where_they_differ_from_those_of_drops() -> None:
    one, other = Curve(10_000, 20_000, 0.1), Curve(5_000, 20_000, 0.1)
    same = Profile("p", "", dict.fromkeys(COLOURS, one), dict.fromkeys(COLOURS, one))
    tree = FORMATS["sonic"](Switch((Port(same),)))
    assert tree["WRED_PROFILE"]["p"]["ecn"] == "ecn_all"
    assert not [key for key in tree["WRED_PROFILE"]["p"] if key.startswith("ecn_")]
    assert needs("sonic", Switch(), tree) == []
    apart = replace(same, mark={**same.mark, "green": other})
    tree = FORMATS["sonic"](Switch((Port(apart),)))
    fields = tree["WRED_PROFILE"]["p"]
    assert {k: v for k, v in fields.items() if k.startswith("ecn_")} == {
        "ecn_green_min_threshold": "5000",
        "ecn_green_max_threshold": "20000",
        "ecn_green_mark_probability": "10",
    }
    (needed,) = needs("sonic", Switch(), tree)
    assert "refuses the whole profile" in needed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "sonic", "--rate", "1 Gbit/s"], "--rate with --to: it writes what the file says"),
        (["--to", "sonic", "--check", "--buffer", "9000"], "--buffer and --check with --to"),
        (["--to", "sonic", "--flows", "9"], "--flows with --to"),
        (["--to", "sonic", "--queue", "3"], '--queue "3": write a port and a queue: Ethernet0|3'),
        (["--to", "sonic", "--profile", "p"], "--profile is of a switch's file"),
        (["--queue", "Ethernet0|3"], "--queue and --dscp are for --to"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    written(tmp_path / "wred.toml", parse(STARTER).set("links.bottleneck.queue", WRED))
    answer = CliRunner().invoke(app, ["wred", str(tmp_path / "wred.toml"), *options])
    assert answer.exit_code == 2, answer.output
    assert said in answer.stderr
    assert answer.stdout == ""


def test_what_is_shared_of_a_buffer_stays_shared(tmp_path: Path) -> None:
    tables = {
        "WRED_PROFILE": FORMATS["sonic"](Switch((Port(UNIFORM),)))["WRED_PROFILE"],
        "QUEUE": {"Ethernet0|3": {"wred_profile": "p"}},
        "BUFFER_POOL": {"lossy": {"size": "32000000", "type": "egress", "mode": "dynamic"}},
        "BUFFER_PROFILE": {"q": {"pool": "lossy", "size": "1518", "dynamic_th": "3"}},
        "BUFFER_QUEUE": {"Ethernet0|3": {"profile": "q"}},
    }
    (tmp_path / "config_db.json").write_text(json.dumps(tables), "utf-8")
    switch = Switch(tuple(read(tmp_path / "config_db.json")))
    assert FORMATS["sonic"](switch) == tables
    qos = FORMATS["openconfig"](switch)["openconfig-qos:qos"]
    [allotted] = qos["buffer-allocation-profiles"]["buffer-allocation-profile"][0]["queues"]["queue"]
    assert allotted["config"] == {
        "name": "3",
        "dedicated-buffer": "1518",
        "use-shared-buffer": True,
        "shared-buffer-limit-type": "openconfig-qos:DYNAMIC_BASED_ON_SCALING_FACTOR",
        "dynamic-limit-scaling-factor": 3,
    }
    assert qos["queues"] == {"queue": [{"name": "3", "config": {"name": "3"}}]}, (
        "what names a queue refers to it"
    )
    (said,) = needs("openconfig", switch, {})
    assert said.startswith("Ethernet0|3: the pool lossy, of which it takes, is not written")


def test_an_experiments_limit_is_a_buffer_of_its_own_and_not_sonics() -> None:
    base = parse(STARTER).set("flows.assured.marker", {"kind": "colour", "colour": "in"})
    switch = switch_of(base.set("links.bottleneck.queue", WRED), "Ethernet0|3")
    tree = FORMATS["sonic"](switch)
    assert not [name for name in tree if name.startswith("BUFFER")]
    (said,) = needs("sonic", switch, tree)
    assert "is not written: SONiC's are of a pool" in said
    one = replace(switch, ports=(replace(switch.ports[0], profile=UNIFORM, rate=None),))
    qos = FORMATS["openconfig"](one)["openconfig-qos:qos"]
    [allotted] = qos["buffer-allocation-profiles"]["buffer-allocation-profile"][0]["queues"]["queue"]
    limit = 60 * port_bytes(switch.ports[0])
    assert allotted["config"] == {"name": "3", "dedicated-buffer": str(limit), "use-shared-buffer": False}


def test_the_configuration_is_printed_as_the_switch_has_it(tmp_path: Path) -> None:
    """Nothing of ours is in it: it is not what `--json` prints."""
    tree = FORMATS["sonic"](Switch(tuple(drawn(random.Random(3), uniform=False))))  # noqa: S311 (drawn cases)
    (tmp_path / "config_db.json").write_text(json.dumps(tree), "utf-8")
    answer = CliRunner().invoke(app, ["wred", str(tmp_path / "config_db.json"), "--to", "sonic"])
    assert answer.exit_code == 0, answer.output
    assert {*json.loads(answer.stdout)} == {*tree}


def written(path: Path, scenario: Scenario) -> None:
    path.write_text(as_file(scenario), "utf-8")


def port_bytes(port: Port) -> int:
    assert port.buffer is not None
    return port.buffer // 60
