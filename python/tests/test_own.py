"""Mechanisms written in Python: the same law gives the same bytes, and whatever is wrong is named."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

import inprofile
from inprofile import own
from inprofile.own import registry
from inprofile.run.clusters import _batch, run_batch
from inprofile.run.live import NotLive
from inprofile.run.pool import Task
from made import customers

EXAMPLES = Path(__file__).parents[2] / "docs" / "guides" / "own_mechanisms.py"

FILE = """
title    = "A mechanism of one's own"
duration = "10 s"
seeds    = 2

[[links]]
name  = "bottleneck"
from  = "edge"
to    = "core"
rate  = "2 Mbit/s"
delay = "10 ms"

[links.queue]
aqm   = "rio"
limit = "60 packets"
in    = { min_th = "30 packets", max_th = "45 packets", max_p = 0.02 }
out   = { min_th = "10 packets", max_th = "30 packets", max_p = 0.1 }
""" + customers("tcp", 3, "40 ms", start="uniform 0..1 s", marker='{ kind = "every_nth", n = 7 }')

QUEUE = "links.bottleneck.queue"


def with_marker(text: str) -> inprofile.Scenario:
    return inprofile.parse(FILE.replace('marker = { kind = "every_nth", n = 7 }', f"marker = {text}"))


def with_queue(**more: Any) -> inprofile.Scenario:
    return inprofile.parse(FILE).set(QUEUE, {"limit": "60 packets", **more})


def tables(result: inprofile.Result) -> dict[str, str]:
    return {name: repr(getattr(result, name).to_pylist()) for name in ("metrics", "flows", "drops", "queues")}


def test_the_same_law_in_python_and_in_rust_gives_the_same_tables() -> None:
    assert own.load_classes(EXAMPLES) == ["nth_out", "stale_out"]
    theirs, ours = with_marker('{ kind = "nth_out", n = 7 }').run(), inprofile.parse(FILE).run()
    assert tables(theirs) == tables(ours)
    assert sum(row["out"] for row in ours.drops.to_pylist() if "out" in row) >= 0
    found = own.cost("nth_out")
    assert found.decisions > 5_000
    assert found.cpu > 0


def test_a_discipline_decides_at_departure_and_its_figures_are_traced() -> None:
    own.load_classes(EXAMPLES)
    result = with_queue(aqm="stale_out", most="60 ms").run(seeds=1, trace=True)
    rows = [row for row in result.verdicts.to_pylist() if "sojourn" in str(row)]
    assert rows
    drops = result.summary()["drops"].mean
    assert drops > 0
    assert result.summary()["delay_mean"].mean < 0.06


def test_any_number_of_jobs_gives_the_same_bytes() -> None:
    own.load_classes(EXAMPLES)
    scenario = with_queue(aqm="stale_out")
    assert tables(scenario.run(seeds=4, jobs=1)) == tables(scenario.run(seeds=4, jobs=4))


def test_random_numbers_follow_from_the_seed_alone() -> None:
    class Coin(inprofile.Marker):
        p: float = 0.3

        def mark(self, now: float, packet: Any, rng: Any) -> str:
            return "out" if rng.random() < self.p else "in"

    inprofile.register(Coin)
    scenario = with_marker('{ kind = "coin" }')
    one, two = (tables(scenario.run(seeds=[5])) for _ in range(2))
    assert one == two
    assert one != tables(scenario.run(seeds=[6]))
    assert one != tables(with_marker('{ kind = "coin", p = 0.6 }').run(seeds=[5]))


def test_hooks_are_called_and_told_the_truth() -> None:
    seen: dict[str, Any] = {}

    class Watch(inprofile.Aqm):
        oracle: ClassVar[Literal["rtt"]] = "rtt"

        def setup(self) -> None:
            self.ticks = 0
            self.acks = 0

        def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
            seen["fits"], seen["limit"], seen["rate"] = queue.fits, self.limit, self.link_rate
            assert queue.packets == sum(queue.packets_of(c) for c in ("in", "out", "red"))
            return "accept"

        def observe(self, now: float, packet: Any, direction: str) -> None:
            self.acks += direction == "reverse"

        def tick(self, now: float, outbox: list[Any]) -> float:
            self.ticks += 1
            return now + 0.5

        def signal(self, now: float, topic: str, value: float, flow: int | None) -> None:
            seen.setdefault(topic, []).append((flow, value))

        def stats(self) -> dict[str, int]:
            seen["ticks"], seen["acks"] = self.ticks, self.acks
            return {"ticks": self.ticks}

        def gauges(self, now: float) -> dict[str, float]:
            return {"ticks": float(self.ticks)}

    inprofile.register(Watch)
    with_queue(aqm="watch").run(seeds=1)
    assert seen["ticks"] == 21  # at 0, 0.5, … 10 s
    assert seen["acks"] > 100
    assert seen["rate"] == 2e6
    assert [flow for flow, _ in seen["rtt"][-3:]] == [0, 1, 2]
    assert all(value == pytest.approx(0.04) for _, value in seen["rtt"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("None", "mark raised TypeError: returned None: return a verdict"),
        ("'green'", 'returned "green": return "in", "out", "red" or "drop"'),
        ("1 / 0", "mark raised ZeroDivisionError: division by zero"),
        ("rng.below(0)", "below(0)"),
        ("('in', {'x': 'much'})", "TypeError"),
    ],
)
def test_what_a_method_returns_or_raises_is_named(tmp_path: Path, answer: str, said: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "import inprofile\nclass Bad(inprofile.Marker):\n"
        f"    def mark(self, now, packet, rng):\n        return {answer} if now > 3 else 'in'\n"
    )
    own.load_classes(file)
    scenario = with_marker('{ kind = "bad" }')
    with pytest.raises(inprofile.MechanismError) as found:
        scenario.run(trace=True)
    text = str(found.value)
    assert text.startswith("bad: mark raised") or "bad: " in text
    assert said in text
    assert " s" in text.rsplit("at", 1)[-1]
    assert "in the run of seed 1" in found.value.__notes__
    assert found.value.__cause__ is not None


def test_a_mechanism_that_is_not_deterministic_is_found() -> None:
    class Leaky(inprofile.Marker):
        seen: ClassVar[Iterator[int]] = itertools.count()

        def mark(self, now: float, packet: Any, rng: Any) -> str:
            return "out" if (next(self.seen) // 100) % 3 else "in"

    inprofile.register(Leaky)
    with pytest.raises(inprofile.NotDeterministic, match="leaky: seed 1 gave two results"):
        with_marker('{ kind = "leaky" }').run()


def test_a_tick_that_stands_still_is_refused() -> None:
    class Still(inprofile.Aqm):
        def arrive(self, now: float, packet: Any, queue: Any, rng: Any) -> str:
            return "accept"

        def tick(self, now: float, outbox: list[Any]) -> float:
            return now

    inprofile.register(Still)
    with pytest.raises(
        inprofile.MechanismError, match="tick raised ValueError: returned 0, which is not later"
    ):
        with_queue(aqm="still").run()


def made(**body: Any) -> type:
    return type("Made", (inprofile.Marker,), {"__module__": __name__, **body})


def mark(self: Any, now: float, packet: Any, rng: Any) -> str:
    return "in"


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (int, "no class of its own"),
        (inprofile.Marker, "no class of its own"),
        (made(), "write mark, or it never decides"),
        (made(mark=lambda self, now: "in"), "Made.mark has to take self and 3 arguments"),
        (made(mark=mark, name="red"), 'there is a mechanism called "red" already'),
        (made(mark=mark, name="Réd"), "lower-case letters"),
        (made(mark=mark, arrive=mark), "never asked for arrive"),
        (made(mark=mark, sends=True), "needs a tick"),
        (made(mark=mark, oracle="future"), 'oracle "future"'),
        (made(mark=mark, n=0, __annotations__={"n": list}), "Made.n: a parameter is bool, int"),
        (made(mark=mark, n="x", __annotations__={"n": int}), "the default 'x' is not"),
        (
            made(mark=mark, n=inprofile.parameter(5, most=3), __annotations__={"n": int}),
            "the default 5 is not",
        ),
    ],
)
def test_a_class_that_cannot_be_one_is_refused(cls: type, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said.replace("(", r"\(")):
        inprofile.register(cls)


def test_parameters_are_checked_as_ours_are() -> None:
    own.load_classes(EXAMPLES)
    for text, said in [
        ('{ kind = "nth_out", n = 0 }', "n = 0"),
        ('{ kind = "nth_out", m = 3 }', "unknown key"),
        ('{ kind = "nth_aut" }', "nth_out"),
    ]:
        with pytest.raises(inprofile.ScenarioError, match=said):
            with_marker(text)
    with pytest.raises(inprofile.ScenarioError, match="most"):
        with_queue(aqm="stale_out", most="0 ms")


def test_what_setup_refuses_is_an_error_of_the_file() -> None:
    class Picky(inprofile.Marker):
        low: float = 1.0
        high: float = 2.0

        def setup(self) -> None:
            if self.low > self.high:
                raise ValueError(f"low {self.low} is above high {self.high}")

        def mark(self, now: float, packet: Any, rng: Any) -> str:
            return "in"

    inprofile.register(Picky)
    with pytest.raises(inprofile.ScenarioError, match=r"low 3\.0 is above high 2\.0"):
        with_marker('{ kind = "picky", low = 3.0 }')


def test_the_code_is_part_of_what_an_experiment_is(tmp_path: Path) -> None:
    digests = []
    for n in (2, 3):
        file = tmp_path / "mine.py"
        file.write_text(
            "import inprofile\nclass Mine(inprofile.Marker):\n    def setup(self):\n        self.k = 0\n"
            "    def mark(self, now, packet, rng):\n        self.k += 1\n"
            f"        return 'out' if self.k % {n} == 0 else 'in'\n"
        )
        own.load_classes(file)
        digests.append(with_marker('{ kind = "mine" }').canonical)
    assert digests[0] != digests[1]
    assert inprofile.parse(FILE).canonical == inprofile.parse(FILE).canonical
    assert '"own":{' in with_marker('{ kind = "mine" }').canonical
    assert '"own":{' not in inprofile.parse(FILE).canonical


def test_real_hosts_refuse_it() -> None:
    own.load_classes(EXAMPLES)
    with pytest.raises(NotLive, match="nth_out: a mechanism written in Python"):
        with_marker('{ kind = "nth_out" }').live(seeds=1)


def test_a_batch_brings_the_file_with_it() -> None:
    own.load_classes(EXAMPLES)
    scenario = with_marker('{ kind = "nth_out", n = 7 }')
    batch = _batch([Task(0, scenario, (1,), 1000.0)], ["metrics"])
    registry._REGISTERED.clear()
    assert [name for name, _ in batch.own] == ["own_mechanisms.py"]
    assert run_batch(batch)
    assert "nth_out" in own.registered()


def test_the_command_line_takes_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE.replace('"every_nth", n = 7', '"nth_out", n = 7'))
    (tmp_path / "none.py").write_text("x = 1\n")

    def command(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "inprofile", *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    ran = command("run", "mine.toml", "--mechanism", str(EXAMPLES))
    assert ran.returncode == 0, ran.stderr
    assert "nth_out, in Python: " in ran.stderr
    assert "a CPU second" in ran.stderr
    without = command("run", "mine.toml")
    assert without.returncode == 2
    assert "there is no such marker" in without.stderr
    nowhere = command("list", "--mechanism", "nowhere.py")
    assert nowhere.returncode == 2
    assert "there is no such file" in nowhere.stderr
    none = command("run", "mine.toml", "--mechanism", "none.py")
    assert none.returncode == 2
    assert "no class that derives from" in none.stderr
    listed = command("list", "nth_out", "--mechanism", str(EXAMPLES))
    assert "Every n-th data packet" in listed.stdout


def test_a_sweep_over_a_mechanism_knows_its_code(tmp_path: Path) -> None:
    own.load_classes(EXAMPLES)
    base = inprofile.parse(FILE).with_(duration="2 s")
    settings = [{"kind": "nth_out", "n": n} for n in (2, 20)]
    found = inprofile.sweep(base, {"flows.tcp.marker": settings}, tmp_path / "s", seeds=2)
    assert registry.digests(["nth_out"])["nth_out"] in (tmp_path / "s" / "sweep.json").read_text()
    assert len(found) == 2


def test_results_hold_the_code_of_a_mechanism_and_say_what_another_machine_lacks(tmp_path: Path) -> None:
    own.load_classes(EXAMPLES)
    digest = registry.digests(["nth_out"])["nth_out"]
    base = inprofile.parse(FILE).with_(duration="2 s", seeds=1)
    base = base.set("flows.tcp.marker", {"kind": "nth_out", "n": 20})
    base.run().write(tmp_path / "r")
    inprofile.sweep(base, {"flows.tcp.marker.n": [2]}, tmp_path / "s", seeds=1)
    kept, swept = inprofile.read(tmp_path / "r"), inprofile.read_sweep(tmp_path / "s")
    assert kept.provenance.sources == swept.sources
    assert [(s.file, dict(s.mechanisms)) for s in swept.sources] == [(EXAMPLES.name, {"nth_out": digest})]
    assert swept.scenario(0).own == ["nth_out"]

    registry._REGISTERED.clear()
    for again in (lambda: inprofile.Scenario.again(kept.provenance), lambda: swept.scenario(0)):
        with pytest.raises(inprofile.ResultError) as lacking:
            again()
        said = str(lacking.value)
        assert f"nth_out, a mechanism in Python, is not registered here: it was in {EXAMPLES.name}" in said
        assert f"SHA-256 {digest}\n  the result holds its text" in said

    (file,) = own.write_sources(swept.sources, tmp_path / "code")
    assert file.read_bytes() == EXAMPLES.read_bytes()
    with pytest.raises(FileExistsError):
        own.write_sources(swept.sources, tmp_path / "code")
    own.load_classes(file)
    assert swept.scenario(0).run().metrics.num_rows > 0
    assert inprofile.Scenario.again(kept.provenance).canonical == kept.provenance.experiment

    file.write_text(file.read_text() + "# another\n")
    own.load_classes(file)
    with pytest.raises(inprofile.ResultError, match="nth_out, a mechanism in Python, is other code here"):
        swept.scenario(0)


def test_a_results_name_of_a_file_leads_nowhere_else(tmp_path: Path) -> None:
    own.write_sources([own.Source("../../up.py", "x = 1\n", {"up": ""})], tmp_path / "a" / "b")
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["up.py"]
    own.write_sources([own.Source("..", "x = 1\n", {"up": ""})], tmp_path / "c")
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["session.py"]
