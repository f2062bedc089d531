"""Finished runs on their way: the tables of some runs as bytes, to keep or to send.

Every table has `setting` and `seed` first. The bytes are an Arrow stream with a row a table, each table an
Arrow stream of its own; the schema's metadata says of which runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .storage import ResultError

if TYPE_CHECKING:
    import pyarrow as pa

    from .. import _internal

Run = tuple[int, int]
"""Setting and seed."""
_RUNS = b"runs"


@dataclass(frozen=True)
class Piece:
    """Some finished runs and their tables."""

    runs: tuple[Run, ...]
    tables: dict[str, pa.Table]

    def without(self, known: set[Run]) -> Piece:
        """The runs that are not among these, with their rows."""
        import numpy as np
        import pyarrow as pa

        if not known & set(self.runs):
            return self
        left = tuple(run for run in self.runs if run not in known)
        keep = set(left)
        tables = {}
        for name, table in self.tables.items():
            of = zip(table["setting"].to_pylist(), table["seed"].to_pylist(), strict=True)
            tables[name] = table.filter(pa.array(np.array([run in keep for run in of], dtype=bool)))
        return Piece(left, tables)

    def by_setting(self, wanted: Callable[[int, int], bool]) -> Iterator[tuple[int, Piece]]:
        """The runs that are wanted, each setting's as a piece of its own."""
        import pyarrow.compute as pc

        runs: dict[int, list[Run]] = {}
        known = set()
        for setting, seed in self.runs:
            runs.setdefault(setting, [])
            if wanted(setting, seed):
                runs[setting].append((setting, seed))
            else:
                known.add((setting, seed))
        rest = self.without(known)
        for setting, some in runs.items():
            if not some:
                continue
            if len(runs) == 1:
                yield setting, rest
            else:
                of = {n: t.filter(pc.equal(t["setting"], setting)) for n, t in rest.tables.items()}
                yield setting, Piece(tuple(some), of)


class Gathered:
    """The outcomes of some runs, one after the other, until a piece is made of them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Of these tables."""
        self._names = list(names)
        self._runs: list[Run] = []
        self._left: list[tuple[int, _internal.Results]] = []

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, setting: int, seeds: Iterable[int], raw: _internal.Results) -> None:
        """Take over some seeds of a setting."""
        if not raw.conservation:
            raise ArithmeticError("packets were lost without a cause; this is an error of ours")
        self._runs += [(setting, seed) for seed in seeds]
        self._left.append((setting, raw))

    def piece(self) -> Piece:
        """All of it; nothing is left here."""
        import pyarrow as pa

        from .. import _internal

        tables = _internal.tables_together(self._left, self._names)
        made = Piece(tuple(self._runs), dict(zip(self._names, map(pa.table, tables), strict=True)))
        self._runs, self._left = [], []
        return made


def joined(pieces: Sequence[Piece]) -> Piece:
    """One piece of several."""
    import pyarrow as pa

    if len(pieces) == 1:
        return pieces[0]
    runs = tuple(run for piece in pieces for run in piece.runs)
    names = pieces[0].tables
    return Piece(
        runs,
        {
            n: pa.concat_tables([p.tables[n] for p in pieces], promote_options="default").combine_chunks()
            for n in names
        },
    )


def whole(pieces: Sequence[Piece], names: Sequence[str], seeds: Sequence[int]) -> dict[str, pa.Table]:
    """The tables of one experiment's runs with these seeds, as running all of them at once leaves them.

    What the pieces held is let go of.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(seeds, pa.uint64())
    beyond = {seed for piece in pieces for _, seed in piece.runs} - set(seeds)
    made = {}
    for name in names:
        # Each table is let go of as soon as it is in the whole.
        parts = [piece.tables.pop(name).drop_columns(["setting"]) for piece in pieces]
        table = pa.concat_tables(parts, promote_options="default")
        del parts
        if beyond:
            table = table.filter(pc.is_in(table["seed"], wanted))
        order = table["seed"].to_numpy()
        if (order[1:] < order[:-1]).any():
            table = table.take(pa.array(np.argsort(order, kind="stable")))
        made[name] = table
    return made


def pack(piece: Piece) -> bytes:
    """As bytes; `unpack` takes them back."""
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="zstd")

    def stream(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    fields = [("table", pa.string()), ("data", pa.large_binary())]
    schema = pa.schema(fields, {_RUNS: json.dumps(piece.runs)})
    names = list(piece.tables)
    return stream(pa.table([names, [stream(piece.tables[n]) for n in names]], schema=schema))


def unpack(data: bytes, called: str) -> Piece:
    """The unpacked value; raise ResultError, which says `called`, where the bytes are of another kind."""
    import pyarrow as pa

    try:
        outer = pa.ipc.open_stream(data).read_all()
        runs = tuple((int(a), int(b)) for a, b in json.loads(outer.schema.metadata[_RUNS]))
        names, blobs = outer["table"].to_pylist(), outer["data"]
        tables = {n: pa.ipc.open_stream(b.as_py()).read_all() for n, b in zip(names, blobs, strict=True)}
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        raise ResultError(f"{called} cannot be read: {error}") from None
    return Piece(runs, tables)
