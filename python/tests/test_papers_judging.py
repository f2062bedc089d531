"""The rules by which claims are judged, on samples made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from inprofile.metrics.stats import SHARE, UNLIKE
from inprofile.papers.claim import Comparison, Effect, Finding, Judged, Room, Verdict
from inprofile.papers.judge import judge
from papers_synthetic import (
    HOLDS,
    MORE,
    NOISE,
    OPEN,
    OPPOSITE,
    STUCK,
    UP,
    ZERO,
    comparison,
    least,
    number,
    one,
    outcome,
    several,
    verdict,
)


@pytest.mark.parametrize(
    ("holds", "opposite", "still_open", "stuck", "expected"),
    [
        (3, 0, 0, 0, "reproduced"),
        (2, 0, 1, 0, "mostly"),
        (2, 0, 0, 1, "mostly"),
        (3, 0, 2, 0, "in_part"),
        (8, 1, 0, 0, "mixed"),
        (1, 8, 0, 0, "mixed"),
        (1, 0, 1, 0, "in_part"),
        (0, 0, 3, 0, "not_shown"),
        (0, 0, 1, 2, "not_shown"),
        (0, 1, 2, 0, "opposite"),
        (0, 1, 0, 2, "opposite"),
        (0, 0, 0, 2, "undecidable"),
    ],
)
def test_the_verdict_is_what_the_comparisons_add_up_to(
    holds: int, opposite: int, still_open: int, stuck: int, expected: str
) -> None:
    made = [
        *several(HOLDS, holds),
        *several(OPPOSITE, opposite),
        *several(OPEN, still_open),
        *several(STUCK, stuck),
    ]
    judged = one(*made)
    assert judged.verdict.value == expected
    counts = [judged.count(o) for o in ("holds", "opposite", "open", "undecidable")]  # type: ignore[arg-type]
    assert counts == [holds, opposite, still_open, stuck]


def test_printed_numbers_are_counted_and_change_nothing() -> None:
    judged = one(HOLDS, numbers=[number(1.1), number(2.0)])
    assert judged.verdict == Verdict.REPRODUCED
    assert [n.inside for n in judged.numbers] == [True, False]
    assert judged.inside == 1
    assert "outside our 95 % prediction interval: ours 2, ours [0.7" in judged.why


def test_a_claim_is_an_intersection_without_correction_inside() -> None:
    # p near 0.02 alone; ten such comparisons of one claim are each judged at 95 %.
    weak = [1.0, 2.0, -0.1, 1.4, 0.6, 0.8]
    many = [Comparison(f"{i}", [x + 1e-6 * i for x in weak], "above") for i in range(10)]
    judged = one(*many)
    assert judged.verdict == Verdict.REPRODUCED
    assert 0.01 < judged.p < 0.05
    assert judged.p == judged.p_holm == max(c.p for c in judged.comparisons)


def test_holm_runs_over_the_claims_of_a_set_up() -> None:
    weak = comparison([1.0, 2.0, -0.1, 1.4, 0.6, 0.8])
    alone = one(weak)
    crowd = judge([Finding(f"A{i}", "here", [weak]) for i in range(10)])
    # What no longer holds is open: of one comparison nothing is left, of three most.
    assert {j.verdict for j in crowd} == {Verdict.NOT_SHOWN}
    three = [weak, *several(HOLDS, 2)]
    many = judge([Finding(f"A{i}", "here", three) for i in range(10)])
    assert {j.verdict for j in many} == {Verdict.MOSTLY}
    assert "of them no longer does (p = 0.023, after Holm 0.23): mostly." in many[0].why
    half = judge(
        [Finding(f"A{i}", "here", [weak, comparison(weak.values, null=-0.01), HOLDS]) for i in range(10)]
    )
    assert {j.verdict for j in half} == {Verdict.IN_PART}
    assert alone.because == ""
    assert {j.because for j in (*crowd, *many, *half)} == {"correction"}
    assert crowd[0].p_holm == pytest.approx(min(1.0, 10 * alone.p))
    assert "among 10 claims the weakest of them no longer does" in crowd[0].why
    # In ten set-ups it is one claim of each.
    apart = judge([Finding("A1", f"set-up {i}", [weak]) for i in range(10)])
    assert {j.verdict for j in apart} == {Verdict.REPRODUCED}


def test_a_claim_that_compares_nothing_is_not_in_the_family() -> None:
    weak = comparison([1.0, 2.0, -0.1, 1.4, 0.6, 0.8])
    judged = judge(
        [Finding("A1", "s", [weak]), *(Finding(f"B{i}", "s", [], obstacle="no") for i in range(9))]
    )
    assert judged[0].verdict == Verdict.REPRODUCED
    assert judged[0].p_holm == judged[0].p


def test_the_same_comparison_counts_once() -> None:
    judged = one(HOLDS, HOLDS, comparison(UP, null=0.5), OPEN)
    assert (judged.duplicates, len(judged.comparisons)) == (1, 3)
    assert judged.summary.startswith("2 of 3 comparisons hold, 1 open")
    # All differences of a mechanism that never acts are 0: by that alone they are not the same comparison.
    idle = [Comparison(label, ZERO, "above", obstacle="idle") for label in ("index", "spread", "index")]
    judged = one(*idle)
    assert (judged.duplicates, len(judged.comparisons)) == (1, 2)


def test_the_opposite_is_said() -> None:
    judged = one(OPPOSITE)
    assert judged.verdict == Verdict.OPPOSITE
    assert judged.summary == "0 of 1 comparison holds, 1 significantly opposite."
    assert "Significantly opposite: ours above theirs: 1.042" in judged.why


def test_a_claim_of_many_comparisons_is_opposite_only_after_holm() -> None:
    # Two-sided p of 0.02 on the other side: opposite alone, and not among five that show nothing.
    weak = comparison([-1.0, -2.0, 0.1, -1.4, -0.6, -0.8])
    assert 0.01 < one(weak).comparisons[0].p_opposite < 0.05
    assert verdict(weak) == Verdict.OPPOSITE
    judged = one(weak, *several(OPEN, 4))
    assert (judged.verdict, judged.count("opposite")) == (Verdict.NOT_SHOWN, 1)
    assert "significantly opposite after Holm's correction over the claim's 5: not shown." in judged.why
    # A clear one stays, however many stand beside it.
    assert verdict(OPPOSITE, *several(OPEN, 30)) == Verdict.OPPOSITE


def test_claims_about_nothing_are_rarely_called_opposite() -> None:
    random = Random(1)  # noqa: S311 (no secret)
    found = [
        judge(
            [
                Finding(
                    "A1",
                    "here",
                    [Comparison(str(i), [random.gauss(0, 1) for _ in range(6)], "above") for i in range(10)],
                )
            ]
        )[0]
        for _ in range(200)
    ]
    silent = [j for j in found if not j.count("holds")]
    assert len(silent) > 100
    # Without the correction 22 % were; 2.5 % is what it allows on one side.
    assert sum(j.verdict == Verdict.OPPOSITE for j in silent) <= 0.06 * len(silent)
    assert sum(j.count("opposite") > 0 for j in silent) > 0.15 * len(silent)


def test_an_obstacle_hides_no_clear_result() -> None:
    assert verdict(comparison(UP, obstacle="so they say")) == Verdict.REPRODUCED
    assert verdict(comparison(UP, "below", obstacle="so they say")) == Verdict.OPPOSITE
    assert verdict(comparison(NOISE, obstacle="so they say")) == Verdict.UNDECIDABLE


def test_what_was_not_measured_shows_nothing() -> None:
    """What stands in a sample's place may lie between two bounds, or beyond one."""
    blank = {"obstacle": "nothing is dropped there", "measured": False}
    for made in (
        comparison([1.0] * 6, "within", null=0.9, upper=1.1, **blank),
        comparison([1.0] * 6, "above", **blank),
    ):
        [found] = one(made).comparisons
        assert (found.outcome, found.why) == ("undecidable", "nothing is dropped there")
    assert verdict(comparison([1.0] * 6, "within", null=0.9, upper=1.1, **blank)) is Verdict.UNDECIDABLE


