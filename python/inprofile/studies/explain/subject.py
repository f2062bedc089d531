"""Whom an explanation is about: a flow, or a group as the mean of its flows; and whom it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...metrics.stats import mean

__all__ = ["Subject", "UnknownFlow", "subject"]

Row = dict[str, Any]


class UnknownFlow(LookupError):
    """No flow of that name or number, and no group."""


@dataclass(frozen=True)
class Subject:
    """One flow or one group."""

    name: str
    group: str
    flows: tuple[str, ...]
    """The flows it is: one, or those of the group."""
    rows: tuple[Row, ...]
    """Its row of `flows` in each seed; of a group, the mean of its flows'."""
    peers: tuple[str, ...]
    """Whom it is compared with: the rest of its group, or flows of others that have a contract as it has, or
    have none as it has none."""

    @property
    def is_group(self) -> bool:
        """Whether it stands for several flows."""
        return len(self.flows) > 1


def subject(rows: Mapping[str, Sequence[Row]], flow: str | int) -> Subject:
    """The flow of this name, the group of this name, or the flow of this number. Raises UnknownFlow.

    `rows` are those of the table `flows`, by flow.
    """
    name, flows = _find(rows, str(flow))
    first = rows[flows[0]][0]
    group = str(first["group"])
    others = [other for other in rows if other not in flows]
    same = [other for other in others if rows[other][0]["group"] == group]
    alike = [o for o in others if (rows[o][0]["contract"] is None) == (first["contract"] is None)]
    mine = tuple(rows[flows[0]]) if len(flows) == 1 else _means([rows[f] for f in flows])
    return Subject(name, group, flows, mine, tuple(same or alike))


def _find(rows: Mapping[str, Sequence[Row]], text: str) -> tuple[str, tuple[str, ...]]:
    """The subject of that name, and its flows."""
    if text in rows:
        return text, (text,)
    groups: dict[str, list[str]] = {}
    for name, runs in rows.items():
        groups.setdefault(str(runs[0]["group"]), []).append(name)
    if text in groups:
        found = tuple(groups[text])
        return (found[0] if len(found) == 1 else text), found
    names = list(rows)
    # More digits than the number of flows has are no flow's number; other scripts' digits are no digits here.
    if text.isascii() and text.isdigit() and len(text) <= 18 and int(text) < len(names):
        return names[int(text)], (names[int(text)],)
    text = text if len(text) <= 80 else f"{text[:79]}…"
    shown = ", ".join(names[:8]) + (f", … ({len(names)} flows)" if len(names) > 8 else "")
    known = ", ".join(list(groups)[:8]) + (", …" if len(groups) > 8 else "")
    raise UnknownFlow(
        f'no flow or group is called "{text}"; there are: {shown},'
        f" or their numbers from 0, or groups: {known}"
    )


def _means(flows: Sequence[Sequence[Row]]) -> tuple[Row, ...]:
    """Seed by seed the means of the flows' figures; the first's where one has none."""

    def of(values: Sequence[Any]) -> Any:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        return mean(float(v) for v in values) if numbers else values[0]

    return tuple(
        {key: value if key == "seed" else of([row[key] for row in run]) for key, value in run[0].items()}
        for run in zip(*flows, strict=True)
    )
