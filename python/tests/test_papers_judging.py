"""The rules by which claims are judged, on samples made by hand."""

from __future__ import annotations

import pytest

from inprofile.judge import Comparison, Finding, Number, Verdict, judge

UP = [1.0, 1.2, 0.9, 1.1, 1.0, 1.05]
NOISE = [0.4, -0.5, 0.1, -0.2, 0.3, -0.1]
ZERO = [0.0] * 6


def comparison(values: list[float], side: str = "above", **options: object) -> Comparison:
    return Comparison("ours above theirs", values, side, **options)  # type: ignore[arg-type]


def number(paper: float, values: list[float] = UP, **options: object) -> Number:
    return Number("ours", values, paper, "Table 1", **options)  # type: ignore[arg-type]


def verdict(*comparisons: Comparison, numbers: list[Number] | None = None) -> Verdict:
    return judge([Finding("A1", "here", comparisons, numbers or [])])[0].verdict


def test_direction_and_number_is_reproduced() -> None:
    assert verdict(comparison(UP), numbers=[number(1.1)]) == Verdict.REPRODUCED


def test_direction_without_a_printed_number_is_reproduced() -> None:
    assert verdict(comparison(UP)) == Verdict.REPRODUCED


def test_direction_alone_is_in_part() -> None:
    judged = judge([Finding("A1", "here", [comparison(UP)], [number(1.1), number(2.0)])])[0]
    assert judged.verdict == Verdict.IN_PART
    assert [n.inside for n in judged.numbers] == [True, False]
    assert "not one our runs give: ours 2, ours [0.7" in judged.why


def test_the_opposite_is_not_reproduced_and_said() -> None:
    judged = judge([Finding("A1", "here", [comparison(UP, "below")], [number(1.1)])])[0]
    assert judged.verdict == Verdict.NOT_REPRODUCED
    assert judged.comparisons[0].opposite
    assert "the opposite is shown" in judged.why


def test_no_difference_is_not_reproduced_and_not_called_the_opposite() -> None:
    judged = judge([Finding("A1", "here", [comparison(NOISE)])])[0]
    assert judged.verdict == Verdict.NOT_REPRODUCED
    assert not judged.comparisons[0].opposite
    assert "not shown" in judged.why


def test_one_comparison_that_fails_outweighs_the_others() -> None:
    judged = judge([Finding("A1", "here", [comparison(UP), comparison(NOISE)])])[0]
    assert judged.verdict == Verdict.NOT_REPRODUCED
    assert [c.outcome for c in judged.comparisons] == ["holds", "fails"]
    assert "Holds: ours above theirs: 1.042" in judged.why


def test_an_obstacle_makes_no_difference_undecidable() -> None:
    judged = judge(
        [Finding("A1", "here", [comparison(UP), comparison(ZERO, obstacle="the queue is empty")])]
    )[0]
    assert judged.verdict == Verdict.UNDECIDABLE
    assert "the queue is empty" in judged.why


def test_an_obstacle_hides_no_clear_result() -> None:
    assert verdict(comparison(UP, obstacle="so they say")) == Verdict.REPRODUCED
    assert verdict(comparison(UP, "below", obstacle="so they say")) == Verdict.NOT_REPRODUCED


def test_what_fails_elsewhere_is_not_excused_by_an_obstacle_here() -> None:
    assert verdict(comparison(NOISE), comparison(ZERO, obstacle="empty")) == Verdict.NOT_REPRODUCED


def test_null_is_what_a_ratio_has_to_beat() -> None:
    ratio = [0.98, 0.985, 0.979, 0.981, 0.983, 0.98]
    assert verdict(comparison(ratio, null=0.97)) == Verdict.REPRODUCED
    assert verdict(comparison(ratio, null=1.0)) == Verdict.NOT_REPRODUCED


def test_holm_runs_over_all_findings() -> None:
    # p near 0.02 alone; with nine more of the same kind it would need p < 0.005.
    weak = [1.0, 2.0, -0.1, 1.4, 0.6, 0.8]
    alone = judge([Finding("A1", "here", [comparison(weak)])])[0]
    assert 0.01 < alone.comparisons[0].p < 0.05
    assert alone.verdict == Verdict.REPRODUCED
    crowd = judge([Finding(f"A{i}", "here", [comparison(weak)]) for i in range(10)])
    assert {j.verdict for j in crowd} == {Verdict.NOT_REPRODUCED}
    assert "not shown after Holm, " in crowd[0].why
    assert crowd[0].comparisons[0].p_holm == pytest.approx(min(1.0, 10 * alone.comparisons[0].p))


