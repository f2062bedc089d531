"""Paper E's advice: like against like, on a link with capacity to spare and on one that is sold out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Array, Measures
from ...metrics.stats import FREE, SHARE
from .. import Cell, Paper
from ..advice import known
from ..rerun import Figure
from .experiments import ALONE, BASELINE, CURVE, HIGH, OURS, QUEUES, RAISED, cell_of
from .measure import contracts

if TYPE_CHECKING:
    from ..report import Report

#: TWAM without DWRED, with the thresholds that are printed.
ALONE_LOW = "twam-wred"
#: Other readings of Eq. (3), of Eq. (4) and (5), and of what TSW2CM marks, among the variants.
WEIGHTED, BOTH_COLOURS, ALL_OUT = "weighted", "both-colours", "all-out"
SPARE, SOLD = "scenario-2", "scenario-1"
#: Where a later hop is narrower than the edge knows.
LATER = "later"
#: What is run where the edge's own hop is the narrowest and where a later one is, by name: scheme, networks.
RIVALS = {
    "alone": (ALONE, SPARE, LATER),
    "raised": (RAISED, SPARE, LATER),
    "curve": (CURVE, SPARE, LATER),
    "queues": (QUEUES, "queues", "queues-later"),
}


def _found(report: Report, topology: str, scheme: str) -> Measures:
    """What was run with the rival's thresholds like ours."""
    paper = report.paper
    made: Measures = report.cells[cell_of(paper, paper.setups[0].id, topology, scheme)]
    return made


def figures(report: Report) -> dict[str, float]:
    """Jain's index of throughput over contract, contracts kept and waits: the paper's and its rivals'.

    Alone: TWAM, with thresholds of WRED under which packets wait as under DWRED; tuned: TSW2CM, likewise.
    """
    topology = report.paper.find("topologies", SPARE)
    capacity, sold = topology.number("capacity"), contracts(report.paper, topology)
    ours, tuned, alone, low = (_found(report, SPARE, s) for s in (OURS, HIGH, ALONE, ALONE_LOW))
    ours_full, like_full = (_found(report, SOLD, s) for s in (OURS, BASELINE))
    one, turns = (_found(report, "two-paths", scheme) for scheme in ("one-queue", "drr"))

    def least(name: str, m: Measures) -> dict[str, float]:
        each = [known(name, m[f"x.{i}"] / rate) for i, rate in enumerate(sold, 1)]
        return min(each, key=lambda found: found[name])

    return {
        **_beside(report),
        **_otherwise(report),
        "ours": float(ours["fi"].mean()),
        **known("gain", alone["fi"] - tuned["fi"]),
        **known("less", alone["fi"] - ours["fi"]),
        **known("fuller", (alone["total"] - tuned["total"]) / capacity),
        **known("longer", (ours["delay"] - alone["delay"]) * 1e3),
        "small_fair": float(sold.min()) * capacity / float(sold.sum()) / 1e6,
        "large_fair": float(sold.max()) * capacity / float(sold.sum()) / 1e6,
        "one_queue": float(one["fi"].mean()),
        **known("by_turns", turns["fi"] - one["fi"]),
        **least("least_ours", ours),
        **least("least_tuned", tuned),
        **least("full_ours", ours_full),
        **least("full_like", like_full),
        **known("printed_curve", _least(_printed_curve(report), sold)),
        "wait_low": float(low["delay"].mean()) * 1e3,
        **known("unused", (alone["total"] - low["total"]) / capacity),
    }


def _printed_curve(report: Report) -> Measures:
    """TSW2CM before the one printed curve, taken for both colours: the second set-up."""
    paper = report.paper
    made: Measures = report.cells[cell_of(paper, paper.setups[1].id, SPARE, BASELINE)]
    return made


def _rivals(paper: Paper, cells: Mapping[Cell, Measures]) -> dict[str, Measures]:
    """TWAM with WRED and what does without it, by name; `_later` where a later hop is narrower."""
    first = paper.setups[0].id
    return {
        f"{name}{where}": cells[cell_of(paper, first, place, scheme)]
        for name, (scheme, *places) in RIVALS.items()
        for where, place in zip(("", "_later"), places, strict=True)
    }


