"""Sizing a paper's comparisons from a pilot: what is decided how, and with which seeds."""

from __future__ import annotations

import numpy as np
import pytest

from inprofile.papers.judge import Comparison, Finding
from inprofile.studies.reproduce.pilot import SEEDS, sized

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
