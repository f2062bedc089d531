"""Files of packets for other programs, and CSV: read back here, and by tshark."""

import csv
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import inprofile
from inprofile.cli import app
from inprofile.run.csv_files import write_csv
from inprofile.run.packets import NotCaptured, TraceError, read_ns2_trace, write_capture, write_ns2_trace

EXPERIMENT = """
title = "Packets of every kind"
duration = "4 s"
seeds = 1
measure = { at = "bottleneck" }
[tcp]
profile = "linux"
congestion = "cubic"
ecn = true
[[links]]
name = "bottleneck"
from = "r1"
to = "r2"
rate = "3 Mbit/s"
delay = "10 ms"
[links.queue]
aqm = "red"
limit = "30 packets"
min_th = "5 packets"
max_th = "15 packets"
max_p = 0.1
w_q = 0.02
ecn = true
[[flows]]
name = "tcp"
count = 2
from = "H*"
join = { node = "r1", rate = "10 Mbit/s" }
to = "r2"
rtt = "40 ms"
contract = "500 kbit/s"
marker = { kind = "token_bucket", depth = "4 packets" }
[[flows]]
name = "udp"
from = "H*"
join = { node = "r1", rate = "10 Mbit/s" }
to = "r2"
rtt = "40 ms"
start = "1 s"
traffic = { kind = "cbr", rate = "1 Mbit/s", packet = "301 B" }
"""


@dataclass(frozen=True)
class Frame:
    """A packet of a capture, as pcapng has it."""

    interface: int
    ns: int
    number: int
    comment: str
    data: bytes
    length: int


