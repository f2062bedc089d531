"""`inprofile export`, `trace`, `plot`: results for other programs and for papers.

Results, trees and links as CSV, as HTB classes, as mahimahi traces; a figure for a paper.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import visible
from ..run.csv_files import check_csv_place, write_csv
from ..run.storage import MANIFEST, ResultError
from .common import File, Json, Refused, argument, emit, guarded, open_scenario, option, say

if TYPE_CHECKING:
    import pyarrow as pa


@guarded
def export(
    source: Annotated[
        Path,
        argument(
            "A folder that run --out or sweep --out has written, or a trace file of ns-2; with --tc an"
            " experiment with a tree.",
            "FROM",
        ),
    ],
    out: Annotated[Path | None, option("The folder for the CSV files and units.csv.", None, "--csv")] = None,
    headers: Annotated[
        bool, typer.Option("--unit-headers", help="Put units into the headings too: goodput [bit/s].")
    ] = False,
    tc: Annotated[
        Path | None,
        option(
            "Write the tree of an experiment to this file, as classes of Linux's HTB for tc -batch.", "FILE"
        ),
    ] = None,
    device: Annotated[str, typer.Option("--dev", help="The interface, with --tc.")] = "eth0",
    json_: Json = False,
) -> None:
    """Write a result, a sweep or an ns-2 trace as CSV, with units, or a tree as HTB's classes (--tc)."""
    if (out is None) == (tc is None):
        raise Refused("write --csv FOLDER for tables, or --tc FILE for the tree of an experiment")
    if tc is not None:
        if headers:
            raise Refused("--unit-headers is of --csv: remove it")
        _htb(source, tc, device, json_)
        return
    assert out is not None  # noqa: S101
    check_csv_place(out)
    tables = _tables(source)
    names = write_csv(tables, out, headers=headers)
    rows = {name: table.num_rows for name, table in tables.items() if table.num_rows}
    if json_:
        emit({"folder": str(out), "files": names, "rows": rows})
    else:
        lines = "\n".join(f"  {name}.csv, {n:,} row{'s' * (n != 1)}" for name, n in rows.items())
        say(f"Written to {out}:\n{lines}\n  units.csv, the unit and meaning of each column")


def _htb(source: Path, place: Path, device: str, json_: bool) -> None:
    """Write the classes of a tree; say what they do not have."""
    from ..run.storage import write_whole
    from ..studies.plan.tree.network import TreeError, classes

    if not re.fullmatch(r"[\w.@-]{1,15}", device, re.ASCII):
        raise Refused(f"--dev {visible(device)}: this is no interface's name: write one such as eth0")
    try:
        text, unsaid = classes(open_scenario(source, None), device)
    except TreeError as error:
        raise Refused(visible(str(error))) from None
    write_whole(place, text.encode())
    if json_:
        emit({"folder": str(place.parent), "files": [place.name], "rows": {}, "unsaid": unsaid})
        return
    left = "".join(f"\n  {line}" for line in unsaid)
    say(visible(f"Written to {place}; tc -batch {place} sets it up. What it does not have:{left}"))


def _tables(source: Path) -> dict[str, pa.Table]:
    """By name. Raises ResultError, FileNotFoundError, and Refused for a file that is no trace."""
    from ..run.packets import TraceError, read_ns2_trace
    from ..run.results import read
    from ..studies.sweep import read_sweep
    from ..studies.sweep.result import TABLES

    if source.is_file():
        try:
            return {"trace": read_ns2_trace(source)}
        except TraceError as error:
            raise Refused(str(error)) from None
    if not source.is_dir() or (source / MANIFEST).exists():
        return dict(read(source)._tables)
    try:
        sweep = read_sweep(source)
    except ResultError as error:
        if not (source / "sweep.json").exists():
            raise ResultError(f"{source} holds neither a result nor a sweep: {MANIFEST} is missing") from None
        raise error from None
    return {name: sweep.table(name) for name in TABLES}


@guarded
def trace(
    file: File,
    link: Annotated[str, option("The link, by its name in the file.", None, "--link")],
    out: Annotated[Path, option("The file to write; it must not exist.", None, "--out")],
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


_KINDS = ("dots", "throughput", "queue", "cwnd", "tokens")


@guarded
def plot(
    folder: Annotated[Path, argument("What run --out, sweep --out, compare or suite has written.", "FOLDER")],
    kind: Annotated[str | None, option(f"Of a result: {', '.join(_KINDS)}; default: dots.", "NAME")] = None,
    metric: Annotated[
        list[str] | None,
        option("What is drawn: of a sweep a panel for each metric, else one. Repeatable.", "NAME"),
    ] = None,
    at: Annotated[
        str,
        option(
            "Of a result, the queue or flow; of a comparison, the experiment; of a suite, the scenario.",
            "NAME",
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
        str | None, option("The height within the axes; default: by the width.", "INCHES")
    ] = None,
    out: Annotated[Path | None, option("A .pdf or .svg; default: by what is drawn.", "FILE")] = None,
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
