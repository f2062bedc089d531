"""Which engine this process has: Inprofile's own, or one with mechanisms of a crate of one's own.

A package made by `inprofile new-mechanism` holds the whole engine and its mechanisms, and says so by an entry
point of the group `inprofile.engine`. Where one is installed it takes the place of `inprofile._internal`.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points, version
from pathlib import Path

__all__ = ["__version__", "engine_digest"]

#: As the installed package states it.
__version__ = version("inprofile")

_GROUP = "inprofile.engine"


def _choose() -> None:
    """Have `inprofile._internal` mean the engine that is installed.

    Raises ImportError where there are several, or one that does not go with this version.
    """
    found = {point.value: point for point in entry_points(group=_GROUP)}
    if not found:
        return
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
    if its != __version__:
        raise ImportError(f"{names[0]} was built with Inprofile {its}, and this is {__version__}: {remedy}")
    sys.modules["inprofile._internal"] = engine
    sys.modules["inprofile"]._internal = engine  # type: ignore[attr-defined]


@cache
def engine_digest() -> str:
    """SHA-256 of the compiled engine: between releases its version alone does not tell it apart."""
    from .. import _internal

    return hashlib.sha256(Path(_internal.__file__).read_bytes()).hexdigest()


_choose()
