"""JSON with a record a line, so that a change of one record is seen as one."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["record_lines"]

WIDTH = 120
"""The longest value written on one line, in characters."""
RECORD = 1_000
"""A member of a list stands on a line of its own up to this many characters."""


def record_lines(value: Any) -> str:
    """Lay out what JSON can hold: what is short on one line, each member of a list on its own.

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
    if len(text) <= room or not isinstance(value, dict | list) or not value:
        return text
    if isinstance(value, dict):
        members = [
            f"{json.dumps(k, ensure_ascii=False)}: {_laid_out(v, depth + 1, WIDTH)}" for k, v in value.items()
        ]
    else:
        members = [_laid_out(v, depth + 1, RECORD) for v in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    inner = ",".join(f"\n{' ' * (depth + 1)}{member}" for member in members)
    return f"{start}{inner}\n{' ' * depth}{end}"
