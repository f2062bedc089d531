"""The glossary: every metric, column and word that is printed, as `docs/glossary.md` defines them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_CODE = re.compile(r"`([^`]+)`")
_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Entry:
    """One row of the glossary."""

    section: str
    """The heading it is under, such as `Metrics`."""
    words: tuple[str, ...]
    """The term it defines, as printed: `fi`, or several names of one kind."""
    cells: dict[str, str]
    """Its other columns by heading: unit, point, counts, meaning."""

    @property
    def meaning(self) -> str:
        """The definition."""
        return self.cells["meaning"]

    @property
    def details(self) -> str:
        """Unit, where it is measured and what counts, as far as it has them.

        >>> lookup("fi")[0].details
        'unit 1, point receivers, counts payload'
        """
        return ", ".join(f"{name} {cell}" for name, cell in self.cells.items() if name != "meaning" and cell)


def text() -> str:
    """The glossary as it is written, Markdown."""
    return Path(__file__).with_suffix(".md").read_text("utf-8")


@cache
def entries() -> tuple[Entry, ...]:
    """Every row, in order."""
    return tuple(_rows())


def lookup(word: str) -> list[Entry]:
    """Every definition of a word: a name may be a metric and a column.

    >>> [entry.section for entry in lookup("goodput")]
    ['Metrics', 'Flows', 'Figures behind a decision']
    """
    wanted = word.strip().lower()
    return [entry for entry in entries() if wanted in (known.lower() for known in entry.words)]


def _rows() -> Iterator[Entry]:
    section, heading = "", list[str]()
    for line in text().splitlines():
        if line.startswith("## "):
            section, heading = line[3:], []
        elif line.startswith("|"):
            cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
            if not heading:
                heading = cells
            elif not set(cells[0]) <= set("-:"):
                plain = [word.strip() for word in _CODE.sub("", cells[0]).split(",") if word.strip()]
                yield Entry(
                    section,
                    (*_CODE.findall(cells[0]), *plain),
                    dict(zip(heading[1:], cells[1:], strict=True)),
                )
        else:
            heading = []
