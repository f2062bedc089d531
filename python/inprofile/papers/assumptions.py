"""What a paper leaves open, as its page tells it: ambiguous passages, and inputs that it does not state."""

from __future__ import annotations

from dataclasses import dataclass

from . import Entry, Paper

__all__ = ["LeftOpen", "inputs", "readings"]


@dataclass(frozen=True)
class LeftOpen:
    """A question that the text leaves open, what we took, and what else was tried."""

    title: str
    #: Section and phrase that it rests on; empty for what the paper does not state.
    passage: str
    default: str
    #: The other choices, or the bounds of the box.
    others: str
    why: str


def readings(paper: Paper) -> list[LeftOpen]:
    """Passages that can be read in more than one way."""
    return [
        _left_open(entry, "alternatives", f"{entry.where}: “{entry.word('quote')}”")
        for entry in paper.top.tables("readings")
    ]


def inputs(paper: Paper) -> list[LeftOpen]:
    """What the paper does not state."""
    return [_left_open(entry, "values", "") for entry in paper.top.tables("inputs")]


def _left_open(entry: Entry, listed: str, passage: str) -> LeftOpen:
    titles = {choice.id: choice.title or choice.id for choice in entry.tables(listed)}
    written = str(entry["default"])
    default = titles.pop(written, written)
    others = "; ".join(titles.values())
    if "low" in entry:
        others = f"{entry.number('low'):g} to {entry.number('high'):g}"
    return LeftOpen(entry.title, passage, default, others, entry.word("why"))
