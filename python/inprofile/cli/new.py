"""`inprofile new`: an experiment to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..experiment.starter import starter
from .common import Json, Refused, emit, guarded, say


@guarded
def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the experiment; written to NAME.toml.", show_default=False
        ),
    ],
    plan: Annotated[
        bool, typer.Option("--plan", help="One for inprofile plan: a provider's link with 30 customers.")
    ] = False,
    json_: Json = False,
) -> None:
    """Write a commented experiment file, ready to run."""
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(str(path), plan))
    except FileExistsError:
        raise Refused(f"{path} already exists and was not changed: choose another name") from None
    if json_:
        emit({"file": str(path)})
    else:
        then = "plan" if plan else "run"
        say(f"Wrote {path}. Look at it, then:\n  inprofile check {path}\n  inprofile {then} {path}")
