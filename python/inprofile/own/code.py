"""The code of a class: its file, or the functions that it reaches."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .classes import Aqm, Marker, Mechanism


def digest(cls: type) -> str:
    """SHA-256 of the file of the class, or where there is none of the code that its methods reach."""
    import hashlib  # a quarter of what importing this package takes

    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return hashlib.sha256(Path(file).read_bytes() + cls.__qualname__.encode()).hexdigest()
    reached = sorted(_reached(cls, set()))
    return hashlib.sha256("\n".join(reached).encode()).hexdigest()


def source(cls: type) -> tuple[str, str | None]:
    """The name and text of the file of the class; without a name the class's own text, or None."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        return Path(file).name, Path(file).read_text("utf-8", errors="replace")
    try:
        return "", inspect.getsource(cls)
    except (OSError, TypeError):
        return "", None


def _reached(of: Any, seen: set[int]) -> Iterator[str]:
    """The code of a class or function and of those it names in its module, and the plain values they name."""
    if id(of) in seen:
        return
    seen.add(id(of))
    if isinstance(of, type):
        for base in of.__mro__[:-1]:
            if base not in (Marker, Aqm, Mechanism):
                for name, value in sorted(vars(base).items()):
                    functions = _functions(value)
                    for function in functions:
                        yield from _reached(function, seen)
                    if not functions and not name.startswith("__"):
                        yield f"{base.__name__}.{name}={_text(value)}"
    elif isinstance(of, types.FunctionType):
        for code in _nested(of.__code__):
            constants = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
            yield f"{code.co_name}:{code.co_code.hex()}:{code.co_names}:{_text(constants)}"
        yield f"{of.__name__}({_text(of.__defaults__)}, {_text(of.__kwdefaults__)})"
        for name, value in _named(of):
            if isinstance(value, types.FunctionType | type) and value.__module__ == of.__module__:
                yield from _reached(value, seen)
            elif isinstance(value, _PLAIN):
                yield f"{name}={_text(value)}"


#: Values whose text says what they are.
_PLAIN = (int, float, str, bytes, tuple, list, dict, set, frozenset)


def _functions(value: Any) -> list[Any]:
    """The functions behind what is in a class's body."""
    match value:
        case types.FunctionType():
            return [value]
        case staticmethod() | classmethod():
            return [value.__func__]
        case property():
            return [f for f in (value.fget, value.fset, value.fdel) if f is not None]
        case functools.cached_property():
            return [value.func]
    return []


def _named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that a function uses from outside: in its module, and in the functions around it."""
    for code in _nested(function.__code__):
        for name in code.co_names:
            yield name, function.__globals__.get(name)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _text(value: Any) -> str:
    """A value's text, the same in every process: without addresses, sets in order.

    >>> _text({"b", "a"}), _text([{2: object}])
    ("{'a', 'b'}", "[{2: <class 'object'>}]")
    """
    match value:
        case set() | frozenset():
            return "{" + ", ".join(sorted(map(_text, value))) + "}"
        case tuple():
            return "(" + ", ".join(map(_text, value)) + ")"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_text(k)}: {_text(v)}" for k, v in value.items()) + "}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _nested(inner)
