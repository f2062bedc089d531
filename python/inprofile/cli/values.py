"""Values of options and arguments that need no conversion get none.

Typer converts with pydantic, whose import takes longer than everything else at the start. Texts, paths and
what is not given are what they are; a number, a choice or a path that has to exist is left to Typer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["spared"]


def spared(parameters: list[Any]) -> list[Any]:
    """The parameters of a command, each of which converts only what is to be converted.

    Of a Typer that converts in another way nothing changes.
    """
    for parameter in parameters:
        build = getattr(parameter, "get_runtime_param", None)
        if build is not None and not isinstance(build, _Value):
            parameter.get_runtime_param = _Value(parameter, build)
    return parameters


class _Value:
    """In place of a parameter's converter, which is built where there is something to convert."""

    def __init__(self, parameter: Any, build: Any) -> None:
        self._build = build
        self._text = parameter.type_descriptor.annotation in (str, list[str])
        info = parameter.type_descriptor.parameter_info
        checked = info.exists or info.resolve_path or info.path_type
        self._path = parameter.type_descriptor.annotation in (Path, list[Path]) and not checked

    def __call__(self) -> _Value:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """See `typer._coercion.RuntimeParam.coerce`."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        given = list(value) if several and not isinstance(value, str) else value
        if all(isinstance(one, str) for one in (given if isinstance(given, list) else [given])):
            if self._text:
                return given
            if self._path:
                return [Path(one) for one in given] if isinstance(given, list) else Path(given)
        return self._build().coerce(value, param=param, ctx=ctx)
