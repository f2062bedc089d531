"""Reports: one HTML page a paper that opens anywhere without a network, and its figures' data as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from .data import report_json
from .page import render

if TYPE_CHECKING:
    from ..reproduce import Report

__all__ = ["render", "report_json", "write"]


def write(report: Report, folder: Path) -> Path:
    """Write `index.html` and `results.json` into `folder`, each whole; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    data = json.dumps(report_json(report), ensure_ascii=False, allow_nan=False, indent=1)
    _replace(folder / "results.json", data + "\n")
    page = folder / "index.html"
    _replace(page, render(report))
    return page


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
