"""The page: a paper's own sections and charts put into the common frame, everything inline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from ..judge import JudgedComparison, JudgedNumber, Verdict, aligned, per
from ..quantity import number, quantity

if TYPE_CHECKING:
    from ..reproduce import Report

__all__ = ["figure", "render"]

_TEMPLATES = Path(__file__).parent / "templates"

#: A sign for each verdict, so that the matrix can be read without its colours.
SIGNS = {"reproduced": "✓", "in_part": "◐", "not_reproduced": "✗", "undecidable": "?"}


def render(report: Report) -> str:
    """The whole page as HTML; it needs no network and no other file."""
    paper = report.paper
    own = paper.module("page")
    charts: dict[str, Mapping[str, Any]] = {}
    context = own.context(report, charts)
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.FileSystemLoader(paper.folder), jinja2.FileSystemLoader(_TEMPLATES)]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["figures"] = figure
    return environment.get_template("page.html.j2").render(
        report=report,
        paper=paper,
        about=paper.about,
        claims=_claims(report),
        tally=_tally(report),
        compared=sum(len(j.comparisons) for j in report.judged),
        signs=SIGNS,
        css=Markup(_read("page.css")),  # noqa: S704 (our own file)
        script=Markup(_read("page.js")),  # noqa: S704 (our own file)
        vega=Markup(_vega()),  # noqa: S704 (a packaged library)
        charts=_embedded(charts),
        **context,
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and the embedder in one script."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _embedded(data: object) -> Markup:
    """JSON for a script element, where only `</` and `<!--` could end it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (escaped in this line)


def figure(value: float, unit: str = "", digits: int = 4) -> str:
    """A number with its unit, as the page writes it.

    >>> figure(0.78612), figure(494e3, "bit/s")
    ('0.7861', '494 kbit/s')
    """
    return quantity(value, unit, digits).replace("-", "−")


def _claims(report: Report) -> list[dict[str, Any]]:
    """Every claim with its verdicts, a set-up each."""
    plain = {(j.claim, j.setup): j for j in report.judged}
    jittered = {(j.claim, j.setup): j for j in report.judged_with_jitter}
    return [
        {
            "id": claim["id"],
            "text": claim["text"],
            "says": claim.get("says"),
            "setups": [
                {
                    "setup": setup,
                    "judged": plain[claim["id"], setup["id"]],
                    "jitter": jittered[claim["id"], setup["id"]],
                    "comparisons": [_row(c) for c in plain[claim["id"], setup["id"]].comparisons],
                    "numbers": [_number(n) for n in plain[claim["id"], setup["id"]].numbers],
                }
                for setup in report.paper.setups
            ],
        }
        for claim in report.paper.claims
    ]


_OUTCOMES = {"holds": "holds", "fails": "does not hold", "undecidable": "cannot be decided"}


def _row(judged: JudgedComparison) -> dict[str, Any]:
    c = judged.comparison
    lo, hi = judged.interval
    factor, name = per(c.unit, max(abs(lo), abs(hi), abs(judged.mean)))
    shown = aligned(judged.mean / factor, lo / factor, hi / factor)
    return {
        "label": c.label,
        "topology": c.topology,
        "mean": f"{shown[0]} {name}".rstrip(),
        "interval": f"{shown[1]} to {shown[2]}",
        "p": "< 0.001" if judged.p_holm < 0.001 else number(judged.p_holm, 2),
        "outcome": judged.outcome,
        "words": "the opposite is shown" if judged.opposite else _OUTCOMES[judged.outcome],
        "obstacle": c.obstacle if judged.outcome == "undecidable" else None,
    }


def _number(judged: JudgedNumber) -> dict[str, Any]:
    n = judged.number
    lo, hi = judged.prediction
    factor, name = per(n.unit, max(abs(lo), abs(hi), abs(judged.mean)))
    shown = aligned(judged.mean / factor, lo / factor, hi / factor)
    return {
        "label": n.label,
        "topology": n.topology,
        "paper": figure(n.paper, n.unit),
        "where": n.where,
        "mean": f"{shown[0]} {name}".rstrip(),
        "prediction": f"{shown[1]} to {shown[2]}",
        "inside": judged.inside,
    }


def _tally(report: Report) -> list[dict[str, Any]]:
    """How many claims got which verdict, by set-up."""
    return [
        {
            "setup": setup,
            "counts": [
                (verdict, sum(j.setup == setup["id"] and j.verdict == verdict for j in report.judged))
                for verdict in Verdict
            ],
        }
        for setup in report.paper.setups
    ]
