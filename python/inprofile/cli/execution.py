"""How commands carry out many runs: with what expense, where (`--backend`), with what progress shown.

Time and memory are shown with `--plan`, and asked about or refused where they are much; runs are kept where
a command is interrupted.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from .._input import visible
from ..run.storage import FolderInUse
from ..run.tables import physical
from .common import INTERRUPTED, TERMINATED, Refused, Terminated, emit, full_disk, option, say, terminable

if TYPE_CHECKING:
    from rich.console import Console

    from ..experiment.scenario import Scenario
    from ..run.pace import Timed
    from ..run.pool import Backend


Where = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="threads|ADDRESS|slurm",
        help="Where runs are made: on this machine's threads, on the Dask cluster with this scheduler"
        " (tcp://host:8786), or as SLURM array jobs. Does not change any result.",
    ),
]
SlurmSet = Annotated[
    list[str] | None,
    option(
        "What submitit takes: slurm_partition=short, timeout_min=60; cluster=local tries it here."
        " Repeatable.",
        "KEY=VALUE",
        "--slurm-set",
    ),
]


@contextmanager
def made_by(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Iterator[Backend]:
    """The back end that `--backend` names; SLURM's jobs leave their runs beside `place`.

    What it refuses, or finds wrong elsewhere, is refused here.
    """
    from ..run.pool import BackendError

    try:
        with closing(_backend(where, jobs, slurm_set, place)) as backend:
            yield backend
    except BackendError as error:
        raise Refused(str(error)) from None


def _backend(where: str, jobs: int | None, slurm_set: Sequence[str] | None, place: Path) -> Backend:
    slurm = where == "slurm" or (where == "threads" and bool(slurm_set))
    if where == "threads" and not slurm:
        from ..run.pool import Local

        return Local(jobs)
    if slurm_set and not slurm:
        raise Refused(f"--slurm-set is for --backend slurm, and --backend is {where}: choose one")
    if jobs is not None:
        raise Refused("--jobs is for this machine's threads: elsewhere the cluster says how many there are")
    if not slurm and ":" not in where:
        raise Refused(
            f'--backend "{where}" is no place: write threads, slurm, or the address of a Dask scheduler,'
            " such as tcp://host:8786"
        )
    from ..run import clusters

    if not slurm:
        return clusters.Dask(where)
    settings: dict[str, Any] = {}
    for text in slurm_set or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise Refused(f"--slurm-set {text}: write KEY=VALUE, such as --slurm-set slurm_partition=short")
        settings[key.strip()] = int(value) if value.strip().isdigit() else value.strip()
    return clusters.Slurm(place, **settings)


EVERY = 30.0
"""Seconds between two lines, and before the first: what is over sooner leaves a log as it is."""


class Show(Protocol):
    """Shows runs finished, those under way by the share of them that is done; runs in all; what is run."""

    def __call__(self, done: float, runs: int, what: str) -> None:
        """Show it."""


class Told:
    """A command's progress: `finished, runs, what` as runs finish, and meanwhile how much is under way."""

    def __init__(self, what: str, runs: int, show: Show) -> None:
        self.finished, self.runs = 0, runs
        self._what, self._under_way, self._most, self._show = what, 0.0, 0.0, show

    def __call__(self, finished: int, runs: int, what: str | None = None) -> None:
        """So many runs have finished, of so many; of another number, something else is run from here on."""
        if runs != self.runs:
            self._most = 0.0
        self.finished, self.runs = finished, runs
        self._what = self._what if what is None else what
        self._tell()

    def under_way(self, share: float) -> None:
        """The share of unfinished runs that is done, by the share of their time that is simulated."""
        self._under_way = share
        self._tell()

    def _tell(self) -> None:
        # A run that has just ended may not yet be counted.
        self._most = max(self._most, min(self.finished + self._under_way, float(self.runs)))
        self._show(self._most, self.runs, visible(self._what, lines=False))


def lines(unit: str = "runs", clock: Callable[[], float] = time.monotonic) -> Show:
    """A line on standard error every `EVERY` seconds: for logs."""
    last = began = clock()

    def show(done: float, runs: int, what: str) -> None:
        nonlocal last
        now = clock()
        if now - last < EVERY or done >= runs:
            return
        last = now
        of = f"{int(done):,} of {runs:,} {unit}, " if runs > 1 else ""
        head = f"{what}: " if what else ""
        sys.stderr.write(f"{head}{of}{100 * done / max(1, runs):.0f} % after {now - began:.0f} s\n")
        sys.stderr.flush()

    return show


@contextmanager
def progress(what: str, unit: str = "runs") -> Iterator[Told]:
    """Show how far the runs of one experiment are."""
    from rich.console import Console

    with _shown(Console(stderr=True), unit, words_first=True) as show:
        yield Told(what, 0, show)


