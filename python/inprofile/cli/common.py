"""Shared by the commands: options, how input is refused, how progress is shown."""

from __future__ import annotations

import errno
import functools
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from .._input import MOST_RUNS, MOST_SEED, MOST_THREADS, SeedsError, read_stream, visible
from .commands import complete_key
from .output import FORMAT

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..experiment.scenario import Scenario, Seeds

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143
STDIN = "standard input"


def option(said: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """An option whose default is told in its help, if at all."""
    return typer.Option(*names, help=said, metavar=metavar, show_default=False, **more)


def argument(said: str, metavar: str | None = None, **more: Any) -> Any:
    """An argument whose default is told in its help, if at all."""
    return typer.Argument(help=said, metavar=metavar, show_default=False, **more)


File = Annotated[Path, argument("The experiment file (TOML); - reads it from standard input.", "FILE")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        max=MOST_THREADS,
        help="Number of threads; default: one per core. Does not change any result.",
    ),
]
PerRun = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Of these threads, how many each run has at most: its network is cut along links with a delay,"
        " where that is expected to be faster. Does not change any result.",
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Show the page in a browser.")]
Planned = Annotated[
    bool, typer.Option("--plan", help="Print what would be run and about how long it takes, then exit.")
]
Out = Annotated[
    Path | None,
    typer.Option(help="Write the result tables to this folder as Parquet, replacing an earlier result."),
]
Set = Annotated[
    list[str] | None,
    option(
        'Override a value of the file: --set links.bottleneck.rate="2 Mbit/s". Repeatable.',
        "KEY=VALUE",
        "--set",
        autocompletion=complete_key,
    ),
]


def _load_own(files: list[Path] | None) -> list[Path] | None:
    """Register the classes of these files; what they raise is the user's to read."""
    from ..own import load_classes

    for file in files or []:
        try:
            load_classes(file)
        except Exception as error:
            raise typer.BadParameter(visible(f"{file}: {type(error).__name__}: {error}")) from None
    return files


