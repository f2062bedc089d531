"""One cause of a flow's short rate, from a small closed set, and the sentence that names it.

A cause is something in the experiment that can be removed, and `changes` removes it and nothing else: so it
can be tried (`removal.py`). Which cause it is follows from what would be left of the gap without it, by the
law of the flow's TCP where its losses hold it down. Causes that would close equally much are a tie, and it is
said; and so is it where only two together would do, or three.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...metrics.quantity import bits_per_second, number, quantity
from .facts import COLOURED, DATAGRAMS, LOSS_BASED, TCP, Facts, count, kbit, own_room, packets_of

KINDS: Mapping[str, str] = {
    "absence": "the flow there all of the measured window",
    "receiver's window": "a window that fills the way at the wanted rate",
    "access link": "an access link of four times the wanted rate",
    "offered rate": "a source that offers more than the wanted rate",
    "oversold link": "a link that all contracts fit in",
    "shallow bucket": "a bucket that holds what its TCP sends in a burst, filled at the contract's rate",
    "shared queue": "room of its own in the queue, by colours",
    "low thresholds for IN": "thresholds for IN above what the queue reaches, and a longer limit",
    "short buffer": "a limit of eight times as much",
    "unresponsive flows": "a tenth of the link for the flows that do not slow down",
    "long RTT": "the others' RTT",
    "congestion control": "the others' congestion control",
}
"""The closed set, each with what is there in its place when it is removed."""
_ENOUGH, _EQUAL = 0.6, 0.1
"""A cause that would close this share of the gap is enough alone; shares that differ by less are a tie."""
_SOME = 0.9
_LOUD = 0.3
"""Unresponsive flows that hold less of a buffer are no cause."""
_MORE = 2.0
"""What one loss-based congestion control gets of another's rate at one queue and equal RTT, at most."""
_THERE = 0.98
"""A flow that is there for less of the window was absent."""
_FEW, _FAR = 0.05, 0.6
"""Fewer OUT packets than the first do not hold down who falls short by more than the second."""
_HELD = 0.92
"""A flow that gets this share of a bound is held by it."""


@dataclass(frozen=True)
class Cause:
    """Something that holds a flow down."""

    kind: str
    """One of KINDS."""
    because: str
    """What follows "because"."""
    changes: Mapping[str, object]
    """Keys of the experiment with the values that remove it."""
    bound: float = math.inf
    """bit/s: no more is possible with it."""
    share: float = 0.0
    """Of its losses, those that would not be. Where others may come in their place, nine tenths count."""
    factor: float = 1.0
    """What its rate is multiplied by without it, at equal losses."""


@dataclass(frozen=True)
class Verdict:
    """What is named: one cause; two that tie; or two or three that only together would do."""

    causes: tuple[Cause, ...] = ()
    together: bool = False
    """Whether all of them have to go."""
    considered: tuple[Cause, ...] = ()
    """All that the figures point to."""


def judged(f: Facts) -> Verdict:
    """The cause, or several. None where no figure points to any of the set."""
    found = (*_bounds(f), *_of_losses(f))
    alone = {c.kind: _closes(f, found, (c,)) for c in found}
    ordered = sorted((c for c in found if alone[c.kind] > _EQUAL), key=lambda c: -alone[c.kind])
    best = most = alone[ordered[0].kind] if ordered else 0.0
    together: tuple[Cause, ...] = ()
    for size in (2, 3):
        # One more only where fewer are not enough, and it does more.
        closed = [(_closes(f, found, some), some) for some in itertools.combinations(found, size)]
        more, some = max(closed, key=lambda one: one[0], default=(0.0, ()))
        if most < _ENOUGH and more >= most + (_EQUAL if more >= _ENOUGH else 2 * _EQUAL):
            most, together = more, some
    if together:
        return Verdict(together, True, found)
    return Verdict(tuple(c for c in ordered if alone[c.kind] >= best - _EQUAL)[:2], False, found)


