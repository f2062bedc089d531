"""What-if: an experiment run again with some values changed, quickly enough to follow a slider."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import _internal
from ..experiment.scenario import Scenario
from ..run.pool import threads
from ..run.results import Provenance, Result
from .answers import Arrays, figures, lines, pack
from .knobs import knobs, levels
from .passage import finely, passage, stretch

if TYPE_CHECKING:
    from .folder import Folder

MOST_PACKETS = 10_000_000
"""The most data packets one what-if may send: some seconds."""
MOST_TRACED = 1_000_000
"""The same where every verdict is kept."""
SAMPLES = 300
"""As many samples over a run whose experiment has no monitors."""


class Superseded(Exception):
    """A run that nobody waits for any more: a newer one was asked for."""


class TooMuch(ValueError):
    """An experiment that is too long to be run while somebody waits."""


def watched(scenario: Scenario, effective: Mapping[str, Any]) -> Scenario:
    """The experiment with monitors: its own; where it has none, at its queue and at each group of flows."""
    if effective.get("monitors"):
        return scenario
    every = f"{_seconds(str(effective['duration'])) / SAMPLES:.6g} s"
    places = [{"queue": effective["measure"]["at"]}, *({"flows": g["name"]} for g in effective["flows"])]
    return scenario.with_({"monitors": [{**place, "every": every} for place in places]})


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}.get(unit, 1.0)


class WhatIf:
    """Runs one experiment at a time; a newer one ends the one that runs."""

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = threads(jobs)
        self._newest = 0
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._traced: tuple[tuple[str, str | None, int, str], Result] | None = None
        self._fine: tuple[tuple[str, str | None, int, str], Result] | None = None

    def run(
        self, base: Scenario, seed: int | Sequence[int], changes: Mapping[str, Any], trace: bool = False
    ) -> Result:
        """One run with these values changed, or one for each of several seeds.

        Raises ScenarioError for values that don't go together, Superseded, TooMuch.
        """
        with self._counting:
            self._newest += 1
            mine = self._newest
        changed = base.with_(changes) if changes else base
        check = changed.check()
        seeds = (seed,) if isinstance(seed, int) else tuple(seed)
        packets = len(seeds) * changed.expected_packets(seeds=1)
        if packets > MOST_PACKETS:
            raise TooMuch(
                f"about {packets:.2g} packets would be sent, and at most {MOST_PACKETS:,} are while you wait:"
                " give the experiment a shorter duration or a lower rate, or use inprofile run"
            )
        scenario = watched(changed, check.effective)
        made: list[_internal.Results] = []

        def current(*_: float) -> None:
            if mine != self._newest:
                raise Superseded

        with self._lock:
            current()
            _internal.run(
                [(scenario._inner, list(seeds))], len(seeds), trace, lambda _, raw: made.append(raw), current
            )
        provenance = Provenance(changed.title, changed.canonical, check.effective, seeds)
        return Result.from_engine(made[0], provenance)

    def traced(self, folder: Folder, id_: str, setting: str | None, seed: int) -> Result:
        """A result with every verdict of this seed: the stored one, or the same run made again.

        Raises LookupError, ResultError, TooMuch.
        """
        entry = folder.entry(id_)
        if entry.kind == "run":
            stored = folder.result(id_, ("verdicts",))
            if seed not in stored.seeds:
                raise LookupError(f"{id_} has no seed {seed}")
            if stored.verdicts.num_rows or stored.provenance.live is not None:
                return stored
        key = (id_, setting, seed, str(entry.about.get("digest")))
        if self._traced is None or self._traced[0] != key:
            base = folder.scenario(id_, None if setting in (None, "") else int(str(setting)))
            if base.expected_packets(seeds=1) > MOST_TRACED:
                raise TooMuch(
                    f"every verdict on more than {MOST_TRACED:,} packets would be kept in memory:"
                    " give the experiment a shorter duration, or run it with --trace"
                )
            self._traced = (key, self.run(base, seed, {}, trace=True))
        return self._traced[1]

    def passage(
        self,
        folder: Folder,
        id_: str,
        setting: str | None,
        seed: int,
        link: str | None,
        ends: Sequence[float | None],
    ) -> bytes:
        """A stretch of a run packet by packet, at a link's queue; default: where the experiment measures.

        Raises LookupError, ResultError, TooMuch.
        """
        base = folder.scenario(id_, None if setting in (None, "") else int(str(setting)))
        key = (id_, setting, seed, f"{base.canonical} finely")
        if self._fine is None or self._fine[0] != key:
            if base.expected_packets(seeds=1) > MOST_TRACED:
                raise TooMuch(
                    f"every verdict on more than {MOST_TRACED:,} packets would be kept in memory:"
                    " give the experiment a shorter duration or a lower rate, and run it again"
                )
            self._fine = (key, self.run(finely(base), seed, {}, trace=True))
        result = self._fine[1]
        at = link or str(result.provenance.effective["measure"]["at"]).partition("/")[0]
        if at not in [x["name"] for x in result.provenance.effective["links"]]:
            raise LookupError(f"there is no link {at}")
        return passage(base, result, seed, at, *stretch(result, seed, at, *ends))

    def answer(self, base: Scenario, seed: int, changes: Mapping[str, Any]) -> bytes:
        """The same for the page: figures and samples, and how long it took."""
        began = time.perf_counter()
        result = self.run(base, seed, changes)
        ran = time.perf_counter() - began
        arrays = Arrays()
        found = {
            "seed": seed,
            **figures(result, seed),
            "lines": lines(result.series, seed, arrays),
            "levels": levels(result.provenance.effective),
            "digest": result.provenance.digest,
            "seconds": ran,
        }
        return pack(found, arrays)


def start(scenario: Scenario) -> bytes:
    """The page's data before anything is moved: the experiment, and its movable values."""
    effective = scenario.check().effective
    return pack(
        {
            "title": scenario.title,
            "effective": effective,
            "knobs": [knob.to_json() for knob in knobs(effective)],
        }
    )


def checked(changes: object) -> dict[str, str | int | float | Sequence[str]]:
    """The page's request, if it is a table of texts, numbers and lists of texts; raise ValueError if not."""
    if not isinstance(changes, dict):
        raise ValueError("the changes are no table of keys and values")
    for key, value in changes.items():
        if not isinstance(key, str) or not (
            (isinstance(value, (str, int, float)) and not isinstance(value, bool))
            or (isinstance(value, list) and all(isinstance(v, str) for v in value))
        ):
            raise ValueError(f"{key}: a text, a number or a list of texts is needed")
    return changes
