"""The markers, queue disciplines and schedulers there are, and the keys of an experiment file by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import _internal
from ..own.registry import engine_classes


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


_Schema = Mapping[str, Any]


class Key(NamedTuple):
    """One that may be set."""

    name: str
    """Its parts joined by points: `links.bottleneck.rate`."""
    doc: str
    """Its meaning."""
    values: tuple[str, ...]
    """The words allowed, where there are only a few."""


def keys(given: Mapping[str, Any]) -> Iterator[Key]:
    """Those there are, of the tables and mechanisms of an experiment: the tree of its file, or of none.

    A table of a list goes by its name, or by its number from 0.

    >>> [key.name for key in keys({"links": [{"name": "slow", "queue": {"aqm": "pie"}}]})
    ...  if key.name.startswith("links.slow.queue.t")]
    ['links.slow.queue.t_update', 'links.slow.queue.target']
    >>> next(key.values for key in keys({}) if key.name == "tcp.profile")
    ('rfc', 'linux', 'ns2')
    """
    whole = schema()
    return _within(whole, whole["$defs"], given, "")


def _within(table: _Schema, shared: _Schema, given: object, path: str) -> Iterator[Key]:
    there = given if isinstance(given, Mapping) else {}
    for name, key in table.get("properties", {}).items():
        yield from _at(key, shared, there.get(name), f"{path}{name}")


def _at(key: _Schema, shared: _Schema, given: object, path: str) -> Iterator[Key]:
    key = shared[key["$ref"].removeprefix("#/$defs/")] if "$ref" in key else key
    forms = key.get("oneOf", key.get("anyOf", ()))
    if "properties" in key:
        yield from _within(key, shared, given, f"{path}.")
    elif any("properties" in form for form in forms):
        yield from _one_of(forms, shared, given, path)
    elif "properties" in key.get("items", {}):
        tables = given if isinstance(given, Sequence) and not isinstance(given, str) else [{}]
        for number, one in enumerate(tables):
            named = one if isinstance(one, Mapping) else {}
            name = named.get("name", named.get("node", number))
            yield from _within(key["items"], shared, one, f"{path}.{name}.")
    else:
        words = ("true", "false") if key.get("type") == "boolean" else key.get("enum", ())
        yield Key(path, key.get("description", ""), tuple(map(str, words)))


def _one_of(forms: Sequence[_Schema], shared: _Schema, given: object, path: str) -> Iterator[Key]:
    """The word that says which it is, and the keys of the one that is given."""
    there = given if isinstance(given, Mapping) else {}
    told: dict[str, list[str]] = {}
    for form in forms:
        for name, key in form.get("properties", {}).items():
            if "const" in key:
                told.setdefault(name, []).append(str(key["const"]))
    for name, words in told.items():
        yield Key(f"{path}.{name}", "Which it is.", tuple(words))
    for form in forms:
        its = form.get("properties", {})
        if any(name in its and its[name].get("const") == there.get(name, "") for name in told):
            for name, key in its.items():
                if "const" not in key:
                    yield from _at(key, shared, there.get(name), f"{path}.{name}")
            return
