"""Where FDD-RED pays: by the link's rate and the spread of round-trip times, kept in `boundary.json`.

Run with `inprofile reproduce fdd-red --full`. Without it the page shows what was last kept;
`python -m inprofile.papers.fdd_red.boundary` runs it and writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...experiment.mechanisms import sender
from ...metrics.measures import Measures
from ...metrics.quantity import number
from ...metrics.stats import SHARE, UNLIKE, ci95
from .. import Cell, Job, Paper
from .measure import PACKET

#: The sweep's name in cells.
NAME = "boundary"
FILE = Path(__file__).parent / "boundary.json"
#: Where `inprofile reproduce` keeps what it ran, from the working directory.
CACHE = Path("results/cache")
#: By how much the index must be higher to be worth an account for every flow: ours.
PAYS = 0.05
#: Of the table that says where it pays.
HEADS = (
    *("link", "round trips", "wait (ms)", "ratio", "RED", "FDD-RED", "FDD-RED − RED", "victim at random"),
    *("FQ-CoDel", "pays", "pays with “latest” to the letter"),
    *("CUBIC: RED", "CUBIC: FDD-RED", "CUBIC: FQ-CoDel", "CUBIC: pays"),
)
#: The line that reads Fig. 2's "latest time" to the letter, and the variant that is no reading.
LITERAL, FQ = "newest", "fq-codel"
#: Lines that read Fig. 2 otherwise in one place, by their heads.
READINGS: Mapping[str, str] = {
    "newest": "partner: lost a packet last",
    "partner": "the partner alone is charged (ours)",
    "tail": "the victim's last packet",
    "early": "without overflow",
    "base": "round trips without the queue",
}
#: What is run at every point, by line: scheme, what its queue has beside the set-up's, under which senders.
LINES: Mapping[str, tuple[str, Mapping[str, object], tuple[str, ...]]] = {
    "red": ("red", {}, ("paper", "linux")),
    "fdd": ("fdd", {}, ("paper", "linux")),
    "blind": ("fdd", {"links.bottleneck.queue.victim_flow": "random"}, ("paper", "linux")),
    FQ: ("fdd", {}, ("paper", "linux")),
    "base": ("fdd", {"links.bottleneck.queue.rtt": "base"}, ("paper",)),
    "newest": ("fdd", {"links.bottleneck.queue.latest": "newest"}, ("paper",)),
    "partner": ("fdd", {"links.bottleneck.queue.charge": "partner"}, ("paper",)),
    "tail": ("fdd", {"links.bottleneck.queue.victim_packet": "tail"}, ("paper",)),
    "early": ("fdd", {"links.bottleneck.queue.applies_to": "early"}, ("paper",)),
}


def jobs(paper: Paper) -> Iterator[Job]:
    """Every point: RED, FDD-RED, a victim at random, FQ-CoDel, and other readings of Fig. 2."""
    about = paper.top.table(NAME)
    setup = paper.find("setups", about.word("setup"))
    topology = paper.find("topologies", about.word("topology"))
    ledger = {**paper.find("schemes", "fdd").changes, **setup.table("fdd")}
    fq = paper.find("variants", FQ).changes
    for rate, spread in _points(paper):
        there = {**setup.changes, "links.bottleneck.rate": rate, "flows.tcp.rtt": spread, "monitors": []}
        for line, (scheme, more, senders) in LINES.items():
            queue = fq if line == FQ else {**ledger, **more} if scheme == "fdd" else {}
            for who in senders:
                cell = Cell(setup.id, topology.id, scheme, "", NAME, f"{rate}, {spread}, {line}, {who}")
                made = {**there, **queue, **_sender(who)}
                yield Job(cell, paper.seeds.whole(NAME), topology.word("file"), made, setup.number("cost"))


def _points(paper: Paper) -> list[tuple[str, str]]:
    return [(point.word("rate"), point.word("spread")) for point in paper.top.table(NAME).tables("points")]


def _sender(who: str) -> dict[str, object]:
    """What replaces the paper's TCP; nothing under its own."""
    if who == "paper":
        return {}
    tcp = {**sender(who).tcp, "segment": "500 B", "header": "40 B", "window": "1000 packets"}
    return {"tcp": tcp}


def reduce(paper: Paper, cells: Mapping[Cell, Measures]) -> dict[str, Any]:
    """What is kept of it: indices with intervals, RED's wait in the queue, and FDD-RED's lead over others."""
    about = paper.top.table(NAME)
    setup, topology = about.word("setup"), about.word("topology")
    points = []
    for rate, spread in _points(paper):
        at: dict[str, dict[str, Measures]] = {}
        for line, (scheme, _, senders) in LINES.items():
            for who in senders:
                cell = Cell(setup, topology, scheme, "", NAME, f"{rate}, {spread}, {line}, {who}")
                if cell in cells:
                    at.setdefault(who, {})[line] = cells[cell]
        if at:
            points.append({"rate": rate, "spread": spread, **{who: _at(ms, rate) for who, ms in at.items()}})
    return {"seeds": paper.seeds.whole(NAME), "points": points}


