"""The overview: every paper's verdicts at a glance, and the comparison, from the results beside it."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ....charts.page import asset, environment
from ....metrics.glossary import entries
from ....papers.judge import Verdict
from ....run.storage import FolderInUse, replace_text
from ...compare.advice import MARGINS
from ...compare.brief import CAPTION, HEADS, WORDS, brief
from .meetings import write_page
from .page import SIGNS, counts_of

if TYPE_CHECKING:
    from ...compare.advice import Advice

#: By file, the title of the page.
_TITLES = {
    "index.html": "Claims and verdicts",
    "glossary.html": "Glossary",
    "meetings.html": "Who meets whom",
}


def write_overview(folder: Path) -> Path:
    """Write `index.html` and the glossary into `folder`, from the `results.json` of each paper's folder."""
    found = [read_results(path.parent) for path in sorted(folder.glob("*/results.json"))]
    papers = [_row(data) for data in found if data is not None and "claims" in data]
    comparison = _comparison(folder)
    text = (
        environment()
        .get_template("overview.html.j2")
        .render(
            papers=papers,
            comparison=comparison,
            advice=(advised := _advice(comparison)),
            brief=brief(advised),
            heads=HEADS,
            words=WORDS,
            caption=CAPTION,
            fairness_margin=MARGINS["fairness"],
            primary={v: sum(p["by_setup"][0]["counts"][v] for p in papers if p["by_setup"]) for v in Verdict},
            signs=SIGNS,
            verdicts=[(v, sum(p["counts"][v] for p in papers)) for v in Verdict],
            kept=[(v, sum(p["kept"][v] for p in papers)) for v in Verdict],
            meetings=write_page(folder),
            dates=sorted({p["committed"]["date"] for p in papers if any(p["kept"].values())}),
            css=Markup(asset("page.css")),  # noqa: S704 (our own file)
        )
    )
    page = folder / "index.html"
    replace_text(page, text)
    replace_text(folder / "glossary.html", _glossary())
    return page


def check_overview(folder: Path) -> None:
    """Raise FolderInUse where the overview would be written over pages of something else."""
    for name, title in _TITLES.items():
        page = folder / name
        if page.exists() and f"<title>{title}</title>" not in page.read_text("utf-8", "replace"):
            raise FolderInUse(
                f"{page} would be written over, and is none of Inprofile's: choose another place"
            )


def read_results(folder: Path) -> dict[str, Any] | None:
    """A report's `results.json`; None where it is no object, and so of another program."""
    try:
        data = json.loads((folder / "results.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _glossary() -> str:
    """The page that reports link their words to."""
    return (
        environment()
        .get_template("glossary.html.j2")
        .render(
            sections=[(section, list(rows)) for section, rows in groupby(entries(), lambda e: e.section)],
            css=Markup(asset("page.css")),  # noqa: S704 (our own file)
        )
    )


def _comparison(folder: Path) -> dict[str, Any] | None:
    """The conclusion of the comparison of schemes, if there is one."""
    found = read_results(folder / "compare")
    return found if found is not None and "advice" in found else None


def _advice(comparison: dict[str, Any] | None) -> list[Advice]:
    """What to use when: of the comparison beside the page if it is whole, else of the last whole one."""
    from ...compare.advice import committed

    if comparison is None or comparison["quick"]:
        return committed()
    rows: list[Advice] = comparison.get("advice", [])
    # Reports of an earlier version do not say what was shown to be as good.
    return rows if rows and all("undecided" in row for row in rows) else committed()


def _row(data: dict[str, Any]) -> dict[str, Any]:
    """One paper: its claims, each with a verdict in every set-up."""
    setups = data["setups"]
    claims: dict[str, dict[str, Any]] = {}
    for c in data["claims"]:
        once = c["id"] in data.get("once", ())
        row = claims.setdefault(c["id"], {"id": c["id"], "text": c["text"], "once": once, "verdicts": {}})
        row["verdicts"][c["setup"]] = {
            "verdict": Verdict(c["verdict"]),
            "kept": c.get("source") == "committed",
            "comparisons": c["comparisons"] if c["comparisons"]["total"] else None,
        }
    # Reports of an earlier version have what was run only, and do not say so.
    sources = ("run", "committed")
    ran, kept = ([c for c in data["claims"] if c.get("source", "run") == source] for source in sources)
    return {
        **{key: data[key] for key in ("paper", "title", "authors", "year", "quick", "version")},
        "committed": data.get("committed"),
        "short": data["short"],
        # Reports of an earlier version have none.
        "use": _use(data.get("advice")),
        "setups": setups,
        "claims": list(claims.values()),
        "today": counts_of(data["today"]) if data.get("today") else None,
        # What was run here and what was not are never added up.
        "counts": _counts(ran),
        "kept": _counts(kept),
        "by_setup": [
            {
                "setup": s,
                "counts": _counts([c for c in ran if c["setup"] == s["id"]]),
                "kept": _counts([c for c in kept if c["setup"] == s["id"]]),
            }
            for s in setups
        ],
    }


def _use(advice: dict[str, Any] | None) -> str | None:
    """Whether to use it, in a sentence; None where its runs do not bear that out."""
    return None if advice is None or "use" in advice["unmet"] else str(advice["sentences"]["use"])


def _counts(claims: list[dict[str, Any]]) -> dict[Verdict, int]:
    return {v: sum(c["verdict"] == v for c in claims) for v in Verdict}
