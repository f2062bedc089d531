"""The command line: one module a command, data to stdout, progress to stderr.

Exit codes: 0 done, 1 ran but a check fell short, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from . import atlas, check, compare, explain, list_, live, new, reproduce, run, schema, validate

__all__ = ["app", "main"]

app = typer.Typer(
    name="inprofile",
    help="A workbench for assured bandwidth: packet markers and queue disciplines, simulated and explained.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for name, command in (
    ("run", run.run),
    ("live", live.live),
    ("check", check.check),
    ("new", new.new),
    ("list", list_.list_),
    ("schema", schema.schema),
    ("explain", explain.explain),
    ("reproduce", reproduce.reproduce),
    ("atlas", atlas.atlas),
    ("compare", compare.compare),
    ("validate", validate.validate),
):
    app.command(name)(command)


def _version(wanted: bool) -> None:
    if wanted:
        from .._version import __version__

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
    """Run the command line; leaves by SystemExit with the exit code."""
    app(args=arguments, prog_name="inprofile")
