"""Runs validation/ns2 here and in ns-2, meters here and in DPDK; writes docs/validation.{md,json}.

Leaves with 1 if anything differs.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import meters

from inprofile import load
from inprofile.validate import Divergence, Ns2Failed, Ns2Missing, Validation, validate

ROOT = Path(__file__).parent.parent
SEED = 1

PAGE = ROOT / "validation" / "page.md"
"""The page, with room for the figures."""


def main() -> int:
    """Compare, tell on the way, write both files."""
    files = sorted((ROOT / "validation" / "ns2").glob("*.toml"))
    rows = []
    for file in files:
        try:
            row = validate(load(file), SEED)
        except (Ns2Missing, Ns2Failed) as error:
            sys.stderr.write(f"{file.name}: {error}\n")
            return 2
        sys.stdout.write(f"{file.stem:<40} {str(row).splitlines()[0]}\n")
        sys.stdout.flush()
        if row.comparison.divergence is not None:
            sys.stderr.write(f"{row.comparison.divergence}\n")
        rows.append((file, row))
    version = ns2_version()
    metered = meters.compare()
    found = {
        "ns2": version,
        "scenarios": [row.to_json() | {"file": str(file.relative_to(ROOT))} for file, row in rows],
        "meters": metered.to_json(),
    }
    docs = ROOT / "docs"
    (docs / "validation.json").write_text(
        json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (docs / "validation.md").write_text(page(rows, version, metered), encoding="utf-8")
    identical = sum(row.identical for _, row in rows)
    sys.stdout.write(f"\n{identical} of {len(rows)} scenarios identical;")
    sys.stdout.write(" written: docs/validation.md, docs/validation.json\n")
    return 0 if identical == len(rows) and metered.agrees else 1


def page(rows: list[tuple[Path, Validation]], version: str, metered: meters.Found) -> str:
    """The table and what it means."""
    identical = sum(row.identical for _, row in rows)
    events = sum(row.comparison.events for _, row in rows)
    how_many = "All" if identical == len(rows) else f"{identical} of"
    verdict = (
        f"{how_many} {len(rows)} scenarios run here and in ns-2 {version} are identical, "
        f"{events:,} events in all."
    )
    table = ["| scenario | | events compared | packets | first divergence |", "|---|---|---:|---:|---|"]
    for file, row in rows:
        name = f"[{file.stem}](../{file.relative_to(ROOT)})"
        first = told(row.comparison.divergence)
        table.append(f"| {name} | {row.title} | {row.comparison.events:,} | {row.packets:,} | {first} |")
    text = PAGE.read_text(encoding="utf-8")
    return text.format(
        verdict=verdict, table="\n".join(table), seed=SEED, version=version, meters=metered.section()
    )


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