def sentence(f: Facts, verdict: Verdict, against: str) -> str:
    """One sentence; `against` is what its rate is a share of."""
    head = f"{f.name} got {100 * f.got / f.goal:.0f} % of {against}"
    causes = verdict.causes
    if len(causes) < 2:
        return f"{head} because {causes[0].because}."
    if verdict.together:
        return f"{head} because {'; and besides, '.join(cause.because for cause in causes)}."
    either = "of one of two causes that the figures do not tell apart"
    return f"{head} because {either}: {causes[0].because}; or {causes[1].because}."


def _closes(f: Facts, found: Sequence[Cause], gone: Sequence[Cause]) -> float:
    """The share of the gap that would close without these."""
    # All of it is about the time that it was there; of the rest it has nothing until it is there then, too.
    there = 1.0 if any(c.kind == "absence" for c in gone) else f.there
    got = f.got_there
    bounds = [c.bound for c in found if c not in gone]
    held = got >= _HELD * min((c.bound for c in found), default=math.inf)
    rate = max(got, _by_losses(f)) if held else got
    if not held and f.is_tcp and any(c.bound < math.inf for c in gone):
        # Short of its bound, its losses hold it down as well.
        rate = max(rate, min(_by_losses(f), 1.25 * got))
    share = min(1.0, sum(c.share for c in gone))
    rate = _without(f, rate, share) * math.prod(c.factor for c in gone)
    reached = there * min(rate, *bounds, f.goal)
    return min(1.0, max(0.0, (reached - f.got) / max(f.goal - f.got, 1e-300)))


def _by_losses(f: Facts) -> float:
    """What its losses would let it have without any bound."""
    if not f.is_tcp or f.loss <= 0:
        return f.goal
    return f.by_losses(f.loss, f.rtt)


def _without(f: Facts, rate: float, share: float) -> float:
    """What this rate would be without this share of its losses."""
    p = f.loss
    if not f.is_tcp:
        return rate / max(1 - p, 1e-9) * (1 - p * (1 - share))
    if not p or not share:
        return rate
    left = max(p * (1 - share), p / 100)
    return rate * f.by_losses(left, f.rtt) / f.by_losses(p, f.rtt)


# Bounds of its own: what it could not exceed on an empty link.


def _bounds(f: Facts) -> Iterator[Cause]:
    """Those below what it should have got."""
    found = (*_window(f), *_access(f), *_offered(f))
    yield from (cause for cause in found if cause.bound <= 1.05 * f.goal)
    yield from _absence(f)


def _absence(f: Facts) -> Iterator[Cause]:
    """It began, or ended, within the measured window."""
    begin, end = f.window
    if f.there >= _THERE:
        return
    table = f.settings
    own = [flow for flow, runs in f.rows.items() if runs[0]["group"] == f.group]
    changes: dict[str, object] = {}
    if any(float(row.get("start") or 0.0) > begin for flow in f.flows for row in f.rows[flow]):
        drawn = [f"{float(f.rows[flow][0].get('start') or 0.0):.9g} s" for flow in own]
        starts = table["start"] if isinstance(table.get("start"), list) else drawn
        changes[f"flows.{f.group}.start"] = [
            "0 s" if flow in f.flows else start for flow, start in zip(own, starts, strict=True)
        ]
    if any(f.stop_of(flow) < end for flow in f.flows):
        whole = str(f.effective["duration"])
        stops = table["stop"] if isinstance(table["stop"], list) else [table["stop"]] * len(own)
        changes[f"flows.{f.group}.stop"] = [
            whole if flow in f.flows else stop for flow, stop in zip(own, stops, strict=True)
        ]
    because = f"it sent for {number(f.there * (end - begin), 2)} of the {number(end - begin, 3)} s measured"
    yield Cause("absence", because, changes)


