"""Paper E's own part of its report: what is open, ablation, Fig. 2–5, queues, windows seen, two paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...charts import kinds as draw
from ...metrics.measures import Array, Measures
from ...metrics.quantity import pm
from ...metrics.stats import UNLIKE, ci95, estimate
from .. import Cell, Entry
from ..claim import paired
from ..report import Figure, Panels
from .experiments import BASELINE, OURS, cell_of, measured
from .figures import lines
from .measure import PACKET, contracts

if TYPE_CHECKING:
    from ..report import Report

Charts = MutableMapping[str, Mapping[str, Any]]

THEORY = "Theory"


def context(report: Report, charts: Charts) -> dict[str, Any]:
    """What the template shows, chart specifications put into `charts` by name."""
    return {
        "short": list(_in_short(report)),
        "views": [_view(report, setup, charts) for setup in _whole(report)],
        "whole": _whole(report),
        "queues": list(_queues(report)),
        "sources": list(_sources(report)),
        "paths": list(_paths(report)),
        "sweeps": [_sweep(report, sweep, charts) for sweep in report.paper.sweeps if _swept(report, sweep)],
        "ablation": list(_ablation(report)),
        "counted": _counted(report),
        "shown_seed": report.paper.top.whole("shown_seed"),
    }


def _in_short(report: Report) -> Iterator[str]:
    """What the runs say in a few sentences, each of them decided by the figures it gives."""
    paper = report.paper
    like, printed = (s.id for s in paper.setups)
    one, two = "scenario-1", "scenario-2"

    def index(scheme: str, setup: str = like, topology: str = one) -> str:
        return _pm(_cell(report, setup, topology, scheme)["fi"])

    yield (
        "Like against like, with thresholds that act on OUT packets alone on both sides, TWAM and DWRED are"
        f" {_against(report, like, one)} in scenario 1 and {_against(report, like, two)} in scenario 2:"
        f" Jain's index of throughput over contract is {index(OURS)} and {index(OURS, topology=two)} under"
        f" them, {index(BASELINE)} and {index(BASELINE, topology=two)} under the baseline. There the"
        f" baseline's flows of the largest contract get {_largest(report, like, two)} times that contract."
    )
    yield (
        "The paper prints one triple of thresholds for static WRED, and not which packets it is for. With it"
        f" for IN and OUT alike no marker can matter: the baseline has {index(BASELINE, printed)} and"
        f" {index(BASELINE, printed, two)}, and its flows of the largest contract get"
        f" {_largest(report, printed, two)} times that contract in scenario 2."
    )
    yield (
        f"Ablation: DWRED behind TSW2CM has {index('tsw2cm-dwred')} and"
        f" {index('tsw2cm-dwred', topology=two)}; TWAM before static WRED {index('twam-wred')} and"
        f" {index('twam-wred', topology=two)} with thresholds for OUT alone,"
        f" {index('twam-wred', printed)} and {index('twam-wred', printed, two)} with them for both colours."
    )
    ours, fair, base = (
        _cell(report, setup, one, s) for setup, s in ((like, OURS), (like, BASELINE), (printed, BASELINE))
    )
    queues = (_pm(_cell(report, like, t, OURS)["queue.1"], _pipe(report, t)) for t in (one, two))
    yield (
        f"Slow starts per run in scenario 1: {_pm(ours['timeouts'])} under TWAM and DWRED,"
        f" {_pm(fair['timeouts'])} under the baseline, {_pm(base['timeouts'])} under the one with thresholds"
        f" for both colours. DWRED's first queue is {' and '.join(queues)} of bandwidth times delay in"
        " scenarios 1 and 2."
    )


def _against(report: Report, setup: str, topology: str) -> str:
    """Ours beside the baseline, seed by seed, by the index of throughput over contract."""
    ours, base = (_cell(report, setup, topology, s) for s in (OURS, BASELINE))
    interval = ci95(paired(ours, base, "fi"), UNLIKE)
    if interval is None or 0.0 in interval:
        return "statistically tied with the baseline"
    return "fairer" if interval.lo > 0 else "less fair"


def _largest(report: Report, setup: str, topology: str) -> str:
    """What the flows of the largest contract get of it under the baseline."""
    promised = contracts(report.paper, report.paper.find("topologies", topology))
    base = _cell(report, setup, topology, BASELINE)
    flows = np.flatnonzero(promised == promised.max())
    return _pm(np.mean([base[f"x.{i + 1}"] for i in flows], axis=0), float(promised.max()))


def _pipe(report: Report, topology: str) -> float:
    """Bandwidth times propagation delay, in packets."""
    about = report.paper.find("topologies", topology)
    return float(about.number("capacity") * report.paper.top.number("rtt") / PACKET)


def _cell(report: Report, setup: str, topology: str, scheme: str, variant: str = "") -> Measures:
    found: Measures = report.cells[cell_of(report.paper, setup, topology, scheme, variant)]
    return found


def _whole(report: Report) -> list[Entry]:
    """The set-ups of which all scenarios were run: of the second that takes `--full`."""
    cells = {s.id: Cell(s.id, "scenario-4", BASELINE) for s in report.paper.setups}
    return [s for s in report.paper.setups if cells[s.id] in report.cells]


@dataclass(frozen=True)
class View:
    """Fig. 2–5 in one reading of the baseline."""

    setup: Entry
    windows: Sequence[Figure]
    bars: Sequence[Figure]
    rates: Sequence[Figure]


def _view(report: Report, setup: Entry, charts: Charts) -> View:
    return View(
        setup,
        _over_time(report, setup.id, "scenario-1", "cwnd", charts),
        [
            _bars(report, setup.id, "scenario-1", "cwnd", charts),
            _bars(report, setup.id, "scenario-1", "x", charts),
            _bars(report, setup.id, "scenario-2", "x", charts),
            _bars(report, setup.id, "scenario-3", "x", charts),
        ],
        _over_time(report, setup.id, "scenario-4", "rate", charts),
    )


def _over_time(report: Report, setup: str, topology: str, what: str, charts: Charts) -> list[Figure]:
    """Fig. 2 and Fig. 5: a line a flow, ours and the baseline's on the same scale."""
    promised = contracts(report.paper, report.paper.find("topologies", topology))
    factor, y = (1e6, "Mbit/s") if what == "rate" else (1.0, "packets")
    flows = {
        scheme: _lines_of(_cell(report, setup, topology, scheme), what, factor) for scheme in (OURS, BASELINE)
    }
    # Slow start at the beginning of a connection, which overshoots, does not set the scale of windows.
    after = 0.1 if what == "cwnd" else 0.0
    top = max(
        float(np.percentile(line[int(after * len(line)) :], 99.8))
        for _, found in flows.values()
        for line in found.values()
    )
    shown = []
    for scheme, (t, found) in flows.items():
        name = f"{what}-{topology}-{setup}-{scheme}"
        words = [f"{r / 1e6:g} Mbit/s" for r in promised]
        charts[name] = lines(t, found, words, y=y, top=1.05 * top)
        shown.append(Figure(name, report.paper.find("schemes", scheme).title))
    return shown


