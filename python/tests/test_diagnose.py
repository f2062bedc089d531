"""Policers found by a capture alone, none where there is none, and captures that cannot be diagnosed."""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import policers
import pytest
from typer.testing import CliRunner

from inprofile import papers
from inprofile.cli import app
from inprofile.cli.output import output_schema
from inprofile.studies.diagnose import Unreadable, of_capture
from inprofile.studies.diagnose.bucket import deficit
from inprofile.studies.diagnose.captures import records
from inprofile.studies.diagnose.segments import segments
from inprofile.studies.diagnose.transfer import captured, drain, endpoint, listening
from inprofile.studies.diagnose.words import as_text, counted
from made import Frames, bucket_passes, transfer


def test_a_packet_passes_where_what_is_missing_leaves_room_for_it() -> None:
    """The deficit says what a token bucket does, packet by packet, however deep it is."""
    chance = np.random.default_rng(5)
    for _ in range(50):
        time = np.cumsum(chance.exponential(0.001, 300))
        size = chance.integers(40, 1500, 300)
        rate, burst = chance.uniform(1e4, 3e5), chance.uniform(1500, 30_000)
        passed = bucket_passes(time, size, rate, burst)
        needs = deficit(time, size, passed, rate) + size
        sure = np.abs(needs - burst) > 1e-6
        assert ((needs <= burst) == passed)[sure].all()
        assert 0 < passed.sum() < 300


def test_behind_a_policer_another_one_is_not_made_up(tmp_path: Path) -> None:
    """When drops came is a guess there: another rate may contradict fewer packets, but by far more."""
    case = next(one for one in policers.drawn(7, True) if "11497 kbit/s 11684 B" in one.told)
    found = policers.look(case, tmp_path)
    assert policers.judged(case, found) in ("right", "wide", "either"), found.fit


def of_five_mbit(burst: int, rtt: str, flows: int, at: str) -> policers.Case:
    """A policer of 5 Mbit/s, so many CUBIC flows through it, and where they are captured."""
    way = {"tcp": "cubic", "flows": flows, "rtt": rtt, "at": at, "duration": 10.0, "access": 150, "link": 50}
    edge = policers.POLICER.format(rate=5000, burst=burst)
    text = policers.TEXT.format(**way, queue='{ aqm = "drop_tail", limit = "1000 packets" }', edge=edge)
    return policers.Case(text, f"5 Mbit/s {burst} B {rtt} {at}", 5e6, float(burst), at)


def test_of_a_small_burst_the_rate_shows_where_several_connections_empty_it(tmp_path: Path) -> None:
    """One gets a third of the rate, at which many rates agree: no figure, but an interval that holds it."""
    one = policers.look(of_five_mbit(15_000, "80 ms", 1, "access"), tmp_path)
    assert (one.kind, one.rate) == ("policer", None)
    assert one.rates is not None
    assert one.rates[0] < 5e6 < one.rates[1]
    assert one.burst == pytest.approx(15_000, rel=0.1)
    said = as_text(one, "one.pcap")
    assert "Rate   between" in said
    assert "--connections 8" in said
    case = of_five_mbit(15_000, "80 ms", 8, "access")
    assert policers.judged(case, policers.look(case, tmp_path)) == "right"


def test_behind_it_a_burst_of_two_packets_is_not_told(tmp_path: Path) -> None:
    """There a drop follows what passed, and two packets are none: any rate would do."""
    found = policers.look(of_five_mbit(3000, "80 ms", 1, "rest"), tmp_path)
    assert (found.rates, found.bursts) == (None, None)
    assert any("The burst may be below 4.5 kB" in sentence for sentence in found.unknown)


# One of each side, sender and size of bucket; `make soak` has sixty, and two hundred without a policer.
@pytest.mark.parametrize("nth", range(8))
def test_hidden_policers_are_found(nth: int, tmp_path: Path) -> None:
    case = next(itertools.islice(policers.drawn(35, True), nth, None))
    found = policers.look(case, tmp_path)
    assert policers.judged(case, found) in ("right", "wide"), f"{case.told}: {found.kind}, {found.fit}"


