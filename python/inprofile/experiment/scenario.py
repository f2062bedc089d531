"""Experiments: read from TOML, varied, checked and run."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _internal
from .._input import Problem, read_file, seeds_in_order, visible
from ..own.engine import engine_digest
from ..own.registry import absent, digests, engine_classes, sources_of
from ..run.pool import Seeds

if TYPE_CHECKING:
    from ..run.results import Provenance, Result

__all__ = ["Check", "Problem", "Scenario", "ScenarioError", "Seeds", "load", "parse"]

_CANONICAL: Mapping[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}


class ScenarioError(_internal.ScenarioError):
    """An experiment that cannot run: every problem, with its place and what to write instead."""

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def problems(self) -> list[Problem]:
        """The problems, one by one."""
        return [Problem(**problem) for problem in json.loads(self.args[1])]


@dataclass(frozen=True)
class Check:
    """An experiment as it will run: every value, defaults included, and what looks odd."""

    effective: dict[str, Any] = field(repr=False)
    """Nodes, links, flows, routes and transport, thresholds in packets, bytes and time."""
    warnings: list[Problem]
    """Allowed, but perhaps not meant."""

    def __str__(self) -> str:
        from .topology import draw, text

        return text(draw(self.effective, self.warnings))


class Scenario:
    """An experiment that has been checked and can run. It never changes: `set` and `with_` give another.

    >>> from inprofile import STARTER
    >>> scenario = parse(STARTER)
    >>> scenario
    Scenario('Four flows with a contract share a link', 10 seeds)
    >>> scenario.with_({"links.bottleneck.rate": "2 Mbit/s"}, seeds=3)
    Scenario('Four flows with a contract share a link', 3 seeds)
    """

    def __init__(
        self,
        text: str,
        file: str = "experiment",
        overrides: Iterable[tuple[str, str]] = (),
        bases: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Check `text`; raise `ScenarioError` with every problem, each with its place and remedy.

        `bases` are the files that it extends, from the nearest to the last, each with its text.
        """
        self._overrides = tuple(overrides)
        self._files = (text, file, list(bases))
        try:
            self._inner = _internal.Scenario.parse(*self._files, list(self._overrides), engine_classes())
        except _internal.ScenarioError as error:
            raise ScenarioError(*error.args) from None

    @property
    def _text(self) -> str:
        """The experiment without its overrides in one text, which runs without the files that it extends."""
        text, file, bases = self._files
        if not bases:
            return text
        names = ", ".join(visible(name) for name in (file, *self.bases))
        return f"# Of {names}, which extend one another.\n{_internal.whole(text, file, bases)}"

    @property
    def as_written(self) -> dict[str, Any]:
        """Its TOML as one table, with what it extends; overrides left out."""
        return tomllib.loads(self._text)

    @property
    def title(self) -> str:
        """Its title."""
        return self._inner.title

    @property
    def file(self) -> str:
        """The file it came from, as given."""
        return self._inner.file

    @property
    def bases(self) -> list[str]:
        """The files it extends, from the nearest to the last."""
        return [file for file, _ in self._files[2]]

    @property
    def own(self) -> list[str]:
        """The names of the mechanisms among its own that are written in Python: see `inprofile.register`."""
        return self._inner.own

    @property
    def seeds(self) -> range:
        """The seeds it asks for: 1 … n."""
        return range(1, self._inner.seeds + 1)

    @property
    def flows(self) -> int:
        """How many flows it has."""
        return self._inner.flows()

    @property
    def warnings(self) -> list[Problem]:
        """The warnings: allowed, but perhaps not meant."""
        return [Problem(**w) for w in json.loads(self._inner.warnings())]

    @property
    def canonical(self) -> str:
        """JSON of the effective experiment: the same text for the same experiment, however it was written."""
        text = self._inner.canonical()
        if not self._inner.own and not self._inner.added:
            return text
        # What a mechanism of one's own does is in its code alone: a class's file, or the engine of a crate.
        own = {**digests(self._inner.own), **dict.fromkeys(self._inner.added, engine_digest())}
        return json.dumps({**json.loads(text), "own": own}, **_CANONICAL)

    def place_of(self, *keys: str) -> str:
        """Where the first of these keys that is written stands, `file:line` or `--set KEY=VALUE`.

        Of keys that are not written, the place of the first one's table.

        >>> from inprofile import STARTER
        >>> parse(STARTER, "mine.toml").place_of("flows.assured.tcp.congestion", "tcp.congestion")
        'mine.toml:16'
        """
        found = [_internal.place_of(*self._files, list(self._overrides), key) for key in keys]
        return next((place for place, written in found if written), found[0][0])

    def set(self, key: str, value: object) -> Scenario:
        """Another one with `key` (`links.bottleneck.queue.limit`) at `value` (`"50 packets"`).

        Entries of `[[links]]`, `[[flows]]` and `[[edges]]` are addressed by name, node or index.
        """
        return self.with_({key: value})

    def with_(self, values: Mapping[str, object] | None = None, /, **more: object) -> Scenario:
        """Another one with these values: dotted keys in a dict, or keywords with `__` for the dot.

        >>> from inprofile import STARTER
        >>> shorter = parse(STARTER).with_(flows__assured__contract="300 kbit/s", duration="50 s")
        >>> shorter.check().effective["duration"]
        '50 s'
        """
        keyed = {key.replace("__", "."): value for key, value in more.items()}
        items = [(key, toml(value)) for key, value in ({**(values or {}), **keyed}).items()]
        return self._varied(items)

    def _varied(self, items: Iterable[tuple[str, str]]) -> Scenario:
        """Another one with these keys at these values, as `--set` takes them."""
        text, file, bases = self._files
        return Scenario(text, file, (*self._overrides, *items), bases)

    def expected_packets(self, seeds: Seeds | None = None) -> float:
        """How many data packets its runs will send, estimated from rates and duration without running it.

        >>> from inprofile import STARTER
        >>> f"{parse(STARTER).expected_packets(seeds=1):.0f}"
        '14875'

        For `seeds` as `run` takes them; default: as many as the experiment says.
        """
        return self._inner.expected_packets() * len(self.seeds if seeds is None else seeds_in_order(seeds))

    def expected_memory(
        self, seeds: Seeds | None = None, jobs: int | None = None, threads_per_run: int = 1
    ) -> float:
        """The least memory in bytes for its runs: those under way, and the results of those that are over.

        It is what flows and their hosts take, without packets; runs on several threads are taken to be in as
        many parts. `seeds`, `jobs` and `threads_per_run` as `run` takes them.

        >>> from inprofile import STARTER
        >>> parse(STARTER).expected_memory(seeds=1)
        6400.0
        """
        from ..run.pool import shared_out

        whole, part, result = self._inner.expected_memory()
        runs = len(self.seeds if seeds is None else seeds_in_order(seeds))
        at_once, per_run = shared_out(jobs, threads_per_run)
        at_once = min(runs, at_once)
        return at_once * (whole + (per_run - 1) * part) + (runs - at_once) * result

    def check(self) -> Check:
        """The experiment as it will run: effective values and warnings. Printing it draws the topology."""
        return Check(json.loads(self._inner.describe()), self.warnings)

    def provenance(self, seeds: tuple[int, ...]) -> Provenance:
        """Where results of its runs with these seeds come from: this version and this experiment."""
        from ..run.results import Provenance

        return Provenance(
            self.title,
            self.canonical,
            self.check().effective,
            seeds,
            text=self._text,
            overrides=self._overrides,
            sources=sources_of(self._inner.own),
        )

    @classmethod
    def again(cls, provenance: Provenance) -> Scenario:
        """The experiment that a result is of, to run it again or to vary it.

        Raises ResultError where the result is older than its text, this version reads the text otherwise, or
        a mechanism in Python is not registered with the code that ran.
        """
        from ..run.storage import ResultError

        if provenance.text is None:
            raise ResultError("the result does not hold its experiment's text: run the experiment again")
        if lacking := absent(provenance.sources):
            raise ResultError(lacking)
        made = cls(provenance.text, "experiment", provenance.overrides)
        if made.canonical != provenance.experiment:
            raise ResultError("this version reads the experiment otherwise than the one that ran it")
        return made

    def run(
        self,
        seeds: Seeds | None = None,
        jobs: int | None = None,
        trace: bool = False,
        progress: Callable[[int, int], None] | None = None,
        threads_per_run: int = 1,
    ) -> Result:
        """Run it once a seed.

        `seeds` is how many (1 … n) or which; default: as many as the experiment says. `jobs` is the number
        of threads; default: one per core. Each run has up to `threads_per_run` of them, where it is expected
        to be faster in parts. None of these changes a single bit of any run. `trace` keeps every verdict with
        the figures behind it. `progress` is told runs finished and runs in all.

        >>> from inprofile import STARTER
        >>> parse(STARTER).with_(duration="30 s").run(seeds=[3, 7]).seeds
        (3, 7)

        Raises `SeedsError` for seeds that cannot be run: none, more than 100,000, one twice, no seeds at all.
        """
        from ..run.experiments import run_many
        from ..run.pool import Local

        which = self.seeds if seeds is None else seeds
        where = Local(jobs, threads_per_run=threads_per_run)
        return run_many([(self, which)], where, progress, trace=trace)[0]

    def live(
        self,
        seeds: Seeds | None = None,
        trace: bool = False,
        progress: Callable[[float, float], None] | None = None,
    ) -> Result:
        """Run it with real hosts, once a seed, in wall time: the kernel's own TCP through the same network.

        Hosts are network namespaces that are gone when the run is. A seed decides what is drawn (start
        times, the mechanisms' random numbers), but no two runs are alike. `progress` is told seconds done
        and seconds in all. `Result.provenance.live` says how each run kept time.

        Raises `NotLive` for what the kernel can't stand in for, `PermissionError` where namespaces can't be
        made, `inprofile.run.live.Unsupported` (an `OSError`) where there is no Linux.
        """
        from ..run.live import run

        return run(self, self.seeds if seeds is None else seeds, trace=trace, progress=progress)

    def __repr__(self) -> str:
        return f"Scenario({self.title!r}, {len(self.seeds)} seed{'s' * (len(self.seeds) != 1)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self.check()))}</pre>"


