"""Who takes part: schemes of the comparison, and every registered discipline that needs no settings.

A contestant is put before the links that a scenario names, with the limits that its file has there; nothing
else of an experiment differs. A class of one's own takes part at its defaults: a discipline by itself, a
marker before RIO.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...experiment.mechanisms import Mechanism, Parameter, mechanisms
from ...metrics.quantity import bits_per_second
from ...own.classes import Aqm
from ...own.registry import registered
from ..compare.schemes import Place, Scheme
from ..compare.schemes import choose as schemes

if TYPE_CHECKING:
    from ...experiment.scenario import Scenario
    from ...own.classes import Mechanism as Class

HERE = Path(__file__).parent
#: What every contestant is compared with (RFC 7928 §1.2).
DROP_TAIL = "drop-tail"
_SCALABLE = ("rate", "duration", "bytes", "backlog", "number", "count")
_AMOUNT = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*)", re.DOTALL)


class UnknownContestantError(LookupError):
    """No contestant of that name."""

    def __init__(self, name: str, own: Sequence[str] = ()) -> None:
        known = [c.id for c in contestants(own)]
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        why = f": it {left_out()[name]}" if name in left_out() else ""
        super().__init__(f'there is no contestant "{name}"{why}. {hint}Choose from {", ".join(known)}')


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
    #: The parameter that sets its delay: "T", one of its own, or none.
    control: str = ""
    #: Whether packets are dropped as they arrive or as they depart.
    decides: str = ""

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
        control: float = 1.0,
    ) -> dict[str, object]:
        """Overrides that put it before these links of an experiment, whose text is `file`.

        `changes` are parameters of the discipline that differ, by dotted name; `ecn` turns ECN on where the
        discipline has it; `control` is a factor of the parameter that sets its delay.
        """
        place = Place.of(scenario)
        values = self.scheme.values(place, control * _length(place))
        values.pop("monitors")
        values.pop(f"links.{place.link}.queue")
        values.update(self.queues(scenario, file, queues, changes, ecn=ecn, control=control))
        return values

    def queues(
        self,
        scenario: Scenario,
        file: Mapping[str, Any],
        queues: Sequence[str],
        changes: Mapping[str, object] | None = None,
        *,
        ecn: bool = False,
        control: float = 1.0,
    ) -> dict[str, object]:
        """The same without markers: its discipline alone, each queue's T by the rate of its own link."""
        values: dict[str, object] = {}
        measured = Place.of(scenario)
        for where in queues:
            key, queue, rate = _queue_of(file, where)
            bits = measured.packet_time * bits_per_second(measured.rate)
            place = replace(measured, rate=rate, packet_time=bits / bits_per_second(rate))
            length = _length(place) * (control if self.control == "T" else 1.0)
            own = self.scheme.filled(self.scheme.queue, place, length)
            if ecn and self.has_ecn:
                own = {**own, _about()["ecn"]["key"]: True}
            for name, value in {**self._controlled(control), **(changes or {})}.items():
                own = _with(own, name.split("."), self.scheme.filled(value, place, length))
            if "classes" in queue:
                each = [{**own, **{k: c[k] for k in c if k != "aqm"}} for c in queue["classes"]]
                values[key] = {**queue, "classes": each}
            else:
                values[key] = {**own, "limit": queue["limit"]}
        return values

    def _controlled(self, factor: float) -> dict[str, object]:
        """Its own parameter that sets its delay, times a factor."""
        if factor == 1.0 or self.control in ("", "T"):
            return {}
        value = _found(self.scheme.queue, self.control) or _default(self.aqm, self.control)
        scaled = _scaled(value, factor)
        if scaled is None:
            raise ValueError(f"contestants.toml: {self.control} of {self.aqm} is {value}, which is no amount")
        return {self.control: scaled.strip('"') if scaled.startswith('"') else float(scaled)}

    def default(self, parameter: str) -> str | None:
        """A parameter's own value, as it would be written."""
        return _default(self.aqm, parameter)

    @property
    def has_ecn(self) -> bool:
        """Whether its discipline marks where it is told to."""
        return self.parameters.get(_about()["ecn"]["key"]) == "flag"


def _length(place: Place) -> float:
    """T on a link, in seconds: no shorter than a few packets take."""
    tuning = _about()["tuning"]
    least = float(tuning["least"].removesuffix(" packets")) * place.packet_time
    return max(float(tuning["t"].removesuffix(" ms")) / 1e3, least)


def _queue_of(file: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any], str]:
    """A queue's key, the queue, its link's rate: of `bottleneck`, `bottleneck.reverse`, `bottleneck/*`."""
    name, _, way = where.removesuffix("/*").partition(".")
    link = next(one for one in file["links"] if one["name"] == name)
    if way:
        return f"links.{name}.reverse.queue", link["reverse"]["queue"], link["reverse"]["rate"]
    return f"links.{name}.queue", link["queue"], link["rate"]


def _with(values: Mapping[str, Any], path: Sequence[str], value: object) -> dict[str, Any]:
    first, *rest = path
    return {**values, first: _with(values.get(first, {}), rest, value) if rest else value}


@cache
def _registered() -> dict[str, Mechanism]:
    """The engine's disciplines; classes of one's own come and go."""
    return {m.name: m for m in mechanisms() if m.kind == "aqm" and m.name not in registered()}


