"""Tables reduced over seeds, figures made of them, and numbers as a person reads them."""

import base64
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inprofile
from inprofile.charts.plot import NoSeries, Samples, averaged, thin
from inprofile.metrics.contracts import _percent
from inprofile.metrics.quantity import bracketed, number, pm, quantity, scale
from inprofile.metrics.stats import Estimate, Interval
from inprofile.metrics.summary import Metric
from inprofile.papers.judge_text import _range
from inprofile.run import storage
from inprofile.run.results import Result
from inprofile.run.tables import units_of
from made import flow, result

SAMPLED = [
    {"seed": 1, "monitor": m, "what": w, "t": i / 10, "value": float(i)}
    for m, w in [("bottleneck", "packets"), ("bottleneck", "avg"), ("tcp.0", "cwnd"), ("tcp.0", "tokens")]
    for i in range(5000)
]
TWO = result(
    [flow(s, f"tcp.{i}", 1e5 * (i + 1) + s, start=0.1 * s) for s in (1, 2, 3) for i in (0, 1)], series=SAMPLED
)


def test_metrics_are_by_seed_with_an_interval() -> None:
    fi = TWO.summary()["fi"]
    assert fi.values == pytest.approx({1: 0.91, 2: 0.92, 3: 0.93})
    assert fi.mean == pytest.approx(0.92)
    # On the logit scale: longer towards the middle, and never above 1.
    assert str(fi) == "0.920 [0.891, 0.942]"


def test_a_seed_without_a_value_is_left_out_and_named() -> None:
    rows = [
        {"seed": s, "name": n, "unit": "1", "value": v, "point": "core", "header": "wire"}
        for s, n, v in [
            (1, "loss_in", None),
            (2, "loss_in", 0.5),
            (1, "loss_out", None),
            (2, "loss_out", math.nan),
        ]
    ]
    summary = result([flow(1, "tcp.0", 1.0), flow(2, "tcp.0", 1.0)], metrics=rows).summary()
    assert list(summary) == ["loss_in"]
    found = summary["loss_in"].to_json()
    assert (found["values"], found["seeds"], found["n"], found["ci95"]) == ([0.5], [2], 1, [None, None])


def test_an_unknown_metric_says_which_there_are() -> None:
    with pytest.raises(KeyError, match="there are: fi"):
        TWO.summary()["fairness"]


def test_rows_are_by_flow_in_the_order_of_the_experiment() -> None:
    rows = TWO.rows("flows")
    assert [row.keys["flow"] for row in rows] == ["tcp.0", "tcp.1"]
    assert rows[1].figures["throughput"].mean == pytest.approx(200_002)
    assert rows[1].given == {"contract": 250e3, "rtt": 0.03}
    found = rows[1].to_json()
    assert found["contract"] == 250e3
    assert found["throughput"]["values"] == [200_001, 200_002, 200_003]
    assert found["throughput"]["unit"] == "bit/s"
    json.dumps(found, allow_nan=False)


def test_a_thousand_flows_do_not_flood_the_screen() -> None:
    many = result([flow(1, f"tcp.{i}", 1.0) for i in range(1000)]).rows("flows")
    assert len(many) == 1000
    assert repr(many).count("\n") == 41
    assert "… 960 more" in repr(many)


