"""The parts of an explanation, and the causes of losses in words.

Whom an explanation is about: a flow, or a group as the mean of its flows; and whom it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...metrics.stats import Estimate, mean

if TYPE_CHECKING:
    from ...metrics.contracts import Kept
    from .cause import Cause


Row = dict[str, Any]


class UnknownFlow(LookupError):
    """No flow of that name or number, and no group."""


@dataclass(frozen=True)
class Subject:
    """One flow or one group."""

    name: str
    group: str
    flows: tuple[str, ...]
    """The flows it is: one, or those of the group."""
    rows: tuple[Row, ...]
    """Its row of `flows` in each seed; of a group, the mean of its flows'."""
    peers: tuple[str, ...]
    """Whom it is compared with: the rest of its group, or flows of others that have a contract as it has, or
    have none as it has none."""

    @property
    def is_group(self) -> bool:
        """Whether it stands for several flows."""
        return len(self.flows) > 1


def subject(rows: Mapping[str, Sequence[Row]], flow: str | int) -> Subject:
    """The flow of this name, the group of this name, or the flow of this number. Raises UnknownFlow.

    `rows` are those of the table `flows`, by flow.
    """
    name, flows = _find(rows, str(flow))
    first = rows[flows[0]][0]
    group = str(first["group"])
    others = [other for other in rows if other not in flows]
    same = [other for other in others if rows[other][0]["group"] == group]
    alike = [o for o in others if (rows[o][0]["contract"] is None) == (first["contract"] is None)]
    mine = tuple(rows[flows[0]]) if len(flows) == 1 else _means([rows[f] for f in flows])
    return Subject(name, group, flows, mine, tuple(same or alike))


def _find(rows: Mapping[str, Sequence[Row]], text: str) -> tuple[str, tuple[str, ...]]:
    """The subject of that name, and its flows."""
    if text in rows:
        return text, (text,)
    groups: dict[str, list[str]] = {}
    for name, runs in rows.items():
        groups.setdefault(str(runs[0]["group"]), []).append(name)
    if text in groups:
        found = tuple(groups[text])
        return (found[0] if len(found) == 1 else text), found
    names = list(rows)
    # More digits than the number of flows has are no flow's number; other scripts' digits are no digits here.
    if text.isascii() and text.isdigit() and len(text) <= 18 and int(text) < len(names):
        return names[int(text)], (names[int(text)],)
    text = text if len(text) <= 80 else f"{text[:79]}…"
    shown = ", ".join(names[:8]) + (f", … ({len(names)} flows)" if len(names) > 8 else "")
    known = ", ".join(list(groups)[:8]) + (", …" if len(groups) > 8 else "")
    raise UnknownFlow(
        f'no flow or group is called "{text}"; there are: {shown},'
        f" or their numbers from 0, or groups: {known}"
    )


def _means(flows: Sequence[Sequence[Row]]) -> tuple[Row, ...]:
    """Seed by seed the means of the flows' figures; the first's where one has none."""

    def of(values: Sequence[Any]) -> Any:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        return mean(float(v) for v in values) if numbers else values[0]

    return tuple(
        {key: value if key == "seed" else of([row[key] for row in run]) for key, value in run[0].items()}
        for run in zip(*flows, strict=True)
    )


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
