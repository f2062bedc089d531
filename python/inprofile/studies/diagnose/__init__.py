"""Whether a policer or a shaper is on the way of a transfer, by its capture: `inprofile diagnose`.

`captures` reads pcap and pcapng, `segments` TCP's headers, `traffic` says what became of each packet,
`bucket` finds the token bucket that agrees, `path` the queue, and `verdict` judges. `iperf` is for iperf3's
JSON, `words` and `drawing` for readers.
"""

from __future__ import annotations

from pathlib import Path

from .captures import Unreadable, records
from .segments import segments
from .traffic import traffic
from .verdict import Diagnosis, as_json, diagnose

__all__ = ["Diagnosis", "Unreadable", "as_json", "of_capture"]


def of_capture(path: str | Path, *, partial: bool = False) -> Diagnosis:
    """Diagnose a capture. Raises Unreadable with the packet's number and a remedy for what cannot be."""
    return diagnose(traffic(segments(records(path, partial=partial))))