@contextmanager
def _shown(console: Console, unit: str, words_first: bool) -> Iterator[Show]:
    if not console.is_terminal:
        yield lines(unit)
        return
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    words = TextColumn("{task.description}")
    figures = BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    columns = (words, *figures) if words_first else (*figures, words)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: float, runs: int, what: str) -> None:
            bar.update(task, completed=done, total=runs, description=escape(what))

        yield show


@contextmanager
def resumable(cache: Path, runs: int) -> Iterator[Told]:
    """Show how far many runs are that `cache` keeps; told runs finished, runs in all, what is being run.

    What is interrupted says where `cache` has what is finished, and leaves with code 130 (or 143); so does
    a full disk, with code 2.
    """
    from rich.console import Console

    told = Told("", runs, lambda *_: None)
    try:
        with terminable(), full_disk(cache), _shown(Console(stderr=True), "runs", words_first=False) as show:
            told = Told("", runs, show)
            yield told
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted after {told.finished} of {told.runs} runs. What is finished is kept in {cache}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None


RUNS = "runs"
"""The folder of runs beside an answer."""

SHORT = 1
"""The exit code where nothing meets the goal."""


def check_answer_place(out: Path, files: Sequence[str]) -> None:
    """Refuse a folder that holds anything but an answer's files and its runs."""
    names = (p.name for p in out.iterdir()) if out.is_dir() else ()
    if others := sorted(n for n in names if n not in (RUNS, *files) and not n.startswith(".")):
        raise FolderInUse(
            f"{out} holds other things ({', '.join(others[:3])}):"
            " choose a new or an empty folder for the answer"
        )


@contextmanager
def kept_runs(place: Path, expected: int | None = None) -> Iterator[Callable[[int], None]]:
    """Count runs on a terminal, of about so many.

    What is interrupted says what is kept, and leaves with code 130 (or 143).
    """
    made = [0]

    def count(runs: int) -> None:
        made[0] = runs
        if sys.stderr.isatty():
            of = "" if expected is None else f" of about {expected:,}"
            sys.stderr.write(f"\r{runs:,}{of} runs\r")

    try:
        with terminable():
            yield count
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted after {made[0]:,} runs. They are kept in {visible(str(place))}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(TERMINATED if isinstance(error, Terminated) else INTERRUPTED) from None


MANY = 100_000
"""Flows from which on it is said what they take: a second or so to build."""
A_FLOW = 10e-6
"""Seconds of one core to build a flow."""


def minutes(seconds: float) -> str:
    """Say a length of time as a person says it.

    >>> minutes(42), minutes(100), minutes(3600)
    ('42 s', '1 min 40 s', '60 min')
    """
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest} s" if rest and whole < 10 else f"{whole} min"


def gigabytes(bytes_: float) -> str:
    """In the unit of memory.

    >>> gigabytes(1_834_000_000), gigabytes(23_400_000_000)
    ('1.8 GB', '23 GB')
    """
    return f"{bytes_ / 1e9:.2g} GB"


def _less(scenario: Scenario, seeds: Sequence[int], there: float, at_once: int, per_run: int) -> str:
    """The remedy that makes it fit: fewer at a time or in fewer parts, else fewer seeds, else fewer flows."""
    for runs in range(at_once - 1, 0, -1):
        if scenario.expected_memory(seeds, runs * per_run, per_run) <= there:
            return f"--jobs {runs * per_run}"
    for jobs in range(per_run - 1, 0, -1):
        if scenario.expected_memory(seeds, jobs, per_run) <= there:
            return f"--jobs {jobs}"
    for runs in range(len(seeds) - 1, 0, -1):
        if scenario.expected_memory(seeds[:runs], 1) <= there:
            return f"--jobs 1 --seeds {runs}"
    fewer = int(scenario.flows * there / scenario.expected_memory(seeds[:1], 1))
    return f"a count of at most {fewer:,} in all, and --jobs 1 --seeds 1"


def room_for(scenario: Scenario, seeds: Sequence[int], jobs: int | None, threads_per_run: int = 1) -> None:
    """Say what very many flows take; refuse what is more than memory holds."""
    flows = scenario.flows
    if flows < MANY:
        return
    from ..run.pool import shared_out

    needed, there = scenario.expected_memory(seeds, jobs, threads_per_run), physical()
    at_once, per_run = shared_out(jobs, threads_per_run)
    runs, at_once = len(seeds), min(len(seeds), at_once)
    parts = f" in up to {per_run} parts" * (per_run > 1)
    what = (
        f"{flows:,} flows in {runs:,} run{'s' * (runs != 1)}, {at_once} at a time{parts}:"
        f" at least {gigabytes(needed)} of memory, of {gigabytes(there)}"
    )
    if needed > there:
        raise Refused(f"{what}: write {_less(scenario, seeds, there, at_once, per_run)}")
    print(f"{what}. Building takes about {flows * A_FLOW:.0f} s a run.", file=sys.stderr, flush=True)


