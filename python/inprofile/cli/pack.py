"""`inprofile pack`: a folder of experiments, mechanisms and results as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .common import Json, Refused, emit, guarded, say


@guarded
def pack(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder with results of run --out or sweep --out, and what else belongs to them.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The pack; default: FOLDER.pack.zip here, or beside FOLDER where here is in it.",
            show_default=False,
        ),
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
        say(_text(made))


def _text(made: dict[str, Any]) -> str:
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
