"""`inprofile check`: what would run, without running it."""

from __future__ import annotations

from dataclasses import asdict

from .common import File, Json, Set, emit, guarded, open_scenario, show


@guarded
def check(file: File, set_: Set = None, json_: Json = False) -> None:
    """Check an experiment: draw its topology, print every effective value and what looks odd."""
    found = open_scenario(file, set_).check()
    if json_:
        emit({"effective": found.effective, "warnings": [asdict(w) for w in found.warnings]})
        return
    from ..topology import draw

    show(draw(found.effective, found.warnings))
