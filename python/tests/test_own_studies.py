"""Suites and comparisons with mechanisms of one's own, and with any sender by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile import own
from inprofile.cli import app
from inprofile.experiment.mechanisms import UnknownSenderError, all_senders
from inprofile.own import registry
from inprofile.studies.compare.own import TuneError, own_scheme
from inprofile.studies.compare.run import plan as comparison
from inprofile.studies.suite import UnknownTcpError, contestants
from inprofile.studies.suite import plan as suite

EXAMPLES = Path(__file__).parents[2] / "docs" / "guides" / "own_mechanisms.py"


def test_a_suite_takes_mechanisms_of_ones_own_at_their_defaults() -> None:
    own.load_classes(EXAMPLES)
    made = suite(aqms=["codel"], scenarios=["mild", "targets", "tcp-friendly"], own=["stale_out", "nth_out"])
    assert [c.id for c in made.contestants] == ["drop-tail", "codel", "stale_out", "nth_out"]
    queue = {
        (c.contestant, c.scenario, c.variant): s.check().effective["links"][0]["queue"]
        for c, s in made.work.items()
    }
    assert queue["stale_out", "mild", ""]["aqm"] == "stale_out"
    assert queue["nth_out", "mild", ""]["aqm"] == "rio"
    # RFC 7928 §4.3.1 turns the one parameter that tune names.
    found = [queue["stale_out", "targets", v]["most"] for v in ("0.25", "1", "4")]
    assert found == ["25 ms", "100 ms", "400 ms"]
    mine = next(c for c in made.contestants if c.id == "stale_out")
    assert (mine.control, mine.decides, mine.has_ecn) == ("most", "departure", False)
    # Others do not see it.
    assert "stale_out" not in {c.id for c in contestants()}


def test_a_class_that_lacks_a_default_is_refused_by_a_suite() -> None:
    class Needy(inprofile.Aqm):
        most: float

        def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
            return "accept"

    inprofile.register(Needy)
    with pytest.raises(ValueError, match=r"needy: most has no default.*write most = parameter"):
        suite(scenarios=["mild"], own=["needy"])


@pytest.mark.parametrize("sender", all_senders(), ids=lambda s: s.id)
def test_standard_senders_may_be_any(sender: Any) -> None:
    made = suite(aqms=["drop-tail"], scenarios=["mild"], tcp=sender.id)
    (scenario,) = made.work.values()
    (tcp,) = {g["tcp"]["congestion"] for g in scenario.check().effective["flows"] if g["tcp"]}
    assert tcp == sender.tcp["congestion"]


def test_an_unknown_sender_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnknownTcpError, match=r"newreno .*bbr \(BBR version 3\)"):
        suite(scenarios=["mild"], tcp="bbr9")
    with pytest.raises(UnknownSenderError, match='did you mean "bbr"'):
        comparison(tcps=["bbr9"])


def test_a_comparison_of_ones_own_with_named_senders_and_seeds(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(inprofile.STARTER)
    made = comparison([file], schemes=["red"], tcps=["cubic", "linux", "bbr"], seeds=10)
    assert [(s.id, s.seeds) for s in made.studies] == [("mine-linux", 10), ("mine-bbr", 10)]
    found = [s.scenario.check().effective["flows"][0]["tcp"]["congestion"] for s in made.studies]
    assert found == ["cubic", "bbr"]


def test_of_a_time_t_is_a_time_and_of_a_count_it_is_refused() -> None:
    def made(kind: Any, default: float, tune: str) -> Any:
        class Timed(inprofile.Aqm):
            most: kind = inprofile.parameter(default)

            def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
                return "accept"

        Timed.__annotations__ = {"most": kind}
        Timed.tune = {"most": tune}
        name = inprofile.register(Timed)
        return own_scheme(next(m for m in inprofile.mechanisms() if m.name == name), Timed)

    for text in ("1/2 T", "1/2 T as time"):
        assert made(own.Duration, 0.05, text).queue["most"] == "1/2 T as time"
    with pytest.raises(TuneError, match=r"is no range: write one such as"):
        made(int, 5, "1 T")


def test_both_commands_take_mechanisms_and_senders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registry._REGISTERED.clear()  # as in a process of its own: other tests' modules may have some
    (tmp_path / "mine.toml").write_text(inprofile.STARTER)
    mine = ["--mechanism", str(EXAMPLES), "--plan", "--json"]
    asked = ["suite", "rfc7928", "--aqm", "red,codel,pie", "--tcp", "bbr", "--scenario", "mild", *mine]
    made = json.loads(CliRunner().invoke(app, asked).stdout)
    assert made["contestants"] == ["drop-tail", "red", "codel", "pie", "nth_out", "stale_out"]
    assert made["tcp"] == "bbr"
    asked = ["compare", "mine.toml", "--schemes", "red", "--tcp", "cubic,bbr", "--seeds", "10", *mine]
    made = json.loads(CliRunner().invoke(app, asked).stdout)
    assert made["studies"] == ["mine-linux", "mine-bbr"]
    assert made["schemes"] == ["red", "nth_out", "stale_out"]


def test_what_is_no_scheme_or_no_file_of_mechanisms_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(inprofile.STARTER)
    wheel = tmp_path / "mine-0.1-py3-none-any.whl"
    wheel.write_bytes(b"")
    asked = ["compare", str(tmp_path / "mine.toml")]
    for more, said in (
        (["--mechanism", str(wheel)], "a wheel is installed (pip install mine-0.1-py3-none-any.whl)"),
        (["--schemes", "pi2"], 'a scheme of yours in a file may have it: queue = { aqm = "pi2" }'),
        (["--seeds", "2..3"], "a comparison takes a number of seeds"),
        (["--tcp", "vegas"], 'there is no sender "vegas"'),
    ):
        done = CliRunner().invoke(app, [*asked, *more])
        assert said in " ".join(f"{done.output} {done.exception}".split()), more
