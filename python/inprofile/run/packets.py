"""The packets of one run, in files that other programs read: a capture, and ns-2's trace, which is also read.

>>> import inprofile, tempfile, pathlib
>>> from inprofile.run.packets import read_ns2_trace, write_ns2_trace
>>> scenario = inprofile.parse(inprofile.STARTER).with_(duration="5 s", measure={"from": "1 s"})
>>> folder = tempfile.TemporaryDirectory()
>>> place = pathlib.Path(folder.name) / "run.tr"
>>> _ = write_ns2_trace(scenario, place)
>>> table = read_ns2_trace(place)
>>> table.column_names[:4], table.field("time").metadata
(['event', 'time', 'from', 'to'], {b'unit': b's'})
>>> folder.cleanup()
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _internal
from .._input import check_file

if TYPE_CHECKING:
    import pyarrow as pa

    from .pool import Runnable

MOST_SNAPLEN = 262_144
"""Bytes: more than any packet has."""
_COLUMNS = (
    ("event", "string", None),
    ("time", "float64", "s"),
    ("from", "int64", None),
    ("to", "int64", None),
    ("type", "string", None),
    ("size", "int64", "B"),
    ("flags", "string", None),
    ("flow", "int64", None),
    ("source", "string", None),
    ("destination", "string", None),
    ("sequence", "int64", None),
    ("packet", "int64", None),
)
_EVENTS = ("+", "-", "r", "d")


class NotCaptured(ValueError):
    """A capture that cannot be made: no such link, or packets that IPv4 does not have."""


class TraceError(ValueError):
    """A file that is no packet trace of ns-2."""


@dataclass(frozen=True)
class Captured:
    """How many packets a capture has."""

    passed: int
    """Packets that left a queue, or came in from the other direction."""
    dropped: int
    """Packets that a queue dropped."""


def write_capture(
    scenario: Runnable, path: str | Path, at: Sequence[str] = (), *, seed: int = 1, snaplen: int | None = None
) -> Captured:
    """Run one seed and write the packets at these links (default: where the experiment measures) as pcapng.

    Of each packet at most `snaplen` bytes are written; default: all. Raises NotCaptured, and OSError where
    the disk refuses; the file is then as it was.
    """
    if snaplen is not None and not 54 <= snaplen <= MOST_SNAPLEN:
        raise NotCaptured(
            f"snaplen {snaplen}: write bytes from 54, headers alone, to {MOST_SNAPLEN}, or leave it out"
        )
    links = list(at) or [str(scenario.provenance(()).effective["measure"]["at"])]
    with _whole(path) as part:
        try:
            found = _internal.capture_packets(scenario._inner, seed, part, links, snaplen or 0)
        except ValueError as error:
            raise NotCaptured(f"{scenario.file}: {error}") from None
    return Captured(*found)


def write_ns2_trace(scenario: Runnable, path: str | Path, *, seed: int = 1) -> int:
    """Run one seed and write every event at every link as ns-2 traces it (`+ - r d`).

    Gives the number of data packets that arrived. Raises OSError where the disk refuses; the file is then
    as it was. The column of flags is always `-------`.
    """
    with _whole(path) as part:
        return _internal.ns2_log(scenario._inner, seed, part)


def read_ns2_trace(path: str | Path) -> pa.Table:
    """A packet trace of ns-2 (`$ns trace-all`), ns-2's own or ours, as a table with units.

    Columns: `event` (+ joins a queue, - leaves it, r arrives, d is dropped), `time` (s), `from`, `to`
    (nodes), `type`, `size` (B), `flags`, `flow`, `source`, `destination` (node.port), `sequence`, `packet`.
    Raises TraceError with the line for what is no such trace, OSError where there is no file.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv

    check_file(path)
    names = [name for name, _, _ in _COLUMNS]
    wrong: list[str] = []

    def skip(row: csv.InvalidRow) -> str:
        wrong.append(row.text)
        return "skip"

    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(delimiter=" ", quote_char=False, invalid_row_handler=skip),
            csv.ConvertOptions(
                column_types={name: getattr(pa, kind)() for name, kind, _ in _COLUMNS},
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if Path(path).stat().st_size == 0:
            raise TraceError(f"{path} is empty: a trace has a line for each event") from None
        raise TraceError(f"{path} is no packet trace of ns-2: {error}") from None
    if wrong:
        raise TraceError(
            f'{path}: "{wrong[0][:100]}" is no event: a line has the {len(names)} fields {" ".join(names)}'
            " (trace files of wireless nodes, and those with TCP headers, have others)"
        )
    strange = table.filter(pc.invert(pc.is_in(table["event"], value_set=pa.array(_EVENTS))))
    if strange.num_rows:
        event = strange["event"][0].as_py()
        raise TraceError(
            f'{path}: "{event}" is no event: + joins a queue, - leaves it, r arrives, d is dropped'
        )
    fields = [
        pa.field(name, kind, metadata=None if unit is None else {"unit": unit})
        for (name, _, unit), kind in zip(_COLUMNS, table.schema.types, strict=True)
    ]
    return table.cast(pa.schema(fields))


@contextlib.contextmanager
def _whole(path: str | Path) -> Iterator[str]:
    """Where to write so that `path` is the whole file or what it was; a pipe is written itself."""
    place = Path(path)
    if place.exists() and not place.is_file():
        if place.is_dir():
            raise IsADirectoryError(21, "is a folder: name a file", str(place))
        yield str(place)
        return
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        yield str(part)
        part.replace(place)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(place)) from None
        raise
