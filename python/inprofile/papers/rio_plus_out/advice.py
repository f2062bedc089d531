"""Paper B's advice: contracts kept under RIO with larger buckets, and under RI+O and RIO with small ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...charts.curves import curve
from ...metrics.measures import Array, Measures
from ...metrics.stats import FREE, SHARE
from .. import Cell, Entry, Paper
from ..advice import known, where_run
from ..rerun import Figure
from . import larger
from .experiments import UNIT
from .shared import points, printed_table, profiles, titles

SMALL = "fits-rates"
#: The weight that RED usually has: of a sweep.
SLOW = "0.002"
#: Buckets of two dozen round trips (bytes at 270 kbit/s).
LARGER = 81_000
#: RIO behind those, as `larger` has it, by the names that figures have: what is advised first.
ENTRIES = {
    "low": "lower thresholds",
    "deep": "printed thresholds",
    "usual": "lower thresholds, 1500 B",
    "usual_deep": "printed thresholds, 1500 B",
    "one": "one count",
}
LOW_TITLE = "RIO as advised"
#: Flows of a contract in the network of that name.
TENS = 10
#: Fig. 8: contracts of 2 Mbit/s.
TWO = 2.0
#: Milliseconds that a packet waits for at 10 Mbit/s: of 576 bytes, and of 1,500.
WAIT, USUAL_WAIT = 576 * 8 / 10e6 * 1e3, 1500 * 8 / 10e6 * 1e3
#: RIO with RI+O's own thresholds for all OUT packets: a sweep and its value.
TIGHT, TIGHT_TITLE = ("out", "10, 30, 0.1"), "RIO, lower thresholds"
#: A weight near the queue itself, of which `--full` has RI+O behind the printed buckets.
FAST = ("w_q", "0.5")

if TYPE_CHECKING:
    from ..report import Report


def figures(report: Report) -> dict[str, float]:
    """Shares of contracts kept, what best effort gets (kbit/s), how far the link is used, and waits (ms)."""
    paper, first = report.paper, report.paper.setups[0].id
    rio, plus = (report.cell(SMALL, "table-1", s) for s in titles(paper))
    tight = report.cell(SMALL, "table-1", "rio", "", *TIGHT)
    printed, printed_plus = (report.cell(first, "table-1", s) for s in titles(paper))
    ten_rio, ten_plus = (report.cell(SMALL, "ten-flows", s) for s in titles(paper))
    entries = {name: larger.cell(paper.find("larger", id_)) for name, id_ in ENTRIES.items()}
    # Some are run with `--full` only.
    behind = {name: report.cells[cell] for name, cell in entries.items() if cell in report.cells}
    compared = {"rio": rio, "plus": plus, "tight": tight, **behind}
    return {
        **{key: x for name, m in compared.items() for key, x in _of(paper, name, m).items()},
        **known("slow_plus", _largest(paper, report.cell(SMALL, "table-1", "rio-plus-out", "", "w_q", SLOW))),
        **{f"printed_{s.replace('-', '_')}": _printed(report, s) for s in titles(paper)},
        "two_rio": _kept_up_to(report, TWO, "rio"),
        "two_plus": _kept_up_to(report, TWO, "rio-plus-out"),
        **_sold(report),
        "trips": LARGER * 8 / UNIT / 0.1,
        "kilobytes": LARGER * max(profiles(paper).values()) / UNIT / 1e3,
        **known("least_ten_rio", TENS * _least(paper, ten_rio)),
        **known("least_ten_plus", TENS * _least(paper, ten_plus)),
        **known("least_printed_rio", _least(paper, printed)),
        "used_printed_rio": float(printed["utilisation"].mean()),
        "used_printed_plus": float(printed_plus["utilisation"].mean()),
        **where_run(
            lambda: {
                "used_fast_plus": float(
                    report.cell(first, "table-1", "rio-plus-out", "", *FAST)["utilisation"].mean()
                )
            }
        ),
        **known("printed_less", printed["utilisation"] - printed_plus["utilisation"]),
        **known("price", (rio["throughput:be"] - plus["throughput:be"]) / 1e3),
        **known("more_share", behind["low"]["throughput:be"] / plus["throughput:be"] - 1),
        **known("less_used", rio["utilisation"] - plus["utilisation"]),
        **known("low_less_used", plus["utilisation"] - behind["low"]["utilisation"]),
    }


def _sold(report: Report) -> dict[str, float]:
    """Contracts of one size on Fig. 8's link: how much may be sold, what is got then, IN packets lost."""
    made: dict[str, float] = {}
    for entry in report.paper.top.tables("sold"):
        if entry.flag("full") and not report.full:
            continue
        name = SHORT[entry.id]
        bound = report.paper.top.table("bounds").number("kept")
        found = {int(level): _at(report, entry, level) for level in entry.numbers("levels")}
        held = [level for level, m in found.items() if larger.kept(entry, m).mean() >= bound]
        made[f"{name}_sold"] = float(max(held, default=0))
        for level, m in found.items():
            made |= known(f"{name}_{level}", larger.kept(entry, m))
            made[f"{name}_{level}_lost"] = float(larger.lost(entry, m, level).mean())
    return made