def parse(text: str, file: str = "experiment") -> Scenario:
    """An experiment from TOML text; `file` is what messages call it.

    >>> parse("title = 'of nothing'")
    Traceback (most recent call last):
    ...
    inprofile.experiment.scenario.ScenarioError: ...

    Raises `ScenarioError` where it cannot run.
    """
    return Scenario(text, file)


def load(path: str | Path, overrides: Iterable[tuple[str, str]] = ()) -> Scenario:
    """An experiment from a TOML file; `overrides` are keys and values as `--set` takes them.

    What it extends is read with it. Raises `ScenarioError` where it cannot run, `OSError` where it cannot be
    read: `UnfitFile` for a pipe, a device, a folder, or a file of more than 16 MiB.
    """
    (file, text), *bases = texts(path)
    return Scenario(text, file, overrides, bases)


def texts(path: str | Path) -> list[tuple[str, str]]:
    """A file's name and text, and those of the files that it extends, from the nearest to the last.

    Raises `OSError` where one cannot be read, `ScenarioError` where it is no text or a base is not there.
    """
    file = str(path)
    text = _decoded(read_file(path), file)
    try:
        return [(file, text), *_internal.bases(text, file)]
    except _internal.ScenarioError as error:
        raise ScenarioError(*error.args) from None


