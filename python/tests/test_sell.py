"""`inprofile plan sell`: how many contracts may be sold, held against what is known without a simulation."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from typer.testing import CliRunner

from inprofile import Scenario, parse
from inprofile.cli import app
from inprofile.cli.output import output_schema
from inprofile.run.ledger import Ledger
from inprofile.run.pool import Local
from inprofile.run.storage import FolderInUse
from inprofile.studies.plan.sell.activity import Activity, ActivityError, share_of
from inprofile.studies.plan.sell.answer import Answer, Point, Room, Stall, lower_bound, misses, sell, shows
from inprofile.studies.plan.sell.market import MarketError, market_of
from inprofile.studies.plan.sell.words import as_json, as_text
from inprofile.studies.plan.store import Bench
from made import customers, uplink

FILE = uplink(
    "Equal customers",
    (3, 7),
    "10 Mbit/s",
    "fq_codel 200 packets",
    customers("gold", 4, "20..24 ms", start="uniform 0..0.5 s", contract="1.15 Mbit/s"),
    '[plan]\nkept = "90 %"\n',
    tcp='{ profile = "linux" }',
)
CBR = FILE.replace(
    'contract = "1.15 Mbit/s"',
    'contract = "1.15 Mbit/s"\ntraffic = { kind = "cbr", rate = "1.15 Mbit/s", packet = "1500 B" }',
).replace('"fq_codel", limit = "200 packets"', '"drop_tail", limit = "10 packets"')


@pytest.fixture(scope="module")
def always() -> Answer:
    return sell(market_of(parse(FILE)))


@pytest.fixture(scope="module")
def coming() -> Answer:
    return sell(market_of(parse(FILE)), Activity.shares("20 %"))


@pytest.mark.parametrize("text", [FILE, CBR])
def test_to_customers_who_always_send_the_link_is_sold_and_no_more(text: str) -> None:
    answer = sell(market_of(parse(text)))
    assert answer.market.at_most == 8
    assert answer.shown is not None
    assert answer.shown.sold in (7, 8), (
        "ten megabits are eight contracts, and fair queueing gives each its share"
    )
    assert all(p.share < 0.95 for p in answer.curve if p.sold > 8)
    assert answer.missed is not None
    assert answer.shown.sold < answer.missed <= 12


def test_customers_who_come_and_go_are_a_binomial_quantile(always: Answer, coming: Answer) -> None:
    capacity = max(p.sold for p in coming.room.points if p.share > 0.98)
    assert capacity == max(p.sold for p in always.curve if p.share > 0.98)
    assert coming.shown is not None
    # Nobody is served where one too many is there: exact.
    most, safe = (coming.activity.most(capacity, share) for share in (0.9, 0.98))
    assert safe <= coming.shown.sold <= most
    assert coming.missed is not None
    assert coming.missed > most
    for point in coming.tested:
        expected, n = 0.2 * point.sold, point.runs
        assert sum(point.wanted) / n == pytest.approx(expected, abs=4 * math.sqrt(0.8 * expected / n))
        served = [w <= capacity for w in point.wanted]
        whole = [k == w for k, w in zip(point.kept, point.wanted, strict=True)]
        assert sum(a == b for a, b in zip(served, whole, strict=True)) >= 0.97 * n


def test_the_quantile_is_that_of_all_customers_counted_one_by_one() -> None:
    for capacity, active, share in ((3, 0.4, 0.9), (8, 0.2, 0.99), (10, 0.5, 0.95)):
        who = Activity((active,))

        def served(n: int, capacity: int = capacity, active: float = active) -> float:
            weights = [math.comb(n, k) * active**k * (1 - active) ** (n - k) * k for k in range(n + 1)]
            return sum(weights[: capacity + 1]) / sum(weights)

        most = who.most(capacity, share)
        assert served(most) >= share > served(most + 1)
        assert who.kept(most, lambda k, c=capacity: float(k <= c)) == pytest.approx(served(most))


@pytest.mark.parametrize("periods", ["exponential", "pareto", "fixed"])
def test_who_comes_and_goes_is_there_for_his_share_of_the_time_from_the_start(periods: str) -> None:
    who = Activity.stays("2 s", "6 s", periods)
    assert who.busiest == 0.25
    n, end = 8000, 9.0
    stays = list(who.draw(n, 1, "gold", end))
    for moment in (0.0, 3.0, 8.99):
        there = sum((s.start or 0.0) <= moment and (s.stop is None or s.stop > moment) for s in stays)
        assert there / n == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / n))
    through = sum(s.spans(3.0, 4.0) for s in stays) / n
    assert through == pytest.approx(who.stay_through(1.0), abs=0.02)
    assert list(who.draw(100, 1, "gold", end)) == [s for s in stays if s.customer < 100], (
        "the same customers, however many there are"
    )


def test_customers_who_come_and_go_within_a_run_are_sold_as_those_who_stay(coming: Answer) -> None:
    answer = sell(market_of(parse(FILE)), Activity.stays("20 s", "80 s"))
    assert answer.shown is not None
    assert coming.shown is not None
    assert answer.shown.sold == pytest.approx(coming.shown.sold, rel=0.15)
    scenario, wanted = answer.market.experiment(answer.shown.sold, answer.activity, 3)
    groups = {g["name"]: g["count"] for g in scenario.check().effective["flows"]}
    assert groups["gold"] == wanted
    assert groups["gold-passing"] > 0


def test_a_share_is_shown_wrongly_less_often_than_is_said() -> None:
    # At the very share, and looked at after every 20 runs: what a test that may stop has to stand.
    chance, wrong, share = random.Random(1), 0, 0.9  # noqa: S311
    for _ in range(300):
        kept = [10 if chance.random() < share else 0 for _ in range(200)]
        wrong += any(shows(kept[:end], [10] * end, 10, share, 0.05) for end in range(20, 201, 20))
    assert wrong <= 300 * 0.05
    certain = [10] * 200
    assert lower_bound(certain, certain, 10, 0.05) > 0.98
    assert lower_bound([9] * 400, [10] * 400, 10, 0.05) == pytest.approx(0.9, abs=0.04)


def test_the_answer_is_a_sentence_a_picture_and_an_object(coming: Answer) -> None:
    from inprofile.studies.plan.sell.words import picture

    assert coming.shown is not None
    text = as_text(coming)
    assert f"Sell at most {coming.shown.sold} contracts" in text
    assert f"With a margin of 10 %, sell {coming.sell} contracts" in text
    assert "8 contracts fill the link where everybody sends" in text
    assert coming.sell == int(coming.shown.sold / 1.1)
    told = json.loads(json.dumps(as_json(coming)))
    assert told["shown"]["share_kept"]["ci95"][0] < told["shown"]["share_kept"]["mean"]
    assert told["shown"]["lower_bound"] >= 0.9
    drawn = picture(coming)
    assert drawn.startswith("<svg")
    assert f"at most {coming.shown.sold}" in drawn


def test_hours_are_decided_by_the_busiest(coming: Answer) -> None:
    hours = ["5 %"] * 20 + ["20 %"] + ["10 %"] * 3
    answer = sell(market_of(parse(FILE)), Activity.shares(",".join(hours)))
    assert answer.shown is not None
    assert coming.shown is not None
    assert answer.shown.sold == coming.shown.sold
    assert "of whom 20 % are there in the busiest hour, 20:00" in as_text(answer)
    by_hour = as_json(answer)["by_hour"]
    assert [round(h["estimated"], 2) for h in (by_hour[0], by_hour[20])] == [
        1.0,
        round(answer.estimated(answer.shown.sold), 2),
    ]


def test_groups_are_sold_as_the_file_mixes_them() -> None:
    more = FILE.replace('contract = "1.15 Mbit/s"', 'contract = "1.15 Mbit/s"', 1)
    second = FILE[FILE.index("[[flows]]") : FILE.index("[plan]")]
    second = second.replace('"gold"', '"home"').replace("count = 4", "count = 8").replace("1.15 M", "0.3 M")
    market = market_of(parse(more.replace("[plan]", second + "[plan]")))
    assert [g.name for g in market.groups] == ["gold", "home"]
    assert [market.shared(n) for n in (3, 12, 13)] == [[1, 2], [4, 8], [4, 9]]
    assert market.contract == pytest.approx((4 * 1.15e6 + 8 * 0.3e6) / 12)
    alone = market_of(parse(more.replace("[plan]", second + "[plan]")), ["home"])
    assert alone.promised == 4.6e6
    assert alone.at_most == int(5.4 / 0.3)
    scenario, wanted = alone.experiment(5, Activity(), 0)
    assert wanted == 5
    assert {g["name"]: g["count"] for g in scenario.check().effective["flows"]} == {"gold": 4, "home": 5}


def test_as_many_as_the_file_has_are_the_files() -> None:
    base = parse(FILE)
    scenario, _ = market_of(base).experiment(4, Activity(), 0)
    rtts = [s.check().effective["flows"][0]["rtt"] for s in (base, scenario)]
    assert rtts[0] == rtts[1]
    assert np.allclose(
        [
            float(x.split()[0])
            for x in market_of(base).experiment(3, Activity(), 0)[0].check().effective["flows"][0]["rtt"]
        ],
        [20, 22, 24],
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--active", "20"], '"20" is no share: write one from 0 to 100 %'),
        (["--active", "20 %,30 %"], "2 shares: write one, or 24"),
        (["--active", "0 %"], "nobody is ever there"),
        (["--active", "20 %", "--on", "2 s", "--off", "1 s"], "write one or the other"),
        (["--on", "2 s"], "--on and --off belong together"),
        (["--on", "2", "--off", "1 s"], '--on "2": this is no time'),
        (["--on", "2 s", "--off", "1 s", "--periods", "some"], "write exponential, pareto or fixed"),
        (["--kept", "100 %"], "--kept 100 %: write a share from 50 % to below 100 %"),
        (["--margin", "x"], '--margin: "x" is no share'),
        (
            ["--group", "silver"],
            "there is no group silver with a contract at uplink: write --group with one of gold",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "mine.toml").write_text(FILE, "utf-8")
    answer = CliRunner().invoke(
        app, ["plan", "sell", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), *options]
    )
    assert answer.exit_code == 2, answer.output
    assert said in answer.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('contract = "1.15 Mbit/s"', "", "no flow that crosses uplink has a contract"),
        (
            'contract = "1.15 Mbit/s"',
            'contract = ["1 Mbit/s", "2 Mbit/s", "1 Mbit/s", "1 Mbit/s"]',
            "mine.toml:22",
        ),
        (
            'start = "uniform 0..0.5 s"',
            'start = ["0 s", "0 s", "1 s", "1 s"]',
            "start is a list for 4 customers",
        ),
    ],
)
def test_an_experiment_in_which_nothing_can_be_sold_is_refused(old: str, new: str, said: str) -> None:
    text = FILE.replace(old, new).replace('[plan]\nkept = "90 %"\n', "")
    with pytest.raises(MarketError, match=said):
        market_of(Scenario(text, "mine.toml"))


def test_a_day_is_read_from_a_file_and_every_bad_line_is_named(tmp_path: Path) -> None:
    day = tmp_path / "day.csv"
    rows = [f"{hour},{hour} %" for hour in range(24)]
    day.write_text("\ufeffhour,active\r\n" + "\r\n".join(reversed(rows)) + "\r\n", "utf-8")
    assert Activity.shares(str(day)).by_hour[23] == 0.23
    for wrong, said in (
        (["time,active", *rows], r"day.csv:1: the first line is not the columns: write hour,active"),
        (["hour,active", *rows, "3,5 %"], r"day.csv:26: hour 3 is there twice"),
        (["hour,active", *rows[1:]], r"day.csv: hour 0 is missing"),
        (["hour,active", "24,5 %"], r'day.csv:2: "24,5 %": write an hour from 0 to 23'),
        (["hour,active", "0,much"], r'day.csv:2: "much" is no share'),
        (["hour,active", "²,5 %"], r'day.csv:2: "²,5 %": write an hour from 0 to 23'),
        (["hour,active", "9" * 5000 + ",5 %"], r"write an hour from 0 to 23"),
        (["hour,active", "0,1_0 %"], r'day.csv:2: "1_0 %" is no share'),
    ):
        day.write_text("\n".join(wrong), "utf-8")
        with pytest.raises(ActivityError, match=said):
            Activity.shares(str(day))


def test_a_full_disk_says_that_runs_are_kept_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "_enter", full)
    (tmp_path / "mine.toml").write_text(CBR, "utf-8")
    out = tmp_path / "out"
    ran = CliRunner().invoke(app, ["plan", "sell", str(tmp_path / "mine.toml"), "--out", str(out)])
    assert ran.exit_code == 2, ran.output
    assert "No space left on device. Make room, and give the same command again." in ran.stderr
    assert f"Finished runs are kept in {out / 'runs'}" in ran.stderr


def test_the_same_question_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CBR, "utf-8")
    command = ["plan", "sell", str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), "--json"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    whole = output_schema()
    jsonschema.validate(json.loads(first.stdout), {"$ref": "#/$defs/plan%20sell", "$defs": whole["$defs"]})
    again = CliRunner().invoke(app, [*command, "--jobs", "1"])
    assert again.stdout == first.stdout
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"sell.svg", "answer.json", "runs"}


BESIDE = FILE.replace(
    "[plan]",
    FILE[FILE.index("[[flows]]") : FILE.index("[plan]")]
    .replace('"gold"', '"far"')
    .replace("count = 4", "count = 1")
    .replace("20..24 ms", "400 ms")
    .replace("1.15 M", "8 M")
    + "[plan]",
)


def test_the_contracts_of_the_groups_that_are_sold_are_judged_alone(tmp_path: Path) -> None:
    """A far customer never has his 8 Mbit/s: the contracts of those beside him are not his."""
    market = market_of(parse(BESIDE), ["far"])
    bench = Bench(market.scenario, tmp_path / "runs", Local(1), lambda _: None, ["far"])
    (point,) = Stall(market, Activity(), bench).run([1], range(1, 6))
    bench.finish()
    bench.close()
    assert point.wanted == (1,) * 5
    assert point.kept == (0,) * 5
    assert point.others == 1.0, "and what became of the others' contracts is told"
    with pytest.raises(FolderInUse, match="contracts of other groups"):
        Bench(market.scenario, tmp_path / "runs", Local(1), lambda _: None, ["gold"])
    answer = sell(market, place=tmp_path / "answer")
    assert answer.shown is None
    assert "others' contracts kept" in as_text(answer)


def test_a_margin_is_exact() -> None:
    market = market_of(parse(FILE))
    for sold, margin, left in (
        (33, "10 %", 30),
        (110, "10 %", 100),
        (55, "10 %", 50),
        (1123, "12.3 %", 1000),
    ):
        shown = Point(sold, (sold,) * 500, (sold,) * 500, 0.0, math.nan)
        answer = Answer(market, Activity(), share_of(margin, "--margin"), Room(()), (), (shown,), 500)
        assert answer.shown is shown
        assert answer.sell == left


def test_a_share_that_is_reached_is_shown_to_be_missed_less_often_than_is_said() -> None:
    """Looked at as often as a test is, which a fixed interval does not stand."""
    chance, wrong = np.random.default_rng(1), 0
    for _ in range(300):
        kept = chance.binomial(20, 0.99, size=3000).tolist()
        wrong += any(misses(kept[:end], [20] * end, 20, 0.99, 0.05) for end in range(200, 3001, 200))
    assert wrong <= 300 * 0.05
    missing = chance.binomial(20, 0.97, size=400).tolist()
    assert misses(missing, [20] * 400, 20, 0.99, 0.05 / 15)


def test_what_misses_the_goal_is_above_what_reaches_it() -> None:
    market = market_of(parse(FILE))
    good = Point(10, (10,) * 500, (10,) * 500, 0.0, math.nan)
    bad, worse = (Point(n, (10,) * 500, (5,) * 500, 0.0, math.nan) for n in (9, 12))
    answer = Answer(market, Activity(), 0.1, Room(()), (bad, worse), (good,), 1500)
    assert answer.missed == 12


def test_contracts_of_transfers_are_not_sold() -> None:
    traffic = 'contract = "1.15 Mbit/s"\ntraffic = { kind = "transfer", size = "1 MB" }'
    text = FILE.replace('contract = "1.15 Mbit/s"', traffic)
    with pytest.raises(MarketError, match="gold has no rate to keep"):
        market_of(parse(text))
