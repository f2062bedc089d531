"""Which classes experiments may name: checked when they are registered, and handed to the engine.

Results hold their code: its file's name, text and digests. It is read by people and registered by them;
nothing here runs what a result brings along.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from .. import _internal
from .classes import Aqm, Bytes, Declared, Duration, Marker, Mechanism, Rate, digest, source

#: How a parameter is read, by its type.
_KINDS: Final = {
    bool: "flag",
    int: "count",
    float: "number",
    Rate: "rate",
    Duration: "duration",
    Bytes: "bytes",
}
_MOST_COUNT = 2**64 - 1

#: The methods the engine knows, and how many arguments each is called with.
_HOOKS: Final = {
    "mark": 3,
    "arrive": 4,
    "depart": 5,
    "observe": 3,
    "tick": 2,
    "signal": 4,
    "gauges": 1,
    "flow_gauges": 1,
    "stats": 0,
}


@dataclass(frozen=True)
class _Registered:
    cls: type[Mechanism]
    inner: _internal.Own
    digest: str
    written: tuple[str, str | None]
    spent: list[float] = field(default_factory=lambda: [0.0])


_REGISTERED: dict[str, _Registered] = {}


def register(cls: type[Mechanism]) -> str:
    """Let experiments name this class, from now on and in this process; the name.

    Registered again under its name, as from a notebook's cell, a class takes the place of the one before.
    Raises TypeError or ValueError, with what to write instead, for a class that cannot be one.
    """
    if not (isinstance(cls, type) and issubclass(cls, Marker | Aqm)) or cls in (Marker, Aqm):
        raise TypeError(f"{cls!r} is no class of its own that derives from inprofile.Marker or inprofile.Aqm")
    if issubclass(cls, Marker) and issubclass(cls, Aqm):
        raise TypeError(f"{cls.__name__} derives from both Marker and Aqm: write two classes")
    name = (
        cls.__dict__.get("name")
        or re.sub(r"(?<!^)(?=[A-Z][a-z]|(?<=[a-z0-9])[A-Z])", "_", cls.__name__).lower()
    )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            f'{cls.__name__}: name = "{name}" has to be lower-case letters, digits and underscores'
        )
    if name in built_in():
        raise ValueError(f'{cls.__name__}: there is a mechanism called "{name}" already; set name to another')
    hooks = _hooks(cls)
    fields = [_parameter(cls, *declared) for declared in _declared(cls)]
    defaults = {given[0]: given[3] for given in fields}

    def make(parameters: Mapping[str, Any], place: Mapping[str, Any]) -> Mechanism:
        made = cls()
        vars(made).update(defaults)
        vars(made).update(parameters)
        vars(made).update(place)
        made.setup()
        return made

    summary = (
        inspect.cleandoc(cls.__doc__ or "").split("\n")[0]
        if cls.__dict__.get("__doc__")
        else "A mechanism in Python."
    )
    kind = "marker" if issubclass(cls, Marker) else "aqm"
    inner = _internal.Own(name, kind, summary, cls.source, fields, hooks, cls.oracle, make)
    _REGISTERED[name] = _Registered(cls, inner, digest(cls), source(cls))
    return name


def registered() -> dict[str, type[Mechanism]]:
    """The classes that experiments may name, by name."""
    return {name: entry.cls for name, entry in _REGISTERED.items()}


@dataclass(frozen=True)
class Cost:
    """The cost of a class's decisions in this process."""

    decisions: int
    """How many, in all runs."""
    cpu: float
    """CPU seconds of the runs with it, simulator included."""

    def __str__(self) -> str:
        rate = f": {self.decisions / self.cpu:,.0f} a CPU second" if self.decisions and self.cpu else ""
        return f"{self.decisions:,} decisions in {self.cpu:.2f} CPU s{rate}"


def cost(name: str) -> Cost:
    """The cost of a registered class's decisions; KeyError for a name that is not registered."""
    entry = _REGISTERED[name]
    return Cost(entry.inner.decisions(), entry.spent[0])


def spent(names: Iterable[str], cpu: float) -> None:
    """Count so many CPU seconds of runs with these classes."""
    for name in names:
        _REGISTERED[name].spent[0] += cpu


