"""What is run for paper C: each study's schemes over thresholds, with 10 and 40 flows, and the sweeps.

A set-up is a RED law (`laws`), with ns-2's `wait` or without. The first has the law and `wait` that stand at
the top of `paper.toml`, where a reading may replace them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import Batches, Cell, Entry, Job, Paper

#: How long quick runs are, in seconds; and those without `--full`.
QUICK, SHORT = 100, 500
#: How long the others are (§3).
SECONDS = 1000


def thresholds(paper: Paper, study: Entry, setup: Entry, quick: bool, full: bool) -> list[int]:
    """Values of min_th that a study is run at: fewer in a quick run, an atlas, a set-up run beside."""
    if "setups" in study:
        values = study.numbers("values")
    elif quick:
        values = study.numbers("quick")
    elif paper.top.flag("coarse"):
        values = study.numbers("atlas")
    elif full:
        first = setup.id == paper.setups[0].id
        values = study.numbers("full" if first or "full_beside" not in study else "full_beside")
    elif setup.id == paper.setups[0].id:
        values = study.numbers("values")
    else:
        values = study.table("beside").numbers("values") if "beside" in study else []
    return [int(value) for value in values]


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs: a batch for each set-up, study and number of flows, then the sweeps.

    Without `full`: the first set-up whole, of the others what is needed (`beside`), no study that is
    `full_only`, no sweeps, all of it half as long. What runs under today's senders is as long as §3 has it;
    an atlas has durations of its own.
    """
    seconds = QUICK if quick else SECONDS if full or paper.top.flag("coarse") else SHORT
    batches = [
        [
            _job(paper, study, Cell(setup.id, topology.id, scheme, "", study.id, str(at)), seeds, seconds)
            for scheme in _schemes(paper, study, topology, setup, full)
            for at in thresholds(paper, study, setup, quick, full)
        ]
        for setup in paper.setups
        if full or not setup.flag("full")
        for study in paper.top.tables("studies")
        if full or not study.flag("full_only")
        for topology in paper.topologies
        if topology.id in _networks(paper, study, setup, full)
        # What only some set-ups have is for the advice: it is not in an atlas, nor under today's senders.
        if "setups" not in study or (setup.id in study.words("setups") and not paper.top.flag("coarse"))
        for seeds in [_seeds(paper, study, setup, quick, full)]
    ]
    if full:
        few = paper.seeds.whole("sweep_quick" if quick else "sweep")
        batches += [
            list(_sweep(paper, sweep, few if quick else sweep.whole("seeds", few), quick, seconds))
            for sweep in paper.sweeps
        ]
    return [batch for batch in batches if batch]


def _seeds(paper: Paper, study: Entry, setup: Entry, quick: bool, full: bool) -> int:
    """How many seeds a study is run with."""
    if "always" in study:
        return study.whole("always")
    if quick:
        return paper.seeds.whole("quick")
    if setup.id != paper.setups[0].id:
        return paper.seeds.whole("beside")
    return max(paper.seeds.whole("full"), study.whole("seeds", 0) if full else 0)


def _networks(paper: Paper, study: Entry, setup: Entry, full: bool) -> list[str]:
    """Networks of a study: all, or those that it names; without `full` those that its `beside` names."""
    beside = study.table("beside") if "beside" in study and setup.id != paper.setups[0].id else None
    for about in (study,) if full or beside is None else (beside, study):
        if "topologies" in about:
            return about.words("topologies")
    return [topology.id for topology in paper.topologies]


def _schemes(paper: Paper, study: Entry, topology: Entry, setup: Entry, full: bool) -> list[str]:
    """Schemes of a study; without `full` not `more`, those that no claim is about."""
    schemes = study.words("schemes")
    if full:
        return schemes
    if setup.id != paper.setups[0].id and "beside" in study:
        schemes = study.table("beside").words("schemes")
    more = study.table("more").get(topology.id, []) if "more" in study else []
    return [scheme for scheme in schemes if scheme not in more]


def swept(sweep: Entry, value: str) -> str:
    """How the cells of one value of a sweep are called: as those of another sweep where it continues that."""
    return f"{sweep.word('continues', sweep.id)}: {value}"


