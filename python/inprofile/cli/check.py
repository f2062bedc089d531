"""`inprofile check`: what would run, without running it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from .._input import visible
from .common import File, Json, Own, PerRun, Refused, Set, emit, guarded, open_scenario, say, show
from .effort import ASK_FROM, MANY, gigabytes, long, packets_text

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario


@guarded
def check(
    file: File,
    set_: Set = None,
    mechanism: Own = None,
    threads_per_run: PerRun = 1,
    json_: Json = False,
) -> None:
    """Check an experiment: draw its topology, print every effective value, and warn of what looks odd."""
    scenario = open_scenario(file, set_)
    found = scenario.check()
    planned = _planned(scenario) if "plan" in found.effective else None
    each, runs = scenario.expected_packets(seeds=1), len(scenario.seeds)
    if json_:
        expected = {"packets_a_run": round(each), "runs": runs, "packets": round(each * runs)}
        if planned is not None:
            expected["runs_of_a_plan"] = planned[0]
        warnings = [asdict(w) for w in found.warnings]
        extends = {"extends": scenario.bases} if scenario.bases else {}
        emit({"effective": found.effective, "warnings": warnings, "expected": expected, **extends})
        return
    from ..experiment.topology import draw

    show(draw(found.effective, found.warnings))
    if scenario.bases:
        say(f"\n{' extends '.join(visible(name) for name in (scenario.file, *scenario.bases))}.")
    asked = f": above {ASK_FROM:,}, run needs --yes" if each * runs > ASK_FROM else ""
    say(
        f"\nExpected: {packets_text(each)} per run, {packets_text(each * runs)} in"
        f" {runs:,} run{'s' * (runs != 1)}{asked}."
    )
    if threads_per_run > 1:
        from ..run.pool import in_parts

        say(in_parts(scenario, threads_per_run))
    if scenario.flows >= MANY:
        memory = gigabytes(scenario.expected_memory(1, threads_per_run, threads_per_run))
        parts = f" in {threads_per_run} parts" * (threads_per_run > 1)
        say(f"Its {scenario.flows:,} flows take at least {memory} of memory in each run{parts}.")
    if planned is not None:
        of_plan, packets = planned
        say(f"A plan takes about {of_plan:,} runs, {packets_text(packets)}, {long(packets)}.")


def _planned(scenario: Scenario) -> tuple[int, float]:
    """How many runs a plan takes, and how many packets. Refuses schemes that this experiment cannot take."""
    from ..studies.compare.schemes import NoContractError, SchemeFileError, UnknownSchemeError
    from ..studies.plan import PlanError
    from ..studies.plan.contracts import expected_runs
    from ..studies.plan.question import question_of

    try:
        return expected_runs(question_of(scenario))
    except (PlanError, UnknownSchemeError, NoContractError, SchemeFileError) as error:
        raise Refused(visible(str(error))) from None
