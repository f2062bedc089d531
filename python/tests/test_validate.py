"""Comparing with ns-2: on traces made by hand, in distribution, and with programs that stand in for ns-2."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from forked import put_ns
from inprofile import _internal, load
from inprofile.cli import main
from inprofile.studies.validate import (
    CONTEXT,
    NotInNs2,
    Ns2Failed,
    Ns2Late,
    Ns2Missing,
    compare,
    ns2_script,
    validate,
)
from inprofile.studies.validate.distribution import counted, equivalent, figures, validate_distribution
from made import customers

SMALL = """
title    = "Two flows, as in ns-2"
duration = "2 s"

[engine]
profile = "ns2"

[tcp]
profile = "ns2"

[[links]]
name  = "bottleneck"
from  = "edge"
to    = "core"
rate  = "1 Mbit/s"
delay = "10 ms"
queue = { aqm = "drop_tail", limit = "9 packets", limit_rule = "waiting" }
""" + customers("tcp", 2, "40 ms", "10 Mbit/s", start="uniform 0..0.1 s")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def lines(n: int, flags: str = "-------") -> list[bytes]:
    return [f"+ {i} 0 1 tcp 1040 {flags} 0 0.0 1.0 {i} {i}\n".encode() for i in range(n)]


def test_only_the_flags_may_differ() -> None:
    found = compare(lines(25), lines(25, "---A---"))
    assert (found.events, found.divergence) == (25, None)
    assert found.checksum == compare(lines(25), lines(25)).checksum


def test_the_first_difference_comes_with_what_was_before_it() -> None:
    theirs = lines(25, "---A---")
    theirs[17] = theirs[17].replace(b"+ 17", b"d 17")
    theirs[20] = theirs[20].replace(b"1040", b"40")
    found = compare(lines(25), theirs)
    assert found.events == 17
    divergence = found.divergence
    assert divergence is not None
    assert divergence.event == 18
    assert len(divergence.ours) == len(divergence.theirs) == CONTEXT
    assert divergence.ours[0] == "+ 8 0 1 tcp 1040 ------- 0 0.0 1.0 8 8"
    assert divergence.ours[-1] == "+ 17 0 1 tcp 1040 ------- 0 0.0 1.0 17 17"
    assert divergence.theirs[-1] == "d 17 0 1 tcp 1040 ---A--- 0 0.0 1.0 17 17"
    assert str(divergence).splitlines()[0] == "different from event 18 on"


@pytest.mark.parametrize(("ours", "theirs", "shown"), [(5, 3, (4, 3)), (3, 5, (3, 4))])
def test_a_trace_that_ends_early_differs(ours: int, theirs: int, shown: tuple[int, int]) -> None:
    divergence = compare(lines(ours), lines(theirs)).divergence
    assert divergence is not None
    assert divergence.event == 4
    assert (len(divergence.ours), len(divergence.theirs)) == shown


def test_any_column_but_the_flags_counts() -> None:
    line = b"r 1.5 0 1 tcp 1040 ------- 0 0.0 1.0 7 9\n"
    for column in (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11):
        words = line.split()
        words[column] = b"x"
        assert compare([line], [b" ".join(words) + b"\n"]).divergence is not None, column


def test_the_script_has_the_starts_of_its_seed(small: Path) -> None:
    scenario = load(small)
    script = ns2_script(scenario, 3)
    assert "$defaultRNG seed 3\n" in script
    # ns-2's drop-tail queue holds one less than its limit.
    assert "link 0 1 1000000 0.01 DropTail {limit_ 10}\n" in script
    starts = [float(t) for t in re.findall(r"^flow \d+ 1 TCP/Reno TCPSink (\S+) ", script, re.MULTILINE)]
    rows = scenario.run(seeds=[3]).rows("flows")
    assert starts == [row.figures["start"].mean for row in rows]


def test_what_ns2_lacks_is_all_named(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = load(small).with_(
        {
            "engine.profile": "exact",
            "tcp.profile": "rfc",
            "links.bottleneck.queue": {
                "aqm": "red", "limit": "9000 B", "min_th": "3 packets", "max_th": "6 packets", "max_p": 0.1,
            },
        }
    )  # fmt: skip
    with pytest.raises(NotInNs2) as caught:
        ns2_script(scenario)
    assert [what.partition(":")[0] for what in caught.value.missing] == [
        "engine.profile",
        "flows.tcp.tcp.profile",
        "links.bottleneck.queue.variant",
        "links.bottleneck.queue.limit",
    ]
    with pytest.raises(SystemExit) as left:
        main(["validate", str(small), "--set", 'tcp.profile="rfc"', "--json"])
    assert left.value.code == 2
    out = capsys.readouterr()
    assert "flows.tcp.tcp.profile" in json.loads(out.out)["error"]
    assert "flows.tcp.tcp.profile" in out.err


def test_what_ns2_lacks_has_its_line_and_a_remedy(small: Path) -> None:
    text = SMALL.replace(
        'profile = "ns2"\n\n[[links]]', 'profile = "linux"\ncongestion = "prague"\n\n[[links]]'
    )
    small.write_text(
        text.replace('aqm = "drop_tail"', 'aqm = "codel"').replace(', limit_rule = "waiting"', "")
    )
    scenario = load(small)
    with pytest.raises(NotInNs2) as caught:
        ns2_script(scenario)
    lines = small.read_text().splitlines()
    control, aqm = (1 + next(n for n, x in enumerate(lines) if word in x) for word in ("prague", "codel"))
    assert f"{small}:{control}: flows.tcp.tcp.congestion: prague; write profile" in str(caught.value)
    assert f"{small}:{aqm}: links.bottleneck.queue.aqm: codel; ns-2 has drop_tail" in str(caught.value)


def test_without_ns2_it_says_how_to_get_it(
    small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Ns2Missing):
        validate(load(small))
    with pytest.raises(SystemExit) as left:
        main(["validate", str(small)])
    assert left.value.code == 2
    assert "apt-get install ns2" in capsys.readouterr().err


def test_ns2_that_fails_is_quoted(small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_ns(tmp_path, monkeypatch, "seq 30 >&2; echo no such thing >&2; exit 3")
    with pytest.raises(Ns2Failed, match="exit code 3") as caught:
        validate(load(small))
    assert caught.value.code == 3
    assert str(caught.value).endswith("no such thing")
    assert "\n  20\n" not in str(caught.value)


def test_ns2_that_is_killed_or_leaves_nothing(
    small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_ns(tmp_path, monkeypatch, "kill -9 $$")
    with pytest.raises(Ns2Failed, match="signal 9"):
        validate(load(small))
    (tmp_path / "bin" / "ns").write_text("#!/bin/sh\n")
    with pytest.raises(Ns2Failed, match="said nothing"):
        validate(load(small))


def test_ns2_that_does_not_end_is_given_up(
    small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_ns(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(Ns2Late) as caught:
        validate(load(small), timeout=1)
    # It left with no code of its own.
    assert "exit code" not in str(caught.value)
    assert "1 s" in str(caught.value)
    with pytest.raises(SystemExit) as left:
        main(["validate", str(small), "--timeout", "1"])
    assert left.value.code == 2
    assert "--timeout" in capsys.readouterr().err


def test_both_outcomes_end_to_end(
    small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = tmp_path / "golden.tr"
    packets = _internal.ns2_log(load(small)._inner, 1, str(golden))
    events = golden.read_text().count("\n")
    assert 100 < packets < events
    put_ns(tmp_path, monkeypatch, f"sed 's/-------/---A---/' {golden} >$2")
    with pytest.raises(SystemExit) as left:
        main(["validate", str(small), "--keep", str(tmp_path / "kept"), "--json"])
    assert left.value.code in (None, 0)
    found = json.loads(capsys.readouterr().out)
    assert (found["identical"], found["events"], found["packets"]) == (True, events, packets)
    assert found["first_divergence"] is None
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"experiment.tcl", "inprofile.tr", "ns2.tr"}

    (tmp_path / "bin" / "ns").write_text(f"#!/bin/sh\nsed '50s/^./x/' {golden} >$2\n")
    with pytest.raises(SystemExit) as left:
        main(["validate", str(small)])
    assert left.value.code == 1
    assert "different from event 50 on" in capsys.readouterr().out


def test_a_trace_that_cannot_be_written_is_an_error_with_its_path(small: Path, tmp_path: Path) -> None:
    inner = load(small)._inner
    for path in ("/dev/full", str(tmp_path / "nowhere" / "x.tr"), str(tmp_path)):
        with pytest.raises(OSError, match=r"\[Errno \d+\]") as caught:
            _internal.ns2_log(inner, 1, path)
        assert caught.value.filename == path


EXACT = """
title    = "Two flows through RIO"
duration = "4 s"
measure  = { from = "1 s", to = "4 s" }
seeds    = 3

