"""The bounds of a queue, as lines across its samples: thresholds by colour, a target, the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..metrics.quantity import bits_per_second, in_seconds

__all__ = ["levels"]

Table = Mapping[str, Any]
_OF_AN_AVERAGE = ("min_th", "max_th")
_OF_A_DELAY = ("target", "target_delay", "min_th", "max_th", "step_th")
_REFERENCES = ("q_ref", "b_star", "limit")


def levels(effective: Table) -> list[dict[str, Any]]:
    """The levels of every queue of a link, and of every class of a scheduler.

    Each has the `monitor` that samples the queue, a `name` (`out min_th`, `target`, `limit`), `packets`, full
    ones, and `delay` in s. An amount is a delay at the link's rate, and a delay an amount; a virtual
    backlog's is None.

    >>> made = levels({
    ...     "packet": "1500 B",
    ...     "links": [{"name": "core", "rate": "3 Mbit/s", "queue": {"aqm": "codel", "target": "20 ms"}}],
    ... })
    >>> made
    [{'monitor': 'core', 'name': 'target', 'packets': 5.0, 'delay': 0.02}]
    """
    packet = 8 * float(str(effective.get("packet", "1500 B")).split()[0])
    made = []
    for link in effective.get("links", ()):
        queue = link.get("queue")
        if not isinstance(queue, Mapping):
            continue
        classes = queue.get("classes")
        own = (
            [(link["name"], queue)] if not classes else [(f"{link['name']}/{c['name']}", c) for c in classes]
        )
        for monitor, of in own:
            rate = bits_per_second(of["rate"] if isinstance(of.get("rate"), str) else link["rate"])
            for name, packets, delay in _of(of, packet / rate):
                made.append({"monitor": monitor, "name": name, "packets": packets, "delay": delay})
    return made


def _of(queue: Table, each: float) -> Iterator[tuple[str, float, float | None]]:
    """Name, packets and delay of a queue's levels; `each` is what a full packet takes, in s."""
    if queue.get("aqm") == "virtual_queue":
        yield from _of_a_virtual_queue(queue, each)
        return
    for key, value in queue.items():
        if isinstance(value, Mapping) and any(name in value for name in _OF_AN_AVERAGE):
            for name in _OF_AN_AVERAGE:
                if (packets := _packets(value.get(name))) is not None:
                    yield f"{key} {name}", packets, packets * each
        elif key in _OF_A_DELAY and (delay := _delay(value)) is not None:
            yield key, delay / each, delay
        elif key in (*_OF_AN_AVERAGE, *_REFERENCES) and (packets := _packets(value)) is not None:
            yield key, packets, packets * each


def _of_a_virtual_queue(queue: Table, each: float) -> Iterator[tuple[str, float, float | None]]:
    """Its own limit, and the levels of its law, by the virtual backlog; the real queue's limit."""
    law = queue.get(str(queue.get("law")))
    if isinstance(law, Mapping):
        # A virtual backlog is no delay of anything.
        yield from ((name, packets, None) for name, packets, _ in _of(law, each))
    if (packets := _packets(queue.get("virtual_limit"))) is not None:
        yield "virtual_limit", packets, None
    if (packets := _packets(queue.get("limit"))) is not None:
        yield "limit", packets, packets * each


def _packets(value: object) -> float | None:
    found = value.get("packets") if isinstance(value, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def _delay(value: object) -> float | None:
    """A time as the experiment has it; None for an amount, and for one that is derived, in words."""
    try:
        return in_seconds(value) if isinstance(value, str) else None
    except (ValueError, KeyError):
        return None
