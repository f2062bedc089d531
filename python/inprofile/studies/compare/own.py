"""How a mechanism of one's own takes part where no file of schemes has it: it says itself what is tuned."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...experiment.mechanisms import Mechanism, Parameter
from ...metrics.quantity import bits_per_second, in_seconds
from ...own.classes import Mechanism as Class
from .schemes import Scheme, about, is_length
from .settings import Over

#: What a range of a parameter is written in, by its kind, and how many base units that is.
_UNITS: Mapping[str, tuple[str, float]] = {
    "duration": (" ms", 1e-3),
    "rate": (" Mbit/s", 1e6),
    "bytes": (" B", 1.0),
    "number": ("", 1.0),
    "count": ("", 1.0),
}


class TuneError(ValueError):
    """A class that does not say what is tuned of it, or says it of something that is not there."""


def own_scheme(entry: Mechanism, cls: type[Class]) -> Scheme:
    """The scheme of a registered class.

    A marker marks flows with a contract, before RIO, and all others are OUT; what its `tune` names moves
    along with RIO's thresholds, which T sets. Of a queue discipline T sets what `tune` names, and the limit
    is far off unless it is named. A class with nothing that could be tuned needs no `tune`: of a queue
    discipline T is the limit then. Raises TuneError.
    """
    known = {s["id"]: Scheme(**s) for s in about()["schemes"]}
    text: dict[str, Any] = {"id": entry.name, "title": entry.name, "text": entry.summary}
    tuned = _tuned(entry, cls)
    if entry.kind == "marker":
        return replace(known["rio"], **text, flows={"kind": entry.name, **tuned}, plan={})
    queue = {"aqm": entry.name, "limit": "4 longest T" if tuned else "1 T", **tuned}
    return replace(known["drop-tail"], **text, queue=queue)


def _tuned(entry: Mechanism, cls: type[Class]) -> dict[str, Any]:
    """The parameters that are tuned, each as a scheme writes it."""
    able = [p for p in entry.parameters if p.kind in _UNITS]
    if cls.tune is None:
        if able:
            raise TuneError(_ask(entry, cls, able))
        return {}
    named = {p.name: p for p in able}
    if not isinstance(cls.tune, Mapping):
        raise TuneError(f"{_where(cls)}: tune is no dictionary: {_example(able)}")
    made = {}
    for key, text in cls.tune.items():
        if key not in named and (key != "limit" or entry.kind == "marker"):
            known = [*named, *(["limit"] if entry.kind == "aqm" else [])]
            raise TuneError(
                f'{_where(cls)}: tune names "{key}", which is nothing that could be tuned: choose from'
                f" {', '.join(known) or 'nothing; remove tune'}"
            )
        made[key] = _value(key, text, named.get(key), cls)
    if not made and entry.kind == "aqm":
        raise TuneError(f"{_where(cls)}: tune is empty, and every scheme is tuned: {_example(able)}")
    return made


def _value(key: str, text: object, parameter: Parameter | None, cls: type[Class]) -> str:
    """A range, which is gone through as T is, or a length of T."""
    if isinstance(text, str):
        timed = text if " as time" in text else f"{text} as time"
        if parameter is None and is_length(text):
            return text
        # Of a parameter with a unit of time T is one, whether or not it is said.
        if parameter is not None and parameter.kind == "duration" and is_length(timed):
            return timed
        whole = " whole" if parameter is not None and parameter.kind in ("count", "bytes") else ""
        over = f"{text}{whole} over T"
        if Over.of(over):
            return over
    lengths = (
        ', or a length of T such as "1/2 T"' if parameter is None or parameter.kind == "duration" else ""
    )
    raise TuneError(
        f'{_where(cls)}: tune = {{"{key}": {text!r}}} is no range: write one such as'
        f' "{_range(parameter) if parameter else "1 T"}"{lengths}'
    )


def _ask(entry: Mechanism, cls: type[Class], able: Sequence[Parameter]) -> str:
    what = ", ".join(p.name for p in able)
    also = ' or, where only its limit matters, tune = {"limit": "1 T"}' if entry.kind == "aqm" else ""
    none = (
        " or tune = {} where only the thresholds of the queue behind it are" if entry.kind == "marker" else ""
    )
    return (
        f"{_where(cls)}: it does not say which of its parameters ({what}) is tuned, and every scheme is"
        f" tuned with the same number of values\n  write in the class: {_example(able)}{also}{none}"
    )


def _example(able: Sequence[Parameter]) -> str:
    if not able:
        return 'write tune = {"limit": "1 T"}, or remove it'
    return f'tune = {{"{able[0].name}": "{_range(able[0])}"}}'


def _range(parameter: Parameter) -> str:
    """A decade around the default, within the bounds: what a class might write.

    >>> from inprofile.experiment.mechanisms import Parameter
    >>> _range(Parameter("most", "duration", "s", "0.001 s or more", '"100 ms"', ""))
    '31.6..316 ms log'
    """
    unit, base = _UNITS[parameter.kind]
    default = _number(parameter.default) / base
    low, high = default / math.sqrt(10), default * math.sqrt(10)
    if not default > 0:
        low, high = 1.0, 10.0
    bounds = [float(x) / base for x in re.findall(r"[0-9.]+(?:e-?[0-9]+)?", parameter.bounds or "")]
    low = max([low, *bounds[:1]]) if bounds and bounds[0] < high else low
    high = min([high, *bounds[1:2]])
    shown = (
        f"{max(1, round(x))}" if parameter.kind in ("count", "bytes") else f"{x:.3g}" for x in (low, high)
    )
    return f"{'..'.join(shown)}{unit} log"


def _number(default: str | None) -> float:
    """A default as the registry writes it, in base units; 0 where there is none."""
    text = (default or "").strip('"')
    for convert in (float, bits_per_second, in_seconds):
        try:
            return convert(text.removesuffix(" B"))
        except (ValueError, LookupError):
            continue
    return 0.0


def _where(cls: type[Class]) -> str:
    """The class with its file and line, as far as they are known."""
    try:
        file, line = inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        return cls.__name__
    return f"{file}:{line}: {cls.__name__}"
