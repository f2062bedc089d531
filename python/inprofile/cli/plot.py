"""`inprofile plot`: a figure for a paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Refused, emit, guarded, say

_KINDS = ("dots", "throughput", "queue", "cwnd", "tokens")


@guarded
def plot(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="What run --out, sweep --out, compare or suite has written.",
            show_default=False,
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Of a result: {', '.join(_KINDS)}; default: dots.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What is drawn: of a sweep a panel for each metric, else one. Repeatable.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of a result, the queue or flow; of a comparison, the experiment; of a suite, the scenario.",
            show_default=False,
        ),
    ] = "",
    width: Annotated[
        str,
        typer.Option(
            metavar="one|two|INCHES",
            help="One column of the page (IEEE's, 3.5 in), both (7.16 in), or inches: ACM's is 3.33in.",
        ),
    ] = "one",
    height: Annotated[
        str | None,
        typer.Option(
            metavar="INCHES", help="The height within the axes; default: by the width.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .pdf or .svg; default: by what is drawn.", show_default=False),
    ] = None,
    json_: Json = False,
) -> None:
    """Draw what a folder holds for a paper: PDF, fonts embedded, units on the axes."""
    from ..charts import paper
    from ..run.storage import write_whole
    from ..studies.figure import NoFigure, figure
    from ..studies.sweep import SweepError

    wide = paper.WIDTHS.get(width) or _inches("--width", width)
    high = None if height is None else _inches("--height", height)
    try:
        found = figure(folder, kind, metric or (), at)
        file = out or Path(f"{found.name}.pdf")
        if file.suffix not in (".pdf", ".svg"):
            raise Refused(f"--out {file}: write a name that ends in .pdf or .svg")
        draw = paper.pdf if file.suffix == ".pdf" else paper.svg
        made = draw(found.spec, wide, high)
    except (NoFigure, SweepError, paper.TooNarrow) as error:
        raise Refused(str(error)) from None
    write_whole(file, made if isinstance(made, bytes) else made.encode())
    if json_:
        emit({"file": str(file), "inches": wide})
    else:
        say(f"{file}, {wide:g} in wide")


def _inches(option: str, text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:in)?", text.strip())
    if found is None or not 1 <= float(found[1]) <= 20:
        names = "one, two, or " if option == "--width" else ""
        raise Refused(f"{option} {text}: write {names}inches from 1 to 20, such as 3.33in")
    return float(found[1])
