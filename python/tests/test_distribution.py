"""Comparing with ns-2 in distribution: the tests themselves, and programs that stand in for ns-2."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from forked import put_ns
from inprofile import load
from inprofile.cli import main
from inprofile.studies.validate import NotInNs2, Ns2Failed
from inprofile.studies.validate.distribution import counted, equivalent, figures, validate_distribution

EXACT = """
title    = "Two flows through RIO"
duration = "4 s"
measure  = { from = "1 s", to = "4 s" }
seeds    = 3

[tcp]
profile = "ns2"

[[links]]
name  = "bottleneck"
from  = "R1"
to    = "R2"
rate  = "1 Mbit/s"
delay = "10 ms"

[links.queue]
aqm   = "rio"
limit = "30 packets"
in    = { min_th = "10 packets", max_th = "20 packets", max_p = 0.02 }
out   = { min_th = "4 packets", max_th = "12 packets", max_p = 0.1 }

[[flows]]
name     = "tcp"
count    = 2
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = "40 ms"
start    = "uniform 0..0.1 s"
contract = "200 kbit/s"
marker   = { kind = "token_bucket", depth = "2 packets" }
"""


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
