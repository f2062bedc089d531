"""How much each parameter that had to be assumed matters: charts and a sentence for each sweep."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...quantity import number
from ...report import charts as draw
from ..measures import Measures
from .rows import SCHEMES, side

if TYPE_CHECKING:
    from ...reproduce import Report

__all__ = ["sweeps"]

Charts = MutableMapping[str, Mapping[str, Any]]


def sweeps(report: Report, charts: Charts) -> list[dict[str, Any]]:
    """How much each assumed parameter matters: fairness and IN rate at each of its values."""
    shown = []
    for sweep in report.paper.sweeps:
        panels = []
        for setup in report.paper.setups:
            for topology in report.paper.topologies:
                cells = {
                    (cell.value, cell.scheme): m
                    for cell, m in report.cells.items()
                    if (cell.sweep, cell.setup, cell.topology) == (sweep["id"], setup["id"], topology["id"])
                }
                if cells:
                    panels.append(_sweep_panel(sweep, setup, topology, cells, charts))
        if panels:
            shown.append({"sweep": sweep, "panels": panels, "seeds": panels[0]["seeds"]})
    return shown


def _sweep_panel(
    sweep: Mapping[str, Any],
    setup: Mapping[str, Any],
    topology: Mapping[str, Any],
    cells: Mapping[tuple[str, str], Measures],
    charts: Charts,
) -> dict[str, Any]:
    values = list(dict.fromkeys(value for value, _ in cells))
    schemes = [SCHEMES[s] for s in SCHEMES if any(scheme == s for _, scheme in cells)]
    assumed = sweep.get("assumed", {}).get(setup["id"], {}).get(topology["id"])
    name = f"sweep-{sweep['id']}-{setup['id']}-{topology['id']}"
    shown = {}
    for measure, label, factor in (("fi", "fairness index", 1.0), ("lambda_in", "IN rate (kbit/s)", 1e3)):
        rows = [
            draw.row(SCHEMES[scheme], m[measure] / factor, value=value)
            for (value, scheme), m in cells.items()
        ]
        charts[f"{name}-{measure}"] = draw.response(
            rows, values, schemes, x=sweep["title"], y=label, assumed=assumed
        )
        shown[measure] = f"{name}-{measure}"
    first = next(iter(cells.values()))
    return {
        "setup": setup,
        "topology": topology,
        "charts": shown,
        "seeds": len(first.seeds),
        "words": _sweep_words(values, cells),
    }


def _sweep_words(values: list[str], cells: Mapping[tuple[str, str], Measures]) -> str:
    """How far fairness moves with the parameter, and where the paper's order RIO < ARM < ARD shows."""
    parts = []
    for scheme, title in SCHEMES.items():
        means = [float(cells[v, scheme]["fi"].mean()) for v in values if (v, scheme) in cells]
        if means:
            parts.append(f"{title} {number(min(means), 3)} to {number(max(means), 3)}")
    text = f"Mean fairness: {', '.join(parts)}."
    if all((v, s) in cells for v in values for s in ("rio", "arm", "ard")):
        ordered = [v for v in values if _rises(cells[v, "rio"], cells[v, "arm"], cells[v, "ard"])]
        where = f"at {', '.join(ordered)}" if ordered else "at none of these values"
        text += f" RIO < ARM < ARD (both paired 95 % intervals above 0): {where}."
    return text


def _rises(*steps: Measures) -> bool:
    """Whether the fairness index rises at every step: the paired 95 % interval lies above 0."""
    return all(side([float(x) for x in b["fi"] - a["fi"]]) > 0 for a, b in pairwise(steps))
