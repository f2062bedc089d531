"""Policer, shaper, or neither: what a capture shows, how sure that is, and what it cannot show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bucket import Fit, deficit, fit
from .path import Queue, Slope, queue, waits_as
from .traffic import Traffic

KINDS = {
    "policer": "a policer",
    "shaper": "a shaper",
    "queue": "a queue that fills, of a slower link or a shaper without a burst",
    "either": "a policer, or a queue of the same rate and limit",
    "loss": "losses that follow no token bucket",
    "none": "neither a policer nor a shaper",
}
_AGREES = 0.5
"""The least share of a policer's losses that its bucket explains; the others were lost elsewhere."""
_AGREES_ALONE = 0.7
"""The same where no delay tells a policer from a queue, nor from an AQM whose queue is not seen."""
_ALL = 0.95
_LEVEL = 0.3
"""No queue stood if packets waited less than this share of what it would have been."""
_SAME = 0.3
_FILLS = 1.5
_EPISODES = 4
_DROPS = 8
_GAIN = 10.0
"""Losses that are less than e^10 times as likely with the bucket as at random may be chance."""
_PACKETS = 5
"""A burst below so many packets is no shaper's of which a link could not have done the same."""
_TRAIN = 8
"""Nor one of so many a policer's behind which packets were captured: a sender's trains do as much."""
_LEAST = 3.0
"""Packets that a bucket has to hold for its depth to be told behind it: there a drop follows what passed."""
_RATE_TOLD, _BURST_TOLD = 1.1, 1.2
"""Upper over lower end of an interval from which on the value is not told, but the interval alone."""


@dataclass(frozen=True)
class Diagnosis:
    """What there is on the way."""

    kind: str
    """One of `KINDS`."""
    rate: float | None
    """bit/s, from the IP header on; None where there is none, or where it cannot be told to 5 %."""
    rates: tuple[float, float] | None
    burst: float | None
    """Bytes; None also where it cannot be told to 10 %."""
    bursts: tuple[float, float] | None
    sure: float
    """Of a policer: the share of its packets that it explains. Of a queue: of windows at its rate."""
    because: tuple[str, ...]
    """Why this and nothing else, in sentences."""
    unknown: tuple[str, ...]
    """What this capture cannot tell, and what would."""
    fit: Fit | None
    slope: Slope | None
    queue: Queue | None
    traffic: Traffic

    @property
    def goodput(self) -> float:
        """Data that arrived, bit/s, over the capture."""
        time = self.traffic.time
        return 8 * self.traffic.payload / max(1e-9, float(time[-1] - time[0]))

    @property
    def loss(self) -> float:
        """The share of packets that was dropped."""
        return float(self.traffic.dropped.mean())


def diagnose(found: Traffic) -> Diagnosis:
    """Look for a token bucket among the losses, and for a queue among the delays."""
    bucket, line = fit(found), queue(found)
    slope = None if bucket is None else waits_as(found, bucket.rate)
    if bucket is not None and agrees(bucket, alone=slope is None) and _refilled(found, bucket):
        kind, why, unknown = _policed(found, bucket, slope, line)
        if kind in ("policer", "either"):
            told = _told(found, bucket)
            unknown = (*_limits(found, told), *unknown)
            return Diagnosis(kind, *told, bucket.tolerant, why, unknown, bucket, slope, line, found)
        if line is None:
            line = Queue(bucket.rate, bucket.rates, None, None, None, bucket.tolerant, bucket.dropped)
    nothing = Diagnosis("none", None, None, None, None, 0.0, (), (), bucket, slope, line, found)
    if line is not None:
        shaped = line.burst is not None and line.bursts is not None and line.bursts[0] > _PACKETS * found.mss
        return replace(
            nothing,
            kind="shaper" if shaped else "queue",
            rate=line.rate,
            rates=line.rates,
            burst=line.burst if shaped else None,
            bursts=line.bursts if shaped else None,
            sure=line.even,
            because=_why_queue(line, shaped, found),
            unknown=_not_told(found),
        )
    if found.dropped.any():
        return replace(
            nothing,
            kind="loss",
            sure=_lack(bucket),
            because=_why_loss(bucket, found),
            unknown=_not_told(found),
        )
    why = (f"None of {len(found.time):,} packets of data was lost, and no queue of one rate stood.",)
    return replace(nothing, sure=1.0, because=why, unknown=_not_told(found))


