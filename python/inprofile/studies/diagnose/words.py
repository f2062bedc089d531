"""A diagnosis in sentences, with what would mend it, and drawn."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from ...charts.theme import PALETTE, themed
from ...metrics.quantity import quantity, scale
from .bucket import deficit
from .verdict import KINDS, Diagnosis

_HEADERS = {
    14: "Ethernet's header",
    18: "Ethernet's header and checksum",
    38: "all that Ethernet adds on the wire",
}
"""Bytes a packet that a policer may count besides: IEEE 802.3's header, check sequence, preamble and gap."""
_ROUND = 1e-3
ENOUGH = 0.95
"""The share of the rate that TCP should get, as of `plan policer`."""


def counted(rate: float, size: float) -> tuple[float, int] | None:
    """A round rate that this one is if headers count too: bit/s and bytes a packet; None where there is none.

    >>> counted(1_482_213, 1500)
    (1500000.0, 18)
    >>> counted(10_000_100, 1500)
    (10000000.0, 0)
    """
    for extra in (0, *_HEADERS):
        value = rate * (size + extra) / size
        step = 10.0 ** (np.floor(np.log10(value)) - 1)
        near = round(value / step) * step
        if abs(near / value - 1) < _ROUND:
            return float(near), extra
    return None


def as_text(found: Diagnosis, name: str) -> str:
    """Verdict, figures, why, what mends it, and what cannot be told."""
    sent = found.traffic
    parts = [f"{name}: {KINDS[found.kind]}."]
    figures = _figures(found)
    if figures:
        parts.append("\n".join(figures))
    lines = [f"- {sentence}" for sentence in (*found.because, *_got(found))]
    parts.append("\n".join(lines))
    if remedies := mend(found):
        parts.append("What would mend it\n" + "\n".join(f"- {one}" for one in remedies))
    if unknown := (*found.unknown, *(f"{note[0].upper()}{note[1:]}." for note in sent.notes)):
        parts.append("What to know of this capture\n" + "\n".join(f"- {one}" for one in unknown))
    return "\n\n".join(parts)


def _figures(found: Diagnosis) -> list[str]:
    if found.rates is None:
        return []
    lines = [f"Rate   {_between(found.rate, found.rates, 'bit/s')}, counted from the IP header on"]
    size = float(np.median(found.traffic.size))
    rounded = None if found.rate is None else counted(found.rate, size)
    if rounded is not None and rounded[1]:
        lines.append(
            f"       {quantity(rounded[0], 'bit/s')} if {_HEADERS[rounded[1]]} ({rounded[1]} B) is counted"
        )
    if found.bursts is not None:
        wait = None if found.burst is None or found.rate is None else 8 * found.burst / found.rate
        at = "" if wait is None else f", {quantity(wait, 's', digits=3)} at the rate"
        lines.append(f"Burst  {_between(found.burst, found.bursts, 'B')}{at}")
    elif found.queue is not None and found.queue.longest is not None:
        lines.append(f"Queue  up to {quantity(found.queue.longest, 's', digits=3)}")
    return lines


def _between(value: float | None, ends: tuple[float, float], unit: str) -> str:
    if value is None:
        lo, hi = (quantity(end, unit, digits=2) for end in ends)
        return f"between {lo} and {hi}"
    lo, hi = (quantity(end, unit, digits=5) for end in ends)
    return f"{quantity(value, unit, digits=4)} [{lo}, {hi}]"


def share(found: Diagnosis) -> float | None:
    """TCP's goodput over the payload's share of the rate."""
    if found.rate is None:
        return None
    sent = found.traffic
    size = float(np.median(sent.size))
    return found.goodput / (found.rate * sent.mss / max(size, sent.mss + 40.0))


def _got(found: Diagnosis) -> tuple[str, ...]:
    sent = found.traffic
    got = share(found)
    of = "" if got is None else f", {100 * got:.0f} % of what the rate leaves for data"
    many = f"{len(sent.flows)} connection{'s' * (len(sent.flows) != 1)}"
    return (
        f"{many} got {quantity(found.goodput, 'bit/s')} of data{of}; {100 * found.loss:.2f} % of"
        f" {len(sent.time):,} packets were lost.",
    )


