"""A suite's report: the checklist with our figures, each scenario as a table beside drop-tail, its graphs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...charts.page import Charts, environment, page_parts
from ...charts.shapes import colour_of
from ...run.storage import FolderInUse, replace_files
from ..reproduce.report import write_overview
from ..reproduce.report.overview import check_overview, read_results
from .charts import charts_of
from .coexistence import beside_published, maps, overview
from .outcome import Suite
from .published import Published, published
from .scenarios import Definition, files_of
from .tables import as_text, checklist, pair_figures, settings_table, tables

__all__ = ["earlier", "render", "write"]

_FILES = ("results.json", "measures.csv", "report.txt", "index.html")


def write(suite: Suite, out: Path) -> Path:
    """Write the page, its data and the experiment files to `<out>/<suite>`; return the page's path.

    Raises OSError where the disk refuses; an earlier report is then as it was.
    """
    folder = out / suite.plan.about.name
    data = json.dumps(suite.to_json(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    # All of it first: who is interrupted here keeps the earlier report whole.
    texts = (data, measures_csv(suite), as_text(suite) + "\n", render(suite))
    files = files_of(suite.plan.about, folder / "files")
    (folder / "files").mkdir(parents=True, exist_ok=True)
    replace_files(files | {folder / n: text.encode() for n, text in zip(_FILES, texts, strict=True)})
    write_overview(out)
    return folder / "index.html"


def earlier(out: Path, name: str) -> dict[str, Any] | None:
    """The inputs of a suite's report in `out`, as its `results.json` has them; None where there is none.

    Raises FolderInUse where its files would be written over files of something else.
    """
    check_overview(out)
    folder = out / name
    taken = [n for n in _FILES if (folder / n).exists()]
    if not taken:
        return None
    data = read_results(folder)
    if data is None or data.get("suite") != name:
        raise FolderInUse(
            f"{folder / taken[0]} would be written over, and {folder} is no report of the suite {name}:"
            " choose another place"
        )
    return data


def measures_csv(suite: Suite) -> str:
    """Every figure of every run, a row each."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["scenario", "variant", "contestant", "parameter", "value", "measure", "seed", "measured"])
    for cell, found in suite.found.items():
        first = (cell.scenario, cell.variant, cell.contestant, *(cell.setting or ("", "")))
        for name, values in found.values.items():
            for seed, x in zip(found.seeds, values, strict=True):
                if np.isfinite(x):
                    out.writerow([*first, name, seed, repr(float(x))])
    return text.getvalue()


def render(suite: Suite) -> str:
    """The whole page as HTML; it needs no network and no other file."""
    charts: Charts = {}
    titles = [c.title for c in suite.plan.contestants]
    known = published(suite.plan.about.folder)
    views = [
        {
            "definition": d,
            "tables": list(tables(suite, d)),
            "why": suite.plan.absent.get((d.id, "")),
            "absent": [(suite.title(c), why) for (s, c), why in suite.plan.absent.items() if s == d.id and c],
            "files": suite.plan.about.texts(d),
            "charts": list(charts_of(suite, d, titles, charts)),
            **_mapped(suite, d, known),
        }
        for d in suite.plan.definitions
    ]
    return (
        environment(Path(__file__).parent, charts=charts)
        .get_template("page.html.j2")
        .render(
            suite=suite,
            views=views,
            checklist=checklist(suite),
            settings=settings_table(suite),
            words=suite.plan.about.words,
            legend=list(zip(titles, colour_of(titles), strict=True)),
            **page_parts(charts),
        )
    )


def _mapped(suite: Suite, definition: Definition, known: Sequence[Published]) -> dict[str, Any]:
    """Maps of a scenario that is a matrix, and what was published; empty lists of others."""
    if definition.matrix is None:
        return {"maps": [], "overview": [], "published": [], "sources": []}
    beside = beside_published(suite, definition, known)
    return {
        "maps": [m | pair_figures(suite, definition, m["points"]) for m in maps(suite, definition)],
        "overview": overview(suite, definition),
        "published": beside,
        "sources": list({r["source"].id: r["source"] for r in beside}.values()),
    }
