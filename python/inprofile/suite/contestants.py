"""Who takes part: schemes of the comparison, and every registered discipline that needs no settings.

A contestant is put before the links that a scenario names, with the limits that its file has there; nothing
else of an experiment differs.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..compare.schemes import Place, Scheme
from ..compare.schemes import choose as schemes
from ..mechanisms import Mechanism, mechanisms

if TYPE_CHECKING:
    from ..scenario import Scenario

__all__ = [
    "DROP_TAIL",
    "Contestant",
    "UnknownContestantError",
    "choose",
    "contestants",
    "left_out",
    "settings",
]

HERE = Path(__file__).parent
#: What every contestant is compared with (RFC 7928 §1.2).
DROP_TAIL = "drop-tail"
_SCALABLE = ("rate", "duration", "bytes", "backlog", "number", "count")
_AMOUNT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*)", re.DOTALL)


class UnknownContestantError(LookupError):
    """No contestant of that name."""

    def __init__(self, name: str) -> None:
        known = [c.id for c in contestants()]
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        why = f": it {left_out()[name]}" if name in left_out() else ""
        super().__init__(f'nobody called "{name}" takes part{why}. {hint}Choose from {", ".join(known)}')


@cache
def _about() -> dict[str, Any]:
    return tomllib.loads((HERE / "contestants.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Contestant:
    """A discipline, or a scheme of markers and a discipline."""

    id: str
    title: str
    text: str
    scheme: Scheme
    #: The discipline's own parameters by name; empty where it is not registered.
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def aqm(self) -> str:
        """Its discipline's name in the registry."""
        return str(self.scheme.queue["aqm"])

    def values(
        self,
        scenario: Scenario,
        file: Mapping[str, Any],
        queues: Sequence[str],
        changes: Mapping[str, object] | None = None,
        *,
        ecn: bool = False,
    ) -> dict[str, object]:
        """Overrides that put it before these links of an experiment, whose text is `file`.

        `changes` are parameters of the discipline that differ, by dotted name; `ecn` turns ECN on where the
        discipline has it.
        """
        place = Place.of(scenario)
        length = float(_about()["tuning"]["t"].removesuffix(" ms")) / 1e3
        values = self.scheme.values(place, length)
        values.pop("monitors")
        values.pop(f"links.{place.link}.queue")
        own = self.scheme.filled(self.scheme.queue, place, length)
        if ecn and self.has_ecn:
            own = {**own, _about()["ecn"]["key"]: True}
        for name, value in (changes or {}).items():
            own = _with(own, name.split("."), self.scheme.filled(value, place, length))
        for where in queues:
            key, queue = _queue_of(file, where)
            if "classes" in queue:
                each = [{**own, **{k: c[k] for k in c if k != "aqm"}} for c in queue["classes"]]
                values[key] = {**queue, "classes": each}
            else:
                values[key] = {**own, "limit": queue["limit"]}
        return values

    @property
    def has_ecn(self) -> bool:
        """Whether its discipline marks where it is told to."""
        return self.parameters.get(_about()["ecn"]["key"]) == "flag"


