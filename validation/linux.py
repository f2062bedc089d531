"""Puts the same arrivals to Linux's queue disciplines and policer and to ours; writes docs/linux.{md,json}.

Linux is Debian's user-mode-linux, a kernel that boots as a process (`uml.py`). What it saw is stamped there
and replayed here through the same mechanism (`linux/ours`). Leaves with 1 if a decision differs that the
stamps do not explain.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import alike
import replayed
from alike import SEEDS, Alike, Certain, Efficient
from linux_jobs import EXACT, RANDOM, Exact, Random
from replayed import Lockstep
from uml import ROOT, LinuxMissing, Seen, run

from inprofile.run.storage import record_lines

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
    found = replayed.lockstep(e.mode, e.ours, text, e.limit)
    rfc = replayed.lockstep(e.mode, e.rfc, text) if e.rfc else None
    return ExactRow(e.job.name, e.title, e.ours, found, rfc)


@dataclass(frozen=True)
class RandomRow:
    """A law with chance in it."""

    name: str
    title: str
    packets: int
    drops: int
    """Linux's, marks included."""
    sojourn: float
    found: list[Alike]
    """The first is ours as it has to agree."""
    certain: Certain | None


def by_chance(job: Random, seen: Seen) -> RandomRow:
    """Linux's run among ours."""
    came = replayed.arrivals(seen)
    text = replayed.events(seen, came, job.ahead, job.timer)
    theirs = alike.linux(seen, came)
    with ProcessPoolExecutor() as pool:
        found = []
        if job.efficient:
            for forced in (-1, 0):
                run = partial(Efficient(*job.efficient, forced).run, seen, came, text)
                reading = f"efficient, {forced} after a forced drop"
                found.append(alike.among(reading, theirs, list(pool.map(run, range(SEEDS)))))
        for reading, table in job.ours.items():
            run = partial(alike.ours, seen, came, table, job.ahead, text)
            found.append(alike.among(reading, theirs, list(pool.map(run, range(SEEDS)))))
    sure = alike.certain(seen, came, Efficient(*job.efficient, -1)) if job.efficient else None
    packets = len(seen.planned)
    return RandomRow(job.job.name, job.title, packets, theirs.drops, theirs.sojourn, found, sure)


def main() -> int:
    """Boot, compare, tell on the way, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of jobs; nothing is written then")
    parser.add_argument(
        "--join", action="store_true", help="with --only: their rows replace those of the page"
    )
    options = parser.parse_args()
    chosen = [e for e in EXACT if not options.only or e.job.name in options.only]
    drawn = [e for e in RANDOM if not options.only or e.job.name in options.only]
    try:
        replayed.build()
        seen = run([*(e.job for e in chosen), *(r.job for r in drawn)], tell)
    except LinuxMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    rows = []
    for e, s in zip(chosen, seen, strict=False):
        rows.append(exact(e, s))
        tell(exact_line(rows[-1]))
    chances = []
    for r, s in zip(drawn, seen[len(chosen) :], strict=True):
        chances.append(by_chance(r, s))
        for line in random_lines(chances[-1]):
            tell(line)
    if options.join:
        write(*joined(rows, chances), seen[0].kernel)
    elif not options.only:
        write(rows, chances, seen[0].kernel)
    agree = all(row.found[0].holds for row in chances)
    return 0 if agree and all(row.found.differences == 0 for row in rows) else 1


def tell(what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def joined(rows: list[ExactRow], chances: list[RandomRow]) -> tuple[list[ExactRow], list[RandomRow]]:
    """With the page's rows of other jobs, in the order of the jobs."""
    old, by_chance = read(json.loads((ROOT / "docs" / "linux.json").read_text(encoding="utf-8")))
    exact = {row.name: row for row in [*old, *rows]}
    drawn = {row.name: row for row in [*by_chance, *chances]}
    return (
        [exact[e.job.name] for e in EXACT if e.job.name in exact],
        [drawn[r.job.name] for r in RANDOM if r.job.name in drawn],
    )