def test_null_is_what_a_ratio_has_to_beat() -> None:
    ratio = [0.98, 0.985, 0.979, 0.981, 0.983, 0.98]
    assert verdict(comparison(ratio, null=0.97)) == Verdict.REPRODUCED
    assert verdict(comparison(ratio, null=1.0)) == Verdict.OPPOSITE


def test_differences_that_never_vary() -> None:
    same = one(comparison([0.0, 0.0, 0.0], bounds=UNLIKE)).comparisons[0]
    # Equal seeds gave equal runs: this zero is exact.
    assert (same.p, same.outcome, same.interval) == (1.0, "open", (0.0, 0.0))
    # By the sign test, twice a half to the power of the seeds: six are needed.
    five, six = (one(comparison([0.5] * n)).comparisons[0] for n in (5, 6))
    assert (five.p, five.outcome) == (2 * 0.5**5, "open")
    assert (six.p, six.outcome) == (2 * 0.5**6, "holds")


def test_bounded_measures_have_bounded_intervals() -> None:
    shares = [0.999, 0.9999, 1.0, 0.95, 0.998, 1.0]
    free = one(comparison(shares, null=0.9)).comparisons[0]
    bounded = one(comparison(shares, null=0.9, bounds=SHARE)).comparisons[0]
    assert free.interval.hi > 1.0 > bounded.interval.hi
    assert bounded.interval.lo < bounded.mean < bounded.interval.hi
    # The test is the one that the interval inverts.
    edge = one(comparison(shares, null=bounded.interval.lo, bounds=SHARE)).comparisons[0]
    assert edge.p == pytest.approx(0.05, abs=1e-9)
    with pytest.raises(ValueError, match="cannot leave 0 to 1"):
        one(comparison(shares, null=1.0, bounds=SHARE))
    with pytest.raises(ValueError, match="outside 0 to 1"):
        one(comparison([0.9, 1.1], bounds=SHARE, null=0.5))


