"""Figures for a paper: as wide as asked for, fonts embedded, units on the axes, the same bytes each time."""

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
