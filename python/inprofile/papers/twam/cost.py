"""What a marking decision costs: measured apart from the runs, as times differ from one to the next.

`make cost` runs both markers over the same packets, in turns, and writes `cost.json`, which claims read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ...metrics.quantity import pm
from ...metrics.stats import estimate

#: So many per cent may come of code's layout alone.
COMPILER = 10.0


@dataclass(frozen=True)
class Cost:
    """One measurement: CPU time a data packet, in ns, by marker and round."""

    flows: int
    packets: int
    machine: str
    #: As it runs at an edge.
    twam: tuple[float, ...]
    #: Knowing the round-trip time and counting packets: the paper's own case (§3, §5.2).
    twam_rtt_known: tuple[float, ...]
    #: Told windows and round-trip times.
    twam_told: tuple[float, ...]
    tsw2cm: tuple[float, ...]

    def differences(self, which: Literal["twam", "twam_rtt_known", "twam_told"]) -> list[float]:
        """TWAM − TSW2CM in ns, round by round.

        The mean of ratios of noisy times is too large; that of differences is not.
        """
        return [a - b for a, b in zip(getattr(self, which), self.tsw2cm, strict=True)]

    def _against(self, which: Literal["twam", "twam_rtt_known", "twam_told"], case: str) -> str:
        """The difference to TSW2CM with its interval, in a case, and in per cent where it is significant."""
        e = estimate(self.differences(which))
        text = pm(e, "ns")
        if e.ci95 is None or 0.0 in e.ci95:
            return f"{text} {case}, statistically tied"
        percent = 100 * e.mean / estimate(self.tsw2cm).mean
        return f"{text} ({abs(percent):.0f} % {'more' if percent > 0 else 'less'}) {case}"

    @property
    def told(self) -> str:
        """Both times and what would count, for a table."""
        known, tsw2cm = (estimate(x).mean for x in (self.twam_rtt_known, self.tsw2cm))
        return f"TWAM {known:.0f} ns, TSW2CM {tsw2cm:.0f}; less by {tsw2cm / 10:.1f} would count (ours)"

    @property
    def words(self) -> str:
        """What was measured, for the page."""
        twam, known, told, tsw2cm = (
            estimate(x).mean for x in (self.twam, self.twam_rtt_known, self.twam_told, self.tsw2cm)
        )
        caution = (
            " As much can come of how a compiler lays code out: it speaks against “much” less (§6) and says"
            " no more."
        )
        return (
            f"TSW2CM takes {tsw2cm:.0f} ns a data packet; TWAM {known:.0f} ns where it knows the round-trip"
            f" time and counts packets, {told:.0f} ns where it is told windows too, {twam:.0f} ns where it"
            " looks at data and acknowledgements to see both"
            f" (CPU time on {self.machine}, {len(self.twam)} rounds in turns of {self.packets} packets)."
            " Both look the flow up for every packet; TSW2CM then divides, and TWAM draws a number. TWAM less"
            f" TSW2CM is {self._against('twam_rtt_known', 'in the first case')},"
            f" {self._against('twam_told', 'in the second')}."
            f"{caution if abs(known / tsw2cm - 1) * 100 < COMPILER else ''}"
            " The same measurement stands in both set-ups."
            " The measurement is not part of the runs: `make cost` repeats it."
        )


@cache
def measured() -> Cost:
    """The last measurement."""
    kept: Mapping[str, Any] = json.loads((Path(__file__).parent / "cost.json").read_text("utf-8"))
    return Cost(
        kept["flows"],
        kept["packets"],
        kept["machine"],
        tuple(kept["twam_ns"]),
        tuple(kept["twam_rtt_known_ns"]),
        tuple(kept["twam_told_ns"]),
        tuple(kept["tsw2cm_ns"]),
    )