def _queue_of(file: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
    """The key of a queue, and the queue: `bottleneck`, `bottleneck.reverse` or `bottleneck/*`."""
    name, _, way = where.removesuffix("/*").partition(".")
    link = next(one for one in file["links"] if one["name"] == name)
    if way:
        return f"links.{name}.reverse.queue", link["reverse"]["queue"]
    return f"links.{name}.queue", link["queue"]


def _with(values: Mapping[str, Any], path: Sequence[str], value: object) -> dict[str, Any]:
    first, *rest = path
    return {**values, first: _with(values.get(first, {}), rest, value) if rest else value}


@cache
def _registered() -> dict[str, Mechanism]:
    return {m.name: m for m in mechanisms() if m.kind == "aqm"}


def _kinds(aqm: str) -> dict[str, str]:
    return {p.name: p.kind for p in _registered()[aqm].parameters}


@cache
def contestants() -> tuple[Contestant, ...]:
    """Everybody: schemes first, drop-tail at the head of them, then other disciplines by name.

    >>> [c.id for c in contestants()][:3]
    ['drop-tail', 'red', 'rio']
    """
    known = schemes()
    made = [Contestant(s.id, s.title, s.text, s, _kinds(str(s.queue["aqm"]))) for s in known]
    for name in sorted(_registered()):
        if name not in _standing() and name not in left_out():
            m = _registered()[name]
            scheme = Scheme(id=name, title=_title(name), text=m.summary, queue={"aqm": name, **_given(name)})
            made.append(Contestant(name, scheme.title, f"{m.summary} ({m.source})", scheme, _kinds(name)))
    return tuple(made)


def _standing() -> set[str]:
    """Disciplines that schemes stand for."""
    return {str(s.queue["aqm"]) for s in schemes()}


def _given(name: str) -> dict[str, Any]:
    found = [d for d in _about()["disciplines"] if d["name"] == name]
    return dict(found[0].get("settings", {})) if found else {}


@cache
def left_out() -> dict[str, str]:
    """Disciplines that take no part, and why."""
    skipped = {d["name"]: d["skip"] for d in _about()["disciplines"] if "skip" in d}
    found = {}
    for name, mechanism in sorted(_registered().items()):
        if name in _standing():
            continue
        needed = [p.name for p in mechanism.parameters if p.default is None and p.name not in _given(name)]
        if name in skipped:
            found[name] = f"is {skipped[name]}"
        elif needed:
            found[name] = f"needs {', '.join(needed)}, which contestants.toml does not give"
    return found


def _title(name: str) -> str:
    """A discipline's name as people write it.

    >>> _title("fq_codel"), _title("pie"), _title("my_own")
    ('FQ-CoDel', 'PIE', 'my_own')
    """
    known = (
        "FQ-CoDel",
        "FQ-PIE",
        "CoDel",
        "PIE",
        "PI2",
        "DualPI2",
        "COBALT",
        "CHOKe",
        "SFQ",
        "SFB",
        "ARED",
        "Curvy RED",
    )
    return {k.lower().replace("-", "_").replace(" ", "_"): k for k in known}.get(name, name)


def choose(names: Sequence[str] | None = None) -> list[Contestant]:
    """Contestants by name, in their own order and always with drop-tail; all if left out.

    Raises `UnknownContestantError`.
    """
    known = [c.id for c in contestants()]
    asked = (
        None if names is None else [n.replace("_", "-") if n.replace("_", "-") in known else n for n in names]
    )
    for name in asked or ():
        if name not in known:
            raise UnknownContestantError(name)
    return [c for c in contestants() if asked is None or c.id in asked or c.id == DROP_TAIL]


def settings(
    contestant: Contestant, queue: Mapping[str, Any], factors: Sequence[float]
) -> Iterator[tuple[str, str]]:
    """Each numeric parameter of its discipline with its value times each factor, as it would be written.

    `queue` is its queue as the effective experiment has it, every default filled in; what depends on others
    there (a value with `from`) is left alone.
    """
    for name, kind in contestant.parameters.items():
        value = _found(contestant.scheme.queue, name)
        if value is None:
            value = _default(contestant.aqm, name)
        if kind not in _SCALABLE or value is None or name not in _flat(queue):
            continue
        for factor in factors:
            if (scaled := _scaled(value, factor, whole=kind == "count")) is not None:
                yield name, scaled


def _found(values: Mapping[str, Any], name: str) -> Any:
    found: Any = values
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _default(aqm: str, name: str) -> str | None:
    return next((p.default for p in _registered()[aqm].parameters if p.name == name), None)


def _flat(values: Mapping[str, Any], before: str = "") -> set[str]:
    found = set()
    for key, value in values.items():
        found.add(before + key)
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{key}.")
    return found


def _scaled(value: object, factor: float, *, whole: bool = False) -> str | None:
    """A value as it would be written, times a factor; None where it is no amount, or zero.

    >>> _scaled("15 ms", 2.0), _scaled(0.125, 0.5), _scaled("0.667 T", 0.5), _scaled("auto", 2.0)
    ('"30 ms"', '0.0625', '"0.3335 T"', None)
    """
    match = _AMOUNT.fullmatch(str(value).strip('"'))
    if match is None or float(match[1]) == 0:
        return None
    amount = float(match[1]) * factor
    if whole:
        return str(max(1, round(amount)))
    return f'"{amount:.6g} {match[2]}"' if match[2] else f"{amount:.6g}"
