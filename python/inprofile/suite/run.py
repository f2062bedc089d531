"""Carry a suite out: plan every run, make those that are not kept, compare contestants with drop-tail."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import measures as _measures
from .._measured import Experiment, measure_all
from .._version import __version__
from ..measures import Measures
from ..scenario import Scenario, ScenarioError
from ..stats import Estimate, Paired, estimate, estimated, paired
from . import measure as _measure
from . import waits as _waits
from .contestants import DROP_TAIL, Contestant, settings
from .contestants import choose as contestants_of
from .contestants import named as contestants_named
from .measure import better, bounds, title, unit
from .scenarios import About, Definition, Tcp, read
from .scenarios import choose as scenarios_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..results import Result

__all__ = ["CACHE", "Cell", "Entry", "Plan", "Suite", "plan", "suite"]

#: Where measures are kept, from the working directory.
CACHE = Path("results/cache/suite")

Progress = Callable[[int, int, str], None]
"""Told runs finished, runs in all, and what is being run."""


@dataclass(frozen=True)
class Cell:
    """One contestant in one experiment."""

    scenario: str
    #: The value of what the scenario varies.
    variant: str
    contestant: str
    #: A parameter that differs, and its value; empty where none does.
    setting: tuple[str, str] | None = None


@dataclass(frozen=True)
class Plan:
    """What a suite will run."""

    about: About
    definitions: Sequence[Definition]
    contestants: Sequence[Contestant]
    seeds: int
    quick: bool
    tcp: Tcp
    work: Mapping[Cell, Scenario]
    #: Why a contestant or a whole scenario is not run, by scenario and contestant ("" for all of them).
    absent: Mapping[tuple[str, str], str]

    @property
    def runs(self) -> int:
        """How many simulations that is."""
        return len(self.work) * self.seeds

    @property
    def packets(self) -> float:
        """How many data packets are to be expected in all."""
        return sum(s.expected_packets(seeds=1) for s in self.work.values()) * self.seeds

    @property
    def cpu_seconds(self) -> float:
        """Roughly how much computing that is, on one core."""
        return self.packets / 50_000 * float(self.about.runs["cost"])

    def to_json(self) -> dict[str, Any]:
        """As `--plan --json` prints it."""
        return {
            "suite": self.about.name,
            "scenarios": [d.id for d in self.definitions],
            "contestants": [c.id for c in self.contestants],
            "seeds": self.seeds,
            "quick": self.quick,
            "tcp": self.tcp.id,
            "experiments": len(self.work),
            "runs": self.runs,
            "expected_packets": round(self.packets),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "absent": [
                {"scenario": s, "contestant": c or None, "why": w} for (s, c), w in self.absent.items()
            ],
        }


def plan(
    name: str = "rfc7928",
    *,
    aqms: Sequence[str] | None = None,
    scenarios: Sequence[str] | None = None,
    tcp: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    files: Path | None = None,
) -> Plan:
    """List what `suite` would run.

    Raises `UnknownContestantError`, `UnknownScenarioError`, `UnknownTcpError`, `ScenarioError` for a file
    that cannot be run, and OSError or ValueError for `files` that are none of a suite.
    """
    about = read(name, files)
    senders = about.tcp(tcp)
    chosen = contestants_of(aqms if aqms is not None else about.contestants or None)
    definitions = scenarios_of(about, scenarios)
    work: dict[Cell, Scenario] = {}
    absent: dict[tuple[str, str], str] = {}
    for definition in definitions:
        if (why := about.lacks(definition)) is not None:
            absent[definition.id, ""] = why
            continue
        try:
            about.load(definition).with_(senders.set)
        except ScenarioError as error:
            absent[definition.id, ""] = f"--tcp {senders.id}: {error.problems[0].problem}"
            continue
        if definition.matrix is not None:
            absent.update(_missing_pairs(about, definition))
        for contestant in chosen:
            try:
                work.update(_cells(about, definition, contestant, senders, quick))
            except _NoControlError as error:
                absent[definition.id, contestant.id] = str(error)
            except ScenarioError as error:
                absent[definition.id, contestant.id] = error.problems[0].problem
    runs = about.runs["quick_seeds" if quick else "seeds"]
    return Plan(about, definitions, chosen, seeds or runs, quick, senders, work, absent)


def _missing_pairs(about: About, definition: Definition) -> Iterator[tuple[tuple[str, str], str]]:
    """Pairs of which this version lacks a sender, and why."""
    assert definition.matrix is not None  # noqa: S101 (whoever asks has looked)
    base = about.load(definition)
    lacking: dict[str, str] = {}
    for name in dict.fromkeys(name for pair in definition.matrix.pairs for name in pair):
        try:
            base.with_({"flows.a.tcp": dict(about.senders[name].tcp)})
        except ScenarioError as error:
            problem = error.problems[0].problem
            lacking[name] = (
                f"this version has no {about.senders[name].title}" if problem == "unknown choice" else problem
            )
    for a, b in definition.matrix.pairs:
        if missing := [name for name in (a, b) if name in lacking]:
            yield (definition.id, f"{a}/{b}"), lacking[missing[0]]


class _NoControlError(ValueError):
    """A scenario turns the parameter that sets a discipline's delay, and it has none."""


