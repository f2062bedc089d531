"""How claims E1–E6 are judged: what is compared with what, seed by seed.

Each claim is about one scenario or two, and is judged once for each set-up. Contracts, capacities and
round-trip times are those of `paper.toml`, or of a point of the atlas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.stats import UNLIKE
from .. import Cell, Paper
from ..judge import Comparison, Finding
from ..pairing import Measure, paired, same_seeds
from ..rows import TableRow, row
from . import cost
from .experiments import BASELINE, OURS, cell_of
from .measure import PACKET, contracts, relative_error

__all__ = ["findings", "table"]

Cells = Mapping[Cell, Measures]


class _Scenario:
    """The runs of one scenario in one set-up: the baseline's and ours."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, topology: str, variant: str) -> None:
        self.about = paper.find("topologies", topology)
        self.title = self.about.title
        self.bounds = paper.top.table("bounds")
        self.contracts = contracts(paper, self.about)
        self.base = cells[cell_of(paper, setup, topology, BASELINE, variant)]
        self.ours = cells[cell_of(paper, setup, topology, OURS, variant)]
        #: Bandwidth times propagation delay, in packets.
        self.pipe = self.about.number("capacity") * paper.top.number("rtt") / PACKET
        same_seeds(self.base, self.ours)

    def difference(self, measure: Measure) -> list[float]:
        """Ours − baseline, seed by seed."""
        return paired(self.ours, self.base, measure)

    def shares(self, measures: Measures, what: str = "x") -> Array:
        """Throughput over contract: seeds × flows."""
        rates = [measures[f"{what}.{i}"] for i in range(1, len(self.contracts) + 1)]
        shares: Array = np.stack(rates, axis=1) / self.contracts
        return shares

    def groups(self) -> list[tuple[float, list[int]]]:
        """Contracts in order, and the flows that have each."""
        return [(float(r), list(np.flatnonzero(self.contracts == r))) for r in np.unique(self.contracts)]

    def compared(
        self, label: str, values: Array | Sequence[float], side: Any, null: float = 0.0, **more: Any
    ) -> Comparison:
        return Comparison(label, [float(v) for v in values], side, null=null, topology=self.title, **more)


Load = Callable[[str], _Scenario]


def _mbit(contract: float) -> str:
    return f"{contract / 1e6:g} Mbit/s"


def _e1(load: Load) -> list[Comparison]:
    s = load("scenario-1")
    none = s.bounds.number("none")

    def window(flows: list[int]) -> Measure:
        return lambda m: np.asarray(np.mean([m[f"cwnd.{i + 1}"] for i in flows], axis=0), dtype=np.float64)

    return [
        *(
            s.compared(
                f"mean window of flows of {_mbit(contract)}, ours − baseline",
                s.difference(window(flows)),
                "above",
                unit="packets",
            )
            for contract, flows in s.groups()
        ),
        s.compared(f"slow starts per run, ours, below {none:g}", s.ours["timeouts"], "below", none),
        s.compared("slow starts per run, ours − baseline", s.difference("timeouts"), "below"),
    ]


def _e2(load: Load) -> list[Comparison]:
    s = load("scenario-1")
    return [
        s.compared("relative error of windows, ours − baseline", s.difference("window_error"), "below"),
        s.compared("relative error of throughputs, ours − baseline", s.difference("rate_error"), "below"),
        # The next sentence: "Besides better utilization".
        s.compared("sum of throughputs, ours − baseline", s.difference("total"), "above", unit="bit/s"),
    ]


def _shares_error(m: Measures, contracts: Array) -> Array:
    """Relative error of windows against r/Σr of their own sum, which is Eq. (2)'s window of the path."""
    windows = np.stack([m[f"cwnd.{i}"] for i in range(1, len(contracts) + 1)], axis=1)
    wanted = windows.sum(axis=1, keepdims=True) * contracts / contracts.sum()
    return relative_error(windows, wanted)


