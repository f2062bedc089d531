"""`inprofile trace`: mahimahi's traces into experiments, and links of experiments as such traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import File, Json, Refused, emit, guarded, open_scenario, say


@guarded
def trace(
    file: File,
    link: Annotated[
        str, typer.Option("--link", help="The link, by its name in the file.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; it must not exist.", show_default=False)
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="TRACE",
            help="A trace in mahimahi's format: write an experiment in which the link sends by it.",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Write a link as a trace in mahimahi's format; with --from, an experiment whose link sends by one."""
    from ..experiment.traces import TraceError, opportunities, with_trace

    try:
        text = (
            opportunities(open_scenario(file, None), link)
            if source is None
            else with_trace(file, link, source, out)
        )
    except TraceError as error:
        raise Refused(str(error)) from None
    try:
        with out.open("x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise Refused(f"{out} already exists and was not changed: choose another name") from None
    if json_:
        emit({"file": str(out)})
    elif source is None:
        say(f"Wrote {out}, {text.count(chr(10)):,} opportunities: mm-link takes it.")
    else:
        say(f"Wrote {out}, which extends {file}. Look at it, then:\n  inprofile check {out}")