def _cells(
    about: About, definition: Definition, contestant: Contestant, tcp: Tcp, quick: bool
) -> Iterator[tuple[Cell, Scenario]]:
    base = about.load(definition)
    table = about.table(definition)
    common: dict[str, object] = dict(tcp.set)
    if quick and not definition.whole:
        seconds = int(about.runs["quick_seconds"])
        common.update({"duration": f"{seconds} s", "measure.from": f"{seconds // 3} s"})
        # What would begin after the end does not.
        common.update(_shortened(table, seconds))

    def put(
        changes: Mapping[str, object] | None = None,
        control: float = 1.0,
        more: Mapping[str, object] | None = None,
    ) -> Scenario:
        values = contestant.values(
            base, table, definition.queues, changes, ecn=definition.ecn, control=control
        )
        return base.with_({**common, **values, **(more or {})})

    if definition.matrix is not None:
        missing = {pair for (_, pair), _ in _missing_pairs(about, definition)}
        seconds = int(about.runs["quick_seconds"]) if quick else 0
        for point in definition.matrix.points(quick):
            if f"{point.a}/{point.b}" not in missing:
                at = base.with_(definition.matrix.changes(point, about.senders, seconds))
                values = contestant.values(
                    at, definition.matrix.table(point, table), definition.queues, ecn=definition.ecn
                )
                yield Cell(definition.id, point.name, contestant.id), at.with_(values)
        return
    if definition.sensitivity:
        yield Cell(definition.id, "", contestant.id), put()
        link = next(k for k in put().check().effective["links"] if k["name"] == "bottleneck")
        for name, text in settings(contestant, link["queue"], definition.sensitivity):
            value: object = text.strip('"') if text.startswith('"') else _number(text)
            try:
                changed = put({name: value})
            except ScenarioError:
                # Half or twice of it is not allowed: an operator cannot set it either.
                continue
            yield Cell(definition.id, "", contestant.id, (name, str(value))), changed
        return
    beside = definition.beside
    turns = definition.control or (beside is not None and beside.control is not None)
    if turns and not contestant.control:
        if contestant.id != DROP_TAIL:
            raise _NoControlError("no parameter sets its delay")
        # Drop-tail stands beside the others, as it is.
        for variant in definition.variants:
            yield Cell(definition.id, variant, contestant.id), put()
        return
    for variant in definition.variants:
        if definition.control:
            made = put(control=float(variant))
        elif beside is not None and beside.contestants:
            (other,) = contestants_named([variant])
            made = put(more=other.queues(base, table, [beside.queue]))
        elif beside is not None and beside.control is not None:
            made = put(more=contestant.queues(base, table, [beside.queue], control=beside.control))
        else:
            made = put()
        if definition.vary is not None:
            made = made.set(definition.vary["key"], variant)
        yield Cell(definition.id, variant, contestant.id), made


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _shortened(table: Mapping[str, Any], seconds: int) -> dict[str, object]:
    """Arrivals one after the other begin, and are as many, as fits a shorter run."""
    values: dict[str, object] = {}
    for group in table["flows"]:
        start = group.get("start")
        if isinstance(start, dict):
            first, every = (float(start[k].removesuffix(" s")) for k in ("first", "every"))
            begins = min(first, seconds / 3)
            count = min(int(group.get("count", 1)), int((seconds - begins) / every))
            values[f"flows.{group['name']}.start"] = {**start, "first": f"{begins:g} s"}
            values[f"flows.{group['name']}.count"] = count
    return values


