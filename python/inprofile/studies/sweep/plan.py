"""The runs of a sweep, checked from end to end before anything runs; when a setting has had enough seeds.

That is checked after 10 seeds, and again each time there are a quarter more: a check after every run would
stop at a lucky one. Checks come at fixed numbers of seeds, so that how many a setting gets follows from its
runs alone (docs/decisions/0045).
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ..._input import seeds_in_order
from ...experiment.scenario import Scenario, ScenarioError, Seeds
from ...metrics.contracts import BY_RUN, figure_over_runs
from ...metrics.quantity import quantity
from ...own.engine import __version__, engine_digest
from ...own.registry import Source, absent, digests, registered, sources_of
from ...run.storage import ResultError
from .axes import Axis, Design, SweepError, axis_of, measured, named_settings, settings_of

FIRST_LOOK = 10
"""Seeds before the first look."""
_MORE = 1.25


@dataclass(frozen=True)
class Until:
    """Stop once half the width of the 95 % interval of `metric` is at most this."""

    metric: str
    half: float
    """In the metric's base unit; where `relative`, a share of the mean."""
    relative: bool = False

    def met(self, values: Sequence[float]) -> bool:
        """Whether the mean of these values is known so well."""
        if len(values) < FIRST_LOOK:
            return False
        found = figure_over_runs(self.metric, values)
        if found.half is None:
            return False
        return found.half <= self.half * (abs(found.mean) if self.relative else 1.0)

    def __str__(self) -> str:
        return f"{self.metric}={quantity(100 * self.half, '%') if self.relative else quantity(self.half)}"


def until_of(text: str) -> Until:
    """As `--until` takes it.

    >>> until_of("fi=0.01"), until_of("goodput=50 kbit/s").half, until_of("goodput=2 %").relative
    (Until(metric='fi', half=0.01, relative=False), 50000.0, True)

    Raises SweepError.
    """
    metric, equals, width = (part.strip() for part in text.partition("="))
    relative = width.endswith("%")
    found = measured(width.removesuffix("%").strip())
    if not equals or found is None or not (0 < found[0] < math.inf) or (relative and found[1]):
        raise SweepError(
            f"--until {text}: write METRIC=HALF_WIDTH, such as fi=0.01, goodput=50 kbit/s, or goodput=2 %"
            " for 2 % of the mean"
        )
    half = found[0] / 100 if relative else found[0]
    made = Until(metric, half, relative)
    unit = known_metrics()[named(metric)]
    if found[1] not in ("", unit):
        raise SweepError(
            f"--until {text}: {metric} has the unit {unit or 'of a plain number'}, not {found[1]}"
        )
    return made


def looks(most: int) -> Iterator[int]:
    """Numbers of seeds at which intervals are looked at, the last of them `most`.

    >>> list(looks(30)), list(looks(4))
    ([10, 13, 17, 22, 28, 30], [4])
    """
    at = FIRST_LOOK
    while at < most:
        yield at
        at = math.ceil(at * _MORE)
    yield most


@cache
def known_metrics() -> dict[str, str]:
    """Metrics with their units (empty for a plain number), as a second of two small experiments has them."""
    from ...experiment.dump import STARTER
    from ...experiment.scenario import parse

    short = {"duration": "2 s", "measure": {"from": "0.5 s", "to": "2 s"}, "seeds": 1, "monitors": []}
    transfers = {"traffic": {"kind": "transfer", "size": "10 kB"}}
    found: dict[str, str] = {}
    for more in ({}, {f"flows.assured.{key}": value for key, value in transfers.items()}):
        summary = parse(STARTER).with_({**short, **more}).run(jobs=1).summary()
        found.update({m.name: "" if m.unit == "1" else m.unit for m in summary.values()})
    found.update({name: unit.removesuffix("1") for name, unit in BY_RUN.items()})
    return found