#: What figures of `[[sold]]` are called.
SHORT = {
    "2 Mbit/s, lower thresholds": "two_low",
    "2 Mbit/s, printed thresholds": "two_deep",
    "5 Mbit/s, 24 round trips": "five",
    "5 Mbit/s, 48 round trips": "five_twice",
    "5 Mbit/s, RI+O": "five_plus",
}


def _at(report: Report, entry: Entry, level: float) -> Measures:
    found: Measures = report.cells[larger.cell(entry, f"{level:g}")]
    return found


def _of(paper: Paper, name: str, m: Measures) -> dict[str, float]:
    """What is said of each scheme: its largest and its least contract, best effort, the link, the queue."""
    return {
        **known(f"big_{name}", _largest(paper, m)),
        **known(f"least_{name}", _least(paper, m)),
        **known(f"be_{name}", m["throughput:be"] / 1e3),
        **known(f"used_{name}", m["utilisation"]),
        f"wait_{name}": float(m["queue_mean"].mean()) * (USUAL_WAIT if "usual" in name else WAIT),
        f"lost_{name}": float((m["in_drops"] / _sent_in(paper, m)).mean()),
    }


def _largest(paper: Paper, m: Measures) -> Array:
    """What the largest contract gets of its rate, by seed."""
    contracts = profiles(paper)
    group = max(contracts, key=lambda name: contracts[name])
    return m[f"throughput:{group}"] / contracts[group]


def _least(paper: Paper, m: Measures) -> Array:
    """The least that any contract gets of its rate, by seed."""
    return np.asarray(np.min([m[f"throughput:{g}"] / r for g, r in profiles(paper).items()], axis=0))


def _sent_in(paper: Paper, m: Measures) -> Array:
    """IN packets sent, by seed."""
    return np.asarray(np.sum([m[f"marked_in:{group}"] for group in profiles(paper)], axis=0))


def today(paper: Paper, cells: Mapping[Cell, Measures]) -> list[Figure]:
    """What contracts and best effort get of one of today's senders, behind larger buckets and small ones."""
    rio, plus = (cells[Cell(SMALL, "table-1", scheme)] for scheme in titles(paper))
    compared = (
        (
            "low",
            "RIO, lower thresholds and larger buckets (advised)",
            cells[larger.cell(paper.find("larger", ENTRIES["low"]))],
        ),
        ("deep", "RIO, larger buckets", cells[larger.cell(paper.find("larger", ENTRIES["deep"]))]),
        ("rio", "RIO", rio),
        ("plus", "RI+O", plus),
        ("tight", TIGHT_TITLE, cells[Cell(SMALL, "table-1", "rio", "", *TIGHT)]),
    )
    return [
        Figure(f"{name}_{of}", f"{words}, {scheme}", values(m), unit, bounds)
        for name, words, unit, bounds, values in (
            ("big", "share of the largest contract", "", FREE, lambda m: _largest(paper, m)),
            ("least", "least share of a contract", "", FREE, lambda m: _least(paper, m)),
            ("be", "a best-effort flow", "bit/s", FREE, lambda m: m["throughput:be"]),
            ("used", "use of the link", "", SHARE, lambda m: m["utilisation"]),
        )
        for of, scheme, m in compared
    ]


def _printed(report: Report, scheme: str) -> float:
    """Table I: the share of the largest contract, the last of the assured flows, that the paper prints."""
    contracts = list(profiles(report.paper).values())
    return printed_table(report.paper, scheme).numbers("throughput")[len(contracts) - 1] / contracts[-1]


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
    """Throughput over contract, and the line on which a contract is just kept."""
    contracts = profiles(report.paper)
    shown = {
        **{title: Cell(SMALL, "table-1", scheme) for scheme, title in titles(report.paper).items()},
        TIGHT_TITLE: Cell(SMALL, "table-1", "rio", "", *TIGHT),
        LOW_TITLE: larger.cell(report.paper.find("larger", ENTRIES["low"])),
    }
    rows = [
        draw.row(title, 100 * report.cells[cell][f"throughput:{g}"] / r, x=r / 1e3)
        for title, cell in shown.items()
        for g, r in contracts.items()
    ]
    ends = [
        {"scheme": "Contract", "x": r / 1e3, "mean": 100, "lo": 100, "hi": 100} for r in contracts.values()
    ]
    return curve([*rows, *ends], [*shown, "Contract"], x="contract (kbit/s)", y="of the contract (%)")
