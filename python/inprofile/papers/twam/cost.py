"""What a marking decision costs: measured apart from the runs, as times differ from one to the next.

`make cost` runs both markers over the same packets, in turns, and writes `cost.json`, which claims read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...stats import estimate

__all__ = ["Cost", "measured"]


@dataclass(frozen=True)
class Cost:
    """One measurement: CPU time a data packet, in ns, by marker and round."""

    flows: int
    packets: int
    machine: str
    twam: tuple[float, ...]
    tsw2cm: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """TWAM over TSW2CM, round by round."""
        return [a / b for a, b in zip(self.twam, self.tsw2cm, strict=True)]

    @property
    def words(self) -> str:
        """What was measured, for the page."""
        twam, tsw2cm = (estimate(values).mean for values in (self.twam, self.tsw2cm))
        return (
            f"TWAM takes {twam:.1f} ns and TSW2CM {tsw2cm:.1f} ns a data packet (CPU time on {self.machine},"
            f" {len(self.twam)} rounds in turns of {self.packets} packets). TWAM's is all it does: it looks"
            " at every packet and acknowledgement to see windows and round-trip times, draws a number for"
            " every packet, and shares out once a round-trip time. The measurement is not part of the runs:"
            " `make cost` repeats it."
        )


@cache
def measured() -> Cost:
    """The last measurement."""
    kept: Mapping[str, Any] = json.loads((Path(__file__).parent / "cost.json").read_text("utf-8"))
    return Cost(
        kept["flows"], kept["packets"], kept["machine"], tuple(kept["twam_ns"]), tuple(kept["tsw2cm_ns"])
    )
