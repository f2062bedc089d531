"""`inprofile wred`: WRED profiles of switches, read, checked and tried on TCP."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inprofile import parse
from inprofile.cli import app
from inprofile.studies.wred import Curve, Port, Profile, Unreadable, check, read
from inprofile.studies.wred.effect import Traffic, cases, outcomes, scenario

SONIC: dict[str, Any] = {
    "PORT": {"Ethernet0": {"speed": "10000"}, "Ethernet4": {"speed": "10000"}},
    "WRED_PROFILE": {
        "LOSSLESS": {
            **{f"wred_{c}_enable": "true" for c in ("green", "yellow", "red")},
            **{f"{c}_min_threshold": "1048576" for c in ("green", "yellow", "red")},
            **{f"{c}_max_threshold": "2097152" for c in ("green", "yellow", "red")},
            **{f"{c}_drop_probability": "5" for c in ("green", "yellow", "red")},
            "ecn": "ecn_all",
        }
    },
    "QUEUE": {
        "Ethernet0|3-4": {"wred_profile": "LOSSLESS"},
        "Ethernet4|3": {"wred_profile": "[WRED_PROFILE|LOSSLESS]"},
    },
    "BUFFER_QUEUE": {"Ethernet0,Ethernet4|3-4": {"profile": "egress"}},
    "BUFFER_PROFILE": {"egress": {"pool": "pool", "size": "0", "dynamic_th": "-1"}},
    "BUFFER_POOL": {"pool": {"size": "12000000", "type": "egress", "mode": "dynamic"}},
}
OPENCONFIG: dict[str, Any] = {
    "openconfig-qos:qos": {
        "queue-management-profiles": {
            "queue-management-profile": [
                {
                    "name": "ecn",
                    "wred": {
                        "uniform": {
                            "config": {
                                "min-threshold": "100000",
                                "max-threshold": "400000",
                                "max-drop-probability-percent": 20,
                                "enable-ecn": True,
                                "weight": 4,
                            }
                        }
                    },
                }
            ]
        },
        "interfaces": {
            "interface": [
                {
                    "interface-id": "eth0",
                    "output": {
                        "queues": {"queue": [{"name": "q", "config": {"queue-management-profile": "ecn"}}]}
                    },
                }
            ]
        },
    },
    "openconfig-interfaces:interfaces": {
        "interface": [
            {"name": "eth0", "ethernet": {"config": {"port-speed": "openconfig-if-ethernet:SPEED_25GB"}}}
        ]
    },
}


def _read(tree: object, folder: Path) -> list[Port]:
    file = folder / "switch.json"
    file.write_text(json.dumps(tree))
    return read(file)


def _changed(**fields: str) -> dict[str, Any]:
    """SONiC's file with other fields in its profile; an empty text removes one."""
    tree = copy.deepcopy(SONIC)
    profile = tree["WRED_PROFILE"]["LOSSLESS"]
    profile.update(fields)
    tree["WRED_PROFILE"]["LOSSLESS"] = {k: v for k, v in profile.items() if v}
    return tree


def test_sonic(tmp_path: Path) -> None:
    [port] = _read(SONIC, tmp_path)
    assert port.queues == ("Ethernet0|3", "Ethernet0|4", "Ethernet4|3")
    assert port.rate == 10e9
    # A queue takes half of what is free: x = (12 MB − x) / 2.
    assert port.buffer == 4_000_000
    assert port.profile.drop["red"] == port.profile.mark["green"] == Curve(1048576, 2097152, 0.05)
    assert check(port) == []


def test_marks_have_thresholds_of_their_own(tmp_path: Path) -> None:
    own = {
        "ecn_green_min_threshold": "1000",
        "ecn_green_max_threshold": "9000",
        "ecn_green_mark_probability": "50",
    }
    [port] = _read(_changed(**own), tmp_path)
    assert port.profile.mark["green"] == Curve(1000, 9000, 0.5)
    assert port.profile.mark["red"] == port.profile.drop["green"] == Curve(1048576, 2097152, 0.05)


def test_openconfig(tmp_path: Path) -> None:
    [port] = _read(OPENCONFIG, tmp_path)
    assert port.queues == ("eth0|q",)
    assert (port.rate, port.buffer, port.profile.weight) == (25e9, None, 4)
    assert port.profile.drop == {}
    assert port.profile.mark["yellow"] == Curve(100_000, 400_000, 0.2)
    assert ["do not use ECN" in finding.says for finding in check(port)] == [True]