@pytest.mark.parametrize("nth", range(12))
def test_no_policer_is_invented(nth: int, tmp_path: Path) -> None:
    case = next(itertools.islice(policers.drawn(35, False), nth, None))
    try:
        found = policers.look(case, tmp_path)
    except Unreadable:
        pytest.skip("a drawn transfer of fewer than twenty packets")
    assert found.kind != "policer", f"{case.told}: {found.because}"


@pytest.fixture(scope="module")
def policed() -> Frames:
    """A paced sender through a bucket of 2 Mbit/s and 20 kB, captured at the sender."""
    return transfer(rate=2e6, burst=20_000, seed=3)


@pytest.mark.parametrize(
    "form", ["pcap", "pcap-nano", "pcap-big", "pcapng", "pcapng-big", "vlan", "pppoe", "sll", "raw", "ipv6"]
)
def test_every_form_of_a_capture_says_the_same(form: str, policed: Frames, tmp_path: Path) -> None:
    place = policed.write(tmp_path / "a.cap", form)
    found = of_capture(place)
    assert found.kind == "policer"
    # IPv6's header is longer, and rates count it.
    longer = 1520 / 1500 if form == "ipv6" else 1.0
    assert found.rate == pytest.approx(2e6 * longer, rel=0.01)
    assert found.burst == pytest.approx(20_000 * longer, rel=0.1)
    expected = segments(records(policed.write(tmp_path / "b.cap", "pcap-nano")))
    seen = segments(records(place))
    assert (seen.seq == expected.seq).all()
    assert np.allclose(seen.time, expected.time, atol=1e-6)


def test_sequence_numbers_may_wrap(tmp_path: Path) -> None:
    near = transfer(rate=2e6, burst=20_000, seed=3, isn=0xFFFF_FF00)
    found = of_capture(near.write(tmp_path / "a.cap", "pcap"))
    assert (found.kind, round(found.rate or 0, -5)) == ("policer", 2e6)


def test_what_was_sent_again_may_be_acknowledged_sooner_than_anything_else(tmp_path: Path) -> None:
    """Its first copy did not arrive for that: what arrives is told within a round trip."""
    place = transfer(rate=2e6, burst=20_000, seed=3, again_faster=4.0).write(tmp_path / "a.cap", "pcap")
    found = of_capture(place)
    assert found.kind == "policer"
    assert found.rate == pytest.approx(2e6, rel=0.01)
    assert found.burst == pytest.approx(20_000, rel=0.1)
    assert found.sure > 0.99


def test_one_direction_leaves_a_choice(policed: Frames, tmp_path: Path) -> None:
    found = of_capture(policed.data().write(tmp_path / "a.cap", "pcap"))
    assert found.kind == "either"
    assert found.rate == pytest.approx(2e6, rel=0.01)
    assert any("both directions" in sentence for sentence in found.unknown)


