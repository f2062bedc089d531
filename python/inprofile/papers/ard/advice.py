"""Paper A's advice: ARD beside blind drops at its rate, where the flows are unfair and where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...charts import kinds as draw
from ...metrics.measures import Array, Measures
from ...metrics.stats import SHARE
from .. import Cell, Paper
from ..advice import known
from ..rerun import Figure
from .sweeps import kept, reduce

if TYPE_CHECKING:
    from ..report import Report

FULL = "full-core-buffer"
#: An index this low: two of the four flows are all but locked out; and one that nobody would call fair.
STUCK, UNFAIR = 0.6, 0.9
#: A window with which no flow is locked out.
WIDE = "100 packets"
#: Round-trip times from one to eleven times the least.
APART = "20..220 ms"
#: What is advised, of a sweep that every run has: with packets of 1,000 and of 1,500 bytes.
DEEP, USUAL = ("advised", "1000 B"), ("advised", "1460 B")
#: Bits of those packets on the wire, and the bottleneck's rate in bit/s.
PACKET, USUAL_PACKET, RATE = 8 * 1040, 8 * 1500, 1.2e6
LINES = {"rio": "No edge marker", "ard": "ARD", "placebo": "Blind drops"}


def figures(report: Report) -> dict[str, float]:
    """Jain's index with four flows, and with twenty: without an edge marker, with ARD, with blind drops."""

    def fi(setup: str, scheme: str, variant: str = "", topology: str = "four-flows") -> Array:
        found: Array = report.cell(setup, topology, scheme, variant)["fi"]
        return found

    first = report.paper.setups[0].id
    none, arm, ard = (fi(first, scheme) for scheme in ("rio", "arm", "ard"))
    none_full, ard_full, blind_full = (fi(FULL, scheme) for scheme in LINES)
    deep, usual = (report.cell(first, "four-flows", "rio", "", *cell) for cell in (DEEP, USUAL))
    deep_arm, deep_ard = (report.cell(first, "four-flows", s, "", *DEEP)["fi"] for s in ("arm", "ard"))
    dropper = report.cell(FULL, "four-flows", "ard")
    jitter_full = fi(FULL, "rio", "jitter")
    none_twenty, ard_twenty, blind_twenty = (fi(FULL, s, topology="twenty-flows") for s in LINES)
    return {
        **known("none", none, SHARE),
        "ard": float(ard.mean()),
        **known("arm", arm, SHARE),
        **known("deep", deep["fi"], SHARE),
        **known("deep_arm", deep_arm, SHARE),
        **known("deep_ard", deep_ard, SHARE),
        **{f"deep_{of}": float(deep[of].mean()) / 1e3 for of in ("lambda_in", "lambda_out")},
        **known("deep_used", deep["used"], SHARE),
        **known("usual", usual["fi"], SHARE),
        **known("usual_used", usual["used"], SHARE),
        "usual_waits": float(usual["queue_core"].mean()) * USUAL_PACKET / RATE * 1e3,
        **known("gain", ard - none),
        **known("gain_arm", arm - none),
        **_drawn(report),
        "none_full": float(none_full.mean()),
        "ard_full": float(ard_full.mean()),
        "blind_full": float(blind_full.mean()),
        **known("lead_full", ard_full - blind_full),
        **known("lead_twenty", ard_twenty - blind_twenty),
        "none_twenty": float(none_twenty.mean()),
        "ard_twenty": float(ard_twenty.mean()),
        "blind_twenty": float(blind_twenty.mean()),
        "waits": float(deep["queue_core"].mean()) * PACKET / RATE * 1e3,
        **known("helps", blind_full - none_full),
        "runs": float(none_full.size),
        **{
            f"{words}{of}": float((fi < low).sum())
            for words, low in (("stuck", STUCK), ("unfair", UNFAIR))
            for of, fi in (("", none_full), ("_ard", ard_full), ("_blind", blind_full))
        },
        # Blind drops are made as often as ARD's: one in so many IN packets.
        "one_in": float(dropper["arrived_in"].sum() / dropper["drops_marker"].sum()),
        **known("jitter_full", jitter_full, SHARE),
        **known("as_ard", jitter_full - ard_full),
        **_swept(report, "window", FULL, WIDE, "wide"),
        **_swept(report, "rtt", first, APART, "apart"),
    }


def _drawn(report: Report) -> dict[str, float]:
    """Readings drawn for the atlas: how many, and in how many RIO is fair with 4 and with 20 flows."""
    design = (report.atlas or {"design": ()})["design"]
    drawn = [point["claims"]["A11a"] for point in design if point["kind"] == "sobol"]
    fair = sum(opposite == total for _, _, opposite, total in drawn)
    return {"drawn": float(len(drawn)), "fair": float(fair)}


def _swept(report: Report, sweep: str, setup: str, value: str, name: str) -> dict[str, float]:
    """The index at one value of a sweep: of this run's, or of the one kept."""
    panels = [*reduce(report.paper, report.cells)["panels"], *kept()["panels"]]
    panel = next(p for p in panels if (p["sweep"], p["setup"]) == (sweep, setup))
    [point] = [p for p in panel["points"] if p["value"] == value]
    names = {"rio": "none", "ard": "ard", "placebo": "blind"}
    return {
        f"{names[scheme]}_{name}{end}": figure
        for scheme, figures in point["schemes"].items()
        if scheme in names
        for end, figure in zip(("", "_lo", "_hi"), figures["fi"], strict=True)
    }


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The index of four flows of one of today's senders, before RIO and before a full drop-tail buffer."""

    def fi(setup: str, scheme: str) -> Array:
        return cells[Cell(setup, "four-flows", scheme)]["fi"]

    first = paper.setups[0].id
    none, arm, ard = (fi(first, scheme) for scheme in ("rio", "arm", "ard"))
    none_full, ard_full, blind_full = (fi(FULL, scheme) for scheme in LINES)
    none_in, ard_in = (cells[Cell(first, "four-flows", scheme)]["total_in"] for scheme in ("rio", "ard"))
    deep = cells[Cell(first, "four-flows", "rio", "", *DEEP)]["fi"]
    return [
        Figure("deep", "Jain's index, RIO as advised: thresholds by T, buckets of 24 kB", deep, bounds=SHARE),
        Figure("none", "Jain's index, RIO and no edge marker", none, bounds=SHARE),
        Figure("arm", "Jain's index, RIO and ARM", arm, bounds=SHARE),
        Figure("ard", "Jain's index, RIO and ARD", ard, bounds=SHARE),
        Figure("gain", "what ARD adds to RIO's index", ard - none),
        Figure("cost", "IN throughput that ARD costs behind RIO, of that without it", 1 - ard_in / none_in),
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
        draw.row(title, m["fi"], m.seeds, SHARE)
        for scheme, title in LINES.items()
        if (m := report.cell(FULL, "four-flows", scheme))
    ]
    low = min(v for row in rows for v in row["values"])
    shown = list(LINES.values())
    return draw.dots(rows, shown, x="Jain's fairness index", paper={}, domain=(round(low - 0.02, 2), 1.002))
