"""The problems of an experiment file."""

from __future__ import annotations

from dataclasses import dataclass

from .._input import visible


@dataclass(frozen=True)
class Problem:
    """Something wrong with an experiment file, and what to write instead."""

    file: str
    line: int | None
    column: int | None
    path: str
    value: str | None
    problem: str
    remedy: str
    severity: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        key = " = ".join(part for part in (self.path, self.value) if part)
        parts = [place, self.severity, key, self.problem] if key else [place, self.severity, self.problem]
        return visible(": ".join(parts) + (f"\n  {self.remedy}" if self.remedy else ""))