def _sweep(paper: Paper, sweep: Entry, seeds: int, quick: bool, seconds: int) -> Iterator[Job]:
    """Every value of a sweep, at its thresholds; quick ones at the first and the last."""
    study = paper.find("studies", sweep.word("study"))
    at_all = [int(x) for x in sweep.numbers("at")]
    values = sorted({at_all[0], at_all[-1]}) if quick else at_all
    table = paper.top.table(sweep.word("values"))
    setup = sweep.word("setup", paper.setups[0].id)
    for value in sweep.words("only") if "only" in sweep else table:
        changes = table.table(value)
        for scheme in sweep.words("schemes"):
            for at in values:
                cell = Cell(setup, sweep.word("topology"), scheme, "", swept(sweep, value), str(at))
                job = _job(paper, study, cell, seeds, seconds)
                # A baseline has no marker to change.
                marked = "marker" in paper.find("schemes", scheme) or "file" in study
                changed = {k: v for k, v in changes.items() if marked or ".marker." not in k}
                yield Job(cell, seeds, job.file, {**job.values, **changed, "monitors": []}, job.cost)


def law_of(paper: Paper, setup: Entry) -> tuple[str, bool]:
    """The RED law of a set-up, by its name among `laws`, and whether it waits."""
    return setup.word("law", paper.top.word("law")), setup.flag("wait", paper.top.flag("wait"))


def _environment(paper: Paper, setup: Entry, two: bool) -> dict[str, object]:
    """The set-up's law at every RED and RIO."""
    law, wait = law_of(paper, setup)
    entry = paper.top.table("laws").table(law)
    values: dict[str, object] = {}
    for link in ["bottleneck", "domain-1"] if two else ["bottleneck"]:
        values |= {f"links.{link}.queue.variant": law, f"links.{link}.queue.wait": wait}
    if two:
        values["links.bottleneck.queue.gentle"] = entry.flag("red_gentle")
    return values


def _job(paper: Paper, study: Entry, cell: Cell, seeds: int, seconds: int) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    flows = topology.whole("flows")
    at = int(cell.value)
    two = "file" in study
    values = _environment(paper, paper.find("setups", cell.setup), two)
    free = round(flows * paper.top.number("free")) if study.flag("free") else 0
    values["flows.marked.count"] = flows - free
    if free or two:
        values["flows.free.count"] = free
    if two:
        values |= _curve("links.bottleneck.queue", (at, 3 * at))
        minimum, maximum, p = scheme["curve"]
        values["links.domain-1.queue.out"] = {"min_th": minimum, "max_th": maximum, "max_p": p}
    else:
        values |= _curve("links.bottleneck.queue.in", (at, 3 * at))
        if scheme.word("out", "") == "soft":
            values |= _curve("links.bottleneck.queue.out", (at / 3, at))
        if not study.flag("load"):
            values["monitors"] = []
    if not two and "marker" in scheme:
        values["flows.marked.marker"] = _marker(paper, scheme, topology)
    values |= dict(study.changes)
    if seconds != SECONDS:
        values |= {"duration": f"{seconds} s", "measure.to": f"{seconds} s"}
    cost = paper.top.number("cost") * seconds * study.number("cost", 1.0) * (1.3 if flows > 10 else 1.0)
    return Job(cell, seeds, study.word("file", "one-domain.toml"), values, cost)


def _curve(queue: str, between: Sequence[float]) -> dict[str, object]:
    return {
        f"{queue}.{name}": f"{value:.10g} packets"
        for name, value in zip(("min_th", "max_th"), between, strict=True)
    }


def _marker(paper: Paper, scheme: Entry, topology: Entry) -> dict[str, object]:
    """The scheme's marker; a bucket's rate and n are of the number of flows."""
    made: dict[str, object] = dict(scheme.table("marker"))
    if "share" in scheme:
        rate = scheme.number("share") * paper.top.number("capacity") / topology.whole("flows")
        made["rate"] = f"{round(rate)} bit/s"
    if "n" in scheme:
        made["n"] = scheme.table("n").whole(topology.id)
    return made
