"""What is run for paper C: each study's schemes over thresholds, with 10 and 40 flows, and the sweeps.

A set-up is a RED law (`laws`), with ns-2's `wait` or without. The first has the law and `wait` that stand at
the top of `paper.toml`, where a reading may replace them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["QUICK", "jobs", "law_of", "swept", "thresholds"]

#: How long quick runs are, in seconds.
QUICK = 100
#: How long the others are (§3).
SECONDS = 1000

Table = Mapping[str, Any]


def thresholds(paper: Paper, study: Table, setup: Table, quick: bool, full: bool) -> list[int]:
    """Values of min_th that a study is run at: fewer in a quick run, an atlas, a set-up run beside."""
    if quick:
        return list(study["quick"])
    if paper.about.get("coarse"):
        return list(study["atlas"])
    if full:
        return list(study["full"])
    if setup is not paper.setups[0]:
        return list(study.get("beside", {}).get("values", []))
    return list(study["values"])


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs: a batch for each set-up, study and number of flows, then the sweeps.

    Without `full`: the first set-up whole, of the others what shows which one matters (`beside`), no sweeps.
    """
    batches = [
        [
            _job(
                paper,
                study,
                Cell(setup["id"], topology["id"], scheme, "", study["id"], str(at)),
                seeds,
                quick,
            )
            for scheme in _schemes(paper, study, topology, setup, full)
            for at in thresholds(paper, study, setup, quick, full)
        ]
        for setup in paper.setups
        for study in paper.about["studies"]
        for topology in paper.topologies
        for seeds in [_seeds(paper, study, setup, quick, full)]
    ]
    if full:
        few = paper.about["seeds"]["sweep_quick" if quick else "sweep"]
        batches += [list(_sweep(paper, sweep, few, quick)) for sweep in paper.sweeps]
    return [batch for batch in batches if batch]


def _seeds(paper: Paper, study: Table, setup: Table, quick: bool, full: bool) -> int:
    """How many seeds a study is run with."""
    seeds: dict[str, int] = paper.about["seeds"]
    if quick:
        return seeds["quick"]
    if setup is not paper.setups[0]:
        return seeds["beside"]
    return max(seeds["full"], study.get("seeds", 0) if full else 0)


def _schemes(paper: Paper, study: Table, topology: Table, setup: Table, full: bool) -> list[str]:
    """Schemes of a study; without `full` not `more`, those that no claim is about."""
    if full:
        return list(study["schemes"])
    beside = study.get("beside", {}) if setup is not paper.setups[0] else {}
    more = study.get("more", {}).get(topology["id"], [])
    schemes = list(beside.get("schemes") or study["schemes"])
    return [scheme for scheme in schemes if scheme not in more]


def swept(sweep: Table, value: str) -> str:
    """How the cells of one value of a sweep are called."""
    return f"{sweep['id']}: {value}"


def _sweep(paper: Paper, sweep: Table, seeds: int, quick: bool) -> Iterator[Job]:
    """Every value of a sweep, at its thresholds; quick ones at the first and the last."""
    study = paper.find("studies", sweep["study"])
    values = sorted({sweep["at"][0], sweep["at"][-1]}) if quick else sweep["at"]
    for value, changes in paper.about[sweep["values"]].items():
        for scheme in sweep["schemes"]:
            for at in values:
                setup = paper.setups[0]["id"]
                cell = Cell(setup, sweep["topology"], scheme, "", swept(sweep, value), str(at))
                job = _job(paper, study, cell, seeds, quick)
                # A baseline has no marker to change.
                marked = "marker" in paper.find("schemes", scheme) or "file" in study
                changed = {k: v for k, v in changes.items() if marked or ".marker." not in k}
                yield Job(cell, seeds, job.file, {**job.values, **changed, "monitors": []}, job.cost)


def law_of(paper: Paper, setup: Table) -> tuple[str, bool]:
    """The RED law of a set-up, by its name among `laws`, and whether it waits."""
    law: str = setup.get("law", paper.about["law"])
    wait: bool = setup.get("wait", paper.about["wait"])
    return law, wait


def _environment(paper: Paper, setup: Table, two: bool) -> dict[str, object]:
    """The set-up's law at every RED and RIO."""
    law, wait = law_of(paper, setup)
    entry = paper.about["laws"][law]
    values: dict[str, object] = {}
    for link in ["bottleneck", "domain-1"] if two else ["bottleneck"]:
        values |= {f"links.{link}.queue.variant": law, f"links.{link}.queue.wait": wait}
    if two:
        values["links.bottleneck.queue.gentle"] = entry["red_gentle"]
    return values


def _job(paper: Paper, study: Table, cell: Cell, seeds: int, quick: bool) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    flows: int = topology["flows"]
    at = int(cell.value)
    two = "file" in study
    values = _environment(paper, paper.find("setups", cell.setup), two)
    free = round(flows * paper.about["free"]) if study.get("free") else 0
    values["flows.marked.count"] = flows - free
    if free or two:
        values["flows.free.count"] = free
    if two:
        values |= _curve("links.bottleneck.queue", (at, 3 * at))
        minimum, maximum, p = scheme["curve"]
        values["links.domain-1.queue.out"] = {"min_th": minimum, "max_th": maximum, "max_p": p}
    else:
        values |= _curve("links.bottleneck.queue.in", (at, 3 * at))
        if scheme.get("out") == "soft":
            values |= _curve("links.bottleneck.queue.out", (at / 3, at))
        if not study.get("load"):
            values["monitors"] = []
    if not two and "marker" in scheme:
        values["flows.marked.marker"] = _marker(paper, scheme, topology)
    values |= study.get("set", {})
    seconds = QUICK if quick else SECONDS
    if quick:
        values |= {"duration": f"{seconds} s", "measure.to": f"{seconds} s"}
    cost = paper.about["cost"] * seconds * (1.3 if flows > 10 else 1.0)
    return Job(cell, seeds, study.get("file", "one-domain.toml"), values, cost)


def _curve(queue: str, between: Sequence[float]) -> dict[str, object]:
    return {
        f"{queue}.{name}": f"{value:.10g} packets"
        for name, value in zip(("min_th", "max_th"), between, strict=True)
    }


def _marker(paper: Paper, scheme: Table, topology: Table) -> dict[str, object]:
    """The scheme's marker; a bucket's rate and n are of the number of flows."""
    made = dict(scheme["marker"])
    if "share" in scheme:
        made["rate"] = f"{round(scheme['share'] * paper.about['capacity'] / topology['flows'])} bit/s"
    if "n" in scheme:
        made["n"] = scheme["n"][topology["id"]]
    return made