def test_a_prediction_ends_where_values_do() -> None:
    indices = [0.99, 1.0, 0.98, 0.995]
    judged = one(HOLDS, numbers=[number(1.004, indices, bounds=SHARE)])
    assert judged.numbers[0].prediction.hi == 1.0
    assert not judged.numbers[0].inside


def test_the_summary_counts() -> None:
    made = Finding(
        "A1", "here", [HOLDS, OPPOSITE, STUCK, OPEN], [number(1.1), number(9.0)], ["The link is idle."]
    )
    judged = judge([made])[0]
    assert judged.summary == (
        "1 of 4 comparisons holds, 1 significantly opposite, 1 open, 1 undecidable in this set-up; "
        "1 of 2 printed numbers in our prediction intervals."
    )
    assert judged.why.startswith(f"{judged.summary} The link is idle. Significantly opposite: ")
    assert "Cannot be decided: ours above theirs: the same in every seed; the queue is empty." in judged.why


def test_values_that_never_differ_are_called_so() -> None:
    assert "ours above theirs: the same in every seed." in one(comparison(ZERO, unit="bit/s")).why
    assert "ours above theirs: 1 in all 6 seeds." in one(comparison([1.0] * 6)).why


def test_rates_are_written_with_their_unit() -> None:
    judged = one(comparison([-4e3, -5e3, -6e3], "below", unit="bit/s", topology="4 flows"))
    assert "ours above theirs (4 flows): −5.000 [−7.484, −2.516] kbit/s" in judged.why


@pytest.mark.parametrize("values", [[1.0], [], [1.0, float("nan")]])
def test_samples_that_cannot_be_judged_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="interval"):
        one(comparison(values))


def test_a_bound_that_values_cannot_pass_is_none() -> None:
    shares = [0.99, 0.98, 0.97, 0.99, 0.98, 0.975]
    above = one(Comparison("share", shares, "above", null=0.95, bounds=SHARE))
    within = one(Comparison("share", shares, "within", null=0.95, upper=1.0, bounds=SHARE))
    assert within.verdict is above.verdict is Verdict.REPRODUCED
    assert within.p == pytest.approx(above.p)
    assert (
        one(Comparison("share", shares, "within", null=0.0, upper=0.95, bounds=SHARE)).verdict == "opposite"
    )


def test_what_is_not_passable_is_no_crash() -> None:
    """From 0.985 to the end of a share is less than the least effect: nothing can hold, harm still can."""
    shares = [0.99, 0.98, 0.97, 0.99, 0.98, 0.975]

    def found(values: list[float], side: str, null: float) -> Judged:
        effect = Effect(0.02, "two in a hundred")
        return one(comparison(values, side, null=null, bounds=SHARE, effect=effect))

    judged = found(shares, "above", 0.985)
    assert (judged.verdict, judged.p) == ("undecidable", 1.0)
    assert "from 0.985 to 1, where the measure ends, is no more than the 0.02 from which on" in judged.why
    assert found([0.6, 0.62, 0.61, 0.6, 0.63, 0.6], "above", 0.985).verdict == "opposite"
    assert found(shares, "below", 0.985).verdict == "no_effect"
    assert found([1 - x for x in shares], "below", 0.015).verdict == "undecidable"