def _lines_of(measures: Measures, what: str, factor: float) -> tuple[Array, dict[str, Array]]:
    traces = {name: trace for name, trace in measures.traces.items() if name.startswith(f"{what}.")}
    t = next(iter(traces.values())).t
    return t, {name.replace(f"{what}.", "flow "): trace.line / factor for name, trace in traces.items()}


def _bars(report: Report, setup: str, topology: str, what: str, charts: Charts) -> Figure:
    """Fig. 3 and Fig. 4: a column a flow and scheme, beside what contracts ask for."""
    paper = report.paper
    about = paper.find("topologies", topology)
    promised = contracts(paper, about)
    share = promised / promised.sum()
    rows = []
    factor, y = (1e6, "Mbit/s") if what == "x" else (1.0, "packets")
    for scheme in (BASELINE, OURS):
        measures = _cell(report, setup, topology, scheme)
        title = paper.find("schemes", scheme).title
        rows += [
            draw.row(title, measures[f"{what}.{i}"] / factor, measures.seeds, kind=str(i))
            for i in range(1, len(promised) + 1)
        ]
    wanted = about.number("capacity") * share / factor if what == "x" else _pipe(report, topology) * share
    rows += [
        {"scheme": THEORY, "kind": str(i), "seeds": [], "values": [], "mean": w, "lo": w, "hi": w}
        for i, w in enumerate(map(float, wanted), 1)
    ]
    name = f"bars-{what}-{topology}-{setup}"
    schemes = [*(paper.find("schemes", s).title for s in (BASELINE, OURS)), THEORY]
    charts[name] = draw.bars(rows, schemes, x="flow", y=y)
    theory = "C·r/Σr" if what == "x" else "C·RTT·r/Σr"
    title = "Throughput" if what == "x" else "Mean window"
    return Figure(name, about.title, title, f"{about.title} ({about.text}); theory: {theory}")


