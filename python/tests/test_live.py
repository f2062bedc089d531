"""Experiments with real hosts. Without namespaces these tests fail, unless ALLOW_MISSING=live."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import inprofile
from inprofile.run.live import NotLive, Unsupported, hindrance


@pytest.fixture(autouse=True)
def real_hosts() -> None:
    """Each test fails without them, and says why, unless ALLOW_MISSING=live says that this is fine."""
    hindered = hindrance()
    if hindered is None:
        return
    if "live" not in os.environ.get("ALLOW_MISSING", "").split(","):
        pytest.fail(f"{hindered}; ALLOW_MISSING=live leaves these tests out")
    pytest.skip(hindered)


SHORT = {"duration": "3 s", "measure.from": "1 s", "measure.to": "3 s"}


def scenario() -> inprofile.Scenario:
    return inprofile.parse(inprofile.STARTER).with_(SHORT)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "inprofile", *arguments]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(inprofile.STARTER, encoding="utf-8")
    return path


def short() -> list[str]:
    return [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]


def test_a_result_like_any_other(tmp_path: Path) -> None:
    told: list[tuple[float, float]] = []
    result = scenario().live(seeds=[4], progress=lambda done, of: told.append((done, of)))
    simulated = scenario().run(seeds=[4])
    assert result.metrics.schema == simulated.metrics.schema
    assert result.flows["flow"].to_pylist() == simulated.flows["flow"].to_pylist()
    assert result.flows["start"].to_pylist() == simulated.flows["start"].to_pylist()
    assert set(result.series["what"].to_pylist()) == set(simulated.series["what"].to_pylist())
    summary = result.summary()
    assert summary["utilisation"].mean > 0.5
    assert told[-1][1] == 3.0
    (kept,) = result.provenance.live or ()
    assert kept["seed"] == 4
    assert kept["packets"] > 100
    assert 0 < kept["late_p50"] <= kept["late_p99"] <= kept["late_most"]
    result.write(tmp_path / "kept")
    assert inprofile.read(tmp_path / "kept").provenance == result.provenance


def test_datagrams_are_counted_where_they_arrive() -> None:
    traffic = {"kind": "cbr", "rate": "100 kbit/s", "packet": "500 B"}
    result = scenario().with_({"flows.assured.traffic": traffic}).live(seeds=[1])
    (kept,) = result.provenance.live or ()
    flows = kept["datagrams"]
    assert [flow["flow"] for flow in flows] == [f"assured.{i}" for i in range(4)]
    for flow in flows:
        # At least 2 of the 3 s, at 25 a second; a link of 3 Mbit/s has room for all.
        assert flow["sent"] > 45
        assert flow["received"] > 0.9 * flow["sent"]
        assert (flow["lost"], flow["overtaken"]) == (0, 0)


def test_without_linux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inprofile.run.live.HAS_LINUX", False)
    with pytest.raises(Unsupported, match="they need Linux"):
        scenario().live(seeds=1)


def test_what_the_kernel_is_not(file: Path) -> None:
    with pytest.raises(NotLive, match="headers of 60 B"):
        scenario().with_({"tcp.header": "60 B"}).live(seeds=1)
    refused = subprocess.run(
        command("live", str(file), "--set", "tcp.header=60 B"), capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert 'header = "40 B" or "52 B"' in refused.stderr


def test_a_control_that_the_kernel_lacks_is_named_once_with_its_line(file: Path) -> None:
    text = file.read_text("utf-8")
    line = text[: text.index("[tcp]")].count("\n") + 1
    for more, problem, remedy in (
        ('profile = "linux"\ncongestion = "ledbat"', "no LEDBAT", 'write congestion = "cubic" or "sack"'),
        (
            'profile = "linux"\ncongestion = "cubic"\nslow_start = "hystart++"',
            "no HyStart++",
            "remove slow_start",
        ),
    ):
        rest = text[text.index("[tcp]") :].partition("\n\n")[2]
        file.write_text(f"{text[: text.index('[tcp]')]}[tcp]\n{more}\n\n{rest}", "utf-8")
        with pytest.raises(NotLive) as caught:
            inprofile.load(file).live(seeds=1)
        said = str(caught.value)
        assert said.count("error: ") == 1
        assert said.startswith(f"{file}:{line + more.count(chr(10)) + 1}: error: flows.")
        assert problem in said
        assert remedy in said


def test_the_command_prints_one_object(file: Path) -> None:
    ran = subprocess.run(
        command("live", str(file), *short(), "--json"), capture_output=True, text=True, check=True
    )
    found = json.loads(ran.stdout)
    assert found["seeds"] == [1]
    assert found["conservation"] is True
    assert found["metrics"]["goodput"]["mean"] > 0
    assert found["live"][0]["packets"] > 100


def namespaces() -> set[str]:
    """Network namespaces that any process of this machine has a thread in or a descriptor of."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/task/[0-9]*/ns/net"):
        try:
            found.add(str(entry.readlink()))
        except OSError:
            continue
    return found


def without_rights() -> list[str]:
    """What a command has to begin with so that it may make no namespaces but through `unshare -Urn`."""
    # Root in a namespace of its own is root outside, which takes the right to make him so.
    return ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_anybody_may_in_a_user_namespace(file: Path) -> None:
    arguments = [*without_rights(), *command("live", str(file), *short(), "--json")]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["conservation"] is True
    assert found["live"][0]["packets"] > 100


def test_a_full_disk_costs_the_result_and_says_so(file: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    kept = disk / "kept"
    # 64 KiB, of which 4 are left once there is an earlier result.
    line = (
        'mount -t tmpfs -o size=64k tmpfs "$0"; mkdir "$0/kept"; echo earlier > "$0/other";'
        ' head -c 57344 /dev/zero > "$0/filler"; "$@" || code=$?; ls -A "$0" "$0/kept"; exit "$code"'
    )
    arguments = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-ec", line, str(disk)]
    ran = subprocess.run(
        [*arguments, *command("live", str(file), *short(), "--out", str(kept))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert "No space left on device" in ran.stderr
    assert str(kept) in ran.stderr
    assert "Traceback" not in ran.stderr
    # What was there before is, and nothing half-written.
    listed = ran.stdout.split()
    assert sorted(name for name in listed if not name.startswith("/")) == ["filler", "kept", "other"]


@pytest.mark.parametrize("prefix", [[], without_rights()], ids=["as-it-is", "user-namespace"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(file: Path, how: signal.Signals, prefix: list[str]) -> None:
    began = subprocess.Popen([*prefix, *command("live", str(file))], stderr=subprocess.DEVNULL)
    ours = Path(f"/proc/{began.pid}/fd")

    def made() -> set[str]:
        found = set()
        for fd in ours.iterdir():
            with suppress(FileNotFoundError):
                found.add(str(fd.readlink()))
        return {link for link in found if link.startswith("net:")}

    deadline = time.monotonic() + 30
    # A sender each and a receiver; the first alone may be the trial whether it can.
    while len(made()) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    seen = made()
    assert len(seen) > 1, "it made namespaces"
    began.send_signal(how)
    code = began.wait(timeout=60)
    assert code == (130 if how == signal.SIGINT else -how)
    assert not seen & namespaces()