ASK_FROM = 1_000_000_000
"""Data packets above which a command asks for confirmation: minutes to hours of computing."""
SAY_FROM = 5.0
"""Seconds from which on a command says before how long it takes."""
A_SLOW_PACKET = 20e-6
"""Seconds of one core that hardly any packet takes: what is short even so is not timed."""
TRACED = 3.0
"""A run that keeps every verdict takes as long as so many that do not: 2 to 4.7 measured."""
ASK_TRACED_FROM = 20_000_000
"""The same where every verdict is kept in memory."""


def packets_text(packets: float) -> str:
    """A number of packets that is only an estimate.

    >>> packets_text(21_454.3), packets_text(4.3e12)
    ('about 21,000 packets', 'about 4.3e+12 packets')
    """
    shown = f"{float(f'{packets:.2g}'):,.0f}" if packets < 1e12 else f"{packets:.2g}"
    return f"about {shown} packets"


def affordable(
    packets: float,
    yes: bool,
    runs: int,
    *,
    traced: bool = False,
    jobs: int | None = None,
    less: str = "a shorter duration, lower rates, larger packets or fewer seeds",
) -> None:
    """Ask before very many packets are sent, on a terminal; elsewhere `--yes` has to be given.

    `less` is what would make them fewer.
    """
    most = ASK_TRACED_FROM if traced else ASK_FROM
    if yes or packets <= most:
        return
    what = f"{packets_text(packets)} are expected in {runs:,} run{'s' * (runs != 1)}, {long(packets, jobs)}"
    kept = ", every verdict on them kept in memory" if traced else ""
    if sys.stdin.isatty() and sys.stderr.isatty():
        if typer.confirm(f"{what}{kept}. Run anyway?", err=True):
            return
        raise Refused("Nothing was run.")
    raise Refused(f"{what}{kept}, and more than {most:,} are run only with --yes: write --yes, {less}")


def long(packets: float, jobs: int | None = None) -> str:
    """How long they take.

    >>> long(1.9e9, 2)
    'about 10 min on 2 cores'
    """
    from ..run.pace import A_PACKET
    from ..run.pool import threads

    cores = threads(jobs)
    return f"about {minutes(packets * A_PACKET / cores)} on {cores} core{'s' * (cores != 1)}"


def announce(
    work: Sequence[tuple[Timed, float]],
    jobs: int | None,
    *,
    told: float | None = None,
    alone: float = 0.0,
    kept: Path | None = None,
) -> None:
    """Say on standard error how long so many runs of each experiment take, where that is long.

    Some of the experiments are begun and timed. `told` is how many seconds of one core all of it takes by
    what its files say, where `work` are only examples with the seconds of each, and `alone` those besides in
    which other cores have nothing to do; `kept` is where finished runs are.
    """
    from ..run.pace import corrected, seconds, wall
    from ..run.pool import threads

    cores = threads(jobs)
    if told is None:
        runs = sum(n for _, n in work)
        if sum(s.expected_packets(seeds=1) * n for s, n in work) * A_SLOW_PACKET / cores < SAY_FROM:
            return
        takes = wall(seconds(work, cores), runs, jobs)
    else:
        takes = (told / cores + alone) * corrected(work, cores)
    if takes >= SAY_FROM:
        less = f", less what is kept in {kept}" if kept is not None and kept.exists() else ""
        at_once = f"{cores} core{'s' * (cores != 1)}"
        print(f"It takes about {minutes(takes)} on {at_once}{less}.", file=sys.stderr, flush=True)


def effort(cpu_seconds: float, jobs: int | None, cache: Path, alone: float = 0.0) -> str:
    """How long runs take on this machine, and what one core does `alone`; which of them are not run again."""
    from ..run.pool import threads

    cores = threads(jobs)
    return (
        f"about {minutes(cpu_seconds / cores + alone)} on {cores} core{'s' * (cores != 1)}."
        f" Runs already in {cache} are not repeated."
    )


class Work(Protocol):
    """Runs that are planned."""

    @property
    def runs(self) -> int:
        """How many."""

    @property
    def packets(self) -> float:
        """How many data packets are expected."""

    @property
    def cpu_seconds(self) -> float:
        """How long they take on one core."""

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""


def print_plan(plan: Work, what: str, jobs: int | None, cache: Path, as_json: bool) -> None:
    """Print what would be run, and how long it takes."""
    if as_json:
        emit(plan.to_json())
    else:
        runs = f"{plan.runs} runs, {packets_text(plan.packets)}"
        say(f"{what}: {runs}, {effort(plan.cpu_seconds, jobs, cache)}")
