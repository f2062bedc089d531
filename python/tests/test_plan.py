"""`inprofile plan FILE`: settings that keep contracts, on fresh seeds, and files that run."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

from inprofile import Scenario, load
from inprofile.cli import app
from inprofile.metrics.quantity import pm
from inprofile.metrics.stats import estimate
from inprofile.run.pool import Local
from inprofile.run.storage import FolderInUse
from inprofile.studies.plan import Answer, Goal, Question, plan, read_question
from inprofile.studies.plan.contracts import SELECTED, TRIALS
from inprofile.studies.plan.files import experiment_text, router_text, write
from inprofile.studies.plan.question import Router, question_of
from inprofile.studies.plan.search import (
    FIRST,
    SEARCHED,
    Tried,
    confirmation,
    judge,
    measured,
    search,
    selected,
)
from inprofile.studies.plan.store import Bench, RunFigures
from inprofile.studies.plan.variants import FASTER, Change, _steps
from inprofile.studies.plan.words import as_text
from made import customers, uplink

FILE = uplink(
    "Four customers and the others",
    (4, 12),
    "4 Mbit/s",
    "drop_tail 80 packets",
    customers("gold", 2, '["20 ms", "40 ms"]', "10 Mbit/s", start="uniform 0..1 s", contract="500 kbit/s"),
    customers("free", 4, "20..40 ms", "10 Mbit/s", start="uniform 0..1 s"),
    """\
[plan] # the goal
kept = "80 %"
delay = "60 ms"
schemes = ["drop-tail", "rio"]

