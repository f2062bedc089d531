"""`inprofile plan sell`: how many contracts may be sold on a link."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .._input import visible
from ..run.storage import check_folder, write_whole
from .backend import SlurmSet, Where, made_by
from .common import Jobs, Json, Own, Refused, Yes, emit, full_disk, guarded, say
from .effort import affordable, announce
from .plan_runs import RUNS, SHORT, check_answer_place, kept_runs

__all__ = ["sell"]

FILES = ("sell.svg", "answer.json")


@guarded
def sell(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An experiment file (TOML) with markers and queue as they are to be: best.toml of a plan.",
            show_default=False,
        ),
    ],
    group: Annotated[
        list[str] | None,
        typer.Option(
            help="The group whose contracts are sold; repeatable; default: all, as the file mixes them.",
            show_default=False,
        ),
    ] = None,
    active: Annotated[
        str | None,
        typer.Option(
            metavar='"20 %"|24 SHARES|FILE.csv',
            help="How many of the customers want their rate at a time: one share, 24 with commas between"
            " (by hour), or a CSV file with the columns hour and active; default: all, always.",
            show_default=False,
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(metavar='"60 s"', help="Customers come for this time on average …", show_default=False),
    ] = None,
    off: Annotated[
        str | None,
        typer.Option(metavar='"240 s"', help="… and are gone for this time.", show_default=False),
    ] = None,
    periods: Annotated[
        str, typer.Option(metavar="exponential|pareto|fixed", help="The distribution of these times.")
    ] = "exponential",
    kept: Annotated[
        str | None,
        typer.Option(
            metavar='"99 %"',
            help="Share of the wanted contracts that is to be kept; default: the file's plan.kept, or 99 %.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        str, typer.Option(metavar='"10 %"', help="How much more demand than that the answer leaves room for.")
    ] = "10 %",
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for runs and answer, where the same question goes on; default: FILE-sell.",
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
    """How many contracts may be sold on a link: the curve of contracts sold against the share kept."""
    from ..studies.plan.sell.activity import Activity, ActivityError, share_of
    from ..studies.plan.sell.answer import expected_runs
    from ..studies.plan.sell.answer import sell as found_for
    from ..studies.plan.sell.figure import picture
    from ..studies.plan.sell.market import MarketError, read_market
    from ..studies.plan.sell.words import as_json, as_text

    if active is not None and (on or off):
        raise Refused("--active says how many are there, and so do --on and --off: write one or the other")
    if (on is None) != (off is None):
        raise Refused(
            "--on and --off belong together: write how long customers stay, and how long they are gone"
        )
    try:
        if on is not None and off is not None:
            who = Activity.stays(on, off, periods)
        else:
            who = Activity() if active is None else Activity.shares(active)
        room = share_of(margin, "--margin")
        market = read_market(file, group, None if kept is None else share_of(kept, "--kept"))
    except (ActivityError, MarketError) as error:
        raise Refused(visible(str(error))) from None
    place = out or Path(f"{file.stem}-sell")
    runs = expected_runs(market, who)
    each = market.scenario.expected_packets(seeds=1)
    affordable(runs * each, yes, runs, jobs=jobs, less="a lower --kept or a shorter duration")
    check_answer_place(place, FILES)
    print(f"About {runs:,} runs.", file=sys.stderr)
    announce([(market.scenario, runs)], jobs, kept=place / RUNS)
    place.mkdir(parents=True, exist_ok=True)
    check_folder(place)
    made = made_by(backend, jobs, slurm_set, place)
    with made as where, full_disk(place / RUNS), kept_runs(place / RUNS, runs) as count:
        try:
            answer = found_for(
                market,
                who,
                margin=room,
                backend=where,
                place=place / RUNS,
                progress=lambda text: print(visible(text, lines=False), file=sys.stderr),
                count=count,
            )
        except MarketError as error:
            raise Refused(visible(str(error))) from None
    found = as_json(answer)
    with full_disk(place / RUNS):
        write_whole(place / "sell.svg", picture(answer).encode())
        write_whole(place / "answer.json", (json.dumps(found, indent=1) + "\n").encode())
    if json_:
        emit({**found, "files": {name: str(place / name) for name in FILES}})
    else:
        lines = "\n".join(f"  {place / name}" for name in FILES)
        say(f"{as_text(answer)}\n\n{answer.runs:,} runs. Written:\n{visible(lines)}")
    if answer.shown is None:
        raise typer.Exit(SHORT)