SPOILT = [
    (_changed(green_min_threshold=""), "green_min_threshold is missing"),
    (_changed(green_max_threshold="10"), "is below green_min_threshold"),
    (_changed(green_drop_probability="101"), "write 0 to 100"),
    (_changed(red_max_threshold="2 MB"), "is no whole number"),
    (_changed(ecn="yes"), "write one of ecn_none"),
    (_changed(ecn="ecn_red", ecn_green_min_threshold="5"), "marks no green"),
    ({**SONIC, "QUEUE": {"Ethernet0|3": {"wred_profile": "X"}}}, "there are: LOSSLESS"),
    ({**SONIC, "QUEUE": {"Ethernet0|4-3": {"wred_profile": "LOSSLESS"}}}, "is greater than the last"),
    ({**SONIC, "QUEUE": {"3": {"wred_profile": "LOSSLESS"}}}, "is no queue"),
    ({"PORT": {}}, "has neither WRED_PROFILE"),
    ([1], "is no JSON object"),
]


@pytest.mark.parametrize(("tree", "said"), SPOILT, ids=[said for _, said in SPOILT])
def test_what_cannot_be_read(tree: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=said):
        _read(tree, tmp_path)


def _port(drop: dict[str, Curve], mark: dict[str, Curve] | None = None, buffer: int | None = None) -> Port:
    return Port(Profile("p", "WRED_PROFILE|p", drop, mark or {}), ("Ethernet0|3",), 1e9, buffer)


LATE, SOON = Curve(200_000, 400_000, 0.1), Curve(20_000, 40_000, 0.1)
ODD = [
    (_port({}), "does nothing: no colour is enabled"),
    (
        _port({"green": SOON, "yellow": LATE, "red": LATE}),
        "green is dropped more than yellow and red|green is dropped more",
    ),
    (_port({"green": LATE}), "green has a curve and red has none"),
    (
        _port({"green": LATE, "yellow": LATE, "red": LATE}, buffer=100_000),
        "every colour is never dropped early",
    ),
    (_port({"green": LATE, "yellow": LATE, "red": LATE}, buffer=300_000), "rises no further than 0.05"),
    (_port({"red": SOON}, {"red": LATE}), "no mark is ever set"),
    (_port({"red": LATE}, {"green": SOON}), "green is marked, and without ECN not dropped early"),
    (_port({"red": Curve(50, 90, 0.1)}), "less than two full packets"),
    (_port({"red": Curve(5000, 5000, 1.0)}), "has a step"),
]


@pytest.mark.parametrize(("port", "said"), ODD, ids=[said for _, said in ODD])
def test_what_is_odd_is_found(port: Port, said: str) -> None:
    assert any(part in finding.says for finding in check(port) for part in said.split("|")), check(port)


def test_only_curves_that_differ_are_tried() -> None:
    same = {"green": LATE, "yellow": LATE, "red": SOON}
    tried = [(case.colour, case.title) for case in cases(_port(same, {"green": SOON}).profile)]
    assert ("yellow", "CUBIC") in tried  # not marked, unlike green
    assert [title for colour, title in tried if colour == "green"] == [
        "CUBIC",
        "CUBIC with ECN",
        "DCTCP",
        "CUBIC, tail drop",
    ]
    assert ("red", "DCTCP") not in tried


def test_marks_shorten_the_queue() -> None:
    """A step at 30 kB, as DCTCP has it, keeps the queue near 30 kB; the buffer alone lets it grow."""
    step = dict.fromkeys(("green", "yellow", "red"), Curve(30_000, 30_000, 1.0))
    port = Port(Profile("p", "p", {}, step), ("Ethernet0|3",), 1e8, 300_000)
    found = {o.case.title: o.figures for o in outcomes(port, Traffic(rtt=2e-3, flows=2, seeds=2), jobs=1)}
    assert found["DCTCP"]["utilisation"].mean > 0.95
    assert found["DCTCP"]["loss"].mean == 0
    assert found["DCTCP"]["marked"].mean > 0.001
    assert found["DCTCP"]["delay_p99"].mean < 8 * 60_000 / 1e8
    assert found["CUBIC, tail drop"]["delay_p99"].mean > 2 * found["DCTCP"]["delay_p99"].mean


