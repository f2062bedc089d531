"""Runs validation's experiments here and in ns-2, meters here and in DPDK, loops here and in ns-3.

Writes docs/validation.{md,json}.

Leaves with 1 if anything differs beyond what explained.py names, or if the runs there don't show why.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import grid
import loops
import meters
import profiles
import random_runs
from explained import EXPLAINED, Reason, accounted, paper_d

from inprofile import load
from inprofile.run.pool import threads
from inprofile.run.storage import record_lines
from inprofile.studies.validate import Divergence, Ns2Failed, Ns2Missing, Validation, validate
from inprofile.studies.validate.distribution import Distribution, validate_distribution

ROOT = Path(__file__).parent.parent
SEED = 1

PAGE = ROOT / "validation" / "page.md"
"""The page, with room for the figures."""

Row = tuple[str, Validation, list[profiles.Tied]]
Found = tuple[Path, Distribution, Reason | None]


def by_events(name: str) -> Row:
    """One experiment of the grid in ns-2 and in every profile of ours."""
    with tempfile.TemporaryDirectory(prefix="inprofile-") as place:
        folder = Path(place)
        scenario = grid.experiment(name)
        return name, validate(scenario, SEED, keep=folder), profiles.tie(scenario, SEED, folder)


def main() -> int:
    """Compare, tell on the way, write both files."""
    rows: list[Row] = []
    figures: list[Found] = []
    try:
        drawn = random_runs.tally(1, random_runs.RUNS)
        sys.stdout.write(f"{random_runs.table(drawn.to_json())}\n")
        with ProcessPoolExecutor(threads(None)) as pool:
            for row in pool.map(by_events, grid.changed()):
                tell(row[0], str(row[1]).splitlines()[0])
                if row[1].comparison.divergence is not None:
                    sys.stderr.write(f"{row[1].comparison.divergence}\n")
                rows.append(row)
        for file in sorted((ROOT / "validation" / "distribution").glob("*.toml")):
            found = validate_distribution(load(file))
            tell(file.stem, str(found))
            explanation = EXPLAINED.get(file.stem)
            reason = explanation.reason(found.seeds) if explanation else None
            if not accounted(found, explanation, reason):
                tell(file.stem, "neither equivalent nor what explained.py explains")
            figures.append((file, found, reason))
    except (Ns2Missing, Ns2Failed) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    version = ns2_version()
    metered = meters.compare()
    looped = loops.compare()
    write(rows, figures, drawn, version, metered, looped, paper_d())
    identical = sum(row.identical for _, row, _ in rows)
    alike = sum(accounted(found, EXPLAINED.get(file.stem), reason) for file, found, reason in figures)
    sys.stdout.write(f"\n{identical} of {len(rows)} scenarios identical;")
    sys.stdout.write(f" {drawn.to_json()['all'][random_runs.IDENTICAL]} of {random_runs.RUNS} drawn ones;")
    sys.stdout.write(f" {alike} of {len(figures)} equivalent in distribution, or explained;")
    sys.stdout.write(" written: docs/validation.md, docs/validation.json\n")
    beside = metered.agrees and looped.agrees
    return 0 if identical == len(rows) and drawn.accounted and alike == len(figures) and beside else 1


def tell(name: str, what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{name:<40} {what}\n")
    sys.stdout.flush()


def write(
    rows: list[Row],
    figures: list[Found],
    drawn: random_runs.Tally,
    version: str,
    metered: meters.Found,
    looped: loops.Found,
    in_step: str,
) -> None:
    """Both files."""
    found = {
        "ns2": version,
        "scenarios": [
            {"name": name}
            | {key: value for key, value in row.to_json().items() if key != "file"}
            | {"profiles": [tied.to_json() for tied in ties]}
            for name, row, ties in rows
        ],
        "drawn": drawn.to_json(),
        "distribution": [
            d.to_json() | {"file": str(file.relative_to(ROOT)), "explained": reason and asdict(reason)}
            for file, d, reason in figures
        ],
        "in_step": in_step,
        "meters": metered.to_json(),
        "closed_loops": looped.to_json(),
    }
    docs = ROOT / "docs"
    text = record_lines(found)
    (docs / "validation.json").write_text(text, encoding="utf-8")
    (docs / "validation.md").write_text(
        page(rows, figures, drawn, version, metered, looped, in_step), encoding="utf-8"
    )


def page(
    rows: list[Row],
    figures: list[Found],
    drawn: random_runs.Tally,
    version: str,
    metered: meters.Found,
    looped: loops.Found,
    in_step: str,
) -> str:
    """The tables and what they mean."""
    identical = sum(row.identical for _, row, _ in rows)
    events = sum(row.comparison.events for _, row, _ in rows)
    how_many = "All" if identical == len(rows) else f"{identical} of"
    verdict = (
        f"{how_many} {len(rows)} scenarios run here and in ns-2 {version} are identical, "
        f"{events:,} events in all."
    )
    table = ["| scenario | | events compared | packets | first divergence |", "|---|---|---:|---:|---|"]
    for name, row, _ in rows:
        first = told(row.comparison.divergence)
        table.append(f"| {name} | {row.title} | {row.comparison.events:,} | {row.packets:,} | {first} |")
    return PAGE.read_text(encoding="utf-8").format(
        verdict=verdict,
        table="\n".join(table),
        seed=SEED,
        version=version,
        drawn=random_runs.section(drawn.to_json()),
        distribution=distribution_table(figures),
        in_step=in_step,
        profiles=profiles_table(rows),
        meters=metered.section(),
        loops=looped.section(),
    )


def link(file: Path) -> str:
    """An experiment's name, leading to its file."""
    return f"[{file.stem}](../{file.relative_to(ROOT)})"


