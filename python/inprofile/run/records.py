"""JSON with a record a line, so that a change of one record is seen as one."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["record_lines"]

WIDTH = 120
"""The longest value on one line, in characters; plain values that are more than a record fill such lines."""
RECORD = 2_000
"""The longest record on one line: a member of a list, or what holds nothing but plain values."""


def record_lines(value: Any) -> str:
    """Lay out what JSON can hold: what is short on one line, and so is each record.

    >>> rows = [{"id": "A1", "text": "x" * 60}, {"id": "A2", "text": "y" * 60}]
    >>> print(record_lines({"seeds": [1, 2], "rows": rows}), end="")
    {
     "seeds": [1, 2],
     "rows": [
      {"id": "A1", "text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
      {"id": "A2", "text": "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}
     ]
    }

    Raises ValueError for a number that is none (NaN, infinity), TypeError for what JSON cannot hold.
    """
    return _laid_out(value, 0, WIDTH) + "\n"


def _laid_out(value: Any, depth: int, room: int) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list):
        return text
    members_of = value.values() if isinstance(value, dict) else value
    plain = not any(isinstance(member, dict | list) for member in members_of)
    if len(text) <= (RECORD if plain else room):
        return text
    if isinstance(value, dict):
        members = [
            f"{json.dumps(k, ensure_ascii=False)}: {_laid_out(v, depth + 1, WIDTH)}" for k, v in value.items()
        ]
    else:
        members = [_laid_out(v, depth + 1, RECORD) for v in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    inner = ",\n".join(f"{' ' * (depth + 1)}{line}" for line in (_filled(members) if plain else members))
    return f"{start}\n{inner}\n{' ' * depth}{end}"


def _filled(members: list[str]) -> list[str]:
    lines = [members[0]]
    for member in members[1:]:
        if len(lines[-1]) + len(member) < WIDTH:
            lines[-1] += f", {member}"
        else:
            lines.append(member)
    return lines