def test_what_was_run_can_be_run_again(tmp_path: Path) -> None:
    file = tmp_path / "config_db.json"
    file.write_text(json.dumps(SONIC))
    ran = CliRunner().invoke(
        app,
        [
            "wred",
            str(file),
            "--rate",
            "1 Mbit/s",
            "--rtt",
            "100",
            "--seeds",
            "2",
            "--out",
            str(tmp_path / "o"),
            "--json",
        ],
    )
    assert ran.exit_code == 0, ran.output
    [profile] = json.loads(ran.output)["profiles"]
    assert profile["buffer"] == 4_000_000
    assert profile["outcomes"][0]["figures"]["utilisation"]["n"] == 2
    assert "<svg" in (tmp_path / "o" / "LOSSLESS.svg").read_text()
    text = (tmp_path / "o" / "LOSSLESS-green-dctcp.toml").read_text()
    port, traffic = read(file)[0], Traffic(rtt=1e-4, seeds=2, rate=1e6)
    tried = next(case for case in cases(port.profile) if case.title == "DCTCP")
    assert text == scenario(port, traffic, tried)._text
    assert parse(text).expected_packets(seeds=1) > 0


def test_refusals_name_file_and_place(tmp_path: Path) -> None:
    file = tmp_path / "config_db.json"
    file.write_text(json.dumps(_changed(ecn="yes")))
    ran = CliRunner().invoke(app, ["wred", str(file)])
    assert ran.exit_code == 2
    assert "config_db.json: WRED_PROFILE|LOSSLESS: ecn" in ran.stderr
    file.write_text(json.dumps({"WRED_PROFILE": SONIC["WRED_PROFILE"]}))
    ran = CliRunner().invoke(app, ["wred", str(file)])
    assert ran.exit_code == 2
    assert "give one with --rate" in ran.stderr
    for rate in ("100", "100 Gbps", "fast"):
        ran = CliRunner().invoke(app, ["wred", str(file), "--rate", rate])
        assert ran.exit_code == 2
        assert (
            ran.stderr == f"--rate '{rate}' is no rate: write a number and its unit, such as \"100 Gbit/s\"\n"
        )


def test_profiles_whose_names_differ_by_a_letter_have_files_of_their_own(tmp_path: Path) -> None:
    tree = {"WRED_PROFILE": dict.fromkeys(("A B", "A_B"), SONIC["WRED_PROFILE"]["LOSSLESS"])}
    (tmp_path / "config_db.json").write_text(json.dumps(tree))
    given = ["--check", "--out", str(tmp_path / "o")]
    ran = CliRunner().invoke(app, ["wred", str(tmp_path / "config_db.json"), *given])
    assert ran.exit_code == 1, ran.output
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["A_B-2.svg", "A_B.svg"]


def test_each_attribute_of_marks_that_is_not_there_is_that_of_drops(tmp_path: Path) -> None:
    fields = {
        "ecn": "ecn_all",
        **{
            f"{colour}_{key}": value
            for colour in ("green", "yellow", "red")
            for key, value in (
                ("min_threshold", "1000"),
                ("max_threshold", "9000"),
                ("drop_probability", "50"),
            )
        },
        "wred_green_enable": "true",
        "ecn_green_mark_probability": "5",
        "ecn_yellow_min_threshold": "500",
    }
    (tmp_path / "config_db.json").write_text(json.dumps({"WRED_PROFILE": {"p": fields}}), "utf-8")
    [port] = read(tmp_path / "config_db.json")
    assert port.profile.drop == {"green": Curve(1000, 9000, 0.5)}
    assert port.profile.mark == {
        "green": Curve(1000, 9000, 0.05),
        "yellow": Curve(500, 9000, 0.5),
        "red": Curve(1000, 9000, 0.5),
    }


def test_as_many_packets_are_dropped_as_the_switchs_probability_says() -> None:
    """Poisson packets at 1.1 of the rate: an eleventh has to be dropped, where the curve is an eleventh."""
    from inprofile.studies.wred.effect import Case, _queue

    profile = Profile("p", "", dict.fromkeys(("green", "yellow", "red"), Curve(0, 750_000, 1.0)))
    base = parse(
        """\
title = "what a switch drops"
duration = "60 s"
measure = { from = "10 s" }
[[links]]
name = "l"
from = "e"
to = "s"
rate = "10 Mbit/s"
delay = "1 ms"
queue = QUEUE
[[flows]]
name = "a"
from = "H*"
join = { node = "e", rate = "100 Mbit/s" }
to = "s"
rtt = "20 ms"
traffic = { kind = "poisson", rate = "11 Mbit/s", packet = "1500 B" }
""".replace("QUEUE", _queue(profile, 1_500_000, Case("green", "", "cubic", ecn=False)))
    )
    queues = [row["queue_mean"] for row in base.run(seeds=3).queues.to_pylist() if row["queue"] == "l"]
    assert sum(queues) / len(queues) * 1500 == pytest.approx(750_000 / 11, rel=0.1)
