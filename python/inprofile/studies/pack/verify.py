"""Running what a pack holds again, and comparing: the same bytes, the same rows, or what differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ..._input import read_file
from ...experiment.scenario import Scenario, ScenarioError
from ...own.engine import __version__, engine_digest, package
from ...own.registry import digests, load_classes, registered
from ...run.ledger import LEDGER, run_kept
from ...run.pace import sampled
from ...run.pool import Local
from ...run.results import read
from ...run.storage import LARGEST_MANIFEST, MANIFEST, TABLES, FolderInUse, ResultError, write_whole
from ...run.tables import Room, TooManyRows
from ..reproduce.report.overview import read_results
from ..suite import SUITES, suite
from ..suite import plan as planned
from ..sweep import SweepError, read_sweep, run_plan
from ..sweep.plan import HEAD, plan_of
from ..sweep.result import TABLES as DATASET
from ..sweep.result import part_files
from .archive import FILES, Changed, Pack
from .listing import differences, versions

_OF = "verified.json"
Work = Sequence[tuple[Scenario, float]]
"""Experiments, and how many runs of each."""


class Untrusted(ValueError):
    """A pack with code that nobody has said may run."""


@dataclass(frozen=True)
class Compared:
    """How one result of a pack came out."""

    place: str
    kind: str
    outcome: str
    """`same bytes`, `same rows`, `different`, or `not run again`."""
    details: Sequence[str] = ()
    """Files that differ, or why it was not run."""
    compared: Sequence[str] = ()
    """Files of the pack's folder that were compared with new ones."""

    @property
    def holds(self) -> bool:
        """Whether the figures are the same."""
        return self.outcome in ("same bytes", "same rows")

    def to_json(self) -> dict[str, Any]:
        """As `unpack --json` prints it."""
        return {**vars(self), "details": list(self.details), "compared": len(self.compared)}


def _names_of(pack: Pack) -> list[str]:
    """The files of a pack's folder."""
    return [name.removeprefix(f"{FILES}/") for name in pack.files if name.startswith(f"{FILES}/")]


def uncompared(pack: Pack, found: Sequence[Compared]) -> list[str]:
    """Files of a pack's folder that nothing was compared with: notes, figures, results that were not run."""
    compared = {name for one in found for name in one.compared}
    return sorted(name for name in _names_of(pack) if name not in compared)


def unpack(pack: Pack, into: Path) -> None:
    """Write a pack's files into a new folder, if its list is of what they are.

    Raises Changed, with nothing written, where it is not; FolderInUse, OSError.
    """

    def check(place: Path) -> None:
        if wrong := differences(place / FILES, _names_of(pack), pack.about["results"]):
            more = f", and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise Changed(
                f"{pack.file}: pack.json does not go with its folder: {'; '.join(wrong[:5])}{more}."
                " Nothing was written"
            )

    pack.unpack(into, check)


def verify(
    pack: Pack,
    into: Path,
    *,
    trust: bool = False,
    jobs: int | None = None,
    tell: Callable[[str, Work], None] = lambda what, work: None,
) -> list[Compared]:
    """Unpack a pack into the folder `into`, run every result again in a folder beside it, and compare.

    What is finished stays there: an interrupted call goes on. `trust` lets the pack's mechanisms in Python
    run; `tell` is told what is run, with examples that stand for all of it. Raises Changed where the pack's
    list is not of what its folder has, Untrusted, FolderInUse, OSError, KeyboardInterrupt.
    """
    unpack(pack, into)
    if (code := [m for m in pack.about["mechanisms"] if "file" in m]) and not trust:
        named = ", ".join(f"{m['name']} in {into / m['file']}" for m in code)
        raise Untrusted(
            f"it brings code in Python, which runs as you do: {named}. Read it, then give the same"
            " command with --trust"
        )
    again = into.with_name(f"{into.name}.again")
    _mine(again, pack)
    found = []
    for result in pack.about["results"]:
        there, here = into / FILES / result["place"], again / "results" / result["place"]
        try:
            _code(pack, result, into)
            told = partial(tell, f"{result['place']}: {result['title']}")
            if result["kind"] == "suite":
                _suite(there, here, again / "cache", jobs, told)
            else:
                _run(result, there, here, jobs, told)
        except _NotAgain as error:
            found.append(Compared(result["place"], result["kind"], "not run again", [str(error)]))
            continue
        found.append(_compared(result, there, here, _built_alike(pack)))
    return found


