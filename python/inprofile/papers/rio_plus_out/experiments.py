"""What is run for paper B: Table I, Fig. 1 and 2, points of Fig. 7 to 9, and what is varied one at a time.

A scenario file is RIO in the primary set-up. What a set-up changes, and what the atlas varies, is data:
`bucket`, `rtt` and `access` of `paper.toml` (of which each flow has its own), a set-up's `set`, `[[sweeps]]`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["BEST_EFFORT", "FIGURES", "LEVELS", "PROFILES", "STEPS", "SUBSCRIBED", "depth", "jobs"]

#: §4: RI+O's third set of parameters, and its averages "whenever a packet arrives".
OUT = {"min_th": "10 packets", "max_th": "30 packets", "max_p": 0.1}
TOTAL = {"min_th": "30 packets", "max_th": "90 packets", "max_p": 0.05}
SCHEMES: Mapping[str, Mapping[str, object]] = {
    "rio": {},
    "rio-plus-out": {
        "links.bottleneck.queue.aqm": "rio_plus_out",
        "links.bottleneck.queue.total": TOTAL,
        "links.bottleneck.queue.out": OUT,
        "links.bottleneck.queue.avg_update": "every_arrival",
    },
}

#: Fig. 7: best-effort flows, at profiles of 2 and 2.5 Mbit/s (40 and 50 % subscribed).
BEST_EFFORT = (0, 1, 2, 6, 11, 16, 26, 46)
SUBSCRIBED = {"40 %": 2.0, "50 %": 2.5}
#: Fig. 8: profile in Mbit/s, and subscription of 20 Mbit/s in per cent.
PROFILES = (0.5, 1.0, 2.0)
LEVELS = tuple(range(10, 101, 10))
#: Fig. 9: step of the profiles in Mbit/s, how many flows, file, and the first multiple that RIO misses.
STEPS = {
    "0.1": (13, "figure-9a.toml", 10),
    "0.2": (9, "figure-9b.toml", 5),
    "0.3": (7, "figure-9c.toml", 3),
    "0.4": (6, "figure-9d.toml", 2),
}
#: Topologies whose cells are points of a figure.
FIGURES = ("figure-7", "figure-8", "figure-9")
#: Points of Fig. 7 and 8 where few are run (`--quick`, the atlas): ends, and where the paper's curves part.
FEW_BEST_EFFORT, FEW_LEVELS = (0, 16, 46), (20, 60, 80)
#: The profile that `bucket` is given for: Table I's smallest.
UNIT = 270e3


def depth(bucket: float, profile: float) -> str:
    """Bucket of a profile (bit/s), in proportion to `bucket` bytes at 270 kbit/s.

    >>> depth(320e3, 540e3)
    '640000 B'
    """
    return f"{round(bucket * profile / UNIT)} B"


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs: Table I and Fig. 1, 2 in every set-up, Fig. 7 to 9 in those that have them.

    `full` adds Fig. 7 to 9 elsewhere, and the sweeps.
    """
    few = quick or bool(paper.about.get("coarse"))
    made: list[Job] = []
    for setup in paper.setups:
        make = _Maker(paper, setup, quick)
        made += make.table_1()
        if full or setup.get("figures", True):
            made += make.figures(few)
    for sweep in paper.sweeps:
        if full or not sweep.get("full", True):
            made += _swept(paper, sweep, quick)
    return [made]


