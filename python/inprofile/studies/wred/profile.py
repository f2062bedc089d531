"""A WRED profile, where it is used, and what is wrong with it; a switch's QoS beside it.

Thresholds are bytes of a queue's average length. Up to `min_th` nothing is dropped (or marked), then
with a probability that rises to `max_p` just below `max_th`, and everything from there on.

A WRED profile drawn: how often each colour is dropped or marked, over the queue's average length.

What a queue may take of a switch's buffer, as a configuration says it, and how each format writes it. Bytes
of its own, and of a shared pool either so many or, with n, 2ⁿ of what is free of it. They stay apart: a
share of a pool that all queues have is no buffer of one. SONiC's profiles are of a pool; OpenConfig's pools
are the switch's own.

Rates are per second and bursts sizes, both in bytes or in packets. A policer's colours are those of RFC 2697
(`sr_tcm`; without an excess burst it has two, green and red) and RFC 2698 (`tr_tcm`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from ...metrics.quantity import number, quantity

if TYPE_CHECKING:
    import altair as alt


_DYNAMIC, _STATIC = "DYNAMIC_BASED_ON_SCALING_FACTOR", "STATIC"


@dataclass(frozen=True)
class Buffer:
    """What a queue may take."""

    reserved: int = 0
    """Bytes of its own."""
    static: int | None = None
    """Bytes of the pool at most."""
    dynamic: int | None = None
    """n: 2ⁿ of what is free of the pool."""
    name: str = ""
    """SONiC's profile."""
    pool: str = ""
    """SONiC's pool, which a profile needs; empty where the file has none."""
    pool_fields: tuple[tuple[str, str], ...] = ()
    """What the file says of the pool."""

    @property
    def shares(self) -> bool:
        """Whether it takes of a pool."""
        return self.static is not None or self.dynamic is not None

    @classmethod
    def of_openconfig(cls, fields: Mapping[str, Any]) -> Buffer:
        """From a queue of a buffer-allocation-profile whose numbers have been checked."""
        reserved = int(float(str(fields.get("dedicated-buffer", 0))))
        if fields.get("use-shared-buffer") is not True:
            return cls(reserved)
        kind = str(fields.get("shared-buffer-limit-type", ""))
        if kind.endswith(_STATIC):
            return cls(reserved, static=int(float(str(fields.get("static-shared-buffer-limit", 0)))))
        factor = fields.get("dynamic-limit-scaling-factor")
        return cls(reserved, dynamic=factor if isinstance(factor, int) else None)


def add_sonic(tree: dict[str, Any], queue: str, buffer: Buffer) -> bool:
    """Add a queue's buffer to SONiC's tables; False where that cannot be said."""
    if not buffer.pool or not buffer.shares:
        return False
    threshold = {"static_th": str(buffer.static)} if buffer.static is not None else {}
    threshold |= {"dynamic_th": str(buffer.dynamic)} if buffer.dynamic is not None else {}
    fields = {"pool": buffer.pool, "size": str(buffer.reserved), **threshold}
    tree["BUFFER_PROFILE"][buffer.name] = fields
    if buffer.pool_fields:
        tree["BUFFER_POOL"][buffer.pool] = dict(buffer.pool_fields)
    tree["BUFFER_QUEUE"][queue] = {"profile": buffer.name}
    return True


def openconfig_fields(buffer: Buffer) -> dict[str, Any]:
    """Leaves of a queue of a buffer-allocation-profile."""
    fields: dict[str, Any] = {"dedicated-buffer": str(buffer.reserved), "use-shared-buffer": buffer.shares}
    if buffer.static is not None:
        fields["shared-buffer-limit-type"] = f"openconfig-qos:{_STATIC}"
        fields["static-shared-buffer-limit"] = buffer.static
    elif buffer.dynamic is not None:
        fields["shared-buffer-limit-type"] = f"openconfig-qos:{_DYNAMIC}"
        fields["dynamic-limit-scaling-factor"] = buffer.dynamic
    return fields


