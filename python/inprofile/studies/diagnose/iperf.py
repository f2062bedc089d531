"""What iperf3's JSON (`iperf3 --json`) says of a limiter: little, as it has sums of whole intervals.

Of TCP there are bytes, retransmissions and the round-trip time an interval; of UDP, at the receiver,
datagrams lost. From them follow a rate, bounds of a burst and whether packets waited. That the losses are a
policer's does not: random loss without a queue looks alike. So the most that is said is that a policer is
possible, and to capture the packets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._input import read_file
from ...metrics.quantity import quantity
from .captures import Unreadable

_HEADERS = {"TCP": 52, "UDP": 28}
"""IP and TCP with timestamps; IP and UDP."""
_LOSSY = 0.3
"""The share of intervals with losses from which on a limit is at work all the time."""
_LEAST = 4
_INFLATED = 1.5
"""Of the least round-trip time: a queue stood."""
KINDS = {
    "possible": "a policer is possible; sums of intervals cannot show one",
    "either": "a policer, or a full queue of the same rate",
    "queue": "a queue that fills, of a slower link or a shaper",
    "loss": "losses, too few of them to come from a limit that is always at work",
    "none": "no loss, and nothing waited",
}


@dataclass(frozen=True)
class Intervals:
    """What iperf3's output says."""

    kind: str
    """One of `KINDS`."""
    rate: float | None
    """bit/s, from the IP header on."""
    rates: tuple[float, float] | None
    bursts: tuple[float, float] | None
    """Bounds of the burst, bytes."""
    goodput: float
    loss: float
    because: tuple[str, ...]
    unknown: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "kind": self.kind,
            "rate": self.rate,
            "rate_interval": None if self.rates is None else list(self.rates),
            "burst": None,
            "burst_interval": None if self.bursts is None else list(self.bursts),
            "sure": 0.0,
            "because": list(self.because),
            "unknown": list(self.unknown),
            "goodput": self.goodput,
            "loss": self.loss,
            "mend": [],
            "notes": [],
        }

    def text(self, name: str) -> str:
        """For a reader."""
        parts = [f"{name}: {KINDS[self.kind]}."]
        if self.rate is not None and self.rates is not None:
            lo, hi = (quantity(end, "bit/s") for end in self.rates)
            lines = [f"Rate   {quantity(self.rate, 'bit/s')} [{lo}, {hi}], counted from the IP header on"]
            if self.bursts is not None:
                lo, hi = (quantity(end, "B") for end in self.bursts)
                lines.append(f"Burst  between {lo} and {hi}")
            parts.append("\n".join(lines))
        parts.append("\n".join(f"- {one}" for one in self.because))
        parts.append("What it cannot tell\n" + "\n".join(f"- {one}" for one in self.unknown))
        return "\n\n".join(parts)


@dataclass(frozen=True)
class _Row:
    start: float
    end: float
    size: float
    """Bytes from the IP header on that were taken, of UDP that arrived."""
    lost: float
    rtt: float | None


def is_iperf(path: str | Path) -> bool:
    """Whether a file begins as JSON does."""
    with Path(path).open("rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def of_iperf(path: str | Path) -> Intervals:
    """Diagnose iperf3's JSON. Raises Unreadable for what is none, or has too few intervals."""
    name = str(path)
    try:
        tree = json.loads(read_file(path))
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"{name}:{error.lineno}: {error.msg}: the JSON is cut off or damaged: let iperf3 --json end"
            " by itself"
        ) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"{name} is no JSON of iperf3: {error}") from None
    if "error" in tree:
        raise Unreadable(f"{name}: iperf3 failed: {str(tree['error'])[:200]}: run it again")
    try:
        protocol = str(tree["start"]["test_start"]["protocol"])
        rows = _rows(tree, protocol, name)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Unreadable(
            f"{name} is no JSON of iperf3's client or server ({error} is missing or wrong): iperf3 -c"
            " HOST --json"
        ) from None
    if len(rows) < 2 * _LEAST:
        raise Unreadable(
            f"{name} has {len(rows)} intervals, and {2 * _LEAST} are needed: iperf3 -t 30 -i 0.5 --json"
        )
    return _tcp(rows) if protocol == "TCP" else _udp(rows)


def _rows(tree: Mapping[str, Any], protocol: str, name: str) -> list[_Row]:
    if protocol not in _HEADERS:
        raise Unreadable(f"{name} is of {protocol}: TCP and UDP are diagnosed")
    header = _HEADERS[protocol]
    packet = float(tree["start"].get("tcp_mss_default") or 1448)
    found = []
    for interval in tree["intervals"]:
        whole, streams = interval["sum"], interval["streams"]
        size = float(whole["bytes"])
        if protocol == "TCP":
            if "retransmits" not in whole:
                raise Unreadable(
                    f"{name} is of the receiver, which knows no retransmissions: give the sender's JSON"
                    " (with iperf3 -R the server's: --get-server-output)"
                )
            lost = float(whole["retransmits"])
            taken = size * (packet + header) / packet
            rtts = [float(s["rtt"]) * 1e-6 for s in streams if s.get("rtt")]
        else:
            if "lost_packets" not in whole:
                raise Unreadable(
                    f"{name} is of UDP's sender, which knows no loss an interval: give the receiver's"
                    " JSON (iperf3 -s"
                    " --json, or -R)"
                )
            lost = float(whole["lost_packets"])
            taken = size + header * (float(whole["packets"]) - lost)
            rtts = []
        rtt = sum(rtts) / len(rtts) if rtts else None
        found.append(_Row(float(whole["start"]), float(whole["end"]), taken, lost, rtt))
    return [row for row in found if row.end > row.start]


