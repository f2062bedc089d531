"""Rows of what validation/kernel.py has measured and simulated, their bounds, and the page."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "kernel.md"
"""The page, with room for the figures."""

SHARES, FAIRNESS, QUEUE, GOODPUT, LOSS, RESENT = 0.10, 0.02, 0.15, 0.01, 0.15, 0.15
"""How far live may be from simulated: a flow's share, Jain's index, the mean queue, goodput, the loss rate,
and retransmissions. Jain's index differs by so much, the others by this share of the simulated figure."""

TIMEOUTS = 1.0
"""How many timeouts a run live and simulated may differ by."""


@dataclass(frozen=True)
class Measured:
    """Means over runs."""

    shares: list[float]
    """Each flow's share of the goodput."""
    fi: float
    """Jain's index of goodput."""
    goodput: float
    """Of all flows, in bit/s."""
    queue: float
    """The mean queue in packets."""
    loss_in: float | None
    loss_out: float | None
    """Loss rates in the measured time; None where nothing of the colour came."""
    retransmissions: float
    """Segments sent again in a whole run."""
    needless: float
    """How many more were sent again than dropped."""
    timeouts: float
    """In a whole run."""
    spread: dict[str, float]
    """Standard deviation over the runs of `fi`, `queue`, `retransmissions`, `timeouts`; 0 of a single run."""

    @property
    def loss(self) -> float:
        """The loss rate of those packets that are lost: OUT's, or without markers all packets'."""
        return self.loss_out if self.loss_out is not None else self.loss_in or 0.0


@dataclass(frozen=True)
class Row:
    """One experiment with one transport."""

    case: str
    title: str
    transport: str
    seconds: float
    runs: int
    simulated: Measured
    """By the profile `linux`."""
    rfc: Measured | None
    """By the profile `rfc`; None for a congestion control that it does not have."""
    live: Measured
    yardstick: float
    """The most that a share differs between as many simulated runs and the others: what chance alone does."""
    late: dict[str, float]
    notes: list[str]

    @property
    def share_off(self) -> float:
        """The most that a flow's share differs, relative to the simulated one."""
        return most_off(self.live, self.simulated)

    @property
    def judged(self) -> bool:
        """Whether both have the same congestion control: the kernel's BBR is version 1, ours version 3."""
        return self.transport != "bbr"

    @property
    def verdicts(self) -> dict[str, bool]:
        """The rows within their bounds; empty where nothing is judged."""
        if not self.judged:
            return {}
        s, v = self.simulated, self.live
        return {
            "shares": self.share_off <= SHARES,
            "fi": abs(v.fi - s.fi) <= FAIRNESS,
            "queue": near(v.queue, s.queue, QUEUE),
            "goodput": near(v.goodput, s.goodput, GOODPUT),
            "loss": near(v.loss, s.loss, LOSS),
            "retransmissions": near(v.retransmissions, s.retransmissions, RESENT),
            "timeouts": abs(v.timeouts - s.timeouts) <= TIMEOUTS,
        }


def near(live: float, simulated: float, bound: float) -> bool:
    """Whether they differ by at most this share of the simulated one.

    >>> near(1.1, 1.0, 0.15), near(1.2, 1.0, 0.15), near(0.0, 0.0, 0.15)
    (True, False, True)
    """
    return abs(live - simulated) <= bound * simulated


def most_off(some: Measured, others: Measured) -> float:
    """The most that a flow's share differs, relative to the others' share."""
    return max(abs(a / b - 1) for a, b in zip(some.shares, others.shares, strict=True))


def measured(results: Sequence[dict[str, Any]]) -> Measured:
    """Means over single runs."""

    def mean(name: str) -> float | None:
        values = [r["metrics"][name] for r in results if name in r["metrics"]]
        return statistics.fmean(values) if values else None

    def total(result: dict[str, Any], name: str) -> float:
        return float(sum(result["flows"][name]))

    goodputs = [
        statistics.fmean(column) for column in zip(*(r["flows"]["goodput"] for r in results), strict=True)
    ]
    resent = [total(r, "retransmissions") for r in results]
    timeouts = [total(r, "timeouts") for r in results]
    series = {
        "fi": [r["metrics"]["fi"] for r in results],
        "queue": [r["metrics"]["queue_mean"] for r in results],
        "retransmissions": resent,
        "timeouts": timeouts,
    }
    return Measured(
        shares=[g / sum(goodputs) for g in goodputs],
        fi=statistics.fmean(series["fi"]),
        goodput=mean("goodput") or 0.0,
        queue=statistics.fmean(series["queue"]),
        loss_in=mean("loss_in"),
        loss_out=mean("loss_out"),
        retransmissions=statistics.fmean(resent),
        needless=statistics.fmean(
            again - total(r, "dropped") for again, r in zip(resent, results, strict=True)
        ),
        timeouts=statistics.fmean(timeouts),
        spread={n: statistics.stdev(of) if len(results) > 1 else 0.0 for n, of in series.items()},
    )