def broken(policed: Frames, tmp_path: Path) -> dict[str, tuple[bytes, str]]:
    """What is wrong with a capture, and what is said of it."""
    place = tmp_path / "good.cap"
    pcap = policed.write(place, "pcap").read_bytes()
    pcapng = policed.write(place, "pcapng").read_bytes()
    many = len(policed.rows)
    return {
        "empty": (b"", "is empty: write a capture"),
        "header": (pcap[:20], "ends within its header, after 20 of 24 bytes"),
        "nothing": (pcap[:24], "has no packet: capture while a transfer runs"),
        "cut": (pcap[:-10], f"packet {many} is cut off: the file has"),
        "cut-pcapng": (pcapng[:-10], f"packet {many} is cut off: the file has"),
        "still": (
            policed.still().write(place, "pcap").read_bytes(),
            f"packets 1 to {many:,} have all the same",
        ),
        "simple": (
            policed.write(place, "simple").read_bytes(),
            "packet 1 has no time (a Simple Packet Block)",
        ),
        "acks": (policed.acks().write(place, "pcap").read_bytes(), "acknowledgements alone, packets 1 to"),
        "udp": (policed.write(place, "udp").read_bytes(), "are UDP; losses are found by TCP's sequence"),
        "short": (policed.write(place, "snap40").read_bytes(), "packet 1 has 40 bytes in the file"),
        "few": (policed.first(12).write(place, "pcap").read_bytes(), "capture a longer transfer"),
        "damaged": (pcap[:32] + b"\xff\xff\xff\xff" + pcap[36:], "packet 1 claims 4,294,967,295 captured"),
        "gzip": (b"\x1f\x8b" + pcap, "is compressed: unpack it with gzip -d"),
        "text": (b"Epoch time, packets", "is no capture: it begins with"),
        "back": (policed.backwards().write(place, "pcap").read_bytes(), "put them in order with reordercap"),
    }


def test_what_cannot_be_diagnosed_is_refused(policed: Frames, tmp_path: Path) -> None:
    for name, (content, said) in broken(policed, tmp_path).items():
        place = tmp_path / f"{name}.cap"
        place.write_bytes(content)
        done = CliRunner().invoke(app, ["diagnose", str(place)])
        assert done.exit_code == 2, name
        assert said in done.stderr, (name, done.stderr)
        assert str(place) in done.stderr, name


def test_what_is_before_the_cut_can_be_diagnosed(policed: Frames, tmp_path: Path) -> None:
    place = policed.write(tmp_path / "a.cap", "pcap")
    place.write_bytes(place.read_bytes()[:-10])
    done = CliRunner().invoke(app, ["diagnose", str(place), "--partial"])
    assert done.exit_code == 0, done.output
    assert "a policer" in done.stdout
    assert "cut off" in done.stdout


def test_any_bytes_are_refused_or_diagnosed(policed: Frames, tmp_path: Path) -> None:
    """Damage anywhere ends in a sentence, not in another error."""
    chance = np.random.default_rng(1)
    place = tmp_path / "a.cap"
    for form in ("pcap", "pcapng"):
        good = np.frombuffer(policed.first(400).write(place, form).read_bytes(), dtype=np.uint8)
        for _ in range(60):
            bad = good[: chance.integers(4, len(good))].copy() if chance.random() < 0.3 else good.copy()
            where = chance.integers(0, min(len(bad), chance.choice((200, len(bad)))), 8)
            bad[where] = chance.integers(0, 256, 8)
            place.write_bytes(bad.tobytes())
            try:
                of_capture(place)
            except Unreadable as error:
                assert str(place) in str(error)  # noqa: PT017 - what else is raised fails the test


def told_by(*words: str) -> dict[str, Any]:
    """What --json prints, which keeps to its schema."""
    told: dict[str, Any] = json.loads(CliRunner().invoke(app, ["diagnose", *words, "--json"]).stdout)
    whole = output_schema()
    jsonschema.validate(told, {"$ref": "#/$defs/diagnose", "$defs": whole["$defs"]})
    assert {*told} <= {*whole["$defs"]["diagnose"]["properties"]}
    return told


def test_where_no_delay_is_known_the_data_alone_are_drawn(tmp_path: Path) -> None:
    place, drawing = papers.load("policing").folder / "policed.toml", tmp_path / "a.svg"
    done = CliRunner().invoke(
        app, ["diagnose", str(place), "--set", "duration=20 s", "--figure", str(drawing)]
    )
    assert done.exit_code == 0, done.output
    assert "neither such a burst nor its rate can be told" in " ".join(done.stdout.split())
    drawn = drawing.read_text("utf-8")
    assert "Infinity" not in drawn
    assert "data (MB)" in drawn
    assert "delay" not in drawn


def test_the_command_prints_draws_and_keeps_to_its_schema(policed: Frames, tmp_path: Path) -> None:
    place, drawing = policed.write(tmp_path / "a.cap", "pcap"), tmp_path / "a.svg"
    done = CliRunner().invoke(app, ["diagnose", str(place), "--figure", str(drawing)])
    assert done.exit_code == 0, done.output
    assert "Rate   2 Mbit/s [" in done.stdout
    assert 'inprofile plan policer --rate "2 Mbit/s"' in done.stdout
    assert "tokens" in drawing.read_text("utf-8")
    told_by(str(place))
    done = CliRunner().invoke(app, ["diagnose", str(place), "--figure", str(tmp_path / "no" / "a.svg")])
    assert done.exit_code == 2
    done = CliRunner().invoke(app, ["diagnose", str(place), "--at", "access"])
    assert (done.exit_code, "--at and --set are for experiments" in done.stderr) == (2, True)


def test_a_round_rate_with_headers_is_told() -> None:
    assert counted(1_482_213, 1500) == (1.5e6, 18)
    assert counted(10_000_100, 1500) == (1e7, 0)
    assert counted(9_876_543, 1400) is None or counted(9_876_543, 1400)[1] > 0


def iperf(intervals: list[tuple[float, float, float | None]], protocol: str = "TCP") -> dict[str, object]:
    """iperf3's JSON: of each half second the bytes, what was lost, and the round-trip time (µs)."""
    rows = []
    for i, (size, lost, rtt) in enumerate(intervals):
        whole = {"start": i / 2, "end": (i + 1) / 2, "bytes": size}
        lost_key = (
            {"retransmits": lost} if protocol == "TCP" else {"lost_packets": lost, "packets": size / 1000}
        )
        rows.append({"streams": [{"rtt": rtt}], "sum": {**whole, **lost_key}})
    start = {"test_start": {"protocol": protocol}, "tcp_mss_default": 1448}
    return {"start": start, "intervals": rows, "end": {}}


@pytest.mark.parametrize(
    ("intervals", "protocol", "kind"),
    [
        ([(1.5e6, 40, 20_000.0), *[(600_000, 9, 20_100.0)] * 19], "TCP", "possible"),
        ([(600_000, 5 * (i % 5 == 0), 20_000.0 + 4_000 * i) for i in range(20)], "TCP", "queue"),
        ([(600_000, 3 * (i == 4), 20_000.0) for i in range(20)], "TCP", "loss"),
        ([(600_000, 0, 20_000.0)] * 20, "TCP", "none"),
        ([(900_000, 0, None), *[(600_000, 300, None)] * 19], "UDP", "either"),
        ([(600_000, 0, None)] * 20, "UDP", "none"),
    ],
)
def test_intervals_of_iperf3(
    intervals: list[tuple[float, float, float | None]], protocol: str, kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "iperf.json"
    place.write_text(json.dumps(iperf(intervals, protocol)))
    told = told_by(str(place))
    assert told["kind"] == kind
    assert told["unknown"]
    if kind == "possible":
        # 600 kB of data in half a second, with 52 B of headers each 1448 B.
        assert told["rate"] == pytest.approx(9.6e6 * 1500 / 1448, rel=1e-6)
        assert told["burst_interval"][0] == 0
        assert told["burst_interval"][1] == pytest.approx(1.5e6 * 1500 / 1448, rel=1e-6)
    assert "What it cannot tell" in CliRunner().invoke(app, ["diagnose", str(place)]).stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"start": {', ":1: "),
        ('{"error": "unable to connect"}', "iperf3 failed: unable to connect: run it again"),
        ('{"a": 1}', "is no JSON of iperf3's client or server ('start' is missing or wrong)"),
        (json.dumps(iperf([(1e6, 1, 1e4)] * 3)), "has 3 intervals, and 8 are needed"),
        (json.dumps(iperf([(1e6, 1, 1e4)] * 9)).replace("retransmits", "other"), "is of the receiver"),
        (json.dumps(iperf([(1e6, 1, 1e4)] * 9, "UDP")).replace("lost_", "no_"), "is of UDP's sender"),
        (json.dumps(iperf([(1e6, 1, 1e4)] * 9, "SCTP")), "is of SCTP: TCP and UDP are diagnosed"),
    ],
)
def test_json_that_is_not_iperf3s_is_refused(content: str, said: str, tmp_path: Path) -> None:
    place = tmp_path / "iperf.json"
    place.write_text(content)
    done = CliRunner().invoke(app, ["diagnose", str(place)])
    assert done.exit_code == 2
    assert said in done.stderr
    assert str(place) in done.stderr
    done = CliRunner().invoke(app, ["diagnose", str(place), "--figure", str(tmp_path / "a.svg")])
    assert "--figure draws packets" in done.stderr


