"""The runs of a suite: an experiment for each scenario, variant, contestant and setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...experiment.scenario import Scenario, ScenarioError
from .contestants import DROP_TAIL, Contestant, settings
from .contestants import choose as contestants_of
from .contestants import named as contestants_named
from .measure import TITLES, known
from .scenarios import About, Definition, Tcp, read
from .scenarios import choose as scenarios_of


@dataclass(frozen=True)
class Case:
    """One contestant in one experiment."""

    scenario: str
    #: The value of what the scenario varies.
    variant: str
    contestant: str
    #: A parameter that differs, and its value; empty where none does.
    setting: tuple[str, str] | None = None


@dataclass(frozen=True)
class SuitePlan:
    """The runs of a suite."""

    about: About
    definitions: Sequence[Definition]
    contestants: Sequence[Contestant]
    seeds: int
    quick: bool
    tcp: Tcp
    work: Mapping[Case, Scenario]
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
    own: Sequence[str] = (),
) -> SuitePlan:
    """List what `suite` would run. `own` are registered classes that take part besides.

    Raises `UnknownContestantError`, `UnknownScenarioError`, `UnknownTcpError`, `ScenarioError` for a file
    that cannot be run, OSError or ValueError for `files` that are none of a suite, and ValueError for a class
    of one's own that lacks a default.
    """
    about = read(name, files)
    senders = about.tcp(tcp)
    chosen = contestants_of(aqms if aqms is not None else about.contestants or None, own)
    definitions = scenarios_of(about, scenarios)
    for definition in definitions:
        _check_measures(about, definition)
    work: dict[Case, Scenario] = {}
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
    return SuitePlan(about, definitions, chosen, seeds or runs, quick, senders, work, absent)


def _check_measures(about: About, definition: Definition) -> None:
    """Raise ValueError for a measure that there is not, before anything runs."""
    for name in definition.measures:
        if not known(name):
            raise ValueError(
                f'{about.folder / "suite.toml"}, scenario {definition.id}: there is no measure "{name}":'
                f" choose from {', '.join(TITLES)}"
            )


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
) -> Iterator[tuple[Case, Scenario]]:
    base = about.load(definition)
    table = base.as_written
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
                fills = contestant.id == DROP_TAIL
                at = base.with_(definition.matrix.changes(point, about.senders, seconds, fills=fills))
                values = contestant.values(
                    at, definition.matrix.table(point, table), definition.queues, ecn=definition.ecn
                )
                yield Case(definition.id, point.name, contestant.id), at.with_(values)
        return
    if definition.sensitivity:
        yield Case(definition.id, "", contestant.id), put()
        link = next(k for k in put().check().effective["links"] if k["name"] == "bottleneck")
        for name, text in settings(contestant, link["queue"], definition.sensitivity):
            value: object = text.strip('"') if text.startswith('"') else _number(text)
            try:
                changed = put({name: value})
            except ScenarioError:
                # Half or twice of it is not allowed: an operator cannot set it either.
                continue
            yield Case(definition.id, "", contestant.id, (name, str(value))), changed
        return
    beside = definition.beside
    turns = definition.control or (beside is not None and beside.control is not None)
    if turns and not contestant.control:
        if contestant.id != DROP_TAIL:
            raise _NoControlError("no parameter sets its delay")
        # Drop-tail is run beside the others, unchanged.
        for variant in definition.variants:
            yield Case(definition.id, variant, contestant.id), put()
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
        yield Case(definition.id, variant, contestant.id), made


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