def frames(path: Path) -> tuple[list[str], list[Frame]]:
    """Names of the interfaces, and the packets; written from the specification alone."""
    data, at, names, found = path.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            assert body[:2] == b"\x01\x00"
            options = dict(_options(body[8:]))
            assert options[9] == b"\x09"
            names.append(options[2].decode())
        elif kind == 6:
            interface, high, low, captured, whole = struct.unpack_from("<5I", body)
            options = dict(_options(body[20 + (captured + 3) // 4 * 4 :]))
            found.append(
                Frame(
                    interface,
                    high << 32 | low,
                    struct.unpack("<Q", options[5])[0],
                    options.get(1, b"").decode(),
                    body[20 : 20 + captured],
                    whole,
                )
            )
        at += length
    return names, found


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while True:
        code, length = struct.unpack_from("<HH", data, at)
        if code == 0:
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def ones_complement(data: bytes) -> int:
    words = struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.fixture(scope="module")
def scenario() -> inprofile.Scenario:
    return inprofile.parse(EXPERIMENT)


@pytest.fixture(scope="module")
def capture(scenario: inprofile.Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("packets") / "run.pcapng"
    write_capture(scenario, place, ["bottleneck", "tcp.1.join"])
    return place


def test_a_capture_holds_what_the_run_counted(scenario: inprofile.Scenario, tmp_path: Path) -> None:
    written = write_capture(scenario, tmp_path / "b.pcapng", seed=1)
    queue = next(row for row in scenario.run(seeds=1).queues.to_pylist() if row["queue"] == "bottleneck")
    names, found = frames(tmp_path / "b.pcapng")
    assert names == ["bottleneck", "bottleneck drops"]
    out = [f for f in found if f.interface == 0 and f.data[26:28] == b"\x0a\x40"]
    assert len(out) == queue["total_sent"]
    dropped = [f for f in found if f.interface == 1]
    assert len(dropped) == queue["total_dropped"] == written.dropped > 10
    assert {f.comment.partition(":")[0] for f in dropped} == {"dropped"}
    assert [f.ns for f in found] == sorted(f.ns for f in found)
    # A packet that is sent has one number, and none that is dropped is sent.
    assert not {f.number for f in dropped} & {f.number for f in out}


def test_every_header_is_right(capture: Path) -> None:
    names, found = frames(capture)
    assert names == ["bottleneck", "bottleneck drops", "tcp.1.join", "tcp.1.join drops"]
    seen = set()
    for f in found:
        ip = f.data[14:]
        assert f.data[12:14] == b"\x08\x00"
        assert (len(f.data), int.from_bytes(ip[2:4], "big")) == (f.length, f.length - 14)
        assert ones_complement(ip[:20]) == 0xFFFF
        pseudo = ip[12:20] + bytes([0, ip[9]]) + (len(ip) - 20).to_bytes(2, "big")
        assert ones_complement(pseudo + ip[20:]) == 0xFFFF
        kind = "udp" if ip[9] == 17 else {0x02: "syn", 0x12: "syn-ack", 0x10: "ack"}[ip[33] & 0x3F]
        seen.add((kind, ip[1] >> 2, ip[1] & 3))
    # Data is IN or OUT by its marker, ECT(0), and CE where the queue marked it; UDP has no marker and is IN.
    assert {("ack", 10, 2), ("ack", 12, 2), ("ack", 12, 3), ("ack", 0, 0), ("udp", 10, 0)} <= seen
    assert {kind for kind, _, _ in seen} == {"syn", "syn-ack", "ack", "udp"}
    # RFC 3168 §6.1.1: asked for in the SYN, granted in its answer, and both are written once a connection.
    tcp = [f.data[14:] for f in found if f.interface == 0 and f.data[23] == 6]
    assert [ip[33] for ip in tcp if ip[33] & 2] == [0xC2, 0xC2, 0x52, 0x52] or sorted(
        ip[33] for ip in tcp if ip[33] & 2
    ) == [0x52, 0x52, 0xC2, 0xC2]
    assert any(ip[33] & 0x40 for ip in tcp if not ip[33] & 2)
    assert any(ip[33] & 0x80 for ip in tcp if not ip[33] & 2)


def test_acknowledgements_cover_what_was_sent(capture: Path) -> None:
    """Data is numbered byte by byte from 1, and no acknowledgement or SACK block names what was not sent.

    Only the first block may lie below the acknowledgement: what arrived twice (RFC 2883 §4).
    """
    highest: dict[bytes, int] = {}
    blocks = 0
    for f in frames(capture)[1]:
        ip = f.data[14:]
        if f.interface != 0 or ip[9] != 6:
            continue
        seq, ack = struct.unpack(">II", ip[24:32])
        header = 20 + (ip[32] >> 4) * 4
        if ip[12:14] == b"\x0a\x40":
            assert seq == 0 if ip[33] & 2 else (seq - 1) % 1460 == 0
            highest[ip[12:16]] = max(highest.get(ip[12:16], 1), seq + len(ip) - header)
        elif not ip[33] & 2:
            assert seq == 1
            assert ack <= highest[ip[16:20]]
            options = ip[40:header]
            if options[:3] == b"\x01\x01\x05":
                count = (options[3] - 2) // 4
                edges = struct.unpack(f">{count}I", options[4 : 4 + 4 * count])
                assert all(0 < edge <= highest[ip[16:20]] for edge in edges)
                assert edges[1] <= ack or ack < edges[0]
                assert all(ack < edge for edge in edges[2:])
                blocks += 1
    assert len(highest) == 2
    assert blocks > 10


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_nothing_wrong(capture: Path) -> None:
    checks = ["tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "udp.check_checksum:TRUE"]
    fields = ["frame.interface_name", "frame.comment", "_ws.malformed", "_ws.expert.severity"]
    fields += ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status"]
    line = ["tshark", "-r", str(capture), *(word for check in checks for word in ("-o", check))]
    line += ["-T", "fields", *(word for field in fields for word in ("-e", field))]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [row.split("\t") for row in done.stdout.splitlines()]
    assert len(rows) == len(frames(capture)[1])
    errors = 8388608
    for name, comment, malformed, severity, ip, tcp, udp in rows:
        assert not malformed
        assert all(int(level) < errors for level in severity.split(",") if level)
        # 1 is "good"; a packet has one of TCP and UDP.
        assert (ip, sorted((tcp, udp))) == ("1", ["", "1"])
        assert name.endswith(" drops") == comment.startswith("dropped: ")
    assert sum(row[0] == "bottleneck drops" for row in rows) > 10


def test_the_same_seed_gives_the_same_capture(
    scenario: inprofile.Scenario, capture: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.pcapng"
    write_capture(scenario, again, ["bottleneck", "tcp.1.join"])
    assert again.read_bytes() == capture.read_bytes()
    write_capture(scenario, again, ["bottleneck", "tcp.1.join"], snaplen=60)
    short, long = frames(again)[1], frames(capture)[1]
    assert [f.length for f in short] == [f.length for f in long]
    assert all(s.data == f.data[:60] for s, f in zip(short, long, strict=True))


def test_what_cannot_be_captured(scenario: inprofile.Scenario, tmp_path: Path) -> None:
    place = tmp_path / "x.pcapng"
    place.write_text("kept")
    with pytest.raises(
        NotCaptured, match=r'no link "nowhere": the links are bottleneck, bottleneck\.reverse'
    ):
        write_capture(scenario, place, ["nowhere"])
    with pytest.raises(NotCaptured, match="named twice"):
        write_capture(scenario, place, ["bottleneck", "bottleneck"])
    with pytest.raises(NotCaptured, match="snaplen 10"):
        write_capture(scenario, place, snaplen=10)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(OSError, match="No such file"):
        write_capture(scenario, tmp_path / "no" / "x.pcapng")


def test_ns2s_trace_is_written_and_read(scenario: inprofile.Scenario, tmp_path: Path) -> None:
    place = tmp_path / "run.tr"
    arrived = write_ns2_trace(scenario, place)
    table = read_ns2_trace(place)
    assert table.num_rows == place.read_bytes().count(b"\n")
    rows = table.to_pylist()
    assert {row["event"] for row in rows} == {"+", "-", "r", "d"}
    dropped = sum(row["event"] == "d" for row in rows)
    assert dropped == sum(scenario.run(seeds=1).flows["dropped"].to_pylist())
    last = [row for row in rows if row["event"] == "r" and row["type"] != "ack" and row["to"] == 1]
    assert len(last) == arrived
    first = "+ 0 0 2 tcp 40 ------- 0 0.0 3.0 0 0\nr 1.2e-05 0 2 tcp 40 ---A--- 0 0.0 3.0 0 0\n"
    place.write_text(first)
    assert read_ns2_trace(place)["time"].to_pylist() == [0.0, 1.2e-05]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("+ 0 0 2 tcp 40\n", "is no event: a line has the 12 fields"),
        ("s 0 0 2 tcp 40 ------- 0 0.0 3.0 0 0\n", '"s" is no event'),
        ("+ x 0 2 tcp 40 ------- 0 0.0 3.0 0 0\n", "is no packet trace"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.tr").write_text(text)
    with pytest.raises(TraceError, match=said):
        read_ns2_trace(tmp_path / "x.tr")


def test_csv_reads_back_as_it_was(scenario: inprofile.Scenario, tmp_path: Path) -> None:
    result = scenario.run(seeds=1)
    names = write_csv({"flows": result.flows, "series": result.series}, tmp_path / "c")
    assert names == ["flows.csv", "units.csv"]
    with (tmp_path / "c" / "flows.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    for row, expected in zip(read, result.flows.to_pylist(), strict=True):
        for column, value in expected.items():
            text = row[column]
            assert (text == "") if value is None else type(value)(text) == value, column
    with (tmp_path / "c" / "units.csv").open(newline="") as file:
        units = {row["column"]: row for row in csv.DictReader(file)}
    assert list(units) == result.flows.column_names
    assert units["goodput"]["unit"] == "bit/s"
    assert all(row["meaning"] for row in units.values())
    write_csv({"flows": result.flows}, tmp_path / "c", headers=True)
    assert "goodput [bit/s]" in (tmp_path / "c" / "flows.csv").read_text().splitlines()[0]
    for mine in ("mine.txt", "mine.csv"):
        (tmp_path / "c" / mine).write_text("a week's work")
        with pytest.raises(inprofile.FolderInUse, match=rf"holds other things \({mine}\)"):
            write_csv({"flows": result.flows}, tmp_path / "c")
        assert (tmp_path / "c" / mine).read_text() == "a week's work"
        (tmp_path / "c" / mine).unlink()


def test_csv_quotes_what_has_to_be() -> None:
    from inprofile.run.csv_files import csv_bytes

    texts = ['a "b"', "c,d", "e\nf", None]
    made = csv_bytes(pa.table({"a,b": texts})).decode()
    assert list(csv.reader(made.splitlines(keepends=True))) == [["a,b"], ['a "b"'], ["c,d"], ["e\nf"], []]


def test_the_command_line_writes_and_exports_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(EXPERIMENT)

    def call(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*arguments])
        assert done.exit_code == code, done.output
        return str(done.output)

    files = ("--csv", "c", "--pcap", "p.pcapng", "--ns2-trace", "t.tr", "--out", "r")
    assert "dropped, in p.pcapng" in call("run", "e.toml", *files)
    call("export", "r", "--csv", "again")
    for name in ("flows.csv", "metrics.csv", "units.csv"):
        assert Path("again", name).read_bytes() == Path("c", name).read_bytes()
    assert "trace.csv, " in call("export", "t.tr", "--csv", "t")
    for wrong, why in (
        (("run", "e.toml", "--at", "bottleneck"), "write --pcap FILE"),
        (("run", "e.toml", "--pcap", "q.pcapng", "--at", "x"), "there is no link"),
        (("run", "e.toml", "--csv", "r"), "holds other things"),
        (("export", ".", "--csv", "new"), "neither a result nor a sweep"),
        (("export", "e.toml", "--csv", "new"), "is no event: a line has the 12 fields"),
        (("export", "none", "--csv", "new"), "no such folder"),
    ):
        assert why in call(*wrong, code=2)
    assert not Path("q.pcapng").exists()


def test_a_sweep_is_exported(tmp_path: Path) -> None:
    inprofile.sweep(
        inprofile.parse(EXPERIMENT), {"links.bottleneck.rate": ["2 Mbit/s", "3 Mbit/s"]}, tmp_path / "s"
    )
    done = CliRunner().invoke(app, ["export", str(tmp_path / "s"), "--csv", str(tmp_path / "c")])
    assert done.exit_code == 0, done.output
    units = (tmp_path / "c" / "units.csv").read_text()
    assert "metrics,links.bottleneck.rate,bit/s" in units