def _window(f: Facts) -> Iterator[Cause]:
    window = str(f.tcp.get("window", "")).split()
    if not f.is_tcp or len(window) != 2 or window[1] != "packets" or f.rtt <= 0:
        return
    bound = float(window[0]) * f.packet / f.rtt
    wanted = -(-4 * f.goal * (f.rtt + 0.05) // f.packet)
    because = (
        f"its receiver's window of {window[0]} packets lets through at most {quantity(bound, 'bit/s', 3)}"
        f" at an RTT of {quantity(f.rtt, 's', 3)}"
    )
    wider = {f"flows.{f.group}.tcp.window": f"{wanted:.0f} packets"}
    yield Cause("receiver's window", because, wider, bound)


def _access(f: Facts) -> Iterator[Cause]:
    join = f.settings.get("join")
    if not isinstance(join, Mapping):
        return
    bound = bits_per_second(str(join["rate"]))
    because = f"its access link carries {join['rate']}"
    yield Cause("access link", because, {f"flows.{f.group}.join.rate": kbit(4 * f.goal)}, bound)


def _offered(f: Facts) -> Iterator[Cause]:
    traffic = f.settings.get("traffic", {})
    if f.traffic in ("cbr", "poisson"):
        key, bound = "rate", bits_per_second(str(traffic["rate"]))
        raised = 1.1 * f.goal
    elif f.traffic == "on_off":
        bound = f.of("sent_in") + f.of("sent_out")
        begin, end = f.window
        seconds = (end - begin) * f.there
        bits = 8 * float(str(traffic.get("packet", "1000 B")).split()[0])
        key, bound = "peak", bound * bits / seconds
        raised = 1.1 * f.goal * bits_per_second(str(traffic["peak"])) / max(bound, 1.0)
    else:
        return
    because = f"its source offers {quantity(bound, 'bit/s', 3)} on average"
    yield Cause("offered rate", because, {f"flows.{f.group}.traffic.{key}": kbit(raised)}, bound)


# What its losses, and the others, make of it.


def _of_losses(f: Facts) -> Iterator[Cause]:
    yield from _oversold(f)
    for make in (_bucket, _shared, _thresholds, _buffer, _unresponsive):
        yield from make(f)
    if f.is_tcp and f.peers and f.loss > 0:
        yield from _rtt(f)
        yield from _congestion(f)


def _oversold(f: Facts) -> Iterator[Cause]:
    for link in f.route:
        sold, rate = f.sold(link), f.rate(link)
        if f.mine[0]["contract"] is not None and sold > 0.98 * rate:
            full, capacity = str(f.links[link]["rate"]), f.links[link].get("capacity")
            because = f"the contracts at {link} add up to {quantity(sold, 'bit/s', 3)} on a link of"
            because += (
                f" {full}"
                if capacity is None
                else (f" {full} that has {quantity(rate, 'bit/s', 3)} on average in the measured window")
            )
            # A capacity's steps end with the rate; before the first it is the link's own.
            room = kbit(max(1.3 * sold, 0.0 if capacity is None else bits_per_second(full)))
            grown: dict[str, object] = {f"links.{link}.rate": room}
            if capacity is not None:
                grown[f"links.{link}.capacity"] = {"steps": [{**capacity["steps"][0], "rate": room}]}
            fair = f.goal * rate / sold
            yield Cause(
                "oversold link",
                because,
                grown,
                fair if sold > 1.05 * rate else math.inf,
                0,
                1.3 * sold / rate,
            )


def _bucket(f: Facts) -> Iterator[Cause]:
    """Packets that a marker held to be beyond the contract, though the flow got less than that."""
    contract = f.mine[0]["contract"]
    marker = f.settings.get("marker")
    if contract is None or not isinstance(marker, Mapping):
        return
    own = [x for x in f.losses if x.place in f.flows]
    beyond = [x for x in f.losses if x.place.partition("/")[0] in f.links and _tells(f, x.place) and x.other]
    lost = sum(x.packets for x in own) + sum(x.other for x in beyond)
    if not lost:
        return
    sent = max(f.of("sent_in") + f.of("sent_out"), 1.0)
    if f.of("sent_out") < _FEW * sent and f.got_there < (1 - _FAR) * contract and not own:
        return
    depth = _depth(marker)
    held = f"its {marker['kind']} marker" + (f", with a bucket of {depth}," if depth else "")
    if own and not beyond:
        what = f"dropped {count(lost)} of the {count(f.lost)} packets it lost"
    else:
        places = " and ".join(sorted({x.place for x in beyond}))
        what = (
            f"marked {100 * f.of('sent_out') / sent:.0f} % of its packets OUT though it stayed below its"
            f" contract, and {count(lost)} of its {count(f.lost)} losses were OUT packets at {places}"
        )
    wanted = max(contract * (0.5 + f.rtt), 20 * f.packet) / 8
    deep = {"kind": "token_bucket", "depth": f"{wanted:.0f} B", "action": marker.get("action", "mark")}
    yield Cause(
        "shallow bucket", f"{held} {what}", {f"flows.{f.group}.marker": deep}, share=_SOME * lost / f.lost
    )


def _depth(marker: Mapping[str, object]) -> str:
    found = next((marker[k] for k in ("depth", "cbs", "bucket") if k in marker), "")
    return str(found["is"]) if isinstance(found, Mapping) else str(found)


def _tells(f: Facts, place: str) -> bool:
    link = place.partition("/")[0]
    return str(f.queue_of(link).get("aqm")) in COLOURED


def _shared(f: Facts) -> Iterator[Cause]:
    """A queue that drops what was bought as it drops all else."""
    link = f.bottleneck
    if link is None or f.coloured or f.mine[0]["contract"] is None:
        return
    here = [x for x in f.losses if x.place.partition("/")[0] == link]
    lost = sum(x.packets for x in here)
    worst = max(here, key=lambda x: x.packets)
    others = f.held_by(link)
    if not lost or not others:
        return
    group = max(others, key=others.__getitem__)
    whole = sum(others.values())
    free = all(f.group_of(g).get("contract") is None for g in others)
    named = group if group != f.group else f"the rest of {group}"
    who = "best effort" if free else named if others[group] > 0.5 else "the other flows"
    share = others[group] if who == named else whole
    because = (
        f"{link} drops what was bought as it drops all else: {count(worst.packets)} of its"
        f" {count(f.lost)} losses were {worst.cause.replace('_', ' ')} there while {who} held"
        f" {100 * share:.0f} % of the buffer"
    )
    yield Cause("shared queue", because, own_room(f, link), share=lost / f.lost)


def _thresholds(f: Facts) -> Iterator[Cause]:
    """IN packets dropped by their curve."""
    link = f.bottleneck
    if link is None or not f.coloured:
        return
    green = sum(x.green for x in f.losses if x.place.partition("/")[0] == link and x.cause != "overflow")
    queue = f.queue_of(link)
    colour = next((c for c in ("in", "green") if isinstance(queue.get(c), Mapping)), None)
    if not green or colour is None:
        return
    low, high = (queue[colour][k].get("is") for k in ("min_th", "max_th"))
    because = (
        f"{link} begins to drop IN packets at {low} and drops them all from {high} on:"
        f" {count(green)} of its {count(f.lost)} losses were such"
    )
    limit = 2 * (packets_of(queue.get("limit")) or 100.0) + 100
    changes = {
        f"links.{link}.queue.limit": f"{limit:.0f} packets",
        f"links.{link}.queue.{colour}.min_th": f"{0.7 * limit:.0f} packets",
        f"links.{link}.queue.{colour}.max_th": f"{0.95 * limit:.0f} packets",
    }
    yield Cause("low thresholds for IN", because, changes, share=green / f.lost)


def _buffer(f: Facts) -> Iterator[Cause]:
    """Overflow where a longer queue would have had room: by colours, or on a link that idles."""
    link = f.bottleneck
    if link is None or not (f.coloured or f.utilisation.get(link, 1.0) < 0.95):
        return
    lost = sum(x.packets for x in f.losses if x.place.partition("/")[0] == link and x.cause == "overflow")
    limit = packets_of(f.queue_of(link).get("limit"))
    if not lost or limit is None:
        return
    idle = f.utilisation.get(link, 1.0)
    with_idle = f", and the link was idle {100 * (1 - idle):.0f} % of the time" if idle < 0.95 else ""
    because = (
        f"{count(lost)} of its {count(f.lost)} losses were overflow at {link}, whose queue holds"
        f" {limit:.0f} packets{with_idle}"
    )
    longer = max(8 * limit, 0.1 * f.rate(link) / max(f.packet, 1.0))
    changes = {f"links.{link}.queue.limit": f"{longer:.0f} packets"}
    yield Cause("short buffer", because, changes, share=_SOME * lost / f.lost)


def _unresponsive(f: Facts) -> Iterator[Cause]:
    """Others without a contract that send on whatever is lost, in a queue that does not hold them back."""
    link = f.bottleneck
    if link is None or not f.is_tcp or f.coloured:
        return
    others = f.held_by(link)
    loud = {g: share for g, share in others.items() if f.group_of(g)["traffic"]["kind"] in DATAGRAMS}
    loud = {g: share for g, share in loud.items() if f.group_of(g).get("contract") is None}
    held = sum(loud.values())
    if held < _LOUD:
        return
    because = (
        f"{', '.join(loud)} held {100 * held:.0f} % of the buffer at {link} and did not slow down at any loss"
    )
    changes: dict[str, object] = {}
    for name in loud:
        traffic = f.group_of(name)["traffic"]
        key = "peak" if traffic["kind"] == "on_off" else "rate"
        each = f.rate(link) / 10 / len(loud) / int(f.group_of(name).get("count", 1))
        changes[f"flows.{name}.traffic.{key}"] = kbit(min(each, bits_per_second(str(traffic[key]))))
    yield Cause("unresponsive flows", because, changes, factor=0.9 / max(1 - held, 0.02))


def _rtt(f: Facts) -> Iterator[Cause]:
    theirs = f.peers_of("rtt")
    if "rtt" not in f.settings or f.of("rtt") < 1.2 * theirs:
        return
    # A shorter RTT brings fewer RTOs, too: the law is without them.
    rate = f.got_there * f.law.rate(f.loss, theirs + f.queueing) / f.law.rate(f.loss, f.rtt)
    own = [runs[0] for runs in f.rows.values() if runs[0]["group"] == f.group]
    rtts = [theirs if row["flow"] in f.flows else float(row["rtt"]) for row in own]
    because = (
        f"its RTT is {quantity(f.of('rtt'), 's', 3)} and the others' {quantity(theirs, 's', 3)}:"
        f" at equal losses it gets {number(f.got_there / rate, 2)} of the rate"
    )
    changes = {f"flows.{f.group}.rtt": [f"{1e3 * rtt:.6g} ms" for rtt in rtts]}
    yield Cause("long RTT", because, changes, factor=rate / f.got_there)


def _congestion(f: Facts) -> Iterator[Cause]:
    """Others at the same queue whose congestion control takes more."""
    mine = str(f.tcp.get("congestion", "reno"))
    link = f.bottleneck
    if link is None:
        return
    theirs: dict[str, list[float]] = {}
    for runs in f.rows.values():
        group = f.group_of(str(runs[0]["group"]))
        kind = str((group.get("tcp") or {}).get("congestion", mine))
        if link in group.get("route", ()) and kind != mine and str(group["traffic"]["kind"]) in TCP:
            # At its own round-trip time they would have had less, or more.
            of = [float(row["throughput"]) * (float(row["rtt"]) + f.queueing) / f.rtt for row in runs]
            theirs.setdefault(kind, []).extend(of)
    if not theirs:
        return
    kind = max(theirs, key=lambda k: sum(theirs[k]) / len(theirs[k]))
    rate = sum(theirs[kind]) / len(theirs[kind])
    because = (
        f"it uses {mine}, and flows at {link} that use {kind} got {quantity(rate, 'bit/s', 3)} each,"
        " for an RTT as its own"
    )
    other = next(
        g["tcp"] for g in f.crossing(link).values() if (g.get("tcp") or {}).get("congestion") == kind
    )
    changes = {f"flows.{f.group}.tcp": {"profile": other.get("profile", "rfc"), "congestion": kind}}
    most = _MORE if {mine, kind} <= LOSS_BASED else math.inf
    if rate > f.got_there:
        yield Cause("congestion control", because, changes, factor=min(rate / f.got_there, most))
