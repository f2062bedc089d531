"""`inprofile plan`: settings that keep a promise, found by simulation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._input import visible
from ..run.storage import check_folder
from .backend import SlurmSet, Where, made_by
from .common import (
    Jobs,
    Json,
    Own,
    Refused,
    Yes,
    emit,
    full_disk,
    guarded,
    names_of,
    say,
)
from .effort import affordable, announce
from .plan_policer import policer
from .plan_runs import SHORT, kept_runs
from .plan_sell import sell
from .plan_tree import tree

__all__ = ["plan"]

_DEFAULT = "contracts"


class _Named(TyperGroup):
    """`plan FILE` is `plan contracts FILE`, and `plan -h` tells of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Group.parse_args`."""
        if not args or args[0] not in self.commands:
            args = [_DEFAULT, *(args or ctx.help_option_names[:1])]
        return super().parse_args(ctx, args)


plan = typer.Typer(
    name="plan",
    cls=_Named,
    rich_markup_mode=None,
    add_completion=False,
    help="Find settings that keep a promise, by simulation: plan FILE for a link and its contracts.",
)


@plan.callback()
def _group() -> None:
    """Find settings that keep a promise, by simulation: plan FILE for a link and its contracts."""


plan.command("policer")(policer)
plan.command("sell")(sell)
plan.command("tree")(tree)


@plan.command(
    _DEFAULT,
    epilog="inprofile plan policer -h: how large a policer's burst has to be."
    " inprofile plan sell -h: how many contracts may be sold."
    " inprofile plan tree -h: how many more customers fit at each level of a tree.",
)
@guarded
def contracts(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="An experiment file (TOML); its table plan has the goal.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for runs and answer, where the same plan goes on; default: FILE-plan.",
            show_default=False,
        ),
    ] = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Schemes, and files of schemes; default: the file's, or all.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=4, max=10_000, help="Settings that each scheme gets.")] = 24,
    customers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Who the customers are: name, prefix, vlan or session, contract, plan (a group of flows).",
            show_default=False,
        ),
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Look for settings on a network with one in so many flows; the promise is tested on the"
            " network itself. Default: where a run is long; 1: never.",
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
    """Which scheme, with which settings, keeps the contracts on a link, and what it costs the others."""
    from ..studies.compare.schemes import NoContractError, SchemeFileError, UnknownSchemeError
    from ..studies.plan import PlanError, read_question
    from ..studies.plan import plan as found_for
    from ..studies.plan.contracts import expected_runs
    from ..studies.plan.customers import CustomerError, read_customers
    from ..studies.plan.files import RUNS, check_place, write
    from ..studies.plan.words import as_json, as_text

    names = names_of(schemes, "--schemes")
    try:
        who = None if customers is None else read_customers(customers)
        question = read_question(file, names, who)
    except (CustomerError, PlanError, UnknownSchemeError, NoContractError, SchemeFileError) as error:
        raise Refused(visible(str(error))) from None
    place = out or Path(f"{file.stem}-plan")
    runs, packets = expected_runs(question, trials, scale)
    affordable(packets, yes, runs, jobs=jobs, less="fewer --trials, fewer --schemes or a shorter duration")
    # Before anything runs: an answer that cannot be written would be lost.
    check_place(place)
    print(f"About {runs:,} runs.", file=sys.stderr)
    # Runs of a smaller network count as parts of runs of the network.
    whole = max(1, round(packets / max(1.0, question.scenario.expected_packets(seeds=1))))
    some = [question.put(scheme, {"T": question.longest}) for scheme in question.schemes]
    announce([(one, whole / len(some)) for one in some], jobs, kept=place / RUNS)
    place.mkdir(parents=True, exist_ok=True)
    check_folder(place)
    made = made_by(backend, jobs, slurm_set, place)
    with made as where, full_disk(place / RUNS), kept_runs(place / RUNS) as count:
        answer = found_for(
            question,
            trials=trials,
            scale=scale,
            backend=where,
            place=place / RUNS,
            progress=lambda text: print(visible(text, lines=False), file=sys.stderr),
            count=count,
        )
    found = as_json(answer)
    with full_disk(place / RUNS):
        written = write(answer, place, found)
    if json_:
        emit({**found, "files": written})
    else:
        lines = "\n".join(f"  {where}" for where in written.values())
        say(f"{as_text(answer)}\n\n{answer.runs:,} runs. Written:\n{visible(lines)}")
    if answer.chosen is None:
        raise typer.Exit(SHORT)