class _NotAgain(Exception):
    """A result that cannot be run here."""


def _mine(again: Path, pack: Pack) -> None:
    """Make the folder of what is run again; raise FolderInUse where it is another pack's or engine's."""
    head = {"list": pack.about["files"], "results": pack.about["results"], "engine": engine_digest()}
    text = json.dumps(head, sort_keys=True).encode()
    if (again / _OF).exists():
        if read_file(again / _OF, LARGEST_MANIFEST) != text:
            raise FolderInUse(
                f"{again} has runs of another pack, or of another version of Inprofile: remove it, or choose"
                " another folder by --into"
            )
        return
    if again.exists() and any(again.iterdir()):
        raise FolderInUse(f"{again} holds other things: remove it, or choose another folder by --into")
    again.mkdir(parents=True, exist_ok=True)
    write_whole(again / _OF, text)


def _code(pack: Pack, result: Mapping[str, Any], into: Path) -> None:
    """Have the classes that a result names registered as they were; raise _NotAgain."""
    where = {(m["name"], m["sha256"]): m for m in pack.about["mechanisms"]}
    for name, digest in result["mechanisms"].items():
        entry = where.get((name, digest), {})
        if "file" in entry:
            if digests([name]).get(name) != digest if name in registered() else True:
                path = into / entry["file"]
                text = path.read_bytes()
                if hashlib.sha256(text).hexdigest() != pack.files[entry["file"]]["sha256"]:
                    raise _NotAgain(f"{path} is not as it was packed")
                try:
                    load_classes(path, text)
                except Exception as error:
                    raise _NotAgain(f"{entry['file']}: {type(error).__name__}: {error}") from None
            if name not in registered() or digests([name])[name] != digest:
                raise _NotAgain(f"{entry['file']} has no {name} with the SHA-256 {digest}")
        elif digest != engine_digest():
            wheel = entry.get("wheel", "a wheel that the pack does not name")
            here = "none is installed here" if package() is None else "another build is installed here"
            raise _NotAgain(
                f"{name} is compiled, in {wheel}, engine SHA-256 {digest}, and {here}: install that wheel"
            )


