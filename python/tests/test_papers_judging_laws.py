"""Laws of the rules by which claims are judged, on any samples; how many seeds a comparison needs.

Paper A's scenario files against ns-2 2.35: rates and fairness its runs of the same set-ups had. Ranges are
those over ns-2's own seeds, means of ours have to lie in them. λ is taken over the first 100 s, as it was
there; the fairness index over the second.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inprofile
from inprofile import papers
from inprofile.metrics.measures import Measures
from inprofile.metrics.stats import SHARE, UNLIKE, p_above, power_of, seeds_needed
from inprofile.papers.claim import Comparison, Finding, Verdict, paired, ratios, same_seeds
from inprofile.papers.judge import judge
from inprofile.studies.reproduce.pilot import SEEDS, sized
from papers_synthetic import (
    HOLDS,
    NOISE,
    OPEN,
    OPPOSITE,
    UP,
    comparison,
    least,
    number,
    one,
    outcome,
    several,
    verdict,
)

samples = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=2, max_size=12)


def made_up(random: Random) -> Comparison:
    side = random.choice(["above", "below", "within"])
    null = random.choice([-0.5, 0.0, 0.5])
    # Around 0, well away from it, or one value only.
    centre, spread = random.choice([(0.0, 1.0), (0.4, 0.5), (-1.2, 0.4), (1.2, 0.4), (0.0, 0.0), (1.0, 0.0)])
    values = [round(random.gauss(centre, spread), 3) for _ in range(random.randint(2, 12))]
    obstacle = random.choice([None, None, "idle"])
    upper = null + 1.0 if side == "within" else math.inf
    return Comparison(random.choice("abcdefgh"), values, side, null, obstacle=obstacle, upper=upper)  # type: ignore[arg-type]


def made_up_claims(seed: int) -> list[list[Comparison]]:
    random = Random(seed)  # noqa: S311 (no secret)
    return [[made_up(random) for _ in range(random.randint(1, 5))] for _ in range(random.randint(1, 4))]


#: A claim's comparisons; the comparisons of several claims.
comparisons = st.integers(0, 2**32).map(lambda seed: made_up(Random(seed)))  # noqa: S311 (no secret)
claims = st.integers(0, 2**32).map(made_up_claims)
single = st.integers(0, 2**32).map(lambda seed: made_up_claims(seed)[0])


def findings(made: list[list[Comparison]]) -> list[Finding]:
    return [Finding(f"A{i}", "here", found) for i, found in enumerate(made)]


@given(claims, st.randoms())
def test_order_does_not_matter(made: list[list[Comparison]], random: Random) -> None:
    shuffled = [random.sample(found, len(found)) for found in made]
    order = random.sample(range(len(made)), len(made))
    plain = judge(findings(made))
    mixed = judge([findings(shuffled)[i] for i in order])
    for i, judged in zip(order, mixed, strict=True):
        assert judged.verdict == plain[i].verdict


@given(claims, st.floats(-5, 5), samples)
def test_a_printed_number_never_changes_a_verdict(
    made: list[list[Comparison]], paper: float, values: list[float]
) -> None:
    with_number = [Finding(f.claim, f.setup, f.comparisons, [number(paper, values)]) for f in findings(made)]
    assert [j.verdict for j in judge(with_number)] == [j.verdict for j in judge(findings(made))]


@given(samples, st.sampled_from([-0.5, 0.0, 0.5]))
def test_the_mirror_image_turns_opposite_into_holds(values: list[float], null: float) -> None:
    outcomes = {"holds": "opposite", "opposite": "holds", "open": "open"}
    plain, other = one(comparison(values, "above", null=null)), one(comparison(values, "below", null=null))
    mirror = one(comparison([-x for x in values], "above", null=-null))
    assert outcomes[plain.comparisons[0].outcome] == other.comparisons[0].outcome
    assert other.comparisons[0].outcome == mirror.comparisons[0].outcome


@given(samples, st.sampled_from(["above", "below"]), st.sampled_from([-0.5, 0.0, 0.5]))
def test_a_comparison_holds_where_the_interval_leaves_the_null(
    values: list[float], side: str, null: float
) -> None:
    judged = one(comparison(values, side, null=null)).comparisons[0]
    if len(set(values)) > 1 and min(abs(null - end) for end in judged.interval) > 1e-9:
        inside = null in judged.interval
        on_side = (judged.mean > null) == (side == "above")
        assert judged.outcome == ("open" if inside else "holds" if on_side else "opposite")


@given(samples, st.sampled_from(["above", "below"]), st.floats(0, 2).map(lambda x: round(x, 3)))
def test_every_outcome_is_read_off_the_interval(values: list[float], side: str, size: float) -> None:
    """One level for all: 95 %, two-sided."""
    if len(set(values)) == 1:
        return
    judged = one(comparison(values, side, effect=least(size))).comparisons[0]
    lo, hi = judged.interval
    if min(abs(abs(end) - size) for end in (lo, hi)) < 1e-9:
        return
    up, down = lo > size, hi < -size
    expected = (
        "no_effect"
        if -size < lo and hi < size
        else "holds"
        if (up if side == "above" else down)
        else "opposite"
        if (up or down)
        else "open"
    )
    assert judged.outcome == expected
    inside = one(comparison(values, "within", null=-size - 1e-3, upper=size)).comparisons[0]
    if abs(lo + size + 1e-3) > 1e-9:
        assert (inside.outcome == "holds") == (-size - 1e-3 < lo and hi < size)


@given(single)
def test_a_duplicate_never_changes_a_verdict(made: list[Comparison]) -> None:
    assert one(*made, *made).verdict == one(*made).verdict


@given(claims, comparisons)
def test_one_more_claim_never_makes_another_better(made: list[list[Comparison]], more: Comparison) -> None:
    order = list(Verdict)
    plain = judge(findings(made))
    crowd = judge([*findings(made), Finding("B", "here", [more])])
    for before, after in zip(plain, crowd, strict=False):
        assert after.p_holm >= before.p_holm - 1e-12
        assert order.index(after.verdict) >= order.index(before.verdict)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_an_interval_of_a_share_stays_inside_and_around_the_mean(values: list[float]) -> None:
    judged = one(comparison(values, null=0.5, bounds=SHARE)).comparisons[0]
    assert 0.0 <= judged.interval.lo <= judged.mean <= judged.interval.hi <= 1.0


@given(st.floats(-3, 3), st.floats(-3, 3), samples)
def test_whether_a_number_counts_does_not_hang_on_the_paper(
    one_value: float, another: float, rival: list[float]
) -> None:
    counted = [one(HOLDS, numbers=[number(x, rival=rival)]).counted for x in (one_value, another)]
    assert counted[0] == counted[1]


sizes = st.floats(0, 4).map(lambda x: round(x, 3))
sides = st.sampled_from(["above", "below"])


@given(single)
def test_effects_of_no_size_leave_the_words_as_they_are(made: list[Comparison]) -> None:
    without = one(*made)
    same = one(*(c if c.side == "within" else replace(c, effect=least(0.0)) for c in made))
    assert same.verdict == without.verdict is not Verdict.NO_EFFECT
    assert [c.outcome for c in same.comparisons] == [c.outcome for c in without.comparisons]


@given(samples, sides, sizes, sizes)
def test_a_larger_effect_asked_for_is_no_easier(values: list[float], side: str, a: float, b: float) -> None:
    less, more = (outcome(values, side, effect=least(x)) for x in sorted((a, b)))
    assert more in {"holds": ("holds", "open", "no_effect"), "opposite": ("opposite", "open", "no_effect"),
                    "open": ("open", "no_effect"), "no_effect": ("no_effect",)}[less]  # fmt: skip


@given(samples, sizes, st.floats(0, 5).map(lambda x: round(x, 3)))
def test_a_larger_effect_measured_is_no_worse(values: list[float], size: float, by: float) -> None:
    order = ["opposite", "open", "no_effect", "holds"]
    before, after = (outcome([x + d for x in values], effect=least(size)) for d in (0.0, by))
    if before in ("opposite", "holds"):
        assert order.index(after) >= order.index(before)
    assert after != "opposite" or before == "opposite"


@given(samples, sides, sizes)
def test_what_holds_is_never_without_effect(values: list[float], side: str, size: float) -> None:
    judged = one(comparison(values, side, effect=least(size))).comparisons[0]
    inside = -size < judged.interval.lo and judged.interval.hi < size
    assert not (inside and judged.p < 0.05)
    assert (judged.outcome == "no_effect") <= inside
    assert (judged.outcome == "holds") <= (abs(judged.mean) > size)


@given(samples, sides, sizes, st.sampled_from([1e-3, 0.5, 8.0, 1e6]))
def test_the_unit_does_not_matter(values: list[float], side: str, size: float, unit: float) -> None:
    scaled = outcome([x * unit for x in values], side, effect=least(size * unit))
    # At the limit itself rounding decides.
    judged = one(comparison(values, side, effect=least(size))).comparisons[0]
    ends = [abs(abs(end) - size) for end in judged.interval]
    if min(ends) > 1e-6 and min(abs(judged.p - 0.05), abs(judged.p_opposite - 0.05)) > 1e-6:
        assert scaled == judged.outcome


@given(st.lists(samples, min_size=1, max_size=4), sides, sizes)
def test_a_placebo_equal_to_the_scheme_never_gives_reproduced(
    made: list[list[float]], side: str, size: float
) -> None:
    compared = [
        Comparison(str(i), x, side, effect=least(size), placebos={"blind": [0.0] * len(x)})  # type: ignore[arg-type]
        for i, x in enumerate(made)
    ]
    assert one(*compared).verdict not in (Verdict.REPRODUCED, Verdict.MOSTLY)


PAIRED = 12
FIRST = {"measure.from": "0 s", "measure.to": "100 s", "monitors": []}


def metric(result: inprofile.Result, name: str) -> np.ndarray:
    table = result.metrics.to_pylist()
    return np.array([row["value"] for row in table if row["name"] == name])


def load(file: str) -> inprofile.Scenario:
    return inprofile.load(papers.load("ard").folder / file)


@pytest.mark.parametrize(
    ("depth", "low", "high", "spread"),
    # Extremes over ten seeds of ns-2 lie about 3.1 standard deviations apart.
    [("1 packets", 300, 314, 4.5), ("2 packets", 451, 473, 7.1), ("3 packets", 589, 603, 4.5)],
)
def test_four_flows_as_described(depth: str, low: float, high: float, spread: float) -> None:
    scenario = load("four-flows.toml").with_({"flows.tcp.marker.depth": depth})
    rate = metric(scenario.with_(FIRST).run(PAIRED), "lambda_in") / 1e3
    assert low <= rate.mean() <= high
    assert spread / 2 <= rate.std(ddof=1) <= spread * 2
    fairness = metric(scenario.with_({"monitors": []}).run(PAIRED), "fi")
    assert 0.992 <= fairness.mean() <= 1.0


def test_four_flows_with_a_tail_drop_edge() -> None:
    scenario = load("four-flows-tail-drop-edge.toml")
    first = scenario.with_(FIRST).run(PAIRED)
    assert 490e3 <= metric(first, "lambda_in").mean() <= 540e3
    assert 511e3 <= metric(first, "lambda_out").mean() <= 559e3
    fairness = metric(scenario.with_({"monitors": []}).run(PAIRED), "fi")
    assert 0.768 <= fairness.mean() <= 0.867
    # Two states of the phase effect, and nothing between them.
    assert all(abs(fairness - 0.77) + abs(fairness - 0.866) < 0.12)
    assert {bool(x) for x in fairness > 0.82} == {True, False}


def test_twenty_flows_with_a_tail_drop_edge() -> None:
    scenario = load("twenty-flows-tail-drop-edge.toml").with_({"measure.at": "bottleneck", "monitors": []})
    first = scenario.with_(FIRST).run(4)
    assert 1612e3 <= metric(first, "lambda_in").mean() <= 1643e3
    assert 4110e3 <= metric(first, "lambda_out").mean() <= 4141e3


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


def test_no_p_is_larger_than_one() -> None:
    for side in ("above", "below"):
        for values in ([0.5] * 3, [0.0] * 3, UP, NOISE):
            judged = one(comparison(values, side)).comparisons[0]
            assert 0 <= judged.p <= 1 >= judged.p_opposite >= 0


def test_no_effect_is_not_shown_by_two_seeds_that_happen_to_agree() -> None:
    for n, expected in ((2, "open"), (5, "open"), (6, "no_effect")):
        for value in (0.0, 0.01):
            judged = one(comparison([value] * n, effect=least(0.5), bounds=UNLIKE)).comparisons[0]
            assert judged.outcome == expected


def test_a_printed_number_that_cannot_tell_is_not_counted_match_or_miss() -> None:
    tells, silent = number(1.1, rival=[5.0, 5.1]), number(1.1, rival=[1.0, 1.1])
    missed, wrong = number(2.0, rival=[1.0, 1.1]), number(2.0, rival=[5.0, 5.1])
    judged = one(HOLDS, numbers=[tells, silent, missed, wrong])
    assert [n.inside for n in judged.numbers] == [True, False, False, False]
    assert (judged.inside, judged.counted) == (1, 2)
    assert (
        "1 of 2 printed numbers in our prediction intervals; 2 printed numbers not counted, match or miss."
        in judged.summary
    )
    assert (
        "the scheme that it is compared with, 1.05, lies in ours too, which cannot tell the two apart"
        in judged.why
    )


def test_a_placebo_never_makes_a_verdict_better() -> None:
    weak = comparison([1.0, 2.0, -0.1, 1.4, 0.6, 0.8])
    same = replace(weak, placebos={"blind": NOISE})
    assert verdict(weak, *several(OPEN, 4)) == verdict(same, *several(OPEN, 4)) == Verdict.NOT_SHOWN
    against = several(OPPOSITE, 4)
    assert verdict(weak, *against) == verdict(same, *against) == Verdict.OPPOSITE
