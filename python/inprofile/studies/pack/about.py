"""The list of a pack: what `pack.json` says of files, results and mechanisms, and whether it is such a list.

Its texts are printed, and a pack may come from anywhere: each is checked before anything else looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._input import visible

KINDS = ("run", "sweep", "suite")
"""Results that can be run again."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MECHANISM = re.compile(r"[a-z][a-z0-9_]*")
_LARGEST = 1 << 62


def wrong_in(about: Any) -> str:
    """What is wrong with a list, the first of it; empty where nothing is."""
    try:
        _check(about)
    except _Wrong as error:
        return visible(str(error), lines=False)
    return ""


class _Wrong(ValueError):
    """An entry that is none."""


def _check(about: Any) -> None:
    listed = _object(about, "it")
    for key in ("inprofile", "engine"):
        _text(listed, key, "it")
    if (wheel := listed.get("wheel")) is not None:
        for key in ("name", "version"):
            _text(_object(wheel, "wheel"), key, "wheel")
    versions = _object(listed.get("versions"), "versions")
    for name in versions:
        _text(versions, name, "versions")
    for name, entry in _object(listed.get("files"), "files").items():
        where = f"files.{name}"
        size = _object(entry, where).get("bytes")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST:
            raise _Wrong(f"{where}.bytes is no number of bytes")
        _digest(entry, where)
    for number, entry in enumerate(_array(listed.get("mechanisms"), "mechanisms")):
        where = f"mechanisms[{number}]"
        if not _MECHANISM.fullmatch(_text(_object(entry, where), "name", where)):
            raise _Wrong(f"{where}.name is not lower-case letters, digits and underscores")
        _digest(entry, where)
        _text(entry, "file" if "file" in entry else "wheel", where)
    results = _array(listed.get("results"), "results")
    if not results:
        raise _Wrong("it lists no result")
    for number, entry in enumerate(results):
        _check_result(entry, f"results[{number}]")
    if len({entry["place"] for entry in results}) != len(results):
        raise _Wrong("a result is listed twice")


def _check_result(entry: Any, where: str) -> None:
    result = _object(entry, where)
    for key in ("place", "kind", "title", "version"):
        _text(result, key, where)
    if result["kind"] not in KINDS:
        raise _Wrong(f"{where}.kind is none of {', '.join(KINDS)}")
    _digest(result, where, "digest")
    seeds = _array(result.get("seeds"), f"{where}.seeds")
    if any(not isinstance(seed, int) or isinstance(seed, bool) or seed < 0 for seed in seeds):
        raise _Wrong(f"{where}.seeds are no seeds")
    own = _object(result.get("mechanisms"), f"{where}.mechanisms")
    for name in own:
        if not _MECHANISM.fullmatch(name):
            raise _Wrong(f"{where}.mechanisms has a name that is none")
        _digest(own, f"{where}.mechanisms", name)


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{where} is no object")
    return value


def _array(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise _Wrong(f"{where} is no array")
    return value


def _text(of: Mapping[str, Any], key: str, where: str) -> str:
    if not isinstance(value := of.get(key), str):
        raise _Wrong(f"{where} has no {key}")
    return value


def _digest(of: Mapping[str, Any], where: str, key: str = "sha256") -> None:
    if not _SHA256.fullmatch(_text(of, key, where)):
        raise _Wrong(f"{where}.{key} is no SHA-256")
