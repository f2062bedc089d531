"""Programs that stand in for others in a test."""

from __future__ import annotations

from pathlib import Path

import pytest


def put_ns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Make a program called ns that does this, before any other."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ns").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "ns").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
