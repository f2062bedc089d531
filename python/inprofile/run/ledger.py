"""Finished runs in a folder that survives everything but its disk; and the seeds of one experiment, kept so.

    HEAD            what is run: a folder of anything else is refused
    ledger.jsonl    a line for each piece and part; a run counts only when the ledger has it
    piece-N.arrow   runs that have finished lately, in any order
    TABLE/part-N.parquet   runs of some settings, all of them, in order

Every file is written under another name, made durable, renamed, and only then entered. Pieces go when the
parts have their runs. Nothing in the finished folder tells how often or where its runs were interrupted.

Until a result is written whole, its finished runs are in a folder beside its place, `<out>.unfinished`: what
was interrupted goes on where it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import read_file, seeds_in_order
from ..metrics.summary import with_units
from ..own.engine import __version__, engine_digest
from .pieces import Piece, Run, joined, pack, unpack, whole
from .pool import Local, Runnable, Seeds, Task
from .storage import (
    LARGEST_MANIFEST,
    TABLES,
    FolderInUse,
    ResultError,
    check_folder,
    check_place,
    write_whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from .results import Result


LEDGER = "ledger.jsonl"
FORMAT = 1
LARGEST_LEDGER = 1 << 30
SECONDS, BYTES = 1.0, 32 << 20
"""Finished runs wait at most so long, and at most so many bytes of them, before they are on the disk."""


def check_head(place: Path, name: str, head: Mapping[str, Any], says: Mapping[str, str]) -> bool:
    """Whether the folder has runs of this; False where it is free.

    `says` has in words what a difference of each of the head's keys means. Raises FolderInUse where the
    folder holds anything else, ResultError where its head cannot be read, OSError where none can be made.
    """
    if not os.path.lexists(place):
        check_folder(place.parent)
        return False
    if not place.is_dir():
        raise FolderInUse(f"{place} is a file, not a folder: choose another place for the results")
    if not (place / name).exists():
        # A head that was not yet renamed is nobody's.
        strange = sorted(e.name for e in place.iterdir() if not e.name.startswith(f".{name}."))
        if strange:
            what = ", ".join(strange[:3])
            raise FolderInUse(f"{place} holds other things ({what}): choose a new or an empty folder")
        return False
    try:
        found = json.loads(read_file(place / name, LARGEST_MANIFEST))
        kept = {key: found[key] for key in says}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ResultError(f"{place / name} cannot be read: {error}: choose another folder") from None
    wrong = [_unlike(text, kept[key], head[key]) for key, text in says.items() if kept[key] != head[key]]
    if wrong:
        raise FolderInUse(
            f"{place} has runs of something else: {'; '.join(wrong)}. Choose another folder,"
            " or remove this one"
        )
    return True


def _unlike(text: str, there: object, asked: object) -> str:
    shown = [json.dumps(value, ensure_ascii=False) for value in (there, asked)]
    return text if max(map(len, shown)) > 60 else f"{text} ({shown[0]} there, {shown[1]} asked for)"


class Ledger:
    """The folder of one sweep, or of one interrupted run, open and locked."""

    def __init__(self, place: Path, name: str, head: Mapping[str, Any], *, now: bool = True) -> None:
        """Open it and take up what it has; `check_head` has been asked.

        Without `now` a folder that is not there is made when there is something to put into it.
        """
        self.place, self._name = place, name
        self._head = json.dumps(head, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
        self.parts: dict[int, dict[str, Any]] = {}
        self.pieces: dict[str, Piece] = {}
        self.done: set[Run] = set()
        self._waiting: list[Piece] = []
        self._waiting_bytes = 0
        self._since = time.monotonic()
        self._number = 0
        self._lock = -1
        self._log = -1
        if now or (place / name).exists():
            self._open()

    def _open(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        head = self.place / self._name
        if not head.exists():
            write_whole(head, self._head.encode())
        self._lock = os.open(head, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = -1
            raise FolderInUse(
                f"{self.place} is being written by another process: wait for its end,"
                " or choose another folder"
            ) from None
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._log = os.open(self.place / LEDGER, flags, 0o666)
            self._take_up()
        except BaseException:
            self.close()
            raise

    def _take_up(self) -> None:
        """Read the ledger; what it does not have is removed, and what it has is checked."""
        text = read_file(self.place / LEDGER, LARGEST_LEDGER)
        whole = text.rfind(b"\n") + 1
        # A line without its end was being written when the process was killed.
        os.ftruncate(self._log, whole)
        known: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(text[:whole].splitlines(), start=1):
            try:
                entry = json.loads(line)
                if "part" in entry:
                    self.parts[int(entry["part"])] = entry
                else:
                    known[str(entry["piece"])] = entry
            except (ValueError, LookupError, TypeError) as error:
                raise ResultError(
                    f"{self.place / LEDGER}, line {number} cannot be read: {error}: it was changed by hand"
                ) from None
        for number, entry in list(self.parts.items()):
            if self._all_there(entry["files"]):
                self.done |= _runs(entry)
            else:
                del self.parts[number]
        for name, entry in known.items():
            self._number = max(self._number, int(name.removeprefix("piece-").removesuffix(".arrow")))
            self._take_up_piece(name, entry)
        self._remove_strangers()

    def _take_up_piece(self, name: str, entry: Mapping[str, Any]) -> None:
        path = self.place / name
        if _runs(entry) <= self.done:
            path.unlink(missing_ok=True)
        elif self._all_there({name: entry["sha256"]}):
            piece = unpack(path.read_bytes(), str(path)).without(self.done)
            self.pieces[name] = piece
            self.done |= set(piece.runs)

    def _all_there(self, files: Mapping[str, str]) -> bool:
        """Whether files are as they were entered; raise ResultError for one that was changed."""
        for name, digest in files.items():
            path = self.place / name
            if not path.exists():
                return False
            if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                raise ResultError(
                    f"{path} is damaged or was changed: it is not what {LEDGER} says. Remove it, and the same"
                    " command makes its runs again"
                )
        return True

    def _remove_strangers(self) -> None:
        """Remove what was written and not entered: its runs do not count."""
        kept = {f for entry in self.parts.values() for f in entry["files"]} | set(self.pieces)
        for path in (*self.place.glob("piece-*.arrow"), *self.place.glob("*/part-*.parquet")):
            if str(path.relative_to(self.place)) not in kept:
                path.unlink()
        for path in (*self.place.glob(".*.part"), *self.place.glob("*/.*.part")):
            path.unlink()

    def keep(self, piece: Piece) -> None:
        """Take finished runs; they are on the disk within about a second, or after `flush`."""
        piece = piece.without(self.done)
        if not piece.runs:
            return
        self.done |= set(piece.runs)
        self._waiting.append(piece)
        self._waiting_bytes += sum(8 * t.num_rows * t.num_columns for t in piece.tables.values())
        self.beat()

    def beat(self) -> None:
        """Put what waits onto the disk if it has waited long enough, or is a lot."""
        if time.monotonic() - self._since >= SECONDS or self._waiting_bytes >= BYTES:
            self.flush()

    def flush(self) -> None:
        """Put what waits onto the disk."""
        if self._waiting:
            self._commit(joined(self._waiting))
            self._waiting.clear()
            self._waiting_bytes = 0
        self._since = time.monotonic()

    def _commit(self, piece: Piece) -> None:
        if self._log < 0:
            self._open()
        self._number += 1
        name = f"piece-{self._number:06}.arrow"
        data = pack(piece)
        write_whole(self.place / name, data)
        by_setting: dict[int, list[int]] = {}
        for setting, seed in piece.runs:
            by_setting.setdefault(setting, []).append(seed)
        digest = hashlib.sha256(data).hexdigest()
        self._enter({"piece": name, "sha256": digest, "runs": [[k, v] for k, v in by_setting.items()]})
        self.pieces[name] = piece

    def add_part(
        self, number: int, runs: Sequence[tuple[int, Sequence[int]]], tables: Mapping[str, bytes]
    ) -> None:
        """Write a part of every table, which has all runs of its settings, and let their pieces go."""
        files = {}
        for name, data in tables.items():
            file = f"{name}/part-{number:05}.parquet"
            (self.place / name).mkdir(exist_ok=True)
            write_whole(self.place / file, data)
            files[file] = hashlib.sha256(data).hexdigest()
        entry = {"part": number, "runs": [[k, list(v)] for k, v in runs], "files": files}
        self._enter(entry)
        self.parts[number] = entry
        self.done |= _runs(entry)
        self._drop(_runs(entry))

    def _drop(self, runs: set[Run]) -> None:
        """Let go of runs that a part has."""
        waiting = [piece.without(runs) for piece in self._waiting]
        self._waiting = [piece for piece in waiting if piece.runs]
        for name, piece in list(self.pieces.items()):
            left = piece.without(runs)
            if left.runs:
                self.pieces[name] = left
            else:
                (self.place / name).unlink()
                del self.pieces[name]

    def rows(self, settings: Iterable[int]) -> dict[str, pa.Table]:
        """All rows of pieces that are of these settings, by setting and seed, otherwise as they were left."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(sorted(settings), pa.uint32())
        pieces = [*self.pieces.values(), *self._waiting]
        found = {}
        for name in pieces[0].tables:
            parts = [p.tables[name] for p in pieces]
            kept = [t.filter(pc.is_in(t["setting"], wanted)) for t in parts]
            table = pa.concat_tables(kept, promote_options="default").combine_chunks()
            order = np.lexsort((table["seed"].to_numpy(), table["setting"].to_numpy()))
            found[name] = with_units(name, table.take(pa.array(order)).combine_chunks())
        return found

    def take_all(self) -> list[Piece]:
        """Everything that no part has; it stays on the disk."""
        return [*self.pieces.values(), *self._waiting]

    def finish(self, without: Iterable[int] = ()) -> None:
        """Rewrite the ledger, in order: it no longer tells how the runs were interrupted.

        Parts that others have taken the place of go; not before the ledger has done without them.
        """
        files = [file for number in without for file in self.parts.pop(number)["files"]]
        lines = [json.dumps(self.parts[n], sort_keys=True) + "\n" for n in sorted(self.parts)]
        write_whole(self.place / LEDGER, "".join(lines).encode())
        for file in files:
            (self.place / file).unlink()

    def remove(self) -> None:
        """Remove the folder: what it had is elsewhere now."""
        self.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def close(self) -> None:
        """Let go of the folder."""
        for handle in (self._log, self._lock):
            if handle >= 0:
                os.close(handle)
        self._log = self._lock = -1

    def _enter(self, entry: Mapping[str, Any]) -> None:
        """Add a line and make it durable; where the disk refuses, none of it stays."""
        before = os.fstat(self._log).st_size
        data = (json.dumps(entry, sort_keys=True) + "\n").encode()
        try:
            while data:
                data = data[os.write(self._log, data) :]
            os.fsync(self._log)
        except OSError as error:
            os.ftruncate(self._log, before)
            raise OSError(error.errno, error.strerror, str(self.place)) from error


