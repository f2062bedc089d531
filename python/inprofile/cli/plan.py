"""`inprofile plan`, `plan sell`, `plan tree`: settings that keep a promise; how many customers fit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .._input import visible
from ..run.storage import check_folder, write_whole
from .common import (
    File,
    Jobs,
    Json,
    Own,
    Refused,
    Set,
    Yes,
    argument,
    emit,
    full_disk,
    guarded,
    names_of,
    open_scenario,
    option,
    say,
)
from .execution import (
    RUNS,
    SHORT,
    SlurmSet,
    Where,
    affordable,
    announce,
    check_answer_place,
    kept_runs,
    made_by,
)
from .plan_policer import policer

if TYPE_CHECKING:
    from ..run.pool import Backend


_SOLD = ("sell.svg", "answer.json")


@guarded
def sell(
    file: Annotated[
        Path,
        argument(
            "An experiment file (TOML) with markers and queue as they are to be: best.toml of a plan.", "FILE"
        ),
    ],
    group: Annotated[
        list[str] | None,
        option("The group whose contracts are sold; repeatable; default: all, as the file mixes them."),
    ] = None,
    active: Annotated[
        str | None,
        option(
            "How many of the customers want their rate at a time: one share, 24 with commas between"
            " (by hour), or a CSV file with the columns hour and active; default: all, always.",
            '"20 %"|24 SHARES|FILE.csv',
        ),
    ] = None,
    on: Annotated[str | None, option("Customers come for this time on average …", '"60 s"')] = None,
    off: Annotated[str | None, option("… and are gone for this time.", '"240 s"')] = None,
    periods: Annotated[
        str, typer.Option(metavar="exponential|pareto|fixed", help="The distribution of these times.")
    ] = "exponential",
    kept: Annotated[
        str | None,
        option(
            "Share of the wanted contracts that is to be kept; default: the file's plan.kept, or 99 %.",
            '"99 %"',
        ),
    ] = None,
    margin: Annotated[
        str, typer.Option(metavar='"10 %"', help="How much more demand than that the answer leaves room for.")
    ] = "10 %",
    out: Annotated[
        Path | None,
        option("The folder for runs and answer, where the same question goes on; default: FILE-sell."),
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
    from ..studies.plan.sell.market import MarketError, read_market
    from ..studies.plan.sell.words import as_json, as_text, picture

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
    check_answer_place(place, _SOLD)
    _tell(f"About {runs:,} runs.")
    announce([(market.scenario, runs)], jobs, kept=place / RUNS)
    with _kept_in(place, runs, made_by(backend, jobs, slurm_set, place)) as (where, count):
        try:
            answer = found_for(
                market, who, margin=room, backend=where, place=place / RUNS, progress=_tell, count=count
            )
        except MarketError as error:
            raise Refused(visible(str(error))) from None
    found = as_json(answer)
    with full_disk(place / RUNS):
        write_whole(place / "sell.svg", picture(answer).encode())
        write_whole(place / "answer.json", (json.dumps(found, indent=1) + "\n").encode())
    if json_:
        emit({**found, "files": {name: str(place / name) for name in _SOLD}})
    else:
        lines = "\n".join(f"  {place / name}" for name in _SOLD)
        say(f"{as_text(answer)}\n\n{answer.runs:,} runs. Written:\n{visible(lines)}")
    if answer.shown is None:
        raise typer.Exit(SHORT)


_ANSWER = "answer.json"


@guarded
def tree(
    file: File,
    set_: Set = None,
    name: Annotated[str | None, option("The tree, where the file has several.", None, "--tree")] = None,
    group: Annotated[
        list[str] | None,
        option("The group of its flows of which more are added; repeatable; default: each with a contract."),
    ] = None,
    kept: Annotated[
        str | None,
        option(
            "Share of the contracts that is to be kept; default: the file's plan.kept, or 99 %.", '"99 %"'
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, max=1000, help="Runs of each number that is tried; of the answer twice as many."),
    ] = 3,
    out: Annotated[
        Path | None,
        option("The folder for runs and answer, where the same question goes on; default: FILE-tree."),
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
    from ..studies.plan.tree.answer import as_json, as_text, expected_runs, fits
    from ..studies.plan.tree.network import TreeError, network_of

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
    check_answer_place(place, [_ANSWER])
    _tell(f"About {runs:,} runs.")
    announce([(network.scenario, runs)], jobs, kept=place / RUNS)
    with _kept_in(place, runs, made_by(backend, jobs, slurm_set, place)) as (where, count):
        answer = fits(network, kinds, seeds=seeds, backend=where, place=place / RUNS, tell=_tell, count=count)
    found = as_json(answer)
    with full_disk(place / RUNS):
        write_whole(place / _ANSWER, (json.dumps(found, indent=1) + "\n").encode())
    if json_:
        emit({**found, "files": {_ANSWER: str(place / _ANSWER)}})
    else:
        say(f"{as_text(answer)}\n\nWritten: {visible(str(place / _ANSWER))}")
    if not answer.met:
        raise typer.Exit(SHORT)


_DEFAULT = "contracts"


def _tell(text: str) -> None:
    print(visible(text, lines=False), file=sys.stderr)


@contextmanager
def _kept_in(
    place: Path, expected: int | None, made: AbstractContextManager[Backend]
) -> Iterator[tuple[Backend, Callable[[int], None]]]:
    """Where runs are made and how they are counted, kept in a folder that is written to."""
    place.mkdir(parents=True, exist_ok=True)
    check_folder(place)
    with made as where, full_disk(place / RUNS), kept_runs(place / RUNS, expected) as count:
        yield where, count


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
    file: Annotated[Path, argument("An experiment file (TOML); its table plan has the goal.", "FILE")],
    out: Annotated[
        Path | None,
        option("The folder for runs and answer, where the same plan goes on; default: FILE-plan."),
    ] = None,
    schemes: Annotated[
        str | None, option("Schemes, and files of schemes; default: the file's, or all.", "A,B,…")
    ] = None,
    trials: Annotated[int, typer.Option(min=4, max=10_000, help="Settings that each scheme gets.")] = 24,
    customers: Annotated[
        Path | None,
        option(
            "Who the customers are: name, prefix, vlan or session, contract, plan (a group of flows).",
            "FILE.csv",
        ),
    ] = None,
    scale: Annotated[
        int | None,
        option(
            "Look for settings on a network with one in so many flows; the promise is tested on the"
            " network itself. Default: where a run is long; 1: never.",
            min=1,
            max=1000,
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
    _tell(f"About {runs:,} runs.")
    # Runs of a smaller network count as parts of runs of the network.
    whole = max(1, round(packets / max(1.0, question.scenario.expected_packets(seeds=1))))
    some = [question.put(scheme, {"T": question.longest}) for scheme in question.schemes]
    announce([(one, whole / len(some)) for one in some], jobs, kept=place / RUNS)
    with _kept_in(place, None, made_by(backend, jobs, slurm_set, place)) as (where, count):
        answer = found_for(
            question,
            trials=trials,
            scale=scale,
            backend=where,
            place=place / RUNS,
            progress=_tell,
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