def yardstick(simulated: list[dict[str, Any]], live: int) -> float:
    """The most that a share differs between as many simulated runs as live ones and the others."""
    return most_off(measured(simulated[:live]), measured(simulated[live:]))


def stored(rows: list[Row]) -> list[dict[str, Any]]:
    """As they lie in docs/kernel.json."""
    return [asdict(row) | {"share_off": row.share_off, "verdicts": row.verdicts} for row in rows]


def read(found: list[dict[str, Any]]) -> list[Row]:
    """Rows of docs/kernel.json."""
    rows = []
    for entry in found:
        fields = {name: value for name, value in entry.items() if name not in ("share_off", "verdicts")}
        simulated, live = (Measured(**fields.pop(side)) for side in ("simulated", "live"))
        rfc = fields.pop("rfc")
        rows.append(Row(simulated=simulated, live=live, rfc=rfc and Measured(**rfc), **fields))
    return rows


def percent(value: float | None) -> str:
    """A loss rate; an en dash where nothing came.

    >>> percent(0.0123), percent(None)
    ('1.23 %', '–')
    """
    return "–" if value is None else f"{100 * value:.2f} %"


def share_line(row: Row) -> str:
    """A row of the first table: who gets what, through which queue, at which loss."""
    s, v = row.simulated, row.live
    mark = marks(row)
    at_fault = {"loss_in": "", "loss_out": ""} | {
        "loss_out" if v.loss_out is not None else "loss_in": mark["loss"]
    }
    return cells(
        row.title,
        row.transport,
        f"{row.runs} × {row.seconds:g} s",
        f"{100 * row.share_off:.1f} %{mark['shares']} ({100 * row.yardstick:.1f} %)",
        f"{s.fi:.3f} / {v.fi:.3f}{mark['fi']}",
        f"{s.queue:.1f} / {v.queue:.1f}{mark['queue']}",
        f"{s.goodput / 1e6:.3f} / {v.goodput / 1e6:.3f}{mark['goodput']}",
        f"{percent(s.loss_in)} / {percent(v.loss_in)}{at_fault['loss_in']}",
        f"{percent(s.loss_out)} / {percent(v.loss_out)}{at_fault['loss_out']}",
        f"{1e6 * row.late['late_p50']:.0f}, {1e6 * row.late['late_p99']:.0f}",
    )


def resent_line(row: Row) -> str:
    """A row of the second table: what was sent again, and which timers expired."""
    s, v, r = row.simulated, row.live, row.rfc
    mark = marks(row)

    def spread(of: Measured) -> str:
        return f"{of.retransmissions:.0f} ± {of.spread['retransmissions']:.0f}"

    return cells(
        row.title,
        row.transport,
        "–" if r is None else spread(r),
        f"{spread(s)} / {spread(v)}{mark['retransmissions']}",
        f"{s.needless:+.1f} / {v.needless:+.1f}",
        "–" if r is None else f"{r.timeouts:.1f}",
        f"{s.timeouts:.1f} / {v.timeouts:.1f}{mark['timeouts']}",
    )


def marks(row: Row) -> dict[str, str]:
    """Behind each figure that is judged: nothing, or that it lies outside its bound."""
    names = ("shares", "fi", "queue", "goodput", "loss", "retransmissions", "timeouts")
    verdicts = row.verdicts
    return {name: "" if verdicts.get(name, True) else " **!**" for name in names}


def cells(*texts: str) -> str:
    """A line of a table.

    >>> cells("a", "b")
    '| a | b |'
    """
    return "| " + " | ".join(texts) + " |"


def page(rows: list[Row], simulated: int) -> str:
    """The tables and what they mean; `simulated` seeds of each simulation."""
    judged = [row for row in rows if row.judged]
    notes = sorted({note for row in rows for note in row.notes})
    before = [row.rfc.timeouts for row in judged if row.rfc is not None]
    filled = PAGE.read_text(encoding="utf-8")
    for name, value in {
        "simulated": str(simulated),
        "within": f"{sum(all(row.verdicts.values()) for row in judged)} of {len(judged)}",
        "shares": f"{100 * SHARES:g} %",
        "fi": f"{FAIRNESS:g}",
        "queue": f"{100 * QUEUE:g} %",
        "goodput": f"{100 * GOODPUT:g} %",
        "loss": f"{100 * LOSS:g} %",
        "retransmissions": f"{100 * RESENT:g} %",
        "timeouts": f"{TIMEOUTS:g}",
        "before": f"{min(before):.1f} to {max(before):.1f}",
        "now": f"{max(row.simulated.timeouts for row in judged):.1f}",
        "live": f"{max(row.live.timeouts for row in judged):.1f}",
        "share_rows": "\n".join(share_line(row) for row in rows),
        "resent_rows": "\n".join(resent_line(row) for row in rows),
        "notes": "\n".join(f"- {note}" for note in notes) or "Nothing that matters for these experiments.",
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled
