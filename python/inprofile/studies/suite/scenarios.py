"""The scenarios of a suite: experiment files that come with Inprofile, and what is told of each."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...experiment.mechanisms import UnknownSenderError, all_senders, sender
from ...experiment.scenario import Scenario, ScenarioError, load, texts
from ...run.storage import replace_files
from .matrix import Matrix, Sender

HERE = Path(__file__).parent
SUITES = ("rfc7928", "l4s")
_TABLE = "suite.toml"
_ACRONYMS = ("ecn", "rtt", "tcp")


class UnknownScenarioError(LookupError):
    """No scenario of that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        super().__init__(f'there is no scenario "{name}": {hint}Choose from {", ".join(known)}')


class UnknownTcpError(LookupError):
    """No TCP of that name."""

    def __init__(self, name: str, known: Sequence[Tcp]) -> None:
        titles = {t.id: t.title for t in known}
        titles |= {s.id: s.title for s in all_senders() if s.id not in titles}
        there = ", ".join(f"{i} ({title})" for i, title in titles.items())
        super().__init__(
            f'there is no TCP "{name}": choose from {there}; or write files by --files, and change them'
            if known
            else f'--tcp "{name}": this suite\'s experiments have senders of their own; leave --tcp out,'
            " or write files by --files, and change them"
        )


@dataclass(frozen=True)
class Tcp:
    """A TCP that standard senders can have."""

    id: str
    title: str
    #: What it changes in an experiment.
    set: Mapping[str, object]


@dataclass(frozen=True)
class Beside:
    """The queue put before another queue of a scenario, where contestants stand before its own."""

    queue: str
    #: The contestant itself, with this factor of the parameter that sets its delay; or
    control: float | None = None
    #: each of these in turn.
    contestants: Sequence[str] = ()


@dataclass(frozen=True)
class Phase:
    """A part of a run that is told apart."""

    name: str
    #: The first time, in seconds.
    start: float
    end: float
    #: After how many seconds it comes again.
    every: float

    def has(self, t: float, width: float) -> bool:
        """Whether a period of this length that ends at `t` lies within it."""
        since = (t - width - self.start) % self.every
        return t - width >= self.start and since + width <= self.end - self.start + 1e-9


@dataclass(frozen=True)
class Definition:
    """One scenario."""

    id: str
    section: str
    #: How much it weighs, in the words of RFC 7928, Figure 4.
    weight: str
    text: str
    measures: Sequence[str]
    #: The experiment's file, without `.toml`.
    file: str
    #: Where contestants are put.
    queues: Sequence[str] = ("bottleneck",)
    groups: Sequence[str] = ()
    #: Whether the graph of goodput over delay is drawn of each group, too.
    each: bool = False
    phases: Sequence[Phase] = ()
    #: An experiment for each value of a key.
    vary: Mapping[str, Any] | None = None
    #: Factors of every numeric parameter of a discipline.
    sensitivity: Sequence[float] = ()
    #: Factors of the one parameter that sets a discipline's delay.
    control: Sequence[float] = ()
    beside: Beside | None = None
    matrix: Matrix | None = None
    ecn: bool = False
    #: The congestion control that its senders need.
    needs: str = ""
    #: What it is called; default: its name.
    title: str = ""
    #: Not shortened by a quick suite.
    whole: bool = False

    @property
    def name(self) -> str:
        """Its name in words, such as "RTT fairness"."""
        words = [word.upper() if word in _ACRONYMS else word for word in self.id.split("-")]
        text = " ".join(words)
        return text[:1].upper() + text[1:]

    @property
    def heading(self) -> str:
        """Its section and name, or what it is called."""
        return self.title or f"{self.section} {self.name}"

    @property
    def variants(self) -> Sequence[str]:
        """Values of what is varied; one without a name where nothing is."""
        if self.vary:
            return tuple(self.vary["values"])
        if self.matrix is not None:
            return [point.name for point in self.matrix.points()]
        if self.beside is not None and self.beside.contestants:
            return self.beside.contestants
        return tuple(f"{factor:g}" for factor in self.control) or ("",)


