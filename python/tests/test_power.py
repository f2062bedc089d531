"""How many seeds a comparison needs, and how a paper's are sized from a pilot, with which seeds."""

from __future__ import annotations

import numpy as np
import pytest

from inprofile.metrics.measures import Measures
from inprofile.metrics.stats import p_above, power_of, seeds_needed
from inprofile.papers.judge import Comparison, Finding
from inprofile.papers.pairing import paired, ratios, same_seeds
from inprofile.studies.reproduce.pilot import SEEDS, sized


@pytest.mark.parametrize(("n", "effect"), [(5, 1.5), (12, 0.8), (30, 0.5)])
def test_the_power_is_how_often_the_test_shows_it(n: int, effect: float) -> None:
    draws = np.random.default_rng(26).normal(effect, 1.0, (2000, n))
    shown = np.mean([2 * p_above(row, 0.0) < 0.05 for row in draws.tolist()])
    # Binomial: at most 0.011 of standard deviation.
    assert power_of(n, effect) == pytest.approx(shown, abs=0.035)


def test_seeds_grow_as_the_effect_shrinks_and_the_power_rises() -> None:
    def pilot(effect: float) -> dict[int, float]:
        return {101 + i: effect + x for i, x in enumerate((-0.3, 0.1, 0.4, -0.2, 0.0))}

    needed = [seeds_needed(pilot(effect)) for effect in (2.0, 0.5, 0.3)]
    assert all(n is not None for n in needed)
    assert needed == sorted(needed)  # type: ignore[type-var]
    assert seeds_needed(pilot(0.3), power=0.99) > seeds_needed(pilot(0.3), power=0.5)  # type: ignore[operator]
    # A margin is what the difference has to leave behind.
    assert seeds_needed(pilot(2.0), margin=1.7) == seeds_needed(pilot(0.3))
    assert seeds_needed(pilot(0.01)) is None


def test_a_pilot_has_seeds_of_its_own() -> None:
    with pytest.raises(ValueError, match="seed 7 is one that will be judged: take seeds above 40"):
        seeds_needed({7: 1.0, 101: 2.0})
    with pytest.raises(ValueError, match="at least 2 seeds"):
        seeds_needed({101: 2.0})
    with pytest.raises(ValueError, match=r"such as 0\.9"):
        seeds_needed({101: 2.0, 102: 1.0}, power=90)


def cell(seeds: tuple[int, ...], *values: float) -> Measures:
    return Measures(seeds, {"fi": np.array(values), "twice": 2 * np.array(values)}, {})


def test_pairs_are_of_one_seed() -> None:
    a, b = cell((1, 2), 0.75, 0.5), cell((1, 2), 0.5, 0.5)
    assert paired(a, b, "fi") == [0.25, 0.0]
    assert paired(a, b, lambda m: m["twice"] + m["fi"]) == [0.75, 0.0]
    assert ratios(a, b, "fi") == [1.5, 1.0]
    assert same_seeds(a, b, a) == (1, 2)


def test_other_seeds_are_not_paired() -> None:
    other = cell((2, 3), 0.5, 0.5)
    for pair in (paired, ratios):
        with pytest.raises(
            ValueError, match="nothing to pair: one was run with seeds 1 to 2, the other with 2 to 3"
        ):
            pair(cell((1, 2), 0.75, 0.5), other, "fi")
    with pytest.raises(ValueError, match="seeds 1, 3"):
        same_seeds(cell((1, 3), 0.75, 0.5), other)
    with pytest.raises(ValueError, match="0 with some seed"):
        ratios(other, cell((2, 3), 0.0, 0.5), "fi")


SPREAD = np.array([-1.5, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.5])


def finding(*comparisons: Comparison) -> Finding:
    return Finding("X1", "setup", comparisons)


def test_the_smaller_the_effect_the_more_seeds() -> None:
    found = sized(
        [finding(*(Comparison(str(m), list(m + SPREAD), "above") for m in (3.0, 1.0, 0.01)))], SEEDS
    )
    assert [s.comparison.label for s in found] == ["3.0", "1.0", "0.01"]
    assert [s.mean for s in found] == pytest.approx([3.0, 1.0, 0.01])
    assert [s.deviation for s in found] == pytest.approx([np.std(SPREAD, ddof=1)] * 3)
    few, more, none = (s.seeds for s in found)
    assert (few is None, more is None, none is None) == (False, False, True)
    assert few < more <= 40  # type: ignore[operator]


def test_between_two_bounds_the_nearer_one_decides() -> None:
    within = Comparison("within", list(5 + SPREAD), "within", null=0.0, upper=6.0)
    above = Comparison("below 6", list(5 + SPREAD), "below", null=6.0)
    by_two, by_one = sized([finding(within, above)], SEEDS)
    assert by_two.seeds == by_one.seeds


def test_what_has_no_value_a_seed_is_left_out() -> None:
    pooled = Comparison("every run", [1.0] * 20, "above")
    blocked = Comparison("blocked", list(SPREAD), "above", obstacle="inert")
    assert sized([finding(pooled, blocked)], SEEDS) == []


def test_a_seed_that_may_be_judged_is_refused() -> None:
    assert min(SEEDS) > 40
    with pytest.raises(ValueError, match="is one that will be judged"):
        sized([finding(Comparison("x", [1.0, 2.0], "above"))], (1, 2))
