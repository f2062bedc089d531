"""The file of a pack: a zip archive of files stored as they are, first its list, `pack.json`, to be checked.

    pack.json        what is in it, every file with its size and SHA-256
    mechanisms/…     the code of mechanisms in Python that its results name
    folder/…         the folder's files

Nothing in it is compressed, linked or encrypted, and it has no times: the same files give the same bytes, and
a pack never holds more than it has bytes itself. All of that is checked before anything is written.

Its texts are printed, and a pack may come from anywhere: each is checked before anything else looks at it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ..._input import check_file, visible
from ...run.storage import LARGEST_MANIFEST, FolderInUse, check_folder, replace_folder

KINDS = ("run", "sweep", "suite")
"""Results that can be run again."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MECHANISM = re.compile(r"[a-z][a-z0-9_]*")
_LARGEST = 1 << 62


def wrong_in(about: Any) -> str:
    """What is wrong with a list, the first of it; empty where nothing is."""
    try:
        _check(about)
    except _Wrong as error:
        return visible(str(error), lines=False)
    return ""


class _Wrong(ValueError):
    """An entry that is none."""


def _check(about: Any) -> None:
    listed = _object(about, "it")
    for key in ("inprofile", "engine"):
        _text(listed, key, "it")
    if (wheel := listed.get("wheel")) is not None:
        for key in ("name", "version"):
            _text(_object(wheel, "wheel"), key, "wheel")
    versions = _object(listed.get("versions"), "versions")
    for name in versions:
        _text(versions, name, "versions")
    for name, entry in _object(listed.get("files"), "files").items():
        where = f"files.{name}"
        size = _object(entry, where).get("bytes")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST:
            raise _Wrong(f"{where}.bytes is no number of bytes")
        _digest(entry, where)
    for number, entry in enumerate(_array(listed.get("mechanisms"), "mechanisms")):
        where = f"mechanisms[{number}]"
        if not _MECHANISM.fullmatch(_text(_object(entry, where), "name", where)):
            raise _Wrong(f"{where}.name is not lower-case letters, digits and underscores")
        _digest(entry, where)
        _text(entry, "file" if "file" in entry else "wheel", where)
    results = _array(listed.get("results"), "results")
    if not results:
        raise _Wrong("it lists no result")
    for number, entry in enumerate(results):
        _check_result(entry, f"results[{number}]")
    if len({entry["place"] for entry in results}) != len(results):
        raise _Wrong("a result is listed twice")


def _check_result(entry: Any, where: str) -> None:
    result = _object(entry, where)
    for key in ("place", "kind", "title", "version"):
        _text(result, key, where)
    if result["kind"] not in KINDS:
        raise _Wrong(f"{where}.kind is none of {', '.join(KINDS)}")
    _digest(result, where, "digest")
    seeds = _array(result.get("seeds"), f"{where}.seeds")
    if any(not isinstance(seed, int) or isinstance(seed, bool) or seed < 0 for seed in seeds):
        raise _Wrong(f"{where}.seeds are no seeds")
    own = _object(result.get("mechanisms"), f"{where}.mechanisms")
    for name in own:
        if not _MECHANISM.fullmatch(name):
            raise _Wrong(f"{where}.mechanisms has a name that is none")
        _digest(own, f"{where}.mechanisms", name)


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{where} is no object")
    return value


def _array(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"{where} is no array")
    return value


