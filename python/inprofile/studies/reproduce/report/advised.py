"""What lies beside a page for who takes its advice: the experiment as one file, and the picture alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....charts.files import SHOWN, svg
from ....experiment.dump import written
from ....experiment.scenario import load
from ....papers.advice import Advice

if TYPE_CHECKING:
    from ....papers.report import Report

__all__ = ["advised_experiment", "picture_svg"]


def advised_experiment(report: Report, advice: Advice) -> str:
    """The experiment that the settings are of, as one file to run or to change."""
    job = report.jobs[advice.experiment]
    scenario = load(report.paper.folder / job.file).with_(job.values)
    of = str(advice.experiment).replace(" / ", ", ")
    head = f"{report.paper.short}: {of}. Run it: inprofile run experiment.toml"
    return written(scenario, head)


def picture_svg(spec: Mapping[str, Any]) -> str:
    """The picture, for pages that draw nothing themselves."""
    return svg(spec, 320, SHOWN)
