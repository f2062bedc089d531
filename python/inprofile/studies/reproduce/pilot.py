"""How many seeds a paper's comparisons need: its primary set-up, run with seeds that are never judged.

    python -m inprofile.studies.reproduce.pilot probe

What it prints decides `seeds` in the paper's `paper.toml`, before the judged runs. A comparison is decided
where its 95 % interval leaves the null value (of two bounds the nearer one) with 90 % power: see `power`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...experiment.scenario import Scenario
from ...metrics.measures import Measures
from ...metrics.quantity import number
from ...metrics.stats import estimate, seeds_needed
from ...papers import Cell, Paper, load
from ...papers.claim import Comparison, Finding
from ...papers.experiment import measure_work, measured_with, work_of
from . import CACHE

#: None of them is ever judged: those begin at 1 and are 40 at most.
SEEDS = tuple(range(101, 109))


@dataclass(frozen=True)
class Sized:
    """A comparison in the pilot, and the seeds that decide it; None: more than `power.MOST`."""

    claim: str
    comparison: Comparison
    mean: float
    deviation: float
    seeds: int | None


def pilot(paper: Paper, seeds: Sequence[int] = SEEDS, cache: Path | None = CACHE) -> list[Sized]:
    """Run the primary set-up with the pilot's seeds, and size every comparison of every claim.

    Raises `ValueError` for a seed that may be judged.
    """
    here = replace(paper, about={**paper.about, "setups": paper.setups[:1], "variants": [], "sweeps": []})
    measure = here.module("measure").measure
    cells: dict[Cell, Measures] = {}
    base: dict[str, Scenario] = {}
    for batch in here.module("experiments").jobs(here):
        places = [job.cell for job in batch]
        measured = measure_work(
            [work_of(here, job, cells, base, seeds) for job in batch],
            [measured_with(here, job) for job in batch],
            lambda index, result, places=places: measure(result, places[index], here),  # type: ignore[misc]
            cache=None if cache is None else cache / paper.name,
        )
        cells.update(zip(places, measured, strict=True))
    return sized(here.findings(cells), seeds)


def sized(findings: Iterable[Finding], seeds: Sequence[int]) -> list[Sized]:
    """Size the comparisons of `findings`, which have a value for each of `seeds`.

    Comparisons with other samples (several runs of a seed) or with a reason not to be decided are excluded.
    """
    return [
        _sized(finding.claim, comparison, seeds)
        for finding in findings
        for comparison in finding.comparisons
        if comparison.obstacle is None and len(comparison.values) == len(seeds)
    ]


def _sized(claim: str, comparison: Comparison, seeds: Sequence[int]) -> Sized:
    values = [float(x) for x in comparison.values]
    mean = estimate(values).mean
    bounds = (comparison.null, comparison.upper) if comparison.side == "within" else (comparison.null,)
    margin = min(bounds, key=lambda bound: abs(mean - bound))
    spread = (sum((x - mean) ** 2 for x in values) / (len(values) - 1)) ** 0.5
    needed = seeds_needed(dict(zip(seeds, values, strict=True)), margin=margin)
    return Sized(claim, comparison, mean, spread, needed)


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m inprofile.studies.reproduce.pilot", description=__doc__)
    parser.add_argument("paper")
    for found in pilot(load(parser.parse_args().paper)):
        label = f"{found.comparison.label} ({found.comparison.topology})".removesuffix(" ()")
        needed = "more than 40" if found.seeds is None else str(found.seeds)
        figures = f"{number(found.mean)} (deviation {number(found.deviation, 2)})"
        sys.stdout.write(f"{found.claim}\t{needed}\t{figures}\t{label}\n")


if __name__ == "__main__":
    _main()
