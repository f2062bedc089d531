"""What a folder holds, for its pack: results and sweeps, the code they need, everything else as it is."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from ...own.engine import __version__, engine_digest, package
from ...own.registry import Source
from ...run.ledger import HEAD as UNFINISHED
from ...run.results import read
from ...run.storage import MANIFEST, ResultError
from ...run.tables import TooManyRows
from ..reproduce.report.overview import read_results
from ..sweep import SweepError, read_sweep
from ..sweep.plan import HEAD
from .archive import CODE, FILES, flaw, write

#: What studies write that are packed as they are: `compare`, `reproduce` and `atlas`, and `plan`.
_REPORTS = ("results.json", "answer.json")
#: Not part of the work: caches, version control, what begins with a dot.
_LEFT_OUT = ("__pycache__", "node_modules")


class NotPacked(ValueError):
    """A folder that cannot be packed; the text says what to do."""


@dataclass(frozen=True)
class _Found:
    """A result or sweep."""

    place: str
    kind: str
    title: str
    digest: str
    seeds: Sequence[int]
    version: str
    own: Mapping[str, str]
    sources: Sequence[Source]

    def to_json(self) -> dict[str, Any]:
        """As a pack lists it."""
        return {
            "place": self.place,
            "kind": self.kind,
            "title": self.title,
            "digest": self.digest,
            "seeds": list(self.seeds),
            "version": self.version,
            "mechanisms": dict(self.own),
        }


def pack(folder: str | Path, out: str | Path) -> dict[str, Any]:
    """Write a pack of a folder to `out`; what is in it, with its SHA-256.

    Raises NotPacked, ResultError for a result that is not whole, OSError.
    """
    place, target = Path(folder), Path(out)
    if not place.is_dir():
        raise NotPacked(f"{folder}: there is no such folder")
    if target.resolve().is_relative_to(place.resolve()):
        raise NotPacked(f"--out {out} is in the folder that is packed: choose a place outside of it")
    files = dict(_files(place))
    results = list(_results(place, files))
    if not results:
        raise NotPacked(
            f"{folder} holds no result: give a folder in which run, sweep or suite --out has written one"
        )
    code, mechanisms = _code(results)
    if wrong := flaw([*(f"{FILES}/{name}" for name in files), *code]):
        raise NotPacked(f"{folder}: {wrong}".replace(f"{FILES}/", ""))
    made = package()
    about = {
        "inprofile": __version__,
        "engine": engine_digest(),
        "wheel": None if made is None else {"name": made[0], "version": made[1]},
        "versions": versions(),
        "mechanisms": mechanisms,
        "results": [r.to_json() for r in results],
    }
    named: dict[str, Path | bytes] = {f"{FILES}/{name}": path for name, path in files.items()}
    digest = write(target, about, named | code)
    as_they_are = reports(files, [r.to_json() for r in results])
    return {**about, "file": str(target), "files": len(named), "sha256": digest, "reports": as_they_are}


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(place.rglob("*")):
        parts = path.relative_to(place).parts
        if any(part in _LEFT_OUT or part.startswith(".") for part in parts):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise NotPacked(
                f"{path} is a link or a device, and a pack has files only: put the file itself there"
            )
        if path.name == UNFINISHED:
            raise NotPacked(
                f"{path.parent} has runs of an unfinished result: give its command again, or remove it"
            )
        if path.is_file():
            yield "/".join(parts), path


def _results(place: Path, files: Mapping[str, Path]) -> Iterator[_Found]:
    for where, last in _places(files):
        yield from _result(place, where, last)


def _places(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Where there may be a result, and the file that says so."""
    for name in files:
        inner, _, last = f"./{name}".rpartition("/")
        if last in (MANIFEST, HEAD, "results.json"):
            yield inner.removeprefix("./").removeprefix(".") or ".", last


def _result(place: Path, where: str, last: str) -> Iterator[_Found]:
    if last == MANIFEST:
        of = read(place / where).provenance
        yield _Found(where, "run", of.title, of.digest, of.seeds, of.version, _own(of.experiment), of.sources)
    elif last == HEAD:
        sweep = read_sweep(place / where)
        head = sweep.head
        digest = hashlib.sha256(str(head["experiment"]).encode()).hexdigest()
        own = {**_own(str(head["experiment"])), **head.get("own", {})}
        yield _Found(where, "sweep", sweep.title, digest, head["seeds"], head["version"], own, sweep.sources)
    else:
        yield from _suite(place, where)


