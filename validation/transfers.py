"""TCP transfers by Linux's own senders and by ours over the same link; writes docs/transfers.{md,json}.

Linux is Debian's user-mode-linux (`uml.py`): sender, link and receiver are three network namespaces of one
guest. `--simulated` simulates again and keeps what was measured. Leaves with 1 if a figure lies outside its
bounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transfers_cases import BOOTS, BURST, CASES, SEEDS, STALL, Measured, ours, record
from uml import ROOT, LinuxMissing

from inprofile.run.storage import record_lines

PAGE = ROOT / "validation" / "linux" / "transfers.md"
"""The page, with room for the figures."""

FIGURES = ROOT / "docs" / "transfers.json"
"""The data of the page."""

GOODPUT, QUEUE, SHARE, AGAIN, TIMEOUTS = 0.05, 0.25, 0.15, 0.5, 4
"""How far Linux may be from ours: of goodput and of mean queueing delay, relative; of the first sender's
share; of the share of segments sent again, relative, or 0.2 points; of timeouts."""


BY_TICKS = ("queue", "timeouts")
"""The difference that the guest's ticks may explain."""


@dataclass(frozen=True)
class Row:
    """Both sides."""

    case: str
    title: str
    linux: Measured
    ours: Measured
    spread: Measured
    """Standard deviations of a run of ours."""
    ticks: Measured
    """Ours over a link that serves at the guest's ticks."""
    ticks_spread: Measured
    alpha: float | None
    """DCTCP's mean alpha in Linux."""
    stall: float
    """The longest time in ms between two looks at the sockets: how long the guest was stalled."""
    runs: int
    """How often it was run because of that."""

    @property
    def stalled(self) -> bool:
        """Whether it says nothing, as the guest was stalled for too long in every run."""
        return self.stall > STALL

    @property
    def explained(self) -> set[str]:
        """The rows within their bound only beside a link that serves at the guest's ticks."""
        ideal = within(self.linux, self.ours, self.spread)
        ticks = within(self.linux, self.ticks, self.ticks_spread)
        return {name for name in BY_TICKS if ticks[name] and not ideal[name]}

    @property
    def verdicts(self) -> dict[str, bool]:
        """The rows within their bounds, or explained."""
        return within(self.linux, self.ours, self.spread) | dict.fromkeys(self.explained, True)


def within(linux: Measured, ours: Measured, spread: Measured) -> dict[str, bool]:
    """Which figures lie within their bounds."""
    a, b = linux, ours
    return {
        "goodput": abs(a.goodput - b.goodput) <= GOODPUT * b.goodput,
        "queue": abs(a.queue - b.queue) <= QUEUE * b.queue,
        "share": abs(a.share - b.share) <= max(SHARE, 2 * spread.share),
        "again": abs(a.again - b.again) <= max(AGAIN * b.again, 0.002),
        "timeouts": abs(a.timeouts - b.timeouts) <= max(TIMEOUTS, 3 * spread.timeouts),
    }


def mean(runs: Sequence[Measured], over: Callable[[list[float]], float] = statistics.mean) -> Measured:
    """Figure by figure."""
    return Measured(*(over([asdict(run)[name] for run in runs]) for name in asdict(runs[0])))


def line(row: Row) -> str:
    """A row of the table."""
    a, b, s, t, u = row.linux, row.ours, row.spread, row.ticks, row.ticks_spread
    ok = {name: "" if within or row.stalled else " **!**" for name, within in row.verdicts.items()}
    why = {name: " *explains*" if name in row.explained and not row.stalled else "" for name in BY_TICKS}
    cells = [
        row.title,
        f"{b.goodput:.2f} / {a.goodput:.2f}{ok['goodput']}",
        f"{b.queue:.1f} ± {s.queue:.1f} / {a.queue:.1f}{ok['queue']}",
        f"{t.queue:.1f} ± {u.queue:.1f}{why['queue']}",
        f"{100 * b.share:.0f} ± {100 * s.share:.0f} / {100 * a.share:.0f}{ok['share']}",
        f"{100 * b.again:.2f} ± {100 * s.again:.2f} / {100 * a.again:.2f}{ok['again']}",
        f"{b.timeouts:.1f} ± {s.timeouts:.1f} / {a.timeouts:.0f}{ok['timeouts']}",
        f"{t.timeouts:.1f} ± {u.timeouts:.1f}{why['timeouts']}",
        f"{row.stall:.0f}{' **stalled**' if row.stalled else ''}",
        f"{row.runs}",
    ]
    return "| " + " | ".join(cells) + " |"


def read(found: dict[str, Any]) -> list[Row]:
    """The rows of the JSON."""
    sides = ("linux", "ours", "spread", "ticks", "ticks_spread")
    return [Row(**(row | {side: Measured(**row[side]) for side in sides})) for row in found["rows"]]


def page(rows: Sequence[Row], kernel: str) -> str:
    """The table and what it means."""
    judged = [row for row in rows if not row.stalled]
    within = sum(all(row.verdicts.values()) for row in judged)
    alphas = ", ".join(f"{row.alpha:.3f}" for row in rows if row.alpha is not None)
    filled = PAGE.read_text(encoding="utf-8")
    for name, value in {
        "kernel": kernel,
        "seeds": str(SEEDS),
        "within": f"{within} of {len(judged)}",
        "explained": f"{sum(len(row.explained) for row in judged)}",
        "stalled": f"{len(rows) - len(judged)}",
        "stall": f"{STALL:.0f}",
        "boots": f"{BOOTS}",
        "rows": "\n".join(line(row) for row in rows),
        "alpha": alphas,
        "burst": f"{BURST:,}",
    }.items():
        filled = filled.replace("{{" + name + "}}", value)
    return filled


def kept() -> tuple[dict[str, tuple[Measured, float | None, float]], dict[str, int], str]:
    """The output of `record` for the committed page."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))
    rows = read(found)
    recorded = {row.case: (row.linux, row.alpha, row.stall) for row in rows}
    return recorded, {row.case: row.runs for row in rows}, found["kernel"]


def main() -> int:
    """Boot, compare, tell on the way, write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of cases; nothing is written then")
    parser.add_argument("--simulated", action="store_true", help="simulate again, keep what was measured")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    try:
        recorded, often, version = kept() if options.simulated else record(cases, tell)
    except LinuxMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    rows = []
    for case in cases:
        found, alpha, stall = recorded[case.name]
        runs, ticks = ours(case), ours(case, ticks=True)
        rows.append(
            Row(
                case=case.name,
                title=case.title,
                linux=found,
                ours=mean(runs),
                spread=mean(runs, statistics.stdev),
                ticks=mean(ticks),
                ticks_spread=mean(ticks, statistics.stdev),
                alpha=alpha,
                stall=stall,
                runs=often[case.name],
            )
        )
        tell(line(rows[-1]))
    if not options.only:
        text = record_lines({"kernel": version, "rows": [asdict(row) for row in rows]})
        FIGURES.write_text(text, encoding="utf-8")
        (ROOT / "docs" / "transfers.md").write_text(page(rows, version), encoding="utf-8")
    judged = [row for row in rows if not row.stalled]
    return 0 if all(all(row.verdicts.values()) for row in judged) else 1


def tell(what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
