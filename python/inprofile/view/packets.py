"""A run's packets: which verdicts there were, and the way of one packet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..run.results import Result
from .pack import Arrays, pack
from .why import Step, explain

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PAGE", "packet", "packets"]

PAGE = 200
"""As many verdicts are sent at once."""


def packets(result: Result, seed: int, given: Mapping[str, str]) -> bytes:
    """Verdicts of a run that `given` asks for, some at a time, and what may be asked for.

    `given` may have `flow`, `point`, `verdict`, `cause`, `from` and `to` (in s), `offset`. Without a verdict
    and a cause: all drops and marks.
    """
    import pyarrow.compute as pc

    own = _of_seed(result.verdicts, seed)
    counts = own.group_by(["point", "verdict", "cause"]).aggregate([("packet", "count")]).to_pylist()
    keep = pc.greater_equal(own["time_ps"], round(float(given.get("from") or 0) * 1e12))
    if given.get("to"):
        keep = pc.and_(keep, pc.less_equal(own["time_ps"], round(float(given["to"]) * 1e12)))
    for column in ("flow", "point", "verdict", "cause"):
        if given.get(column):
            keep = pc.and_(keep, pc.equal(own[column], given[column]))
    if not given.get("verdict") and not given.get("cause"):
        keep = pc.and_(keep, pc.or_(pc.equal(own["verdict"], "drop"), pc.equal(own["verdict"], "mark")))
    found = own.filter(pc.fill_null(keep, False))
    offset = max(0, int(given.get("offset") or 0))
    rows = found.slice(offset, PAGE)
    return pack(
        {
            "seed": seed,
            "total": found.num_rows,
            "offset": offset,
            "all": own.num_rows,
            "counts": [
                {"point": c["point"], "verdict": c["verdict"], "cause": c["cause"], "n": c["packet_count"]}
                for c in counts
            ],
            "flows": own["flow"].unique().sort().to_pylist(),
            "rows": [
                {
                    "time": row["time_ps"] / 1e12,
                    "packet": row["packet"],
                    "flow": row["flow"],
                    "point": row["point"],
                    "verdict": row["verdict"],
                    "cause": row["cause"],
                    "why": row["why"] or "",
                }
                for row in rows.to_pylist()
            ],
        },
        Arrays(),
    )


def packet(result: Result, seed: int, number: int) -> bytes:
    """The way of one packet, every verdict explained. Raises LookupError where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = _of_seed(result.verdicts, seed)
    rows = own.filter(pc.equal(own["packet"], pa.scalar(number, own["packet"].type))).to_pylist()
    if not rows:
        raise LookupError(f"seed {seed} has no packet {number}")
    steps = [
        Step(
            row["time_ps"] / 1e12,
            row["point"],
            row["verdict"],
            row["cause"],
            json.loads(row["why"]) if row["why"] else {},
        )
        for row in rows
    ]
    flow = rows[0]["flow"]
    explained: list[dict[str, Any]] = [e.to_json() for e in explain(result.provenance.effective, flow, steps)]
    return pack({"seed": seed, "packet": number, "flow": flow, "steps": explained})


def _of_seed(table: pa.Table, seed: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)))