def _runs(entry: Mapping[str, Any]) -> set[Run]:
    return {(int(setting), int(seed)) for setting, seeds in entry["runs"] for seed in seeds}


HEAD = "unfinished.json"
SAYS = {
    "format": "another format",
    "version": "another version of Inprofile",
    "engine": "another build of the simulator",
    "experiment": "another experiment",
    "trace": "another --trace",
}


class InterruptedRun(KeyboardInterrupt):
    """Ctrl-C or SIGTERM after some of the runs, which are kept."""

    def __init__(self, folder: Path, finished: int, runs: int) -> None:
        """So many of the runs, in this folder."""
        super().__init__(
            f"Interrupted after {finished:,} of {runs:,} runs. They are kept in {folder}:"
            " the same command goes on from there."
        )


def run_kept(
    scenario: Runnable,
    seeds: Seeds | None,
    out: str | Path,
    *,
    jobs: int | None = None,
    trace: bool = False,
    progress: Callable[[int, int], None] | None = None,
    under_way: Callable[[float], None] | None = None,
    threads_per_run: int = 1,
) -> Result:
    """Run an experiment as `Scenario.run` does and write its result into `out`; keep what has finished.

    Runs that an interrupted call of the same experiment has kept are not made again, whichever seeds it was
    for. Raises InterruptedRun once any run has finished, FolderInUse where `out`, or what is kept beside it,
    is of something else, and OSError where the disk refuses.
    """
    from .results import Result

    which = seeds_in_order(len(scenario.seeds) if seeds is None else seeds)
    out = check_place(out)
    place = out.with_name(f"{out.name}.unfinished")
    head: dict[str, Any] = {
        "format": 1,
        "version": __version__,
        "engine": engine_digest(),
        "title": scenario.title,
        "experiment": scenario.canonical,
        "trace": trace,
    }
    check_head(place, HEAD, head, SAYS)
    ledger = Ledger(place, HEAD, head, now=False)
    each = scenario.expected_packets(seeds=1)
    wanted = {(0, seed) for seed in which}

    def beat(_: int = 0) -> None:
        ledger.beat()
        if progress is not None:
            progress(len(wanted & ledger.done), len(which))

    try:
        beat()
        if left := tuple(seed for seed in which if (0, seed) not in ledger.done):
            backend = Local(jobs, under_way, threads_per_run)
            backend.run([Task(0, scenario, left, each)], TABLES, ledger.keep, beat, trace=trace)
        tables = whole(ledger.take_all(), TABLES, which)
        result = Result(tables, scenario.provenance(which))
        result.write(out)
        ledger.remove()
    except BaseException as error:
        with contextlib.suppress(OSError):
            ledger.flush()
        finished = len(wanted & ledger.done)
        if isinstance(error, KeyboardInterrupt) and finished:
            raise InterruptedRun(place, finished, len(which)) from error
        raise
    finally:
        ledger.close()
    return result
