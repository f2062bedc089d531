"""The content of a folder: results, sweeps, and files that cannot be shown, with the reason.

Listing reads one small file of each; tables are read when they are asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._input import read_file
from ..experiment.scenario import Scenario
from ..own.engine import __version__
from ..run.ledger import HEAD as UNFINISHED
from ..run.ledger import LEDGER
from ..run.results import Provenance, Result
from ..run.storage import LARGEST_MANIFEST, MANIFEST, TABLES, ResultError, read_folder, read_manifest
from ..studies.sweep.plan import HEAD as SWEEP
from ..studies.sweep.plan import scenario_of

if TYPE_CHECKING:
    import pyarrow as pa

DEEPEST = 6
"""Folders are looked into down to this depth below the one that is shown."""
MOST_KEPT = 12
"""At most this many tables are kept in memory."""


class NoResults(ResultError):
    """A folder without anything to show."""


class Unknown(LookupError):
    """The page asked for something that is not there."""


@dataclass(frozen=True)
class Entry:
    """A result, a sweep, or what is left of one."""

    id: str
    """Its place below the folder that is shown; `.` is that folder itself."""
    kind: str
    """`run`, `sweep`, or `broken`."""
    place: Path
    problem: str = ""
    """The reason why it can't be shown, or not in full."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Title, version, seeds and the like, for the list."""

    def to_json(self) -> dict[str, Any]:
        """As the page lists it."""
        return {"id": self.id, "kind": self.kind, "problem": self.problem, **self.about}


class Folder:
    """A folder of results, as the page sees it."""

    def __init__(self, place: str | Path) -> None:
        """Raises FileNotFoundError if there is no such folder, NoResults if it holds nothing to show."""
        self.place = Path(place)
        if not self.place.is_dir():
            what = "is a file, not a folder of results" if self.place.exists() else "there is no such folder"
            raise FileNotFoundError(f"{place}: {what}")
        self._listed: dict[str, tuple[tuple[int, ...], Entry]] = {}
        self._tables: dict[tuple[str, str, int], pa.Table] = {}
        # The server answers several requests at a time.
        self._lock = threading.RLock()
        if not self.entries():
            raise NoResults(
                f"{place} holds no results: give the folder that run --out or sweep --out has written,"
                " or one with such folders in it"
            )

    def entries(self) -> list[Entry]:
        """All entries that exist now, by place; unchanged ones are not read again."""
        with self._lock:
            return self._look()

    def _look(self) -> list[Entry]:
        found = {}
        for place, names in _candidates(self.place):
            id_ = str(place.relative_to(self.place))
            stamp = _stamp(place, names)
            known = self._listed.get(id_)
            entry = known[1] if known is not None and known[0] == stamp else _entry(id_, place, names)
            found[id_] = (stamp, entry)
        self._listed = found
        return [entry for _, entry in found.values()]

    def entry(self, id_: str) -> Entry:
        """The entry with this name; raise Unknown for any other name, whatever path it may be."""
        if id_ not in self._listed:
            self.entries()
        try:
            return self._listed[id_][1]
        except KeyError:
            raise Unknown(f"there is no result {id_}") from None

    def result(self, id_: str, tables: Sequence[str]) -> Result:
        """A result with these tables only. Raises Unknown, ResultError."""
        entry = self.entry(id_)
        if entry.kind != "run":
            raise Unknown(f"{id_} is no result of a run: {entry.problem or entry.kind}")
        manifest = read_manifest(entry.place)
        with self._lock:
            return self._result(entry, manifest, tables)

    def _result(self, entry: Entry, manifest: Mapping[str, Any], tables: Sequence[str]) -> Result:
        id_ = entry.id
        stamp = (entry.place / MANIFEST).stat().st_mtime_ns
        missing = [name for name in tables if (id_, name, stamp) not in self._tables]
        for name, table in read_folder(entry.place, missing)[0].items():
            self._tables[id_, name, stamp] = table
        made = Result({n: self._tables[id_, n, stamp] for n in tables}, Provenance.from_json(manifest))
        while len(self._tables) > MOST_KEPT:
            del self._tables[next(iter(self._tables))]
        return made

    def scenario(self, id_: str, setting: int | None = None) -> Scenario:
        """The experiment of a result, or of a setting of a sweep. Raises Unknown, ResultError."""
        entry = self.entry(id_)
        if entry.kind == "sweep":
            head = sweep_head(entry.place)
            if setting is None or not 0 <= setting < len(head["settings"]):
                raise Unknown(f"{id_} has no setting {setting}")
            return scenario_of(head, setting)
        if entry.kind != "run":
            raise Unknown(f"{id_} has no experiment: {entry.problem}")
        return Scenario.again(Provenance.from_json(read_manifest(entry.place)))


