"""Answers to the page: the list, a run's figures, its samples over time. Rates in bit/s, times in s.

What each flow of a result got, why, and what it gets without what held it down.

How figures travel to the page: JSON, then the numbers it refers to, as they lie in memory. A length in four
bytes (little endian), as many bytes of JSON, padding to a multiple of eight, then each array as
little-endian doubles. The JSON's `arrays` has their lengths. A hundred thousand samples take a browser a
millisecond so, and fifty as decimal text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..experiment.scenario import Scenario
from ..metrics.stats import POSITIVE, estimate, mean
from ..metrics.summary import unit_of
from ..run.results import Result
from ..studies.explain import Explanation, UnknownFlow, explain
from ..studies.explain.cause import KINDS
from ..studies.explain.removal import removed
from .knobs import levels

if TYPE_CHECKING:
    import pyarrow as pa

    from .folder import Folder


class Arrays:
    """Arrays to be sent, each once: samples of one monitor share their times."""

    def __init__(self) -> None:
        self._at: dict[bytes, int] = {}
        self._lengths: list[int] = []

    def put(self, values: NDArray[Any]) -> int:
        """The number of an array."""
        data = np.ascontiguousarray(values, dtype="<f8").tobytes()
        if data not in self._at:
            self._at[data] = len(self._at)
            self._lengths.append(len(data) // 8)
        return self._at[data]

    @property
    def lengths(self) -> list[int]:
        """How many numbers each has."""
        return self._lengths

    def data(self) -> bytes:
        """All of them."""
        return b"".join(self._at)


def pack(head: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """JSON and arrays in one."""
    arrays = arrays or Arrays()
    text = json.dumps({**head, "arrays": arrays.lengths}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return len(text).to_bytes(4, "little") + text + arrays.data()


def unpack(data: bytes) -> tuple[dict[str, Any], list[NDArray[np.float64]]]:
    """The argument of `pack`.

    >>> made = Arrays()
    >>> t, v = made.put(np.array([0.0, 1.0])), made.put(np.array([5.0]))
    >>> head = {"t": t, "v": v, "again": made.put(np.array([5.0]))}
    >>> unpack(pack(head, made))
    ({'t': 0, 'v': 1, 'again': 1, 'arrays': [2, 1]}, [array([0., 1.]), array([5.])])
    """
    length = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + length])
    found, at = [], 4 + length
    for n in head["arrays"]:
        found.append(np.frombuffer(data, "<f8", n, at))
        at += 8 * n
    return head, found


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
        "flows": {"flow": flows["flow"].to_pylist(), "group": flows["group"].to_pylist(), **columns},
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


TABLES = ("metrics", "flows", "markers", "queues", "drops")
MOST_EXPLAINED = 40
"""Of a result with so many flows, the file to send has the explanation of each."""


def flows(folder: Folder, id_: str) -> bytes:
    """A row for each flow, over the seeds: what it got, of its contract and of all, and what it lost."""
    result = folder.result(id_, ("flows", "drops"))
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in result.flows.to_pylist():
        runs.setdefault(row["flow"], []).append(row)
    lost: dict[str, dict[str, float]] = {}
    for row in result.drops.to_pylist():
        causes = lost.setdefault(row["flow"], {})
        n = (row["in"] + row["out"] + row["red"]) / len(result.seeds)
        causes[row["cause"]] = causes.get(row["cause"], 0.0) + n
    total = sum(mean(float(r["throughput"]) for r in own) for own in runs.values())
    made = [_row(own, lost.get(flow, {}), total) for flow, own in runs.items()]
    return pack({"id": id_, "seeds": list(result.seeds), "flows": plain(made)})


def _row(own: Sequence[dict[str, Any]], lost: dict[str, float], total: float) -> dict[str, Any]:
    def of(column: str) -> float:
        return mean(float(row[column]) for row in own)

    got, contract = estimate((float(row["throughput"]) for row in own), POSITIVE), own[0]["contract"]
    sent = of("sent_in") + of("sent_out")
    return {
        "flow": own[0]["flow"],
        "group": own[0]["group"],
        "contract": contract,
        "rtt": of("rtt"),
        "throughput": {"mean": got.mean, "ci95": list(got.ci95 or (None, None)), "n": got.n},
        "of_contract": got.mean / contract if contract else None,
        "share": got.mean / total if total else None,
        "sent_out": of("sent_out") / sent if sent else None,
        "lost": of("dropped") / max(of("sent"), 1.0),
        "drops": lost,
        "timeouts": of("timeouts"),
    }


def explained(folder: Folder, id_: str, flow: str) -> bytes:
    """Why a flow got what it got. Raises LookupError for one that is not there."""
    result = folder.result(id_, TABLES)
    found = explain(result, flow, sampled=False)
    again = result.provenance.text is not None and result.provenance.live is None
    removals = [KINDS[cause.kind] for cause in found.causes]
    return pack({**plain(found.to_json()), "removals": removals, "again": again})


MOST_SEEDS = 8
"""So many runs, of the first seeds, while somebody waits."""


def without(folder: Folder, id_: str, flow: str, run: Callable[[Scenario, Sequence[int]], Result]) -> bytes:
    """What the flow gets without each cause that is named.

    Raises LookupError, ResultError, ScenarioError, and what `run` raises.
    """
    result = folder.result(id_, TABLES)
    found: Explanation = explain(result, flow, sampled=False)
    if not found.causes:
        raise UnknownFlow(f"no cause is named for {flow}")
    scenario = folder.scenario(id_)
    outcome = removed(scenario, found, run, seeds=found.seeds[:MOST_SEEDS])
    return pack({"outcome": [{**plain(one.to_json()), "words": one.words()} for one in outcome]})
