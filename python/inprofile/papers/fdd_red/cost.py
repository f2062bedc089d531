"""What the ledger costs over RED: measured apart from the runs, as times differ from one to the next.

`make cost` passes the same packets through both, in turns, and writes `cost.json`, which D10 reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...metrics.measures import Array

#: Numbers of flows between which it is to scale: the paper's five, and as many as one busy link has.
FEW, MANY = 5, 1000
#: Why D10 has no verdict of its own.
UNSAID = (
    "The text argues from what is kept, names no bound, and Fig. 2 says which flow is chosen, not by which"
    " search: what follows is of our code, and no verdict on the paper."
)


@dataclass(frozen=True)
class Cost:
    """With so many flows: CPU time a packet in ns, round by round, and how many flows have an account."""

    accounts: int
    red: Array
    fdd: Array


@cache
def measured() -> Mapping[int, Cost]:
    """The last measurement, by number of flows."""
    return {
        found["flows"]: Cost(found["accounts"], np.array(found["red_ns"]), np.array(found["fdd_red_ns"]))
        for found in _kept()["by_flows"]
    }


def _kept() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((Path(__file__).parent / "cost.json").read_text("utf-8"))
    return kept


def words() -> list[str]:
    """What was measured, for the page."""
    told = ", ".join(
        f"{c.red.mean():.0f} and {c.fdd.mean():.0f} ns with {flows:,} flows ({c.accounts:,} accounts)"
        for flows, c in measured().items()
    )
    rounds = len(measured()[FEW].red)
    return [
        f"A packet takes {told}, RED and FDD-RED (CPU time of our code on {_kept()['machine']}, {rounds}"
        " rounds in turns; flows of 200 kbit/s offer the link 5 % more than it carries).",
        "An account has four values: the penalty, the time of the last drop, the round-trip time, and packets"
        " still to be dropped. It is found at once; what grows is our search through all of them at every"
        " decision, for the last drop and for the greatest penalty; a heap would search less. On a link of"
        " 1 Mbit/s so few packets pass in avgRTT that there are never many. The measurement is not part of"
        " the runs: `make cost` repeats it.",
    ]