def from_bytes(data: bytes, file: str, overrides: Iterable[tuple[str, str]] = ()) -> Scenario:
    """An experiment from the bytes of TOML; `file` is what messages call it. Raises `ScenarioError`."""
    return Scenario(_decoded(data, file), file, overrides)


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(file, data, error) from None


def _not_utf8(file: str, data: bytes, error: UnicodeDecodeError) -> ScenarioError:
    """Name the first byte that is not UTF-8."""
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    before = data[: error.start]
    start = before.rfind(b"\n") + 1
    problem = Problem(
        file=file,
        line=before.count(b"\n") + 1,
        column=len(before[start:].decode("utf-8")) + 1,
        path="",
        value=f"byte 0x{data[error.start]:02x}",
        problem=f"the file is {'UTF-16' if utf16 else 'not UTF-8'} text",
        remedy="save it as UTF-8; accented letters in another encoding are the usual cause",
        severity="error",
    )
    return ScenarioError(str(problem), json.dumps([problem.__dict__]))


def toml(value: object) -> str:
    """A Python value as TOML.

    >>> toml("50 packets"), toml(True), toml([1, 2.5]), toml({"aqm": "red", "w_q": 0.002})
    ('"50 packets"', 'true', '[1, 2.5]', '{"aqm" = "red", "w_q" = 0.002}')

    Raises TypeError for what TOML has no word for.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return "{" + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
        case list() | tuple() | range():
            return "[" + ", ".join(toml(v) for v in value) + "]"
        case _:
            raise TypeError(
                f"{value!r} is a {type(value).__name__}:"
                " an experiment takes text, numbers, true or false, lists and tables"
            )
