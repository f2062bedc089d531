"""The command line: a module for each command or a few, data to stdout, progress to stderr.

Exit codes: 0 done, 1 ran but a check fell short, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn, cast

import typer

from .commands import Commands
from .common import BAD_INPUT, INTERRUPTED, fail, shortened

__all__ = ["app", "main"]

app = typer.Typer(
    name="inprofile",
    cls=Commands,
    help="A workbench for assured bandwidth: packet markers and queue disciplines, simulated and explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ..own.engine import __version__

        typer.echo(f"inprofile {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit by SystemExit with the exit code.

    Options that Typer refuses are reported like any bad input: in plain lines and, with `--json`,
    as an object too.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    _return_large_blocks()
    try:
        code = app(args=given, prog_name="inprofile", standalone_mode=False)
    except _UsageError as error:
        _refuse(error, "--json" in given)
    except typer.Abort:
        print("Interrupted: nothing was run.", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def _return_large_blocks() -> None:
    """Have glibc return every large block to the system when it is freed.

    Once it has freed a large block, glibc serves blocks of that size from its heaps and keeps them: an
    experiment with many flows would take twice the memory that it holds. Only the command line does this;
    importing the library leaves the allocator alone. Other C libraries have no `mallopt` and do not need it.
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


# mallopt(3): blocks from this size on are mapped on their own; setting it also stops glibc adjusting it.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024

# Errors in options and arguments; Typer exports only one kind of them by name.
_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])


def _refuse(error: Exception, as_json: bool) -> NoReturn:
    text = error.format_message()  # type: ignore[attr-defined]
    # Without a command there is no problem to report: the help has been shown.
    if text:
        context = getattr(error, "ctx", None)
        place = "inprofile" if context is None else context.command_path
        hint = f"{place} -h lists its options."
        try:
            fail(f"{shortened(text)}\n{hint}", None, as_json)
        except typer.Exit as left:
            sys.exit(left.exit_code)
    sys.exit(BAD_INPUT)
