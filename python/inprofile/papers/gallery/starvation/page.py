"""How far apart two flows of one sender are, over the jitter of one of them: a curve a sender."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....charts import kinds as draw
from ... import Cell, defaults

if TYPE_CHECKING:
    from ...report import Report


def context(report: Report, charts: MutableMapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The common part of the page, with the curve first; ratios run from 1 to hundreds: powers of ten."""
    shown = defaults.context(report, charts)
    # The others are no point of the curve: their path is longer, or their delay varies in another way.
    jitters = {t.id: t.id.replace("-", " ") for t in report.paper.topologies if t.id.count("-") == 1}
    curves = []
    for setup in report.setups:
        rows = [
            draw.row(scheme.title, np.log10(cell["ratio"]), cell.seeds, value=value)
            for scheme in report.paper.schemes
            for topology, value in jitters.items()
            for cell in [report.cells[Cell(setup.id, topology, scheme.id)]]
        ]
        chart = f"curve-{setup.id}"
        charts[chart] = draw.response(
            rows,
            list(jitters.values()),
            [scheme.title for scheme in report.paper.schemes],
            x="jitter of one flow",
            y="ratio of goodputs (log10)",
        )
        curves.append({"chart": chart, "measure": "Goodputs apart", "setup": setup, "of": "over jitter"})
    return {**shown, "figures": [*curves, *shown["figures"]]}
