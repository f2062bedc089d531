"""What is run for paper E: scenario × scheme, readings of the baseline and of DWRED, and the sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import Batches, Cell, Job, Paper

__all__ = ["BASELINE", "OURS", "cell_of", "jobs"]

#: The scheme whose queue a set-up changes; all others are the same in every set-up.
BASELINE = "tsw2cm"
#: The paper's own.
OURS = "twam"


def cell_of(paper: Paper, setup: str, topology: str, scheme: str, variant: str = "") -> Cell:
    """Find the cell whose runs stand for a scheme in a set-up and under a variant.

    Only the baseline differs between set-ups, and only DWRED under variants: what is the same is run once.
    """
    if scheme == BASELINE:
        return Cell(setup, topology, scheme)
    return Cell(paper.setups[0]["id"], topology, scheme, variant)


def jobs(paper: Paper, quick: bool = False, sweeps: bool = False) -> Batches:
    """List what `reproduce` runs."""
    cells = list(dict.fromkeys(_cells(paper)))
    batches = [
        [_job(paper, cell, quick) for cell in cells if cell.topology == topology["id"]]
        for topology in paper.topologies
    ]
    first = paper.topologies[0]["id"]
    for sweep in paper.sweeps:
        if sweeps or not (quick or sweep.get("more", False)):
            swept = [
                Cell(paper.setups[0]["id"], first, OURS, sweep=sweep["id"], value=str(v))
                for v in sweep["values"]
            ]
            batches.append([_job(paper, cell, quick) for cell in swept])
    return batches


def _cells(paper: Paper) -> Iterator[Cell]:
    for topology in paper.topologies:
        for scheme in topology["schemes"]:
            for setup in paper.setups:
                yield cell_of(paper, setup["id"], topology["id"], scheme)
        if OURS in topology["schemes"]:
            for variant in paper.variants:
                yield cell_of(paper, paper.setups[0]["id"], topology["id"], OURS, variant["id"])


def _job(paper: Paper, cell: Cell, quick: bool) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    values: dict[str, object] = {**topology.get("set", {}), **scheme.get("set", {})}
    if cell.scheme == BASELINE:
        values.update(_queues(topology["hops"], paper.find("setups", cell.setup)["queue"]))
    if cell.variant:
        change = paper.find("variants", cell.variant)["set"]
        values.update({f"{path}.{key}": v for path in _paths(topology["hops"]) for key, v in change.items()})
    if cell.sweep:
        values.update(_swept(paper, topology, cell))
    seeds = paper.about["seeds"]
    if quick:
        values.update(topology.get("quick", {}))
        return Job(cell, seeds["quick"], topology["file"], values, topology["cost"])
    return Job(
        cell, seeds["sweep"] if cell.sweep else topology["seeds"], topology["file"], values, topology["cost"]
    )


def _paths(hops: Sequence[str]) -> list[str]:
    """Where each hop's assured queue stands in the file: `hop2/af` is a class of a scheduler.

    >>> _paths(["hop1", "hop2/af"])
    ['links.hop1.queue', 'links.hop2.queue.classes.af']
    """
    split = (hop.split("/") for hop in hops)
    return [f"links.{link}.queue" + "".join(f".classes.{name}" for name in rest) for link, *rest in split]


def _queues(hops: Sequence[str], queue: Mapping[str, Any]) -> dict[str, object]:
    """Each hop's assured queue replaced; a class keeps its name."""
    return {
        path: {"name": path.rpartition(".")[2], **queue} if ".classes." in path else dict(queue)
        for path in _paths(hops)
    }


def _swept(paper: Paper, topology: Mapping[str, Any], cell: Cell) -> dict[str, object]:
    """What a sweep's value changes."""
    value = {str(v): v for v in paper.find("sweeps", cell.sweep)["values"]}[cell.value]
    match cell.sweep:
        case "limit" | "w_q":
            return {f"{path}.{cell.sweep}": value for path in _paths(topology["hops"])}
        case "in_factor":
            change = {"colours": "both", "in_factor": value}
            return {f"{path}.{key}": v for path in _paths(topology["hops"]) for key, v in change.items()}
        case "loss":
            return {"signals": [{"from": "R1", "to": hop, "loss": value} for hop in topology["hops"]]}
        case "alpha":
            return {"edges.R1.marker.alpha": value}
        case "congestion":
            return {"tcp.congestion": value}
        case "rfc":
            return {"tcp.profile": "rfc", "tcp.congestion": value}
        case unknown:
            raise KeyError(unknown)