Own = Annotated[
    list[Path] | None,
    option(
        "A Python file with mechanisms of your own, which the experiment may name. Repeatable.",
        "FILE",
        "--mechanism",
        callback=_load_own,
    ),
]
Latex = Annotated[
    Path | None,
    option(
        "Write the tables to this file for LaTeX too, with their intervals (booktabs, siunitx).",
        "FILE",
        "--latex",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Run without asking, however many packets are expected.")
]
Trace = Annotated[bool, typer.Option(help="Record every verdict with the values behind it.")]

P = ParamSpec("P")


class Refused(Exception):
    """Bad input of a kind that has no exception of its own; the text is for the user."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, where it is waited for."""


@contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM is an exception: what must not outlive us, programs and folders, is cleared away."""

    def end(*_: object) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a user can cause into a message and an exit code; anything else is an error of ours.

    With `--json` the refusal is an object on standard output too.
    """

    @functools.wraps(command)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        from ..experiment.scenario import ScenarioError
        from ..own import MechanismError
        from ..run.storage import FolderInUse, ResultError

        as_json = bool(kwargs.get("json_"))
        try:
            command(*args, **kwargs)
        except ScenarioError as error:
            fail(str(error), [asdict(problem) for problem in error.problems], as_json)
        except MechanismError as error:
            fail("\n".join([str(error), *getattr(error, "__notes__", ())]), None, as_json)
        except (Refused, ResultError, FolderInUse, SeedsError) as error:
            fail(str(error), None, as_json)
        except BrokenPipeError:
            raise
        except OSError as error:
            name = shortened(str(error.filename or ""), 200)
            fail(f"{name}: {error.strerror or error}".removeprefix(": "), None, as_json)
        except Terminated:
            print("Terminated: nothing was written.", file=sys.stderr)
            raise typer.Exit(TERMINATED) from None
        except KeyboardInterrupt:
            print("Interrupted: nothing was written.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    return call


@contextmanager
def full_disk(kept: Path) -> Iterator[None]:
    """Where the disk is full, or a quota used up: say that finished runs are in `kept`, and how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        there = f" Finished runs are kept in {kept}: it goes on from there." if kept.exists() else ""
        raise Refused(
            f"{error.filename or kept}: {error.strerror}. Make room, and give the same command again.{there}"
        ) from None


def fail(text: str, problems: list[dict[str, Any]] | None, as_json: bool) -> NoReturn:
    """Refuse input: say why, leave with code 2."""
    print(visible(text), file=sys.stderr)
    if as_json:
        emit({"error": text, "problems": problems or []})
    raise typer.Exit(BAD_INPUT) from None


def shortened(text: str, most: int = 400) -> str:
    """The same text, cut in the middle where it is long: a refusal quotes what was given.

    >>> shortened("9" * 1000, 9)
    '9999…9999'
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def say(text: str) -> None:
    """Text on standard output; what would act on a terminal is written out."""
    typer.echo(visible(text))


def emit(found: Mapping[str, Any]) -> None:
    """One JSON object on standard output, with the number of its format (`cli/output.py` has its schema).

    A value that is an iterator is a list, written as it comes.
    """
    write = sys.stdout.write
    for i, (key, value) in enumerate({"format": FORMAT, **found}.items()):
        write(f"{', ' if i else '{'}{_json(key)}: ")
        if isinstance(value, Iterator):
            write("[")
            for j, item in enumerate(value):
                write(f"{', ' if j else ''}{_json(item)}")
            write("]")
        else:
            write(_json(value))
    write("}\n")


def _json(value: object) -> str:
    """JSON that shows letters as they are, and nothing that acts on a terminal."""
    # Outside of texts JSON has no such character, and inside of them this is their JSON.
    return visible(json.dumps(value, ensure_ascii=False, allow_nan=False), lines=False)


def overrides_of(texts: list[str] | None) -> list[tuple[str, str]]:
    """Keys and values of `--set`. Raises Refused for what is none."""
    pairs = []
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise Refused(f'--set {text}: write KEY=VALUE, such as --set links.bottleneck.rate="2 Mbit/s"')
        pairs.append((key.strip(), value.strip()))
    return pairs


def open_scenario(file: Path, overrides: list[str] | None) -> Scenario:
    """The experiment with its overrides."""
    from ..experiment.scenario import from_bytes, load

    pairs = overrides_of(overrides)
    if str(file) == "-":
        return from_bytes(read_stream(sys.stdin.buffer, STDIN), STDIN, pairs)
    return load(file, pairs)


def names_of(text: str | None, option: str) -> list[str] | None:
    """The names that an option lists; None where it is not given. Raises Refused for an empty list.

    >>> names_of("rio, ard", "--schemes"), names_of(None, "--schemes")
    (['rio', 'ard'], None)
    """
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise Refused(f"{option} is empty: name some, or omit it")
    return names


def seeds_of(text: str) -> Seeds:
    """Seeds as the command line has them: `20` for 1 … 20, or `5..9` with both ends.

    >>> seeds_of("20"), seeds_of("5..9")
    (20, range(5, 10))
    """
    parts = re.fullmatch(r"(-?[0-9]+)(\.\.(-?[0-9]+))?", text)
    if parts is None:
        shown = shortened(text, 60)
        raise Refused(f'--seeds "{shown}" is neither a count nor a range: write 20 for 1 to 20, or 5..9')
    if len(text) > 60:
        shown = shortened(text, 60)
        raise Refused(
            f'--seeds "{shown}" asks for too much: write at most {MOST_RUNS:,}, such as 30 or 1..30'
        )
    dots = parts[2] is not None
    first = int(parts[1])
    last = int(parts[3]) if dots else first
    if min(first, last) < 0 or (not dots and first == 0):
        raise Refused(f'--seeds "{text}" asks for no run: write a number above 0, or a range such as 5..9')
    if last < first:
        raise Refused(f'--seeds "{text}" counts backwards: write {last}..{first}')
    if dots and last > MOST_SEED:
        raise Refused(f'--seeds "{text}" goes beyond the greatest seed: write seeds from 0 to {MOST_SEED}')
    runs = last - first + 1 if dots else first
    if runs > MOST_RUNS:
        raise Refused(
            f'--seeds "{text}" asks for {runs:,} runs: write at most {MOST_RUNS:,}, such as 30 or 1..30'
        )
    return range(first, last + 1) if dots else first


def check_latex(file: Path | None) -> None:
    """Raise Refused, before anything runs, where the tables cannot be written to this file."""
    if file is None:
        return
    from ..metrics.latex import ours

    if not file.parent.is_dir():
        raise Refused(f"--latex {file}: there is no folder {file.parent}: make it first")
    if file.is_dir() or not ours(file):
        raise Refused(f"--latex {file}: something else has that name: choose another")


def write_latex(file: Path | None, text: Callable[[], str]) -> None:
    """Write the tables, if they were asked for."""
    if file is not None:
        from ..run.storage import write_whole

        write_whole(file, text().encode())
        sys.stderr.write(f"Tables for LaTeX: {visible(str(file))}\n")


def count_of(text: str | None, what: str) -> int | None:
    """How many seeds `what` takes, from 1; None where it is not given. Raises Refused for a range."""
    found = None if text is None else seeds_of(text)
    if found is not None and not isinstance(found, int):
        raise Refused(
            f'--seeds "{text}": {what} takes a number of seeds, from 1; write --seeds {len(list(found))}'
        )
    return found


def show(what: RenderableType) -> None:
    """Lay out on standard output to the terminal's width; a file or a pipe gets plain lines with room."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(what)
    else:
        from ..experiment.topology import text

        sys.stdout.write(text(what) + "\n")