@dataclass(frozen=True)
class About:
    """A suite."""

    name: str
    title: str
    folder: Path
    epsilon: float
    runs: Mapping[str, Any]
    definitions: Sequence[Definition] = field(default_factory=tuple)
    #: What standard senders can have; the first unless another is asked for.
    tcps: Sequence[Tcp] = field(default_factory=tuple)
    #: Of pairs: congestion controls by name.
    senders: Mapping[str, Sender] = field(default_factory=dict)
    #: Who takes part unless others are named; empty for everybody.
    contestants: Sequence[str] = ()
    #: What its page says: heading, contestants, checklist, weight, notes.
    words: Mapping[str, Any] = field(default_factory=dict)

    def tcp(self, name: str | None) -> Tcp:
        """One of them, or any sender, by name; default: as the files have it. Raises `UnknownTcpError`."""
        if name is None:
            return self.tcps[0] if self.tcps else Tcp("files", "as each experiment has them", {})
        if not self.tcps:
            raise UnknownTcpError(name, ())
        for tcp in self.tcps:
            if tcp.id == name:
                return tcp
        try:
            found = sender(name)
        except UnknownSenderError:
            raise UnknownTcpError(name, self.tcps) from None
        return Tcp(found.id, found.title, found.changes)

    def texts(self, definition: Definition) -> dict[str, str]:
        """The experiment file of a scenario and those that it extends, each with its text."""
        return {Path(file).name: text for file, text in texts(self.folder / f"{definition.file}.toml")}

    def load(self, definition: Definition) -> Scenario:
        """The experiment of a scenario. Raises `ScenarioError` where this version cannot run it."""
        return load(self.folder / f"{definition.file}.toml")

    def lacks(self, definition: Definition) -> str | None:
        """The feature that this version lacks to run a scenario; None where it can be run.

        Raises `ScenarioError` where anything else is wrong with its experiment.
        """
        try:
            self.load(definition)
        except ScenarioError as error:
            asked = [p for p in error.problems if p.severity == "error"]
            if definition.needs and all(".tcp." in p.path for p in asked):
                return f'needs congestion = "{definition.needs}", which this version does not have'
            raise
        return None


def read(name: str, folder: Path | None = None) -> About:
    """A suite by name; its files from `folder` where one is given (what `write_files` wrote, changed or not).

    Raises OSError where they are not there, ValueError where its table does not fit together or is another
    suite's.
    """
    own = HERE / name
    place = (folder or own) / _TABLE
    try:
        table = tomllib.loads(place.read_text("utf-8"))
        about = _about(name, folder or own, table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{place}: this is no TOML: {error}") from None
    except KeyError as error:
        raise ValueError(
            f"{place}: {error.args[0]} is missing: write it as in the table that --files EMPTY_FOLDER writes"
        ) from None
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{place}: {error}") from None
    if folder is not None:
        for other in SUITES:
            if (
                other != name
                and about.title == tomllib.loads((HERE / other / _TABLE).read_text("utf-8"))["title"]
            ):
                raise ValueError(
                    f"{folder} has the files of the suite {other}: write inprofile suite {other} --files"
                    f" {folder}, or another folder for {name}"
                )
    return about


def _about(name: str, folder: Path, table: Mapping[str, Any]) -> About:
    """The content of `suite.toml`."""
    made = []
    for one in table["scenarios"]:
        given = dict(one)
        phases = [Phase(p["name"], p["from"], p["to"], p["every"]) for p in given.pop("phases", ())]
        given.setdefault("file", given["id"])
        try:
            if "beside" in given:
                given["beside"] = Beside(**given["beside"])
            if "matrix" in given:
                given["matrix"] = Matrix(**given["matrix"])
            made.append(Definition(**given, phases=phases))
        except TypeError as error:
            raise ValueError(f"{folder / _TABLE}, scenario {one.get('id')}: {error}") from None
    tcps = tuple(Tcp(**one) for one in table.get("tcp", ()))
    senders = {one["id"]: Sender(**one) for one in table.get("senders", ())}
    runs = dict(table["runs"])
    everybody = tuple(runs.pop("contestants", ()))
    epsilon = float(table["epsilon"])
    title, words = table["title"], table["page"]
    return About(name, title, folder, epsilon, runs, tuple(made), tcps, senders, everybody, words)


def choose(about: About, names: Sequence[str] | None) -> list[Definition]:
    """Scenarios by name or section, in their own order; default: all. Raises `UnknownScenarioError`."""
    known = [d.id for d in about.definitions]
    for name in names or ():
        if not any(_is(d, name) for d in about.definitions):
            raise UnknownScenarioError(name, known)
    return [d for d in about.definitions if names is None or any(_is(d, name) for name in names)]


def _is(scenario: Definition, name: str) -> bool:
    """By its name, its section, or the one that its section is part of."""
    return name in (scenario.id, scenario.section) or scenario.section.startswith(f"{name}.")


def write_files(about: About, folder: Path) -> list[Path]:
    """Write the experiment files and the table, to be read, changed and run from there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = files_of(about, folder)
    replace_files(files)
    return list(files)


def files_of(about: About, folder: Path) -> dict[Path, bytes]:
    """The experiment files and the table, as they would be in a folder."""
    return {folder / source.name: source.read_bytes() for source in sorted(about.folder.glob("*.toml"))}