def write(rows: list[ExactRow], chances: list[RandomRow], kernel: str) -> None:
    """Both files."""
    docs = ROOT / "docs"
    found: dict[str, Any] = {"kernel": kernel, "exact": [asdict(row) for row in rows]}
    found["chance"] = [asdict(row) for row in chances]
    text = record_lines(found)
    (docs / "linux.json").write_text(text, encoding="utf-8")
    (docs / "linux.md").write_text(page(found), encoding="utf-8")


def read(found: dict[str, Any]) -> tuple[list[ExactRow], list[RandomRow]]:
    """The rows of the JSON."""
    rows = [
        ExactRow(**(row | {side: Lockstep(**row[side]) if row[side] else None for side in ("found", "rfc")}))
        for row in found["exact"]
    ]
    chances = [
        RandomRow(
            **(row | {"found": [Alike(**a) for a in row["found"]]})
            | {"certain": Certain(**row["certain"]) if row["certain"] else None}
        )
        for row in found["chance"]
    ]
    return rows, chances


def page(found: dict[str, Any]) -> str:
    """The tables and what they mean, from what the JSON holds."""
    rows, chances = read(found)
    sure = [row.certain for row in chances if row.certain]
    filled = PAGE.read_text(encoding="utf-8")
    total = sum(row.found.decisions for row in rows)
    same = sum(row.found.identical for row in rows)
    within = sum(row.found.within for row in rows)
    differ = total - same - within
    summary = (
        f"Of {total:,} deterministic decisions, {same:,} are identical to Linux's, "
        f"{within:,} once shifted within the uncertainty of the timestamps, and "
        f"{f'{differ:,} differ' if differ else 'none differs'}."
    )

    def otherwise(law: str) -> str:
        """How much of what a law decided is not the document's."""
        of = [row for row in rows if row.rfc and row.name.startswith(law)]
        differences = sum(row.rfc.differences for row in of if row.rfc)
        return f"{differences:,} of {sum(row.found.decisions for row in of):,}"

    for name, value in {
        "kernel": found["kernel"],
        "summary": summary,
        "exact": "\n".join(exact_line(row) for row in rows),
        "chance": "\n".join(line for row in chances for line in random_lines(row)),
        "seeds": str(SEEDS),
        "below": f"{sum(c.below_dropped for c in sure):,} of {sum(c.below for c in sure):,}",
        "above": f"{sum(c.above_passed for c in sure):,} of {sum(c.above for c in sure):,}",
        "first": f"{sum(c.first_dropped for c in sure):,} of {sum(c.first for c in sure):,}",
        "expected": f"{sum(c.first_expected for c in sure):,.0f}",
        "between": between([row.certain for row in chances if row.certain and row.certain.slow]),
        "rfc": otherwise("codel"),
        "exact_cobalt": otherwise("cobalt"),
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled


def between(sure: list[Certain]) -> str:
    """The sum of RED's drops, and the deviation of Linux's."""
    expected, early = sum(c.expected for c in sure), sum(c.early for c in sure)
    apart = ", ".join(f"{c.z:+.1f}" for c in sure)
    least = min((c.bins_p for c in sure), default=1.0)
    return (
        f"{expected:,.0f} drops over {sum(c.between for c in sure):,} arrivals, and Linux dropped {early:,}: "
        f"run by run {apart} standard deviations, and by tenths of the probability the least of the runs' p "
        f"(chi-squared) is {least:.2g}"
    )


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


def random_lines(row: RandomRow) -> list[str]:
    """Rows of the table, one a reading."""
    lines = []
    for a in row.found:
        cells = [
            row.title,
            f"{row.packets:,}",
            a.reading,
            f"{row.drops:,} / {a.drops:,.1f} ({a.drops_z:+.1f})",
            f"{row.sojourn:.2f} / {a.sojourn:.2f} ({a.sojourn_z:+.1f})",
            f"{a.flows_z:+.1f}" if a.flows_z else "–",
            f"{a.gaps_p:.2g}",
            "alike" if a.holds else "**differs**",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
