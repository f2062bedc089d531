"""`inprofile export`, `trace`: results, trees and links as CSV, as HTB classes, and as mahimahi traces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import visible
from ..run.csv_files import check_csv_place, write_csv
from ..run.storage import MANIFEST, ResultError
from .common import File, Json, Refused, emit, guarded, open_scenario, say

if TYPE_CHECKING:
    import pyarrow as pa


@guarded
def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FROM",
            help="A folder that run --out or sweep --out has written, or a trace file of ns-2; with --tc an"
            " experiment with a tree.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--csv", help="The folder for the CSV files and units.csv.", show_default=False),
    ] = None,
    headers: Annotated[
        bool, typer.Option("--unit-headers", help="Put units into the headings too: goodput [bit/s].")
    ] = False,
    tc: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the tree of an experiment to this file, as classes of Linux's HTB for tc -batch.",
            show_default=False,
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