def _pm(values: Array, factor: float = 1.0) -> str:
    return pm(estimate(float(v) / factor for v in values))


@dataclass(frozen=True)
class Queued:
    """What happens in the queues in a scenario under a scheme, each figure with its interval in words."""

    topology: str
    scheme: str
    #: Mean queue of every hop, and the first's over bandwidth times delay.
    queues: Sequence[str]
    ratio: str
    loss_in: str
    loss_out: str
    in_share: str
    total: str
    timeouts: str
    overflow: str
    fi: str


def _queues(report: Report) -> Iterator[Queued]:
    paper = report.paper
    for cell, m in report.cells.items():
        topology = paper.find("topologies", cell.topology)
        if cell.sweep or "hops" not in topology or cell.scheme not in (BASELINE, OURS):
            continue
        pipe = _pipe(report, cell.topology)
        title = paper.find("schemes", cell.scheme).title
        if cell.scheme == BASELINE:
            title += f", {paper.find('setups', cell.setup).title}"
        if cell.variant:
            title += f", {paper.find('variants', cell.variant).title}"
        yield Queued(
            topology=topology.title,
            scheme=title,
            queues=[_pm(m[f"queue.{n}"]) for n in range(1, len(topology.words("hops")) + 1)],
            ratio=_pm(m["queue.1"], pipe),
            loss_in=_pm(100 * m["loss_in"]),
            loss_out=_pm(100 * m["loss_out"]),
            in_share=_pm(100 * m["in_share"]),
            total=_pm(m["total"], 1e6),
            timeouts=_pm(m["timeouts"]),
            overflow=_pm(100 * m["overflow"]),
            fi=_pm(m["fi"]),
        )


def _counted(report: Report) -> str:
    """Over which time slow starts are counted in scenario 1, and how many that is a flow and minute."""
    setup, topology = report.paper.setups[0].id, report.paper.topologies[0].id
    cells = [cell_of(report.paper, setup, topology, scheme) for scheme in (OURS, BASELINE)]
    start, end = measured(report.paper, report.jobs[cells[0]])
    minutes = (end - start) / 60 * len(contracts(report.paper, report.paper.topologies[0]))
    ours, base = (report.cells[cell]["timeouts"] / minutes for cell in cells)
    return (
        f"from {start:g} to {end:g} s in scenario 1. A flow and minute, {_pm(ours)} under TWAM and DWRED and"
        f" {_pm(base)} under the baseline"
    )


@dataclass(frozen=True)
class Ablated:
    """A marker and a queue, each ours or the baseline's: index and slow starts of every scenario."""

    setup: str
    scheme: str
    found: Sequence[tuple[str, str]]