def _run(
    result: Mapping[str, Any], there: Path, here: Path, jobs: int | None, told: Callable[[Work], None]
) -> None:
    """Make the result again where it is not there yet; raise _NotAgain where that cannot be."""
    try:
        if result["kind"] == "sweep":
            plan = plan_of(read_sweep(there).head)
            some = sampled(range(len(plan.settings)))
            told([(plan.scenario(n), plan.runs // len(some)) for n in some])
            run_plan(plan, here, Local(jobs))
            return
        was = read(there)
        of = was.provenance
        if of.live is not None:
            raise _NotAgain("it was measured with real hosts, and no two such runs are the same")
        if of.text is None:
            raise _NotAgain("it was written by a version that did not keep the experiment's text")
        scenario = Scenario(of.text, "experiment", of.overrides)
        if scenario.canonical != of.experiment:
            raise _NotAgain(f"this version reads its experiment otherwise; it was run with {of.version}")
        if not (here / MANIFEST).exists():
            told([(scenario, len(of.seeds))])
            here.parent.mkdir(parents=True, exist_ok=True)
            run_kept(scenario, of.seeds, here, jobs=jobs, trace=was.verdicts.num_rows > 0)
    except (ScenarioError, SweepError) as error:
        raise _NotAgain(f"this version does not run it: {error}") from None
    except (ResultError, TooManyRows) as error:
        raise _NotAgain(str(error)) from None


def _suite(there: Path, here: Path, cache: Path, jobs: int | None, told: Callable[[Work], None]) -> None:
    """Make a suite's report again from the files beside it; raise _NotAgain where that cannot be."""
    data = read_results(there) or {}
    try:
        brought = {name for source in data.get("sources", ()) for name in source["mechanisms"]}
        named = [one["id"] for one in data["contestants"]]
        own = [name for name in named if name in brought]
        name = str(data["suite"])
        if name not in SUITES or here.name != name:
            raise _NotAgain(f"its folder is not called {name}: move it back, and pack it again")
        asked: dict[str, Any] = {
            "aqms": [one for one in named if one not in own],
            "scenarios": [one["id"] for one in data["scenarios"]],
            "tcp": None if data["tcp"]["id"] == "files" else str(data["tcp"]["id"]),
            "quick": bool(data["quick"]),
            "seeds": int(data["seeds"]),
            "files": there / "files",
            "own": own,
        }
        made = planned(name, **asked)
        some = sampled(list(made.work.values()))
        told([(scenario, made.runs // len(some)) for scenario in some])
        suite(name, **asked, jobs=jobs, out=here.parent, cache=cache)
    except (LookupError, TypeError, ValueError) as error:
        raise _NotAgain(f"this version does not run it: {error}") from None


def _built_alike(pack: Pack) -> bool:
    """Whether everything that files' bytes depend on is here as where it was packed."""
    of = pack.about
    return (of["inprofile"], of["engine"], of["versions"]) == (__version__, engine_digest(), versions())


def _compared(result: Mapping[str, Any], there: Path, here: Path, alike: bool) -> Compared:
    """File by file: a result's own, and of a sweep its dataset."""
    rows: list[str] = []
    bytes_: list[str] = []
    compared: list[str] = []
    for name in _names(result["kind"], there, here):
        a, b = there / name, here / name
        if name.endswith(".html") and not alike:
            # Other versions draw pages otherwise: its figures are in the files beside it.
            continue
        compared.append(str(PurePosixPath(result["place"]) / name))
        if not (a.exists() and b.exists()):
            rows.append(f"{name} is only {'in the pack' if a.exists() else 'in the new runs'}")
        elif a.read_bytes() != b.read_bytes():
            same = _same_rows(a, b) if name.endswith(".parquet") else _same_but_builds(a, b)
            (bytes_ if same else rows).append(name)
    outcome = "different" if rows else "same rows" if bytes_ else "same bytes"
    return Compared(result["place"], result["kind"], outcome, rows or bytes_, compared)


def _names(kind: str, there: Path, here: Path) -> list[str]:
    """The files of a result, or of a sweep's dataset; of a suite's report what it was made from, too."""
    if kind == "suite":
        files = sorted(str(p.relative_to(here)) for p in (here / "files").rglob("*") if p.is_file())
        return ["results.json", "measures.csv", "report.txt", "index.html", *files]
    if kind != "sweep":
        return [MANIFEST, *(f"{name}.parquet" for name in TABLES)]
    parts = {str(p.relative_to(of)) for of in (there, here) for name in DATASET for p in part_files(of, name)}
    return [HEAD, LEDGER, *sorted(parts)]


def _same_rows(a: Path, b: Path) -> bool:
    room = Room()
    one, other = (room.read(path).replace_schema_metadata(None) for path in (a, b))
    return bool(one.equals(other))


def _unsummed(line: bytes) -> Any:
    """A line of a ledger without the checksums of its tables, which are compared themselves."""
    try:
        entry = json.loads(line)
        return {**entry, "sha256": sorted(entry["sha256"])}
    except (ValueError, LookupError, TypeError):
        return line


def _same_but_builds(a: Path, b: Path) -> bool:
    """Of the files that say what was run: whether they differ in nothing but version and build."""
    if a.name == LEDGER:
        one, other = ([_unsummed(line) for line in p.read_bytes().splitlines()] for p in (a, b))
        return one == other
    if a.suffix != ".json":
        return False
    one, other = (json.loads(p.read_bytes()) for p in (a, b))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    return all(one.get(key) == other.get(key) for key in {*one, *other} - {"version", "engine"})
