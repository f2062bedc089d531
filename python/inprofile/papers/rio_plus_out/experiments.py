"""What is run for paper B: Table I, Fig. 1 and 2, points of Fig. 7 to 9, and what is varied one at a time.

Of no figure are Table I's contracts with ten flows each, and what `larger` has: the advice needs them.

A scenario file is RIO in the primary set-up. What a set-up changes, and what the atlas varies, is data:
`bucket`, `starts_full`, `rtt` and `access` of `paper.toml` (of which each flow has its own), a set-up's
`set`, `[[sweeps]]`. A variant replaces `starts_full`, `counted` or keys of the network, which are what
claim B8 hangs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NotRequired, TypedDict

from ...experiment.scenario import load
from .. import Batches, Cell, Entry, Job, Paper
from . import larger
from .larger import assured

#: Topologies whose cells are points of a figure.
FIGURES = ("figure-7", "figure-8", "figure-9")
#: The profile that `bucket` is given for: Table I's smallest.
UNIT = 270e3


def depth(bucket: float, profile: float) -> str:
    """Bucket of a profile (bit/s), in proportion to `bucket` bytes at 270 kbit/s.

    >>> depth(320e3, 540e3)
    '640000 B'
    """
    return f"{round(bucket * profile / UNIT)} B"


def curve(written: str) -> dict[str, object]:
    """A drop curve from how a sweep names it: min_th and max_th in packets, max_p.

    >>> curve("10, 30, 0.1")
    {'min_th': '10 packets', 'max_th': '30 packets', 'max_p': 0.1}
    """
    low, high, most = written.split(", ")
    return {"min_th": f"{low} packets", "max_th": f"{high} packets", "max_p": float(most)}


def subscribed(paper: Paper) -> dict[str, float]:
    """Fig. 7: profiles in Mbit/s, by subscription."""
    about = paper.top.table("figures").table("subscribed")
    return {level: about.number(level) for level in about}


def levels(paper: Paper) -> list[tuple[float, Entry]]:
    """Fig. 8: profiles in Mbit/s, and up to which subscription the paper has each kept, by scheme."""
    return [(entry.number("profile"), entry) for entry in paper.top.tables("levels")]


def own(paper: Paper, variant: str) -> tuple[bool, bool]:
    """Whether buckets start full under a variant, and whether B8 counts Table I from 30 s on."""
    entry = paper.find("variants", variant) if variant else paper.top
    counted = entry.word("counted", paper.top.word("counted"))
    return entry.flag("starts_full", paper.top.flag("starts_full")), counted == "later"


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs: the first set-up whole, of the others Table I and what the advice needs.

    `full` adds their figures, more seeds of Table I where the advice is of neither, the variants, the sweeps,
    and what of `larger` no sentence of the advice is about. Points of an atlas, and what is run under today's
    senders, have fewer points of Fig. 7 and 8 (`coarse`).
    """
    few = quick or paper.top.flag("coarse")
    made: list[Job] = []
    for setup in paper.setups:
        make = _Maker(paper, setup, quick)
        whole = full or setup.id == paper.setups[0].id
        made += make.table_1("full" if whole or setup.flag("advised") else "study")
        if whole:
            made += [*make.figures_1_2(), *make.figures(few)]
        elif setup.flag("advised"):
            made += make.figure_8(few, "advised", [setup.number("advised_profile")])
        if setup.flag("advised"):
            made += make.both("ten-flows", "ten-flows", "study")
    for variant in paper.variants if full else ():
        for name in variant.words("setups"):
            made += _Maker(paper, paper.find("setups", name), quick, variant=variant.id).in_drops(few)
    for sweep in paper.sweeps:
        made += _swept(paper, sweep, quick, full)
    if not paper.top.flag("coarse"):
        made += larger.jobs(paper, partial(_larger, paper, quick), full)
    return [made]


def _larger(paper: Paper, quick: bool, entry: Entry, *network: str, **values: Any) -> Iterator[Job]:
    """The jobs of one entry of `larger`, under its scheme."""
    make = _Maker(paper, paper.find("setups", entry.word("setup")), quick, entry.number("bucket"))
    return make.both(*network, schemes=[entry.word("scheme", "rio")], **values)