def test_within_two_bounds_the_interval_lies_between_them() -> None:
    def found(values: list[float]) -> str:
        return str(verdict(Comparison("ratio", values, "within", null=0.9, upper=1.1)))

    assert found([0.99, 1.0, 1.01, 1.0]) == "reproduced"
    # In the middle, but far too scattered to say so; and shown to lie outside.
    assert found([0.5, 1.5, 0.6, 1.4]) == "not_shown"
    assert found([1.2, 1.21, 1.19, 1.2]) == "opposite"
    # t = 3.0 with 3 degrees of freedom: enough for a one-sided test at 5 %, not for the interval.
    values = [1.1 - 0.01 * (3.0 / 2 + d) for d in (-(1.5**0.5), 0.0, 0.0, 1.5**0.5)]
    judged = one(Comparison("r", values, "within", null=0.0, upper=1.1))
    assert judged.comparisons[0].p == pytest.approx(0.0577, abs=4e-4)
    assert judged.comparisons[0].outcome == "open"


def test_a_set_up_that_cannot_decide_says_why_and_compares_nothing() -> None:
    judged = judge([Finding("E6", "s", [], obstacle="there is no such queue here")])[0]
    assert (judged.verdict, judged.summary) == ("undecidable", "there is no such queue here")
    with pytest.raises(ValueError, match="says why it has none"):
        judge([Finding("E6", "s", [])])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (comparison([0.1, 0.2], "within", null=-1.0, upper=2.0, bounds=SHARE), "cannot leave 0 to 1"),
        (comparison([0.1, math.nan]), "not all finite"),
        (comparison([0.1]), "an interval needs at least 2 seeds"),
    ],
)
def test_a_sample_that_shows_nothing_is_refused_by_its_claim_and_label(bad: Comparison, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        one(bad)
    assert str(caught.value).startswith(f"claim A1 (here): {bad.label}")


# The smallest effect worth the name.

WORTH = Effect(0.5, "half a packet")


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        (0.5, "above", "holds"),
        (0.5, "below", "opposite"),
        # [0.94, 1.15]: neither beyond 1 nor within it; and within 1.5.
        (1.0, "above", "open"),
        (1.0, "below", "open"),
        (1.5, "above", "no_effect"),
        (1.5, "below", "no_effect"),
    ],
)
def test_an_effect_has_a_size(size: float, side: str, expected: str) -> None:
    assert outcome(UP, side, effect=least(size)) == expected


def test_a_claim_without_effect_says_so_and_why() -> None:
    judged = one(comparison(NOISE, effect=least(2.0)), comparison(UP, effect=least(9.0)))
    assert judged.verdict is Verdict.NO_EFFECT
    assert judged.verdict.words == "no effect"
    assert not judged.verdict.sound
    assert judged.summary == "0 of 2 comparisons hold, 2 without effect."
    assert (
        "No effect: smaller than what is worth the name, on either side: ours above theirs: 0" in judged.why
    )
    assert "claimed above 0 by 9 or more" in judged.why
    # What cannot be decided does not count; what is open does.
    assert verdict(comparison(NOISE, effect=least(2.0)), STUCK) == Verdict.NO_EFFECT
    assert verdict(comparison(NOISE, effect=least(2.0)), OPEN) == Verdict.NOT_SHOWN


def test_two_thirds_are_not_mostly_where_the_rest_is_without_effect() -> None:
    rest = comparison(NOISE, effect=least(2.0))
    assert verdict(*several(HOLDS, 2), OPEN) == Verdict.MOSTLY
    assert verdict(*several(HOLDS, 2), rest) == Verdict.IN_PART


def test_bounds_are_margins_of_their_own() -> None:
    for options in ({"effect": WORTH}, {"room": Room(UP, "")}, {"placebos": {"blind": UP}}):
        with pytest.raises(ValueError, match="within two bounds there is no smallest effect"):
            one(comparison(UP, "within", upper=2.0, **options))
    with pytest.raises(ValueError, match="a distance, not -1"):
        one(comparison(UP, effect=least(-1.0)))