def unsaid(to: str, queues: str, buffer: Buffer) -> str:
    """What of a buffer the other format does not have, and what to do; empty where it has all of it."""
    if to == "sonic":
        if buffer.pool and buffer.shares:
            return ""
        return (
            f"{queues}: the buffer ({buffer.reserved:,} B of its own) is not written: SONiC's are of a pool,"
            " and the switch's pools are not known here: give the queue a BUFFER_PROFILE of one there"
        )
    if buffer.pool_fields:
        return (
            f"{queues}: the pool {buffer.pool}, of which it takes, is not written: OpenConfig's pools are the"
            " switch's own"
        )
    return ""


COLOURS = ("green", "yellow", "red")
"""Best first."""
PACKET = 1500
"""Bytes of a full packet, from the IP header on."""


class Unreadable(ValueError):
    """A configuration that cannot be read: where, and why."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}" if where else why)


@dataclass(frozen=True)
class Curve:
    """From where on, and how often, packets are dropped or marked."""

    min_th: int
    """In bytes."""
    max_th: int
    """In bytes; as `min_th`: a step."""
    max_p: float
    """Probability just below `max_th`, 0 to 1."""

    def at(self, average: float) -> float:
        """The probability at an average length in bytes."""
        if average < self.min_th:
            return 0.0
        if average >= self.max_th:
            return 1.0
        return self.max_p * (average - self.min_th) / (self.max_th - self.min_th)


@dataclass(frozen=True)
class Profile:
    """A WRED profile."""

    name: str
    where: str
    """Its place in the file."""
    drop: Mapping[str, Curve]
    """By colour; a colour that is not in it is dropped only where the buffer is full."""
    mark: Mapping[str, Curve] = field(default_factory=dict)
    """By colour: the curve by which ECN-capable packets are marked rather than dropped."""
    weight: int = 0
    """n: the newest sample of the queue counts 2⁻ⁿ in the average; 0 is the queue as it is."""
    notes: tuple[str, ...] = ()
    """The assumptions and omissions of the reader."""

    @property
    def largest(self) -> int:
        """The largest threshold in bytes; 0 for a profile without curves."""
        return max((c.max_th for c in (*self.drop.values(), *self.mark.values())), default=0)


@dataclass(frozen=True)
class Port:
    """Queues with the same profile, rate and buffer."""

    profile: Profile
    queues: tuple[str, ...] = ()
    """Such as `Ethernet0|3`; none where no queue has the profile."""
    rate: float | None = None
    """In bit/s, if the file says it."""
    buffer: int | None = None
    """Bytes that one such queue may take while no other is congested, if the file says it."""
    notes: tuple[str, ...] = ()
    """How the buffer was computed."""
    allotted: Buffer | None = None
    """The buffer as the file says it."""


@dataclass(frozen=True)
class Finding:
    """Something odd about a profile."""

    where: str
    says: str
    """The oddity, and the remedy."""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"where": self.where, "says": self.says}


def alike(curves: Mapping[str, Curve]) -> list[tuple[str, Curve]]:
    """Each curve with the colours that have it, in words.

    >>> one = Curve(1, 2, 1.0)
    >>> alike({"green": one, "yellow": one, "red": one})[0][0], alike({"green": one})[0][0]
    ('every colour', 'green')
    """
    found: dict[Curve, list[str]] = {}
    for colour in COLOURS:
        if colour in curves:
            found.setdefault(curves[colour], []).append(colour)
    named = {c: "every colour" if len(n) == len(COLOURS) else " and ".join(n) for c, n in found.items()}
    return [(name, curve) for curve, name in named.items()]


def check(port: Port) -> list[Finding]:
    """Oddities of a profile where it is used: curves that never act, act in the wrong order, or too late."""
    profile = port.profile
    found = [*_idle(port), *_order(profile), *_marks(profile), *_beyond(port), *_small(profile)]
    return [Finding(profile.where, says) for says in found]


def _idle(port: Port) -> Iterator[str]:
    if not port.profile.drop and not port.profile.mark:
        yield "does nothing: no colour is enabled, for drops or for marks; enable one, or remove the profile"
    elif not port.queues:
        yield "does nothing: no queue has it"


def _order(profile: Profile) -> Iterator[str]:
    """Green is what was promised: it has to be dropped last."""
    for kind, curves in (("dropped", profile.drop), ("marked", profile.mark)):
        for better, worse in combinations([c for c in COLOURS if c in curves], 2):
            a, b = curves[better], curves[worse]
            ends = sorted({a.min_th, a.max_th, b.min_th, b.max_th})
            points = [*ends, *((x + y) / 2 for x, y in pairwise(ends))]
            sooner = [x for x in points if a.at(x) > b.at(x)]
            if sooner:
                yield (
                    f"{better} is {kind} more than {worse} at an average of {quantity(min(sooner), 'B')}"
                    f" ({a.at(min(sooner)):.3g} against {b.at(min(sooner)):.3g}): {better} is the"
                    " better colour; raise its"
                    " thresholds or lower its probability"
                )
    for better, worse in combinations(COLOURS, 2):
        if better in profile.drop and worse not in profile.drop:
            yield (
                f"{better} has a curve and {worse} has none: {worse}, the worse colour, is dropped"
                f" later than {better};"
                f" enable {worse} too"
            )


def _marks(profile: Profile) -> Iterator[str]:
    """Marks have to come before drops, or senders that understand ECN learn of congestion from losses."""
    pairs = {c: (profile.mark[c], profile.drop.get(c)) for c in COLOURS if c in profile.mark}
    for mark, drop in dict.fromkeys(pairs.values()):
        of = [c for c, pair in pairs.items() if pair == (mark, drop)]
        colour = "every colour" if len(of) == len(COLOURS) else " and ".join(of)
        if drop is not None and mark.min_th >= drop.max_th:
            yield (
                f"{colour} is dropped from {quantity(drop.max_th, 'B')} on and marked from"
                f" {quantity(mark.min_th, 'B')} on:"
                " no mark is ever set; lower the thresholds of ECN"
            )
        elif drop is not None and mark.min_th > drop.min_th:
            yield (
                f"{colour} without ECN is dropped from {quantity(drop.min_th, 'B')} on, with ECN"
                " marked only from"
                f" {quantity(mark.min_th, 'B')} on: who does not use ECN gives way to who does"
            )
        elif drop is None:
            yield (
                f"{colour} is marked, and without ECN not dropped early: packets of senders that do"
                " not use ECN fill the"
                " buffer, and marks cannot keep the queue short beside them"
            )


def _beyond(port: Port) -> Iterator[str]:
    """Thresholds that the queue cannot reach."""
    if port.buffer is None:
        return
    for kind, curves in (("dropped", port.profile.drop), ("marked", port.profile.mark)):
        for colour, curve in alike(curves):
            if curve.min_th >= port.buffer:
                yield (
                    f"{colour} is never {kind} early: it would be from {quantity(curve.min_th, 'B')}"
                    " on, and the queue holds"
                    f" {quantity(port.buffer, 'B')}; lower the thresholds"
                )
            elif curve.max_th > port.buffer:
                yield (
                    f"{colour}'s max_threshold, {quantity(curve.max_th, 'B')}, is beyond the buffer of"
                    f" {quantity(port.buffer, 'B')}: the probability rises no further than"
                    f" {number(curve.at(port.buffer), 3)}, and then the buffer overflows"
                )


def _small(profile: Profile) -> Iterator[str]:
    for kind, curves in (("dropped", profile.drop), ("marked", profile.mark)):
        for colour, curve in alike(curves):
            if curve.max_th < 2 * PACKET:
                yield (
                    f"all of {colour} is {kind} from {curve.max_th:,} B on, less than two full"
                    " packets: nearly every packet is;"
                    " thresholds are in bytes"
                )
            if curve.max_p == 0 and curve.max_th > curve.min_th:
                yield (
                    f"{colour}'s probability is 0: below {quantity(curve.max_th, 'B')} nothing is"
                    f" {kind}, and from there on"
                    " everything (some switches drop nothing then)"
                )
            elif curve.max_th == curve.min_th:
                yield (
                    f"{colour} has a step at {quantity(curve.max_th, 'B')}: nothing is {kind} below it"
                    " and everything from"
                    " there on; connections lose many packets at once unless the senders expect it"
                    " (DCTCP does)"
                )


def curves(port: Port, buffer: int, rate: float | None) -> alt.LayerChart:
    """Probability over average length in bytes, up to the buffer or twice the last threshold."""
    import altair as alt

    from ...charts.theme import PALETTE, themed

    profile = port.profile
    end = 1.05 * max(profile.largest, min(buffer, 2 * profile.largest))
    rows: list[dict[str, Any]] = []
    lines = [(f"{name}, dropped", c, "dropped") for name, c in alike(profile.drop)]
    lines += [(f"{name}, marked", c, "marked") for name, c in alike(profile.mark)]
    for name, curve, kind in lines:
        points = [
            (0.0, 0.0),
            (curve.min_th, 0.0),
            (curve.max_th, curve.max_p),
            (curve.max_th, 1.0),
            (end, 1.0),
        ]
        rows += [
            {"line": name, "kind": kind, "bytes": x, "probability": y, "order": i}
            for i, (x, y) in enumerate(points)
        ]
    title = "average queue (bytes)"
    if rate:
        title += (
            f"; {quantity(buffer, 'B')} are {quantity(8 * buffer / rate, 's')} at {quantity(rate, 'bit/s')}"
        )
    order = [name for name, _, _ in lines]
    base = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2)
    drawn = base.encode(
        x=alt.X("bytes:Q", title=title, scale=alt.Scale(domain=[0, end], nice=False)),
        y=alt.Y("probability:Q", title="probability", scale=alt.Scale(domain=[0, 1])),
        order="order:O",
        color=alt.Color("line:N", sort=order, title=None, scale=alt.Scale(domain=order, range=PALETTE)),
        strokeDash=alt.StrokeDash("line:N", sort=order, title=None, scale=alt.Scale(domain=order)),
    )
    full = alt.Chart(alt.Data(values=[{"bytes": buffer}] if buffer <= end else []))
    rule = full.mark_rule(color="#888888", strokeDash=[2, 3]).encode(x="bytes:Q")
    return themed(alt.LayerChart(layer=[drawn, rule]).properties(title=profile.name))


FORWARD, DROP = "forward", "drop"


@dataclass(frozen=True)
class Policer:
    """A meter with what becomes of each colour."""

    mode: str
    """`sr_tcm` or `tr_tcm`."""
    cir: float
    cbs: int
    pir: float | None = None
    """`tr_tcm` alone has one."""
    pbs: int | None = None
    """Of `sr_tcm` the excess burst; None: there is none."""
    aware: bool = False
    """Whether the colour that a packet comes with counts."""
    unit: str = "bytes"
    """`bytes` or `packets`."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """By colour, where it is not `forward`: `drop`, `dscp 10` to remark, or a word of the switch."""

    @property
    def two_coloured(self) -> bool:
        """One bucket: what finds it empty is red."""
        return self.mode == "sr_tcm" and not self.pbs


@dataclass(frozen=True)
class Scheduler:
    """How a queue is served."""

    kind: str
    """`STRICT`, `DWRR` (by bytes) or `WRR` (by packets)."""
    weight: int = 1
    cir: float | None = None
    """The rate that it gets at least."""
    cbs: int | None = None
    pir: float | None = None
    """The rate that it gets at most."""
    pbs: int | None = None
    unit: str = "bytes"


@dataclass(frozen=True)
class Switch:
    """What a switch's configuration says of QoS. Queues are a port and a queue, `Ethernet0|3`."""

    ports: tuple[Port, ...] = ()
    """Queues with a WRED profile, or with a known buffer."""
    policers: Mapping[str, Policer] = field(default_factory=dict)
    schedulers: Mapping[str, Scheduler] = field(default_factory=dict)
    served: Mapping[str, str] = field(default_factory=dict)
    """By queue, its scheduler."""
    dscp_maps: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By name: code points with their traffic classes."""
    queue_maps: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By name: traffic classes with their queues."""
    bound: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """By port: its map of code points and its map of traffic classes."""
    lost: tuple[str, ...] = ()
    """What the file says of QoS beyond this."""


def queue_of(text: str) -> tuple[str, str]:
    """The port and the queue of `Ethernet0|3`; both empty where it is none."""
    port, _, queue = text.rpartition("|")
    return (port, queue) if port and queue else ("", "")