def distribution_table(figures: list[Found]) -> str:
    """A row a figure."""
    table = [
        "| scenario | seeds | figure | here | ns-2 | difference, 90 % interval | margin | TOST p | KS p | |",
        "|---|---:|---|---:|---:|---|---:|---:|---:|---|",
    ]
    for file, d, _ in figures:
        for f in d.figures:
            shown = f.to_json()
            ci = f"{f.difference:+.3g} [{f.ci90.lo:+.3g}, {f.ci90.hi:+.3g}]"
            word = "equivalent" if f.alike else "**means equivalent, distributions distinguishable**"
            word = word if f.equivalent else "**not shown**"
            cells = [link(file), d.seeds, f.name, f"{shown['ours']:,.5g}", f"{shown['ns2']:,.5g}", ci]
            cells += [f"{f.margin:.3g}", f"{f.tost_p:.2g}", f"{f.ks_p:.2g}", word]
            table.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    reasons = [
        f"{link(file)}: {reason.text if reason.holds else '**its explanation does not hold**'}."
        for file, _, reason in figures
        if reason
    ]
    return "\n".join([*table, "", "\n\n".join(reasons)])


def profiles_table(rows: list[Row]) -> str:
    """A row an experiment."""
    table = [
        "| scenario | ns-2's random numbers: same events | but for order | then | exact: events | then |",
        "|---|---:|---:|---|---:|---|",
    ]
    for name, _, (random, exact) in rows:
        cells = [
            name,
            f"{random.events:,}",
            f"{random.moments:,}",
            first(random),
            f"{exact.moments:,}",
            first(exact),
        ]
        table.append("| " + " | ".join(cells) + " |")
    return "\n".join(table)


def first(tied: profiles.Tied) -> str:
    """The difference and its cause."""
    if not tied.cause:
        return "none"
    return f"{tied.cause}: `{tied.lines[0] or 'the end'}`, ns-2 profile `{tied.lines[1] or 'the end'}`"


def told(divergence: Divergence | None) -> str:
    """The two lines where it begins."""
    if divergence is None:
        return "none"
    ours, theirs = ((side or ("the end",))[-1] for side in (divergence.ours, divergence.theirs))
    return f"event {divergence.event:,}: `{ours}`, ns-2 `{theirs}`"


def ns2_version() -> str:
    """As ns-2 says it."""
    program = shutil.which("ns")
    if program is None:
        raise Ns2Missing
    said = subprocess.run([program], input="puts [ns-version]\n", capture_output=True, text=True, check=True)  # noqa: S603
    return said.stdout.replace("%", "").split()[0]


if __name__ == "__main__":
    sys.exit(main())