def _at(lines: Mapping[str, Measures], rate: str) -> dict[str, Any]:
    red, fdd = lines["red"], lines["fdd"]
    bits = float(rate.split()[0]) * 1e6
    told: dict[str, Any] = {"wait_ms": round(1e3 * float(red["queue_mean"].mean()) * PACKET / bits, 1)}
    for line, m in lines.items():
        told[line] = _interval(m["fi"], SHARE)
        if line != "fdd":
            told[f"over_{line}"] = _interval(fdd["fi"] - m["fi"], UNLIKE)
    if LITERAL in lines:
        leads = ((rival, lines[LITERAL]["fi"] - lines[rival]["fi"]) for rival in ("red", "blind"))
        told |= {f"{LITERAL}_over_{rival}": _interval(lead, UNLIKE) for rival, lead in leads}
    told["drops"] = [round(float(m["drops"].mean()), 1) for m in (red, fdd, lines[FQ])]
    return told


def _interval(values: Any, bounds: Any) -> list[float]:
    """Mean and ends of its 95 % interval."""
    xs = [float(x) for x in values]
    interval = ci95(xs, bounds)
    if interval is None:
        raise ValueError("an interval needs at least 2 seeds")
    return [round(x, 4) for x in (sum(xs) / len(xs), interval.lo, interval.hi)]


@cache
def kept() -> dict[str, Any]:
    """The last that was run."""
    read: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return read


def found(paper: Paper, cells: Mapping[Cell, Measures]) -> dict[str, Any]:
    """Of this run where it had `--full`, else the last."""
    return reduce(paper, cells) if any(cell.sweep == NAME for cell in cells) else kept()


def pays(at: Mapping[str, Any], reading: str = "") -> str:
    """Whether FDD-RED's index, or a reading's, is shown to exceed RED's and a random victim's by what counts.

    >>> pays({"over_red": [0.2, 0.15, 0.25], "over_blind": [0.1, 0.06, 0.2]})
    'yes'
    >>> pays({"over_red": [0.01, 0.0, 0.02], "over_blind": [0.4, 0.3, 0.5]})
    'no'
    """
    leads = [at[f"{reading}{'_' if reading else ''}over_{rival}"] for rival in ("red", "blind")]
    if all(lo > PAYS for _, lo, _ in leads):
        return "yes"
    return "no" if any(hi < PAYS for _, _, hi in leads) else "open"


def ratio(point: Mapping[str, Any]) -> float:
    """The difference between the longest and the shortest round trip, over the wait in RED's queue.

    >>> ratio({"spread": "20..100 ms", "paper": {"wait_ms": 160.0}})
    0.5
    """
    low, high = (float(x) for x in point["spread"].split()[0].split(".."))
    wait: float = point["paper"]["wait_ms"]
    return (high - low) / wait


@dataclass(frozen=True)
class Table:
    """One of the page's tables."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(told: Mapping[str, Any]) -> list[Table]:
    """The page's tables: where it pays, and what other readings of Fig. 2 give there; a row a point."""
    network = (
        "Five flows with round trips evenly spread between two values, 300 s without the first 100,"
        f" {told['seeds']} seeds: Jain's index, mean with its 95 % interval."
    )
    pays_caption = (
        f"{network} Wait: the mean in RED's queue. Ratio: the longest round trip less the shortest,"
        f" over that wait. It pays (“yes”) where FDD-RED's index is shown to be {PAYS:g} above RED's and"
        " above that of a victim at random (our bound), “no” where either lead is shown to be less."
        " “Latest” to the letter: Fig. 2 charges, beside the arrival's flow, the one whose last drop is the"
        " latest; we read that as longest ago. FQ-CoDel: target 20 ms, interval 400 ms."
    )
    readings_caption = (
        f"{network} FDD-RED as above (the partner's last drop is longest ago, both are charged, the victim's"
        " first packet goes, overflow included, round trips with the queue), and with one of these otherwise."
    )
    places = [(p["rate"], p["spread"].replace("..", " to ")) for p in told["points"]]
    pays_rows, readings_rows = [], []
    for place, p in zip(places, told["points"], strict=True):
        own, under = p["paper"], p["linux"]
        pays_rows.append(
            (
                *place,
                number(own["wait_ms"], 2),
                number(ratio(p), 2),
                *(_shown(own[name]) for name in ("red", "fdd", "over_red", "blind", FQ)),
                pays(own),
                pays(own, LITERAL),
                *(_shown(under[name]) for name in ("red", "fdd", FQ)),
                pays(under),
            )
        )
        readings_rows.append((*place, *(_shown(own[name]) for name in ("red", "fdd", *READINGS))))
    return [
        Table(pays_caption, HEADS, pays_rows),
        Table(readings_caption, (*HEADS[:2], "RED", "FDD-RED", *READINGS.values()), readings_rows),
    ]


def _shown(figure: list[float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*figure).replace("-", "−")


def renew() -> None:
    """Run it and keep it."""
    from ...papers import load
    from ...run.storage import replace_text
    from ..experiment import measure_work, measured_with, work_of

    paper = load("fdd-red")
    planned = list(jobs(paper))
    base: dict[str, Any] = {}
    measure = paper.module("measure").measure
    measured = measure_work(
        [work_of(paper, job, {}, base) for job in planned],
        [measured_with(paper, job) for job in planned],
        lambda index, result: measure(result, planned[index].cell, paper),
        cache=CACHE / paper.name,
    )
    cells = {job.cell: m for job, m in zip(planned, measured, strict=True)}
    replace_text(FILE, written(reduce(paper, cells)))


def written(told: Mapping[str, Any]) -> str:
    """As the file has it: a line a point."""
    points = ",\n".join(f"  {json.dumps(p)}" for p in told["points"])
    return f'{{\n "seeds": {told["seeds"]},\n "points": [\n{points}\n ]\n}}\n'


if __name__ == "__main__":
    renew()