def _text(of: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(value := of.get(key), str):
        raise _Wrong(f"{where} has no {key}")
    return value


def _digest(of: Mapping[str, Any], where: str, key: str = "sha256") -> None:
    if not _SHA256.fullmatch(_text(of, key, where)):
        raise _Wrong(f"{where}.{key} is no SHA-256")


LIST, CODE, FILES = "pack.json", "mechanisms", "folder"
FORMAT = 1
MOST_FILES = 100_000
_BLOCK = 1 << 20
_DATE = (1980, 1, 1, 0, 0, 0)
_HEADER = struct.Struct("<4s5H3L2H")
"""What stands before a file in an archive; the last two are the lengths of its name and of what follows."""
_SMALL, _END = 1 << 30, 22
_NAME = re.compile(r"[^\x00-\x1f\x7f\\:]+")


class NoPack(ValueError):
    """A file that is no pack, or one that nobody should unpack; the text says why."""


class Changed(NoPack):
    """A pack that is not as it was packed."""


def write(place: Path, about: Mapping[str, Any], files: Mapping[str, Path | bytes]) -> str:
    """Write a pack of these files by their names in it, whole or not at all; its SHA-256.

    `about` is what its list says besides the files. Raises OSError.
    """
    listed = {name: _weighed(of) for name, of in sorted(files.items())}
    body = {"format": FORMAT, **about, "files": listed}
    text = json.dumps({**body, "sha256": _seal(body)}, ensure_ascii=False, indent=1, sort_keys=True)
    part = place.with_name(f".{place.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as made:
            _put(made, LIST, f"{text}\n".encode())
            for name, of in sorted(files.items()):
                _put(made, name, of)
        part.replace(place)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(place)) from error
        raise
    return str(_weighed(place)["sha256"])


def _put(made: zipfile.ZipFile, name: str, of: Path | bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    info.file_size = len(of) if isinstance(of, bytes) else of.stat().st_size
    with made.open(info, "w") as file:
        for block in _blocks(of):
            file.write(block)


def _weighed(of: Path | bytes) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    for block in _blocks(of):
        digest.update(block)
        size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _blocks(of: Path | bytes) -> Iterator[bytes]:
    if isinstance(of, bytes):
        yield of
        return
    with of.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _seal(body: Mapping[str, Any]) -> str:
    """Of the list itself, which has no other digest."""
    return hashlib.sha256(json.dumps(body, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


class Pack:
    """A pack that has been checked: as it was packed, and safe to be written out."""

    def __init__(self, file: str | Path) -> None:
        """Read it all, and write nothing. Raises NoPack, Changed, OSError."""
        self.file = Path(file)
        check_file(self.file)
        try:
            with zipfile.ZipFile(self.file) as archive:
                infos = archive.infolist()
                _check_members(self.file, infos)
                _check_layout(self.file, archive, infos)
                self.about = self._list(archive, infos)
                self._check_files(archive, infos)
        except NoPack:
            raise
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            raise NoPack(f"{file} is no pack, or a damaged one: {visible(str(error))}") from None

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Bytes and SHA-256 of each file."""
        found: Mapping[str, Mapping[str, Any]] = self.about["files"]
        return found

    def _list(self, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> dict[str, Any]:
        if not infos or infos[0].filename != LIST or infos[0].file_size > LARGEST_MANIFEST:
            raise NoPack(f"{self.file} is no pack: {LIST} is not the first in it. inprofile pack writes one")
        try:
            about = json.loads(archive.read(infos[0]))
            seal = about.pop("sha256")
            if about["format"] != FORMAT:
                raise NoPack(f"{self.file} is a pack of another format: take the version that wrote it")
            if _seal(about) != seal:
                raise Changed(f"{self.file} was changed: {LIST} is not as it was written")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, NoPack):
                raise
            raise NoPack(f"{self.file}: {LIST} cannot be read: {visible(str(error))}") from None
        if wrong := wrong_in(about):
            raise NoPack(f"{self.file}: {LIST} is not what inprofile pack writes: {wrong}")
        # A folder that is itself a result has it at ".".
        places = [r["place"] for r in about["results"] if r["place"] != "."]
        for name in [*about["files"], *(f"{FILES}/{place}" for place in places)]:
            if wrong := flaw([name]):
                raise NoPack(f"{self.file}: {wrong}: nothing was written")
        # What --trust lets run is what the pack itself has, and what it shows.
        code = {m["file"] for m in about["mechanisms"] if "file" in m}
        for name in sorted(code):
            if name not in about["files"] or not name.startswith(f"{CODE}/") or not name.endswith(".py"):
                raise NoPack(
                    f'{self.file}: the mechanisms\' code "{visible(name, lines=False)}" is not in it'
                )
        for name in about["files"]:
            if name.startswith(f"{CODE}/") and name not in code:
                raise NoPack(
                    f"{self.file}: {visible(name, lines=False)} is the code of no mechanism that it lists"
                )
        return dict(about)

    def _check_files(self, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> None:
        """Raise Changed where what is there is not what the list says."""
        there = {info.filename: info for info in infos[1:]}
        wrong = [f"{name} is missing" for name in self.files if name not in there]
        wrong += [f"{name} was added" for name in there if name not in self.files]
        for name, info in there.items():
            if name in self.files and self.files[name] != _read(archive, info):
                wrong.append(f"{name} is not as it was packed")
        if wrong:
            more = f", and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise Changed(f"{self.file} was changed: {visible('; '.join(wrong[:5]), lines=False)}{more}")

    def unpack(self, into: str | Path, check: Callable[[Path], None] = lambda _: None) -> Path:
        """Write its files into a new folder, whole or not at all; one with just these is left as it is.

        `check` is given the folder before it has its name, and where it raises nothing of it stays.
        Raises FolderInUse where anything else is there, OSError.
        """
        place = Path(into)
        if place.exists():
            if self._is_there(place):
                check(place)
                return place
            raise FolderInUse(f"{place} is there, and holds something else: choose another by --into")
        check_folder(place.parent)
        total = sum(int(f["bytes"]) for f in self.files.values())
        free = shutil.disk_usage(place.parent).free
        if total > free:
            raise OSError(28, f"has room for {free:,} bytes, and the pack needs {total:,}", str(place.parent))
        part = place.with_name(f".{place.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            with zipfile.ZipFile(self.file) as archive:
                for name in (LIST, *self.files):
                    target = part / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(name) as source, target.open("xb") as sink:
                        shutil.copyfileobj(source, sink, _BLOCK)
            check(part)
            replace_folder(part, place)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        return place

    def _is_there(self, place: Path) -> bool:
        found = {str(p.relative_to(place)): p for p in place.rglob("*") if p.is_symlink() or not p.is_dir()}
        if found.keys() != {LIST, *self.files} or any(p.is_symlink() for p in found.values()):
            return False
        return all(_weighed(found[name])["sha256"] == f["sha256"] for name, f in self.files.items())


def _check_members(file: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Raise NoPack for anything but files that are stored, each under a name below the folder it goes to."""
    if len(infos) > MOST_FILES:
        raise NoPack(f"{file} has {len(infos):,} files, and a pack {MOST_FILES:,} at most")
    for info in infos:
        name = visible(info.filename, lines=False)
        if info.flag_bits & 0x1:
            raise NoPack(f"{file}: {name} is encrypted: a pack never is")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise NoPack(
                f"{file}: {name} is compressed, {info.compress_size:,} bytes to {info.file_size:,}: the files"
                " of a pack are stored as they are"
            )
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or info.is_dir():
            what = "a link" if kind == stat.S_IFLNK else "no file"
            raise NoPack(f"{file}: {name} is {what}: a pack has files only")
    if wrong := flaw(info.filename for info in infos if info.filename != LIST):
        raise NoPack(f"{file}: {wrong}: nothing was written")
    if sum(info.filename == LIST for info in infos) > 1:
        raise NoPack(f"{file}: {LIST} is in it twice")
    total = sum(info.file_size for info in infos)
    if total > file.stat().st_size:
        raise NoPack(f"{file} says that it holds {total:,} bytes, more than it has itself")


def _check_layout(file: Path, archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> None:
    """Raise Changed where a header is not as the directory says, or something lies between or after files."""
    place = 0
    with file.open("rb") as raw:
        for info in infos:
            raw.seek(place)
            head = raw.read(_HEADER.size)
            if info.header_offset != place or len(head) < _HEADER.size:
                break
            name, extra = _HEADER.unpack(head)[-2:]
            whole = head + raw.read(name + extra)
            # Zip has another header for files of 2 GiB.
            if info.file_size < _SMALL and (whole != info.FileHeader() or info.date_time != _DATE):
                break
            place += len(whole) + info.file_size
        else:
            raw.seek(-_END, os.SEEK_END)
            if place == archive.start_dir and not archive.comment and raw.read(4) == b"PK\5\6":
                return
            raise Changed(f"{file} was changed: there is something after the last of its files")
    shown = visible(info.filename, lines=False)
    raise Changed(f"{file} was changed: what stands before {shown} is not what inprofile pack writes")


def flaw(names: Iterable[str]) -> str:
    """What is wrong with names of files in a pack, the first of it; empty where each can be written anywhere.

    Each leads to a place of its own below the folder, also where capitals or accents are not told apart.
    """
    seen: dict[str, str] = {}
    for name in names:
        parts = name.split("/")
        shown = visible(name.encode("utf-8", "backslashreplace").decode(), lines=False)
        try:
            name.encode()
        except UnicodeEncodeError:
            return f'the name "{shown}" is not UTF-8: rename the file'
        outside = parts[0] not in (CODE, FILES) or len(parts) < 2 or not {"", ".", ".."}.isdisjoint(parts)
        if outside or not _NAME.fullmatch(name):
            return (
                f'"{shown}" leads out of the folder that a pack is written into'
                if outside
                else f'"{shown}" has a character that a name on another system may not have'
                " (\\, : or a control character): rename the file"
            )
        # Some file systems do not tell capitals, or write an accent otherwise.
        folded = unicodedata.normalize("NFC", name).casefold()
        if folded in seen:
            other = visible(seen[folded], lines=False)
            return (
                f"{shown} is in it twice"
                if other == shown
                else f"{shown} and {other} have one name"
                + (" where capitals are not told apart: rename one of them")
            )
        seen[folded] = name
    folders = {str(parent) for name in seen for parent in PurePosixPath(name).parents}
    if both := sorted(folders & seen.keys()):
        return f"{visible(seen[both[0]], lines=False)} is a file, and a folder of others"
    return ""


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    """Bytes and SHA-256 as the list has them; empty where it is damaged."""
    digest = hashlib.sha256()
    file: IO[bytes]
    try:
        with archive.open(info) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except zipfile.BadZipFile:
        return {}
    return {"bytes": info.file_size, "sha256": digest.hexdigest()}
