"""Paper B's advice: contracts kept under RIO and RI+O with small buckets, and with those printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ...charts.curves import curve
from ..advice import known
from .claims import profiles, titles

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture"]

SMALL = "fits-rates"
#: RIO with RI+O's own thresholds for all OUT packets: a sweep and its value.
TIGHT, TIGHT_TITLE = ("out", "10, 30, 0.1"), "RIO, lower thresholds"


def figures(report: Report) -> dict[str, float]:
    """Shares of contracts kept, what best effort gets (kbit/s) and how far the link is used."""
    contracts = profiles(report.paper)
    largest = max(contracts, key=lambda group: contracts[group])
    rio, plus = (report.cell(SMALL, "table-1", s) for s in titles(report.paper))
    tight = report.cell(SMALL, "table-1", "rio", "", *TIGHT)
    printed = report.cell(report.paper.setups[0].id, "table-1", "rio")
    kept = [known("least_rio", printed[f"throughput:{g}"] / r) for g, r in contracts.items()]
    return {
        **known("big_rio", rio[f"throughput:{largest}"] / contracts[largest]),
        **known("big_tight", tight[f"throughput:{largest}"] / contracts[largest]),
        **known("big_plus", plus[f"throughput:{largest}"] / contracts[largest]),
        **min(kept, key=lambda found: found["least_rio"]),
        "be_rio": float(rio["throughput:be"].mean()) / 1e3,
        "be_plus": float(plus["throughput:be"].mean()) / 1e3,
        **known("price", (rio["throughput:be"] - plus["throughput:be"]) / 1e3),
        "used_rio": float(rio["utilisation"].mean()),
        "used_plus": float(plus["utilisation"].mean()),
        **known("less_used", rio["utilisation"] - plus["utilisation"]),
    }


def picture(report: Report) -> Mapping[str, Any]:
    """Throughput over contract with small buckets, and the line on which a contract is just kept."""
    names = titles(report.paper)
    contracts = profiles(report.paper)
    rows = [
        draw.row(title, 100 * report.cell(SMALL, "table-1", scheme)[f"throughput:{g}"] / r, x=r / 1e3)
        for scheme, title in names.items()
        for g, r in contracts.items()
    ]
    tight = report.cell(SMALL, "table-1", "rio", "", *TIGHT)
    rows += [
        draw.row(TIGHT_TITLE, 100 * tight[f"throughput:{g}"] / r, x=r / 1e3) for g, r in contracts.items()
    ]
    ends = [
        {"scheme": "Contract", "x": r / 1e3, "mean": 100, "lo": 100, "hi": 100} for r in contracts.values()
    ]
    shown = [*names.values(), TIGHT_TITLE, "Contract"]
    return curve([*rows, *ends], shown, x="contract (kbit/s)", y="of the contract (%)")
