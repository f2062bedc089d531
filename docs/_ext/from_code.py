"""The parts of the site's pages that come from the program: pictures, settings, commands.

Directives: `curve NAME` draws a mechanism, `settings NAME` lists what can be set of it, `others KIND` shows
those that the page does not name; `commands` is the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vl_convert
from curves import Curve, draw
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import inprofile

if TYPE_CHECKING:
    from sphinx.application import Sphinx

INK = "#010203"
"""A colour that no chart uses: replaced by that of the text around the picture."""
LINES = ["#010211", "#010212", "#010213", "#010214"]
"""Likewise, by `--curve-1` and so on of the style sheet."""
DASHES = [[1, 0], [7, 3], [2, 3], [9, 3, 2, 3]]


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the directives known to Sphinx."""
    app.connect("source-read", links)
    app.add_directive("curve", CurveDirective)
    app.add_directive("settings", Settings)
    app.add_directive("others", Others)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


ROOT = Path(__file__).resolve().parents[2]
PROJECT = {"ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
"""Pages at the root of the repository that the site shows as `project/NAME`."""
_DECISION = r"\[(?:[Dd]ecision )?\d{4}[^\]]*\]\([^)]*decisions/[^)]*\)"


def links(_: Sphinx, name: str, source: list[str]) -> None:
    """Put the root's pages in their places, and lead links that leave `docs` to where the site has them.

    Paths in the repository stay as they are written, so that pages can be read where they lie.
    """
    page = ROOT / "docs" / f"{name}.md"
    written = ROOT / f"{Path(name).name.upper()}.md"
    if name.startswith("project/"):
        source[0] = written.read_text("utf-8")
    else:
        written = page
    # Decisions are not on the site: where one is only referred to, in brackets, that goes too.
    source[0] = re.sub(rf"\s*\({_DECISION}(?:[,;]\s*{_DECISION})*\)", "", source[0])
    source[0] = re.sub(r"\[([^\]]*)\]\([^)]*(?:decisions/|wrong-laws\.md)[^)]*\)", r"\1", source[0])

    def lead(found: re.Match[str]) -> str:
        place, anchor = found[1], found[2] or ""
        target = (written.parent / place).resolve()
        if target.parent == ROOT and target.name in PROJECT:
            target = ROOT / "docs" / "project" / target.name.lower()
        scheme = "path:" if target.suffix == ".md" and not target.is_relative_to(ROOT / "docs") else ""
        return f"]({scheme}{os.path.relpath(target, page.parent)}{anchor})"

    source[0] = re.sub(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)", lead, source[0])


class CurveDirective(Directive):
    """A mechanism's picture, with what it says."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        curve = draw(self.arguments[0])
        caption = f"<figcaption>{escape(curve.says)}</figcaption>"
        return [html(f'<figure class="curve">{svg(curve)}{caption}</figure>')]


def svg(curve: Curve) -> str:
    """Draw as SVG that takes its colours from the page, light or dark."""
    names = list(dict.fromkeys(row["line"] for row in curve.rows))
    few = max(sum(row["line"] == name for row in curve.rows) for name in names) <= 40
    scale = {"domain": names, "range": LINES[: len(names)]}
    dash = {"domain": names, "range": DASHES[: len(names)]}
    legend = {"orient": "top", "title": None, "symbolType": "stroke", "symbolStrokeWidth": 2.5}
    ends = curve.most or (None, None)
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 420,
        "height": 200,
        "data": {"values": curve.rows},
        "mark": {
            "type": "line",
            "point": {"filled": True, "size": 28} if few else False,
            "strokeWidth": 2,
            "clip": ends[1] is not None,
        },
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": curve.x, "scale": _until(ends[0])},
            "y": {"field": "y", "type": "quantitative", "title": curve.y, "scale": _until(ends[1])},
            "color": {"field": "line", "type": "nominal", "scale": scale, "legend": legend},
            "strokeDash": {"field": "line", "type": "nominal", "scale": dash, "legend": legend},
        },
        "config": {
            "background": None,
            "font": "inherit",
            "view": {"stroke": None},
            "axis": {
                "labelColor": INK,
                "titleColor": INK,
                "domainColor": INK,
                "tickColor": INK,
                "gridColor": INK,
                "gridOpacity": 0.15,
                "labelFontSize": 13,
                "titleFontSize": 13,
                "titleFontWeight": 500,
            },
            "legend": {"labelColor": INK, "labelFontSize": 13, "labelLimit": 300},
        },
    }
    if len(names) == 1:
        spec["encoding"]["color"]["legend"] = spec["encoding"]["strokeDash"]["legend"] = None  # type: ignore[index]
    made: str = vl_convert.vegalite_to_svg(spec)
    made = re.sub(r"(\d+\.\d\d)\d+", r"\1", made)
    made = re.sub(
        r'<svg class="marks" width="\d+" height="\d+"',
        f'<svg role="img" aria-label="{escape(curve.says)}"',
        made,
    )
    made = made.replace(INK, "currentColor")
    for number, colour in enumerate(LINES, 1):
        made = made.replace(colour, f"var(--curve-{number})")
    return made


def _until(end: float | None) -> dict[str, Any]:
    return {"nice": False} if end is None else {"nice": False, "domain": [0, end]}


class Settings(Directive):
    """The parameters of a mechanism, folded up."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """List it."""
        of = next(m for m in inprofile.mechanisms() if m.name == self.arguments[0])
        if not of.parameters:
            return [nodes.paragraph(text="It has no settings.")]
        rows = [
            (
                code(p.name),
                escape(p.default or "required"),
                escape(f"{p.doc} ({p.bounds})" if p.bounds else p.doc),
            )
            for p in of.parameters
        ]
        listed = table(("key", "default", "meaning"), rows)
        summary = f"<summary>Settings of {code(of.name)}</summary>"
        return [html(f"<details class='settings'>{summary}{listed}</details>")]


class Written(Directive):
    """Markdown that is made, and read as if it stood in the page."""

    def lines(self) -> list[str]:
        """The text of the page."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Read it."""
        found = nodes.Element()
        lines = StringList(self.lines(), source=str(self.state.document["source"]))
        self.state.nested_parse(lines, self.content_offset, found, match_titles=True)
        return list(found.children)


class Others(Written):
    """Every mechanism of a kind that the page has no section of."""

    required_arguments = 1

    def lines(self) -> list[str]:
        """A section each: summary, source, picture and settings."""
        page = Path(self.state.document["source"]).read_text("utf-8")
        named = set(re.findall(r"^```\{(?:curve|settings)\} (\w+)", page, re.MULTILINE))
        lines: list[str] = []
        for other in inprofile.mechanisms():
            if other.kind == self.arguments[0] and other.name not in named:
                lines += [f"## `{other.name}`", "", other.summary, "", f"Source: {other.source}.", ""]
                lines += [f"```{{curve}} {other.name}", "```", "", f"```{{settings}} {other.name}", "```", ""]
        return lines


class Commands(Written):
    """Every command with its options."""

    def lines(self) -> list[str]:
        """A section each."""
        import typer

        from inprofile.cli import app
        from inprofile.cli.commands import COMMANDS

        group: Any = typer.main.get_command(app)
        lines: list[str] = []
        kind = ""
        for name, command in COMMANDS.items():
            if command.group != kind:
                kind = command.group
                lines += [f"## {kind}", ""]
            loaded = group.commands[name]
            below = getattr(loaded, "commands", None)
            every = {f"{name} {inner}": one for inner, one in below.items()} if below else {name: loaded}
            for path, one in every.items():
                rows = [(code(_names(p)), escape(p.help or "")) for p in one.params if not p.hidden]
                lines += [f"### `inprofile {path}`", "", *(one.help or "").splitlines(), ""]
                lines += ["```{raw} html", table((), rows), "```", ""]
        return lines


def _names(parameter: Any) -> str:
    options = parameter.param_type_name == "option"
    return ", ".join(parameter.opts) if options else parameter.metavar or parameter.name.upper()


def html(text: str) -> nodes.Node:
    """As it is."""
    return nodes.raw("", text, format="html")


def code(text: str) -> str:
    """A word of the program."""
    return f"<code>{escape(text)}</code>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], name: str = "") -> str:
    """A table of HTML cells that scrolls by itself where it is too wide."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    head = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<div class='wide'><table class='{name}'>{head}<tbody>{body}</tbody></table></div>"


__all__ = ["html", "setup", "svg", "table"]
