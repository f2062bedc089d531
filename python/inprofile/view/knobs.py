"""The values of an experiment that a slider can move: thresholds, limits, rates, contracts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Knob", "knobs"]

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
