"""The drawn experiments of `make validate`: what they are, and what is told of one that differs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from inprofile import parse
from inprofile.studies.validate import ns2_script
from stand_in import put_ns

VALIDATION = Path(__file__).parents[2] / "validation"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, VALIDATION / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[name] = found
    spec.loader.exec_module(found)
    return found


drawn = module("drawn")
random_runs = module("random_runs")


def test_each_is_read_and_ns2_has_words_for_it() -> None:
    queues, traits = set(), set()
    for seed in range(1, 201):
        found = drawn.draw(seed)
        assert ns2_script(parse(found.text)).count("$ns run") == 1
        queues.add(found.queue)
        traits.update(found.traits)
    assert queues == set(drawn.QUEUES)
    assert {"CBR", "transfers", "stop", "datagrams at drawn times", "6 to 12 hops", "SACK"} <= traits


def test_a_seed_is_an_experiment() -> None:
    assert drawn.draw(7).text == drawn.draw(7).text != drawn.draw(8).text


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("echo '+ 0 0 1 tcp 40 ------- 0 0.0 1.0 0 0' > $2", "different from event"),
        # Only dsRED's own division is an explanation, and here is none.
        ("kill -FPE $$", "ended by signal 8"),
    ],
)
def test_what_differs_is_kept_with_its_seed(
    program: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_ns(tmp_path, monkeypatch, program)
    monkeypatch.setattr(random_runs, "ROOT", tmp_path)
    monkeypatch.setattr(random_runs, "DIVERGED", tmp_path / "diverged")
    seed = next(seed for seed in range(1, 100) if drawn.draw(seed).queue == "drop_tail")
    outcome = random_runs.run(seed)
    assert outcome.word == random_runs.OPEN
    assert why in outcome.why
    kept = tmp_path / "diverged" / f"drawn-{seed}.toml"
    assert kept.read_text(encoding="utf-8") == drawn.draw(seed).text
    told = random_runs.told(outcome)
    assert told.startswith(f"seed {seed} (drop-tail): ")
    assert told.endswith(f"again: inprofile validate diverged/drawn-{seed}.toml --seed 1")
    tally = random_runs.Tally(seed, (outcome,))
    assert not tally.accounted
    assert tally.to_json()["diverged"][0]["seed"] == seed
    assert "| **all** | 1 | 0 | 0 | 0 | 0 | 1 |" in random_runs.table(tally.to_json())
