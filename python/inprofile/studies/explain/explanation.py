"""The parts of an explanation, and the causes of losses in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...metrics.stats import Estimate

if TYPE_CHECKING:
    from ...metrics.contracts import Kept
    from .cause import Cause

__all__ = ["CAUSES", "Explanation", "Fate", "Figure"]


@dataclass(frozen=True)
class Fate:
    """The fate of some of a flow's packets."""

    what: str
    """`delivered`, `in flight`, or the cause of a loss."""
    place: str
    """Where it was lost; empty for what was not."""
    packets: float
    """How many per run."""
    share: float
    """Of all it sent."""
    out: float
    """The share of them that was OUT (or red) when lost; NaN where none was lost."""


@dataclass(frozen=True)
class Figure:
    """A figure behind the losses at one place, over the whole trace."""

    place: str
    cause: str
    name: str
    mean: float
    least: float
    greatest: float


@dataclass(frozen=True)
class Explanation:
    """One flow, or the mean of a group's, beside the others of its kind."""

    flow: str
    """Its name, or the group's."""
    group: str
    flows: tuple[str, ...]
    """Whose mean every figure is: the flow itself, or all of the group."""
    peers: tuple[str, ...]
    """The flows it is compared with: the rest of its group, or else others that have a contract as it has, or
    have none as it has none."""
    seeds: tuple[int, ...]
    contract: float | None
    """bit/s"""
    kept: Kept | None
    """How well the contract was kept; None where there is none that a rate can keep."""
    throughput: Estimate
    """bit/s on the wire, in order, over the window."""
    rates: tuple[tuple[int, float], ...]
    """Seed and bit/s of each run."""
    against_peers: Estimate | None
    """Throughput over the peers' mean, less 1, paired by seed."""
    fates: tuple[Fate, ...]
    figures: tuple[Figure, ...]
    findings: tuple[str, ...]
    window: tuple[str, str]
    """The measured window, for rates and marks; losses and timeouts are of the whole run."""
    goal: float | None
    """bit/s that it missed: its contract, or what the others got; None where nothing is amiss."""
    causes: tuple[Cause, ...]
    """What held it down, several where they tie or have to go together; empty where nothing is amiss, or
    where no cause of the set fits."""
    together: bool
    """Whether they only together would do."""
    considered: tuple[Cause, ...]
    """All that the figures point to."""
    because: str
    """One sentence that names the cause; empty where there is none."""
    cwnd: tuple[tuple[float, float], ...]
    """Time and congestion window (segments) of the first seed, where a monitor sampled it."""

    def to_json(self) -> dict[str, Any]:
        """As `inprofile explain --json` prints it."""
        return {
            "flow": self.flow,
            "group": self.group,
            "flows": list(self.flows),
            "peers": list(self.peers),
            "seeds": list(self.seeds),
            "contract": self.contract,
            "contract_kept": None if self.kept is None else self.kept.to_json(),
            "throughput": _json(self.throughput),
            "against_peers": None if self.against_peers is None else _json(self.against_peers),
            "packets": [{**f.__dict__, "out": None if math.isnan(f.out) else f.out} for f in self.fates],
            "figures": [f.__dict__ for f in self.figures],
            "findings": list(self.findings),
            "goal": self.goal,
            "because": self.because,
            "together": self.together,
            "causes": [
                {"kind": c.kind, "because": c.because, "without": dict(c.changes)} for c in self.causes
            ],
            "window": {"from": self.window[0], "to": self.window[1]},
            "cwnd": [list(point) for point in self.cwnd],
        }


CAUSES: Mapping[str, str] = {
    "early": "early drops (at random, before the queue was full)",
    "forced": "forced drops (average above the upper threshold)",
    "overflow": "overflow (queue at its limit)",
    "edge": "drops by the marker",
    "evicted": "evictions (removed from the queue in favour of another packet)",
    "policed": "drops by a policer (out of profile)",
    "unmarkable": "drops in place of a mark (transport not ECN-capable)",
    "above_target": "CoDel's drops (delay above target for an interval)",
    "overload": "drops of ECN-capable packets (congestion beyond what marks can tell of)",
    "matched": "CHOKe's drops (a waiting packet of the same flow was drawn)",
    "penalty": "drops in SFB's penalty box (flow that does not respond)",
    "bin_full": "drops at SFB's full bins",
    "blue": "BLUE's drops (the queue was full not long ago)",
    "link_error": "losses on a link (no queue dropped them)",
}


def _json(e: Estimate) -> dict[str, Any]:
    return {"mean": e.mean, "ci95": list(e.ci95 or (None, None)), "n": e.n}