def sweep_head(place: Path) -> dict[str, Any]:
    """The content of `sweep.json`; raise ResultError where it can't be read."""
    try:
        head = json.loads(read_file(place / SWEEP, LARGEST_MANIFEST))
        if head["format"] != 1:
            raise ResultError(f"{place} was written in another format: run the sweep again")
        for key in ("title", "version", "experiment", "text", "set", "keys", "settings", "seeds"):
            head[key]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, ResultError):
            raise
        raise ResultError(f"{place / SWEEP} cannot be read: {error!r}") from None
    return dict(head)


def _candidates(top: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """Folders that hold a result or a sweep, whole or not, in order; the inside of one is not searched."""
    parquet = {f"{name}.parquet" for name in TABLES}
    waiting = [(top, 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as entries:
                found = sorted(entries, key=lambda e: e.name)
        except OSError:
            continue
        names = frozenset(e.name for e in found)
        if names & {MANIFEST, SWEEP, UNFINISHED} or names & parquet:
            yield place, names
        elif depth < DEEPEST:
            below = [e for e in found if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
            waiting += [(place / e.name, depth + 1) for e in reversed(below)]


def _stamp(place: Path, names: frozenset[str]) -> tuple[int, ...]:
    """A value that changes when the entry may have changed."""
    made = [len(names), hash(names)]
    for name in (MANIFEST, SWEEP, LEDGER):
        if name in names:
            stat = (place / name).stat()
            made += [stat.st_mtime_ns, stat.st_size]
    return tuple(made)


def _entry(id_: str, place: Path, names: frozenset[str]) -> Entry:
    try:
        if SWEEP in names:
            return _sweep(id_, place)
        if UNFINISHED in names:
            about = {"title": json.loads(read_file(place / UNFINISHED, LARGEST_MANIFEST))["title"]}
            raise ResultError("an interrupted run: the command that began it goes on from there")
        return _run(id_, place, names)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        known = locals().get("about", {"title": place.name})
        text = str(error).replace(str(place), id_)
        return Entry(id_, "broken", place, text or repr(error), known)


def _run(id_: str, place: Path, names: frozenset[str]) -> Entry:
    manifest = read_manifest(place)
    provenance = Provenance.from_json(manifest)
    missing = [f"{name}.parquet" for name in TABLES if f"{name}.parquet" not in names]
    if missing:
        raise ResultError(f"not whole: {', '.join(missing)} missing")
    effective = provenance.effective
    about = {
        "title": provenance.title,
        "version": provenance.version,
        "digest": provenance.digest,
        "seeds": len(provenance.seeds),
        "runs": len(provenance.seeds),
        "duration": effective.get("duration", ""),
        "flows": effective.get("flows_in_all"),
        "schemes": _schemes(effective),
        "live": provenance.live is not None,
    }
    return Entry(id_, "run", place, _version_note(provenance.version), about)


def _sweep(id_: str, place: Path) -> Entry:
    head = sweep_head(place)
    finished, there = 0, set[int]()
    for line in read_file(place / LEDGER, 1 << 30).splitlines():
        entry = json.loads(line)
        if "part" in entry:
            finished += sum(len(seeds) for _, seeds in entry["runs"])
            there.update(setting for setting, _ in entry["runs"])
    problem = _version_note(str(head["version"]))
    # A part has all runs of its settings, however many --until has asked for.
    if len(there) < len(head["settings"]):
        problem = (
            f"{len(there):,} of {len(head['settings']):,} settings ({finished:,} runs) are in its tables:"
            " the command that began it goes on from there"
        )
    about = {
        "title": head["title"],
        "version": head["version"],
        "digest": hashlib.sha256(str(head["experiment"]).encode()).hexdigest(),
        "seeds": len(head["seeds"]),
        "runs": finished,
        "settings": len(head["settings"]),
        "keys": head["keys"],
        "schemes": [],
    }
    return Entry(id_, "sweep", place, problem, about)


def _version_note(version: str) -> str:
    """The warning about a result of another version, which is shown all the same."""
    return "" if version == __version__ else f"made by version {version}; this is {__version__}"


def _schemes(effective: Mapping[str, Any]) -> list[str]:
    """Markers, and the discipline of the link that is measured."""
    markers = [
        str(part["marker"]["kind"])
        for part in (*effective.get("flows", ()), *effective.get("edges", ()))
        if isinstance(part.get("marker"), dict)
    ]
    at = effective.get("measure", {}).get("at")
    queues = [
        str(link["queue"].get("aqm") or link["queue"].get("scheduler") or link["queue"].get("kind"))
        for link in effective.get("links", ())
        if link.get("name") == at and isinstance(link.get("queue"), dict)
    ]
    return list(dict.fromkeys([*markers, *queues]))
