"""`inprofile validate`: an experiment, compared with ns-2 event by event."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import File, Json, Refused, Set, emit, guarded, open_scenario

DIFFERENT = 1


@guarded
def validate(
    file: File,
    seed: Annotated[int, typer.Option(min=1, help="Which seed both run.")] = 1,
    set_: Set = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder for ns-2's script and both traces.", show_default=False),
    ] = None,
    json_: Json = False,
) -> None:
    """Run an experiment here and in ns-2 2.35, and compare every event at every link.

    The experiment has to ask for ns-2's ways: [engine] profile = "ns2", [tcp] profile = "ns2".
    """
    from ..validate import NotInNs2, Ns2Failed, Ns2Missing
    from ..validate import validate as run_both

    scenario = open_scenario(file, set_)
    try:
        found = run_both(scenario, seed, keep)
    except (NotInNs2, Ns2Missing, Ns2Failed) as error:
        raise Refused(str(error)) from None
    if json_:
        emit(found.to_json())
    else:
        typer.echo(str(found))
    if not found.identical:
        raise typer.Exit(DIFFERENT)