def _keeps(s: _Scenario, what: str) -> list[Comparison]:
    """Every flow keeps its contract under ours."""
    kept = s.bounds.number("kept")
    return [
        s.compared(
            f"flow {i + 1} ({_mbit(s.contracts[i])}), throughput over contract, ours, above {kept:g}",
            share,
            "above",
            kept,
        )
        for i, share in enumerate(s.shares(s.ours, what).T)
    ]


def _e3a(load: Load) -> list[Comparison]:
    s = load("scenario-2")
    contract, flows = s.groups()[-1]
    missed = s.shares(s.base)[:, flows].mean(axis=1)
    label = f"flows of {_mbit(contract)}, throughput over contract, baseline, below 1"
    return [*_keeps(s, "x"), s.compared(label, missed, "below", 1.0)]


def _e3b(load: Load) -> list[Comparison]:
    s = load("scenario-3")
    rates = s.shares(s.ours) * s.contracts
    groups = s.groups()
    return [
        *(
            s.compared(
                f"throughput of flows of {_mbit(larger)} above that of flows of {_mbit(smaller)}, ours",
                rates[:, more].mean(axis=1) - rates[:, less].mean(axis=1),
                "above",
                unit="bit/s",
            )
            for (smaller, less), (larger, more) in pairwise(groups)
        ),
        *(
            s.compared(
                f"flow {i + 1} ({_mbit(s.contracts[i])}), throughput over contract, baseline, below 1",
                s.shares(s.base)[:, i],
                "below",
                1.0,
            )
            for i in (int(flow) - 1 for flow in s.about.numbers("missed"))
        ),
        s.compared(
            "index of throughput over contract, ours − baseline", s.difference("fi"), "above", bounds=UNLIKE
        ),
    ]


def _e3c(load: Load) -> list[Comparison]:
    s = load("scenario-4")
    worst = s.shares(s.base, "burst").min(axis=1)
    kept = s.bounds.number("kept")
    label = f"worst flow's throughput over contract, baseline, below {kept:g}"
    return [*_keeps(s, "burst"), s.compared(label, worst, "below", kept)]


def _e4(load: Load) -> list[Comparison]:
    s = load("scenario-4")
    return [s.compared("index of the worst second, ours − baseline", s.difference("fi_worst"), "above")]


def _e5a(load: Load) -> list[Comparison]:
    return [
        s.compared(
            f"mean queue over bandwidth times delay, ours, below {bound:g}",
            s.ours["queue.1"] / s.pipe,
            "below",
            bound,
        )
        for s in (load("scenario-1"), load("scenario-2"))
        for bound in [s.bounds.number("bounded")]
    ]


def _e5b(load: Load) -> list[Comparison]:
    return [
        s.compared(
            "mean queue of the first hop over bandwidth times delay, ours",
            s.ours["queue.1"] / s.pipe,
            "within",
            low,
            upper=high,
        )
        for s in (load("scenario-1"), load("scenario-2"))
        for low, high in [s.bounds.numbers("printed")]
    ]


def _e6(_: Load) -> list[Comparison]:
    measured = cost.measured()
    return [
        Comparison(
            "CPU time of a decision, TWAM (RTT known, packets counted) − TSW2CM, by rounds",
            measured.differences("twam_rtt_known"),
            "below",
            unit="ns",
            topology=f"{measured.flows} flows",
        )
    ]


_CLAIMS = {
    "E1": _e1, "E2": _e2, "E3a": _e3a, "E3b": _e3b, "E3c": _e3c, "E4": _e4, "E5a": _e5a, "E5b": _e5b,
    "E6": _e6,
}  # fmt: skip


