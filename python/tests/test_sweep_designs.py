"""Designs of a sweep: which settings there are."""

import pytest

from inprofile import SweepError
from inprofile.studies.sweep.axes import Axis, axis_of, settings_of


def test_a_grid_has_all_with_all_and_a_list_first_with_first() -> None:
    axes = [axis_of("a=1,2", "grid"), axis_of("b=x,y", "grid")]
    assert settings_of(axes, "grid", None) == [("1", "x"), ("1", "y"), ("2", "x"), ("2", "y")]
    assert settings_of(axes, "list", None) == [("1", "x"), ("2", "y")]


def test_samples_fill_the_box_evenly_and_are_the_same_each_time() -> None:
    for design in ("lhs", "sobol"):
        axes = [axis_of("a=2..10 Mbit/s", design), axis_of("b=1..1000 log", design), axis_of("c=x,y", design)]
        made = settings_of(axes, design, 64)
        assert made == settings_of(axes, design, 64)
        assert len(made) == 64
        a = [float(s[0].removesuffix(" Mbit/s")) for s in made]
        b = [float(s[1]) for s in made]
        for share in (0.25, 0.5, 0.75):
            assert sum(x < 2 + 8 * share for x in a) == pytest.approx(64 * share, abs=1)
            assert sum(x < 1000**share for x in b) == pytest.approx(64 * share, abs=1)
        assert [s[2] for s in made].count("x") == pytest.approx(32, abs=1)


def test_more_sobol_samples_begin_with_the_fewer() -> None:
    axes = [axis_of("a=0..1", "sobol"), axis_of("b=0..1", "sobol")]
    assert settings_of(axes, "sobol", 48)[:16] == settings_of(axes, "sobol", 16)


def test_whole_ranges_give_each_number_its_share() -> None:
    [axis] = [axis_of("n=1..4 whole", "lhs")]
    made = [axis.at(i / 400) for i in range(400)]
    assert {n: made.count(n) for n in "1234"} == dict.fromkeys("1234", 100)


def test_a_range_of_round_trips_is_one_value_of_a_grid() -> None:
    assert axis_of("flows.a.rtt=20..40 ms,40..80 ms", "grid").listed() == ("20..40 ms", "40..80 ms")
    assert axis_of("flows.a.rtt=20..40 ms", "grid").listed() == ("20..40 ms",)


@pytest.mark.parametrize("wrong", ["a=3..1 in 3", "a=0..1 log in 3", "a=0.5..2 whole in 2", "a=1..2 in 1"])
def test_ranges_that_are_none(wrong: str) -> None:
    with pytest.raises(SweepError):
        axis_of(wrong, "grid")


def test_values_may_have_names() -> None:
    axis = axis_of('q=red:{ aqm = "red", a = 1 }, my own (2):{ aqm = "pie" }', "grid")
    assert axis.names == ("red", "my own (2)")
    assert axis.values == ('{ aqm = "red", a = 1 }', '{ aqm = "pie" }')
    from_python = Axis.of("q", {"red": {"aqm": "red"}, "b": "4 ms"})
    assert from_python.names == ("red", "b")
    assert from_python.values == ('{"aqm" = "red"}', "4 ms")
    # A quoted value has no name, whatever is in it.
    assert axis_of('q="a:b","c:d"', "grid").names == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("q=red:1,red:2", 'the name "red" is used twice'),
        ("q=red:1,2", "2 has no name, and others have one"),
        ("q=red:1,pie:1", "1 is given twice"),
    ],
)
def test_names_that_do_not_fit_are_refused(wrong: str, said: str) -> None:
    with pytest.raises(SweepError, match=said):
        axis_of(wrong, "grid")


def test_a_name_from_python_is_one() -> None:
    with pytest.raises(SweepError, match='"a:b" cannot be a name'):
        Axis.of("q", {"a:b": 1})
