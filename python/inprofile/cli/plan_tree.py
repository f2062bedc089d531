"""`inprofile plan tree`: how many more customers fit at each level of an access network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .._input import visible
from ..run.storage import check_folder, write_whole
from .backend import SlurmSet, Where, made_by
from .common import File, Jobs, Json, Own, Refused, Set, Yes, emit, full_disk, guarded, open_scenario, say
from .effort import affordable, announce
from .plan_runs import RUNS, SHORT, check_answer_place, kept_runs

__all__ = ["tree"]

ANSWER = "answer.json"


@guarded
def tree(
    file: File,
    set_: Set = None,
    name: Annotated[
        str | None,
        typer.Option("--tree", help="The tree, where the file has several.", show_default=False),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="The group of its flows of which more are added; repeatable; default: each with a contract.",
            show_default=False,
        ),
    ] = None,
    kept: Annotated[
        str | None,
        typer.Option(
            metavar='"99 %"',
            help="Share of the contracts that is to be kept; default: the file's plan.kept, or 99 %.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Runs of each number that is tried; of the answer twice as many.",
        ),
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for runs and answer, where the same question goes on; default: FILE-tree.",
            show_default=False,
        ),
    ] = None,
    mechanism: Own = None,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """How many more customers of which kind fit at each level of a tree, and which link breaks first."""
    from ..studies.plan.sell.activity import ActivityError, share_of
    from ..studies.plan.tree.answer import expected_runs, fits
    from ..studies.plan.tree.network import TreeError, network_of
    from ..studies.plan.tree.words import as_json, as_text

    scenario = open_scenario(file, set_)
    try:
        network = network_of(scenario, name, None if kept is None else share_of(kept, "--kept"))
        kinds = network.chosen(group)
    except (ActivityError, TreeError) as error:
        raise Refused(visible(str(error))) from None
    runs = expected_runs(network, kinds, seeds)
    affordable(
        runs * scenario.expected_packets(seeds=1),
        yes,
        runs,
        jobs=jobs,
        less="fewer --group or a shorter duration",
    )
    place = out or Path(f"{file.stem}-tree")
    check_answer_place(place, [ANSWER])
    print(f"About {runs:,} runs.", file=sys.stderr)
    announce([(network.scenario, runs)], jobs, kept=place / RUNS)
    place.mkdir(parents=True, exist_ok=True)
    check_folder(place)
    made = made_by(backend, jobs, slurm_set, place)
    with made as where, full_disk(place / RUNS), kept_runs(place / RUNS, runs) as count:
        answer = fits(
            network,
            kinds,
            seeds=seeds,
            backend=where,
            place=place / RUNS,
            tell=lambda text: print(visible(text, lines=False), file=sys.stderr),
            count=count,
        )
    found = as_json(answer)
    with full_disk(place / RUNS):
        write_whole(place / ANSWER, (json.dumps(found, indent=1) + "\n").encode())
    if json_:
        emit({**found, "files": {ANSWER: str(place / ANSWER)}})
    else:
        say(f"{as_text(answer)}\n\nWritten: {visible(str(place / ANSWER))}")
    if not answer.met:
        raise typer.Exit(SHORT)