def _least(m: Measures, sold: Array) -> Array:
    """The least that a flow gets of its contract, by seed."""
    return np.asarray(np.min([m[f"x.{i}"] / rate for i, rate in enumerate(sold, 1)], axis=0))


def _beside(report: Report) -> dict[str, float]:
    """Index, contracts kept and wait beside a meter told the link's rate and a queue for each contract."""
    paper, found = report.paper, _rivals(report.paper, report.cells)
    sold = contracts(paper, paper.find("topologies", SPARE))
    made: dict[str, float] = {}
    for name, m in found.items():
        made |= known(f"index_{name}", m["fi"], SHARE)
        made |= known(f"kept_{name}", _least(m, sold))
        made[f"delay_{name}"] = float(m["delay"].mean()) * 1e3
        place = LATER if name.endswith("_later") else SPARE
        made |= known(f"used_{name}", m["total"] / paper.find("topologies", place).number("capacity"))
        for size, rate in (("small", sold.min()), ("large", sold.max())):
            of_it = [m[f"x.{i + 1}"] for i in np.flatnonzero(sold == rate)]
            made[f"{size}_{name}"] = float(np.mean(of_it)) / 1e6
    for name in ("raised", "curve", "queues"):
        for where in ("", "_later"):
            made |= known(f"over_{name}{where}", found[f"alone{where}"]["fi"] - found[f"{name}{where}"]["fi"])
    for name, of in (("sooner_later", "raised_later"), ("curve_sooner_later", "curve_later")):
        made |= known(name, 1e3 * (found[of]["delay"] - found["alone_later"]["delay"]))
    return made


