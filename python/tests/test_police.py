"""A plan's customers as filters of the kernel: what `tc -batch` is given, and that it takes every line."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from inprofile.studies.plan import Question, read_question
from inprofile.studies.plan.police import batch
from inprofile.studies.plan.policer import PolicerQuestion as Policed
from inprofile.studies.plan.policer import batch as policer_batch
from inprofile.studies.plan.search import Tried

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