def agrees(bucket: Fit, *, alone: bool) -> bool:
    """Whether the losses are those of a token bucket: explained, often enough, not by chance.

    `alone`: where losses are all there is to go by.
    """
    return (
        bucket.tolerant >= (_AGREES_ALONE if alone else _AGREES)
        and bucket.dropped >= _DROPS
        and bucket.episodes >= _EPISODES
        and bucket.gain >= _GAIN
    )


def _refilled(found: Traffic, bucket: Fit) -> bool:
    """Whether the bucket was filled more than once: else its rate is hardly known, and any may be made up."""
    seconds = float(found.time[-1] - found.time[0])
    return bucket.rate / 8 * seconds > _FILLS * bucket.burst


Told = tuple[float | None, tuple[float, float] | None, float | None, tuple[float, float] | None]


def _told(found: Traffic, bucket: Fit) -> Told:
    """Rate, rates, burst and bursts, as far as the packets tell them."""
    if found.side == "after" and bucket.bursts[0] < _LEAST * found.size.max():
        return None, None, None, None
    rate = None if bucket.rates[1] > _RATE_TOLD * bucket.rates[0] else bucket.rate
    burst = None if bucket.bursts[1] > _BURST_TOLD * bucket.bursts[0] else bucket.burst
    return rate, bucket.rates, burst, bucket.bursts


def _limits(found: Traffic, told: Told) -> tuple[str, ...]:
    """What of rate and burst cannot be told, and what would tell it."""
    rate, rates, burst, bursts = told
    if rates is None or bursts is None:
        least = _LEAST * float(found.size.max())
        return (
            f"The burst may be below {least / 1e3:.1f} kB. Seen from behind the limiter, neither such a"
            " burst nor its rate can be told: capture at the sender.",
        )
    more = (
        "send with several connections at once (iperf3 -P 8; diagnose --live … --connections 8), which keep"
        " the bucket empty."
    )
    if rate is None:
        return (f"Its bucket was hardly ever empty for long, and the rate is not told better: {more}",)
    if burst is None:
        return (f"A burst is told to a packet at best, as packets pass or do not: {more}",)
    return ()


def _lack(bucket: Fit | None) -> float:
    return 0.0 if bucket is None else 1 - max(0.0, bucket.tolerant)


