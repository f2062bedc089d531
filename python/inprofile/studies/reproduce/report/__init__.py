"""Reports: an HTML page a paper that opens anywhere without a network, its data, and an overview of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ....charts.page import write_figures
from ....run.storage import record_lines, replace_files
from .data import advised_experiment, measures_csv, picture_svg, report_json
from .overview import NAME as MEETINGS
from .overview import experiments, meetings, write_overview
from .page import compose, render

if TYPE_CHECKING:
    from ....papers.advice import Advice
    from ....papers.report import Report

__all__ = ["render", "report_json", "write", "write_overview"]


def write(report: Report, folder: Path, figures: str | None = None) -> Path:
    """Write `index.html`, `results.json` and `measures.csv` into `folder`; return the page's path.

    Of a paper with advice also `experiment.toml`, the experiment that it speaks of, and `advice.svg`; of one
    whose experiments have one or two kinds of senders `meetings.json` and `experiments/` (see `meetings`).

    `figures`, "svg" or "pdf", adds `figures/` with every chart, fit to print.
    """
    # All of it first: who is interrupted here keeps the earlier report whole.
    composed = compose(report)
    advice: Advice | None = composed[0]["advice"]
    data = json.dumps(report_json(report), ensure_ascii=False, allow_nan=False, indent=1)
    page = folder / "index.html"
    texts = {
        folder / "results.json": data + "\n",
        folder / "measures.csv": measures_csv(report),
        page: render(report, composed),
    }
    if advice is not None:
        texts[folder / "experiment.toml"] = advised_experiment(report, advice)
        texts[folder / "advice.svg"] = picture_svg(advice.picture)
    folder.mkdir(parents=True, exist_ok=True)
    if met := meetings(report):
        texts[folder / MEETINGS] = record_lines({"paper": report.paper.name, "meetings": met})
        (folder / "experiments").mkdir(exist_ok=True)
        texts.update({folder / "experiments" / name: text for name, text in experiments(report).items()})
    replace_files({path: text.encode() for path, text in texts.items()})
    if figures is not None:
        write_figures(composed[1], folder / "figures", figures)
    return page
