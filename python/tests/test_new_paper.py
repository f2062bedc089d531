"""A paper as data alone: what `new-paper` writes, sources that are checked, and lines in messages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inprofile.cli import app
from inprofile.experiment.scenario import load as scenario
from inprofile.papers import Cell, load
from inprofile.papers.arithmetic import ArithmeticProblem, value_of
from inprofile.papers.defaults import measure
from inprofile.papers.entry import line_of
from inprofile.papers.parameters import unlisted
from inprofile.papers.quotes import parts
from inprofile.papers.stated import rests_on


def run(*words: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(app, list(words))
    return answer.exit_code, answer.stdout, answer.stderr


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run("new-paper", "mine")
    assert code == 0
    assert "inprofile reproduce ./mine" in said
    return tmp_path / "mine"


def test_what_is_written_is_judged_without_a_line_of_code(mine: Path) -> None:
    code, said, wrong = run("reproduce", "./mine", "--quick", "--json")
    assert code == 0, wrong
    (found,) = json.loads(said)["papers"]
    assert [c["id"] for c in found["claims"]] == ["S1", "S2"]
    assert all(c["comparisons"]["total"] == 1 for c in found["claims"])
    page = Path("reports/mine/index.html").read_text("utf-8")
    assert "2 quotes, found in abstract.txt" in page
    assert "goodput, first over second flow" in page
    assert "reports/mine" not in page
    assert "Short title" in Path("reports/index.html").read_text("utf-8")
    assert not list(mine.glob("*.py"))


def test_who_meets_whom_is_a_page_and_an_experiment_each(mine: Path) -> None:
    assert run("reproduce", "./mine", "--quick")[0] == 0
    page = Path("reports/meetings.html").read_text("utf-8")
    assert page.count("<tr data-x=") == 4
    assert '<tr data-x="BBR" data-y="CUBIC" data-z="drop-tail">' in page
    assert "meetings.html" in Path("reports/index.html").read_text("utf-8")
    (link,) = set(re.findall(r"mine/experiments/[a-z-]+-long-buffer-bbr-[a-z.-]+", page))
    written = scenario(Path("reports") / link).check().effective
    limits = {x["name"]: x["queue"]["limit"]["is"] for x in written["links"]}
    assert limits["bottleneck"] == "640 packets"


def test_it_has_an_atlas(mine: Path) -> None:
    code, said, wrong = run("atlas", "./mine", "--budget", "3", "--json")
    assert code == 0, wrong
    (found,) = json.loads(said)["papers"]
    assert [f["id"] for f in found["factors"]] == ["rtt"]


def test_every_parameter_of_it_has_an_origin(mine: Path) -> None:
    assert not unlisted(load(str(mine)))
    about = mine / "paper.toml"
    about.write_text(about.read_text().replace('path = "duration"', 'path = "tcp.profile"'))
    assert unlisted(load(str(mine))) == [("link.toml", "duration")]


def test_a_metric_that_one_run_cannot_tell_is_left_out(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = load(str(mine))
    result = scenario(mine / "link.toml").with_(duration="12 s").run(seeds=range(1, 3))
    cell = Cell(paper.setups[0].id, paper.topologies[0].id, paper.schemes[0].id)
    whole = set(measure(result, cell, paper).values)
    names, seeds = result.metrics["name"].to_pylist(), result.metrics["seed"].to_pylist()
    kept = [not (name == "fi" and seed == 2) for name, seed in zip(names, seeds, strict=True)]
    monkeypatch.setattr(type(result), "metrics", result.metrics.filter(kept))
    assert whole - set(measure(result, cell, paper).values) == {"fi"}


def test_a_claim_rests_on_what_it_compares(mine: Path) -> None:
    paper = load(str(mine))
    cell = Cell("as-printed", "long-buffer", "bbr-cubic")
    assert not rests_on(paper, "S1", cell)
    assert rests_on(paper, "S2", cell)
    assert not rests_on(paper, "S2", Cell("as-printed", "long-buffer", "cubic-cubic"))


def test_a_folder_is_not_written_over_and_a_name_must_do(mine: Path) -> None:
    assert "already exists and was not changed" in run("new-paper", "mine")[2]
    assert "write small letters" in run("new-paper", "Mine_2")[2]


#: What stands in the lines in which the comparisons of the claims begin.
S1, S2 = "comparisons = [\n", 'comparisons = [\n  { measure = "ratio", of = "bbr-cubic", on = "long'
QUOTE = '"At short buffers BBR takes more than its share"'


CLAIM = '[[claims]]\nid    = "S1"'


@pytest.mark.parametrize(
    ("edit", "at", "says"),
    [
        ((QUOTE, '"BBR takes less"'), '"BBR takes less"', "claims.S1.quote is not in"),
        ((f"quote = {QUOTE}\n", ""), CLAIM, "claims.S1 has no source, as it lacks quote: write where"),
        (('says  = "abstract"\n', ""), CLAIM, "claims.S1 has no source, as it lacks says"),
        (('part  = "abstract"', 'part  = "end"'), '"end"', "claims.S1.part = 'end': write one of abstract"),
        (('side = "above"', 'side = "over"'), S1, "side = 'over': write one of above, below, within"),
        (('of = "bbr-cubic"', 'of = "bbr"'), S1, "of = 'bbr': write one of bbr-cubic, cubic-cubic"),
        (('on = "short-buffer", side', 'on = "short", side'), S1, "write one of short-buffer, long-buffer"),
        ((', why = "a twentieth of the other\'s goodput"', ""), S1, "has one of least and why"),
        (("against = { on", "againts = { on"), S2, "againts is an unknown key: write one of against"),
        (('side = "above"', 'side = "within"'), S1, "lacks to: side"),
        (('side = "above"', 'side = "within", to = 0.1'), S1, "to = 0.1: write an upper bound above than"),
        (('side = "above"', 'side = "above", to = 2'), S1, 'to is the upper bound of side = "within"'),
        (("than = 1", "than = nan"), S1, "than = nan: write a finite number"),
        ((QUOTE, '"…"'), '"…"', "claims.S1.quote is not in"),
        (
            (QUOTE, '"At short buffers BBR gets more"'),
            '"At short buffers BBR gets',
            "from “gets more” on: quote",
        ),
        (('side = "above", than = 1', 'side = "within", than = 1, to = 2'), S1, "remove least and why"),
        (
            ('against = { on = "short-buffer" }', 'against = { on = "long-buffer" }'),
            S2,
            "write another of, on",
        ),
        (
            ('path  = "links.bottleneck.rate"', 'path  = "links.bottleneck.rat"'),
            '"links.bottleneck.rat"',
            "no experiment has such a parameter: write links.bottleneck.rate",
        ),
        (
            ('limit" = "640 packets"', 'limits" = "640 packets"'),
            'set   = { "links.bottleneck.queue.limits',
            "topologies.long-buffer.set: error: links.bottleneck.queue.limits: unknown key",
        ),
        (
            ('"flows.a.tcp.congestion" = "cubic"', '"flows.c.tcp.congestion" = "cubic"'),
            'set   = { "flows.c',
            'schemes.cubic-cubic.set: error: flows.c.tcp.congestion: nothing in "flows" is named "c"',
        ),
        (
            ('"flows.a.rtt" = "{} ms", "flows.b.rtt"', '"flows.a.rt" = "{} ms", "flows.b.rtt"'),
            "set     = {",
            "inputs.rtt.set: error: flows.a.rt: unknown key",
        ),
        (("year    = 2025", 'year    = "2025"'), "year ", "year = '2025': write a whole number"),
        (('title = "goodput, first over second flow"\n', ""), "[[computed]]", "computed.ratio lacks title"),
    ],
)
def test_what_is_wrong_has_its_line(mine: Path, edit: tuple[str, str], at: str, says: str) -> None:
    about = mine / "paper.toml"
    text = about.read_text()
    assert edit[0] in text
    text = text.replace(*edit, 1)
    about.write_text(text)
    code, _, wrong = run("reproduce", "./mine", "--plan")
    assert (code, says in wrong) == (2, True), wrong
    line = text[: text.index(at)].count("\n") + 1
    assert f"paper.toml:{line}: " in wrong, wrong


def test_a_measure_that_is_not_there_is_told_with_those_that_are_near(mine: Path) -> None:
    about = mine / "paper.toml"
    about.write_text(about.read_text().replace("a.goodput /", "a.goodputs /"))
    code, _, wrong = run("reproduce", "./mine", "--quick")
    assert (code, "there is no measure a.goodputs: write a.goodput" in wrong) == (2, True), wrong


def test_a_quote_may_be_set_otherwise_and_leave_words_out(mine: Path) -> None:
    about = mine / "paper.toml"
    about.write_text(
        about.read_text().replace(QUOTE, '"at short buffers … its share of a link, and less of it"')
    )
    (part,) = parts(load(str(mine)).top, mine)
    assert part.words == "2 quotes, found in abstract.txt"


def test_a_text_that_is_not_here_checks_nothing(mine: Path) -> None:
    (mine / "abstract.txt").unlink()
    (part,) = parts(load(str(mine)).top, mine)
    assert part.words == "2 quotes, not checked here: abstract.txt is not in the folder"


def test_a_paper_without_a_setup_says_what_one_has(mine: Path) -> None:
    about = mine / "paper.toml"
    before, after = about.read_text().split("[[setups]]")
    about.write_text(before + after[after.index("# What is compared") :])
    code, _, wrong = run("reproduce", "./mine", "--plan")
    assert (code, "has no [[setups]]: write at least one, with id, text, title" in wrong) == (2, True), wrong


def test_an_experiment_that_is_wrong_is_refused_before_anything_is_planned(mine: Path) -> None:
    link = mine / "link.toml"
    link.write_text(link.read_text().replace("rate  =", "rat   ="))
    for command in ("reproduce", "atlas"):
        code, said, wrong = run(command, "./mine", "--plan")
        assert (code, "link.toml:10:1: error: links.bottleneck.rat: unknown key" in wrong) == (2, True), wrong
        assert not said


def test_an_input_that_cannot_be_set_is_refused_by_the_atlas_too(mine: Path) -> None:
    about = mine / "paper.toml"
    about.write_text(about.read_text().replace('"flows.a.rtt" = "{} ms"', '"flows.a.rtt" = "{} s s"'))
    code, _, wrong = run("atlas", "./mine", "--plan")
    assert (code, "inputs.rtt.set: error: flows.a.rtt" in wrong) == (2, True), wrong


def test_of_one_scheme_a_figure_has_all_networks_and_the_page_what_is_claimed(mine: Path) -> None:
    about = mine / "paper.toml"
    text = about.read_text()
    second = text.index('[[schemes]]\nid    = "cubic-cubic"')
    about.write_text(text[:second] + text[text.index("# Figures made from") :])
    assert run("reproduce", "./mine", "--quick")[0] == 0
    page = Path("reports/mine/index.html").read_text("utf-8")
    assert re.findall("<figcaption>.*?</figcaption>", page) == [
        "<figcaption><b>goodput, first over second flow</b>, BBR beside CUBIC, As printed</figcaption>"
    ]
    figure = page[page.index("<figcaption>") :]
    assert "a buffer of 1 BDP" in figure[: figure.index("</figure>")]
    assert "In the paper: abstract, “At short buffers BBR takes more than its share”" in page
    assert "<td>above 1</td>" in page


def test_an_experiment_that_is_not_there_is_named(mine: Path) -> None:
    (mine / "link.toml").unlink()
    code, _, wrong = run("reproduce", "./mine", "--plan")
    assert (code, "link.toml is not there" in wrong) == (2, True), wrong


def test_lines_of_tables_in_strings_and_lists_are_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'a = """\n[[x]]\nb = 1"""\n# [c]\nlist = [\n  { b = "]" },\n]\n[[x]]\nb = 2\n[x.y]\nz = 3\n'
    )
    places: list[tuple[str | int, ...]] = [
        ("a",),
        ("list", 0, "b"),
        ("x", 0, "b"),
        ("x", 0, "y", "z"),
        ("no",),
    ]
    assert [line_of(file, at) for at in places] == [1, 5, 9, 11, None]


@pytest.mark.parametrize(
    ("text", "is_"),
    [
        ("a - b", 1.0),
        ("a-b + 1", 8.0),
        ("2 * (a + b) / 4", 2.5),
        ("max(a, min(b, 9))", 3.0),
        ("-1e1 * a", -30.0),
        (".5 * a + 1E1", 11.5),
    ],
)
def test_arithmetic(text: str, is_: float) -> None:
    measures = {"a": np.array([3.0]), "b": np.array([2.0]), "a-b": np.array([7.0])}
    assert float(value_of(text, measures)[0]) == is_


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a b", "b is not expected"),
        ("a +", "ends where"),
        ("(a", "ends where"),
        ("c", "no measure c"),
        ("a / z", "0"),
        ("(" * 5000 + "a", "more than 50 parentheses"),
    ],
)
def test_what_is_no_arithmetic(text: str, says: str) -> None:
    with pytest.raises(ArithmeticProblem, match=says):
        value_of(text, {"a": np.array([3.0]), "z": np.array([0.0])})
