"""Experiments as files of their own: those to start from, and one written out with its overrides applied."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from .scenario import Scenario, parse, toml


def starter(file: str, plan: bool = False) -> str:
    """A commented experiment that runs and calls itself `file`; with `plan`, one for inprofile plan."""
    name = "plan.toml" if plan else "starter.toml"
    return files(__package__).joinpath(name).read_text("utf-8").replace("{file}", file)


STARTER = starter("experiment.toml")
"""A commented experiment that runs."""


def document(scenario: Scenario) -> dict[str, Any]:
    """The experiment's tables as its text has them, with its overrides applied."""
    found = scenario.as_written
    for key, text in scenario._overrides:
        _put(found, key.split("."), _value(text))
    return found


def written(scenario: Scenario, head: str = "") -> str:
    """The experiment as TOML, below a comment `head`.

    >>> from inprofile import STARTER
    >>> faster = parse(STARTER).with_({"links.bottleneck.rate": "3 Mbit/s"})
    >>> parse(written(faster)).canonical == faster.canonical
    True

    Raises ArithmeticError if the text would read back as a different experiment.
    """
    made = "".join(f"# {line}\n" for line in head.splitlines()) + _document(document(scenario))
    if parse(made, scenario.file).canonical != scenario.canonical:
        raise ArithmeticError(
            f"{scenario.file}: the written file would be another experiment: this is a bug in Inprofile"
        )
    return made


def _value(text: str) -> Any:
    """A value as `--set` takes it: TOML, else plain text."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _put(place: Any, path: list[str], value: Any) -> None:
    """Set a dotted key; a table in a list is found by its name, node or index."""
    first, *rest = path
    if isinstance(place, list):
        found = next((t for t in place if first in (t.get("name"), t.get("node"))), None)
        _put(place[int(first)] if found is None else found, rest, value)
    elif rest:
        _put(place.setdefault(first, {}), rest, value)
    else:
        place[first] = value


def _document(document: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then tables in lists."""
    plain, tables, lists = [], [], []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            lists.append((key, value))
        elif isinstance(value, Mapping) and key != "measure":
            if value:
                tables.append((key, value))
        elif value != []:
            plain.append(f"{key} = {inline(value)}")
    parts = ["\n".join(plain)]
    parts += ["\n".join([f"[{key}]", *_lines(value)]) for key, value in tables]
    parts += ["\n".join([f"[[{key}]]", *_lines(one)]) for key, value in lists for one in value]
    return "\n\n".join(parts) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {inline(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    """A key, quoted unless TOML allows it bare."""
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else toml(key)


def inline(value: Any) -> str:
    """A value on one line.

    >>> inline({"aqm": "red", "max_p": 0.1})
    '{ aqm = "red", max_p = 0.1 }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {inline(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(inline(v) for v in value) + "]"
    return toml(value)