@dataclass(frozen=True)
class Entry:
    """A contestant's figures in one scenario and variant."""

    cell: Cell
    measures: Measures
    #: The same seeds before drop-tail; None of drop-tail itself.
    baseline: Measures | None

    def __contains__(self, name: str) -> bool:
        return name in self.measures.values and bool(np.isfinite(self.measures[name]).any())

    def values(self, name: str) -> list[float]:
        """A figure of every seed that has it."""
        return [float(x) for x in self.measures[name] if np.isfinite(x)]

    def __getitem__(self, name: str) -> Estimate:
        """Mean over the seeds with its 95 % interval."""
        return estimate(self.values(name), bounds(name))

    def against(self, name: str) -> Paired | None:
        """The difference to drop-tail on the same seeds; None where either has no such figure."""
        if self.baseline is None or name not in self or name not in self.baseline.values:
            return None
        mine, theirs = (
            {s: float(x) for s, x in zip(m.seeds, m[name], strict=True) if np.isfinite(x)}
            for m in (self.measures, self.baseline)
        )
        return paired(mine, theirs) if mine.keys() & theirs.keys() else None

    def verdict(self, name: str) -> str:
        """`better` or `worse` than drop-tail at 95 %, else `alike`; empty where that cannot be said."""
        difference = self.against(name)
        side = better(name)
        if difference is None or side == 0 or difference.difference.ci95 is None:
            return ""
        lo, hi = difference.difference.ci95
        if lo > 0 or hi < 0:
            return "better" if (lo > 0) == (side > 0) else "worse"
        return "alike"

    def to_json(self, names: Collection[str]) -> dict[str, Any]:
        """Every figure that is no point of a curve, or one of `names`."""
        figures: dict[str, Any] = {}
        for name in self.measures.values:
            if name not in self or (name.startswith(("cdf:", "time:")) and name not in names):
                continue
            figures[name] = {
                "title": _shown(name),
                "unit": "1" if name.startswith("cdf:") else _unit(name) or "1",
                **estimated(self.values(name), bounds(name) if _known(name) else (0.0, float("inf"))),
            }
            difference = self.against(name)
            if difference is not None and _known(name):
                d = difference.difference
                figures[name]["to_drop_tail"] = {
                    "mean": d.mean,
                    "ci95": None if d.ci95 is None else list(d.ci95),
                    "verdict": self.verdict(name) or None,
                }
        return figures


def _known(name: str) -> bool:
    return not name.startswith(("cdf:", "time:"))


def _shown(name: str) -> str:
    return title(name) if _known(name) else name


def _unit(name: str) -> str:
    return unit(name) if _known(name) else "s"


