"""`inprofile export`: results, sweeps and traces as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..run.csv_files import check_csv_place, write_csv
from ..run.storage import MANIFEST, ResultError
from .common import Json, Refused, emit, guarded, say

if TYPE_CHECKING:
    import pyarrow as pa


@guarded
def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FROM",
            help="A folder that run --out or sweep --out has written, or a trace file of ns-2.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--csv", help="The folder for the CSV files and units.csv.", show_default=False),
    ],
    headers: Annotated[
        bool, typer.Option("--unit-headers", help="Put units into the headings too: goodput [bit/s].")
    ] = False,
    json_: Json = False,
) -> None:
    """Write the tables of a result, a sweep or an ns-2 trace as CSV, with the units of their columns."""
    check_csv_place(out)
    tables = _tables(source)
    names = write_csv(tables, out, headers=headers)
    rows = {name: table.num_rows for name, table in tables.items() if table.num_rows}
    if json_:
        emit({"folder": str(out), "files": names, "rows": rows})
    else:
        lines = "\n".join(f"  {name}.csv, {n:,} row{'s' * (n != 1)}" for name, n in rows.items())
        say(f"Written to {out}:\n{lines}\n  units.csv, the unit and meaning of each column")


def _tables(source: Path) -> dict[str, pa.Table]:
    """By name. Raises ResultError, FileNotFoundError, and Refused for a file that is no trace."""
    from ..run.packets import TraceError, read_ns2_trace
    from ..run.results import read
    from ..studies.sweep import read_sweep
    from ..studies.sweep.dataset import TABLES

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
