"""Statistics against values worked by hand, against scipy's own, and by their laws."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from inprofile.metrics.stats import (
    POSITIVE,
    SHARE,
    UNLIKE,
    Estimate,
    Interval,
    ci95,
    estimate,
    holm,
    jain,
    mean,
    p_above,
    p_below,
    paired,
    prediction95,
)

TEN = [4.1, 3.9, 4.4, 4.0, 4.2, 3.7, 4.3, 4.1, 4.0, 4.3]
"""Mean 4.1; squared deviations sum to 0.40, so s = √(0.4/9) = 0.2108; t(9) = 2.2622."""

reals = st.floats(-1e6, 1e6, allow_subnormal=False)


def test_the_interval_is_student_s_t_worked_by_hand() -> None:
    half = 2.2621571628 * math.sqrt(0.40 / 9) / math.sqrt(10)
    interval = ci95(TEN)
    assert interval == pytest.approx((4.1 - half, 4.1 + half), rel=1e-9)
    assert interval == pytest.approx(
        scipy_stats.t.interval(0.95, 9, loc=4.1, scale=scipy_stats.sem(TEN)), rel=1e-12
    )


def test_the_prediction_interval_is_wider_by_the_root_of_n_plus_one() -> None:
    confidence, prediction = ci95(TEN), prediction95(TEN)
    assert confidence is not None
    assert prediction is not None
    ratio = (prediction.hi - prediction.lo) / (confidence.hi - confidence.lo)
    assert ratio == pytest.approx(math.sqrt(11), rel=1e-12)


def test_a_prediction_interval_holds_the_next_value_nineteen_times_in_twenty() -> None:
    import numpy as np

    rng = np.random.default_rng(7)
    draws = rng.normal(10, 2, (4000, 6))
    hits = sum(row[5] in (prediction95(row[:5]) or ()) for row in draws.tolist())
    # Binomial with p = 0.95: standard deviation 0.0034, so 0.015 is more than four of them.
    assert hits / 4000 == pytest.approx(0.95, abs=0.015)


def test_one_value_has_a_mean_and_no_interval() -> None:
    assert estimate([3.5]) == Estimate(3.5, None, 1)
    assert estimate([3.5]).half is None
    assert prediction95([3.5]) is None


def test_of_nothing_there_is_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean([])


@given(st.lists(reals, min_size=2, max_size=40), st.randoms())
def test_the_order_of_the_seeds_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert estimate(values) == estimate(shuffled)


@given(st.lists(reals, min_size=2, max_size=40))
def test_the_mean_lies_within_its_interval(values: list[float]) -> None:
    e = estimate(values)
    assert e.ci95 is not None
    assert e.mean in e.ci95


def test_pairs_are_by_seed_and_agree_with_scipy() -> None:
    a = dict(enumerate(TEN, start=1))
    b = {seed: value + 0.1 * math.sin(seed) - 0.05 for seed, value in a.items()}
    found = paired({**a, 99: 1e9}, {**b, 77: -1e9})
    reference = scipy_stats.ttest_rel(list(a.values()), list(b.values()))
    assert found.seeds == tuple(range(1, 11))
    assert found.p == pytest.approx(reference.pvalue, rel=1e-9)
    assert found.difference.ci95 == pytest.approx(tuple(reference.confidence_interval(0.95)), rel=1e-9)


def test_pairs_need_a_seed_in_common() -> None:
    with pytest.raises(ValueError, match="same seeds"):
        paired({1: 1.0}, {2: 1.0})


def test_equal_differences_are_counted_and_no_difference_is_none() -> None:
    # Of equal differences the sign test's: two of two on one side.
    assert paired({1: 2.0, 2: 3.0}, {1: 1.0, 2: 2.0}).p == 0.5
    assert paired({1: 2.0, 2: 3.0}, {1: 2.0, 2: 3.0}).p == 1.0
    assert paired({1: 2.0}, {1: 1.0}).p is None


def test_holm_worked_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, each at least the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_holm_takes_p_values_only(p: float) -> None:
    with pytest.raises(ValueError, match="p-value"):
        holm([0.2, p])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_lowers_keeps_the_order_and_is_below_bonferroni(ps: list[float]) -> None:
    adjusted = holm(ps)
    for p, q in zip(ps, adjusted, strict=True):
        assert p <= q <= min(1.0, len(ps) * p) or math.isclose(q, len(ps) * p)
    assert [adjusted[i] for i in sorted(range(len(ps)), key=ps.__getitem__)] == sorted(adjusted)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_jain_lies_between_one_share_and_all_and_has_no_unit(xs: list[float], factor: float) -> None:
    index = jain(xs)
    assert 1 / len(xs) - 1e-12 <= index <= 1 + 1e-12
    assert jain([factor * x for x in xs]) == pytest.approx(index, rel=1e-9)


def test_jain_worked_by_hand() -> None:
    assert jain([1.0, 2.0, 3.0]) == pytest.approx(36 / (3 * 14))
    with pytest.raises(ValueError, match="zero"):
        jain([0.0, 0.0])


def test_an_interval_holds_its_ends_and_numbers_only() -> None:
    interval = Interval(1.0, 2.0)
    assert 1.0 in interval
    assert 2 in interval
    assert 2.1 not in interval
    assert math.nan not in interval
    assert "1" not in interval


def test_on_the_logit_scale_worked_by_hand() -> None:
    # Mean 0.9, s = 0.1, n = 4: ± 3.182446·0.05 / (0.9·0.1) around logit 0.9 = 2.197225.
    xs = [0.9 + 0.1 * d for d in (-0.5 * 3**0.5, 0.5 * 3**0.5, -0.5 * 3**0.5, 0.5 * 3**0.5)]
    half = 3.182446305 * 0.05 / 0.09
    lo, hi = (1 / (1 + math.exp(-(math.log(9) + sign * half))) for sign in (-1, 1))
    assert ci95(xs, SHARE) == pytest.approx((lo, hi), rel=1e-6)
    # A difference of two shares, in the middle of its bounds, has nearly Student's interval.
    apart = [0.01, 0.02, -0.01, 0.015]
    assert ci95(apart, UNLIKE) == pytest.approx(ci95(apart), abs=1e-4)


def test_an_interval_of_shares_covers_where_student_s_does_not() -> None:
    import numpy as np

    # Utilisation: skewed to the left, just below 1.
    draws = np.random.default_rng(26).beta(200, 1, (2000, 5)).tolist()
    free, bounded = (
        sum((200 / 201) in (ci95(row, b) or ()) for row in draws) for b in ((-1e9, math.inf), SHARE)
    )
    assert bounded > free + 40
    assert bounded / 2000 > 0.915


def test_equal_values_have_a_width_until_there_are_enough() -> None:
    # Five of five: a share of 1 − 0.05^(1/5) of runs may have been missed.
    assert ci95([1.0] * 5, SHARE) == pytest.approx((0.05**0.2, 1.0))
    assert ci95([1.0] * 6, SHARE) == Interval(1.0, 1.0)
    assert paired({1: 0.5, 2: 0.25}, {1: 0.5, 2: 0.25}, UNLIKE).difference.ci95 == Interval(0.0, 0.0)
    # In a share of equal values that differ by rounding alone there is no spread either.
    assert ci95([0.1 + 0.2] + [0.3] * 5, SHARE) == pytest.approx((0.3, 0.3))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_no_interval_leaves_the_bounds_or_the_mean(values: list[float]) -> None:
    for bounds in (SHARE, POSITIVE):
        interval, prediction = ci95(values, bounds), prediction95(values, bounds)
        assert interval is not None
        assert prediction is not None
        for lo, hi in (interval, prediction):
            assert bounds[0] <= lo <= mean(values) + 1e-12
            assert mean(values) - 1e-12 <= hi <= bounds[1]


@given(st.lists(st.floats(0.001, 0.999), min_size=2, max_size=20), st.floats(0.01, 0.99))
def test_the_test_is_the_one_that_the_interval_inverts(values: list[float], null: float) -> None:
    interval = ci95(values, SHARE)
    assert interval is not None
    if max(values) - min(values) > 1e-6 and min(abs(null - end) for end in interval) > 1e-9:
        p = 2 * min(p_above(values, null, SHARE), p_below(values, null, SHARE))
        assert (p >= 0.05) == (null in interval)


def test_a_value_beyond_its_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="outside 0 to 1"):
        ci95([0.9, 1.1], SHARE)
    # Rounding is not: an index of equal shares may come out a bit above 1.
    assert ci95([1.0 + 2e-16, 0.9], SHARE) is not None
