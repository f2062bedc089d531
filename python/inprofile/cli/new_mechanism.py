"""`inprofile new-mechanism`: a crate to write a mechanism in Rust in."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Refused, emit, guarded, say


class Kind(StrEnum):
    """The files written."""

    MARKER = "marker"
    AQM = "aqm"


@guarded
def new_mechanism(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The mechanism's name in experiment files; the crate is written to the folder NAME.",
            show_default=False,
        ),
    ],
    kind: Annotated[Kind, typer.Option(help="A marker, or a queue discipline.")] = Kind.MARKER,
    crates: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A checkout of Inprofile; default: the one that this command runs from, or that it runs in.",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Write a crate with a mechanism of your own in Rust, to be built into a wheel of its own."""
    from ..own.crate import NoCrates, find_crates, write_crate

    folder = Path(name)
    try:
        found = find_crates(crates)
        files = write_crate(name, kind.value, folder, found)
    except (NoCrates, ValueError) as error:
        raise Refused(str(error)) from None
    except FileExistsError:
        raise Refused(f"{folder} already exists and was not changed: choose another name") from None
    if json_:
        emit({"folder": str(folder), "crates": str(found), "files": [str(file) for file in files]})
    else:
        say(
            f"Wrote {folder}, with a law to start from in {folder / 'src' / 'law.rs'}. In that folder:\n"
            "  cargo test\n"
            "  maturin develop --release\n"
            f"  inprofile run {name}.toml"
        )