def test_a_notebook_gets_tables_without_markup_from_names() -> None:
    html = result([flow(1, "<b>", 1.0)], title="<script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;" in html


def test_a_notebook_gets_a_style_and_a_picture_of_its_own() -> None:
    few = result([flow(1, f"tcp.{i}", 1.0) for i in range(24)])._repr_html_()
    assert few.count("<style>") == 1
    assert few.count('<div class="inprofile">') == 1
    drawn = base64.b64decode(few.partition("data:image/svg+xml;base64,")[2].partition('"')[0])
    assert b"throughput (Mbit/s)" in drawn
    assert "<img" not in result([flow(1, f"tcp.{i}", 1.0) for i in range(25)])._repr_html_()


def test_units_of_columns_are_those_of_the_fields() -> None:
    units = units_of(result([flow(1, "a", 1.0)]).flows)
    assert units["goodput"] == "bit/s"
    assert units["rtt"] == "s"
    assert "flow" not in units
    assert "seed" not in units


def test_pandas_and_polars_keep_the_units() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    made = result([flow(1, "a", 1.0), flow(2, "a", 2.0)])
    frame = made.to_pandas("flows")
    assert frame[frame.seed == 1].attrs["units"]["goodput"] == "bit/s"
    assert "goodput [bit/s]" in made.to_polars("flows").columns
    assert made.to_polars("flows")["rtt [s]"].to_list() == [0.03, 0.03]


@pytest.mark.parametrize(
    ("figure", "holds"),
    [
        ("queue", "average"),
        ("cwnd", "tcp.0"),
        ("tokens", "Tokens"),
        ("dots", "tcp.1"),
        ("overview", "Congestion"),
    ],
)
def test_figures_are_drawn_and_stay_below_what_a_chart_can_hold(figure: str, holds: str) -> None:
    chart = getattr(TWO.plot, figure)()
    spec = chart.to_dict()
    assert holds in json.dumps(spec)
    for data in spec["datasets"].values() if "datasets" in spec else []:
        assert len(data) <= 5000


def test_a_figure_can_be_rendered_without_a_browser() -> None:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(TWO.plot.dots("fi").to_json())
    assert svg.count("<path") > 3


def test_the_look_of_figures_is_nobody_elses() -> None:
    import altair as alt

    others = alt.Chart({"values": []}).mark_point()
    before = (alt.theme.active, others.to_dict()["config"])
    one, other = TWO.plot.dots("throughput"), TWO.plot.queue()
    beside = (one | other).resolve_scale(color="independent")
    for chart in (one, one.properties(width=300), one & other, beside):
        assert "Inter" in chart.to_dict()["config"]["font"]
    assert (alt.theme.active, others.to_dict()["config"]) == before


def test_a_notebook_shows_a_figure_without_a_network() -> None:
    shown = TWO.plot.overview()._repr_mimebundle_()
    assert sorted(shown) == ["image/svg+xml", "text/plain"]
    addresses = set(re.findall(r"https?://[^\"' )]+", shown["image/svg+xml"]))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_rates_are_drawn_with_their_contracts() -> None:
    assert '"contract"' in json.dumps(TWO.plot.dots("throughput").to_dict())
    assert '"contract"' not in json.dumps(TWO.plot.dots("fi").to_dict())


def test_columns_of_numbers_have_their_units(tmp_path: Path) -> None:
    made = inprofile.parse(inprofile.STARTER).with_(duration="21 s").run(seeds=1)
    made.write(tmp_path / "r")
    for one in (made, inprofile.read(tmp_path / "r")):
        units = {
            f.name: f.metadata[b"unit"] for f in one.flows.schema if f.metadata and b"unit" in f.metadata
        }
        assert (units["rtt"], units["contract"], units["sent_in"]) == (b"s", b"bit/s", b"packets")
        assert not {"seed", "flow", "group", "traffic"} & set(units)
        assert one.series.field("t").metadata == {b"unit": b"s"}
        assert one.queues.field("utilisation").metadata == {b"unit": b"1"}


def test_a_figure_without_samples_says_what_to_add() -> None:
    bare = result([flow(1, "tcp.0", 1.0)])
    for figure in (bare.plot.cwnd, bare.plot.queue, bare.plot.tokens, bare.plot.throughput):
        with pytest.raises(NoSeries, match=r"\[\[monitors\]\]"):
            figure()
    with pytest.raises(NoSeries, match=r"of tcp\.9"):
        TWO.plot.cwnd("tcp.9")
    with pytest.raises(KeyError, match="neither a metric"):
        TWO.plot.dots("nonsense")


def test_thinning_keeps_every_peak_and_averaging_the_mean() -> None:
    import numpy as np

    t = np.arange(10_000.0)
    v = np.sin(t)
    v[1234] = 50.0
    thinned = thin(t, v, 400)
    assert len(thinned[0]) <= 400
    assert thinned[1].max() == 50.0
    assert thinned[0][thinned[1].argmax()] == 1234.0
    assert (np.diff(thinned[0]) > 0).all()
    assert averaged(t, v, 400)[1].mean() == pytest.approx(v.mean())


def test_samples_are_of_one_seed_and_place() -> None:
    found = Samples.of(TWO.series, ("cwnd", "tokens"), ("tcp.0",), 1)
    assert found.monitors() == ["tcp.0"]
    assert found.whats() == ["cwnd", "tokens"]
    assert not Samples.of(TWO.series, ("cwnd",), None, 2)


def test_a_ratio_has_no_unit_in_text() -> None:
    assert str(Metric("fi", "1", {1: 0.5}, "x", "wire", {})) == "0.5"


def test_the_docstring_of_a_table_names_its_columns() -> None:
    found = inprofile.parse(inprofile.STARTER).with_({"duration": "5 s", "measure.from": "1 s"}).run(seeds=1)
    for name in storage.TABLES:
        told = getattr(Result, name).__doc__
        words = set(re.findall(r"`(\w+…?)`", told))
        begun = tuple(word.removesuffix("…") for word in words if word.endswith("…"))
        columns = getattr(found, name).column_names
        assert [c for c in columns if c not in words and not c.startswith(begun or "-")] == [], name


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