def _plateau(rows: Sequence[_Row]) -> tuple[float, tuple[float, float]]:
    """The rate (bit/s) from the first interval with losses to the last, and its range over their thirds."""
    lossy = [i for i, row in enumerate(rows) if row.lost]
    inner = rows[lossy[0] + 1 : lossy[-1] + 1] or rows
    third = max(1, len(inner) // 3)
    parts = [_rate(inner[i : i + third]) for i in range(0, len(inner) - third + 1, third)]
    return _rate(inner), (min(parts), max(parts))


def _rate(rows: Sequence[_Row]) -> float:
    return 8 * sum(row.size for row in rows) / (rows[-1].end - rows[0].start)


def _bursts(rows: Sequence[_Row], first: int, rate: float) -> tuple[float, float]:
    """Bounds of the burst (bytes): what had passed before the first interval with losses, and after it."""
    filled = rate / 8 * (rows[first].start - rows[0].start)
    before = sum(row.size for row in rows[:first])
    return max(0.0, before - filled), max(0.0, before + rows[first].size - filled)


def _tcp(rows: Sequence[_Row]) -> Intervals:
    seconds = rows[-1].end - rows[0].start
    lossy = [i for i, row in enumerate(rows) if row.lost]
    packets = sum(row.size for row in rows) / 1500
    loss = min(1.0, sum(row.lost for row in rows) / max(1.0, packets))
    goodput = _rate(rows) * 1448 / 1500
    capture = (
        "Which packets were lost, and when: capture them, tcpdump -i DEV -s 128 -w FILE tcp, at either end."
    )
    rtts = [row.rtt for row in rows if row.rtt]
    under = [row.rtt for row in (rows[i] for i in lossy) if row.rtt] or rtts
    inflated = bool(rtts) and sorted(under)[len(under) // 2] > _INFLATED * min(rtts)
    said = [f"{sum(row.lost for row in rows):,.0f} retransmissions in {len(lossy)} of {len(rows)} intervals."]
    if rtts:
        said.append(f"Round-trip times from {quantity(min(rtts), 's')} to {quantity(max(rtts), 's')}.")
    if inflated:
        rate, rates = _rate(rows), (_rate(rows[: len(rows) // 2]), _rate(rows[len(rows) // 2 :]))
        ends = (min(rates), max(rates))
        said.append("Packets waited while the transfer ran: what limits it queues them.")
        return Intervals("queue", rate, ends, None, goodput, loss, tuple(said), (capture,))
    if len(lossy) < max(_LEAST, _LOSSY * len(rows)):
        kind = "loss" if lossy else "none"
        return Intervals(kind, None, None, None, goodput, loss, tuple(said), (capture,))
    rate, rates = _plateau(rows)
    bursts = _bursts(rows, lossy[0], rate)
    said.append(
        f"Losses went on for {seconds:.0f} s while nothing waited; in the meantime TCP got an even rate."
        if rates[1] < 1.1 * rates[0]
        else "Losses went on while nothing waited, at a rate that varied."
    )
    unknown = (
        "Whether the losses are a policer's or random: a policer drops only when its bucket is empty.",
        "The rate, if TCP did not use all of it: it is at least this.",
        capture,
    )
    return Intervals("possible", rate, rates, bursts, goodput, loss, tuple(said), unknown)


def _udp(rows: Sequence[_Row]) -> Intervals:
    goodput = _rate(rows)
    lost = sum(row.lost for row in rows)
    packets = sum(row.size for row in rows) / 1500 + lost
    loss = lost / max(1.0, packets)
    lossy = [i for i, row in enumerate(rows) if row.lost]
    said = [f"{lost:,.0f} datagrams lost, in {len(lossy)} of {len(rows)} intervals."]
    if len(lossy) < max(_LEAST, _LOSSY * len(rows)):
        kind = "loss" if lossy else "none"
        unknown = ("A limit above the rate that was sent: send faster, iperf3 -u -b RATE.",)
        return Intervals(kind, None, None, None, goodput, loss, tuple(said), unknown)
    rate, rates = _plateau(rows)
    said.append("What arrived kept to one rate while more was sent.")
    unknown = (
        "Whether the excess was dropped at once or after a queue was full: the delay of datagrams is not"
        " in it."
        " Run TCP and capture it, tcpdump -i DEV -s 128 -w FILE tcp.",
    )
    even = rates[1] < 1.05 * rates[0]
    if not even:
        return Intervals("loss", None, None, None, goodput, loss, (said[0],), unknown)
    bursts = _bursts(rows, lossy[0], rate)
    return Intervals("either", rate, rates, bursts, goodput, loss, tuple(said), unknown)