def _parameters(aqm: str) -> tuple[Parameter, ...]:
    known = _registered().get(aqm) or next(m for m in mechanisms() if m.name == aqm)
    return known.parameters


def _kinds(aqm: str) -> dict[str, str]:
    return {p.name: p.kind for p in _parameters(aqm)}


def contestants(own: Sequence[str] = ()) -> tuple[Contestant, ...]:
    """Everybody: schemes first, drop-tail at the head of them, then other disciplines by name.

    `own` are registered classes that take part besides. Raises ValueError for one that lacks a default.

    >>> [c.id for c in contestants()][:3]
    ['drop-tail', 'red', 'rio']
    """
    if not own:
        return _built_in()
    mine = {m.name: m for m in mechanisms() if m.name in own}
    return (*_built_in(), *(_own(mine[name], registered()[name]) for name in own))


def _own(entry: Mechanism, cls: type[Class]) -> Contestant:
    """A class at its defaults. What sets a discipline's delay is the one parameter that its `tune` names."""
    if needed := [p.name for p in entry.parameters if p.default is None]:
        raise ValueError(
            f"{entry.name}: {', '.join(needed)} ha{'s' if len(needed) == 1 else 've'} no default, and a suite"
            f" takes every discipline as it is: write {needed[0]} = parameter(VALUE) in {cls.__name__}"
        )
    text = f"{entry.summary} ({entry.source})"
    if entry.kind == "marker":
        rio = next(c for c in _built_in() if c.id == "rio")
        scheme = replace(
            rio.scheme, id=entry.name, title=entry.name, text=entry.summary, flows={"kind": entry.name}
        )
        return replace(rio, id=entry.name, title=f"{entry.name} + RIO", text=text, scheme=scheme)
    kinds = {p.name: p.kind for p in entry.parameters}
    scheme = Scheme(id=entry.name, title=entry.name, text=entry.summary, queue={"aqm": entry.name})
    tuned = [name for name in cls.tune or () if kinds.get(name) in _SCALABLE]
    when = {"arrive": "arrival", "depart": "departure"}
    decides = " and ".join(
        word for hook, word in when.items() if getattr(cls, hook) is not getattr(Aqm, hook)
    )
    return Contestant(
        entry.name, entry.name, text, scheme, kinds, tuned[0] if len(tuned) == 1 else "", decides
    )


@cache
def _built_in() -> tuple[Contestant, ...]:
    known = [s for s in schemes() if _stands(s)]
    made = []
    for s in known:
        aqm = str(s.queue["aqm"])
        # A scheme's T is no more than the queue's limit for drop-tail, and limits are the experiment's.
        control = "T" if "T" in str({k: v for k, v in s.queue.items() if k != "limit"}) else ""
        made.append(Contestant(s.id, s.title, s.text, s, _kinds(aqm), control, _of(aqm, "decides")))
    for name in sorted(_registered()):
        if name not in _standing() and name not in left_out():
            m = _registered()[name]
            scheme = Scheme(id=name, title=_title(name), text=m.summary, queue={"aqm": name, **_given(name)})
            text = f"{m.summary} ({m.source})"
            control, decides = _of(name, "control"), _of(name, "decides")
            made.append(Contestant(name, scheme.title, text, scheme, _kinds(name), control, decides))
    return tuple(made)


def _standing() -> set[str]:
    """Disciplines that schemes stand for."""
    return {str(s.queue["aqm"]) for s in schemes() if _stands(s)}


def _stands(scheme: Scheme) -> bool:
    """Whether it takes part as a scheme: a discipline with a parameter of its own for its delay is itself."""
    return _of(str(scheme.queue["aqm"]), "control") in ("", "T")


def _entry(name: str) -> Mapping[str, Any]:
    return next((d for d in _about()["disciplines"] if d["name"] == name), {})


def _given(name: str) -> dict[str, Any]:
    return dict(_entry(name).get("settings", {}))


def _of(name: str, what: str) -> str:
    return str(_entry(name).get(what, ""))


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

    >>> _title("fq_codel"), _title("rem"), _title("ns2_sfq"), _title("my_own")
    ('FQ-CoDel', 'REM', 'SFQ of ns-2', 'my_own')
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
        "PI",
        "REM",
        "DRR",
        "FQ",
    )
    titles = {k.lower().replace("-", "_").replace(" ", "_"): k for k in known}
    of_ns2 = titles.get(name.removeprefix("ns2_")) if name.startswith("ns2_") else None
    return f"{of_ns2} of ns-2" if of_ns2 else titles.get(name, name)


def named(names: Sequence[str], own: Sequence[str] = ()) -> list[Contestant]:
    """Contestants by name, in the order of the names. Raises `UnknownContestantError`."""
    known = {c.id: c for c in contestants(own)}
    found = [n if n in known else n.replace("_", "-") for n in names]
    for asked, name in zip(names, found, strict=True):
        if name not in known:
            raise UnknownContestantError(asked, own)
    return [known[name] for name in found]


def choose(names: Sequence[str] | None = None, own: Sequence[str] = ()) -> list[Contestant]:
    """Contestants by name, in their own order, always with drop-tail and one's own; default: all.

    Raises `UnknownContestantError`, and what `contestants` raises.
    """
    always = {DROP_TAIL, *own}
    asked = None if names is None else {c.id for c in named(names, own)}
    return [c for c in contestants(own) if asked is None or c.id in asked | always]


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
    return next((p.default for p in _parameters(aqm) if p.name == name), None)


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
