"""Paper A's advice: ARD beside blind drops at its rate, where the flows are unfair and where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ...metrics.measures import Array, Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known
from ..advice_today import Figure
from .sweeps import kept, reduce

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture", "today"]

FULL = "full-core-buffer"
#: An index this low: one of the four flows is all but locked out.
STUCK = 0.6
#: A window with which no flow is locked out.
WIDE = "100 packets"
LINES = {"rio": "No edge marker", "ard": "ARD", "placebo": "Blind drops"}


def figures(report: Report) -> dict[str, float]:
    """Jain's index with four flows, and with twenty: without an edge marker, with ARD, with blind drops."""

    def fi(setup: str, scheme: str, variant: str = "", topology: str = "four-flows") -> Array:
        found: Array = report.cell(setup, topology, scheme, variant)["fi"]
        return found

    first = report.paper.setups[0].id
    none, ard = (fi(first, scheme) for scheme in ("rio", "ard"))
    none_full, ard_full, blind_full = (fi(FULL, scheme) for scheme in LINES)
    jitter_full = fi(FULL, "rio", "jitter")
    ard_twenty, blind_twenty = (fi(FULL, s, topology="twenty-flows") for s in ("ard", "placebo"))
    return {
        **known("none", none, SHARE),
        "ard": float(ard.mean()),
        **known("gain", ard - none),
        "none_full": float(none_full.mean()),
        "ard_full": float(ard_full.mean()),
        "blind_full": float(blind_full.mean()),
        **known("lead_full", ard_full - blind_full),
        **known("lead_twenty", ard_twenty - blind_twenty),
        **known("helps", blind_full - none_full),
        "runs": float(none_full.size),
        "stuck": float((none_full < STUCK).sum()),
        "stuck_blind": float((blind_full < STUCK).sum()),
        "jitter_full": float(jitter_full.mean()),
        **known("as_ard", jitter_full - ard_full),
        **_wide(report),
    }


def _wide(report: Report) -> dict[str, float]:
    """The index in the full buffer with a wide window: of this run's sweep, or of the one kept."""
    panels = [*reduce(report.paper, report.cells)["panels"], *kept()["panels"]]
    panel = next(p for p in panels if (p["sweep"], p["setup"]) == ("window", FULL))
    [point] = [p for p in panel["points"] if p["value"] == WIDE]
    names = {"rio": "none", "ard": "ard", "placebo": "blind"}
    return {
        f"{names[scheme]}_wide{end}": figure
        for scheme, figures in point["schemes"].items()
        if scheme in names
        for end, figure in zip(("", "_lo", "_hi"), figures["fi"], strict=True)
    }


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The index of four flows of one of today's senders, before RIO and before a full drop-tail buffer."""

    def fi(setup: str, scheme: str) -> Array:
        return cells[Cell(setup, "four-flows", scheme)]["fi"]

    first = paper.setups[0].id
    none, ard = (fi(first, scheme) for scheme in ("rio", "ard"))
    none_full, ard_full, blind_full = (fi(FULL, scheme) for scheme in LINES)
    return [
        Figure("none", "Jain's index, RIO and no edge marker (advised)", none, bounds=SHARE),
        Figure("ard", "Jain's index, RIO and ARD", ard, bounds=SHARE),
        Figure("gain", "what ARD adds to RIO's index", ard - none),
        Figure(
            "none_full", "Jain's index, full drop-tail buffer and no edge marker", none_full, bounds=SHARE
        ),
        Figure("ard_full", "Jain's index, full drop-tail buffer and ARD", ard_full, bounds=SHARE),
        Figure("blind_full", "Jain's index, full drop-tail buffer and blind drops", blind_full, bounds=SHARE),
        Figure("helps", "what ARD adds to the full buffer's index", ard_full - none_full),
        Figure("lead_full", "ARD's index less that of blind drops, full buffer", ard_full - blind_full),
    ]


def picture(report: Report) -> Mapping[str, Any]:
    """The index of every run in the full buffer."""
    rows = [
        draw.row(title, m["fi"], m.seeds)
        for scheme, title in LINES.items()
        if (m := report.cell(FULL, "four-flows", scheme))
    ]
    low = min(v for row in rows for v in row["values"])
    shown = list(LINES.values())
    return draw.dots(rows, shown, x="Jain's fairness index", paper={}, domain=(round(low - 0.02, 2), 1.002))
