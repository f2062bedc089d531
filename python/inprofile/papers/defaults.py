"""What a paper has that needs no code of its own for it: what is run, what is measured, what its page shows.

- Run is every scheme on every topology in every set-up and variant, with the same seeds: the scenario file
  of the set-up's `scenarios` (or the topology's `file`) with what topology, set-up, scheme and variant
  `set`; a `set` may be by topology. A set-up may be of `full` alone, and the `sweeps` are: `key` at each of
  `values`, on the first topology, with what the sweep `set`s. What of one every run has is its `always`; one
  with `every_seed` has as many seeds as what is judged. A variant's `always` are the schemes that every run
  has.
- Kept are all metrics by name, `QUEUE.column` and `PLACE.column` of every queue and marker, and
  `GROUP.column`, the mean over the flows of a group; `GROUP.delay` where `distributions` are measured; and
  what the paper has `computed` from them.
- The page has what is `computed` and the printed numbers as dots, and what the text leaves open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics.measures import Array, Measures, by_flow, rows
from . import Batches, Cell, Entry, Job, Paper, PaperError
from .arithmetic import ArithmeticProblem, value_of
from .judge_text import per
from .stated import bounds_of

if TYPE_CHECKING:
    from ..run.results import Result
    from .report import Report

Charts = MutableMapping[str, Mapping[str, Any]]


def jobs(paper: Paper, quick: bool = False, full: bool = False) -> Batches:
    """List what `reproduce` runs; derived schemes come after those they are derived from."""
    seeds = paper.seeds.whole("quick" if quick else "full")
    batches = [
        [_job(paper, Cell(setup.id, topology.id, scheme, variant), seeds) for scheme in schemes]
        for variant in variants_of(paper)
        for setup in paper.setups
        if full or not setup.flag("full")
        for topology in paper.topologies
        for schemes in _turns(paper, paper.find("variants", variant) if variant else None, full)
    ]
    return batches + list(sweep_jobs(paper, quick, full=full))


def variants_of(paper: Paper) -> list[str]:
    """The plain condition, and the paper's variants that are runs of their own."""
    return ["", *(v.id for v in paper.variants if not v.flag("same_runs"))]


def sweep_jobs(paper: Paper, quick: bool = False, *, full: bool = True) -> Iterator[list[Job]]:
    """Batches of all sweeps: one parameter varied at a time, on the first topology, few seeds.

    Without `full` the values and schemes that are `always` run.
    """
    for sweep in paper.sweeps:
        which = ("quick", "full") if sweep.flag("every_seed") else ("sweep_quick", "sweep")
        seeds = paper.seeds.whole(which[0 if quick else 1])
        topology = paper.topologies[0].id
        if not full:
            for part in sweep.tables("always"):
                yield [
                    _job(paper, Cell(part.id, topology, scheme, sweep=sweep.id, value=value), seeds)
                    for value in part.words("values")
                    for scheme in part.words("schemes")
                ]
            continue
        for setup in sweep.words("setups"):
            for schemes in _turns(paper, sweep, full):
                yield [
                    _job(paper, Cell(setup, topology, scheme, sweep=sweep.id, value=value), seeds)
                    for value in values_of(sweep)
                    for scheme in schemes
                ]


def values_of(sweep: Entry) -> list[str]:
    """Values of a sweep as cells name them."""
    return [str(value) for value in sweep["values"]]


def value_named(paper: Paper, sweep: Entry, value: str) -> str:
    """A value of a sweep in words: the title of the reading or input that sets it, else as it is written.

    >>> from inprofile import papers
    >>> ard = papers.load("ard")
    >>> value_named(ard, ard.find("sweeps", "drop-order"), "of_remarked")
    'those chosen for remarking'
    """
    if "key" not in sweep:
        return value
    key = sweep.word("key")
    for table, listed in (("readings", "alternatives"), ("inputs", "values")):
        for entry in paper.top.tables(table):
            for choice in entry.tables(listed):
                if str(choice.changes.get(key)).lower() == value.lower() and choice.title:
                    return choice.title
    return value


