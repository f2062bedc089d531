"""The markers, queue disciplines and schedulers there are, with what an operator sets of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import _internal
from ..own.registry import engine_classes

__all__ = ["Mechanism", "Parameter", "mechanisms", "schema"]


@dataclass(frozen=True)
class Parameter:
    """Something an operator sets."""

    name: str
    """Its key; `in.min_th` is `min_th` in the table `in`."""
    kind: str
    """`rate`, `duration`, `bytes`, `backlog`, `number`, `count`, `flag` or `choice`."""
    unit: str | None
    """The units it may have."""
    bounds: str | None
    """The values it may have."""
    default: str | None
    """Its default, as it would be written; `None` where it has none."""
    doc: str
    """Its meaning."""


@dataclass(frozen=True)
class Mechanism:
    """A marker, a queue discipline or a scheduler."""

    name: str
    """The word in an experiment file."""
    kind: str
    """`marker`, `aqm`, or `scheduler`, whose parameters are set of each class."""
    summary: str
    """Its function, in a sentence."""
    source: str
    """Where it comes from."""
    parameters: tuple[Parameter, ...]
    """The operator's settings."""


def mechanisms() -> list[Mechanism]:
    """Every mechanism.

    >>> [m.name for m in mechanisms() if m.kind == "scheduler"]
    ['priority', 'drr']
    """
    return [_mechanism(entry) for entry in json.loads(_internal.mechanisms(engine_classes()))]


def schema() -> dict[str, Any]:
    """JSON Schema of the experiment file.

    >>> schema()["type"]
    'object'
    """
    made: dict[str, Any] = json.loads(_internal.schema(engine_classes()))
    return made


def _mechanism(entry: Mapping[str, Any]) -> Mechanism:
    return Mechanism(
        entry["name"],
        entry["kind"],
        entry["summary"],
        entry["source"],
        tuple(Parameter(**parameter) for parameter in entry["parameters"]),
    )
