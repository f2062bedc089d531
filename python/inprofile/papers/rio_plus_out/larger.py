"""RIO behind larger token buckets: what is run for the advice alone, and judged by no claim.

`[[larger]]` of `paper.toml` has Table I with other buckets, thresholds or packets; `[[sold]]` has contracts
of one size on Fig. 8's link, at several levels of subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...metrics.measures import Array, Measures
from .. import Cell, Entry, Job, Paper

#: What cells of Table I name the sweep; the network of the others.
LARGER, SOLD = "larger", "sold"

#: Makes the jobs of an entry: its set-up and bucket, then the network and what is set there.
Make = Callable[..., Iterator[Job]]


def jobs(paper: Paper, make: Make, full: bool) -> Iterator[Job]:
    """All of them with `full`, else without those that are `full`.

    `make(entry, topology, key, seeds, sweep, value, values=…, contract=…)` makes one's.
    """
    known = {entry.id: entry for entry in paper.top.tables("larger")}
    for entry in (e for e in known.values() if full or not e.flag("full")):
        yield from make(entry, "table-1", "table-1", "full", LARGER, entry.id, values=entry.changes)
    for entry in (e for e in paper.top.tables("sold") if full or not e.flag("full")):
        set_by = known[entry.word("as")].changes if "as" in entry else {}
        for level in entry.numbers("levels"):
            profile = entry.number("profile")
            values = {**set_by, "flows.as.count": assured(profile, level)}
            yield from make(
                entry, SOLD, "figure-8", "figures", entry.id, f"{level:g}",
                values=values, contract=profile * 1e6,
            )  # fmt: skip


def assured(profile: float, percent: float) -> int:
    """How many flows of a profile (Mbit/s) subscribe so much of Fig. 8's 20 Mbit/s.

    >>> assured(2.0, 60)
    6
    """
    return round(20 * percent / 100 / profile)


def cell(entry: Entry, level: str = "") -> Cell:
    """The cell of an entry: of `[[larger]]`, or of `[[sold]]` at a level."""
    network, sweep, value = (SOLD, entry.id, level) if level else ("table-1", LARGER, entry.id)
    return Cell(entry.word("setup"), network, entry.word("scheme", "rio"), "", sweep, value)


def kept(entry: Entry, m: Measures) -> Array:
    """The share of the contract that flows get in the mean, by seed: of `[[sold]]`."""
    return m["throughput:as"] / (entry.number("profile") * 1e6)


def lost(entry: Entry, m: Measures, level: float) -> Array:
    """The share of the IN packets that are dropped, by seed: of `[[sold]]`."""
    share: Array = m["in_drops"] / (assured(entry.number("profile"), level) * m["marked_in:as"])
    return share
