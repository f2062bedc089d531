"""Response functions of TCP: the rate that a loss rate and a round-trip time allow, by congestion control.

Means over the sawtooth, in segments a second, of long flows with losses far apart; `with_timeouts` adds the
retransmission timeouts of a flow with many: enough to say what loss and round-trip time alone would make of a
flow beside another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

#: RFC 9438 §4.6, §5: CUBIC's factor after a loss and its constant.
BETA, C = 0.7, 0.4


@dataclass(frozen=True)
class Law:
    """A response function."""

    name: str
    """As a sentence has it."""
    rate: Callable[[float, float], float]
    """Segments a second, by loss rate and round-trip time in s."""


def mathis(p: float, rtt: float) -> float:
    """Reno's: √(3/2) / (RTT·√p) (Mathis et al. 1997; RFC 9438 §5.1 has 1.2).

    >>> round(mathis(0.01, 0.1), 1)
    122.5
    """
    return math.sqrt(1.5 / p) / rtt


def cubic(p: float, rtt: float) -> float:
    """CUBIC's: the larger of its own law and of the Reno-friendly one.

    RFC 9438 §5.1: the average window is (C·(3 + β) / (4·(1 − β)))^¼ · RTT^¾ / p^¾; where Reno's would be
    larger (§4.3), it is Reno's.

    >>> round(cubic(1e-6, 0.1)), cubic(0.01, 0.01) == mathis(0.01, 0.01)
    (59261, True)
    """
    window: float = (C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (rtt / p) ** 0.75
    return max(window / rtt, mathis(p, rtt))


def with_timeouts(law: Law, p: float, rtt: float, rto: float) -> float:
    """A law's rate with the waits for an RTO of so many s (Padhye et al. 1998, Eq. 30).

    >>> reno = law_of("reno")
    >>> round(with_timeouts(reno, 0.001, 0.1, 1.0), 1), round(with_timeouts(reno, 0.3, 0.1, 1.0), 1)
    (378.8, 0.8)
    """
    waits = rto * min(1.0, 3 * math.sqrt(3 * p / 8)) * p * (1 + 32 * p * p)
    return 1 / (1 / law.rate(p, rtt) + waits)


_RENO = Law("the Mathis model, 1/(RTT·√loss),", mathis)
_CUBIC = Law("CUBIC's response function (RFC 9438 §5.1)", cubic)


def law_of(congestion: str) -> Law:
    """The law of a congestion control, by its name in experiment files."""
    return _CUBIC if congestion == "cubic" else _RENO