def _ablation(report: Report) -> Iterator[Ablated]:
    paper = report.paper
    topologies = [t.id for t in paper.topologies if "tsw2cm-dwred" in t.get("beside", ())]
    for setup in paper.setups:
        for scheme in (BASELINE, "tsw2cm-dwred", "twam-wred", OURS):
            cells = [_cell(report, setup.id, topology, scheme) for topology in topologies]
            yield Ablated(
                setup.title,
                paper.find("schemes", scheme).title,
                [(_pm(m["fi"]), _pm(m["timeouts"])) for m in cells],
            )


@dataclass(frozen=True)
class Source:
    """What comes of one way to see windows at the edge."""

    topology: str
    scheme: str
    fi: str
    rate_error: str
    window_error: str
    queue: str
    timeouts: str
    total: str


def _sources(report: Report) -> Iterator[Source]:
    """What the edge takes for a window, against the senders' own."""
    first = report.paper.setups[0].id
    for topology in report.paper.topologies:
        known = [
            s
            for s in topology.get("beside", ())
            if "windows" in report.paper.find("schemes", s)
            and cell_of(report.paper, first, topology.id, s) in report.cells
        ]
        for scheme in [OURS, *known] if known else ():
            m = _cell(report, first, topology.id, scheme)
            yield Source(
                topology=topology.title,
                scheme=report.paper.find("schemes", scheme).title,
                fi=_pm(m["fi"]),
                rate_error=_pm(m["rate_error"]),
                window_error=_pm(m["window_error"]),
                queue=_pm(m["queue.1"], _pipe(report, topology.id)),
                timeouts=_pm(m["timeouts"]),
                total=_pm(m["total"], 1e6),
            )


@dataclass(frozen=True)
class Path:
    """A core that two paths share: what the near and the far flows get."""

    scheme: Entry
    near: str
    far: str
    fi: str


def _paths(report: Report) -> Iterator[Path]:
    """Two paths of unequal round trips: by turns, and in one queue."""
    topology = report.paper.find("topologies", "two-paths")
    half = len(topology.numbers("contracts")) // 2
    for scheme in topology.words("beside"):
        m = _cell(report, report.paper.setups[0].id, topology.id, scheme)
        near, far = (
            np.sum([m[f"x.{i}"] for i in span], axis=0)
            for span in (range(1, half + 1), range(half + 1, 2 * half + 1))
        )
        yield Path(report.paper.find("schemes", scheme), _pm(near, 1e6), _pm(far, 1e6), _pm(m["fi"]))


def _cells_of(report: Report, sweep: Entry) -> list[tuple[str, Measures]]:
    setup, topology = report.paper.setups[0].id, report.paper.topologies[0].id
    cells = ((str(v), Cell(setup, topology, OURS, sweep=sweep.id, value=str(v))) for v in sweep["values"])
    return [(value, report.cells[cell]) for value, cell in cells if cell in report.cells]


def _swept(report: Report, sweep: Entry) -> bool:
    return bool(_cells_of(report, sweep))


def _sweep(report: Report, sweep: Entry, charts: Charts) -> Panels:
    """How shares and windows answer to an assumed parameter."""
    title = report.paper.find("schemes", OURS).title
    found = _cells_of(report, sweep)
    names: Sequence[tuple[str, str]] = (
        ("fi", "index of throughput over contract"),
        ("cwnd", "mean window (packets)"),
        ("timeouts", "slow starts per run"),
    )
    shown = []
    for measure, y in names:
        rows = [draw.row(title, m[measure], value=value) for value, m in found]
        name = f"sweep-{sweep.id}-{measure}"
        charts[name] = draw.response(
            rows, [value for value, _ in found], [title], x=sweep.title, y=y, assumed=sweep.word("assumed")
        )
        shown.append(Figure(name, y))
    return Panels(f"{sweep.title} ({len(found[0][1].seeds)} seeds)", shown)
