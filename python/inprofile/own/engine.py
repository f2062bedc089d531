"""Which engine this process has: Inprofile's own, or one with mechanisms of a crate of one's own.

A package made by `inprofile new-mechanism` holds the whole engine and its mechanisms, and says so by an entry
point of the group `inprofile.engine`. Where one is installed it takes the place of `inprofile._internal`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP = "inprofile.engine"


def _named(group: str, folder: str) -> bool:
    """Whether a package in this folder of modules has an entry point of the group."""
    said = f"[{group}]".encode()
    try:
        packages = [p.path for p in os.scandir(folder) if p.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for package in packages:
        try:
            if said in Path(package, "entry_points.txt").read_bytes():
                return True
        except OSError:
            continue
    return False


def entry_points(*, group: str) -> Iterable[EntryPoint]:
    """As importlib.metadata has them, whose import takes a good part of the start: only if there are any."""
    if not any(_named(group, folder or ".") for folder in sys.path):
        return ()
    from importlib import metadata

    return metadata.entry_points(group=group)


def _choose() -> None:
    """Have `inprofile._internal` mean the engine that is installed.

    Raises ImportError where there are several, or one that does not go with this version.
    """
    found = {point.value: point for point in entry_points(group=_GROUP)}
    if not found:
        return
    from importlib.metadata import version

    names = sorted({point.dist.name if point.dist else point.name for point in found.values()})
    if len(found) > 1:
        raise ImportError(
            f"{', '.join(names)} are installed, and each brings an engine with its mechanisms; a process has"
            f" one: put the mechanisms into one crate, or pip uninstall {' '.join(names[1:])}"
        )
    [value] = found
    remedy = f"rebuild it against this one (maturin develop --release), or pip uninstall {names[0]}"
    try:
        engine = import_module(value)
    except ImportError as error:
        raise ImportError(
            f"{names[0]} is installed as an engine, and cannot be loaded ({error}): {remedy}"
        ) from error
    its = getattr(engine, "version", lambda: "none")()
    if its != (ours := version("inprofile")):
        raise ImportError(f"{names[0]} was built with Inprofile {its}, and this is {ours}: {remedy}")
    sys.modules["inprofile._internal"] = engine
    sys.modules["inprofile"]._internal = engine  # type: ignore[attr-defined]


@cache
def package() -> tuple[str, str] | None:
    """Name and version of the installed package whose engine this is; None where it is Inprofile's own."""
    for point in entry_points(group=_GROUP):
        if point.dist is not None:
            return point.dist.name, point.dist.version
    return None


@cache
def engine_digest() -> str:
    """SHA-256 of the compiled engine: between releases its version alone does not tell it apart."""
    import hashlib

    return hashlib.sha256(Path(_internal.__file__).read_bytes()).hexdigest()


_choose()

# isort: split
from .. import _internal  # noqa: E402 (which that is, is settled now)

__version__ = _internal.version()
