"""What is run for paper C: each study's schemes over thresholds, with 10 and 40 flows; the sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["QUICK", "SETUP", "jobs", "swept", "thresholds"]

#: The only set-up.
SETUP = "as-described"
#: How long quick runs are, in seconds.
QUICK = 100
#: Bottleneck, in bit/s.
RATE = 6_000_000


def thresholds(study: Mapping[str, Any], quick: bool) -> list[int]:
    """Values of min_th that a study is run at."""
    return list(study["quick"] if quick else study["values"])


def jobs(paper: Paper, quick: bool = False, sweeps: bool = False) -> Batches:
    """List what `reproduce` runs: a batch for each study and number of flows, then the sweeps."""
    seeds = paper.about["seeds"]
    full, few = (seeds["quick"], seeds["sweep_quick"]) if quick else (seeds["full"], seeds["sweep"])
    batches = [
        [
            _job(paper, study, Cell(SETUP, topology["id"], scheme, "", study["id"], str(at)), full, quick)
            for scheme in study["schemes"]
            for at in thresholds(study, quick)
        ]
        for study in paper.about["studies"]
        for topology in paper.topologies
    ]
    for sweep in paper.sweeps:
        if sweeps or not sweep.get("more", False):
            batches.append(list(_sweep(paper, sweep, few, quick)))
    return batches


def swept(sweep: Mapping[str, Any], value: str) -> str:
    """How the cells of one value of a sweep are called."""
    return f"{sweep['id']}: {value}"


def _sweep(paper: Paper, sweep: Mapping[str, Any], seeds: int, quick: bool) -> Iterator[Job]:
    """Every value of a sweep, at its thresholds; quick ones at the first and the last."""
    study = next(s for s in paper.about["studies"] if s["id"] == sweep["study"])
    thresholds = sorted({sweep["at"][0], sweep["at"][-1]}) if quick else sweep["at"]
    for value, changes in paper.about[sweep["values"]].items():
        for scheme in sweep["schemes"]:
            for at in thresholds:
                cell = Cell(SETUP, sweep["topology"], scheme, "", swept(sweep, value), str(at))
                job = _job(paper, study, cell, seeds, quick)
                yield Job(cell, seeds, job.file, {**job.values, **changes, "monitors": []}, job.cost)


def _job(paper: Paper, study: Mapping[str, Any], cell: Cell, seeds: int, quick: bool) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    flows: int = topology["flows"]
    at = int(cell.value)
    free = flows // 2 if study.get("free") else 0
    values: dict[str, object] = {"flows.marked.count": flows - free}
    two = "file" in study
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
        values["flows.marked.marker"] = _marker(scheme, topology)
    values |= study.get("set", {})
    seconds = QUICK if quick else 1000
    if quick:
        values |= {"duration": f"{seconds} s", "measure.to": f"{seconds} s"}
    cost = paper.about["cost"] * seconds * (1.3 if flows > 10 else 1.0)
    return Job(cell, seeds, study.get("file", "one-domain.toml"), values, cost)


def _curve(queue: str, between: tuple[float, float]) -> dict[str, object]:
    return {
        f"{queue}.{name}": f"{value:.10g} packets"
        for name, value in zip(("min_th", "max_th"), between, strict=True)
    }


def _marker(scheme: Mapping[str, Any], topology: Mapping[str, Any]) -> dict[str, object]:
    """The scheme's marker; a bucket's rate and n are of the number of flows."""
    made = dict(scheme["marker"])
    if "share" in scheme:
        made["rate"] = f"{round(scheme['share'] * RATE / topology['flows'])} bit/s"
    if "n" in scheme:
        made["n"] = scheme["n"][topology["id"]]
    return made
