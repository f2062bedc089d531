"""What code a class is: its file, or the functions that it reaches."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .classes import Aqm, Marker, Mechanism

__all__ = ["digest"]


def digest(cls: type) -> str:
    """SHA-256 of the file of the class, or where there is none of the code that its methods reach."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return hashlib.sha256(Path(file).read_bytes() + cls.__qualname__.encode()).hexdigest()
    reached = sorted(_reached(cls, set()))
    return hashlib.sha256("\n".join(reached).encode()).hexdigest()


def _reached(of: Any, seen: set[int]) -> Iterator[str]:
    """The code of a class or function and of those it names in its module, and the plain values they name."""
    if id(of) in seen:
        return
    seen.add(id(of))
    if isinstance(of, type):
        for base in of.__mro__[:-1]:
            if base not in (Marker, Aqm, Mechanism):
                for name, value in sorted(vars(base).items()):
                    if isinstance(value, types.FunctionType):
                        yield from _reached(value, seen)
                    elif not name.startswith("__"):
                        yield f"{base.__name__}.{name}={value!r}"
    elif isinstance(of, types.FunctionType):
        yield from _code(of.__code__)
        for name in of.__code__.co_names:
            value = of.__globals__.get(name)
            if isinstance(value, types.FunctionType | type) and value.__module__ == of.__module__:
                yield from _reached(value, seen)
            elif isinstance(value, int | float | str | tuple):
                yield f"{name}={value!r}"


def _code(code: types.CodeType) -> Iterator[str]:
    constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    yield f"{code.co_name}:{code.co_code.hex()}:{code.co_names}:{constants!r}"
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _code(inner)
