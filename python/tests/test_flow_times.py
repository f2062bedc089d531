"""Delays, and completion and start-up times of groups of flows: whose they are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from inprofile import Result, load, read
from inprofile.cli import app
from inprofile.metrics.stats import POSITIVE, estimate
from inprofile.metrics.times import Delays, FlowTimes
from made import flow, result

EXPERIMENT = """
title    = "Short flows beside long ones"
duration = "12 s"
measure  = { from = "2 s", to = "9 s", at = "bottleneck", distributions = DISTRIBUTIONS }

[[links]]
name  = "bottleneck"
from  = "R1"
to    = "R2"
rate  = "2 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "30 packets" }
"""
GROUP = """
[[flows]]
name    = "NAME"
from    = "H*"
join    = { node = "R1", rate = "10 Mbit/s" }
to      = "R2"
rtt     = "20 ms"
"""
SHORT = """
count   = 30
stop    = "8 s"
start   = { first = "500 ms", every = "300 ms", arrivals = "poisson" }
traffic = { kind = "transfer", size = "10 packets" }
"""
DRAWN = """
count   = 10
start   = { first = "500 ms", every = "1 s", arrivals = "poisson" }
traffic = { kind = "transfer", size = "100 packets", sizes = "pareto" }
"""


def transfer(seed: int, name: str, start: float, completed: float | None, **more: Any) -> dict[str, Any]:
    startup = None if completed is None else 0.5
    about = {"traffic": "transfer", "size": 1460.0, "startup": startup}
    return flow(seed, name, 1e5, **{"start": start, "completed": completed, **about, **more})


def times(rows: list[dict[str, Any]], startup: bool = True) -> FlowTimes:
    seeds = sorted({row["seed"] for row in rows})
    # A seed has 64 bits; from Python's numbers Arrow would make them signed.
    of = [np.array([row["seed"] for row in rows], dtype=np.uint64)]
    of += [[row[name] for row in rows] for name in list(rows[0])[1:]]
    return FlowTimes(pa.table(of, names=list(rows[0])), seeds, (100.0, 200.0), startup)


def test_figures_are_those_of_the_definition() -> None:
    rows = [transfer(1, f"short.{i}", 110.0, 111.0 + i) for i in range(10)]
    rows += [transfer(2, f"short.{i}", 110.0, 112.0 + 2 * i) for i in range(10)]
    found = times(rows)
    assert [(row.measure, row.group, row.size) for row in found] == [
        ("completion", "short", 1460.0),
        ("startup", "short", 1460.0),
    ]
    # The times are 1 to 10 s, and twice that; of ten, the ninth is the 90th percentile, the last the 99th.
    assert found[0].values == {
        "count": {1: 10, 2: 10},
        "unfinished": {1: 0, 2: 0},
        "mean": {1: 5.5, 2: 11.0},
        "p50": {1: 5.0, 2: 10.0},
        "p90": {1: 9.0, 2: 18.0},
        "p99": {1: 10.0, 2: 20.0},
    }
    # Student's interval of two values, t(1; 0.975) = 12.706, cut at 0.
    mean = found[0]["mean"]
    assert mean is not None
    assert mean.ci95 is not None
    assert (mean.mean, mean.ci95.lo) == (8.25, 0.0)
    assert mean.ci95.hi == pytest.approx(8.25 + 12.7062 * 2.75, rel=1e-5)
    startup = found.find("startup", "short")
    assert startup is not None
    assert startup.values["p99"] == {1: 0.5, 2: 0.5}


def test_a_flow_counts_where_it_gets_there_within_the_window() -> None:
    rows = [
        transfer(1, "short.0", 90.0, 99.999),  # before it
        transfer(1, "short.1", 90.0, 100.0),  # at its start, which belongs to it
        transfer(1, "short.2", 150.0, 199.999),
        transfer(1, "short.3", 150.0, 200.0),  # at its end, which does not
        transfer(1, "short.4", 150.0, None),
        transfer(1, "short.5", 200.0, None),  # begins after it
        transfer(1, "short.6", 150.0, None, sent=0),  # was to begin after it was to stop
        transfer(1, "short.7", 120.0, None, startup=80.0),
    ]
    completion, startup = times(rows)
    assert (completion.times[1].tolist(), completion.unfinished) == (
        [pytest.approx(10.0), pytest.approx(49.999)],
        {1: 3},
    )
    # Data left at 90.5 s in the first two, and at 200 s in the last.
    assert (startup.times[1].tolist(), startup.unfinished) == ([0.5, 0.5], {1: 2})


def test_a_seed_in_which_no_flow_gets_there_has_counts_and_no_times() -> None:
    rows = [transfer(1, "short.0", 150.0, None), transfer(2, "short.0", 150.0, 152.0)]
    row = times(rows, startup=False)[0]
    assert row.values["count"] == {1: 0, 2: 1}
    assert row.values["unfinished"] == {1: 1, 2: 0}
    assert row.values["p99"] == {2: 2.0}
    assert row.to_json()["mean"] == {
        "unit": "s", "mean": 2.0, "ci95": [None, None], "n": 1, "values": [2.0], "seeds": [2],
    }  # fmt: skip
    nobody = times(rows[:1], startup=False)
    assert nobody[0]["mean"] is None
    assert nobody[0].to_json()["p50"]["mean"] is None
    assert nobody.table()[1] == [["completion, short (1.46 kB)", "0", "1", "–", "–", "–", "–"]]


def test_there_are_rows_only_of_what_was_measured() -> None:
    bulk = [flow(1, "tcp.0", 1e5, traffic="bulk", size=None, completed=None, startup=0.5)]
    assert len(times(bulk, startup=False)) == 0
    assert [row.measure for row in times(bulk)] == ["startup"]
    voice = [flow(1, "v.0", 1e5, traffic="voice", size=None, completed=None, startup=None)]
    assert len(times(voice)) == 0
    # An older result has no such columns.
    assert len(result([flow(1, "tcp.0", 1e5)]).flow_times()) == 0


moments = st.floats(0, 300)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([1, 2, 2**64 - 1]),
            st.sampled_from(["a", "b", "c"]),
            moments,
            st.none() | moments,
            st.booleans(),
        ),
        min_size=1,
    )
)
def test_every_flow_is_counted_once(drawn: list[tuple[int, str, float, float | None, bool]]) -> None:
    rows = []
    for i, (seed, group, start, took, begins) in enumerate(drawn):
        done = start + took if took is not None and begins else None
        rows.append(transfer(seed, f"{group}.{i}", start, done, sent=int(begins)))
    found = times(rows)
    assert [row.group for row in found] == 2 * list(dict.fromkeys(row["group"] for row in rows))
    for row in found:
        for seed, own in row.times.items():
            of = [r for r in rows if (r["seed"], r["group"]) == (seed, row.group)]
            late = {"completion": lambda r: r["completed"], "startup": lambda r: r["start"] + 0.5}[
                row.measure
            ]
            before = sum(r["completed"] is not None and late(r) < 100 for r in of)
            never = sum(r["sent"] == 0 or r["start"] >= 200 for r in of)
            assert before + len(own) + row.unfinished[seed] + never == len(of)
            if len(own):
                p50, p90, p99 = (row.values[name][seed] for name in ("p50", "p90", "p99"))
                assert own[0] <= p50 <= p90 <= p99 <= own[-1]
                assert own[0] <= row.values["mean"][seed] * (1 + 1e-12)


def experiment(place: Path, distributions: bool) -> Path:
    file = place / "short.toml"
    groups = [
        (n, GROUP.replace("NAME", n) + t) for n, t in (("short", SHORT), ("drawn", DRAWN), ("long", ""))
    ]
    text = EXPERIMENT.replace("DISTRIBUTIONS", str(distributions).lower())
    file.write_text(text + "".join(part for _, part in groups), "utf-8")
    return file


def test_a_run_tells_them_and_agrees_with_its_metrics(tmp_path: Path) -> None:
    made = load(experiment(tmp_path, True)).run(seeds=3)
    found = made.flow_times()
    assert [(r.measure, r.group, r.size) for r in found] == [
        ("completion", "short", 14600.0),
        ("completion", "drawn", None),
        ("startup", "short", 14600.0),
        ("startup", "drawn", None),
        ("startup", "long", None),
    ]
    of = [row for row in found if row.measure == "completion"]
    for seed in made.seeds:
        own = [row.times[seed] for row in of]
        assert made.summary()["completions"].values[seed] == sum(map(len, own)) > 10
        mean = math.fsum(float(x) for one in own for x in one) / sum(map(len, own))
        assert made.summary()["completion_mean"].values[seed] == pytest.approx(mean)
    assert sum(of[1].unfinished.values()) > 0
    assert of[0]["p90"] == estimate(of[0].values["p90"].values(), POSITIVE)
    # The handshake takes a round trip, at least.
    assert min(float(found[2].times[seed][0]) for seed in made.seeds) >= 0.02
    # It began at 0, before the window.
    assert found[4].values["count"] == dict.fromkeys(made.seeds, 0)
    made.write(tmp_path / "kept")
    again = read(tmp_path / "kept").flow_times()
    assert [row.to_json() for row in again] == [row.to_json() for row in found]
    # They are of the runs, whether distributions are measured or not.
    plain = load(experiment(tmp_path, False)).run(seeds=3).flow_times()
    assert [row.to_json() for row in plain] == [row.to_json() for row in of]


def test_the_command_line_shows_them_where_there_are_finite_flows(tmp_path: Path) -> None:
    file = str(experiment(tmp_path, True))
    printed = CliRunner().invoke(app, ["run", file, "--seeds", "2"]).stdout
    table = printed.split("Times of flows, within the window\n")[1].split("\n\n")[0].splitlines()
    assert table[0].split() == ["flow", "times", "flows", "unfinished", "mean", "p50", "p90", "p99"]
    assert [line.partition("  ")[0] for line in table[1:]] == [
        "completion, short (14.6 kB)",
        "completion, drawn",
        "start-up, short (14.6 kB)",
        "start-up, drawn",
    ]
    found = json.loads(CliRunner().invoke(app, ["run", file, "--seeds", "2", "--json"]).stdout)["flow_times"]
    assert [(row["measure"], row["group"]) for row in found][-1] == ("startup", "long")
    assert found[0]["count"]["n"] == found[0]["unfinished"]["n"] == 2
    long = tmp_path / "long.toml"
    long.write_text(EXPERIMENT.replace("DISTRIBUTIONS", "true") + GROUP.replace("NAME", "long"), "utf-8")
    assert "Times of flows" not in CliRunner().invoke(app, ["run", str(long), "--seeds", "1"]).stdout


MARKED = """
title    = "Expedited beside assured forwarding"
duration = "10 s"
measure  = { from = "2 s", to = "10 s", at = "bottleneck", distributions = true }

