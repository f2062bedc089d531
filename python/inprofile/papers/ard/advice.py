"""Paper A's advice: ARD beside blind drops at its rate, where the flows are unfair and where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

FULL = "full-core-buffer"
LINES = {"rio": "No edge marker", "ard": "ARD", "placebo": "Blind drops"}


def figures(report: Report) -> dict[str, float]:
    """Jain's index with four flows: without an edge marker, with ARD, with blind drops."""

    def fi(setup: str, scheme: str, variant: str = "") -> float:
        return float(report.cell(setup, "four-flows", scheme, variant)["fi"].mean())

    first = report.paper.setups[0].id
    none, ard, none_full, ard_full, blind_full = (
        fi(first, "rio"),
        fi(first, "ard"),
        fi(FULL, "rio"),
        fi(FULL, "ard"),
        fi(FULL, "placebo"),
    )
    jitter_full = fi(FULL, "rio", "jitter")
    return {
        "none": none,
        "ard": ard,
        "gain": ard - none,
        "none_full": none_full,
        "ard_full": ard_full,
        "blind_full": blind_full,
        "lead_full": ard_full - blind_full,
        "jitter_full": jitter_full,
        "unstuck": jitter_full - none_full,
    }


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