class _Maker:
    """Makes the jobs of one set-up."""

    def __init__(self, paper: Paper, setup: Mapping[str, Any], quick: bool) -> None:
        self.paper, self.setup = paper, setup
        self.bucket = float(setup.get("bucket", paper.about["bucket"]))
        self.seeds = paper.about["seeds"]
        self.quick = quick

    def both(
        self,
        topology: str,
        key: str,
        seeds: str,
        sweep: str = "",
        value: str = "",
        *,
        contract: float | None = None,
        values: Mapping[str, object] | None = None,
        schemes: Iterable[str] = SCHEMES,
    ) -> Iterator[Job]:
        """One experiment under each scheme; `contract` (bit/s) replaces the file's, `values` come last."""
        file = self.setup.get("scenarios", self.paper.setups[0]["scenarios"])[key]
        common = {**self.setup.get("set", {}), **self._values(file, contract), **(values or {})}
        quick = "quick" if seeds == "full" else f"{seeds}_quick"
        n = self.seeds[quick if self.quick else seeds]
        cost = self.paper.find("topologies", topology)["cost"]
        for scheme in schemes:
            cell = Cell(self.setup["id"], topology, scheme, "", sweep, value)
            yield Job(cell, n, file, {**SCHEMES[scheme], **common}, cost)

    def _values(self, file: str, contract: float | None) -> dict[str, object]:
        """Each flow's bucket, round-trip time and access link."""
        values: dict[str, object] = {}
        for name, promised in _groups(self.paper, file):
            profile = contract if contract is not None and promised else promised
            if profile:
                values[f"flows.{name}.contract"] = f"{profile:g} bit/s"
                values[f"flows.{name}.marker.depth"] = depth(self.bucket, profile)
            values[f"flows.{name}.rtt"] = self.paper.about["rtt"]
            values[f"flows.{name}.join.rate"] = self.paper.about["access"]
        return values

    def table_1(self) -> Iterator[Job]:
        """Table I, Fig. 2 (with a large w_q, which is said of it alone), and Fig. 1."""
        yield from self.both("table-1", "table-1", "full")
        large = {
            "links.bottleneck.queue.w_q": self.paper.about["large_w_q"],
            "duration": "200 s",
            "measure.to": "200 s",
        }
        yield from self.both("figure-2", "table-1", "full", values=large)
        yield from self.both("figure-1", "figure-1", "full")

    def figures(self, few: bool) -> Iterator[Job]:
        """Fig. 7 to 9."""
        for level, profile in SUBSCRIBED.items():
            for n in FEW_BEST_EFFORT if few else BEST_EFFORT:
                yield from self.both(
                    "figure-7", "figure-7", "figures", level, str(n),
                    contract=profile * 1e6, values={"flows.be.count": n},
                )  # fmt: skip
        for profile in PROFILES:
            for percent in FEW_LEVELS if few else LEVELS:
                count = {"flows.as.count": round(20 * percent / 100 / profile)}
                yield from self.both(
                    "figure-8", "figure-8", "figures", f"{profile:g} Mbit/s", str(percent),
                    contract=profile * 1e6, values=count,
                )  # fmt: skip
        for step, (_, file, _) in STEPS.items():
            yield from self.both("figure-9", file.removesuffix(".toml"), "steps", "step", step)


def _swept(paper: Paper, sweep: Mapping[str, Any], quick: bool) -> Iterator[Job]:
    """Table I with one parameter at several values, the rest as in the set-up."""
    values = sweep["values"]
    if quick:
        values = [values[0], values[-1]]
    for name in sweep["setups"]:
        setup = paper.find("setups", name)
        for value in values:
            bucket = {"bucket": value} if sweep["key"] == "bucket" else {}
            set_ = {} if bucket else {sweep["key"]: value}
            make = _Maker(paper, {**setup, **bucket}, quick)
            schemes = sweep.get("schemes", list(SCHEMES))
            yield from make.both(
                "table-1", "table-1", "study", sweep["id"], str(value), values=set_, schemes=schemes
            )


def _groups(paper: Paper, file: str) -> list[tuple[str, float]]:
    """Groups of flows of a scenario file, and their profiles in bit/s (0: best effort)."""
    return [(g["name"], _rate(g.get("contract"))) for g in _flows(str(paper.folder / file))]


@cache
def _flows(place: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(Path(place).read_text("utf-8"))["flows"]
    return found


def _rate(written: str | None) -> float:
    if written is None:
        return 0.0
    number, unit = written.split()
    return float(number) * {"kbit/s": 1e3, "Mbit/s": 1e6}[unit]
