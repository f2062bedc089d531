"""`inprofile validate`: an experiment, compared with ns-2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._input import MOST_RUNS, MOST_SEED, seconds
from .common import File, Json, Refused, Set, Yes, emit, guarded, open_scenario, say, terminable
from .effort import affordable, announce

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
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Event by event: folder for the ns-2 script and both traces.",
            show_default=False,
        ),
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