@dataclass
class Suite:
    """What was run, and how it came out."""

    plan: Plan
    found: Mapping[Cell, Measures]
    version: str = __version__
    page: Path | None = field(default=None)

    def entries(self, definition: Definition, variant: str = "") -> list[Entry]:
        """Every contestant that was run in a scenario, drop-tail first."""
        by = {
            c.contestant: (c, m)
            for c, m in self.found.items()
            if c.setting is None and (c.scenario, c.variant) == (definition.id, variant)
        }
        baseline = by.get(DROP_TAIL)
        ordered = [by[c.id] for c in self.plan.contestants if c.id in by]
        return [
            Entry(cell, m, None if baseline is None or cell.contestant == DROP_TAIL else baseline[1])
            for cell, m in ordered
        ]

    def settings(self, definition: Definition, contestant: str) -> list[Entry]:
        """A contestant's figures at each setting of the sensitivity scenario, its own settings first."""
        return [
            Entry(c, m, None)
            for c, m in self.found.items()
            if c.scenario == definition.id and c.contestant == contestant
        ]

    def title(self, contestant: str) -> str:
        """A contestant's name as people write it."""
        return next((c.title for c in self.plan.contestants if c.id == contestant), contestant)

    def to_json(self) -> dict[str, Any]:
        """What `suite --json` prints."""
        made = self.plan
        return {
            "suite": made.about.name,
            "title": made.about.title,
            "version": self.version,
            "quick": made.quick,
            "tcp": {"id": made.tcp.id, "title": made.tcp.title},
            "seeds": made.seeds,
            "contestants": [{"id": c.id, "title": c.title, "text": c.text} for c in made.contestants],
            "absent": made.to_json()["absent"],
            "scenarios": [
                {
                    "id": d.id,
                    "section": d.section,
                    "weight": d.weight,
                    "text": d.text,
                    "file": f"{d.file}.toml",
                    "measures": list(d.measures),
                    "results": [
                        {
                            "contestant": c.contestant,
                            "variant": c.variant or None,
                            "setting": dict([c.setting]) if c.setting else None,
                            "figures": e.to_json(()),
                        }
                        for variant in d.variants
                        for e in [
                            *self.entries(d, variant),
                            *(
                                x
                                for who in made.contestants
                                for x in self.settings(d, who.id)
                                if x.cell.setting
                            ),
                        ]
                        for c in [e.cell]
                    ],
                }
                for d in made.definitions
            ],
        }


def suite(
    name: str = "rfc7928",
    *,
    aqms: Sequence[str] | None = None,
    scenarios: Sequence[str] | None = None,
    tcp: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    files: Path | None = None,
    jobs: int | None = None,
    out: str | Path = "reports",
    cache: str | Path | None = CACHE,
    progress: Progress | None = None,
) -> Suite:
    """Run every scenario of a suite for every contestant; write the report to `<out>/<name>`.

    `aqms` are contestants by name (default: all; drop-tail is always there), `scenarios` names or sections,
    `tcp` what standard senders have, one of the suite's by name, `files` a folder of experiment files as
    `write_files` writes them. `jobs` is the number of threads; it changes nothing of the report.

    Raises what `plan` raises, and KeyboardInterrupt when interrupted; `cache` has what is finished.
    """
    made = plan(name, aqms=aqms, scenarios=scenarios, tcp=tcp, quick=quick, seeds=seeds, files=files)
    tell = progress or (lambda finished, runs, what: None)
    also = [inspect.getsource(_measures), inspect.getsource(_measure)]
    found: dict[Cell, Measures] = {}
    finished = 0
    for definition in made.definitions:
        cells = [cell for cell in made.work if cell.scenario == definition.id]
        before = finished

        def told(done: int, before: int = before, what: str = definition.id) -> None:
            tell(before + done, made.runs, what)

        ways = [*also, list(definition.measures), [repr(p) for p in definition.phases]]
        by_group = any(m.startswith("delay_") and ":" in m for m in definition.measures)
        if by_group:
            ways.append(inspect.getsource(_waits))

        def reduced(_: int, result: Result, d: Definition = definition, more: bool = by_group) -> Measures:
            kept = _measure.measure(result, d)
            return Measures(kept.seeds, {**kept.values, **_waits.waits(result)}, {}) if more else kept

        measured = measure_all(
            [Experiment(made.work[cell], made.seeds, ways) for cell in cells],
            reduced,
            jobs=jobs,
            cache=None if cache is None else Path(cache),
            progress=told,
        )
        found.update(zip(cells, measured, strict=True))
        finished += len(cells) * made.seeds
        tell(finished, made.runs, definition.id)
    done = Suite(made, found)
    from .page import write

    done.page = write(done, Path(out))
    return done