def _turns(paper: Paper, of: Entry | None, full: bool) -> list[list[str]]:
    """Schemes of a sweep or a variant that run at once, and those that are derived from them."""
    key = "schemes" if full else "always"
    wanted = None if of is None or key not in of else of.words(key)
    schemes = [s for s in paper.schemes if wanted is None or s.id in wanted]
    turns = [[s.id for s in schemes if ("after" in s) == later] for later in (False, True)]
    return [turn for turn in turns if turn]


def _job(paper: Paper, cell: Cell, seeds: int) -> Job:
    topology, scheme = paper.find("topologies", cell.topology), paper.find("schemes", cell.scheme)
    setup = paper.find("setups", cell.setup)
    values: dict[str, object] = {
        **topology.changes,
        **_changes(setup, cell.topology),
        **_changes(scheme, cell.topology),
    }
    if cell.variant:
        values.update(_changes(paper.find("variants", cell.variant), cell.topology))
    if cell.sweep:
        sweep = paper.find("sweeps", cell.sweep)
        values.update(_changes(sweep, cell.topology))
        values[sweep.word("key")] = dict(zip(values_of(sweep), sweep["values"], strict=True))[cell.value]
        # A sweep needs rates and drops only.
        values["monitors"] = []
    after = None
    if "after" in scheme:
        after = Cell(cell.setup, cell.topology, scheme.word("after"), cell.variant, cell.sweep, cell.value)
        # What replaces the scheme's parts has none of their parameters.
        values = {path: value for path, value in values.items() if not _within(path, scheme)}
    file = setup.table("scenarios").word(cell.topology) if "scenarios" in setup else topology.word("file")
    return Job(cell, seeds, file, values, topology.number("cost", 0.0), after)


def _changes(entry: Entry, topology: str) -> Mapping[str, object]:
    """What an entry sets: by topology where the values are tables called as topologies are."""
    changes = entry.changes
    found = changes.get(topology, {})
    for_all = {k: v for k, v in changes.items() if not _by(v, k)}
    return {**for_all, **(found if isinstance(found, Mapping) else {})}


def _by(value: object, key: str) -> bool:
    """Whether this is another topology's table, and not a path of the experiment."""
    return isinstance(value, Mapping) and "." not in key


def _within(path: str, scheme: Entry) -> bool:
    """Whether a path belongs to a part that a derived scheme `replaces`."""
    return any(path.startswith(part) for part in (scheme.words("replaces") if "replaces" in scheme else ()))