class _Maker:
    """Makes the jobs of one set-up."""

    def __init__(
        self, paper: Paper, setup: Entry, quick: bool, bucket: float | None = None, variant: str = ""
    ) -> None:
        self.paper, self.setup, self.quick, self.variant = paper, setup, quick, variant
        self.full, self.later = own(paper, variant)
        #: What the variant changes of the network; its points of the figures are then its own.
        self.changes = paper.find("variants", variant).changes if variant else {}
        self.bucket = setup.number("bucket", paper.top.number("bucket")) if bucket is None else bucket

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
        schemes: Iterable[str] | None = None,
    ) -> Iterator[Job]:
        """One experiment under each scheme; `contract` (bit/s) replaces the file's, `values` come last."""
        setup = self.setup if "scenarios" in self.setup else self.paper.setups[0]
        file = setup.table("scenarios").word(key)
        common = {**self.setup.changes, **self._values(file, contract), **(values or {}), **self.changes}
        quick = "quick" if seeds == "full" else f"{seeds}_quick"
        n = self.paper.seeds.whole(quick if self.quick else seeds)
        cost = self.paper.find("topologies", topology).number("cost")
        for scheme in self.paper.schemes:
            if schemes is None or scheme.id in schemes:
                cell = Cell(self.setup.id, topology, scheme.id, self.variant, sweep, value)
                yield Job(cell, n, file, {**scheme.changes, **common}, cost)

    def _values(self, file: str, contract: float | None) -> dict[str, object]:
        """Each flow's bucket and whether it starts full, round-trip time and access link."""
        values: dict[str, object] = {}
        for name, promised in _groups(self.paper, file):
            profile = contract if contract is not None and promised else promised
            if profile:
                values[f"flows.{name}.contract"] = f"{profile:g} bit/s"
                values[f"flows.{name}.marker.depth"] = depth(self.bucket, profile)
                if not self.full:
                    values[f"flows.{name}.marker.starts_full"] = False
            values[f"flows.{name}.rtt"] = self.paper.top.word("rtt")
            values[f"flows.{name}.join.rate"] = self.paper.top.word("access")
        return values

    def table_1(self, seeds: str) -> Iterator[Job]:
        """Table I, with as many seeds as `seeds` says."""
        yield from self.both("table-1", "table-1", seeds)

    def figures_1_2(self) -> Iterator[Job]:
        """Fig. 2 (with a large w_q, which is said of it alone) and Fig. 1; B8's other count by a reading."""
        large = {
            "links.bottleneck.queue.w_q": self.paper.top.number("large_w_q"),
            "duration": "200 s",
            "measure.to": "200 s",
            # How much the averages move (B10).
            "monitors": [{"queue": "bottleneck", "every": "100 ms"}],
        }
        yield from self.both("figure-2", "table-1", "full", values=large)
        yield from self.both("figure-1", "figure-1", "full")
        if self.later:
            yield from self._later()

    def in_drops(self, few: bool) -> Iterator[Job]:
        """What a variant's B8 is judged by, where it is not what is run anyway."""
        yield from self._later() if self.later else self.both("table-1", "table-1", "full")
        if self.changes or self.full != self.paper.top.flag("starts_full"):
            yield from self.figures(few)

    def _later(self) -> Iterator[Job]:
        """Table I measured from 30 s on."""
        values = self.paper.find("topologies", "table-1-later").changes
        yield from self.both("table-1-later", "table-1", "full", values=values)

    def figures(self, few: bool) -> Iterator[Job]:
        """Fig. 7 to 9."""
        about = self.paper.top.table("figures").table("best_effort")
        for level, profile in subscribed(self.paper).items():
            for n in map(int, about.numbers("few" if few else "all")):
                yield from self.both(
                    "figure-7", "figure-7", "figures", level, str(n),
                    contract=profile * 1e6, values={"flows.be.count": n},
                )  # fmt: skip
        yield from self.figure_8(few, "figures", [profile for profile, _ in levels(self.paper)])
        for step in self.paper.top.tables("steps"):
            key = step.word("file").removesuffix(".toml")
            yield from self.both("figure-9", key, "steps", "step", step.id)

    def figure_8(self, few: bool, seeds: str, profiles: Sequence[float]) -> Iterator[Job]:
        """Fig. 8 for these profiles (Mbit/s), with as many seeds as `seeds` says."""
        about = self.paper.top.table("figures").table("levels")
        for profile in profiles:
            for percent in map(int, about.numbers("few" if few else "all")):
                count = {"flows.as.count": assured(profile, percent)}
                yield from self.both(
                    "figure-8", "figure-8", seeds, f"{profile:g} Mbit/s", str(percent),
                    contract=profile * 1e6, values=count,
                )  # fmt: skip


def _swept(paper: Paper, sweep: Entry, quick: bool, full: bool) -> Iterator[Job]:
    """Table I with one parameter varied, the rest as in the set-up; without `full` what `always` names."""
    key, every = sweep.word("key"), sweep["values"]
    parts = sweep.tables("always")
    names = sweep.words("setups") if full else [part.id for part in parts]
    for i, name in enumerate(names):
        about = sweep if full else parts[i]
        values: Sequence[Any] = about.get("values", every)
        if quick and values is every:
            values = sweep.get("quick", [every[0], every[-1]])
        for value in values:
            bucket = key == "bucket"
            make = _Maker(paper, paper.find("setups", name), quick, float(value) if bucket else None)
            yield from make.both(
                "table-1",
                "table-1",
                "study",
                sweep.id,
                str(value),
                values={} if bucket else {key: curve(value) if key.endswith(".out") else value},
                schemes=next((x.words("schemes") for x in (about, sweep) if "schemes" in x), None),
            )


def _groups(paper: Paper, file: str) -> list[tuple[str, float]]:
    """Groups of flows of a scenario file, and their profiles in bit/s (0: no bucket of their own)."""
    return [
        (g["name"], _rate(g.get("contract")) if g["marker"]["kind"] == "token_bucket" else 0.0)
        for g in _flows(str(paper.folder / file))
    ]


class _Flows(TypedDict):
    """What is read of a group of flows in an experiment file."""

    name: str
    marker: dict[str, str]
    contract: NotRequired[str]


@cache
def _flows(place: str) -> list[_Flows]:
    found: list[_Flows] = load(place).as_written["flows"]
    return found


def _rate(written: str | None) -> float:
    if written is None:
        return 0.0
    number, unit = written.split()
    return float(number) * {"kbit/s": 1e3, "Mbit/s": 1e6}[unit]
