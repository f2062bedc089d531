"""A result on disk: one folder, whole or not there.

The folder is written under another name beside its place, made durable, and renamed: whoever looks sees
the old one, or the new one, never a part. In it are the provenance, `inprofile.json`, once, as an experiment
may be large, and the tables as Parquet, one file each, whose metadata says which provenance is theirs.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import read_file
from .tables import Room, TooManyRows

if TYPE_CHECKING:
    import pyarrow as pa


TABLES = (
    "metrics",
    "flows",
    "drops",
    "queues",
    "markers",
    "signals",
    "series",
    "verdicts",
    "downloads",
    "delays",
    "cdf",
)
"""The tables of a result, each a file `<name>.parquet`."""

MANIFEST = "inprofile.json"
FORMAT = 3
WHOLE = 2
"""The format in which every table had the whole provenance in its metadata; it is read as ever."""
LARGEST_MANIFEST = 64 << 20
"""Bytes: it holds the whole experiment, up to a million round trips and contracts of it."""
_KEY = b"inprofile"


class ResultError(ValueError):
    """A folder that holds no whole result."""


class FolderInUse(FileExistsError):
    """A folder that holds something else than a result: nothing was written."""


def check_place(folder: str | Path) -> Path:
    """Where a result would be written; raise FolderInUse where something else is.

    Free are: a place where nothing is, an empty folder, and an earlier result, which is replaced whole.
    """
    place = Path(folder).resolve()
    if not place.exists():
        check_folder(place.parent)
        return place
    if not place.is_dir():
        raise FolderInUse(f"{folder} is a file, not a folder: choose another place for the results")
    names = {entry.name for entry in place.iterdir()}
    strange = sorted(names - {MANIFEST, *(f"{t}.parquet" for t in TABLES)})
    if strange or (names and MANIFEST not in names):
        what = ", ".join((strange or sorted(names))[:3])
        raise FolderInUse(
            f"{folder} holds other things ({what}): choose a new or an empty folder for the results"
        )
    return place


def check_folder(folder: str | Path) -> None:
    """Raise OSError where no folder can be made or written into: before hours of runs, not after them."""
    place = Path(folder).absolute()
    there = next(p for p in (place, *place.parents) if os.path.lexists(p))
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file, not a folder: choose another place", str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "cannot be written into: choose another place", str(there))


def write_folder(folder: str | Path, tables: Mapping[str, pa.Table], provenance: Mapping[str, Any]) -> None:
    """Write a result whole, in place of an earlier one; see the module's note.

    Raises FolderInUse, and OSError where the disk refuses; the place is then as it was.
    """
    place = check_place(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    manifest = {"format": FORMAT, **provenance}
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2) + "\n"
    note = json.dumps(_note(manifest, text.encode()), ensure_ascii=False, sort_keys=True)
    try:
        part.mkdir()
        for name in TABLES:
            _write_table(part / f"{name}.parquet", tables[name], note)
        _write_text(part / MANIFEST, text)
        _sync(part)
        replace_folder(part, place)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            # A full disk names no file, and a part that is gone by now is not what anybody asked for.
            raise OSError(error.errno, error.strerror or str(error), str(place)) from error
        raise


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The content of a result's `inprofile.json`: its format and provenance.

    Raises FileNotFoundError where there is no such folder, ResultError where it holds no result.
    """
    return _manifest(Path(folder))[0]


def _manifest(place: Path) -> tuple[dict[str, Any], bytes]:
    """The same, and the bytes of the file."""
    if not place.is_dir():
        raise FileNotFoundError(f"{place}: there is no such folder of results")
    try:
        data = read_file(place / MANIFEST, LARGEST_MANIFEST)
        manifest = json.loads(data)
    except FileNotFoundError:
        raise ResultError(f"{place} holds no results: {MANIFEST} is missing") from None
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{place / MANIFEST} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") not in (FORMAT, WHOLE):
        raise ResultError(f"{place} was written in another format: run the experiment again")
    return manifest, data


