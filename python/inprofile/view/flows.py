"""What each flow of a result got, why, and what it gets without what held it down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..experiment.scenario import Scenario
from ..metrics.stats import POSITIVE, estimate, mean
from ..run.results import Result
from ..studies.explain import Explanation, UnknownFlow, explain
from ..studies.explain.cause import KINDS
from ..studies.explain.removal import removed
from .answers import plain
from .pack import pack

if TYPE_CHECKING:
    from .folder import Folder

__all__ = ["MOST_EXPLAINED", "explained", "flows", "without"]

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
