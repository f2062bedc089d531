"""Figures and tables for a paper: fonts embedded, units on the axes, intervals in LaTeX, the same bytes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile.charts import paper
from inprofile.cli import app
from inprofile.metrics.latex import Column, Raw, Table, escaped, latex
from inprofile.metrics.stats import SHARE, Estimate, estimate

SHORT = {
    "duration": "4 s", "measure": {"from": "1 s", "to": "4 s"}, "flows.assured.start": "0 s",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, a sweep, and the reports of a comparison and a suite."""
    place = tmp_path_factory.mktemp("figures")
    base = inprofile.parse(inprofile.STARTER).with_(SHORT)
    base.run(seeds=2).write(place / "r")
    axes = {
        "links.bottleneck.rate": ["2 Mbit/s", "4 Mbit/s"],
        "links.bottleneck.queue.limit": {"short (low)": "20 packets", "long": "60 packets"},
    }
    inprofile.sweep(base, axes, place / "s", seeds=2)
    from inprofile.studies.compare import compare
    from inprofile.studies.suite import suite

    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place)
        (place / "mine.toml").write_text(inprofile.STARTER)
        compare([place / "mine.toml"], quick=True, schemes=["red", "rio"], cache=None, seeds=2)
        suite(aqms=["codel"], scenarios=["targets"], quick=True, cache=None)
    return place


def drawn(folder: Path, *more: str) -> bytes:
    place = folder.parent / "figure.pdf"
    done = CliRunner().invoke(app, ["plot", str(folder), "--out", str(place), *more])
    assert done.exit_code == 0, done.output
    return place.read_bytes()


def checked(document: bytes, inches: float) -> bytes:
    """The PDF; fails where it is of another width, or a font is not in it."""
    assert document.startswith(b"%PDF-")
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) [0-9.]+\]", document)
    assert box is not None
    assert float(box[1]) == pytest.approx(inches * 72, abs=0.01)
    fonts = re.findall(rb"/FontDescriptor \d+ 0 R", document)
    assert len(re.findall(rb"/FontFile[23]? ", document)) == len(fonts) > 0
    assert b"/Subtype /Type3" not in document
    assert b"/CreationDate" not in document
    # Whatever was put in order keeps its place: each object is where the table of objects says.
    start = int(re.findall(rb"startxref\s+(\d+)", document)[-1])
    for number, line in enumerate(document[start:].splitlines()[3:]):
        if not re.fullmatch(rb"\d{10} \d{5} n ?", line):
            break
        assert document[int(line[:10]) :].startswith(b"%d 0 obj" % (number + 1))
    return document


@pytest.mark.parametrize(("width", "inches"), [("one", 3.5), ("two", 7.16), ("3.33in", 3.33)])
def test_a_figure_is_as_wide_as_a_column_and_has_its_fonts(made: Path, width: str, inches: float) -> None:
    checked(drawn(made / "s", "--width", width, "--metric", "goodput"), inches)
    checked(drawn(made / "r", "--width", width), inches)
    checked(drawn(made / "reports" / "compare", "--width", width), inches)
    checked(drawn(made / "reports" / "rfc7928", "--width", width), inches)


def test_axes_have_units_and_lines_have_names(made: Path) -> None:
    picture = made / "g.svg"
    asked = ["plot", str(made / "s"), "--metric", "goodput", "--out", str(picture)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    text = picture.read_text()
    for said in ("goodput (Mbit/s)", "rate (Mbit/s)", "short (low)", "long"):
        assert said in text
    assert "Four flows" not in text, "the title is the caption's"


def test_two_processes_draw_the_same_bytes(made: Path) -> None:
    found = set()
    for _ in range(3):
        asked = [sys.executable, "-m", "inprofile", "plot", "s", "--metric", "fi", "--out", "fi.pdf"]
        subprocess.run(asked, cwd=made, check=True, capture_output=True)
        found.add((made / "fi.pdf").read_bytes())
    assert len(found) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["nowhere"], "holds no result, sweep or report"),
        (["r", "--kind", "pie"], 'there is no figure "pie" of a result'),
        (["r", "--metric", "speed"], "'speed' is neither a metric"),
        (["s", "--metric", "speed"], 'no run has the metric "speed"'),
        (["r", "--width", "three"], "write one, two, or inches"),
        (["r", "--out", "x.png"], "ends in .pdf or .svg"),
        (["reports/compare", "--at", "none"], "mine"),
        (["reports/rfc7928", "--metric", "fi"], "choose from"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    made: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], said: str
) -> None:
    monkeypatch.chdir(made)
    done = CliRunner().invoke(app, ["plot", *asked, "--json"])
    assert done.exit_code == 2, done.output
    assert said in json.loads(done.stdout)["error"]


def test_names_that_are_too_long_are_refused() -> None:
    names = ["n" * 60, "m" * 60]
    rows = [{"x": 1, "y": 1, "line": name} for name in names]
    across = {"field": "y" * 3, "type": "nominal", "title": "a title as long as no column is " * 9}
    spec = {"data": {"values": rows}, "mark": "point", "encoding": {"y": across, **paper.encoded(names)}}
    with pytest.raises(paper.TooNarrow, match="does not fit 1 in"):
        paper.svg(spec, 1)


