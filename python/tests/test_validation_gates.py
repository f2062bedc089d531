"""`make validate`: its drawn experiments, what alone may differ from ns-2, and the bounds of closed loops."""

from dataclasses import replace
from pathlib import Path

import drawn
import explained
import loops
import pytest
import random_runs

from inprofile import parse
from inprofile.metrics.stats import Interval
from inprofile.studies.validate import ns2_script
from inprofile.studies.validate.distribution import Distribution, Figure
from stand_in import put_ns


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


def found(apart: set[str], beyond: set[str]) -> Distribution:
    """A comparison in which these distributions are distinguishable, and these means beyond their margins."""
    names = ("fi", "lambda_in", "lambda_out", "throughput", "drops")
    figures = tuple(
        Figure(
            name,
            (1.0, 2.0),
            (1.0, 2.0),
            0.1,
            0.0,
            Interval(0.0, 0.0),
            1.0 if name in beyond else 0.0,
            0.0 if name in apart else 1.0,
        )
        for name in names
    )
    return Distribution("x", "x.toml", 2, figures)


@pytest.mark.parametrize(
    ("apart", "beyond", "passes"),
    [
        ({"throughput", "drops"}, set(), True),
        # A mean beyond its margin is explained by nothing, whatever its distribution.
        ({"throughput", "drops"}, {"fi"}, False),
        ({"throughput", "drops"}, {"drops"}, False),
        # No other figure may be distinguishable, and an explanation of what is alike is out of date.
        ({"throughput", "drops", "fi"}, set(), False),
        ({"drops"}, set(), False),
        (set(), set(), False),
    ],
)
def test_an_explanation_allows_what_it_names_alone(
    apart: set[str], beyond: set[str], *, passes: bool
) -> None:
    explanation = explained.EXPLAINED["paper-a-rio"]
    reason = explained.Reason("", holds=True)
    assert explained.accounted(found(apart, beyond), explanation, reason) is passes
    assert not explained.accounted(found(apart, beyond), explanation, replace(reason, holds=False))


@pytest.mark.parametrize(("apart", "beyond"), [(set(), set()), ({"fi"}, set()), (set(), {"fi"})])
def test_without_an_explanation_all_is_equivalent(apart: set[str], beyond: set[str]) -> None:
    assert explained.accounted(found(apart, beyond), None, None) is (not apart and not beyond)


@pytest.mark.parametrize(
    ("congestion", "ours", "beyond"),
    [
        ("cubic", (0.951, 121.0, 9.1), []),
        # What a threshold above the window just left came to.
        ("cubic", (0.722, 4844.0, 13.9), ["utilisation", "drops"]),
        ("cubic", (0.93, 131.0, 20.0), ["queue_mean"]),
        ("cubic", (0.93, 0.0, 9.0), ["drops"]),
        # Without SACK ns-3's drops and queue are no measure.
        ("reno", (0.93, 4844.0, 20.0), []),
        ("reno", (0.8, 131.0, 9.0), ["utilisation"]),
    ],
)
def test_what_is_beyond_the_bounds(
    congestion: str, ours: tuple[float, float, float], beyond: list[str]
) -> None:
    row = loops.Row("red", "rfc", congestion, loops.Figures(*ours), loops.Figures(0.929, 131.0, 8.9))
    assert row.beyond == beyond
    found = loops.Found((row,), "3.44")
    assert found.agrees is not bool(beyond)
    assert all(name in found.section() for name in beyond)


def test_what_cannot_be_had_is_said() -> None:
    assert "not compared this time: g++ is missing." in loops.Found(missing="g++ is missing").section()