def load_classes(path: str | Path, text: bytes | None = None) -> list[str]:
    """Register every class of a Python file that derives from `Marker` or `Aqm`; their names.

    The file is run, as `python FILE` would: what it says, or `text`, what it said when it was looked at, but
    nothing that lies compiled beside it. Raises ValueError where there is no such class, OSError,
    ImportError, or whatever the file itself raises.
    """
    import hashlib

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no such file: {path}")
    key = f"inprofile_own_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(key, path)
    if spec is None or path.suffix != ".py":
        how = (
            f"a wheel is installed (pip install {path.name}), and its mechanisms are then there by name"
            if path.suffix == ".whl"
            else "give a Python file, whose name ends in .py"
        )
        raise ImportError(f"{path}: {how}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        exec(compile(path.read_bytes() if text is None else text, path, "exec"), vars(module))  # noqa: S102
    except BaseException:
        del sys.modules[key]
        raise
    found = [
        c
        for c in vars(module).values()
        if isinstance(c, type) and issubclass(c, Marker | Aqm) and c.__module__ == key
    ]
    if not found:
        raise ValueError(f"{path}: it has no class that derives from inprofile.Marker or inprofile.Aqm")
    return [register(cls) for cls in found]


def engine_classes() -> list[_internal.Own]:
    """As the engine takes them."""
    return [entry.inner for entry in _REGISTERED.values()]


def digests(names: list[str]) -> dict[str, str]:
    """SHA-256 of the code of these classes: part of what an experiment is."""
    return {name: _REGISTERED[name].digest for name in sorted(names)}


def written(name: str) -> tuple[str, str | None]:
    """The name of a class's file and its text when it was registered; see `code.source`."""
    return _REGISTERED[name].written


def files(names: list[str]) -> list[tuple[str, str]]:
    """The files of these classes, name and text, for another process to load.

    Raises ValueError for a class that is in none.
    """
    texts = {}
    for name in names:
        cls = _REGISTERED[name].cls
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None)
        if file is None:
            raise ValueError(f"{name} is not in a file: other processes cannot load it; write it to one")
        texts[Path(file).name] = Path(file).read_text(encoding="utf-8")
    return sorted(texts.items())


def built_in() -> set[str]:
    """Names of the mechanisms that the engine has."""
    return {entry["name"] for entry in json.loads(_internal.mechanisms([]))}


def _hooks(cls: type[Mechanism]) -> list[str]:
    """The engine's methods that the class has, each with the arguments it is called with."""
    base = Marker if issubclass(cls, Marker) else Aqm
    foreign = {"mark"} if base is Aqm else {"arrive", "depart"}
    hooks = []
    for name, count in _HOOKS.items():
        method = getattr(cls, name, None)
        if method is None or method is getattr(base, name, None):
            continue
        if name in foreign:
            raise TypeError(
                f"{cls.__name__}: a {base.__name__} is never asked for {name}; derive from the other class"
            )
        _takes(cls, name, method, count)
        hooks.append(name)
    needed = {"mark"} if base is Marker else {"arrive", "depart"}
    if not needed & set(hooks):
        raise TypeError(f"{cls.__name__}: write {' or '.join(sorted(needed))}, or it never decides")
    if cls.sends:
        if "tick" not in hooks:
            raise TypeError(f"{cls.__name__}: sends = True needs a tick, as only a tick sends")
        hooks.append("sends")
    return hooks


def _takes(cls: type, name: str, method: Callable[..., Any], count: int) -> None:
    try:
        inspect.signature(method).bind(*range(count + 1))
    except TypeError:
        base = getattr(Marker, name, None) or getattr(Aqm, name, None)
        wanted = f": {name}{inspect.signature(base)}" if base else ""
        raise TypeError(f"{cls.__name__}.{name} has to take self and {count} arguments{wanted}") from None


def _declared(cls: type[Mechanism]) -> Iterator[tuple[str, Any, Any]]:
    """Each parameter's name, type and default: annotated attributes whose names begin with no underscore."""
    hints = typing.get_type_hints(cls)
    own = {
        n
        for c in cls.__mro__
        if c not in Mechanism.__mro__ and c not in (Marker, Aqm)
        for n in vars(c).get("__annotations__", {})
    }
    for name, hint in hints.items():
        if name in own and not name.startswith("_") and typing.get_origin(hint) is not ClassVar:
            yield name, hint, getattr(cls, name, ...)


