"""Puts the same arrivals to Linux's queue disciplines and policer and to ours; writes docs/linux.{md,json}.

Linux is Debian's user-mode-linux, a kernel that boots as a process (`uml.py`). What it saw is stamped there
and replayed here through the same mechanism (`linux/ours`). Leaves with 1 if a decision differs that the
stamps do not explain.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

import replayed
from linux_jobs import EXACT, Exact
from replayed import Lockstep
from uml import ROOT, LinuxMissing, Seen, run

PAGE = ROOT / "validation" / "linux" / "page.md"
"""The page, with room for the figures."""


@dataclass(frozen=True)
class ExactRow:
    """A law without chance."""

    name: str
    title: str
    mechanism: str
    found: Lockstep
    rfc: Lockstep | None
    """With the RFC's law where Linux has one of its own."""


def exact(e: Exact, seen: Seen) -> ExactRow:
    """Every decision."""
    came = replayed.arrivals(seen)
    if e.mode == "police":
        text = replayed.police_events(seen, came)
    else:
        text = replayed.events(seen, came, ahead=True)
    found = replayed.lockstep(e.mode, e.ours, text)
    rfc = replayed.lockstep(e.mode, e.rfc, text) if e.rfc else None
    return ExactRow(e.job.name, e.title, e.ours, found, rfc)


def main() -> int:
    """Boot, compare, tell on the way, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of jobs; nothing is written then")
    options = parser.parse_args()
    chosen = [e for e in EXACT if not options.only or e.job.name in options.only]
    try:
        replayed.build()
        seen = run([e.job for e in chosen], tell)
    except LinuxMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    rows = [exact(e, s) for e, s in zip(chosen, seen, strict=True)]
    for row in rows:
        tell(exact_line(row))
    if not options.only:
        write(rows, seen[0].kernel)
    return 0 if all(row.found.differences == 0 for row in rows) else 1


def tell(what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def write(rows: list[ExactRow], kernel: str) -> None:
    """Both files."""
    docs = ROOT / "docs"
    found: dict[str, Any] = {"kernel": kernel, "exact": [asdict(row) for row in rows]}
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    (docs / "linux.json").write_text(text, encoding="utf-8")
    (docs / "linux.md").write_text(page(found), encoding="utf-8")


def page(found: dict[str, Any]) -> str:
    """The tables and what they mean, from what the JSON holds."""
    rows = [
        ExactRow(**(row | {side: Lockstep(**row[side]) if row[side] else None for side in ("found", "rfc")}))
        for row in found["exact"]
    ]
    filled = PAGE.read_text(encoding="utf-8")
    total = sum(row.found.decisions for row in rows)
    same = sum(row.found.identical for row in rows)
    within = sum(row.found.within for row in rows)
    differ = total - same - within
    summary = (
        f"Of {total:,} decisions that leave nothing to chance {same:,} are Linux's as they are, "
        f"{within:,} when they are moved within what the stamps leave open, and "
        f"{f'{differ:,} differ' if differ else 'none differs'}."
    )
    codel = [row for row in rows if row.rfc]
    rfc = sum(row.rfc.differences for row in codel if row.rfc)
    for name, value in {
        "kernel": found["kernel"],
        "summary": summary,
        "exact": "\n".join(exact_line(row) for row in rows),
        "rfc": f"{rfc:,} of {sum(row.found.decisions for row in codel):,}",
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled


def exact_line(row: ExactRow) -> str:
    """A row of the table."""
    f = row.found
    cells = [
        row.title,
        f"{f.decisions:,}",
        f"{f.drops:,}",
        f"{f.marks:,}",
        f"{f.identical:,}",
        f"{f.within:,}",
        f"{f.median:,.0f}, {f.shift:,.0f}" if f.within else "–",
        f"{f.differences:,}",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
