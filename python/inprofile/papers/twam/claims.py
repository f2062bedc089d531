"""How claims E1–E6 are judged: what is compared with what, seed by seed.

Each claim is about one scenario or two, and is judged once for each reading of the baseline's thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...judge import Comparison, Finding
from .. import Cell, Paper
from ..measures import Array, Measures
from . import cost
from .experiments import BASELINE, OURS, cell_of
from .measure import contracts

__all__ = ["findings", "table"]

Cells = Mapping[Cell, Measures]

#: A contract counts as kept from this share on (E3).
KEPT = 0.98
#: Slow starts a run that still count as none (E1): fewer than one on average.
NONE = 1.0
#: Mean queue over bandwidth times delay (E5).
BOUNDED = (0.2, 0.25)


class _Scenario:
    """The runs of one scenario in one set-up: the baseline's and ours."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, topology: str, variant: str) -> None:
        self.about = paper.find("topologies", topology)
        self.title = str(self.about["title"])
        self.contracts = contracts(paper, self.about)
        self.base = cells[cell_of(paper, setup, topology, BASELINE, variant)]
        self.ours = cells[cell_of(paper, setup, topology, OURS, variant)]
        if self.base.seeds != self.ours.seeds:
            raise ValueError(f"{topology}: the schemes were run with different seeds: nothing to pair")

    def difference(self, measure: str) -> list[float]:
        """Ours − baseline, seed by seed."""
        return list(self.ours[measure] - self.base[measure])

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

    def windows(measures: Measures, flows: list[int]) -> Array:
        return np.asarray(np.mean([measures[f"cwnd.{i + 1}"] for i in flows], axis=0), dtype=np.float64)

    return [
        *(
            s.compared(
                f"mean window of flows of {_mbit(contract)}, ours − baseline",
                windows(s.ours, flows) - windows(s.base, flows),
                "above",
                unit="packets",
            )
            for contract, flows in s.groups()
        ),
        s.compared("slow starts a run, ours, fewer than one", s.ours["timeouts"], "below", NONE),
    ]


def _e2(load: Load) -> list[Comparison]:
    s = load("scenario-1")
    return [
        s.compared("relative error of windows, ours − baseline", s.difference("window_error"), "below"),
        s.compared("relative error of throughputs, ours − baseline", s.difference("rate_error"), "below"),
    ]


def _keeps(s: _Scenario, what: str) -> list[Comparison]:
    """Every flow keeps its contract under ours."""
    return [
        s.compared(
            f"flow {i + 1} ({_mbit(s.contracts[i])}), throughput over contract, ours", share, "above", KEPT
        )
        for i, share in enumerate(s.shares(s.ours, what).T)
    ]


def _e3a(load: Load) -> list[Comparison]:
    s = load("scenario-2")
    contract, flows = s.groups()[-1]
    missed = s.shares(s.base)[:, flows].mean(axis=1)
    label = f"flows of {_mbit(contract)}, throughput over contract, baseline"
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
                f"flow {i + 1} ({_mbit(s.contracts[i])}), throughput over contract, baseline",
                s.shares(s.base)[:, i],
                "below",
                1.0,
            )
            for i in (7, 8, 9)
        ),
    ]


def _e3c(load: Load) -> list[Comparison]:
    s = load("scenario-4")
    worst = s.shares(s.base, "burst").min(axis=1)
    label = "worst flow's throughput over contract, baseline"
    return [*_keeps(s, "burst"), s.compared(label, worst, "below", KEPT)]


def _e4(load: Load) -> list[Comparison]:
    s = load("scenario-4")
    return [s.compared("index of the worst second, ours − baseline", s.difference("fi_worst"), "above")]


def _e5(load: Load) -> list[Comparison]:
    return [
        s.compared(
            "mean queue of the first hop over bandwidth times delay, ours",
            s.ours["queue.1"] / (s.about["capacity"] * s.about["rtt"] / (8 * 1040)),
            "within",
            BOUNDED[0],
            upper=BOUNDED[1],
        )
        for s in (load("scenario-1"), load("scenario-2"))
    ]


def _e6(_: Load) -> list[Comparison]:
    measured = cost.measured()
    return [
        Comparison(
            f"cost of a decision, TWAM {words} over TSW2CM, by rounds of the measurement",
            measured.ratios(told),
            "below",
            null=1.0,
            topology=f"{measured.flows} flows",
        )
        for told, words in ((True, "told the windows"), (False, "seeing the windows"))
    ]


_CLAIMS = {
    "E1": _e1, "E2": _e2, "E3a": _e3a, "E3b": _e3b, "E3c": _e3c, "E4": _e4, "E5": _e5, "E6": _e6,
}  # fmt: skip


def _notes(claim: str, load: Load) -> list[str]:
    """Circumstances behind a verdict."""
    if claim == "E1":
        s = load("scenario-1")
        ours, base = (float(m["delay"].mean()) * 1e3 for m in (s.ours, s.base))
        starts = float(s.base["timeouts"].mean())
        return [
            f"Packets wait {ours:.0f} ms under ours and {base:.0f} ms under the baseline, and what waits is"
            f" part of a window; throughputs add up to {s.ours['total'].mean() / 1e6:.1f} and"
            f" {s.base['total'].mean() / 1e6:.1f} Mbit/s. The baseline has {starts:.1f} slow starts a run."
        ]
    if claim == "E2":
        s = load("scenario-1")
        ours, base = (float(m["window_error_queued"].mean()) for m in (s.ours, s.base))
        return [
            "RTT is the propagation; with the measured time in queues added to it, the relative error of"
            f" windows is {ours:.3f} under ours and {base:.3f} under the baseline."
        ]
    if claim == "E6":
        return [cost.measured().words]
    return []


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables."""
    found = []
    for claim in paper.claims:
        for setup in paper.setups:

            def load(topology: str, setup: str = setup["id"]) -> _Scenario:
                return _Scenario(paper, cells, setup, topology, variant)

            found.append(
                Finding(claim["id"], setup["id"], _CLAIMS[claim["id"]](load), notes=_notes(claim["id"], load))
            )
    return found


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Shares of every cell: the paper prints no table, so there is nothing beside ours."""
    return [
        {
            "table": paper.find("topologies", cell.topology)["where"],
            "what": "Jain's index of throughput over contract",
            "label": ", ".join(
                (
                    paper.find("topologies", cell.topology)["title"],
                    paper.find("schemes", cell.scheme)["title"],
                )
            ),
            "unit": "",
            "setup": cell.setup,
            "topology": cell.topology,
            "scheme": cell.scheme,
            "variant": cell.variant,
            "paper": None,
            "values": [float(x) for x in measures["fi"]],
            "seeds": list(measures.seeds),
        }
        for cell, measures in cells.items()
        if not cell.sweep
    ]