def test_an_experiment_and_a_result_are_captured(tmp_path: Path) -> None:
    case = next(policers.drawn(35, True))
    place = tmp_path / "e.toml"
    place.write_text(case.text)
    short = ["--set", "duration=8 s"]
    of_file = told_by(str(place), *short)
    result = str(tmp_path / "r")
    made = CliRunner().invoke(app, ["run", str(place), "--seeds", "1", *short, "--out", result])
    assert made.exit_code == 0
    of_result = told_by(result)
    assert of_file["kind"] == of_result["kind"]
    assert of_file["rate"] == of_result["rate"]
    done = CliRunner().invoke(app, ["diagnose", str(place), "--at", "nowhere"])
    assert (done.exit_code, "nowhere" in done.stderr) == (2, True)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a capture needs root")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@needs_root
def test_what_nobody_limits_has_no_policer(tmp_path: Path) -> None:
    port, place = free_port(), tmp_path / "live.pcap"
    threading.Thread(target=drain, args=(listening(port),), daemon=True).start()
    captured(("127.0.0.1", port), 1.0, "reno", place, connections=3)
    found = of_capture(place)
    assert found.kind == "none"
    assert len(found.traffic.flows) == 3
    # Both ways once, and no more than it is told to send: 300 Mbit/s.
    assert len(found.traffic.time) > 100
    assert 1e6 < found.goodput < 310e6


@needs_root
def test_nobody_there_and_no_such_control_are_said(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(Unreadable, match=f"Connection refused; start inprofile diagnose --sink {port} there"):
        captured(("127.0.0.1", port), 1.0, None, tmp_path / "live.pcap")
    with pytest.raises(Unreadable, match=r"no frugal: write one of .*reno"):
        captured(("127.0.0.1", port), 1.0, "frugal", tmp_path / "live.pcap")


def test_a_port_that_is_taken_is_said() -> None:
    with (
        socket.create_server(("::", 0), family=socket.AF_INET6) as taken,
        pytest.raises(Unreadable, match="name another port"),
    ):
        listening(taken.getsockname()[1])


@pytest.mark.parametrize("text", ["10.0.0.2", "10.0.0.2:", ":5001", "10.0.0.2:0", "10.0.0.2:70000", "a:b"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 192\.0\.2\.1:5001"):
        endpoint(text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name one"),
        (["a.pcap", "--live", "10.0.0.2:5001"], "name one"),
        (["a.pcap", "--keep", "b.pcap"], "for --live"),
        (["a.pcap", "--connections", "2"], "for --live"),
        (["--live", "10.0.0.2:5001", "--partial"], "leave them out with --live"),
        (["--live", "10.0.0.2"], "no HOST:PORT"),
        (["--live", "10.0.0.2:5001", "--keep", "b.txt"], "ends in .pcap"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    answer = CliRunner().invoke(app, ["diagnose", *words])
    assert answer.exit_code == 2
    assert says in answer.stderr.replace("\n", " ")