[tcp]
profile = "ns2"

[[links]]
name  = "bottleneck"
from  = "edge"
to    = "core"
rate  = "1 Mbit/s"
delay = "10 ms"

[links.queue]
aqm   = "rio"
limit = "30 packets"
in    = { min_th = "10 packets", max_th = "20 packets", max_p = 0.02 }
out   = { min_th = "4 packets", max_th = "12 packets", max_p = 0.1 }
""" + customers(
    "tcp",
    2,
    "40 ms",
    "10 Mbit/s",
    start="uniform 0..0.1 s",
    contract="200 kbit/s",
    marker='{ kind = "token_bucket", depth = "2 packets" }',
)


@pytest.fixture
def exact(tmp_path: Path) -> Path:
    path = tmp_path / "exact.toml"
    path.write_text(EXACT)
    return path


def test_welch_by_hand() -> None:
    # Means 2 and 3, variances 1 and 1, n = 3: error √(2/3), 4 degrees of freedom, t(0.95) = 2.132.
    d, ci, p = equivalent([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 10.0)
    assert d == -1.0
    assert ci == pytest.approx((-1 - 2.1318 * (2 / 3) ** 0.5, -1 + 2.1318 * (2 / 3) ** 0.5), abs=1e-3)
    # (1 − 10) / 0.8165 = −11.02 standard errors.
    assert p == pytest.approx(0.00019, abs=2e-5)
    # The interval is inside the margin exactly where the test rejects.
    assert equivalent([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], -ci.lo + 0.01)[2] < 0.05
    assert equivalent([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], -ci.lo - 0.01)[2] > 0.05


def test_values_without_spread() -> None:
    assert equivalent([5.0, 5.0], [5.0, 5.0], 0.1)[2] == 0.0
    assert equivalent([5.0, 5.0], [5.2, 5.2], 0.1)[2] == 1.0
    with pytest.raises(ValueError, match="one seed"):
        equivalent([1.0], [1.0, 2.0], 1.0)


def test_what_is_shifted_is_told_apart() -> None:
    draw = np.random.default_rng(1)
    normal = draw.normal(100, 1, 200).tolist()
    same = draw.normal(100, 1, 200).tolist()
    shifted = [x + 5 for x in same]
    alike, apart = (figures({"drops": normal}, {"drops": other})[0] for other in (same, shifted))
    assert alike.equivalent
    assert alike.alike
    assert not apart.equivalent
    assert not apart.alike


def test_only_whole_segments_count_as_payload() -> None:
    flows = "span 2\nflow 0 2120 1000 40 1\nflow 40 4200 1000 40 1\n"
    text = flows + "packets 1040 1 0 0 5\npackets 1040 5 2 1 6\n"
    found = counted(text)
    assert found["throughput"] == (2120 + 4160) * 4
    assert found["fi"] == pytest.approx(36 / (2 * 20))
    assert (found["lambda_in"], found["lambda_out"], found["drops"]) == (4 * 4160 - 4 * 1000, 3 * 4160, 1.0)


def test_bytes_are_taken_as_they_are_and_a_flow_elsewhere_shortens_nothing() -> None:
    flows = "span 2\nflow 0 2120 1000 40 1\nflow 0 720 300 40 0\n"
    found = counted(flows + "bytes 1000 0 0 5\nbytes 3500 0 0 6\n")
    assert (found["lambda_in"], found["lambda_out"], found["drops"]) == (10_000.0, 0.0, 1.0)
    # In packets one of the first flow's was its SYN; the second flow doesn't pass.
    found = counted(flows + "packets 1040 0 0 0 0\npackets 1040 3 0 0 0\n")
    assert found["lambda_in"] == (2 * 1040 + 40) * 4


def test_a_groups_own_segment_is_what_ns2_counts(
    exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "script"
    put_ns(tmp_path, monkeypatch, f"cat $1 >{kept}; exit 3")
    scenario = load(exact).set("flows.tcp.tcp.segment", "500 B")
    with pytest.raises(Ns2Failed, match="exit code 3"):
        validate_distribution(scenario, 2)
    assert 'return "packets 540 ' in kept.read_text()


def test_the_next_of_kin_is_dsred(exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "script"
    put_ns(tmp_path, monkeypatch, f"cat $1 >{kept}; exit 3")
    with pytest.raises(Ns2Failed, match="exit code 3"):
        validate_distribution(load(exact), 2)
    script = kept.read_text()
    assert "dsred 0 1 1040 RIO-C {{10 20 0.02 0.002} {4 12 0.1 0.002} {4 12 0.1 0.002}}" in script
    assert "TokenBucket {200000 2080}" in script
    assert "trace-all" not in script


def test_a_gentle_rio_has_no_next_of_kin(exact: Path) -> None:
    with pytest.raises(NotInNs2, match="gentle"):
        validate_distribution(load(exact).set("links.bottleneck.queue.gentle", True), 2)


def test_counts_that_are_not_whole(exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_ns(tmp_path, monkeypatch, "echo span 3 >$2")
    with pytest.raises(Ns2Failed, match="not whole"):
        validate_distribution(load(exact), 2)


def test_the_file_says_how(
    exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "span 3",
        "flow 0 2120 1000 40 1",
        "flow 0 4200 1000 40 1",
        "packets 1040 0 0 0 0",
        "packets 1040 5 2 1 6",
    ]
    put_ns(tmp_path, monkeypatch, "\n".join(f"echo {line} >>$2" for line in lines))
    with pytest.raises(SystemExit) as left:
        main(["validate", str(exact), "--json"])
    assert left.value.code == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["equivalent"]) == (3, False)
    with pytest.raises(SystemExit) as left:
        main(["validate", str(exact), "--seed", "4"])
    assert left.value.code == 2
    assert "--seeds" in capsys.readouterr().err


@pytest.mark.parametrize("json_", [False, True])
def test_one_seed_is_refused_wherever_it_is_written(
    exact: Path, capsys: pytest.CaptureFixture[str], *, json_: bool
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["validate", str(exact), "--set", "seeds=1", *(["--json"] if json_ else [])])
    assert left.value.code == 2
    out = capsys.readouterr()
    assert "exact.toml: one seed is no distribution" in out.err
    assert "Traceback" not in out.err
    if json_:
        assert "--seeds 2" in json.loads(out.out)["error"]


def test_one_run_that_fails_ends_the_others(
    exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first waits for the second to fail, and would sleep on.
    failed = tmp_path / "failed"
    body = f"mkdir {tmp_path}/first 2>/dev/null && exec sleep 60; touch {failed}; exit 3"
    put_ns(tmp_path, monkeypatch, body)
    monkeypatch.setattr("inprofile.studies.validate.distribution.threads", lambda _: 2)
    began = time.monotonic()
    with pytest.raises(Ns2Failed, match="exit code 3"):
        validate_distribution(load(exact), 2, timeout=60)
    assert failed.exists()
    assert time.monotonic() - began < 30


def test_sigterm_leaves_nothing_behind(exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_ns(tmp_path, monkeypatch, f"echo $$ >>{tmp_path}/pids; exec sleep 60")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "inprofile", "validate", str(exact)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    pids = tmp_path / "pids"
    for _ in range(600):
        if pids.exists() and pids.read_text().endswith("\n"):
            break
        time.sleep(0.05)
    process.terminate()
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 143
    assert said == "Terminated: nothing was written.\n"
    assert list(temporary.iterdir()) == []
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
