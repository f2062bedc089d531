"""Paper B's advice: contracts kept under RIO and RI+O with small buckets, and with those printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Array, Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known
from ..advice_today import Figure
from .besides import best_effort_left, is_hurt
from .experiments import UNIT
from .shared import points, printed_table, profiles, titles

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["figures", "picture", "today"]

SMALL = "fits-rates"
#: The weight that RED usually has, and a bucket of a dozen round trips (bytes at 270 kbit/s): of sweeps.
SLOW, LARGER = "0.002", 40_000
#: Fig. 8: contracts of 2, 1 and 0.5 Mbit/s.
CONTRACTS = {"two": 2.0, "one": 1.0, "half": 0.5}
#: Milliseconds that a packet of 576 B waits for at 10 Mbit/s.
WAIT = 576 * 8 / 10e6 * 1e3
#: RIO with RI+O's own thresholds for all OUT packets: a sweep and its value.
TIGHT, TIGHT_TITLE = ("out", "10, 30, 0.1"), "RIO, lower thresholds"


def figures(report: Report) -> dict[str, float]:
    """Shares of contracts kept, what best effort gets (kbit/s) and how far the link is used."""
    contracts = profiles(report.paper)
    largest = max(contracts, key=lambda group: contracts[group])
    rio, plus = (report.cell(SMALL, "table-1", s) for s in titles(report.paper))
    tight = report.cell(SMALL, "table-1", "rio", "", *TIGHT)
    printed = report.cell(report.paper.setups[0].id, "table-1", "rio")
    printed_plus = report.cell(report.paper.setups[0].id, "table-1", "rio-plus-out")
    slow_rio, slow = (report.cell(SMALL, "table-1", s, "", "w_q", SLOW) for s in titles(report.paper))
    larger = report.cell(SMALL, "table-1", "rio", "", "bucket", str(LARGER))
    left = best_effort_left(report.paper, report.cells, report.paper.setups[0].id)
    kept = [known("least_rio", printed[f"throughput:{g}"] / r) for g, r in contracts.items()]
    return {
        **known("big_rio", rio[f"throughput:{largest}"] / contracts[largest]),
        **known("big_tight", tight[f"throughput:{largest}"] / contracts[largest]),
        **known("big_plus", plus[f"throughput:{largest}"] / contracts[largest]),
        **known("slow_plus", slow[f"throughput:{largest}"] / contracts[largest]),
        **known("slow_rio", slow_rio[f"throughput:{largest}"] / contracts[largest]),
        **{f"printed_{s.replace('-', '_')}": _printed(report, s, largest) for s in titles(report.paper)},
        **{
            f"{name}_{words}": _kept_up_to(report, profile, scheme)
            for name, profile in CONTRACTS.items()
            for words, scheme in (("rio", "rio"), ("plus", "rio-plus-out"))
        },
        "trips": LARGER * 8 / UNIT / 0.1,
        "kilobytes": LARGER * contracts[largest] / UNIT / 1e3,
        **known("bucket_rio", larger[f"throughput:{largest}"] / contracts[largest]),
        "small_wait": float(rio["queue_mean"].mean()) * WAIT,
        "larger_wait": float(larger["queue_mean"].mean()) * WAIT,
        "printed_full": float(printed["utilisation"].mean()),
        "printed_used": float(printed_plus["utilisation"].mean()),
        **known("printed_less", printed["utilisation"] - printed_plus["utilisation"]),
        **min(kept, key=lambda found: found["least_rio"]),
        "hurt": float(sum(map(is_hurt, left))),
        "kept_by_rio": float(len(left)),
        **_drawn(report),
        "be_rio": float(rio["throughput:be"].mean()) / 1e3,
        "be_plus": float(plus["throughput:be"].mean()) / 1e3,
        **known("price", (rio["throughput:be"] - plus["throughput:be"]) / 1e3),
        "used_rio": float(rio["utilisation"].mean()),
        "used_plus": float(plus["utilisation"].mean()),
        **known("less_used", rio["utilisation"] - plus["utilisation"]),
    }


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """What the largest contract and best effort get of one of today's senders, with the advised buckets."""
    contracts = profiles(paper)
    largest = max(contracts, key=lambda group: contracts[group])
    rio, plus = (cells[Cell(SMALL, "table-1", scheme)] for scheme in titles(paper))
    tight = cells[Cell(SMALL, "table-1", "rio", "", *TIGHT)]

    def kept(m: Measures) -> Array:
        return m[f"throughput:{largest}"] / contracts[largest]

    def least(m: Measures) -> Array:
        return np.asarray(np.min([m[f"throughput:{g}"] / r for g, r in contracts.items()], axis=0))

    return [
        Figure("big_plus", "share of the largest contract, RI+O (advised)", kept(plus)),
        Figure("big_rio", "share of the largest contract, RIO", kept(rio)),
        Figure("big_tight", "share of the largest contract, RIO with lower thresholds", kept(tight)),
        Figure("least_plus", "least share of a contract, RI+O", least(plus)),
        Figure("least_rio", "least share of a contract, RIO", least(rio)),
        Figure("be_plus", "a best-effort flow, RI+O", plus["throughput:be"], "bit/s"),
        Figure("be_rio", "a best-effort flow, RIO", rio["throughput:be"], "bit/s"),
        Figure("used_plus", "use of the link, RI+O", plus["utilisation"], bounds=SHARE),
        Figure("used_rio", "use of the link, RIO", rio["utilisation"], bounds=SHARE),
    ]


def _printed(report: Report, scheme: str, group: str) -> float:
    """Table I: the share of a contract that the paper prints."""
    contracts = profiles(report.paper)
    at = list(contracts).index(group)
    return printed_table(report.paper, scheme).numbers("throughput")[at] / contracts[group]


def _drawn(report: Report) -> dict[str, float]:
    """Set-ups drawn for the atlas: how many, and in which share RIO fails and RI+O keeps Table I."""
    found = report.atlas or {"sobol": 0, "claims": []}
    shares = {claim["id"]: claim["share_holds"] for claim in found["claims"]}
    return {"drawn": float(found["sobol"]), "drawn_share": shares.get("B1b", 0.0)}


def _kept_up_to(report: Report, profile: float, scheme: str) -> float:
    """Up to how many per cent sold contracts of `profile` Mbit/s are kept; 0: none."""
    bound, sweep = report.paper.top.table("bounds").number("kept"), f"{profile:g} Mbit/s"
    sold = 0.0
    for level in sorted(points(report.cells, SMALL, "figure-8", sweep), key=int):
        got = report.cell(SMALL, "figure-8", scheme, "", sweep, level)["throughput:as"]
        if got.mean() < bound * profile * 1e6:
            break
        sold = float(level)
    return sold


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