def reports(files: Iterable[str], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Reports among the files of a folder that are none of these results, which alone can be run again."""
    known = {one["place"] for one in results}
    places = ((str(PurePosixPath(name).parent), name) for name in files)
    return [name for place, name in places if PurePosixPath(name).name in _REPORTS and place not in known]


def differences(place: Path, files: Iterable[str], listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a pack's list says otherwise than its folder, which is in `place`, does.

    A result that is listed and cannot be read is nothing of that: it cannot be run again either.
    """
    known = {one["place"]: one for one in listed}
    wrong, seen = [], set()
    for where, last in _places(files):
        try:
            found = list(_result(place, where, last))
        except (ResultError, TooManyRows, SweepError) as error:
            seen.add(where)
            if where not in known:
                wrong.append(f"{where} is a result that it does not list, and cannot be read: {error}")
            continue
        for one in found:
            seen.add(where)
            if where not in known:
                wrong.append(f"{where} is a {one.kind} that it does not list")
                continue
            said = known[where]
            wrong += [
                f"the {key} of {where} is {_short(is_)}, and it says {_short(said[key])}"
                for key, is_ in one.to_json().items()
                if said[key] != is_
            ]
    return wrong + [f"{where} is no result, and it lists one" for where in known if where not in seen]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _suite(place: Path, where: str) -> Iterator[_Found]:
    """The report of a suite; nothing of any other."""
    data = read_results(place / where)
    if data is None or "suite" not in data or not (place / where / "files" / "suite.toml").is_file():
        return
    try:
        sources = [Source.from_json(source) for source in data.get("sources", ())]
        own = {name: digest for source in sources for name, digest in source.mechanisms.items()}
        seeds = range(1, int(data["seeds"]) + 1)
        text = (place / where / "results.json").read_bytes()
        digest = hashlib.sha256(text).hexdigest()
        yield _Found(where, "suite", str(data["title"]), digest, seeds, str(data["version"]), own, sources)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ResultError(f"{place / where / 'results.json'} cannot be read: {error}") from None


def _own(experiment: str) -> dict[str, str]:
    """The mechanisms of one's own that an experiment names, with their digests."""
    try:
        return dict(json.loads(experiment).get("own", {}))
    except (ValueError, AttributeError, TypeError) as error:
        raise ResultError(f"the stored experiment cannot be read: {error}") from None


def _code(results: Sequence[_Found]) -> tuple[dict[str, Path | bytes], list[dict[str, Any]]]:
    """Files with the mechanisms' code, and where each mechanism is. Raises NotPacked for one without."""
    texts: dict[str, bytes] = {}
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for result in results:
        by_name = {name: source for source in result.sources for name in source.mechanisms}
        for name, digest in result.own.items():
            entry: dict[str, Any] = {"name": name, "sha256": digest}
            if name in by_name:
                entry["file"] = _kept(texts, result, by_name[name], name)
            elif digest == engine_digest() and (made := package()) is not None:
                entry["wheel"] = f"{made[0]} {made[1]}"
            else:
                raise NotPacked(
                    f"{result.place}: the code of {name} (SHA-256 {digest[:12]}…) is neither in the result"
                    " nor in the engine that is installed: install the wheel it was run with, or run it again"
                )
            entries.setdefault((name, digest), entry)
    return dict(texts.items()), [entries[key] for key in sorted(entries)]


def _kept(texts: dict[str, bytes], result: _Found, source: Source, name: str) -> str:
    digest = source.mechanisms[name]
    text = None if source.text is None else source.text.encode()
    if text is None or not source.file:
        where = (
            f"its file, {source.file}, is not kept in it" if source.file else "it was typed into a session"
        )
        raise NotPacked(
            f"{result.place}: the source of {name} is gone: {where}. Put the class into a file, and run again"
            " with it: --mechanism FILE"
        )
    classes = re.findall(rb"^\s*class\s+(\w+)", text, re.MULTILINE)
    if digest not in {hashlib.sha256(text + cls).hexdigest() for cls in classes}:
        raise NotPacked(
            f"{result.place}: the text of {source.file} that it holds is not the code it was run with"
        )
    number = 1
    while texts.setdefault(at := f"{CODE}/{number}/{Path(source.file).name}", text) != text:
        number += 1
    return at


def versions() -> dict[str, str]:
    """Of what figures, bytes and pictures depend on besides the engine."""
    names = ("altair", "numpy", "pyarrow", "scipy", "vl-convert-python")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
