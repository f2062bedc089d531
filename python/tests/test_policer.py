"""`inprofile plan policer`: the smallest burst that is enough, what rules of thumb give, and the commands.

A plan's customers as filters of the kernel: what `tc -batch` is given, and that it takes every line.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inprofile import load
from inprofile.cli import app
from inprofile.cli.plan_policer import as_json, as_text
from inprofile.studies.plan import Question, read_question, round_trips
from inprofile.studies.plan.police import batch
from inprofile.studies.plan.policer import (
    Answer,
    PolicerQuestion,
    answer,
    commands,
    rules_of_thumb,
    scenario,
    tries,
)
from inprofile.studies.plan.policer import PolicerQuestion as Policed
from inprofile.studies.plan.policer import batch as policer_batch
from inprofile.studies.plan.search import Tried

QUESTION = PolicerQuestion("10 Mbit/s", ["20 ms"], seeds=5)


@pytest.fixture(scope="module")
def found() -> Answer:
    return answer(QUESTION)


def test_the_burst_is_enough_and_half_of_it_is_not(found: Answer) -> None:
    assert found.chosen is not None
    assert found.chosen.share.ci95 is not None
    assert found.chosen.share.ci95.lo >= 0.95
    assert all(p.share.mean < 0.95 for p in found.curve if p.burst < 0.6 * found.chosen.burst)
    # About the bandwidth-delay product, 25 kB, as Linux 6.18 has it: 18 kB are too few and 36 kB enough.
    assert 18_000 < found.chosen.burst < 60_000


def test_runs_have_round_trip_times_of_their_own() -> None:
    def rtts(question: PolicerQuestion, seed: int) -> object:
        (group,) = scenario(question, 25_000, seed).check().effective["flows"]
        return group["rtt"]

    exact = [rtts(QUESTION, seed) for seed in range(1, 21)]
    assert len({str(one) for one in exact}) == 20
    drawn = sorted(x for seed in range(1, 21) for x in round_trips.drawn(QUESTION.round_trips, 1, seed))
    assert 0.018 <= drawn[0] < 0.0185
    assert 0.0215 < drawn[-1] <= 0.022
    # As evenly as so few can be.
    assert all(b - a < 0.0005 for a, b in pairwise(drawn))
    assert len({str(rtts(PolicerQuestion("10 Mbit/s", ["20..20 ms"]), seed)) for seed in (1, 2)}) == 1
    # Several flows fill the range in each run, and each of a list keeps to its own.
    together = round_trips.drawn(PolicerQuestion("10 Mbit/s", ["20..80 ms"], flows=3).round_trips, 3, 1)
    assert [0.02 <= x < 0.04 or 0.04 <= x < 0.06 or 0.06 <= x <= 0.08 for x in together] == [True] * 3
    assert all(b - a == pytest.approx(0.02) for a, b in pairwise(together))
    apart = round_trips.drawn(PolicerQuestion("10 Mbit/s", ["10 ms", "100 ms"], flows=2).round_trips, 2, 1)
    assert 0.009 <= apart[0] <= 0.011
    assert 0.09 <= apart[1] <= 0.11


def test_half_and_twice_the_round_trip_time_stand_beside_the_answer(found: Answer) -> None:
    assert found.chosen is not None
    half, twice = found.others[0.5], found.others[2.0]
    assert half.burst == twice.burst == found.chosen.burst
    assert half.share.mean > found.chosen.share.mean > twice.share.mean
    assert not found.question.reached(twice)
    assert found.chosen.least <= found.chosen.share.mean
    said = as_text(found)
    assert "RTT 18..22 ms" in said
    (row,) = (line for line in said.splitlines() if line.startswith("36..44 ms"))
    assert "twice" in row
    assert row.endswith("missed")
    told = as_json(found)
    assert told["rtt"] == ["20 ms"]
    assert told["rtt_of_runs"] == ["18..22 ms"]
    assert [(one["factor"], one["rtt_of_runs"]) for one in told["other_rtt"]] == [
        (0.5, ["9..11 ms"]),
        (2.0, ["36..44 ms"]),
    ]


def test_rules_of_thumb_are_measured_beside_it(found: Answer) -> None:
    assert rules_of_thumb(QUESTION) == {
        "5 kB": 5_000,
        "10 % of the rate a second": 125_000,
        "80 % of the rate a second (Open vSwitch)": 1_000_000,
        "one second at the rate": 1_250_000,
    }
    assert found.rules["5 kB"].share.mean < 0.7
    assert found.rules["one second at the rate"].share.mean > 0.95


def test_excess_is_the_token_buckets_bound(found: Answer) -> None:
    assert found.chosen is not None
    burst = 8 * found.chosen.burst
    assert found.above(1.0) == pytest.approx(1 + burst / 10e6)
    assert found.above(0.1) == pytest.approx(1 + burst / 1e6)
    assert found.above(1e-4) == pytest.approx(10.0)  # no more than the link carries


def test_commands_say_the_same_in_each_systems_units() -> None:
    told = commands(QUESTION, 40_000)
    assert "rate 10000000bit burst 40000 " in told["tc"]
    assert "ingress_policing_rate=10000 ingress_policing_burst=320" in told["Open vSwitch"]
    assert "cir: 1250000 cburst: 40000 " in told["P4Runtime"]
    assert 'rate = "10 Mbit/s", depth = "40000 B"' in told["inprofiled"]


def test_bursts_that_are_tried_double_up_to_four_seconds() -> None:
    bursts = list(tries(QUESTION))
    assert bursts[0] == 4500
    assert bursts[-1] == 5_000_000
    assert all(math.isclose(b, 2 * a) for a, b in pairwise(bursts[:-1]))


def test_a_goal_that_no_burst_reaches_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "police.tc").write_text("filter add dev DEV ingress")
    ran = CliRunner().invoke(
        app,
        [
            "plan",
            "policer",
            "--rate",
            "1 Mbit/s",
            "--rtt",
            "20 ms",
            "--goal",
            "0.9999",
            "--seeds",
            "2",
            "--json",
            "--out",
            str(tmp_path),
        ],
    )
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["chosen"] is None
    assert said["commands"] == {}
    # The files of an answer that a lower goal had are not this one's.
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curve.csv"]


def test_files_are_written_that_inprofile_reads(tmp_path: Path) -> None:
    out = tmp_path / "answer"
    given = ["--rate", "2 Mbit/s", "--rtt", "40 ms", "--flows", "3", "--seeds", "3", "--goal", "0.8"]
    ran = CliRunner().invoke(app, ["plan", "policer", *given, "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "rule of thumb" in ran.stdout
    assert "tc filter add" in (out / "commands.txt").read_text()
    assert load(out / "policer.toml").check().effective["title"] == "A policer of 2 Mbit/s"
    assert (out / "curve.csv").read_text().startswith("burst_bytes,share,")


def test_a_folder_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    given = ["--rate", "2 Mbit/s", "--rtt", "40 ms", "--out", str(tmp_path / "taken")]
    ran = CliRunner().invoke(app, ["plan", "policer", *given])
    assert ran.exit_code == 2
    assert "is a file, not a folder: choose another place" in ran.output
    assert "bursts" not in ran.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--rate", "ten", "--rtt", "20 ms"], "is no rate"),
        (["--rate", "-1 Mbit/s", "--rtt", "20 ms"], "is no rate"),
        (["--rate", "0 Mbit/s", "--rtt", "20 ms"], "is no rate"),
        (["--rate", "nan Mbit/s", "--rtt", "20 ms"], "is no rate"),
        (["--rate", "10 Mbit/s", "--rtt", "20"], "rtt"),
        (["--rate", "10 Mbit/s", "--rtt", "80..20 ms"], "smaller time first"),
        (["--rate", "10 Mbit/s", "--rtt", "0 ms"], "from 1 us to 100 s"),
        (["--rate", "10 Mbit/s", "--rtt", "nan ms"], "from 1 us to 100 s"),
        (["--rate", "10 Mbit/s", "--rtt", "20 ms", "--goal", "1.5"], "give a share"),
        (["--rate", "10 Mbit/s", "--rtt", "20 ms", "--link", "5 Mbit/s"], "would drop nothing"),
        (["--rate", "10 Mbit/s", "--rtt", "20 ms", "--tcp", "vegas"], "known here"),
        (["--rate", "10 Mbit/s", "--rtt", "20 ms", "--rtt", "30 ms"], "2 round-trip times for 1 flow"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(given: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, ["plan", "policer", *given])
    assert ran.exit_code == 2, ran.output
    assert said in ran.output


PLANS = Path(__file__).parents[2] / "docs" / "guides" / "plan"


def question(file: str, customers: str, schemes: list[str] | None = None) -> Question:
    asked = read_question(PLANS / file, schemes)
    return replace(asked, router=replace(asked.router, customers=customers))


def filters(asked: Question, scheme: int) -> list[str]:
    best = Tried.__new__(Tried)
    object.__setattr__(best, "scheme", asked.schemes[scheme])
    object.__setattr__(best, "settings", {"T": 0.02})
    return (batch(asked, best) or "").splitlines()


def test_a_policer_a_customer() -> None:
    lines = filters(question("pppoe.toml", "session"), 0)
    commands = [line for line in lines if not line.startswith("#")]
    assert commands[0] == "qdisc add dev lan0 clsact"
    # Four times the contract of 150 kbit/s, and a second of it: 18,750 B.
    expected = (
        "filter add dev lan0 ingress protocol ppp_ses pref 1 flower pppoe_sid {}"
        " action police rate 600000bit burst 18750 mtu 65535 conform-exceed drop"
    )
    assert commands[1:] == [expected.format(n) for n in range(1, 201)]


def test_trtcm_is_two_policers_in_a_chain_and_a_mark() -> None:
    lines = filters(question("pppoe.toml", "prefix"), 1)
    (first,) = (line for line in lines if "10.0.1.0/24" in line)
    chain = first.split(" action ")[1:]
    assert chain[0] == "police rate 600000bit burst 18750 mtu 65535 conform-exceed drop/pipe"
    assert chain[1] == "police rate 150000bit burst 18750 mtu 65535 conform-exceed continue/pipe"
    assert "set 0x28 retain 0xfc" in chain[2]
    # What exceeds the second goes on to the filter that marks everything OUT.
    assert "pref 2 matchall action pedit ex munge ip dsfield set 0x30" in lines[-1]
    inside = filters(question("pppoe.toml", "session"), 1)
    assert any(line.startswith("# cannot: trTCM's colours") for line in inside)
    assert not any("pedit ex" in line for line in inside)


def test_what_the_kernel_cannot_do_is_said_or_there_is_no_file() -> None:
    asked = question("isp.toml", "prefix", ["rio", "srtcm-wred"])
    rio = filters(asked, 0)
    assert sum("continue/pipe" in line for line in rio) == 30
    assert filters(asked, 1) == []
    assert filters(question("isp.toml", "session", ["rio"]), 0) == []


@pytest.mark.skipif(
    None in (shutil.which("tc"), shutil.which("unshare")), reason="iproute2 or util-linux is not installed"
)
def test_tc_reads_every_line(tmp_path: Path) -> None:
    """A kernel may lack classifiers; what `tc` itself cannot read is another complaint."""
    texts = [policer_batch(Policed("10 Mbit/s", ["20 ms"]), 25_500, "lan0")]
    texts += [
        "\n".join(filters(question("pppoe.toml", c), s)[:7]) for c in ("prefix", "vlan") for s in (0, 1)
    ]
    texts += ["\n".join(filters(question("pppoe.toml", "session"), 0)[:7])]
    rio = filters(question("isp.toml", "prefix", ["rio"]), 0)
    texts += ["\n".join([*rio[:6], *rio[-2:]])]

    def said(text: str) -> list[str]:
        (tmp_path / "x.tc").write_text(text + "\n")
        make = "ip link add lan0 type veth peer name lan1 && ip link set lan0 up"
        done = subprocess.run(
            [str(shutil.which("unshare")), "-rn", "sh", "-c", f"{make} && tc -force -batch x.tc"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        lines = done.stderr.splitlines()
        if any("unshare" in line or "RTNETLINK" in line for line in lines):
            pytest.skip(f"no namespaces here: {done.stderr}")
        ours = ("TC classifier not found", "We have an error talking to the kernel", "Command failed")
        return [line for line in lines if not any(o in line for o in ours)]

    for text in texts:
        assert said(text) == [], text
    # And what it cannot read, it complains of.
    assert said(texts[0].replace("conform-exceed", "conform-exced")) != []
