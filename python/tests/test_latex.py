"""Tables for LaTeX: syntax, what is escaped, how intervals are written, and the option of each command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import inprofile
from inprofile.cli import app
from inprofile.metrics.latex import Column, Raw, Table, escaped, latex
from inprofile.metrics.stats import SHARE, Estimate, estimate

#: What the tables may use: LaTeX's own, booktabs' and siunitx's.
KNOWN = {
    "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "multicolumn",
    "sisetup", "num", "qty", "unit", "giga", "mega", "kilo", "milli", "micro", "bit", "byte", "per", "second",
    "percent", "times", "pm", "ldots", "textbackslash", "textasciitilde", "textasciicircum", "textless",
    "textgreater", "textbar", "textmu", "geq", "rightarrow", "infty", "lambda",
}  # fmt: skip
EVIL = 'a_b & 50 % of #1 {x} \\alpha $y^2$ ~ <t> | "q" [z] µ … × ± é\x1b[1m'


def checked(text: str) -> str:
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
    text = checked(latex([Table(EVIL, EVIL, [Column(EVIL, [EVIL, "b"]), Column(EVIL, figures, "bit/s")])]))
    assert r"a\_b \& 50 \% of \#1 \{x\} \textbackslash{}alpha \$y\textasciicircum{}2\$" in text
    assert "\x1b" not in text
    assert escaped("two\n\nlines") == "two lines"
    assert escaped("λ ≥ 2 → ∞") == r"$\lambda$ $\geq$ 2 $\rightarrow$ $\infty$"
    raw = [
        Column("x", [Raw(r"\num{1}")]),
        Column(
            "y",
            [
                Raw(r"\num{2}"),
            ],
        ),
    ]
    assert r"\num{1} & \num{2} \\" in checked(latex([Table("t", "t", raw)]))
    mixed = Column("z", [Raw(r"\num{3}"), figures[0]], "bit/s")
    assert r"{\num{3}}" in checked(latex([Table("t", "t", [mixed])]))


def test_symmetric_intervals_are_halves_and_lopsided_ones_have_both_ends() -> None:
    rate = [Estimate(464.2e3, inprofile.metrics.stats.Interval(459e3, 469.4e3), 10), None]
    share = [estimate([0.99, 0.98, 0.999], SHARE), estimate([0.5], SHARE)]
    columns = [Column("", ["a", "b"]), Column("goodput", rate, "bit/s"), Column("kept", share, percent=True)]
    text = checked(latex([Table("t", "t", columns)]))
    assert "464.2 +- 5.2" in text
    assert r"(\unit{\kilo\bit\per\second})" in text
    assert r"99.0 & [\num{90.5}, \num{99.9}]" in text
    assert r"\multicolumn{2}{c}{kept (\unit{\percent})}" in text
    assert "S[table-format = 3.1(2)]" in text


SHORT = {
    "duration": "4 s", "measure": {"from": "1 s", "to": "4 s"}, "monitors": [], "flows.assured.start": "0 s",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = inprofile.parse(inprofile.STARTER).with_(SHORT)
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
        text = checked((folder / f"{command[0]}.tex").read_text())
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