def measure(result: Result, cell: Cell, paper: Paper) -> Measures:
    """Keep metrics, and the columns of queues, markers and groups of flows."""
    seeds = result.seeds
    values: dict[str, Array] = {}
    for name, there in Counter(result.metrics["name"].to_pylist()).items():
        # What some run could not tell (how losses coincide, where there were none) is left out.
        if there == len(seeds):
            values[name] = rows(result.metrics, seeds, name=name)["value"]
    for table, key in ((result.queues, "queue"), (result.markers, "place")):
        for place in dict.fromkeys(table[key].to_pylist()):
            found = rows(table, seeds, **{key: place})
            values.update({f"{place}.{column}": x for column, x in found.items() if column != "seed"})
    groups = np.asarray(result.flows["group"].to_pylist()[: result.flows.num_rows // len(seeds)])
    for column in ("throughput", "goodput", "sent_in", "sent_out", "dropped", "timeouts"):
        of = by_flow(result.flows, seeds, column)
        values.update({f"{g}.{column}": of[:, groups == g].mean(axis=1) for g in dict.fromkeys(groups)})
    values.update(_delays(result, seeds))
    values = {name: x for name, x in values.items() if np.isfinite(x).all()}
    for derived in paper.top.tables("computed"):
        if "schemes" not in derived or cell.scheme in derived.words("schemes"):
            values[derived.id] = _derived(derived, values, len(seeds))
    return Measures(tuple(seeds), values, {})


def _delays(result: Result, seeds: tuple[int, ...]) -> dict[str, Array]:
    """`GROUP.delay` and `GROUP.delay_p99`: of its packets beyond the shortest there is, the queues' (s)."""
    import pyarrow.compute as pc

    found: dict[str, Array] = {}
    if result.delays.num_rows == 0:
        return found
    table = result.delays.filter(pc.is_null(result.delays["colour"]))
    for group in filter(None, dict.fromkeys(table["group"].to_pylist())):
        of = rows(table, seeds, measure="excess_delay", group=group)
        found[f"{group}.delay"], found[f"{group}.delay_p99"] = of["mean"], of["p99"]
    return found


def _derived(entry: Entry, values: Mapping[str, Array], seeds: int) -> Array:
    """A measure of the paper's own, computed from the others. Raises `PaperError`."""
    try:
        return np.broadcast_to(value_of(entry.word("value"), values), seeds).copy()
    except ArithmeticProblem as error:
        raise PaperError(f"{entry.place('value')}: {error}") from None


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows: the paper's own and each printed measure as dots, by set-up and topology."""
    from .quotes import parts

    paper = report.paper
    printed = [n.word("measure") for claim in paper.claims for n in claim.tables("numbers")]
    own = {m.id: m for m in paper.top.tables("computed")}
    shown = []
    for measure in dict.fromkeys([*own, *printed]):
        for setup in report.setups:
            for topology in paper.topologies if len(paper.schemes) > 1 else [None]:
                spec = _dots(report, measure, setup.id, topology, own.get(measure))
                if spec is not None:
                    of = paper.schemes[0] if topology is None else topology
                    name = f"{measure}-{setup.id}-{of.id}"
                    charts[name] = spec
                    title = own[measure].title if measure in own else measure
                    shown.append({"chart": name, "measure": title, "setup": setup, "of": of.title})
    return {
        "figures": shown,
        "at_hand": parts(paper.top, paper.folder),
        "quoted": paper.top.tables("quoted"),
        "assumed": paper.top.tables("assumed"),
    }


def _dots(
    report: Report, measure: str, setup: str, topology: Entry | None, own: Entry | None
) -> Mapping[str, Any] | None:
    """A measure under every scheme, and what the paper prints of it; None where no cell has it.

    Without a topology: of the paper's only scheme on every topology.
    """
    from ..charts import kinds as draw

    paper = report.paper
    entries = paper.topologies if topology is None else paper.schemes
    titles = {e.id: e.title for e in entries}
    place = {e.id: (e.id, paper.schemes[0].id) if topology is None else (topology.id, e.id) for e in entries}
    cells = {i: report.cells.get(Cell(setup, *place[i])) for i in titles}
    unit = "" if own is None else own.word("unit", "")
    made = {s: m for s, m in cells.items() if m is not None and measure in m.values}
    if not made:
        return None
    factor, name = per(unit, max(float(np.abs(m[measure]).max()) for m in made.values()))
    bounds = bounds_of(paper, measure)
    rows_of = [draw.row(titles[s], m[measure] / factor, m.seeds, bounds) for s, m in made.items()]
    printed = {titles[i]: p / factor for i in titles if (p := paper.printed(measure, *place[i])) is not None}
    ends = [*printed.values(), *(v for one in rows_of for v in one["values"])]
    room = 0.05 * (max(ends) - min(ends)) or 0.05
    title = measure if own is None else own.title
    return draw.dots(
        rows_of,
        [one["scheme"] for one in rows_of],
        x=f"{title} ({name})" if name else title,
        paper=printed,
        domain=(min(ends) - room, max(ends) + room),
    )
