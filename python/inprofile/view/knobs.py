"""The values of an experiment that a slider can move: thresholds, limits, rates, contracts.

The bounds of a queue, as lines across its samples: thresholds by colour, a target, the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..metrics.quantity import bits_per_second, in_seconds

_QUANTITY = re.compile(r"([0-9.eE+-]+) ([A-Za-zµ/]+)")
MOST_CONTRACTS = 24
"""As many flows of a group have a slider each for their contracts."""


@dataclass(frozen=True)
class Knob:
    """A value that can be moved: a number in a unit, as `--set` takes it."""

    key: str
    """As `--set` has it."""
    label: str
    place: str
    """The link or group it belongs to."""
    value: float
    unit: str
    """Empty for a number without one."""
    least: float
    most: float
    log: bool
    """Whether equal steps are equal ratios."""
    whole: bool
    index: int | None = None
    """Which entry of the list at `key`, where it is a list."""
    others: tuple[str, ...] = ()
    """That list."""
    first: bool = False
    """Shown without being asked for."""

    def to_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return asdict(self)


def knobs(effective: Mapping[str, Any]) -> list[Knob]:
    """All of an experiment's, links first, those that matter most first among each link's."""
    found: list[Knob] = []
    at = effective.get("measure", {}).get("at")
    links = [link for link in effective.get("links", ()) if "reverse_of" not in link]
    for link in sorted(links, key=lambda link: link["name"] != at):
        found += _link(link, link["name"] == at)
    for group in effective.get("flows", ()):
        found += _group(group)
    return found


def _link(link: Mapping[str, Any], measured: bool) -> Iterator[Knob]:
    name = link["name"]
    queue = link.get("queue")
    if isinstance(queue, dict):
        limit = _parsed(queue.get("limit"))
        for path, value in _walk(queue):
            yield from _value(
                f"links.{name}.queue.{'.'.join(path)}", " ".join(path), name, value, limit, measured
            )
    for key in ("rate", "delay"):
        yield from _value(f"links.{name}.{key}", key, name, link.get(key), None, measured and key == "rate")


def _group(group: Mapping[str, Any]) -> Iterator[Knob]:
    name = group["name"]
    contract = group.get("contract")
    if isinstance(contract, list):
        texts = tuple(str(c) for c in contract)
        for i, text in enumerate(texts[:MOST_CONTRACTS]):
            for knob in _value(f"flows.{name}.contract", f"contract of {name}.{i}", name, text, None, True):
                yield Knob(**{**asdict(knob), "index": i, "others": texts})
    else:
        yield from _value(f"flows.{name}.contract", "contract of each", name, contract, None, True)
    if (
        isinstance(group.get("count"), int)
        and not isinstance(contract, list)
        and not isinstance(group.get("rtt"), list)
    ):
        yield Knob(
            f"flows.{name}.count",
            "flows",
            name,
            group["count"],
            "",
            1,
            max(8, 3 * group["count"]),
            False,
            True,
        )
    yield from _value(f"flows.{name}.rtt", "RTT", name, group.get("rtt"), None, False)
    if isinstance(group.get("marker"), dict):
        for path, value in _walk(group["marker"]):
            label = f"marker's {' '.join(path)}"
            yield from _value(f"flows.{name}.marker.{'.'.join(path)}", label, name, value, None, False)


def _walk(table: Mapping[str, Any], above: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values with their path; a backlog counts as one value."""
    for key, value in table.items():
        path = (*above, key)
        if isinstance(value, dict) and "is" not in value:
            yield from _walk(value, path)
        elif isinstance(value, list) and all(isinstance(v, dict) and "name" in v for v in value):
            for part in value:
                yield from _walk(part, (*path, str(part["name"])))
        else:
            yield path, value


def _parsed(value: object) -> tuple[float, str] | None:
    """Number and unit of a value; None for what no slider moves."""
    if isinstance(value, dict):
        value = value.get("is")
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value), ""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    try:
        return (float(match[1]), match[2]) if match else None
    except ValueError:
        return None


def _value(
    key: str, label: str, place: str, value: object, limit: tuple[float, str] | None, first: bool
) -> Iterator[Knob]:
    found = _parsed(value)
    if found is None:
        return
    x, unit = found
    last = key.rpartition(".")[2]
    whole = unit == "packets" and x == int(x)
    if last.startswith("max_p") and not unit:
        # Small probabilities matter: equal ratios.
        yield Knob(key, label, place, x, unit, min(1e-3, x) or 1e-3, 1.0, x > 0, False, first=first)
    elif last == "w_q":
        yield Knob(key, label, place, x, unit, 1e-4, 1.0, True, False)
    elif last.endswith("_th") and limit is not None and limit[1] == unit and limit[0] > 0:
        yield Knob(key, label, place, x, unit, 0.0, max(limit[0], x), False, whole, first=first)
    elif x > 0:
        least = max(1.0, x / 4) if whole else x / 4
        yield Knob(key, label, place, x, unit, least, x * 4, False, whole, first=first and last in _FIRST)


_FIRST = ("limit", "rate", "contract", "target")


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