def _parameter(
    cls: type, name: str, hint: Any, given: Any
) -> tuple[str, str, str, Any, float | None, float | None, list[str]]:
    """A parameter as the registry takes it."""
    told = given if isinstance(given, Declared) else Declared(given, None, None, "")
    where = f"{cls.__name__}.{name}"
    words: list[str] = []
    if typing.get_origin(hint) is Literal:
        words = list(typing.get_args(hint))
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"{where}: a choice is a Literal of words")
        kind = "choice"
    else:
        try:
            kind = _KINDS[hint]
        except (KeyError, TypeError):
            raise TypeError(
                f"{where}: a parameter is bool, int, float, Rate, Duration, Bytes or a Literal of words;"
                " annotate other class attributes as ClassVar, and make state in setup"
            ) from None
    default = None if told.default is ... else told.default
    least = 0.0 if told.least is None and kind in ("count", "rate", "duration", "bytes") else told.least
    if default is not None:
        _fits(where, kind, default, words, least, told.most)
    return name, kind, told.doc or f"{name}, as the class says.", default, least, told.most, words


def _fits(
    where: str, kind: str, default: Any, words: list[str], least: float | None, most: float | None
) -> None:
    if kind == "choice":
        right = default in words
    elif kind == "flag":
        right = isinstance(default, bool)
    else:
        number = isinstance(default, int | float) and not isinstance(default, bool)
        whole = kind not in ("count", "bytes") or (isinstance(default, int) and default <= _MOST_COUNT)
        right = number and whole and (least is None or default >= least) and (most is None or default <= most)
    if not right:
        raise ValueError(f"{where}: the default {default!r} is not what the parameter may be")


@dataclass(frozen=True)
class Source:
    """A file with mechanisms."""

    file: str
    """Its name; empty for what was typed into a session."""
    text: str | None
    """Its text when the classes were registered; None where that is not known."""
    mechanisms: Mapping[str, str]
    """The mechanisms in it that an experiment names, with the SHA-256 that its results have of them."""

    def to_json(self) -> dict[str, Any]:
        """As a result holds it."""
        return {"file": self.file, "text": self.text, "mechanisms": dict(self.mechanisms)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Source:
        """As it was stored. Raises KeyError, TypeError."""
        text = stored["text"]
        named = {str(name): str(sha) for name, sha in stored["mechanisms"].items()}
        return cls(str(stored["file"]), None if text is None else str(text), named)


def sources_of(names: Iterable[str]) -> tuple[Source, ...]:
    """The files of these registered classes, in the order of their names."""
    found: dict[tuple[str, str | None], dict[str, str]] = {}
    for name, sha in digests(list(names)).items():
        found.setdefault(written(name), {})[name] = sha
    return tuple(Source(*key, mechanisms) for key, mechanisms in found.items())


def absent(sources: Sequence[Source]) -> str:
    """The code that is not registered as it was, and where it can be found; empty where all of it is."""
    here = digests(list(registered()))
    said = []
    for one in sources:
        for name, sha in one.mechanisms.items():
            if here.get(name) == sha:
                continue
            where = f"in {one.file}" if one.file else "typed into a session"
            now = f"other code here, SHA-256 {here[name]}" if name in here else "not registered here"
            said.append(f"{name}, a mechanism in Python, is {now}: it was {where}, SHA-256 {sha}")
    if said:
        said.append(
            "the result holds its text: read it, write it out with inprofile.own.write_sources, and register"
            " it with inprofile.own.load_classes or --mechanism"
            if all(one.text is not None for one in sources)
            else "the result does not hold its text: find the file, and name it with --mechanism"
        )
    return "\n  ".join(said)


def write_sources(sources: Iterable[Source], folder: str | Path) -> list[Path]:
    """Write the files of a result's mechanisms into a folder: `Provenance.sources`, `Sweep.sources`.

    Raises FileExistsError where a file is there already.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for number, one in enumerate(sources):
        if one.text is not None:
            # A result may come from anywhere: of its names only the last part counts.
            name = Path(one.file).name
            if not name.endswith(".py"):
                name = f"session{number or ''}.py"
            with (place / name).open("x", encoding="utf-8") as file:
                file.write(one.text)
            made.append(place / name)
    return made
