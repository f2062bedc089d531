"""`inprofile check`: what would run, without running it."""

from __future__ import annotations

from dataclasses import asdict

from .common import File, Json, Own, Set, emit, guarded, open_scenario, say, show
from .effort import ASK_FROM, packets_text


@guarded
def check(file: File, set_: Set = None, mechanism: Own = None, json_: Json = False) -> None:
    """Check an experiment: draw its topology, print every effective value, and warn of what looks odd."""
    scenario = open_scenario(file, set_)
    found = scenario.check()
    each, runs = scenario.expected_packets(seeds=1), len(scenario.seeds)
    if json_:
        expected = {"packets_a_run": round(each), "runs": runs, "packets": round(each * runs)}
        warnings = [asdict(w) for w in found.warnings]
        emit({"effective": found.effective, "warnings": warnings, "expected": expected})
        return
    from ..topology import draw

    show(draw(found.effective, found.warnings))
    asked = f": above {ASK_FROM:,}, run needs --yes" if each * runs > ASK_FROM else ""
    say(
        f"\nExpected: {packets_text(each)} per run, {packets_text(each * runs)} in"
        f" {runs:,} run{'s' * (runs != 1)}{asked}."
    )