def _note(manifest: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The provenance in a table's metadata, which is `data`: where it is, and which."""
    return {
        "format": FORMAT,
        "title": manifest["title"],
        "digest": manifest["digest"],
        "provenance": f"{MANIFEST}, in the folder of this table",
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def read_folder(
    folder: str | Path, names: Sequence[str] = TABLES
) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Tables (all, or those of these names) and provenance of a result.

    Raises FileNotFoundError where there is none, ResultError where it is not whole or not of one run.
    """
    import pyarrow as pa

    place = Path(folder)
    manifest, data = _manifest(place)
    try:
        wanted = manifest if manifest["format"] == WHOLE else _note(manifest, data)
    except KeyError as missing:
        raise ResultError(f"{place / MANIFEST}: the provenance lacks {missing}") from None
    tables = {}
    room = Room()
    for name in names:
        path = place / f"{name}.parquet"

        def of_this_run(metadata: Mapping[bytes, bytes], path: Path = path) -> None:
            if json.loads(metadata.get(_KEY, b"null")) != wanted:
                other = f"belongs to another run than {MANIFEST}: results were mixed or changed by hand"
                raise ResultError(f"{path} {other}")

        try:
            # Whose it is stands in the footer: rows of another run are not read at all.
            tables[name] = room.read(path, check=of_this_run).replace_schema_metadata(None)
        except FileNotFoundError:
            raise ResultError(f"{folder} is not whole: {path.name} is missing") from None
        except TooManyRows as error:
            raise ResultError(str(error)) from None
        except (pa.ArrowException, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ResultError(f"{path} cannot be read: {error}") from None
    return tables, manifest


def _write_table(path: Path, table: pa.Table, note: str) -> None:
    import pyarrow.parquet as pq

    # One chunk, so that the bytes do not depend on how the rows were delivered.
    whole = table.combine_chunks().replace_schema_metadata({_KEY: note})
    with path.open("wb") as file:
        pq.write_table(whole, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all; raise OSError, which names it, where the disk refuses."""
    replace_files({path: text.encode()})


def replace_files(files: Mapping[Path, bytes]) -> None:
    """Write files that belong together: all are whole before the first takes its place.

    Raises OSError, which names the file, where the disk refuses; every place is then as it was.
    """
    parts = {path: path.with_name(f".{path.name}.part") for path in files}
    try:
        for path, part in parts.items():
            try:
                part.write_bytes(files[path])
            except OSError as error:
                # A full disk names no file, and nobody asked for the part.
                raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        for path, part in parts.items():
            part.replace(path)
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Write a file and make it durable, whole or not at all.

    Raises OSError, which names the file's folder, where the disk refuses.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(path.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(path.parent)) from error
        raise


def replace_folder(part: Path, place: Path) -> None:
    """Put the finished folder in its place; the earlier one leaves whole, or comes back."""
    old = place.with_name(f".{place.name}.{os.getpid()}.old")
    if place.exists():
        place.rename(old)
        try:
            part.rename(place)
        except BaseException:
            old.rename(place)
            raise
        shutil.rmtree(old)
    else:
        part.rename(place)
    _sync(place.parent)


def _sweep(place: Path) -> None:
    """Remove what processes that were killed while writing here left behind."""
    prefix = f".{place.name}."
    for entry in place.parent.iterdir():
        pid, dot, kind = entry.name.removeprefix(prefix).partition(".")
        if not entry.name.startswith(prefix) or not dot or not pid.isdigit() or _alive(int(pid)):
            continue
        # An `.old` without its successor is the only copy: its writer was killed between two renames.
        if kind == "part" or (kind == "old" and place.exists()):
            shutil.rmtree(entry, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


WIDTH = 120
"""The longest value on one line, in characters; plain values that are more than a record fill such lines."""
RECORD = 2_000
"""The longest record on one line: a member of a list, or what holds nothing but plain values."""


def record_lines(value: Any) -> str:
    """Lay out what JSON can hold: what is short on one line, and so is each record.

    >>> rows = [{"id": "A1", "text": "x" * 60}, {"id": "A2", "text": "y" * 60}]
    >>> print(record_lines({"seeds": [1, 2], "rows": rows}), end="")
    {
     "seeds": [1, 2],
     "rows": [
      {"id": "A1", "text": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
      {"id": "A2", "text": "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}
     ]
    }

    Raises ValueError for a number that is none (NaN, infinity), TypeError for what JSON cannot hold.
    """
    return _laid_out(value, 0, WIDTH) + "\n"


def _laid_out(value: Any, depth: int, room: int) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, dict | list):
        return text
    members_of = value.values() if isinstance(value, dict) else value
    plain = not any(isinstance(member, dict | list) for member in members_of)
    if len(text) <= (RECORD if plain else room):
        return text
    if isinstance(value, dict):
        members = [
            f"{json.dumps(k, ensure_ascii=False)}: {_laid_out(v, depth + 1, WIDTH)}" for k, v in value.items()
        ]
    else:
        members = [_laid_out(v, depth + 1, RECORD) for v in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    inner = ",\n".join(f"{' ' * (depth + 1)}{line}" for line in (_filled(members) if plain else members))
    return f"{start}\n{inner}\n{' ' * depth}{end}"


def _filled(members: list[str]) -> list[str]:
    lines = [members[0]]
    for member in members[1:]:
        if len(lines[-1]) + len(member) < WIDTH:
            lines[-1] += f", {member}"
        else:
            lines.append(member)
    return lines
