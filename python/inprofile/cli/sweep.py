"""`inprofile sweep`: an experiment over the values of some of its keys."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._input import visible
from ..metrics.quantity import pm
from .commands import complete_key
from .common import (
    INTERRUPTED,
    TERMINATED,
    File,
    Jobs,
    Json,
    Latex,
    Own,
    Refused,
    Set,
    Terminated,
    Yes,
    check_latex,
    emit,
    full_disk,
    guarded,
    names_of,
    open_scenario,
    option,
    say,
    seeds_of,
    terminable,
    write_latex,
)
from .execution import SlurmSet, Where, affordable, announce, lines, made_by

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

    from ..studies.sweep import State, Sweep
    from ..studies.sweep.plan import SweepPlan

ROWS = 12
"""Settings shown while it runs."""
_METRIC = 26
"""Characters that a metric takes there."""


@guarded
def sweep(
    file: File,
    axis: Annotated[
        list[str] | None,
        option(
            'What is varied: values (--axis links.bottleneck.rate="2 Mbit/s,4 Mbit/s"), which'
            ' may have names (NAME:VALUE), or a range ("2..8 Mbit/s in 4"; log and whole may precede in).'
            " Repeatable.",
            "KEY=V1,V2,…",
            "--axis",
            autocompletion=complete_key,
        ),
    ] = None,
    tcp: Annotated[
        str | None,
        option(
            "An axis of senders by name: linux (CUBIC), prague, bbr, reno, dctcp, ledbat, copa, dcqcn.",
            "A,B,…",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("The folder of the dataset; a sweep of the same goes on there.")
    ] = None,
    design: Annotated[
        str,
        typer.Option(
            help="How values are combined: grid (all with all), list (first with first),"
            " lhs or sobol (samples)."
        ),
    ] = "grid",
    samples: Annotated[int | None, option("How many samples lhs and sobol take.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N|A..B", help="How many seeds a setting (1 … N), or which; default: the file's number."
        ),
    ] = None,
    until: Annotated[
        list[str] | None,
        option(
            "End a setting once this 95 % interval is so narrow: fi=0.01, goodput=50 kbit/s, or 2 %."
            " Repeatable.",
            "METRIC=HALF_WIDTH",
            "--until",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None, option("Show and draw this metric. Repeatable.", "NAME", "--metric")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw a first figure, OUT/sweep.svg.")] = False,
    latex: Latex = None,
    set_: Set = None,
    mechanism: Own = None,
    jobs: Jobs = None,
    backend: Where = "threads",
    cluster: Annotated[str | None, typer.Option(hidden=True)] = None,
    slurm: Annotated[bool, typer.Option("--slurm", hidden=True)] = False,
    slurm_set: SlurmSet = None,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Run an experiment over the values of some keys; what is finished is kept, whatever ends it."""
    if out is None:
        raise Refused("say where the results go: --out DIR")
    check_latex(latex)
    if cluster is not None and (slurm or slurm_set):
        raise Refused("--cluster and --slurm are two places: choose one")
    scenario = open_scenario(file, set_)
    from ..experiment.mechanisms import UnknownSenderError
    from ..run.pace import sampled
    from ..studies.sweep import SweepError, check_folder_of, make, run_plan
    from ..studies.sweep.axes import axis_of, axis_of_senders, design_of
    from ..studies.sweep.plan import named, until_of

    try:
        combined = design_of(design)
        names = names_of(tcp, "--tcp")
        senders = [] if names is None else [axis_of_senders(scenario, names)]
        planned = make(
            scenario,
            [*senders, *(axis_of(text, combined) for text in axis or [])],
            combined,
            samples=samples,
            seeds=None if seeds is None else seeds_of(seeds),
            until=[until_of(text) for text in until or []],
        )
        shown = [named(name) for name in metric or []]
        check_folder_of(planned, out)
        affordable(planned.packets, yes, planned.runs)
        some = sampled(range(len(planned.settings)))
        announce([(planned.scenario(n), planned.runs // len(some)) for n in some], jobs)
        # Written before --backend was there for every command.
        place = cluster or ("slurm" if slurm else backend)
        made = made_by(place, jobs, slurm_set, out)
        with made as where, full_disk(out), _watched(planned, out) as watch:
            found = run_plan(planned, out, where, watch=watch, **({"metrics": shown} if shown else {}))
    except (SweepError, UnknownSenderError) as error:
        raise Refused(str(error)) from None
    picture = None
    if plot:
        from ..studies.sweep.figure import save

        picture = save(found, shown)
    write_latex(latex, lambda: found.latex(shown or None))
    if json_:
        emit(as_json(found, scenario.file, out, picture))
    else:
        say(as_text(found, shown, out, picture))


@contextmanager
def _watched(planned: SweepPlan, out: Path) -> Iterator[Callable[[State], None]]:
    """A table and a bar on standard error while a terminal looks on, elsewhere a line now and then.

    What is interrupted says what is kept, and leaves with code 130 (or 143).
    """
    from rich.console import Console, Group
    from rich.live import Live

    console = Console(stderr=True)
    written = lines()
    last: list[State] = []
    bar = _bar(planned)
    task = bar.add_task("", total=planned.runs)
    drawn = [0.0]
    try:
        with (
            terminable(),
            Live(console=console, transient=True, auto_refresh=False)
            if console.is_terminal
            else _nothing() as live,
        ):

            def watch(state: State) -> None:
                last[:] = [state]
                if live is None:
                    written(state.finished, state.runs, visible(planned.base.title, lines=False))
                    return
                if time.monotonic() - drawn[0] < 0.5:
                    return
                bar.update(task, completed=state.finished, total=state.runs)
                live.update(Group(_table(state, console.width), bar), refresh=True)
                drawn[0] = time.monotonic()

            yield watch
    except KeyboardInterrupt as error:
        if last:
            state = last[0]
            sys.stderr.write(
                f"Interrupted after {state.finished:,} of {state.runs:,} runs. What is finished is kept in"
                f" {visible(str(out))}: the same command goes on from there.\n"
            )
        else:
            sys.stderr.write("Interrupted: nothing was run.\n")
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


def _bar(planned: SweepPlan) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    return Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def _table(state: State, width: int) -> RenderableType:
    """The settings that were last worked at, with as many metrics as there is room for."""
    from rich.table import Table
    from rich.text import Text

    from ..studies.sweep.axes import short_keys

    plan = state.plan
    table = Table(box=None, pad_edge=False)
    rows = state.shown(ROWS)
    room = max(1, (width - 12 * (1 + len(plan.keys))) // _METRIC)
    metrics = [m for m in state.metrics if any(m in figures for _, _, figures in rows)][:room]
    for heading in (*short_keys(plan.keys), "seeds", *metrics):
        table.add_column(Text(visible(heading, lines=False)), justify="right", no_wrap=True)
    units = state.units
    for number, seeds, figures in rows:
        cells = [
            *plan.shown[number],
            f"{seeds} of {len(plan.seeds)}",
            *(pm(figures[m], units.get(m, "")) if m in figures else "–" for m in metrics),
        ]
        table.add_row(*(Text(visible(cell, lines=False)) for cell in cells))
    return table


def as_text(found: Sweep, metrics: list[str], out: Path, picture: Path | None) -> str:
    """The settings with their figures, and where everything is."""
    from ..metrics.summary import text_table

    lines = [
        f"{found.title}: {len(found):,} setting{'s' * (len(found) != 1)}, {found.runs:,} runs",
        "",
        text_table(*found.rows(metrics or None)),
        "",
        f"Written to {out}: read it with inprofile.read_sweep, or any Parquet reader, from {out}/metrics.",
    ]
    if picture is not None:
        lines.append(f"Drawn in {picture}.")
    return "\n".join(lines)


def as_json(found: Sweep, file: str, out: Path, picture: Path | None) -> dict[str, Any]:
    """The object that `--json` prints."""
    head = found.head
    return {
        "scenario": {"title": found.title, "file": file},
        "out": str(out),
        "plot": None if picture is None else str(picture),
        **{key: head[key] for key in ("version", "axes", "keys", "design", "seeds", "until")},
        "runs": found.runs,
        # Written one by one.
        "settings": (setting.to_json() for setting in found),
    }
