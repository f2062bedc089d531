"""Published measurements of pairs, shown beside a map."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .matrix import Point

__all__ = ["Published", "Source", "published"]


@dataclass(frozen=True)
class Source:
    """Where figures were published."""

    id: str
    text: str
    address: str


@dataclass(frozen=True)
class Published:
    """Goodputs of two flows, once for each run that was published."""

    source: Source
    point: Point
    aqm: str
    #: Of a and of b, in Mbit/s.
    goodput: Sequence[tuple[float, float]]

    @property
    def ratios(self) -> list[float]:
        """The first's goodput over the second's."""
        return [a / b for a, b in self.goodput]


def published(folder: Path) -> list[Published]:
    """Read `published.toml`; nothing where there is none."""
    path = folder / "published.toml"
    if not path.exists():
        return []
    found = []
    for source in tomllib.loads(path.read_text("utf-8"))["sources"]:
        about = Source(source["id"], source["text"], source["address"])
        for one in source["points"]:
            a, b = one["pair"]
            point = Point(a, b, one["rate"], one["rtt"])
            found.append(Published(about, point, one["aqm"], [(x, y) for x, y in one["goodput"]]))
    return found
