"""`inprofile check`, `validate`: what would run, without running it; an experiment compared with ns-2."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import MOST_RUNS, MOST_SEED, seconds, visible
from .common import (
    File,
    Json,
    Own,
    PerRun,
    Refused,
    Set,
    Yes,
    emit,
    guarded,
    open_scenario,
    option,
    say,
    show,
    terminable,
)
from .execution import ASK_FROM, MANY, affordable, announce, gigabytes, long, packets_text

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario


@guarded
def check(
    file: File, set_: Set = None, mechanism: Own = None, threads_per_run: PerRun = 1, json_: Json = False
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


DIFFERENT = 1


@guarded
def validate(
    file: File,
    seed: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_SEED, help="Event by event: the seed to run.", show_default="1"),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST_RUNS,
            help="In distribution: number of seeds for each simulator.",
            show_default="as many as the file says",
        ),
    ] = None,
    set_: Set = None,
    keep: Annotated[
        Path | None, option("Event by event: folder for the ns-2 script and both traces.", "DIR")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Time limit of each ns-2 run.")] = 600.0,
    patience: Annotated[str | None, typer.Option(hidden=True)] = None,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    r"""Run an experiment here and in ns-2 2.35, and compare.

    With \[engine] profile = "ns2" every event at every link is compared.
    With the exact profile, the default, no two runs can be the same: many
    seeds are run, and fairness, rates and drops compared in distribution.
    Both need \[tcp] profile = "ns2".
    """
    from ..studies.validate import NotInNs2, Ns2Failed, Ns2Missing, Timed, Validation, by_events
    from ..studies.validate import validate as run_both
    from ..studies.validate.distribution import Distribution, TooFewSeeds, validate_distribution

    if patience is not None:
        raise Refused(f"--patience is called --timeout now: write --timeout {patience}")
    try:
        seconds("--timeout", timeout)
    except ValueError as error:
        raise Refused(str(error)) from None
    scenario = open_scenario(file, set_)
    events = by_events(scenario)
    if events and seeds is not None:
        raise Refused('--seeds: [engine] profile = "ns2" is compared event by event, one --seed at a time')
    if not events and (seed is not None or keep is not None):
        raise Refused('--seed and --keep are for [engine] profile = "ns2"; here many --seeds are compared')
    runs = 1 if events else seeds or len(scenario.seeds)
    affordable(scenario.expected_packets(seeds=1) * runs, yes, runs)
    found: Validation | Distribution
    try:
        with terminable():
            announce([(Timed(scenario, timeout), runs)], 1 if events else None)
            if events:
                found = run_both(scenario, seed or 1, keep, timeout=timeout)
            else:
                found = validate_distribution(scenario, seeds, timeout=timeout)
    except (NotInNs2, Ns2Missing, Ns2Failed, TooFewSeeds) as error:
        raise Refused(str(error)) from None
    if json_:
        emit(found.to_json())
    else:
        say(str(found))
    same = found.identical if isinstance(found, Validation) else found.equivalent
    if not same:
        raise typer.Exit(DIFFERENT)