def test_differences_that_never_vary() -> None:
    same = judge([Finding("A1", "here", [comparison(ZERO)])])[0].comparisons[0]
    assert (same.p, same.outcome) == (1.0, "fails")
    always = judge([Finding("A1", "here", [comparison([0.5] * 4)])])[0].comparisons[0]
    assert (always.p, always.outcome) == (0.0, "holds")


def test_a_prediction_ends_where_values_do() -> None:
    indices = [0.99, 1.0, 0.98, 0.995]
    judged = judge([Finding("A1", "here", [comparison(UP)], [number(1.004, indices, bounds=(0.0, 1.0))])])[0]
    assert judged.numbers[0].prediction.hi == 1.0
    assert judged.verdict == Verdict.IN_PART


def test_the_summary_counts() -> None:
    judged = judge(
        [
            Finding(
                "A1",
                "here",
                [comparison(UP), comparison(UP, "below"), comparison(ZERO, obstacle="empty")],
                [number(1.1), number(9.0)],
                ["The link is idle."],
            )
        ]
    )[0]
    assert judged.summary == (
        "1 of 3 comparisons as claimed, 1 the other way round, 1 not decidable here; "
        "1 of 2 printed numbers in our prediction intervals."
    )
    assert judged.why.startswith(f"{judged.summary} The link is idle. Does not hold: ")


def test_values_that_never_differ_are_called_so() -> None:
    judged = judge([Finding("A1", "here", [comparison(ZERO, unit="bit/s")])])[0]
    assert "ours above theirs: the same in every seed." in judged.why


def test_rates_are_written_with_their_unit() -> None:
    judged = judge(
        [Finding("A6", "here", [comparison([-4e3, -5e3, -6e3], "below", unit="bit/s", topology="4 flows")])]
    )
    assert "ours above theirs (4 flows): −5.000 [−7.484, −2.516] kbit/s" in judged[0].why


@pytest.mark.parametrize("values", [[1.0], [], [1.0, float("nan")]])
def test_samples_that_cannot_be_judged_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="interval"):
        judge([Finding("A1", "here", [comparison(values)])])


def test_a_finding_without_comparisons_is_refused() -> None:
    with pytest.raises(ValueError, match="says why it has none"):
        judge([Finding("A1", "here", [])])


def test_within_two_bounds_by_two_one_sided_tests() -> None:
    def verdict(values: list[float]) -> str:
        compared = Comparison("ratio", values, "within", null=0.9, upper=1.1)
        return str(judge([Finding("C6", "s", [compared])])[0].verdict)

    assert verdict([0.99, 1.0, 1.01, 1.0]) == "reproduced"
    # In the middle, but far too scattered to say so; and shown to lie outside.
    assert verdict([0.5, 1.5, 0.6, 1.4]) == "not_reproduced"
    assert verdict([1.2, 1.21, 1.19, 1.2]) == "not_reproduced"
    # One-sided at 5 %: t = 3.0 with 3 degrees of freedom is p = 0.029 below the upper bound.
    values = [1.1 - 0.01 * (3.0 / 2 + d) for d in (-(1.5**0.5), 0.0, 0.0, 1.5**0.5)]
    judged = judge([Finding("C6", "s", [Comparison("r", values, "within", null=0.0, upper=1.1)])])[0]
    assert judged.comparisons[0].p == pytest.approx(0.0288, abs=2e-4)


def test_neither_side_shown_can_answer_in_part() -> None:
    def verdict(values: list[float], **kind: bool) -> str:
        compared = Comparison("slope", values, "below", **kind)
        return str(judge([Finding("B2", "s", [compared])])[0].verdict)

    unclear = [-1.0, 1.0, -0.5, 0.6]
    assert verdict(unclear, partial=True) == "in_part"
    assert verdict(unclear) == "not_reproduced"
    assert verdict([1.0, 1.1, 0.9], partial=True) == "not_reproduced"
    assert verdict([-1.0, -1.1, -0.9], partial=True) == "reproduced"


def test_a_set_up_that_cannot_decide_says_why_and_compares_nothing() -> None:
    judged = judge([Finding("E6", "s", [], obstacle="there is no such queue here")])[0]
    assert (judged.verdict, judged.summary) == ("undecidable", "there is no such queue here")
    with pytest.raises(ValueError, match="says why it has none"):
        judge([Finding("E6", "s", [])])
