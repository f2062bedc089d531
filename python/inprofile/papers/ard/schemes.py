"""The runs of one set-up and network of paper A, by scheme; whether a marker can matter there at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...metrics.measures import Array, Measures
from .. import Cell, Entry, Paper
from ..claim import INDEX, Effect, Pair

Cells = Mapping[Cell, Measures]
#: The placebo, as a sentence names it.
BLIND = "blind drops at ARD's rate"
#: Of the autocorrelation peak of the average queue.
PHASE = Effect(0.1, 'a tenth of a full correlation: the effect is to be "mitigated much"')


def ran(paper: Paper, cells: Cells, variant: str = "") -> list[Entry]:
    """The set-ups in which the paper's schemes were run, under a variant: some with `--full` only."""
    found = {c.setup for c in cells if (c.scheme, c.variant, c.sweep) == ("ard", variant, "")}
    return [setup for setup in paper.setups if setup.id in found]


class Schemes:
    """The runs of one set-up and topology, by scheme."""

    def __init__(self, paper: Paper, cells: Cells, setup: str, topology: Entry, variant: str) -> None:
        """`topology`: the paper's entry."""
        self.title, self.flows = topology.title, topology.whole("flows")
        self.stated, self.printed = topology.table("stated"), topology.table("printed")
        #: As comparisons name them: without an edge marker by the queue that then drops.
        self.titles = {scheme.id: scheme.title for scheme in paper.schemes}
        self.titles["rio"] = "RIO" if paper.find("setups", setup).flag("thresholds") else "tail drop"
        self.bounds = paper.top.table("bounds")
        #: Each flow's equal share of the bottleneck, in bit/s.
        self.share = paper.top.number("fair_share")
        #: Whether the queue that drops is RIO's: elsewhere it is a tail-drop queue, under the same names.
        self.rio_drops = paper.find("setups", setup).flag("thresholds")
        plain, jittered = (cells.get(Cell(setup, topology.id, "rio", name)) for name in ("", "jitter"))
        #: RIO with sender jitter, where it was run and is not what is judged.
        self.jittered = jittered if variant == "" else None
        #: Why there is no phase effect here, if so.
        self.no_phase = self.unphased(plain if variant == "" else jittered, jittered)
        self._runs = {
            scheme: cells[cell]
            for scheme in self.titles
            if (cell := Cell(setup, topology.id, scheme, variant)) in cells
        }

    def __getitem__(self, scheme: str) -> Measures:
        return self._runs[scheme]

    def from_contract(self, scheme: str, kind: str) -> Array:
        """How far flows are from their contract, as a share of it: root mean square over the flows, by seed.

        `kind`: of their "total" or "in" throughput.
        """
        m, contract = self[scheme], self.stated.number("contract")
        mean = m["total" if kind == "total" else "total_in"] / self.flows
        return np.sqrt(m[f"std_{kind}"] ** 2 + (mean - contract) ** 2) / contract

    def pair(self, scheme: str, base: str) -> Pair:
        """A scheme beside another, seed by seed; ARD with the blind dropper beside it."""
        blind = scheme == "ard" and base != "placebo" and "placebo" in self._runs
        beside = {BLIND: self["placebo"]} if blind else {}
        return Pair(self[base], self[scheme], self.title, beside)

    def healthy(self, base: str) -> str | None:
        """Why there is nothing to cure under `base`, if so: its rates are fair already."""
        left = 1 - float(self[base]["fi"].mean())
        if left > INDEX.size:
            return None
        return (
            f"{self.titles[base]}'s fairness index is {1 - left:.4f}: up to 1 there is less than the"
            f" {INDEX.size:g} from which on a difference counts, so nothing to cure"
        )

    def unphased(self, plain: Measures | None, jittered: Measures | None) -> str | None:
        """Why RIO has no phase effect, if so: jitter at the senders, which ends it, changes nothing."""
        if plain is None or jittered is None:
            return "whether there is a phase effect to mitigate was not tried here, by jitter at the senders"
        with_, without = (float(m["queue_cycle"].mean()) for m in (plain, jittered))
        if with_ - without > PHASE.size:
            return None
        return (
            f"the average queue's autocorrelation peaks at {with_:.2f} under {self.titles['rio']} and at"
            f" {without:.2f} with"
            " jitter at the senders, which ends phase effects: there is none to mitigate"
        )

    def inert(self, scheme: str) -> str | None:
        """Why this marker cannot matter here, if it cannot: it hardly touches a packet."""
        m = self[scheme]
        touched, came = float((m["remarked"] + m["drops_marker"]).mean()), float(m["arrived_in"].mean())
        if touched >= self.bounds.number("inert") * came:
            return None
        ratio, tokens = (float(m[name].mean()) for name in ("lambda_in_over_tpr", "tokens_mean"))
        bucket = self.stated.number("bucket")
        return (
            f"{self.titles[scheme]} is inert: it touches {touched:.2g} of {came:.0f} IN packets in 100 s, as"
            f" λ_IN is {ratio:.2f} of the TPR and the bucket stays at {tokens:.0f} of {bucket:g} packets"
        )

    def idle(self, base: str, scheme: str) -> str | None:
        """Why `scheme` cannot differ from `base` here, if so: it is inert, or its remarks mean nothing."""
        reason = self.inert(scheme)
        if reason or scheme == "ard":
            return reason
        drops = max(float(self[s]["drops_core"].mean()) for s in (base, scheme))
        if drops < self.bounds.number("few_drops"):
            held = float(self["rio"]["queue_core"].mean())
            return (
                f"the core drops {drops:.2g} packets in 100 s and holds {held:.2g} on average, so a"
                " remarked packet is treated like any other"
            )
        if not np.any(self.pair(scheme, base).difference("fi")):
            remarked = float(self[scheme]["remarked"].mean())
            return (
                f"{self.titles[scheme]} remarks {remarked:.0f} packets in 100 s and every seed's rates stay"
                f" exactly {self.titles[base]}'s: the queue that drops does not look at colours"
            )
        return None


def ranked(rio: Array) -> tuple[int, int]:
    """Greediest and most damaged flow of a run under RIO, by its flows' throughput before what is measured.

    Ranked on what is measured, either would regress to the mean under any scheme; until then ARM and ARD have
    a TPR of TPR_max (§III), and do little.
    """
    return int(rio.argmax()), int(rio.argmin())


def of_rank(s: Schemes, scheme: str, which: int, measure: str = "throughput") -> Array:
    """Throughput under a scheme of the flow that is greediest (0) or most damaged (1) under RIO, by seed.

    `measure`: another of the measures by flow, for the flow of that rank.
    """
    early, own = s["rio"].by_flow["early"], s[scheme].by_flow[measure]
    return np.array([own[i, ranked(before)[which]] for i, before in enumerate(early)])


def level(lambda_in: Array, tpr: Array, stated: Mapping[str, float], p_drop: float) -> Array:
    """Token level at which as much is admitted as fills up (§2.1, Eq. 1), in packets.

    (1 − P_drop)(1 − P_rem)·λ_IN = TPR. NaN where that is not inside (0, T_rd): the bucket fills, or runs out.
    """
    share = 1 - tpr / ((1 - p_drop) * lambda_in)
    inside = (share > 0) & (share < stated["max_rem"])
    return np.where(inside, stated["t_rd"] * (1 - share / stated["max_rem"]), np.nan)