def _otherwise(report: Report) -> dict[str, float]:
    """The index under other readings, and the largest contract's share under one of the rival's.

    They are run with `--full`.
    """
    paper = report.paper
    sold = contracts(paper, paper.find("topologies", SPARE))

    def largest(m: Measures) -> Array:
        found = [m[f"x.{i + 1}"] / sold.max() for i in np.flatnonzero(sold == sold.max())]
        return np.asarray(np.mean(found, axis=0))

    made: dict[str, float] = {}
    for name, scheme, variant, bounds in (
        ("weighted", OURS, WEIGHTED, SHARE),
        ("both", OURS, BOTH_COLOURS, SHARE),
        ("all_out", BASELINE, ALL_OUT, FREE),
    ):
        m = report.cells.get(cell_of(paper, paper.setups[0].id, SPARE, scheme, variant))
        if m is not None:
            made |= known(name, largest(m) if scheme == BASELINE else m["fi"], bounds)
    return made


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """The same of one of today's senders, with 30 of 50 Mbit/s sold."""
    topology = paper.find("topologies", SPARE)
    sold = contracts(paper, topology)
    tuned, ours = (cells[cell_of(paper, paper.setups[0].id, SPARE, s)] for s in (HIGH, OURS))
    found = _rivals(paper, cells)
    alone, raised, curved, queues = (found[name] for name in ("alone", "raised", "curve", "queues"))
    index, capacity = "Jain's index of throughput over contract", topology.number("capacity")
    meter, shorter, queue, later = (
        "TSW2CM with rates raised",
        "TSW2CM with rates raised, a curve for IN",
        "a queue per contract at the edge",
        "a later hop of 40 Mbit/s",
    )
    return [
        Figure("alone", f"{index}, TWAM + WRED", alone["fi"], bounds=SHARE),
        Figure("tuned", f"{index}, TSW2CM + WRED that lets packets wait as long", tuned["fi"], bounds=SHARE),
        Figure("raised", f"{index}, {meter} to 50 Mbit/s in all", raised["fi"], bounds=SHARE),
        Figure("curve", f"{index}, {shorter}", curved["fi"], bounds=SHARE),
        Figure("queues", f"{index}, {queue}", queues["fi"], bounds=SHARE),
        Figure("ours", f"{index}, TWAM + DWRED", ours["fi"], bounds=SHARE),
        Figure("gain", "what TWAM adds to the index, both with WRED", alone["fi"] - tuned["fi"]),
        Figure("over_raised", f"what TWAM adds to that of {meter}", alone["fi"] - raised["fi"]),
        Figure("over_curve", f"what TWAM adds to that of {shorter}", alone["fi"] - curved["fi"]),
        Figure(
            "over_curve_later",
            f"what TWAM adds to that of {shorter}: {later}",
            found["alone_later"]["fi"] - found["curve_later"]["fi"],
        ),
        Figure("over_queues", f"what TWAM adds to that of {queue}", alone["fi"] - queues["fi"]),
        Figure("less", "what WRED adds to DWRED's index, both with TWAM", alone["fi"] - ours["fi"]),
        Figure("least", "the least kept of a contract, TWAM + WRED", _least(alone, sold)),
        Figure("least_tuned", "the least kept of a contract, TSW2CM + WRED", _least(tuned, sold)),
        Figure("least_raised", f"the least kept of a contract, {meter}", _least(raised, sold)),
        Figure("least_curve", f"the least kept of a contract, {shorter}", _least(curved, sold)),
        Figure("least_queues", f"the least kept of a contract, {queue}", _least(queues, sold)),
        Figure("wait", "wait in the queues, TWAM + WRED", alone["delay"] * 1e3, "ms"),
        Figure("wait_raised", f"wait in the queues, {meter}", raised["delay"] * 1e3, "ms"),
        Figure("wait_curve", f"wait in the queues, {shorter}", curved["delay"] * 1e3, "ms"),
        Figure("wait_queues", f"wait in the queues, {queue}", queues["delay"] * 1e3, "ms"),
        Figure("used", "use of the link, TWAM + WRED", alone["total"] / capacity),
        Figure("used_curve", f"use of the link, {shorter}", curved["total"] / capacity),
        Figure("used_queues", f"use of the link, {queue}", queues["total"] / capacity),
        *(
            Figure(f"{what}{name}_later", f"{words}, {title}: {later}", values(found[f"{name}_later"]), unit)
            for what, words, values, unit in (
                ("", index, lambda m: m["fi"], ""),
                ("least_", "the least kept of a contract", lambda m: _least(m, sold), ""),
                ("wait_", "wait in the queues", lambda m: m["delay"] * 1e3, "ms"),
            )
            for name, title in (
                ("alone", "TWAM + WRED"),
                ("raised", meter),
                ("curve", shorter),
                ("queues", queue),
            )
        ),
    ]


def picture(report: Report) -> Mapping[str, Any]:
    """Throughput over contract: TWAM with WRED and with DWRED, and what does without TWAM."""
    topology = report.paper.find("topologies", SPARE)
    sold = contracts(report.paper, topology)
    lines = {
        "TWAM + WRED": (SPARE, ALONE),
        "TWAM + DWRED": (SPARE, OURS),
        "TSW2CM + WRED": (SPARE, HIGH),
        "TSW2CM, rates raised": (SPARE, CURVE),
        "Queue per contract": ("queues", QUEUES),
    }
    rows = []
    for title, (place, scheme) in lines.items():
        m = _found(report, place, scheme)
        for rate in np.unique(sold):
            of_it = [m[f"x.{i + 1}"] / rate for i in np.flatnonzero(sold == rate)]
            rows.append(draw.row(title, np.mean(of_it, axis=0), x=float(rate) / 1e6))
    fair = topology.number("capacity") / float(sold.sum())
    rows += [
        {"scheme": "In proportion", "x": float(rate) / 1e6, "mean": fair, "lo": fair, "hi": fair}
        for rate in np.unique(sold)
    ]
    return curve(rows, [*lines, "In proportion"], x="contract (Mbit/s)", y="throughput / contract")
