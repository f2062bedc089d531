"""How figures travel to the page: JSON, then the numbers it refers to, as they lie in memory.

A length in four bytes (little endian), as many bytes of JSON, padding to a multiple of eight, then each array
as little-endian doubles. The JSON's `arrays` has their lengths. A hundred thousand samples take a browser a
millisecond so, and fifty as decimal text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "pack", "unpack"]


class Arrays:
    """Arrays to be sent, each once: samples of one monitor share their times."""

    def __init__(self) -> None:
        self._at: dict[bytes, int] = {}
        self._lengths: list[int] = []

    def put(self, values: NDArray[Any]) -> int:
        """The number of an array."""
        data = np.ascontiguousarray(values, dtype="<f8").tobytes()
        if data not in self._at:
            self._at[data] = len(self._at)
            self._lengths.append(len(data) // 8)
        return self._at[data]

    @property
    def lengths(self) -> list[int]:
        """How many numbers each has."""
        return self._lengths

    def data(self) -> bytes:
        """All of them."""
        return b"".join(self._at)


def pack(head: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """JSON and arrays in one."""
    arrays = arrays or Arrays()
    text = json.dumps({**head, "arrays": arrays.lengths}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return len(text).to_bytes(4, "little") + text + arrays.data()


def unpack(data: bytes) -> tuple[dict[str, Any], list[NDArray[np.float64]]]:
    """The argument of `pack`.

    >>> made = Arrays()
    >>> t, v = made.put(np.array([0.0, 1.0])), made.put(np.array([5.0]))
    >>> head = {"t": t, "v": v, "again": made.put(np.array([5.0]))}
    >>> unpack(pack(head, made))
    ({'t': 0, 'v': 1, 'again': 1, 'arrays': [2, 1]}, [array([0., 1.]), array([5.])])
    """
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    found, at = [], 4 + length
    for n in head["arrays"]:
        found.append(np.frombuffer(data, "<f8", n, at))
        at += 8 * n
    return head, found
