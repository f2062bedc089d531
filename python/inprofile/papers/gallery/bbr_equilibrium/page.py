"""What a flow of either kind gets, over how many are BBR: where the lines cross nobody gains by switching."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from ....charts import kinds as draw
from ... import Cell, defaults
from .claims import FLOWS

if TYPE_CHECKING:
    from ...report import Report


def context(report: Report, charts: MutableMapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The common part of the page, with a curve for each buffer first."""
    shown = defaults.context(report, charts)
    curves = []
    for setup in report.setups:
        for topology in report.paper.topologies:
            rows = [
                draw.row(name, cell[f"{group}.goodput"] / 1e6, cell.seeds, value=str(k))
                for k in range(FLOWS + 1)
                for group, name, there in (("bbr", "BBR", k > 0), ("cubic", "CUBIC", k < FLOWS))
                if there
                for cell in [report.cells[Cell(setup.id, topology.id, str(k))]]
            ]
            chart = f"curve-{setup.id}-{topology.id}"
            charts[chart] = draw.response(
                rows,
                [str(k) for k in range(FLOWS + 1)],
                ["BBR", "CUBIC"],
                x="BBR flows of ten",
                y="goodput of a flow (Mbit/s)",
            )
            what = "Goodput over the share of BBR"
            curves.append({"chart": chart, "measure": what, "setup": setup, "of": topology.title})
    return {**shown, "figures": [*curves, *shown["figures"]]}