def mend(found: Diagnosis) -> list[str]:
    """What would mend it, in sentences with commands."""
    if found.rate is None:
        return []
    got = share(found) or 0.0
    rate = quantity(found.rate, "bit/s", digits=4)
    tc = f"{round(found.rate)}bit"
    if found.kind in ("queue", "shaper"):
        longest = found.queue.longest if found.queue else None
        if longest is None or longest < 0.02:
            return []
        return [
            f"The queue holds {quantity(longest, 's', digits=3)}: a discipline that keeps it short where"
            " it stands"
            f" (tc qdisc replace dev DEV root cake bandwidth {tc}), or ECN and pacing at the sender."
        ]
    if found.kind not in ("policer", "either"):
        return []
    if got >= ENOUGH:
        return [f"Nothing has to be: TCP gets {100 * got:.0f} % of the rate through it."]
    rtt = f"{1e3 * found.traffic.rtt:.3g} ms" if found.traffic.rtt else "RTT"
    flows = len(found.traffic.flows)
    paced = f"{round(0.97 * found.rate)}bit"
    now = "not known" if found.bursts is None else _between(found.burst, found.bursts, "B").partition(" [")[0]
    return [
        f'Its operator: a larger burst. inprofile plan policer --rate "{rate}" --rtt "{rtt}" --flows'
        f" {flows} finds"
        f" the smallest with which TCP gets {100 * ENOUGH:.0f} %; it is {now} now.",
        "Its operator: a shaper in its place, which queues the excess: tc qdisc replace dev DEV root"
        f" tbf rate {tc}"
        " burst 15k latency 50ms, or cake bandwidth for fairness too.",
        "Its customer, before it: a shaper or pacing just below the rate, so that it never drops: tc"
        " qdisc replace"
        f" dev DEV root cake bandwidth {paced}, or fq maxrate {paced} on the sender for one connection.",
    ]


_POINTS = 800
_DROPS = 1500
_RED = "#a23e48"


def picture(found: Diagnosis, name: str) -> alt.VConcatChart:
    """Panels over time: cumulated data, and the bucket's tokens, or the delay where it is known."""
    sent = found.traffic
    data = np.cumsum(np.where(sent.passed, sent.size, 0)).astype(float)
    factor, unit = scale("B", float(data[-1]))
    rows = _thinned(len(data))
    lost = np.flatnonzero(sent.dropped)
    lost = lost[:: max(1, len(lost) // _DROPS)]
    lines: list[dict[str, Any]] = [
        {"t": _s(sent.time[i]), "y": _y(data[i] / factor), "what": "arrived"} for i in rows
    ]
    tokens = None
    if found.kind in ("policer", "either") and found.rate and found.burst:
        missing = deficit(sent.time, sent.size, sent.passed, found.rate / 8)
        tokens = np.clip(found.burst - missing, 0, None)
        most = data + tokens
        lines += [
            {"t": _s(sent.time[i]), "y": _y(most[i] / factor), "what": "most that the bucket passes"}
            for i in rows
        ]
    drops = [{"t": _s(sent.time[i]), "y": _y(data[i] / factor), "what": "lost"} for i in lost]
    title = (
        name
        if found.rate is None
        else f"{name}: {KINDS[found.kind].split(',')[0]}, {quantity(found.rate, 'bit/s')}"
    )
    upper = _panel(lines, drops, f"data ({unit})", title)
    if tokens is not None:
        factor, unit = scale("B", float(found.burst or 1.0))
        fill = [{"t": _s(sent.time[i]), "y": _y(tokens[i] / factor), "what": "tokens"} for i in rows]
        at = [{"t": _s(sent.time[i]), "y": _y(tokens[i] / factor), "what": "lost"} for i in lost]
        lower = [_panel(fill, at, f"tokens ({unit})", "")]
    else:
        known = np.flatnonzero(np.isfinite(sent.delay))
        known = known[_thinned(len(known))]
        waits = [{"t": _s(sent.time[i]), "y": _y(1e3 * sent.delay[i]), "what": "delay"} for i in known]
        lower = [_panel(waits, [], "delay above the least (ms)", "")] if waits else []
    made: alt.VConcatChart = themed(alt.vconcat(upper, *lower).resolve_scale(color="independent"))
    return made


def _thinned(count: int) -> Any:
    return (
        np.unique(np.linspace(0, max(0, count - 1), min(count, _POINTS)).astype(int))
        if count
        else np.empty(0, int)
    )


def _s(value: float) -> float:
    return round(float(value), 5)


def _y(value: float) -> float:
    return float(f"{value:.6g}")


def _panel(lines: list[dict[str, Any]], drops: list[dict[str, Any]], y: str, title: str) -> alt.LayerChart:
    names = list(dict.fromkeys(row["what"] for row in [*lines, *drops]))
    colours = [_RED if name == "lost" else PALETTE[i] for i, name in enumerate(names)]
    colour = alt.Color("what:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours))
    along = alt.X("t:Q", title="time (s)", scale=alt.Scale(nice=False))
    up = alt.Y("y:Q", title=y)
    line = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=1.2).encode(x=along, y=up, color=colour)
    dots = alt.Chart(alt.Data(values=drops)).mark_point(filled=True, size=9, opacity=0.8)
    layers = [line, dots.encode(x=along, y=up, color=colour)] if drops else [line]
    return alt.LayerChart(layer=layers).properties(width=640, height=200, title=title)
