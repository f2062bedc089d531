"""Numbers as a person reads them."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inprofile.metrics.contracts import _percent
from inprofile.metrics.quantity import bracketed, number, pm, quantity, scale
from inprofile.metrics.stats import Estimate, Interval
from inprofile.papers.judge_text import _range


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "bit/s", "0 bit/s"),
        (999.0, "bit/s", "999 bit/s"),
        (1000.0, "bit/s", "1 kbit/s"),
        (1.2e6, "bit/s", "1.2 Mbit/s"),
        (-2.5e9, "bit/s", "-2.5 Gbit/s"),
        (2.5e-7, "s", "0.25 µs"),
        (12.0, "packets", "12 packets"),
        (0.5, "", "0.5"),
        (math.inf, "s", "inf s"),
    ],
)
def test_quantities(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("mean", "half", "unit", "text"),
    [
        (0.99712, 0.0013, "", "0.9971 ± 0.0013"),
        (1040e3, 12e3, "bit/s", "1.040 ± 0.012 Mbit/s"),
        (13.0, 0.0, "packets", "13 ± 0 packets"),
        (0.0, 250.0, "bit/s", "0 ± 250 bit/s"),
        (12345.0, 678.0, "packets", "12345 ± 678 packets"),
    ],
)
def test_means_have_the_decimals_their_interval_deserves(
    mean: float, half: float, unit: str, text: str
) -> None:
    assert pm(Estimate(mean, Interval(mean - half, mean + half), 9), unit) == text


def test_a_single_value_has_no_plus_minus() -> None:
    assert pm(Estimate(0.25, None, 1), "s") == "250 ms"


#: A mean and its interval as every text that brackets an interval writes them.
_BRACKETED: list[Callable[[float, Interval], str]] = [
    lambda mean, ci95: pm(Estimate(mean, ci95, 9), "bit/s"),
    lambda mean, ci95: _percent(Estimate(mean, ci95, 9)),
    lambda mean, ci95: _range(ci95, "s", mean),
    lambda mean, ci95: bracketed(mean, ci95, 1, "%", 0.01),
    lambda mean, ci95: bracketed(mean, ci95, 3),
]


@given(
    st.sampled_from(_BRACKETED),
    st.one_of(st.floats(0.99, 1), st.floats(-1e9, 1e9), st.just(0.0)),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(1e-6, 1e3),
)
def test_a_mean_is_printed_inside_its_interval(
    text_of: Callable[[float, Interval], str], mean: float, down: float, up: float, size: float
) -> None:
    text = text_of(mean, Interval(mean - down * size, mean + up * size)).replace("−", "-")
    found = re.match(r"(\S+) \[(\S+), (\S+)\]", text)
    if found is None:
        assert "±" in text or "[" not in text
        return
    printed = found.groups()
    middle, low, high = map(float, printed)
    assert low <= middle <= high, text
    assert len({len(x.partition(".")[2]) for x in printed}) == 1, text


@given(st.floats(1e-4, 1e12))
def test_four_digits_are_right(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=5e-4)


@given(st.floats(1e-6, 1e12), st.sampled_from(["bit/s", "s", "B"]))
def test_a_scale_leaves_a_number_between_one_and_a_thousand_or_has_no_better(value: float, unit: str) -> None:
    factor, name = scale(unit, value)
    shown = value / factor
    assert shown >= 1 - 1e-9 or name in ("bit/s", "µs", "B")
    assert shown < 1000 or name in ("Gbit/s", "s", "GB")