[[links]]
name  = "bottleneck"
from  = "R1"
to    = "R2"
rate  = "4 Mbit/s"
delay = "5 ms"
[links.queue]
scheduler = "priority"
classes = [
  { name = "ef", aqm = "drop_tail", limit = "50 packets" },
  { name = "af", aqm = "drop_tail", limit = "50 packets" },
]

[[flows]]
name     = "voice"
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = "20 ms"
class    = "ef"
traffic  = { kind = "cbr", rate = "500 kbit/s" }

[[flows]]
name     = "assured"
count    = 2
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = ["20 ms", "60 ms"]
class    = "af"
contract = "500 kbit/s"
marker   = { kind = "token_bucket", depth = "3 packets" }

[[flows]]
name     = "best-effort"
from     = "H*"
join     = { node = "R1", rate = "10 Mbit/s" }
to       = "R2"
rtt      = "40 ms"
class    = "af"
"""


@pytest.fixture(scope="module")
def delayed(tmp_path_factory: pytest.TempPathFactory) -> Result:
    file = tmp_path_factory.mktemp("delays") / "classes.toml"
    file.write_text(MARKED, "utf-8")
    return load(file).run(seeds=2)


def _count(delays: Delays, measure: str, point: str, group: str | None, colour: str | None) -> float:
    found = delays.find(measure, point, group, colour)
    return 0.0 if found is None else sum(found.values["count"])


@pytest.mark.parametrize("measure", ["one_way_delay", "excess_delay", "delay_variation", "queueing_delay"])
def test_delays_are_told_by_class_colour_and_group(delayed: Result, measure: str) -> None:
    delays = delayed.distributions()
    point = "bottleneck" if measure == "queueing_delay" else "receivers"

    def count(point: str, group: str | None = None, colour: str | None = None) -> float:
        return _count(delays, measure, point, group, colour)

    groups = [count(point, group) for group in ("voice", "assured", "best-effort")]
    assert min(groups) > 0
    assert count(point) == sum(groups)
    assert [count(f"{point}/ef"), count(f"{point}/af")] == [groups[0], groups[1] + groups[2]]
    for at, group in [(point, None), (f"{point}/af", None), (point, "assured")]:
        colours = [count(at, group, colour) for colour in ("in", "out")]
        assert min(colours) > 0
        assert sum(colours) == count(at, group)
    # Of one colour only: its row is that of all colours.
    assert delays.find(measure, f"{point}/ef", None, "in") is None
    assert delays.find(measure, point, "voice", "in") is None


def test_variation_of_a_colour_is_against_the_least_of_its_flow(delayed: Result) -> None:
    """RFC 5481 §4.2: so that colours can be compared; a colour of its own reference would begin at 0, too."""
    delays = delayed.distributions()

    def least(colour: str | None) -> list[float]:
        found = delays.find("delay_variation", "receivers", "assured", colour)
        assert found is not None
        return list(found.values["min"])

    colours = [least("in"), least("out")]
    assert least(None) == [0.0, 0.0]
    assert [min(of_seed) for of_seed in zip(*colours, strict=True)] == [0.0, 0.0]
    whole, own = (delays.find("delay_variation", at) for at in ("receivers", "receivers/ef"))
    assert whole is not None
    assert own is not None
    assert own["p99"].mean < whole["p99"].mean, "expedited packets wait for one packet at most"
