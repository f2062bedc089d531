"""`inprofile new`, `new-mechanism`, `new-paper`: an experiment, a crate, or a paper to start from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..experiment.dump import starter
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
