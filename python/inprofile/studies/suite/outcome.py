"""How a suite came out: each contestant's figures, beside drop-tail's on the same seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...metrics.measures import Measures
from ...metrics.stats import Estimate, Paired, estimate, estimated, paired
from ...own.engine import __version__
from ...own.registry import registered, sources_of
from .contestants import DROP_TAIL, contestants
from .measure import better, bounds, bounds_of_difference, title, unit
from .scenarios import Definition
from .work import Case, SuitePlan

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class Entry:
    """A contestant's figures in one scenario and variant."""

    cell: Case
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
        return paired(mine, theirs, bounds_of_difference(name)) if mine.keys() & theirs.keys() else None

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


def _sources(contestants: Iterable[str]) -> dict[str, Any]:
    """The code of the classes of one's own among them, to run the suite again elsewhere."""
    found = sources_of(name for name in contestants if name in registered())
    return {"sources": [source.to_json() for source in found]} if found else {}


@dataclass
class Suite:
    """The runs and their outcome."""

    plan: SuitePlan
    found: Mapping[Case, Measures]
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
        """A contestant's name as people write it, also of one that was not chosen."""
        known = (*self.plan.contestants, *contestants())
        return next((c.title for c in known if c.id == contestant), contestant)

    def to_json(self) -> dict[str, Any]:
        """The output of `suite --json`."""
        made = self.plan
        return {
            "suite": made.about.name,
            "title": made.about.title,
            "version": self.version,
            "quick": made.quick,
            "tcp": {"id": made.tcp.id, "title": made.tcp.title},
            "seeds": made.seeds,
            "contestants": [{"id": c.id, "title": c.title, "text": c.text} for c in made.contestants],
            **_sources(c.id for c in made.contestants),
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
