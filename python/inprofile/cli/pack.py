"""`inprofile pack`, `unpack`: a folder of experiments, mechanisms and results as one file, and out of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._input import visible
from .common import (
    INTERRUPTED,
    TERMINATED,
    Jobs,
    Json,
    Refused,
    Terminated,
    argument,
    emit,
    full_disk,
    guarded,
    option,
    say,
    terminable,
)
from .execution import announce

if TYPE_CHECKING:
    from ..studies.pack import Compared
    from ..studies.pack.verify import Work


@guarded
def pack(
    folder: Annotated[
        Path,
        argument(
            "A folder with results of run --out or sweep --out, and what else belongs to them.", "FOLDER"
        ),
    ],
    out: Annotated[
        Path | None,
        option("The pack; default: FOLDER.pack.zip here, or beside FOLDER where here is in it.", "FILE"),
    ] = None,
    json_: Json = False,
) -> None:
    """Pack a folder of experiments, mechanisms and results into one file that others can verify."""
    from ..studies.pack import NotPacked
    from ..studies.pack import pack as work

    inside = Path.cwd().is_relative_to(folder.resolve())
    target = out or (folder.resolve().parent if inside else Path()) / f"{folder.resolve().name}.pack.zip"
    try:
        made = work(folder, target)
    except NotPacked as error:
        raise Refused(str(error)) from None
    if json_:
        emit(made)
    else:
        say(_packed(made))


def _packed(made: dict[str, Any]) -> str:
    lines = [f"{made['file']}: {made['files']} files, SHA-256 {made['sha256']}"]
    lines += [
        f"  {r['kind']} {r['place']}: {r['title']}, {len(r['seeds'])} seeds, {r['digest'][:12]}…"
        for r in made["results"]
    ]
    lines += [
        f"  mechanism {m['name']}: {m.get('file') or m.get('wheel')}, {m['sha256'][:12]}…"
        for m in made["mechanisms"]
    ]
    lines += [f"  report {name}: packed as it is, and not run again" for name in made["reports"]]
    lines.append(f"To run it again elsewhere, and compare: inprofile unpack --verify {made['file']}")
    return "\n".join(lines)


@guarded
def unpack(
    file: Annotated[Path, argument("What inprofile pack has written.", "FILE")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Run its results again, and say whether they are the same.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Let mechanisms in Python that the pack brings run.")
    ] = False,
    into: Annotated[
        Path | None,
        option(
            "Where its files go; new runs go to FOLDER.again. Default: FILE without its endings.", "FOLDER"
        ),
    ] = None,
    jobs: Jobs = None,
    json_: Json = False,
) -> None:
    """Unpack what inprofile pack has written; with --verify run it again, and compare."""
    from ..studies.pack import NoPack, Pack, Untrusted, reports, uncompared
    from ..studies.pack import unpack as write
    from ..studies.pack import verify as work

    try:
        pack = Pack(file)
    except NoPack as error:
        raise Refused(str(error)) from None
    place = into or Path(file.name.removesuffix(".zip").removesuffix(".pack"))
    if not verify:
        try:
            with full_disk(place):
                write(pack, place)
        except NoPack as error:
            raise Refused(visible(str(error))) from None
        if json_:
            emit({"folder": str(place), "results": pack.about["results"], "verified": None})
        else:
            say(f"{len(pack.files)} files are in {place}, as they were packed.")
        return
    again = place.with_name(f"{place.name}.again")

    def tell(what: str, runs: Work) -> None:
        sys.stderr.write(f"Running again: {visible(what, lines=False)}\n")
        announce(runs, jobs)

    try:
        with terminable(), full_disk(again):
            found = work(pack, place, trust=trust, jobs=jobs, tell=tell)
    except NoPack as error:
        raise Refused(visible(str(error))) from None
    except Untrusted as error:
        raise Refused(f"{file}: {error}") from None
    except KeyboardInterrupt as error:
        sys.stderr.write(
            f"Interrupted: what is finished is kept in {visible(str(again))}; the same command goes on from"
            " there.\n"
        )
        ended = Terminated in (type(error), type(error.__cause__))
        raise typer.Exit(TERMINATED if ended else INTERRUPTED) from None
    left = uncompared(pack, found)
    if json_:
        verified = [one.to_json() for one in found]
        emit({"folder": str(place), "again": str(again), "verified": verified, "not_compared": left})
    else:
        say(_text(found, left, reports(left, pack.about["results"]), again, pack.about["versions"]))
    if not all(one.holds for one in found):
        raise typer.Exit(1)


def _text(
    found: list[Compared], left: list[str], reports: list[str], again: Path, versions: dict[str, str]
) -> str:
    lines = []
    counts: dict[str, int] = {}
    for one in found:
        lines.append(
            f"{one.kind} {one.place}: {one.outcome}{f': {_some(one.details)}' if one.details else ''}"
        )
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
    summed = ", ".join(f"{n} {what}" for what, n in counts.items())
    lines.append(f"Of {len(found)}: {summed}. The new runs are in {again}.")
    if "same rows" in counts:
        others = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"Same rows are the same figures in files that other versions wrote ({others}).")
    if reports:
        lines.append(
            f"Not run again: {_some(reports)}. Only runs, sweeps and suites are; to check a report, give the"
            " command that made it again, and compare the two files."
        )
    if left := [name for name in left if name not in reports]:
        files = "1 file was" if len(left) == 1 else f"{len(left)} files were"
        lines.append(f"{files} not compared with anything, and may say anything: {_some(left)}")
    return "\n".join(visible(line, lines=False) for line in lines)


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:5], *["…"] * (len(names) > 5)])
