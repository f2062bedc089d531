"""What was sent towards the limiter and what became of each packet, from a capture on either side of it.

Before the limiter a capture has every transmission. One was dropped if its data had to be sent again: by
acknowledgements and SACK blocks (RFC 2018) it is known which copy arrived. Behind the limiter a capture has
what passed; what was dropped are gaps in the sequence numbers that are filled later. New data is sent in
order, so it came after what precedes it in the sequence and before what follows.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .captures import Unreadable
from .segments import ACK, SYN, Segments, towards, unwrapped

Array = np.ndarray[Any, np.dtype[Any]]
DROPPED, PASSED, UNKNOWN = 0, 1, -1
_EARLY = 0.75
"""An acknowledgement sooner than this share of the least round-trip time is of an earlier copy."""
_LONGEST = 1.5
_REORDERED = 3e-3
"""Seconds within which a gap that is filled was reordering, where no round-trip time is known."""
_TIMEOUT = 0.18
"""Seconds of silence after which TCP may have sent again what was lost last: Linux waits 200 ms or more."""
_MOST = 3_000_000
_WORTH = 20
"""Data packets of a connection that are worth a look."""


@dataclass(frozen=True)
class Traffic:
    """Packets of data in the order in which they came to the limiter."""

    time: Array
    """Seconds from the first packet of the capture; of what was dropped before it, its earliest moment."""
    until: Array
    """The latest that it came: for what was captured the same."""
    size: Array
    """Bytes from the IP header on."""
    fate: Array
    """PASSED, DROPPED, or UNKNOWN at the end of the capture."""
    flow: Array
    delay: Array
    """Seconds above the least: round trip before the limiter, one-way behind it; NaN where not known."""
    side: str
    """`before` or `after` the losses; `either` where nothing was lost."""
    both: bool
    """Whether acknowledgements were captured."""
    rtt: float | None
    """The least round-trip time, seconds: of the handshakes where they were captured."""
    flows: tuple[str, ...]
    payload: int
    """Bytes of data that arrived, each counted once."""
    mss: int
    sack: bool
    notes: tuple[str, ...]

    @property
    def dropped(self) -> Array:
        """Which were dropped."""
        return np.asarray(self.fate == DROPPED)

    @property
    def passed(self) -> Array:
        """Which took tokens."""
        return np.asarray(self.fate != DROPPED)


@dataclass
class _Flow:
    """One way of one connection."""

    name: str
    time: Array
    size: Array
    start: Array
    end: Array
    tsval: Array
    acks: Array
    """Rows of time and acknowledgement number, unwrapped."""
    sacks: list[tuple[float, int, int]]
    duplicates: list[tuple[int, int]]
    """Ranges that came twice (RFC 2883)."""
    mss: int
    handshake: float | None
    sack: bool


def traffic(found: Segments) -> Traffic:
    """The data of all connections that go the same way as most of it.

    Raises Unreadable where there is no data, or too little of it.
    """
    flows, notes = _flows(found)
    seen = [_again(flow) for flow in flows]
    again, holes = (sum(x[i] for x in seen) for i in (0, 1))
    side = "either" if not again and not holes else "before" if again >= holes else "after"
    both = any(len(flow.acks) for flow in flows)
    if min(again, holes) > 0.1 * max(again, holes, 1):
        notes.append(
            f"losses on both sides of the capture: {again:,} packets were sent again here, {holes:,} were"
            " missing already; those of the larger number are looked at"
        )
    made = [(_before if side != "after" else _after)(flow) for flow in flows]
    order_of = np.concatenate([m[0] for m in made])
    order = np.argsort(order_of, kind="stable")
    index = np.concatenate([np.full(len(m[0]), i) for i, m in enumerate(made)])
    time, until, size, fate, delay = (np.concatenate([m[i] for m in made])[order] for i in range(5))
    rtts = [f.handshake for f in flows if f.handshake] or [m[5] for m in made if m[5] is not None]
    payload = sum(int(m[6]) for m in made)
    return Traffic(
        time,
        until,
        size,
        fate,
        index[order],
        delay,
        side,
        both,
        min(rtts) if rtts else None,
        tuple(flow.name for flow in flows),
        payload,
        max(flow.mss for flow in flows),
        any(flow.sack for flow in flows),
        (*found.notes, *notes),
    )


def _flows(found: Segments) -> tuple[list[_Flow], list[str]]:
    """The connections with data, one way."""
    notes: list[str] = []
    data = found.payload > 0
    if len(found) > _MOST:
        raise Unreadable(
            f"{found.name} has {len(found):,} TCP segments, and {_MOST:,} are read at most: keep the"
            " first with"
            f" editcap -r FILE KEPT 1-{_MOST}"
        )
    if not data.any():
        raise Unreadable(
            f"{found.name} has acknowledgements alone, packets {found.number[0]} to {found.number[-1]}:"
            " data went"
            " the other way, or was not captured: capture both directions, or that of the data"
        )
    count = len(found.ends)
    bytes_of = np.zeros((count, 2))
    np.add.at(bytes_of, (found.connection[data], found.way[data]), found.payload[data])
    way = bytes_of.argmax(axis=1)
    from_ = towards(found, bytes_of, way)
    flows = []
    small = 0
    for one in range(count):
        mine = found.connection == one
        sent = mine & data & (found.way == from_[one])
        if sent.sum() < _WORTH:
            small += int(sent.sum())
            continue
        flows.append(_flow(found, mine, sent, one, int(from_[one])))
    if not flows:
        raise Unreadable(
            f"{found.name}: no connection has {_WORTH} packets of data ({int(data.sum())} in all):"
            " capture a longer"
            " transfer, ten seconds or more"
        )
    if small:
        notes.append(f"{small:,} packets of short connections are left out")
    left = bytes_of.sum() - sum(bytes_of[i, from_[i]] for i in range(count))
    if left > 0.05 * bytes_of.sum():
        notes.append(f"{100 * left / bytes_of.sum():.0f} % of the data went the other way and is left out")
    return flows, notes


def _flow(found: Segments, mine: Array, sent: Array, one: int, way: int) -> _Flow:
    rows = np.flatnonzero(sent)
    seq = found.seq[rows]
    start = unwrapped(seq, int(seq[0]), 1 << 33)
    back = mine & (found.way != way) & (found.flags & ACK > 0)
    acks = np.flatnonzero(back)
    syn = mine & (found.flags & SYN > 0)
    offered = found.mss[syn & (found.mss > 0)]
    stamped = bool((found.tsval[rows] >= 0).mean() > 0.5)
    payload = found.payload[rows]
    mss = int(offered.min()) - 12 * stamped if len(offered) else 1460 - 12 * stamped
    mss = max(mss, int(payload[payload <= 1460].max(initial=1)))
    numbers = (
        np.column_stack([found.time[acks], unwrapped(found.ack[acks], int(seq[0]), 1 << 33)])
        if len(acks)
        else np.empty((0, 2))
    )
    sacks, duplicates = _blocks(found, acks, numbers, int(seq[0]))
    hello = np.flatnonzero(syn & (found.way == way))
    answer = np.flatnonzero(syn & (found.way != way))
    times = _handshake(found, mine, hello, answer)
    ends = found.ends[one]
    name = f"{ends[way]} to {ends[1 - way]}"
    made = _Flow(
        name,
        found.time[rows],
        found.size[rows],
        start,
        start + payload,
        found.tsval[rows],
        numbers,
        sacks,
        duplicates,
        mss,
        times,
        bool(sacks),
    )
    return _split(made)


def _blocks(
    found: Segments, acks: Array, numbers: Array, base: int
) -> tuple[list[tuple[float, int, int]], list[tuple[int, int]]]:
    """SACK blocks with their times, and those that report a duplicate (RFC 2883 §4)."""
    sacks, duplicates = [], []
    for nth in range(4):
        for at in np.flatnonzero(found.sacks[acks, nth, 0] >= 0).tolist():
            left, right = (
                (1 << 33) + int(np.int32(np.uint32((int(edge) - base) & 0xFFFFFFFF)))
                for edge in found.sacks[acks[at], nth]
            )
            if nth == 0 and right <= numbers[at, 1]:
                duplicates.append((left, right))
            else:
                sacks.append((float(found.time[acks[at]]), left, right))
    return sorted(sacks), duplicates


def _handshake(found: Segments, mine: Array, hello: Array, answer: Array) -> float | None:
    """The whole round-trip time by the handshake, both parts of which pass the capture."""
    if not len(hello) or not len(answer):
        return None
    first, second = sorted((int(hello[-1]), int(answer[-1])))
    third = np.flatnonzero(mine & (np.arange(len(found)) > second) & (found.way == found.way[first]))
    return float(found.time[third[0]] - found.time[first]) if len(third) else None


def _split(flow: _Flow) -> _Flow:
    """What the host handed over as one (TSO, GRO) as the packets that it was on the wire."""
    length = flow.end - flow.start
    parts = np.maximum(1, -(-length // flow.mss))
    if parts.max() == 1:
        return flow
    row = np.repeat(np.arange(len(length)), parts)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    start = flow.start[row] + nth * flow.mss
    end = np.minimum(start + flow.mss, flow.end[row])
    header = (flow.size - length)[row]
    return replace(
        flow, time=flow.time[row], size=header + end - start, start=start, end=end, tsval=flow.tsval[row]
    )


def _again(flow: _Flow) -> tuple[int, int]:
    """How many packets come again that were there before, and how many fill a gap."""
    high = np.maximum.accumulate(np.concatenate([[flow.start[0]], flow.end[:-1]]))
    late = np.flatnonzero(flow.end <= high)
    first: dict[int, int] = {}
    starts = flow.start.tolist()
    for i, s in enumerate(starts):
        first.setdefault(s, i)
    seen = sum(first[starts[i]] < i for i in late.tolist())
    return seen, len(late) - seen


Made = tuple[Array, Array, Array, Array, Array, float | None, int]


def _acked(flow: _Flow, start: Array, end: Array) -> Array:
    """When each range was first acknowledged, in sequence or by SACK; infinity where it never was."""
    when = np.full(len(end), np.inf)
    if len(flow.acks):
        high = np.maximum.accumulate(flow.acks[:, 1])
        at = np.searchsorted(high, end, side="left")
        there = at < len(high)
        when[there] = flow.acks[at[there], 0]
    if flow.sacks:
        order = np.argsort(start, kind="stable")
        keys = start[order]
        told: list[tuple[int, int]] = []
        for time, left, right in flow.sacks:
            if (left, right) in told:
                continue
            told = [*told[-7:], (left, right)]
            lo, hi = np.searchsorted(keys, left, "left"), np.searchsorted(keys, right, "left")
            rows = order[lo:hi]
            rows = rows[end[rows] <= right]
            when[rows] = np.minimum(when[rows], time)
    return when


def _before(flow: _Flow) -> Made:
    """Which copy of what was sent again arrived, and the round-trip time of what was sent once."""
    starts = flow.start.tolist()
    unique: list[int] = []
    owner = np.empty(len(starts), dtype=np.int64)
    chains: dict[int, list[int]] = {}
    high = -1
    for i, s in enumerate(starts):
        if s in chains:
            chains[s].append(i)
        elif s >= high or not unique:
            chains[s] = [i]
            unique.append(s)
        else:
            # Sent again with other boundaries: it belongs to the packet that its first byte was in.
            at = bisect_right(unique, s) - 1
            chains[unique[max(0, at)]].append(i)
        high = max(high, s)
    for members in chains.values():
        owner[members] = members[0]
    when = _acked(flow, flow.start, flow.end)
    twice = _twice(flow)
    single = np.bincount(owner, minlength=len(starts))[owner] == 1
    round_trip = when - flow.time
    sane = single & np.isfinite(round_trip) & (round_trip >= 0)
    least = float(round_trip[sane].min()) if sane.any() else None
    longest = _LONGEST * float(round_trip[sane].max()) if sane.any() else np.inf
    last = flow.acks[-1, 0] if len(flow.acks) else np.inf
    fate = np.full(len(starts), PASSED)
    if not len(flow.acks):
        for members in chains.values():
            fate[members[:-1]] = DROPPED
    else:
        fate[single & ~np.isfinite(when)] = UNKNOWN
        for members in chains.values():
            if len(members) == 1:
                continue
            rows = np.array(members)
            told = when[rows[0]]
            if not np.isfinite(told):
                fate[rows] = DROPPED
                fate[rows[-1]] = UNKNOWN if flow.time[rows[-1]] > last - 2 * (least or 0) else DROPPED
                continue
            soon = _EARLY * (least or 0.0)
            early = np.flatnonzero(flow.time[rows] + soon <= told)
            copy = int(early[-1]) if len(early) else 0
            # What arrives is told within the longest round trip: a later copy was only faster than others.
            sent = int(np.count_nonzero(flow.time[rows] < told)) - 1
            if copy < sent and told - flow.time[rows[copy]] > longest:
                copy += 1
            # Of copies that came twice the receiver tells (RFC 2883): as many more passed.
            copy -= twice.get(starts[members[0]], 0)
            fate[rows[: max(0, copy)]] = DROPPED
    delay = np.where(single & (fate == PASSED) & np.isfinite(when), round_trip, np.nan)
    delay = _newest(flow, when, delay)
    arrived = (
        int(min(flow.end.max(), flow.acks[:, 1].max()) - flow.start.min())
        if len(flow.acks)
        else int(flow.end.max() - flow.start.min())
    )
    # Several connections may keep a queue standing from their first data on: before it came the handshake.
    empty = min(least or 0.0, flow.handshake or np.inf)
    return flow.time, flow.time, flow.size, fate, delay - empty, least, arrived


def _twice(flow: _Flow) -> dict[int, int]:
    """How often each segment was reported to have come again, by a block that is acknowledged already."""
    found: dict[int, int] = {}
    for left, right in flow.duplicates:
        for start in flow.start[(flow.start >= left) & (flow.end <= right)][:64].tolist():
            found[start] = found.get(start, 0) + 1
    return found


def _newest(flow: _Flow, when: Array, delay: Array) -> Array:
    """The round-trip times of the newest packet of each acknowledgement alone: the others waited for it."""
    kept = np.full(len(delay), np.nan)
    finite = np.flatnonzero(np.isfinite(when) & np.isfinite(delay))
    if not len(finite):
        return kept
    order = finite[np.lexsort((flow.end[finite], when[finite]))]
    newest = np.concatenate([np.diff(when[order]) > 0, [True]])
    kept[order[newest]] = delay[order[newest]]
    return kept


def _after(flow: _Flow) -> Made:
    """What passed, and gaps that were filled later."""
    base = flow.start[0]
    high = np.maximum.accumulate(np.concatenate([[base], flow.end[:-1]]))
    jumps = np.flatnonzero(flow.start > high)
    jumps = jumps[jumps > 0]
    wait = 0.25 * flow.handshake if flow.handshake else _REORDERED
    by_start: dict[int, int] = {}
    for i, s in enumerate(flow.start.tolist()):
        by_start.setdefault(s, i)
    times, untils, sizes = [], [], []
    header = int(np.median(flow.size - (flow.end - flow.start)))
    # What reached so far last: the next new data followed it, whatever was sent again in between.
    raised = np.maximum.accumulate(np.where(flow.end > high, np.arange(len(high)), 0))
    silence = np.diff(flow.time, prepend=flow.time[0])
    for at in jumps.tolist():
        left, right = int(high[at]), int(flow.start[at])
        filled = by_start.get(left)
        if filled is not None and filled > at and flow.time[filled] - flow.time[at] < wait:
            continue
        count = -(-(right - left) // flow.mss)
        before = raised[at - 1]
        while before and silence[before] > _TIMEOUT:
            # It was lost itself before, perhaps with what followed it.
            before = raised[before - 1]
        times.append(np.full(count, flow.time[before]))
        untils.append(np.full(count, flow.time[at]))
        sizes.append(np.minimum(flow.mss, right - left - np.arange(count) * flow.mss) + header)
    lost_time = np.concatenate(times) if times else np.empty(0)
    lost_until = np.concatenate(untils) if untils else np.empty(0)
    lost_size = np.concatenate(sizes) if sizes else np.empty(0, dtype=np.int64)
    time = np.concatenate([flow.time, lost_time])
    fate = np.concatenate([np.full(len(flow.time), PASSED), np.full(len(lost_time), DROPPED)])
    delay = np.concatenate([_one_way(flow), np.full(len(lost_time), np.nan)])
    order = np.argsort(time, kind="stable")
    size = np.concatenate([flow.size, lost_size])
    until = np.concatenate([flow.time, lost_until])
    arrived = int(flow.end.max() - flow.start.min())
    return time[order], until[order], size[order], fate[order], delay[order], None, arrived


_TICKS = (1e-3, 4e-3, 1e-2, 1e-6, 1e-1)
"""Units of TCP's timestamps that systems use (RFC 7323 §5.4 allows 1 ms to 1 s; Linux can have 1 µs)."""


def _one_way(flow: _Flow) -> Array:
    """Arrival less the sender's timestamp, above its least; NaN without timestamps."""
    none = np.full(len(flow.time), np.nan)
    if (flow.tsval < 0).any():
        return none
    stamps = unwrapped(flow.tsval, int(flow.tsval[0]), 0)
    ticks, seconds = float(stamps[-1] - stamps[0]), float(flow.time[-1] - flow.time[0])
    if ticks <= 0 or seconds <= 0:
        return none
    unit = min(_TICKS, key=lambda one: abs(np.log(ticks * one / seconds)))
    if abs(np.log(ticks * unit / seconds)) > 0.2:
        return none
    raw = flow.time - stamps * unit
    return np.asarray(raw - raw.min())