def _policed(
    found: Traffic, bucket: Fit, slope: Slope | None, line: Queue | None
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """`policer`, `either` or `queue`, and why."""
    per_cent = 100 * bucket.tolerant
    first = (
        f"A token bucket explains {per_cent:.1f} % of the {bucket.dropped:,} losses, in {bucket.episodes:,}"
        f" episodes: they came when it was empty{', and only then' if bucket.tolerant > _ALL else ''}."
    )
    queued = slope is not None and slope.ci95[0] > 0.5 and 0.7 < slope.mean < 1.4
    if slope is not None and slope.level > _LEVEL and line is not None and line.longest is not None:
        queued = queued or abs(line.rate / bucket.rate - 1) < _SAME
    flat = slope is not None and slope.ci95[1] < 0.5 and slope.level < 0.5
    if slope is not None and not queued and (flat or slope.level < _LEVEL):
        why = f"Packets did not wait as it emptied, as they would in a queue ({_slope(slope)})."
        return "policer", (first, why), _not_told(found)
    if queued:
        return "queue", (first,), ()
    if slope is None and found.side == "after":
        pinned = _pinned(found, bucket)
        if pinned > 0.7:
            return "queue", (first,), ()
        if bucket.burst > _TRAIN * found.mss:
            why = (
                "Again and again packets came faster than the rate until it was empty, which no queue lets"
                " through."
            )
            return "policer", (first, why), _not_told(found)
    told = "its delays are too noisy" if slope is not None else "there are no round-trip times in it"
    unknown = (
        f"A full queue of {bucket.burst:,.0f} B drops the same packets; only delay tells them apart, and"
        f" {told}:"
        " capture both directions at the sender.",
    )
    return "either", (first,), unknown + _not_told(found)


def _slope(slope: Slope) -> str:
    lo, hi = slope.ci95
    if hi < 0.5:
        return f"delay grew by {slope.mean:.2f} [{lo:.2f}, {hi:.2f}] of what a queue would have added"
    return f"delay was {100 * slope.level:.0f} % of what a full queue would have added"


def _pinned(found: Traffic, bucket: Fit) -> float:
    """Of what passed while the bucket was empty, the share that came exactly at its rate, as from a queue."""
    rate = bucket.rate / 8
    passed = found.passed
    needs = (deficit(found.time, found.size, passed, rate) + found.size)[passed]
    time, size = found.time[passed], found.size[passed]
    empty = needs > bucket.burst - 1.5 * np.median(size)
    both = empty[1:] & empty[:-1]
    if both.sum() < 20:
        return 0.0
    spacing = np.diff(time)[both] * rate / size[1:][both]
    return float((np.abs(spacing - 1) < 0.05).mean())


def _why_queue(line: Queue, shaped: bool, found: Traffic) -> tuple[str, ...]:
    where = "left a queue" if found.side != "after" else "came evenly spaced"
    said = [f"In {100 * line.even:.0f} % of {line.windows:,} windows packets {where} at this rate."]
    if line.longest is not None:
        said.append(f"They waited up to {1e3 * line.longest:.1f} ms.")
    if shaped:
        said.append("What came after a rest passed at once until the burst was used up.")
    return tuple(said)


def _why_loss(bucket: Fit | None, found: Traffic) -> tuple[str, ...]:
    if bucket is None:
        return (f"All {int(found.dropped.sum()):,} packets whose fate is known were lost.",)
    few = bucket.dropped < _DROPS or bucket.episodes < _EPISODES
    if few:
        return (
            f"{bucket.dropped:,} losses in {bucket.episodes:,} episodes are too few to tell a policer"
            " from chance.",
        )
    return (
        f"The token bucket that agrees best explains {100 * max(0.0, bucket.tolerant):.0f} % of"
        f" {bucket.dropped:,}"
        f" losses in {bucket.episodes:,} episodes: too few of them, or no better than chance would.",
    )


def _not_told(found: Traffic) -> tuple[str, ...]:
    said = []
    if found.side != "after" and not found.both:
        said.append(
            "One direction alone was captured: which copy of a packet arrived is guessed, and delay is"
            " unknown."
            " Capture both directions."
        )
    if found.both and not found.sack and found.dropped.any():
        said.append("Without SACK blocks it is less sure which packets were lost: enable SACK at both ends.")
    return tuple(said)


def as_json(found: Diagnosis) -> dict[str, Any]:
    """As `--json` prints it."""
    bucket, slope, line, sent = found.fit, found.slope, found.queue, found.traffic
    return {
        "kind": found.kind,
        "rate": found.rate,
        "rate_interval": None if found.rates is None else list(found.rates),
        "burst": found.burst,
        "burst_interval": None if found.bursts is None else list(found.bursts),
        "sure": found.sure,
        "because": list(found.because),
        "unknown": list(found.unknown),
        "goodput": found.goodput,
        "loss": found.loss,
        "packets": len(sent.time),
        "side": sent.side,
        "rtt": sent.rtt,
        "flows": list(sent.flows),
        "token_bucket": None
        if bucket is None
        else {
            "rate": bucket.rate,
            "burst": bucket.burst,
            "consistency": bucket.consistency,
            "within_a_packet": bucket.tolerant,
            "losses": bucket.dropped,
            "episodes": bucket.episodes,
        },
        "delay_slope": None
        if slope is None
        else {"mean": slope.mean, "ci95": list(slope.ci95), "n": slope.samples},
        "queue": None
        if line is None
        else {
            "rate": line.rate,
            "rate_interval": list(line.rates),
            "longest_wait": line.longest,
            "even": line.even,
        },
        "notes": list(sent.notes),
    }