#: What the tables may use: LaTeX's own, booktabs' and siunitx's.
KNOWN = {
    "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "multicolumn",
    "sisetup", "num", "qty", "unit", "giga", "mega", "kilo", "milli", "micro", "bit", "byte", "per", "second",
    "percent", "times", "pm", "ldots", "textbackslash", "textasciitilde", "textasciicircum", "textless",
    "textgreater", "textbar", "textmu", "geq", "rightarrow", "infty", "lambda",
}  # fmt: skip
EVIL = 'a_b & 50 % of #1 {x} \\alpha $y^2$ ~ <t> | "q" [z] µ … × ± é\x1b[1m'


def checked_table(text: str) -> str:
    """The text; fails where it is no LaTeX that balances, or has a row of another width than its table."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert not any(re.search(r"(?<!\\)%", line) for line in lines), "a comment would hide the rest"
    body = "\n".join(lines)
    assert set(re.findall(r"\\([A-Za-z]+)", body)) <= KNOWN
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", body.replace("\\\\", "")):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for what, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", body):
        if what == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    for tabular in re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", body, re.DOTALL):
        kinds, *rows = tabular.strip().splitlines()
        columns = len(re.findall(r"S\[[^]]*\]|\bl\b", re.sub(r"@\{[^}]*\}", "", kinds)))
        widths = [
            len(re.findall(r"(?<!\\)&", row)) + 1 + row.count(r"\multicolumn{2}")
            for row in rows
            if not row.strip().startswith("\\") and row.strip()
        ]
        assert set(widths) == {columns}
    return text


def test_whatever_is_in_a_value_is_shown_as_it_is() -> None:
    figures = [estimate([464e3, 470e3, 459e3])] * 2
    text = checked_table(
        latex([Table(EVIL, EVIL, [Column(EVIL, [EVIL, "b"]), Column(EVIL, figures, "bit/s")])])
    )
    assert r"a\_b \& 50 \% of \#1 \{x\} \textbackslash{}alpha \$y\textasciicircum{}2\$" in text
    assert "\x1b" not in text
    assert escaped("two\n\nlines") == "two lines"
    assert escaped("λ ≥ 2 → ∞") == r"$\lambda$ $\geq$ 2 $\rightarrow$ $\infty$"
    raw = [Column("x", [Raw(r"\num{1}")]), Column("y", [Raw(r"\num{2}")])]
    assert r"\num{1} & \num{2} \\" in checked_table(latex([Table("t", "t", raw)]))
    mixed = Column("z", [Raw(r"\num{3}"), figures[0]], "bit/s")
    assert r"{\num{3}}" in checked_table(latex([Table("t", "t", [mixed])]))


def test_symmetric_intervals_are_halves_and_lopsided_ones_have_both_ends() -> None:
    rate = [Estimate(464.2e3, inprofile.metrics.stats.Interval(459e3, 469.4e3), 10), None]
    share = [estimate([0.99, 0.98, 0.999], SHARE), estimate([0.5], SHARE)]
    columns = [Column("", ["a", "b"]), Column("goodput", rate, "bit/s"), Column("kept", share, percent=True)]
    text = checked_table(latex([Table("t", "t", columns)]))
    assert "464.2 +- 5.2" in text
    assert r"(\unit{\kilo\bit\per\second})" in text
    assert r"99.0 & [\num{90.5}, \num{99.9}]" in text
    assert r"\multicolumn{2}{c}{kept (\unit{\percent})}" in text
    assert "S[table-format = 3.1(2)]" in text


BRIEF = {
    "duration": "4 s", "measure": {"from": "1 s", "to": "4 s"}, "monitors": [], "flows.assured.start": "0 s",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = inprofile.parse(inprofile.STARTER).with_(BRIEF)
    from inprofile.experiment.dump import written

    (tmp_path / "mine.toml").write_text(written(made, "short"))
    return tmp_path


def test_each_command_writes_its_tables(folder: Path) -> None:
    axis = "links.bottleneck.rate=slow_1:2 Mbit/s,fast:4 Mbit/s"
    for command in (
        ["sweep", "mine.toml", "--out", "s", "--seeds", "3", "--axis", axis],
        ["compare", "mine.toml", "--quick", "--schemes", "red,rio"],
        ["suite", "rfc7928", "--quick", "--seeds", "2", "--aqm", "codel", "--scenario", "mild,targets"],
        ["run", "mine.toml", "--seeds", "3"],
    ):
        done = CliRunner().invoke(app, [*command, "--latex", f"{command[0]}.tex"])
        assert done.exit_code == 0, done.output
        text = checked_table((folder / f"{command[0]}.tex").read_text())
        assert text.count(r"\begin{tabular}") >= 1
        assert "confidence interval" in text
        assert "textbackslash" not in text, "a cell that is LaTeX is written as it is"
    assert r"slow\_1 &" in (folder / "sweep.tex").read_text()
    assert "CoDel &" in (folder / "suite.tex").read_text()
    # Written by us, it may be written again.
    again = ["run", "mine.toml", "--seeds", "3", "--latex", "run.tex"]
    assert CliRunner().invoke(app, again).exit_code == 0


@pytest.mark.parametrize(
    ("file", "said"), [("no/t.tex", "there is no folder no"), ("paper.tex", "something else has that name")]
)
def test_a_place_that_is_taken_or_not_there_is_refused_before_anything_runs(
    folder: Path, file: str, said: str
) -> None:
    (folder / "paper.tex").write_text(r"\documentclass{article}")
    done = CliRunner().invoke(app, ["run", "mine.toml", "--latex", file])
    assert done.exit_code == 2
    assert said in done.output
    assert (folder / "paper.tex").read_text() == r"\documentclass{article}"
