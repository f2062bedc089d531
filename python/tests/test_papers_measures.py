"""How runs of papers A and C are measured: a queue's cycles, rates and traces by hand, and frontiers."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest

import papers_synthetic as synthetic
from inprofile.metrics.measures import Measures
from inprofile.papers.ard.measure import averaged_queue, cycle_peak, measure, placebo_rate
from inprofile.papers.judge import judge
from inprofile.papers.probe import claims
from inprofile.papers.probe.experiments import jobs
from inprofile.papers.probe.frontiers import Frontier, beyond, log_ratio
from inprofile.papers.probe.measure import load_variance
from inprofile.papers.probe.runs import Flows, ProbeRuns
from test_papers_ard import CELL, paper
from test_papers_probe import PAPER, SEEDS, SETUP, _ideal, _point


def sine(period: float, seconds: float = 100.0, every: float = 0.1) -> np.ndarray:
    return np.sin(2 * np.pi * np.arange(0, seconds, every) / period)


@pytest.mark.parametrize("period", [0.7, 2.0, 5.0, 13.7])
def test_a_sine_repeats_itself_wholly(period: float) -> None:
    assert cycle_peak(sine(period), 0.1) == pytest.approx(1.0, abs=1e-3)


def test_a_cycle_in_noise_is_weaker() -> None:
    noise = np.random.default_rng(1).standard_normal(1000)
    clear, faint = (cycle_peak(sine(5.0) + a * noise, 0.1) for a in (0.3, 1.5))
    assert clear > 0.8
    assert 0.2 < faint < clear - 0.3


def test_a_drift_has_no_cycle() -> None:
    assert cycle_peak(np.linspace(0, 1, 1000), 0.1) < 1e-6
    assert cycle_peak(np.exp(-np.arange(1000) / 300), 0.1) < 1e-6


def test_a_period_longer_than_the_lags_does_not_count() -> None:
    assert cycle_peak(sine(60.0), 0.1) == 0.0


def test_a_constant_queue_has_no_cycle() -> None:
    assert cycle_peak(np.full(1000, 7.0), 0.1) == 0.0


def test_too_short_a_series_is_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        cycle_peak(sine(2.0, seconds=10), 0.1)


def test_average_of_a_queue_without_one_is_reds() -> None:
    rng = np.random.default_rng(3)
    length, arrivals = rng.integers(0, 50, 40).astype(float), rng.integers(0, 20, 40).astype(float)
    expected, average = [], 0.0
    for q, n in zip(length, arrivals, strict=True):
        for _ in range(int(n)):
            average += 0.002 * (q - average)
        expected.append(average)
    np.testing.assert_allclose(averaged_queue(length[None, :], arrivals[None, :])[0], expected)


@pytest.mark.parametrize("order", [0, 1])
def test_measures_of_tables_made_by_hand(order: int) -> None:
    m = measure(synthetic.tables((1, 2), order=order), CELL, paper())  # type: ignore[arg-type]
    np.testing.assert_allclose(m["fastest"], [300e3, 600e3])
    np.testing.assert_allclose(m["slowest"], [100e3, 200e3])
    np.testing.assert_allclose(m["std_total"], [100e3, 200e3])
    np.testing.assert_allclose(m["std_in"], [50e3, 100e3])
    np.testing.assert_allclose(m["total_in"], [200e3, 400e3])
    np.testing.assert_allclose(m["drops_core"], [11, 22])
    np.testing.assert_allclose(m["drops_marker"], [10, 20])
    np.testing.assert_allclose(m["tokens_low"], [499 / 999, 499 / 999])
    np.testing.assert_allclose(m["lambda_in_over_tpr"], [1.0, 1.0])
    np.testing.assert_allclose(m["lambda_in_before"], [4e5, 4e5])
    np.testing.assert_allclose(m["tokens_mean"], [15.005, 15.005], atol=1e-3)
    # What it admits, not what arrives; a second with more and one with less.
    np.testing.assert_allclose(m["admitted_over_tpr"], [0.9, 0.9])
    np.testing.assert_allclose(m["admitted_std"], [1e5, 1e5])
    np.testing.assert_allclose(m["arrived_std"], [2e5, 2e5])
    # Half of the ten seconds after the start of the window are 40 kbit/s below those before it.
    np.testing.assert_allclose(m.by_flow["soon"], [[0.0, -2e4]] * 2)
    np.testing.assert_allclose(m.by_flow["early"], [[1e5, 2e5]] * 2)
    np.testing.assert_allclose(m.by_flow["throughput"], [[100e3, 300e3], [200e3, 600e3]])
    np.testing.assert_allclose(m.by_flow["in_share"], 0.75)
    np.testing.assert_allclose(m.by_flow["edge_loss"], [[0.01, 0.02]] * 2)
    # The standard deviation of a sine of amplitude s, and its period of 5 s.
    np.testing.assert_allclose(m["queue_std"], [2**-0.5, 2**0.5], rtol=1e-3)
    np.testing.assert_allclose(m["queue_cycle"], [1.0, 1.0], atol=1e-6)
    assert placebo_rate(m) == 0.015


def test_rates_are_those_of_the_wire_whatever_the_meters_count() -> None:
    made = synthetic.tables()
    made.experiment = made.experiment.replace('"with": {}', '"with": {"unmetered": 40}')
    m = measure(made, CELL, paper())  # type: ignore[arg-type]
    np.testing.assert_allclose(m["tpr"], [5.2e5, 5.2e5])
    np.testing.assert_allclose(m["lambda_in_before"], [4.16e5, 4.16e5])
    # Both in bits on the wire, where what is admitted is counted, too.
    np.testing.assert_allclose(m["admitted_over_tpr"], [0.9 / 1.04] * 2)


def test_traces_show_the_seed_fixed_beforehand() -> None:
    m = measure(synthetic.tables((1, 2, 3)), CELL, paper(2))  # type: ignore[arg-type]
    queue = m.traces["queue"]
    assert queue.t[0] == 1.0
    assert queue.t[-1] == 200.0
    # Flow tcp.1 has the shortest RTT.
    assert set(m.traces["fastest"].line) == {2e5, 1.6e5}
    high = np.abs(queue.high - 20).max()
    assert 1.5 < np.abs(queue.line - 20).max() < high < 3


def test_runs_without_series_still_have_rates() -> None:
    m = measure(synthetic.tables(with_series=False), CELL, paper())  # type: ignore[arg-type]
    assert m.traces == {}
    assert m["fi"].tolist() == [0.8, 0.8]


def test_a_missing_seed_is_an_error() -> None:
    tables = synthetic.tables((1, 2))
    tables.markers = tables.markers.slice(1)
    with pytest.raises(ValueError, match="rows for 2 seeds"):
        measure(tables, CELL, paper())  # type: ignore[arg-type]


def test_measures_survive_the_cache(tmp_path: Path) -> None:
    m = measure(synthetic.tables(), CELL, paper())  # type: ignore[arg-type]
    file = io.BytesIO()
    m.write(file)
    place = tmp_path / "cell.npz"
    place.write_bytes(file.getvalue())
    again = Measures.read(place)
    assert again is not None
    assert again.seeds == m.seeds
    for name in m.values:
        np.testing.assert_array_equal(again[name], m[name])
    np.testing.assert_array_equal(again.traces["tokens"].high, m.traces["tokens"].high)
    assert set(again.by_flow) == set(m.by_flow)
    np.testing.assert_array_equal(again.by_flow["edge_loss"], m.by_flow["edge_loss"])


def test_a_torn_cache_file_is_not_a_result(tmp_path: Path) -> None:
    file = io.BytesIO()
    measure(synthetic.tables(), CELL, paper()).write(file)  # type: ignore[arg-type]
    place = tmp_path / "cell.npz"
    place.write_bytes(file.getvalue()[:1000])
    assert Measures.read(place) is None
    assert Measures.read(tmp_path / "none.npz") is None


def _line(factor: float, low: float, high: float) -> Frontier:
    """Delay grows as exp(goodput), times `factor`; eight thresholds."""
    goodputs = np.linspace(low, high, 8)
    return Frontier.of({i + 1: _point(g, factor * math.exp(g)) for i, g in enumerate(goodputs)})


def test_frontiers_are_compared_where_both_have_a_goodput() -> None:
    ratio = log_ratio(_line(0.25, 1, 3), _line(1.0, 2, 5))
    assert ratio == pytest.approx([math.log(0.25)] * len(SEEDS))
    assert log_ratio(_line(1, 1, 2), _line(1, 3, 4)) is None
    assert log_ratio(_line(1, 1, 2), _line(1, 2.0002, 4)) is None
    lowest = log_ratio(
        Frontier.of({1: _point(1, 1), 2: _point(2, 8)}),
        Frontier.of({1: _point(1, 1), 2: _point(2, 2)}),
        at=slice(1),
    )
    assert lowest == pytest.approx([0.0] * len(SEEDS), abs=1e-9)


def test_a_frontier_that_doubles_back_is_read_by_its_goodput() -> None:
    there_and_back = Frontier.of({1: _point(1, 1), 2: _point(3, 9), 3: _point(2, 3)})
    straight = Frontier.of({1: _point(1, 1), 2: _point(2, 3), 3: _point(3, 9)})
    assert log_ratio(there_and_back, straight) == pytest.approx([0.0] * len(SEEDS), abs=1e-9)


def test_a_point_that_another_one_beats_is_left_out() -> None:
    """Less goodput at more delay: nobody would choose that threshold."""
    beaten = Frontier.of({1: _point(1, 1), 2: _point(1.5, 20), 3: _point(2, 3), 4: _point(3, 9)})
    straight = Frontier.of({1: _point(1, 1), 2: _point(2, 3), 3: _point(3, 9)})
    assert log_ratio(beaten, straight) == pytest.approx([0.0] * len(SEEDS), abs=1e-9)


def test_a_placebo_is_compared_where_it_gets_as_far() -> None:
    ours, base = _line(0.25, 1, 5), _line(1.0, 1, 5)
    short = _line(0.5, 1, 3.2)
    low, high = (beyond(ours, base, short, at) for at in (slice(0, 3), slice(7, 10)))
    assert low == pytest.approx([math.log(0.5)] * len(SEEDS), abs=1e-2)
    assert np.isnan(high).all()


def test_the_loads_variance_is_relative() -> None:
    # Means 2 and 20, variances 1 and 100.
    assert load_variance(np.array([[1.0, 3.0], [10.0, 30.0]])).tolist() == [0.25, 0.25]


def test_a_longer_bin_is_the_mean_of_its_samples() -> None:
    # Of 1, 3, 1, 3 pairs are all 2; the fifth sample fills no bin.
    arrived = np.array([[1.0, 3.0, 1.0, 3.0, 9.0], [1.0, 1.0, 3.0, 3.0, 9.0]])
    assert load_variance(arrived, 2).tolist() == [0.0, 0.25]


def test_one_seed_without_an_effect_undoes_no_ratio_of_means() -> None:
    """Nine seeds of ten in which 2A+1 cuts a quarter of the delay, and A+1 twice as much."""
    j = Flows(ProbeRuns({}, SETUP), PAPER.topologies[0])
    cut = np.array([0.25, 0.26, 0.24, 0.25, 0.27, 0.23, 0.25, 0.26, 0.24, -0.01])
    one, two = (list(np.log1p(-k * cut)) for k in (2, 1))
    found = claims._doubled(j, one, two, 1.5, 2.5)
    assert found.obstacle is None
    assert found.values == pytest.approx([2.0] * 10)
    two[0] = math.nan
    assert len(claims._doubled(j, one, two, 1.5, 2.5).values) == 9


def test_a_seed_without_a_common_goodput_is_left_out_and_told() -> None:
    j = Flows(ProbeRuns({}, SETUP), PAPER.topologies[0])
    some = j.compare("delay", [-0.5, math.nan, -0.4, -0.6], "below")
    assert (some.label, list(some.values)) == (
        "delay (in 3 of 4 seeds; in the others frontiers share nothing)",
        [-0.5, -0.4, -0.6],
    )
    few = j.compare("delay", [-0.5, math.nan, math.nan, -0.6], "below")
    assert few.obstacle == "the two frontiers have a goodput or delay in common in 2 of 4 seeds"
    assert not few.measured


@pytest.mark.parametrize("bins", ["one", "five"])
def test_the_bins_of_the_load_are_a_reading_of_c10_alone(bins: str) -> None:
    """A world in which the load's variance falls in bins of half a round trip and rises in these."""
    cells = {job.cell: _ideal(job.cell) for batch in jobs(PAPER) for job in batch}
    cells = {
        c: Measures(m.seeds, {**m.values, f"load_variance:{bins}": 1.0 / m["load_variance:half"]}, {})
        for c, m in cells.items()
    }
    [plain] = [j for j in judge(claims.findings(PAPER, cells)) if (j.setup, j.claim) == (SETUP, "C10")]
    [under] = [j for j in judge(claims.findings(PAPER, cells, f"bin-{bins}")) if j.setup == SETUP]
    # Eight equal values: they hold, and not after Holm's correction over all claims.
    assert (plain.count("holds"), len(plain.comparisons)) == (2, 2)
    assert (under.claim, under.verdict.value) == ("C10", "opposite")
