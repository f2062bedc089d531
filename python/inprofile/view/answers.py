"""Answers to the page: the list, a run's figures, its samples over time. Rates in bit/s, times in s."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics.summary import unit_of
from ..run.results import Result
from .levels import levels
from .pack import Arrays, pack

if TYPE_CHECKING:
    import pyarrow as pa

    from .folder import Folder

__all__ = ["figures", "index", "lines", "provenance", "run", "series"]

SUMMARY = ("metrics", "flows", "markers")
FLOW_COLUMNS = ("contract", "throughput", "goodput", "sent_in", "sent_out", "dropped", "timeouts")


def index(folder: Folder | None, router: str | None = None) -> bytes:
    """Everything in the folder, and the router that is watched."""
    if folder is None:
        return pack({"folder": None, "router": router, "entries": []})
    place = folder.place.resolve()
    entries = [e.to_json() for e in folder.entries()]
    return pack({"folder": place.name or str(place), "router": router, "entries": entries})


def run(folder: Folder, id_: str) -> bytes:
    """A result over its seeds: metrics, groups and contracts with intervals, and where it comes from."""
    result = folder.result(id_, SUMMARY)
    contracts = result.contracts
    return pack(
        {
            "id": id_,
            **provenance(result),
            "metrics": {name: m.to_json() for name, m in result.summary().items()},
            "groups": [group.to_json() for group in result.groups()],
            "contracts": contracts.to_json() if contracts else None,
            "words": contracts.words() if contracts else "",
            "problem": folder.entry(id_).problem,
        }
    )


def provenance(result: Result) -> dict[str, Any]:
    """Where a result comes from, and all its settings."""
    made = result.provenance
    return {
        "title": made.title,
        "seeds": list(made.seeds),
        "version": made.version,
        "digest": made.digest,
        "live": made.live is not None,
        "again": made.text is not None and made.live is None,
        "set": [list(pair) for pair in made.overrides],
        "text": made.text,
        "effective": made.effective,
    }


def series(folder: Folder, id_: str, seed: int) -> bytes:
    """One run of a result: its flows and metrics, and what its monitors sampled."""
    result = folder.result(id_, (*SUMMARY, "series"))
    if seed not in result.seeds:
        raise LookupError(f"{id_} has no seed {seed}")
    arrays = Arrays()
    found = {
        "seed": seed,
        **figures(result, seed),
        "lines": lines(result.series, seed, arrays),
        "levels": levels(result.provenance.effective),
    }
    return pack(found, arrays)


def figures(result: Result, seed: int) -> dict[str, Any]:
    """A run's metrics, and its flows as rows."""
    metrics = _of(result.metrics, seed)
    flows = _of(result.flows, seed)
    names = [c for c in FLOW_COLUMNS if c in flows.column_names]
    columns = {c: [_number(x) for x in flows[c].to_pylist()] for c in names}
    return {
        "metrics": {
            name: {"unit": unit, "value": value}
            for name, unit, value in zip(
                *(metrics[c].to_pylist() for c in ("name", "unit", "value")), strict=True
            )
            if _number(value) is not None
        },
        "flows": {
            "flow": flows["flow"].to_pylist(),
            "group": flows["group"].to_pylist(),
            **columns,
        },
        "units": {c: unit_of(c) for c in names},
    }


def lines(table: pa.Table, seed: int, arrays: Arrays) -> list[dict[str, Any]]:
    """The samples of a run, a line for each monitor and quantity."""
    own = _of(table, seed)
    if not own.num_rows:
        return []
    monitors, monitor = _coded(own["monitor"])
    whats, what = _coded(own["what"])
    code = monitor.astype(np.int64) * len(whats) + what
    order = np.argsort(code, kind="stable")
    codes, starts = np.unique(code[order], return_index=True)
    t, v = own["t"].to_numpy()[order], own["value"].to_numpy()[order]
    # In the order of the experiment, which is that of the rows.
    first = {int(c): int(order[s]) for c, s in zip(codes, starts, strict=True)}
    ends = dict(zip(codes.tolist(), zip(starts, [*starts[1:], len(order)], strict=True), strict=True))
    made = []
    for c in sorted(first, key=lambda c: first[c]):
        start, end = ends[c]
        made.append(
            {
                "monitor": monitors[c // len(whats)],
                "what": whats[c % len(whats)],
                "t": arrays.put(t[start:end]),
                "v": arrays.put(v[start:end]),
            }
        )
    return made


def _of(table: pa.Table, seed: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)))


def _coded(column: pa.ChunkedArray) -> tuple[Sequence[str], Any]:
    """Texts as their distinct values and a number a row."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.to_numpy()


def _number(x: float | None) -> float | None:
    """None for what JSON has no number for."""
    return None if x is None or not math.isfinite(x) else x


def plain(value: object) -> Any:
    """The same with None for what is no finite number, at any depth."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