def named(metric: str) -> str:
    """The metric, if there is one of that name; raise SweepError, with the nearest, if there is none."""
    known = known_metrics()
    if metric not in known:
        near = difflib.get_close_matches(metric, known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise SweepError(f'no metric is called "{metric}": {hint}there are {", ".join(known)}')
    return metric


HEAD = "sweep.json"
FORMAT = 1
MOST_RUNS = 10_000_000
"""The most runs of one sweep."""
_PART_RUNS, _PART_ROWS = 1024, 200_000
"""A part of the dataset has about so many runs, and so many rows of flows, at most."""
_SHOWN = 3
"""As many settings that cannot run are quoted."""

SAYS = {
    "format": "another format",
    "version": "another version of Inprofile",
    "engine": "another build of the simulator",
    "experiment": "another experiment",
    "axes": "other axes",
    "design": "another design",
    "settings": "other settings",
    "seeds": "other seeds",
    "until": "another --until",
}
"""The inputs that must be the same for a sweep to go on, and the meaning of a difference."""
_BUILD = ("format", "version", "engine")


@dataclass(frozen=True)
class SweepPlan:
    """A sweep: settings, each with up to so many seeds."""

    base: Scenario
    axes: tuple[Axis, ...]
    design: Design
    settings: tuple[tuple[str, ...], ...]
    """A value of each axis, as `--set` takes it."""
    seeds: tuple[int, ...]
    until: tuple[Until, ...]
    packets_by: tuple[float, ...]
    """How many data packets are to be expected in a run of each setting."""

    @property
    def packets(self) -> float:
        """How many are to be expected in all runs."""
        return sum(self.packets_by) * len(self.seeds)

    @property
    def runs(self) -> int:
        """How many runs there are at most."""
        return len(self.settings) * len(self.seeds)

    @property
    def keys(self) -> list[str]:
        """The axes varied."""
        return [axis.key for axis in self.axes]

    def scenario(self, setting: int) -> Scenario:
        """The experiment of a setting."""
        return _varied(self.base, self.keys, self.settings[setting])

    @cached_property
    def part_settings(self) -> int:
        """How many settings a part of the dataset has."""
        rows = len(self.seeds) * max(1, int(self.base.check().effective["flows_in_all"]))
        return max(1, min(_PART_RUNS // len(self.seeds), _PART_ROWS // rows))

    @cached_property
    def shown(self) -> list[tuple[str, ...]]:
        """Settings with the names of values in place of these, where they have some."""
        return named_settings(self.keys, self.settings, self._names())

    def _names(self) -> dict[str, dict[str, str]]:
        return {axis.key: axis.named for axis in self.axes if axis.names}

    def parts(self) -> Iterator[tuple[int, range]]:
        """Parts of the dataset, each with its settings."""
        size = self.part_settings
        for number, first in enumerate(range(0, len(self.settings), size)):
            yield number, range(first, min(first + size, len(self.settings)))

    def head(self) -> dict[str, Any]:
        """`sweep.json`: all that the results follow from, and the text to run a setting again."""
        return {
            "format": FORMAT,
            "version": __version__,
            "engine": engine_digest(),
            "title": self.base.title,
            "experiment": self.base.canonical,
            **self._own(),
            **self._sources(),
            "text": self.base._text,
            "set": [list(pair) for pair in self.base._overrides],
            "axes": [str(axis) for axis in self.axes],
            "keys": self.keys,
            "design": self.design,
            "settings": [list(values) for values in self.settings],
            **({"names": names} if (names := self._names()) else {}),
            "seeds": list(self.seeds),
            "until": [str(u) for u in self.until],
        }

    def _own(self) -> dict[str, dict[str, str]]:
        """The code of mechanisms in Python that an axis names: the experiment tells only of its own."""
        names = self._of_axes()
        return {"own": digests(names)} if names else {}

    def _of_axes(self) -> list[str]:
        values = [value for setting in self.settings for value in setting]
        return [name for name in registered() if any(_named(value, name) for value in values)]

    def _sources(self) -> dict[str, list[dict[str, Any]]]:
        """The text of that code, and of the experiment's, to run a setting elsewhere."""
        found = sources_of({*self.base.own, *self._of_axes()})
        return {"sources": [source.to_json() for source in found]} if found else {}


def scenario_of(head: Mapping[str, Any], setting: int) -> Scenario:
    """The experiment of a setting of the sweep that has this head.

    Raises ResultError where this version reads it otherwise, or a mechanism in Python is not registered.
    """
    try:
        if lacking := absent([Source.from_json(source) for source in head.get("sources", ())]):
            raise ResultError(lacking)
        pairs = zip(head["keys"], head["settings"][setting], strict=True)
        return Scenario(head["text"], "experiment", (*map(tuple, head["set"]), *pairs))
    except ScenarioError as error:
        raise ResultError(f"this version reads the experiment otherwise: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise ResultError(f"{HEAD} is of another kind than is written: {error}") from None


def plan_of(head: Mapping[str, Any]) -> SweepPlan:
    """The plan of the sweep that has this head, to carry it out again.

    Raises ResultError as `scenario_of` does, SweepError where this version would sweep otherwise.
    """
    scenario_of(head, 0)
    try:
        base = Scenario(head["text"], "experiment", map(tuple, head["set"]))
        axes = tuple(axis_of(text, head["design"]) for text in head["axes"])
        settings = tuple(tuple(values) for values in head["settings"])
        until = tuple(until_of(text) for text in head["until"])
        each = tuple(_expected(base, head["keys"], settings))
        made = SweepPlan(base, axes, head["design"], settings, tuple(head["seeds"]), until, each)
    except (KeyError, TypeError, AttributeError) as error:
        raise ResultError(f"{HEAD} is of another kind than is written: {error}") from None
    here = made.head()
    if wrong := [text for key, text in SAYS.items() if key not in _BUILD and here[key] != head[key]]:
        raise SweepError(f"this version would sweep otherwise: {', '.join(wrong)}")
    return made


def _named(value: object, name: str) -> bool:
    """Whether a setting's value is this name, or a table with it."""
    return value == name or f'"{name}"' in str(value) or f"'{name}'" in str(value)


def make(
    base: Scenario,
    axes: Sequence[Axis],
    design: Design = "grid",
    *,
    samples: int | None = None,
    seeds: Seeds | None = None,
    until: Sequence[Until] = (),
) -> SweepPlan:
    """Plan a sweep of `base`.

    Raises SweepError where axes, design and `until` do not fit, SeedsError, and ScenarioError where a setting
    cannot run, with the first of those and how many there are.
    """
    which = seeds_in_order(len(base.seeds) if seeds is None else seeds)
    settings = settings_of(axes, design, samples)
    if len(settings) * len(which) > MOST_RUNS:
        raise SweepError(
            f"{len(settings):,} settings with {len(which):,} seeds are more than {MOST_RUNS:,} runs:"
            " give fewer"
        )
    if any(axis.key == "seeds" for axis in axes):
        raise SweepError("seeds is no axis: every setting is run with the same, which --seeds says")
    if until and len(which) <= FIRST_LOOK:
        raise SweepError(
            f"--until stops between {FIRST_LOOK} seeds and as many as --seeds allows, here {len(which)}:"
            " write --seeds 100"
        )
    twice = next((u.metric for i, u in enumerate(until) if u.metric in [v.metric for v in until[:i]]), None)
    if twice is not None:
        raise SweepError(f"--until {twice} is given twice: give one half-width for each metric")
    each = _expected(base, [axis.key for axis in axes], settings)
    return SweepPlan(base, tuple(axes), design, tuple(settings), which, tuple(until), tuple(each))


def _varied(base: Scenario, keys: Sequence[str], values: Sequence[str]) -> Scenario:
    return base._varied(zip(keys, values, strict=True))


def _expected(base: Scenario, keys: Sequence[str], settings: Sequence[Sequence[str]]) -> list[float]:
    """Data packets of a run of each setting; raise ScenarioError where one cannot run."""
    found: list[float] = []
    wrong: list[tuple[Sequence[str], ScenarioError]] = []
    for values in settings:
        try:
            found.append(_varied(base, keys, values).expected_packets(seeds=1))
        except ScenarioError as error:
            wrong.append((values, error))
            if len(wrong) >= _SHOWN and len(found) + len(wrong) >= _ENOUGH:
                break
    if wrong:
        raise _refusal(keys, wrong, len(found) + len(wrong), len(settings))
    return found


_ENOUGH = 1000
"""So many settings are looked at to count those that cannot run."""


def _refusal(
    keys: Sequence[str], wrong: Sequence[tuple[Sequence[str], ScenarioError]], seen: int, settings: int
) -> ScenarioError:
    problems: list[Mapping[str, Any]] = []
    texts: list[tuple[str, str]] = []
    for values, error in wrong:
        said = str(error)
        for key in keys:
            said = said.replace(f"--set {key}=", f"--axis {key}=")
        # A value that is wrong is wrong wherever it is.
        if any(said == text for text, _ in texts):
            continue
        shown = ", ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        texts.append((said, f"{said}\n  in the setting {shown}"))
        problems += [p.__dict__ for p in error.problems]
    more = f" of the first {seen:,}" if seen < settings else ""
    head = f"{len(wrong):,} of {settings:,} settings{more} cannot run; nothing was run:"
    if len(texts) > _SHOWN:
        texts[_SHOWN:] = [("", f"and {len(texts) - _SHOWN} more")]
    return ScenarioError("\n".join([head, *(text for _, text in texts)]), json.dumps(problems))