#: The scenarios that a claim is about; E6 runs nothing, it is of committed measurements.
_ABOUT = {
    "E1": ("scenario-1",), "E2": ("scenario-1",), "E3a": ("scenario-2",), "E3b": ("scenario-3",),
    "E3c": ("scenario-4",), "E4": ("scenario-4",), "E5a": ("scenario-1", "scenario-2"),
    "E5b": ("scenario-1", "scenario-2"), "E6": (),
}  # fmt: skip


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict needs this cell: the baseline's and ours of its own scenarios."""
    return cell.topology in _ABOUT[claim] and cell.scheme in (BASELINE, OURS)


def _notes(claim: str, load: Load) -> list[str]:
    """Circumstances behind a verdict."""
    if claim == "E5a":
        return [
            f"{s.title.capitalize()}: {float((s.ours['queue.1'] / s.pipe).mean()):.2f} of bandwidth times"
            f" delay; {100 * float(s.ours['overflow'].mean()):.3f} % of arrivals find a queue full."
            for s in (load("scenario-1"), load("scenario-2"))
        ]
    if claim == "E1":
        s = load("scenario-1")
        ours, base = (float(m["delay"].mean()) * 1e3 for m in (s.ours, s.base))
        starts = float(s.base["timeouts"].mean())
        return [
            f"Packets wait {ours:.0f} ms under ours and {base:.0f} ms under the baseline, and what waits is"
            " part of a window. §5.2 also speaks of better utilisation: throughputs add up to"
            f" {s.ours['total'].mean() / 1e6:.1f} and {s.base['total'].mean() / 1e6:.1f} Mbit/s."
            f" The baseline has {starts:.1f} slow starts per run.",
            *_fallen(s),
        ]
    if claim == "E2":
        s = load("scenario-1")
        ours, base = (float(m["window_error_queued"].mean()) for m in (s.ours, s.base))
        own = [float(_shares_error(m, s.contracts).mean()) for m in (s.ours, s.base)]
        return [
            "RTT is the propagation; with the measured time in queues added to it, the relative error of"
            f" windows is {ours:.3f} under ours and {base:.3f} under the baseline.",
            "Against r/Σr of the windows' own sum, as Eq. (2) has it, the error is"
            f" {own[0]:.3f} under ours and {own[1]:.3f} under the baseline.",
        ]
    if claim == "E3b":
        s = load("scenario-3")
        ours, base = (float(m["fi"].mean()) for m in (s.ours, s.base))
        return [
            f"Jain's index of throughput over contract is {ours:.3f} under ours and {base:.3f} under the"
            " baseline."
        ]
    if claim == "E6":
        return [cost.measured().words]
    return []


def _fallen(s: _Scenario) -> list[str]:
    """Where mean windows are smaller than the baseline's: what those flows get, over C·r/Σr."""
    fair = s.about.number("capacity") / s.contracts.sum()
    phrases = []
    for contract, flows in s.groups():
        change = np.mean([s.difference(f"cwnd.{i + 1}") for i in flows])
        ours, base = (s.shares(m)[:, flows].mean() / fair for m in (s.ours, s.base))
        if change < 0:
            phrases.append(
                f"flows of {_mbit(contract)} get {ours:.2f} times C·r/Σr, {base:.2f} under the baseline"
            )
    return [f"Where windows are smaller, {'; '.join(phrases)}."] if phrases else []


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in paper.setups:

            def load(topology: str, setup: str = setup.id) -> _Scenario:
                return _Scenario(paper, cells, setup, topology, variant)

            found.append(Finding(claim.id, setup.id, _CLAIMS[claim.id](load), notes=_notes(claim.id, load)))
    return found


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Shares of every cell: the paper prints no table, so there is nothing beside ours."""
    return [
        row(
            cell,
            m.seeds,
            m["fi"],
            table=topology.where,
            what="Jain's index of throughput over contract",
            label=f"{topology.title}, {paper.find('schemes', cell.scheme).title}",
        )
        for cell, m in cells.items()
        if not cell.sweep
        for topology in [paper.find("topologies", cell.topology)]
    ]
