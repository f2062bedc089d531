"""`inprofile new-paper`: a paper of one's own to be answered claim by claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Refused, emit, guarded, say


@guarded
def new_paper(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="The paper's name; its folder is written to KEY.", show_default=False
        ),
    ],
    json_: Json = False,
) -> None:
    """Write a folder in which a paper is answered claim by claim: experiments and claims as data."""
    from ..papers.starter import write_paper

    folder = Path(key)
    try:
        files = write_paper(folder)
    except ValueError as error:
        raise Refused(str(error)) from None
    except FileExistsError:
        raise Refused(f"{folder} already exists and was not changed: choose another name") from None
    if json_:
        emit({"folder": str(folder), "files": [str(file) for file in files]})
    else:
        there = str(folder) if folder.is_absolute() else f"./{folder}"
        say(
            f"Wrote {folder}: a small paper to be changed line by line, from {folder / 'paper.toml'}.\n"
            f"  inprofile reproduce {there}\n"
            f"  inprofile atlas {there}"
        )
