"""Runs validation's experiments here and in ns-2, meters here and in DPDK; writes docs/validation.{md,json}.

Leaves with 1 if anything differs that is not explained in `EXPLAINED`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import meters
import profiles

from inprofile import load
from inprofile._runner import threads
from inprofile.distribution import Distribution, validate_distribution
from inprofile.validate import Divergence, Ns2Failed, Ns2Missing, Validation, validate

ROOT = Path(__file__).parent.parent
SEED = 1

PAGE = ROOT / "validation" / "page.md"
"""The page, with room for the figures."""

EXPLAINED = {
    "paper-a-rio": "every mean is within its margin, but drops and throughput are not distributed alike: "
    "the quartiles of drops are the same within 2, and dsRED has a tail. Once its unguarded probability is "
    "negative it drops nothing until the average is past max_th, then takes from all four flows at once. "
    "Such forced drops are in every one of its seeds with more than 255 drops, about a fifth; RIO has none. "
    "With `dsred` here too (paper-a-dsred) nothing tells the two apart",
}
"""Experiments of which a figure is not shown to be equivalent, and why."""

Row = tuple[Path, Validation, list[profiles.Tied]]


def by_events(file: Path) -> Row:
    """One experiment in ns-2 and in every profile of ours."""
    with tempfile.TemporaryDirectory(prefix="inprofile-") as name:
        folder = Path(name)
        scenario = load(file)
        return file, validate(scenario, SEED, keep=folder), profiles.tie(scenario, SEED, folder)


def main() -> int:
    """Compare, tell on the way, write both files."""
    rows: list[Row] = []
    figures: list[tuple[Path, Distribution]] = []
    try:
        with ProcessPoolExecutor(threads(None)) as pool:
            for row in pool.map(by_events, sorted((ROOT / "validation" / "ns2").glob("*.toml"))):
                tell(row[0], str(row[1]).splitlines()[0])
                if row[1].comparison.divergence is not None:
                    sys.stderr.write(f"{row[1].comparison.divergence}\n")
                rows.append(row)
        for file in sorted((ROOT / "validation" / "distribution").glob("*.toml")):
            found = validate_distribution(load(file))
            tell(file, str(found))
            figures.append((file, found))
    except (Ns2Missing, Ns2Failed) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    version = ns2_version()
    metered = meters.compare()
    write(rows, figures, version, metered)
    identical = sum(row.identical for _, row, _ in rows)
    alike = sum(found.equivalent or file.stem in EXPLAINED for file, found in figures)
    sys.stdout.write(f"\n{identical} of {len(rows)} scenarios identical;")
    sys.stdout.write(f" {alike} of {len(figures)} equivalent in distribution, or explained;")
    sys.stdout.write(" written: docs/validation.md, docs/validation.json\n")
    return 0 if identical == len(rows) and alike == len(figures) and metered.agrees else 1


def tell(file: Path, what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{file.stem:<40} {what}\n")
    sys.stdout.flush()


def write(
    rows: list[Row], figures: list[tuple[Path, Distribution]], version: str, metered: meters.Found
) -> None:
    """Both files."""
    found = {
        "ns2": version,
        "scenarios": [
            row.to_json()
            | {"file": str(file.relative_to(ROOT)), "profiles": [tied.to_json() for tied in ties]}
            for file, row, ties in rows
        ],
        "distribution": [
            d.to_json() | {"file": str(file.relative_to(ROOT)), "explained": EXPLAINED.get(file.stem)}
            for file, d in figures
        ],
        "meters": metered.to_json(),
    }
    docs = ROOT / "docs"
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    (docs / "validation.json").write_text(text, encoding="utf-8")
    (docs / "validation.md").write_text(page(rows, figures, version, metered), encoding="utf-8")


def page(
    rows: list[Row], figures: list[tuple[Path, Distribution]], version: str, metered: meters.Found
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
    for file, row, _ in rows:
        first = told(row.comparison.divergence)
        table.append(
            f"| {link(file)} | {row.title} | {row.comparison.events:,} | {row.packets:,} | {first} |"
        )
    return PAGE.read_text(encoding="utf-8").format(
        verdict=verdict,
        table="\n".join(table),
        seed=SEED,
        version=version,
        distribution=distribution_table(figures),
        profiles=profiles_table(rows),
        meters=metered.section(),
    )


def link(file: Path) -> str:
    """An experiment's name, leading to its file."""
    return f"[{file.stem}](../{file.relative_to(ROOT)})"


def distribution_table(figures: list[tuple[Path, Distribution]]) -> str:
    """A row a figure."""
    table = [
        "| scenario | seeds | figure | here | ns-2 | difference, 90 % interval | margin | TOST p | KS p | |",
        "|---|---:|---|---:|---:|---|---:|---:|---:|---|",
    ]
    for file, d in figures:
        for f in d.figures:
            shown = f.to_json()
            ci = f"{f.difference:+.3g} [{f.ci90.lo:+.3g}, {f.ci90.hi:+.3g}]"
            word = "equivalent" if f.alike else "**means equivalent, told apart**"
            word = word if f.equivalent else "**not shown**"
            cells = [link(file), d.seeds, f.name, f"{shown['ours']:,.5g}", f"{shown['ns2']:,.5g}", ci]
            cells += [f"{f.margin:.3g}", f"{f.tost_p:.2g}", f"{f.ks_p:.2g}", word]
            table.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    reasons = [f"{link(file)}: {EXPLAINED[file.stem]}." for file, _ in figures if file.stem in EXPLAINED]
    return "\n".join([*table, "", "\n\n".join(reasons)])


def profiles_table(rows: list[Row]) -> str:
    """A row an experiment."""
    table = [
        "| scenario | ns-2's random numbers: same events | but for order | then | exact: events | then |",
        "|---|---:|---:|---|---:|---|",
    ]
    for file, _, (random, exact) in rows:
        cells = [
            link(file),
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