[plan.router]
customers = "session"
first = 100
""",
    seeds=2,
    tcp='{ profile = "linux" }',
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plan")
    (made / "four.toml").write_text(FILE, "utf-8")
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> Answer:
    return plan(read_question(folder / "four.toml"), trials=4, place=folder / "runs")


def test_the_answer_holds_on_seeds_that_nothing_else_used(found: Answer) -> None:
    chosen = found.chosen
    assert chosen is not None
    runs, allowed = confirmation(0.8)
    assert len(chosen.runs.seeds) == runs >= 300
    assert chosen.failures <= allowed
    assert chosen.lower >= 0.8
    assert chosen.runs["delay_mean"].mean() <= 0.06
    others = {s for tried in found.tried.values() for t in tried for s in t.runs.seeds}
    assert others == {*FIRST, *SEARCHED}
    assert not (others | set(chosen.tried.runs.seeds)) & set(chosen.runs.seeds)


def test_it_chooses_what_leaves_best_effort_most(found: Answer) -> None:
    assert found.chosen is not None
    met = [t for t in found.finalists if t.judged.violation == 0]
    assert found.chosen.tried.judged.best_effort == max(t.judged.best_effort for t in met)
    assert {len(tried) for tried in found.tried.values()} == {4}, (
        "the same number of settings for every scheme"
    )


def test_it_says_how_sensitive_it_is_and_what_more_customers_do(found: Answer) -> None:
    assert {n.key for n in found.near} >= {"T"}
    assert all(n.factor != 1 for n in found.near)
    groups = [r.more for r in found.room if r.group == "gold"]
    assert groups == [1, 2, 4, 8, 16][: len(groups)]
    first = found.room[0]
    assert len(first.runs.seeds) == 40
    text = as_text(found)
    assert "Price: best effort gets" in text
    assert "1 more in gold" in text


def test_a_plan_goes_on_where_it_was_and_answers_the_same(folder: Path, found: Answer) -> None:
    told: list[str] = []
    again = plan(
        read_question(folder / "four.toml"), trials=4, place=folder / "runs", jobs=1, progress=told.append
    )
    assert told[0] == f"{found.runs:,} runs are there already"
    assert as_text(again) == as_text(found)
    (folder / "other.toml").write_text(FILE.replace("4 Mbit/s", "5 Mbit/s"), "utf-8")
    with pytest.raises(FolderInUse, match="another experiment"):
        plan(read_question(folder / "other.toml"), trials=4, place=folder / "runs")


def test_the_files_are_the_experiment_and_a_routers_customers(folder: Path, found: Answer) -> None:
    assert found.chosen is not None
    best = found.chosen.tried
    (folder / "best.toml").write_text(experiment_text(found.question, best), "utf-8")
    written = load(folder / "best.toml")
    assert written.canonical == found.experiment().canonical
    result = written.with_(monitors=[]).run(seeds=best.runs.seeds[:2])
    assert result.contracts.by_run()["best_effort"].tolist() == best.runs["best_effort"].tolist()[:2]
    router = tomllib.loads(router_text(found.question, best))["upstream"]
    assert [c["session"] for c in router["customers"][:2]] == [100, 101]
    assert [t["contract"] for t in router["templates"]] == ["500 kbit/s"]
    assert router["rate"] == "4 Mbit/s"


def test_a_goal_that_nothing_meets_says_by_how_much_and_what_to_change(folder: Path) -> None:
    hard = FILE.replace('"500 kbit/s"', '"1900 kbit/s"').replace('["drop-tail", "rio"]', '["drop-tail"]')
    (folder / "hard.toml").write_text(hard, "utf-8")
    answer = CliRunner().invoke(
        app, ["plan", str(folder / "hard.toml"), "--trials", "4", "--out", str(folder / "hard"), "--json"]
    )
    assert answer.exit_code == 1, answer.output
    told = json.loads(answer.stdout)
    assert told["met"] is False
    assert told["nearest"]["falls_short_by"] > 0
    again = CliRunner().invoke(
        app, ["plan", str(folder / "hard.toml"), "--trials", "4", "--out", str(folder / "hard")]
    )
    assert "4 settings a scheme were tried: --trials 24" in again.stdout
    (folder / "hard.toml").write_text(hard.replace("1900", "2100"), "utf-8")
    sold = CliRunner().invoke(
        app, ["plan", str(folder / "hard.toml"), "--trials", "4", "--out", str(folder / "sold")]
    )
    assert "The contracts are 200 kbit/s more than the link has" in sold.stdout
    assert "--trials" not in sold.stdout
    assert {c["lever"] for c in told["changes"]} >= {"link", "contracts"}
    there = {p.name for p in (folder / "hard").iterdir()}
    assert there == {"nearest.toml", "safe.svg", "answer.json", "runs"}, (
        "nothing that looks ready for a router"
    )
    assert "nothing for a router: no setting meets the goal" in again.stdout
    assert load(told["files"]["nearest.toml"]).title == "Four customers and the others"


def test_what_would_help_is_tuned_anew(tmp_path: Path) -> None:
    sold = FILE.replace('"500 kbit/s"', '"1900 kbit/s"').replace('["drop-tail", "rio"]', '["rio"]')
    (tmp_path / "sold.toml").write_text(sold, "utf-8")
    answer = plan(read_question(tmp_path / "sold.toml"), trials=8)
    assert answer.chosen is None
    best = {lever: max(c.met for c in answer.changes if c.lever == lever) for lever in ("link", "contracts")}
    assert best == {"link": True, "contracts": True}
    assert any(dict(c.settings) != dict(answer.nearest.settings) for c in answer.changes if c.met)
    assert "tuned anew" in as_text(answer)


@pytest.mark.parametrize(("rate", "customers", "others"), [(8, 6, 4), (20, 4, 4)])
def test_where_nearly_all_is_sold_the_search_finds_what_a_hand_finds(
    rate: int, customers: int, others: int
) -> None:
    contract = 0.95 * rate / customers
    scenario = Scenario(FILE).with_(
        {
            "links.uplink.rate": f"{rate} Mbit/s",
            "links.uplink.queue.limit": f"{round(12.5 * rate)} packets",
            "flows.gold.count": customers,
            "flows.gold.contract": f"{contract:.4g} Mbit/s",
            "flows.gold.rtt": "15..30 ms",
            "flows.free.count": others,
            "flows.free.rtt": "15..30 ms",
            "flows.gold.join.rate": f"{10 * rate} Mbit/s",
            "flows.free.join.rate": f"{10 * rate} Mbit/s",
            "plan.schemes": ["rio"],
            "plan.kept": "95 %",
        }
    )
    question = question_of(scenario)
    made = bench(question, None)
    (scheme,) = question.schemes
    found = search(question, made, scheme, TRIALS, lambda _: None)
    best = selected(question, made, found, SELECTED, 8, 2)[0]
    assert (best.runs.kept, best.judged.violation) == (40, 0)


def test_an_experiment_asked_with_several_seeds_at_once_is_run_with_all_of_them(folder: Path) -> None:
    question = read_question(folder / "four.toml")
    made = bench(question, None)
    first, second, again = made.run([(question.scenario, seeds) for seeds in ((1,), (2, 3), (3, 1))])
    assert [r.seeds for r in (first, second, again)] == [(1,), (2, 3), (3, 1)]
    assert made.made == 3
    assert again["delay_mean"].tolist() == [second["delay_mean"][1], first["delay_mean"][0]]


def seen(worst: list[float], best_effort: float = 1e5) -> RunFigures:
    """Runs with these least assurance ratios."""
    values = {
        "assurance_worst": np.array(worst),
        "all_contracts_kept": np.array([x >= 1 for x in worst], float),
        "delay_mean": np.full(len(worst), 0.01),
        "best_effort": np.full(len(worst), best_effort),
        "utilisation": np.ones(len(worst)),
    }
    return RunFigures(tuple(range(len(worst))), values, ("gold",) * len(worst))


def test_three_runs_that_keep_all_contracts_are_not_hopeless(found: Answer) -> None:
    runs = seen([1.11, 1.23, 1.17])
    asked = replace(found.question, goal=Goal())
    made = SimpleNamespace(
        run=lambda wanted: [runs if len(seeds) == 3 else seen([1.2] * 8) for _, seeds in wanted]
    )
    (scheme, *_) = asked.schemes
    (one,) = measured(asked, cast("Bench", made), [(scheme, {"T": 0.01})])
    assert len(one.runs.seeds) == 8


def test_where_the_luckiest_fail_with_other_seeds_the_safest_are_looked_at(found: Answer) -> None:
    question = found.question
    (scheme, *_) = question.schemes

    def tried(t: float, margin: float) -> Tried:
        runs = seen([1 + margin] * 8)
        return Tried(scheme, {"T": t}, runs, replace(judge(question, runs), score=1 - margin))

    all_of_them = [tried(0.01 + margin / 10, margin) for margin in (0.001, 0.002, 0.003, 0.2)]
    asked: list[int] = []

    def run(wanted: list[tuple[Scenario, range]]) -> list[RunFigures]:
        asked.append(len(wanted))
        return [seen([0.9 if len(asked) == 1 else 1.2] * 40) for _ in wanted]

    best = selected(question, cast("Bench", SimpleNamespace(run=run)), all_of_them, range(40), 8, 2)
    assert asked == [2, 2]
    assert best[0].judged.violation == 0
    assert [b.judged.violation > 0 for b in best] == [False, False, True, True]


def test_steps_end_at_the_smallest_that_meets_the_goal() -> None:
    asked: list[float] = []

    def tuned(factor: float, least: float) -> Change:
        asked.append(factor)
        return cast("Change", SimpleNamespace(factor=factor, met=factor >= least))

    for least, expected in ((0.0, 1.1), (1.2, 1.25), (1.3, 1.5), (1.9, 2.0)):
        steps = _steps(FASTER, partial(tuned, least=least))
        assert next(s.factor for s in steps if s.met) == expected
    asked.clear()
    assert [s.met for s in _steps(FASTER, partial(tuned, least=3.0))] == [False]
    assert asked == [2.0]


def test_without_the_routers_program_it_says_that_nothing_was_checked(
    tmp_path: Path, found: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    written = write(found, tmp_path, {})
    assert "tc.sh" not in written
    assert "the program inprofiled is not on the path" in written["checked"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kept = "80 %"', 'kept = "100 %"', "shows that something always holds"),
        ('delay = "60 ms"', 'delays = "60 ms"', "wrong.toml:36:1: error: plan.delays: unknown key"),
        ('delay = "60 ms"', 'best_effort = "9 Mbit/s"', "is not less than the rate of uplink, 4 Mbit/s"),
        ('delay = "60 ms"', 'best_effort = "101 %"', "is not less than the rate of uplink, 4 Mbit/s"),
        ('"drop-tail", "rio"', '"rioo"', 'did you mean "rio"'),
        ("first = 100", "first = 0", "write a number from 1 to 65533"),
        ("first = 100", "first = 65534", "with 2 customers the last number is 65535"),
        ('contract = "500 kbit/s"', "", "there is nothing to keep"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(
    folder: Path, old: str, new: str, said: str
) -> None:
    (folder / "wrong.toml").write_text(FILE.replace(old, new), "utf-8")
    for command in (["plan", "--out", str(folder / "wrong")], ["check"]):
        answer = CliRunner().invoke(app, [*command, str(folder / "wrong.toml")])
        assert answer.exit_code == 2, answer.output
        assert said in answer.stderr
    assert not (folder / "wrong").exists()


def test_a_plans_file_is_an_experiment_file(folder: Path, found: Answer) -> None:
    file = str(folder / "four.toml")
    assert load(file).canonical == found.question.scenario.canonical
    answer = CliRunner().invoke(app, ["check", file])
    assert answer.exit_code == 0, answer.output
    assert "in 80 % of the runs at least" in answer.stdout
    assert re.search(
        r"A plan takes about 1,308 runs, about 5,\d00,000 packets, about \d+ s on", answer.stdout
    )
    told = json.loads(CliRunner().invoke(app, ["check", file, "--json"]).stdout)
    assert told["effective"]["plan"]["router"]["first"] == 100
    assert told["expected"]["runs_of_a_plan"] == 1308


def test_help_shows_the_options_of_a_plan() -> None:
    for arguments in (["plan", "-h"], ["plan", "--help"], ["plan"]):
        said = CliRunner().invoke(app, arguments).stdout
        for option in ("--out", "--schemes", "--trials", "--mechanism", "--jobs", "--yes", "--json"):
            assert option in said, arguments
        assert "plan policer" in said
    assert "--rtt" in CliRunner().invoke(app, ["plan", "policer", "-h"]).stdout


def test_what_is_too_much_says_how_long_it_would_take_and_what_makes_it_less(folder: Path) -> None:
    (folder / "long.toml").write_text(FILE.replace("12 s", "9000 s"), "utf-8")
    answer = CliRunner().invoke(app, ["plan", str(folder / "long.toml"), "--jobs", "2"])
    assert answer.exit_code == 2
    assert re.search(r"packets are expected in 1,308 runs, about \d+ min on 2 cores", answer.stderr)
    options = CliRunner().invoke(app, ["plan", "-h"]).stdout
    proposed = re.findall(r"--\w+", answer.stderr)
    assert {"--yes", "--trials", "--schemes"} <= set(proposed)
    assert all(option in options for option in proposed)


def test_files_of_an_earlier_answer_in_the_folder_go(tmp_path: Path, found: Answer) -> None:
    for name in ("police.tc", "tc.sh"):
        (tmp_path / name).write_text("# of an answer with policers")
    written = write(found, tmp_path, {})
    assert {p.name for p in tmp_path.iterdir()} == {
        Path(p).name for n, p in written.items() if n != "checked"
    }
    assert "of an answer with policers" not in "".join(p.read_text() for p in tmp_path.iterdir())


def test_a_customers_price_has_its_interval_over_the_same_seeds(found: Answer) -> None:
    assert found.chosen is not None
    base, more = found.chosen.tried.runs, found.room[0].runs
    less = base["best_effort"] - more["best_effort"]
    price = pm(estimate(less.tolist()), "bit/s")
    assert f"One more in gold costs best effort {price}." in as_text(found)
    assert "±" in price


def test_a_folder_of_something_else_is_left_alone(folder: Path) -> None:
    taken = folder / "taken"
    taken.mkdir()
    (taken / "flows.parquet").write_text("a result")
    answer = CliRunner().invoke(app, ["plan", str(folder / "four.toml"), "--out", str(taken)])
    assert answer.exit_code == 2, answer.output
    assert "holds other things (flows.parquet)" in answer.stderr
    assert [p.name for p in taken.iterdir()] == ["flows.parquet"]


def test_lines_keep_their_numbers_without_the_goal(folder: Path) -> None:
    (folder / "wrong.toml").write_text(FILE + '\n[[monitors]]\nqueue = "uplnk"\nevery = "1 s"\n', "utf-8")
    answer = CliRunner().invoke(app, ["plan", "contracts", str(folder / "wrong.toml")])
    assert answer.exit_code == 2
    assert f"wrong.toml:{len(FILE.splitlines()) + 3}:" in answer.stderr


def test_a_goal_may_be_written_in_one_line_or_not_at_all(folder: Path) -> None:
    head, _, _ = FILE.partition("[plan]")
    (folder / "line.toml").write_text('plan = { kept = "80 %" }\n' + head, "utf-8")
    assert read_question(folder / "line.toml").goal == Goal(kept=0.8)
    (folder / "line.toml").write_text(head, "utf-8")
    question = read_question(folder / "line.toml")
    assert (question.goal, question.router) == (Goal(), Router())


def bench(question: Question, place: Path | None) -> Bench:
    return Bench(question.scenario, place, Local(1), lambda _: None)
