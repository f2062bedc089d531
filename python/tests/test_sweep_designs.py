"""Designs of a sweep: which settings there are."""

import json
from pathlib import Path

import pytest

import inprofile
from forked import inprofile_
from inprofile import Range, SeedsError, SweepError, sweep
from inprofile.experiment.dump import written
from inprofile.studies.sweep.axes import Axis, axis_of, settings_of
from test_sweeps import BASE, RATES


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


def test_senders_by_name_are_an_axis(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(written(BASE, "short"))
    asked = ["sweep", "mine.toml", "--tcp", "cubic,bbr", "--seeds", "2", "--out", "s", "--json"]
    made = json.loads(inprofile_(*asked, cwd=tmp_path)[0])
    assert [s["names"] for s in made["settings"]] == [{"tcp": "cubic"}, {"tcp": "bbr"}]
    found = inprofile.read_sweep(tmp_path / "s")
    senders = [found.scenario(i).check().effective["flows"][0]["tcp"]["congestion"] for i in range(2)]
    assert senders == ["cubic", "bbr"]
    for wrong, said in (("cubic,cubic", "given twice"), ("vegas", 'there is no sender "vegas"')):
        asked = ["sweep", "mine.toml", "--tcp", wrong, "--out", "t"]
        assert said in inprofile_(*asked, cwd=tmp_path, code=2)[1]


def test_names_of_values_are_what_is_shown(tmp_path: Path) -> None:
    key = "links.bottleneck.queue.limit"
    named = sweep(BASE, {key: {"short": "5 packets", "long": "50 packets"}}, tmp_path / "r", seeds=2)
    bare = sweep(BASE, {key: ["5 packets", "50 packets"]}, tmp_path / "b", seeds=2)
    assert [row[0] for row in named.rows()[1]] == ["short", "long"]
    assert named.axis(key) == (["short", "long"], "")
    assert set(named.table("flows")[key].to_pylist()) == {"short", "long"}
    assert named[1].to_json()["names"] == {key: "long"}
    assert named[1].values == bare[1].values == {key: "50 packets"}
    # The runs are the same, and so is what is written of values without names.
    assert named[1].metrics == bare[1].metrics
    assert "names" not in bare.head
    assert '"long"' in str(named.plot.to_dict()).replace("'", '"')


@pytest.mark.parametrize(
    ("axes", "more", "says"),
    [
        ({}, {}, "nothing is varied"),
        ({"a": ["1", "1"]}, {}, "given twice"),
        ({"a": []}, {}, "no value"),
        ({"a": "1"}, {}, "give a list"),
        ({"seeds": [1, 2]}, {}, "seeds is no axis"),
        (RATES, {"design": "cube"}, "grid, list, lhs, sobol"),
        (RATES, {"design": "sobol"}, "--samples 64"),
        (RATES, {"samples": 3}, "for the designs lhs and sobol"),
        ({**RATES, "b": ["1"]}, {"design": "list"}, "links.bottleneck.rate has 3, b has 1"),
        ({"a": Range(1, 2)}, {}, "how many values"),
        (RATES, {"until": {"fii": 0.1}, "seeds": 20}, "did you mean fi?"),
        (RATES, {"until": {"goodput": "3 ms"}, "seeds": 20}, "has the unit bit/s"),
        (RATES, {"until": {"fi": 0}, "seeds": 20}, "write METRIC=HALF_WIDTH"),
        (RATES, {"until": {"fi": 0.1}, "seeds": 10}, "--seeds 100"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    tmp_path: Path, axes: dict[str, list[str]], more: dict[str, object], says: str
) -> None:
    with pytest.raises(SweepError) as refused:
        sweep(BASE, axes, tmp_path / "r", **more)  # type: ignore[arg-type]
    assert says in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_range_says_how_many_values_it_may_have() -> None:
    with pytest.raises(SweepError, match="give 2 to 100,000 values"):
        Range(1, 2, count=100_000_000)


def test_seeds_are_checked_as_everywhere(tmp_path: Path) -> None:
    with pytest.raises(SeedsError):
        sweep(BASE, RATES, tmp_path / "r", seeds=0)


def test_samples_are_drawn_along_every_axis(tmp_path: Path) -> None:
    axes = {"links.bottleneck.rate": Range(1, 3, "Mbit/s"), "links.bottleneck.queue.w_q": Range(0.001, 0.1)}
    found = sweep(BASE, axes, tmp_path / "r", design="lhs", samples=4, seeds=2)
    drawn = json.dumps(found.plot.to_dict())
    assert '"title": "rate (Mbit/s)"' in drawn
    assert '"title": "w_q"' in drawn
