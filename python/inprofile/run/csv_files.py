"""Tables as CSV, for spreadsheets and whatever reads no Parquet: one file a table, and the units beside them.

`units.csv` has a row a column: its table, unit and meaning. With `headers` the unit is also in the
heading, `goodput [bit/s]`. Numbers read back as the same; what has no value is empty.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..metrics.glossary import lookup
from .storage import FolderInUse, check_folder, replace_folder, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = "units.csv"
_PREFERRED = {
    "flows": ("Flows", "Causes of a drop"),
    "queues": ("Queues", "Causes of a drop"),
    "markers": ("Markers",),
    "drops": ("The other tables", "Colours"),
    "delays": ("Delays",),
    "cdf": ("Delays",),
}
"""Under which headings of the glossary a table's columns are looked for first."""
_OF_TRACES = {
    "event": "+ joins a queue, - leaves it, r arrives at the end of a link, d is dropped",
    "time": "when, from the start of the run",
    "from": "the link's first node",
    "to": "the link's second node",
    "type": "tcp, ack, udp, cbr, …",
    "size": "bytes of the packet, headers included",
    "flags": "ns-2's flags of ECN and congestion; ------- in traces of ours",
    "flow": "the flow's number",
    "source": "node.port that sends it",
    "destination": "node.port that it goes to",
    "sequence": "the segment's number; of an acknowledgement, the last one in order",
    "packet": "the packet's number in the run",
}


def check_csv_place(folder: str | Path) -> Path:
    """Where CSV files would be written; raise FolderInUse where something else is, OSError where none can."""
    place = Path(folder).resolve()
    if not place.exists():
        check_folder(place.parent)
        return place
    if not place.is_dir():
        raise FolderInUse(f"{folder} is a file, not a folder: choose another place for the CSV files")
    names = {entry.name for entry in place.iterdir()}
    strange = sorted(names - _written(place))
    if strange:
        what = ", ".join((strange or sorted(names))[:3])
        raise FolderInUse(
            f"{folder} holds other things ({what}): choose a new or an empty folder for the CSV files"
        )
    check_folder(place)
    return place


def _written(place: Path) -> set[str]:
    """The files of an earlier export: its units name their tables."""
    try:
        with (place / UNITS).open(encoding="utf-8", newline="") as file:
            return {UNITS, *(f"{row['table']}.csv" for row in csv.DictReader(file))}
    except (OSError, UnicodeDecodeError, KeyError, csv.Error):
        return set()


def write_csv(tables: Mapping[str, pa.Table], folder: str | Path, *, headers: bool = False) -> list[str]:
    """Write tables as `NAME.csv` with `units.csv` beside them, in place of earlier ones; their names.

    Tables without rows are left out. Raises FolderInUse where the folder holds other things, OSError where
    the disk refuses; the place is then as it was.
    """
    place = check_csv_place(folder)
    full = {name: table for name, table in tables.items() if table.num_rows}
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.mkdir()
        for name, table in full.items():
            _write(table, part / f"{name}.csv", headers)
        lines = ["table,column,unit,meaning", *(line for n, t in full.items() for line in _units(n, t)), ""]
        write_whole(part / UNITS, "\n".join(lines).encode())
        replace_folder(part, place)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(place)) from error
        raise
    return [f"{name}.csv" for name in (*full, UNITS.removesuffix(".csv"))]


def csv_bytes(table: pa.Table, *, headers: bool = False) -> bytes:
    """One table as CSV.

    >>> import pyarrow as pa
    >>> speed = pa.field("rate", pa.float64(), metadata={"unit": "bit/s"})
    >>> table = pa.table([["a,b", None], [0.1, None]], schema=pa.schema([("flow", pa.string()), speed]))
    >>> print(csv_bytes(table, headers=True).decode())
    flow,rate [bit/s]
    "a,b",0.1
    ,
    <BLANKLINE>
    """
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    _write(table, sink, headers)
    return bytes(sink.getvalue())


def _write(table: pa.Table, to: object, headers: bool) -> None:
    import pyarrow.csv

    names = [_heading(field, headers) for field in table.schema]
    body = table.rename_columns(names)
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    head = ",".join(_quoted(name) for name in names) + "\n"
    if isinstance(to, Path):
        with to.open("wb") as file:
            file.write(head.encode())
            pyarrow.csv.write_csv(body, file, options)
            file.flush()
            os.fsync(file.fileno())
    else:
        to.write(head.encode())  # type: ignore[attr-defined]
        pyarrow.csv.write_csv(body, to, options)


def _unit(field: pa.Field) -> str:
    return str((field.metadata or {}).get(b"unit", b"").decode())


def _heading(field: pa.Field, headers: bool) -> str:
    unit = _unit(field)
    return f"{field.name} [{unit}]" if headers and unit else str(field.name)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(c in text for c in ',"\n\r') else text


def _units(name: str, table: pa.Table) -> Iterator[str]:
    """Rows of `units.csv`."""
    for field in table.schema:
        yield ",".join(_quoted(x) for x in (name, field.name, _unit(field), _meaning(name, field.name)))


def _meaning(table: str, column: str) -> str:
    """The glossary's entry for a column."""
    if table == "trace":
        return _OF_TRACES.get(column, "")
    found = {entry.section: entry.meaning for entry in lookup(column)}
    for section in (*_PREFERRED.get(table, ()), "The other tables", "Flows"):
        if section in found:
            return found[section]
    return next(iter(found.values()), "")
