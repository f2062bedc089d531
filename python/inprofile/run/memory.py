"""How much memory this process may have."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["physical"]

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def physical() -> float:
    """Bytes of memory that this process may have: the machine's, or less in its control group."""
    bytes_ = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = _CGROUP.read_text().strip()
    except OSError:
        # Outside Linux, or without cgroup v2: no such limit.
        return bytes_
    return min(bytes_, float(limit)) if limit.isdigit() else bytes_