def test_without_an_ailment_there_is_nothing_to_cure() -> None:
    left = Room([0.004] * 6, "from RIO's index to 1 there are")
    small = [0.001, 0.002, 0.0, 0.001, 0.0, 0.002]
    judged = one(comparison(small, effect=least(0.01), room=left))
    assert judged.verdict is Verdict.UNDECIDABLE
    assert (
        "from RIO's index to 1 there are 0.004, less than the 0.01 from which on a difference counts"
        in judged.why
    )
    # With room there is an answer; and harm is one without.
    assert verdict(comparison(small, effect=least(0.01), room=Room([0.2] * 6, ""))) == Verdict.NO_EFFECT
    assert verdict(comparison(UP, "below", effect=least(0.01), room=left)) == Verdict.OPPOSITE


def test_some_hold_means_some_hold_after_holm() -> None:
    weak = comparison([1.0, 2.0, -0.1, 1.4, 0.6, 0.8])
    assert verdict(weak, OPEN) == Verdict.IN_PART
    # p of 0.02 among five.
    judged = one(weak, *several(OPEN, 4))
    assert (judged.verdict, judged.count("holds")) == (Verdict.NOT_SHOWN, 1)
    assert "No comparison holds after Holm's correction over the claim's 5: not shown." in judged.why
    assert verdict(HOLDS, *several(OPEN, 30)) == Verdict.IN_PART


def test_claims_about_nothing_are_rarely_called_in_part() -> None:
    random = Random(2)  # noqa: S311 (no secret)

    def drawn(i: int) -> Comparison:
        return Comparison(str(i), [random.gauss(0, 1) for _ in range(6)], "above")

    found = [one(*(drawn(i) for i in range(10))) for _ in range(200)]
    # Without the correction 22 % were.
    assert sum(j.count("holds") > 0 for j in found) > 0.15 * len(found)
    assert sum(j.verdict in (Verdict.IN_PART, Verdict.MOSTLY) for j in found) <= 0.06 * len(found)


CLOSE = [0.1, -0.05, 0.02, -0.03, 0.04, 0.0]


def test_where_a_placebo_does_as_well_it_is_in_part_at_most() -> None:
    worse, same = {"blind": UP}, {"no ledger": CLOSE}
    big = comparison(MORE, effect=WORTH, placebos=worse)
    assert verdict(big) == Verdict.REPRODUCED
    assert one(big).because == ""
    # Shown to be no worse by half a packet: one such placebo is enough.
    for others in (same, {**worse, **same}, {**same, "open": [3 * x for x in NOISE]}):
        judged = one(replace(big, placebos=others))
        assert judged.because == "placebo"
        assert (judged.verdict, judged.count("holds")) == (Verdict.IN_PART, 1)
        assert (
            "A placebo is shown to do as well as the scheme, so at most in part: no ledger (in 1 of the 1"
            in judged.why
        )
    # It takes nothing from what does not hold.
    assert verdict(comparison(UP, "below", placebos=same)) == Verdict.OPPOSITE
    assert verdict(comparison(NOISE, placebos=same)) == Verdict.NOT_SHOWN


def test_a_lead_over_a_placebo_has_a_size_too() -> None:
    """Significant, but below what counts: as good. Neither shown: not told apart, and undecidable."""
    wide = [3 * x for x in NOISE]
    small = [0.1, 0.12, 0.09, 0.11, 0.1, 0.105]
    for placebo, expected in ((small, "in_part"), (wide, "undecidable"), (UP, "reproduced")):
        judged = one(comparison(MORE, effect=WORTH, placebos={"blind": placebo}))
        assert judged.verdict.value == expected
    judged = one(comparison(MORE, effect=WORTH, placebos={"blind": wide}))
    assert "not told apart from blind by the 0.5 that count" in judged.why
    below = comparison([-x for x in MORE], "below", effect=WORTH, placebos={"blind": [-x for x in UP]})
    assert verdict(below) == Verdict.REPRODUCED
    # Beside two that are the scheme's own doing it is one that cannot be decided.
    assert verdict(*several(HOLDS, 2), comparison(MORE, effect=WORTH, placebos={"b": wide})) == "mostly"
