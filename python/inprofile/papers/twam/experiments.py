"""What is run for paper E: scenario × scheme, readings of both, and the sweeps.

What the paper leaves open is in `paper.toml` by what it is (`contracts`, `rtt`, `limit`, …); here it
becomes paths of the scenario files, which differ from scenario to scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...experiment.scenario import load
from .. import Batches, Cell, Entry, Job, Paper

__all__ = [
    "ALONE", "BASELINE", "CURVE", "HIGH", "LOW", "OURS", "QUEUES", "RAISED", "STATIC", "TOLD",
    "cell_of", "jobs", "late", "measured",
]  # fmt: skip

#: What the paper compares with.
BASELINE = "tsw2cm"
#: The paper's own.
OURS = "twam"
#: Scenario 3 where less is asked for: as long as the others, the late flows at the time that the atlas has.
COARSE = {"duration": "200 s", "measure.from": "50 s", "measure.to": "200 s", "monitors.0.every": "500 ms"}
#: The baseline with thresholds too low and too high (§4), of the set-up's colours.
LOW, HIGH = "tsw2cm-low", "tsw2cm-high"
#: TWAM without DWRED, and DWRED without TWAM.
STATIC, TOLD = "twam-wred", "tsw2cm-dwred"
#: TWAM without DWRED, with thresholds behind which packets wait as long in scenario 2.
ALONE = "twam-wred-high"
#: What does without TWAM: a rate meter that is told all of the link; a queue for each contract at the edge.
RAISED, QUEUES = "tsw2cm-raised", "queue-per-contract"
#: The raised meter before a WRED that has a curve for IN packets, too.
CURVE = "tsw2cm-raised-in"


def cell_of(paper: Paper, setup: str, topology: str, scheme: str, variant: str = "") -> Cell:
    """Find the cell whose runs stand for a scheme in a set-up and under a variant.

    Set-ups differ in static WRED's colours, and a variant changes one scheme: what is the same is run once.
    """
    changed = {} if variant == "" else paper.find("variants", variant)
    if changed.get("scheme") != scheme:
        variant, changed = "", {}
    about = paper.find("schemes", scheme)
    if about.get("core") != "static" or "static" in changed:
        setup = paper.setups[0].id
    return Cell(setup, topology, scheme, variant)


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs; variants, sweeps, windows and some of the second set-up only with `full`.

    A point of the atlas, which has no sweeps, is what the claims compare and nothing beside.
    """
    cells = list(dict.fromkeys(_cells(paper, full, beside=bool(paper.sweeps))))
    batches = [
        [_job(paper, cell, quick) for cell in cells if cell.topology == topology.id]
        for topology in paper.topologies
    ]
    first = paper.topologies[0].id
    for sweep in paper.sweeps if full else ():
        values = map(str, sweep["values"])
        swept = [Cell(paper.setups[0].id, first, OURS, sweep=sweep.id, value=value) for value in values]
        batches.append([_job(paper, cell, quick) for cell in swept])
    return [batch for batch in batches if batch]


def _cells(paper: Paper, full: bool, beside: bool) -> Iterator[Cell]:
    late = paper.top.table("full_only")
    for topology in paper.topologies:
        judged = topology.words("schemes") if "schemes" in topology else []
        shown = topology.words("beside") if beside and "beside" in topology else []
        for scheme in [*judged, *(s for s in shown if full or s not in late.words("windows"))]:
            once = paper.find("schemes", scheme).flag("once")
            kept_for_full = topology.id in late.words("topologies") or scheme in late.words("schemes")
            for setup in paper.setups[: 1 if once or (kept_for_full and not full) else None]:
                yield cell_of(paper, setup.id, topology.id, scheme)
                for variant in paper.variants if full and scheme in judged else ():
                    yield cell_of(paper, setup.id, topology.id, scheme, variant.id)


def measured(paper: Paper, job: Job) -> tuple[float, float]:
    """The time that a job's runs are measured over, in seconds: the file's, unless the job sets another."""
    of_file = load(paper.folder / job.file).as_written["measure"]
    start, end = (str(job.values.get(f"measure.{key}", of_file[key])) for key in ("from", "to"))
    return float(start.removesuffix(" s")), float(end.removesuffix(" s"))


def late(contracts: Sequence[float]) -> list[bool]:
    """Which flows start late in scenario 3: the last of each group of equal contracts (§5.3).

    >>> late([1e6, 1e6, 2e6, 2e6, 2e6])
    [False, True, False, False, True]
    """
    last = {contract: index for index, contract in enumerate(contracts)}
    return [last[contract] == index for index, contract in enumerate(contracts)]


