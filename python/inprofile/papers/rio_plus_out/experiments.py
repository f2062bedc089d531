"""What is run for paper B: Table I with its variants, the points of Fig. 1 and 7 to 9, bucket sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import Batches, Cell, Job, Paper

__all__ = ["BEST_EFFORT", "BUCKETS", "LEVELS", "PROFILES", "STEPS", "SUBSCRIBED", "WEIGHTS", "jobs"]

#: RI+O in the place of RIO: the same, and the thresholds for the average of OUT packets.
IN = {"min_th": "60 packets", "max_th": "180 packets", "max_p": 0.02}
TOTAL = {"min_th": "30 packets", "max_th": "90 packets", "max_p": 0.05}
OUT = {"min_th": "10 packets", "max_th": "30 packets", "max_p": 0.1}
QUEUE = {"limit": "1000 packets", "w_q": 0.5, "in": IN, "avg_update": "every_arrival"}

#: The averaging weight decides much, so it is swept in every full run; the file's own is the last.
WEIGHTS = (0.002, 0.02, 0.1, 0.5)

#: Fig. 7: best-effort flows, at profiles of 2 and 2.5 Mbit/s (40 and 50 % subscribed).
BEST_EFFORT = (0, 1, 2, 6, 11, 16, 26, 46)
SUBSCRIBED = {"40 %": "2 Mbit/s", "50 %": "2.5 Mbit/s"}
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
#: The study its conclusion speaks of: bucket of the 270 kbit/s flow in bytes, the others' in proportion.
BUCKETS = (3200, 8000, 16000, 40000, 80000, 320000)
#: Bytes of bucket per bit/s of profile, as in Table I.
DEPTH = 8000 / 270e3

TCP: Mapping[str, Mapping[str, object]] = {
    "": {},
    "sack": {"tcp.congestion": "sack"},
    "rfc": {"tcp.profile": "rfc", "tcp.congestion": "sack"},
    "cubic": {"tcp.profile": "rfc", "tcp.congestion": "cubic"},
}


def jobs(paper: Paper, quick: bool = False, sweeps: bool = False) -> Batches:
    """List what `reproduce` runs."""
    seeds = paper.about["seeds"]
    tail = "_quick" if quick else ""
    full, figures, study = seeds["quick" if quick else "full"], seeds[f"figures{tail}"], seeds[f"study{tail}"]
    return [
        [
            *_table_1(paper, full, study, quick),
            *_both(paper, Cell("as-described", "figure-1", ""), figures, "figure-1.toml"),
            *_figure_7(paper, figures, quick),
            *_figure_8(paper, figures, quick),
            *_figure_9(paper, figures),
            *_buckets(paper, study, quick),
            *(_more(paper, study) if sweeps else ()),
        ]
    ]


def _both(
    paper: Paper,
    cell: Cell,
    seeds: int,
    file: str,
    values: Mapping[str, object] | None = None,
    **queue: object,
) -> Iterator[Job]:
    """The same experiment under RIO and under RI+O."""
    cost = paper.find("topologies", cell.topology)["cost"]
    rio = {"aqm": "rio", "out": TOTAL, **QUEUE, **queue}
    plus = {"aqm": "rio_plus_out", "total": TOTAL, "out": OUT, **QUEUE, **queue}
    for scheme, aqm in (("rio", rio), ("rio-plus-out", plus)):
        here = Cell(cell.setup, cell.topology, scheme, cell.variant, cell.sweep, cell.value)
        yield Job(here, seeds, file, {**(values or {}), "links.bottleneck.queue": aqm}, cost)


def _table_1(paper: Paper, full: int, study: int, quick: bool) -> Iterator[Job]:
    for variant, tcp in TCP.items():
        cell = Cell("as-described", "table-1", "", variant)
        yield from _both(paper, cell, full if not variant else study, "table-1.toml", tcp, watch=True)
    for w_q in WEIGHTS[:: len(WEIGHTS) - 1] if quick else WEIGHTS:
        swept = Cell("as-described", "table-1", "", sweep="w_q", value=str(w_q))
        yield from _both(paper, swept, study, "table-1.toml", w_q=w_q)


def _figure_7(paper: Paper, seeds: int, quick: bool) -> Iterator[Job]:
    for level, profile in SUBSCRIBED.items():
        # At least the ends and one between: crossings are found between points.
        for n in (0, 11, 46) if quick else BEST_EFFORT:
            cell = Cell("as-described", "figure-7", "", sweep=level, value=str(n))
            rate = float(profile.split()[0]) * 1e6
            values = {
                "flows.as.contract": profile,
                "flows.as.marker.depth": f"{round(DEPTH * rate)} B",
                "flows.be.count": n,
            }
            yield from _both(paper, cell, seeds, "figure-7.toml", values)


def _figure_8(paper: Paper, seeds: int, quick: bool) -> Iterator[Job]:
    for profile in PROFILES:
        for level in (20, 60, 100) if quick else LEVELS:
            cell = Cell("as-described", "figure-8", "", sweep=f"{profile:g} Mbit/s", value=str(level))
            count = round(20 * level / 100 / profile)
            values = {
                "flows.as.count": count,
                "flows.as.contract": f"{profile:g} Mbit/s",
                "flows.as.marker.depth": f"{round(DEPTH * profile * 1e6)} B",
            }
            yield from _both(paper, cell, seeds, "figure-8.toml", values)


def _figure_9(paper: Paper, seeds: int) -> Iterator[Job]:
    for step, (_, file, _) in STEPS.items():
        yield from _both(paper, Cell("as-described", "figure-9", "", sweep="step", value=step), seeds, file)


def _depths(bucket: int) -> dict[str, object]:
    return {f"flows.as{i}.marker.depth": f"{bucket * (i + 1)} B" for i in range(5)}


def _buckets(paper: Paper, seeds: int, quick: bool) -> Iterator[Job]:
    for bucket in (BUCKETS[0], BUCKETS[1], BUCKETS[-1]) if quick else BUCKETS:
        cell = Cell("as-described", "table-1", "", sweep="bucket", value=str(bucket))
        yield from _both(paper, cell, seeds, "table-1.toml", _depths(bucket))


def _more(paper: Paper, seeds: int) -> Iterator[Job]:
    """The sweeps that explain: parameters that had to be assumed, and the paper's future work."""
    for update in ("clark_fang", "every_arrival", "ns2"):
        cell = Cell("as-described", "table-1", "", sweep="avg_update", value=update)
        yield from _both(paper, cell, seeds, "table-1.toml", avg_update=update)
    for segment in ("536 B", "960 B", "1460 B"):
        cell = Cell("as-described", "table-1", "", sweep="segment", value=segment)
        yield from _both(paper, cell, seeds, "table-1.toml", {"tcp.segment": segment})
    for strictness in (0.0, 0.25, 0.5, 0.75):
        cell = Cell("as-described", "table-1", "rio-plus-out", sweep="strictness", value=str(strictness))
        pair = list(_both(paper, cell, seeds, "table-1.toml"))
        queue = pair[1].values["links.bottleneck.queue"]
        assert isinstance(queue, Mapping)  # noqa: S101 (made above)
        values = {**pair[1].values, "links.bottleneck.queue": {**queue, "strictness": strictness}}
        yield Job(pair[1].cell, seeds, "table-1.toml", values, pair[1].cost)