def _job(paper: Paper, cell: Cell, quick: bool) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    values: dict[str, object] = {**topology.changes, **scheme.changes}
    if quick:
        values.update(topology.get("quick", {}))
    elif "late" in topology and paper.top.flag("coarse"):
        values.update(COARSE)
    if "hops" in topology:
        values.update(_assumed(paper, cell, topology, quick))
    if cell.sweep:
        values.update(_swept(paper, cell, topology))
    count = topology.whole("seeds")
    if quick or cell.sweep:
        count = paper.seeds.whole("quick" if quick else "sweep")
    return Job(cell, count, topology.word("file"), values, topology.number("cost"))


def _assumed(paper: Paper, cell: Cell, topology: Entry, quick: bool) -> dict[str, object]:
    """What the paper leaves open, as `paper.toml` has it."""
    about = paper.top
    scheme = paper.find("schemes", cell.scheme)
    static = scheme.word("core") == "static"
    change: Mapping[str, Any] = paper.find("variants", cell.variant) if cell.variant else {}
    promised = about.numbers("contracts")
    raised = scheme.number("raised_to") / sum(promised) if "raised_to" in scheme else 1.0
    values: dict[str, object] = {
        "flows.af.contract": [f"{raised * r / 1e6:g} Mbit/s" for r in promised],
        "flows.af.rtt": f"{about.number('rtt') * 1e3:g} ms",
    }
    if "late" in topology:
        key = "quick" if quick else "atlas" if paper.top.flag("coarse") else "full"
        when = topology.table("late").word(key)
        values["flows.af.start"] = [when if x else "0 s" for x in late(about.numbers("contracts"))]
    if static:
        # A reading may say it for all set-ups.
        of = about if "static_colours" in about else paper.find("setups", cell.setup)
        laws = scheme if "static" in scheme else about
        law = change.get("static") or laws.table("static").table(of.word("static_colours"))
    else:
        law = {"aqm": "dwred", **about.table("dwred"), **change.get("dwred", {})}
        values.update(_windows(about, scheme.word("windows", about.word("windows"))))
    queue = {"limit": about["limit"], "w_q": about["w_q"], "wait": about["wait"], **law}
    values.update(_queues(topology.words("hops"), queue))
    values.update(change.get("set", {}))
    return values


def _windows(about: Entry, windows: str) -> dict[str, object]:
    """What counts as a window at the edge."""
    marker: dict[str, str] = {
        "per_rtt": {"window_source": "estimated"},
        "per_base_rtt": {"window_source": "estimated", "rtt": f"{about.number('rtt') * 1e3:g} ms"},
        "outstanding": {"window_source": "outstanding"},
        "cwnd": {"window_source": "oracle"},
    }[windows]
    return {f"edges.R1.marker.{key}": value for key, value in marker.items()}


def _queues(hops: Sequence[str], queue: Mapping[str, Any]) -> dict[str, object]:
    """Each hop's assured queue replaced: `hop2/af` is a class of a scheduler, and keeps its name.

    >>> _queues(["hop1", "hop2/af"], {"aqm": "drop_tail"})["links.hop2.queue.classes.af"]
    {'name': 'af', 'aqm': 'drop_tail'}
    """
    found: dict[str, object] = {}
    for hop in hops:
        link, _, name = hop.partition("/")
        if name:
            found[f"links.{link}.queue.classes.{name}"] = {"name": name, **queue}
        else:
            found[f"links.{link}.queue"] = dict(queue)
    return found


def _swept(paper: Paper, cell: Cell, topology: Entry) -> dict[str, object]:
    """What a sweep's value changes: a choice of the input or reading of that name, or as said here."""
    for table, listed in (("inputs", "values"), ("readings", "alternatives")):
        for entry in paper.top.tables(table):
            if entry.id == cell.sweep:
                [choice] = [c for c in entry[listed] if c["id"] == cell.value]
                there = Paper(paper.name, paper.folder, {**paper.about, **choice.get("paper", {})})
                return {**_assumed(there, cell, topology, False), **choice.get("set", {})}
    if cell.sweep == "loss":
        lossy = [{"from": "R1", "to": hop, "loss": float(cell.value)} for hop in topology.words("hops")]
        return {"signals": lossy}
    if cell.sweep == "rfc":
        return {"tcp.profile": "rfc", "tcp.congestion": cell.value}
    raise KeyError(cell.sweep)
