"""A reproduced paper as JSON: verdicts with everything they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..judge import Comparison, Judged, JudgedComparison, JudgedNumber
from ..stats import ci95, estimate

if TYPE_CHECKING:
    from ..reproduce import Report

__all__ = ["estimated", "report_json"]


def estimated(values: Sequence[float]) -> dict[str, Any]:
    """Mean, 95 % interval and every seed's value."""
    e = estimate(values)
    return {
        "mean": e.mean,
        "ci95": None if e.ci95 is None else [e.ci95.lo, e.ci95.hi],
        "n": e.n,
        "values": [float(v) for v in values],
    }


def report_json(report: Report) -> dict[str, Any]:
    """One entry of the list `papers` that `reproduce --json` prints."""
    paper = report.paper
    claims = paper.module("claims")
    with_jitter = {(j.claim, j.setup): j for j in report.judged_with_jitter}
    return {
        "paper": paper.name,
        "title": paper.about["title"],
        "authors": paper.about["authors"],
        "year": paper.about["year"],
        "quick": report.quick,
        "seeds": report.seeds,
        "version": report.version,
        "setups": [{"id": s["id"], "title": s["title"], "text": s["text"]} for s in paper.setups],
        "claims": [_claim(report, j, with_jitter[j.claim, j.setup]) for j in report.judged],
        "table1": [
            {**{k: v for k, v in row.items() if k != "values"}, "measured": estimated(row["values"])}
            for row in claims.table(paper, report.cells)
        ],
        "placebo": _placebo(report),
        "measures": [
            {
                "setup": cell.setup,
                "topology": cell.topology,
                "scheme": cell.scheme,
                "jitter": cell.jitter,
                "sweep": cell.sweep or None,
                "value": cell.value or None,
                "digest": report.digests[cell],
                "seeds": list(measures.seeds),
                "derived": report.derived.get(cell),
                "mean": {name: float(x.mean()) for name, x in measures.values.items()},
            }
            for cell, measures in report.cells.items()
        ],
    }


def _claim(report: Report, judged: Judged, with_jitter: Judged) -> dict[str, Any]:
    claim = report.paper.find("claims", judged.claim)
    return {
        "id": judged.claim,
        "setup": judged.setup,
        "text": claim["text"],
        "paper": {"says": claim.get("says"), "numbers": claim.get("numbers", [])},
        "measured": {
            "comparisons": [_comparison(c) for c in judged.comparisons],
            "numbers": [_number(n) for n in judged.numbers],
        },
        "verdict": judged.verdict.value,
        "why": judged.why,
        "with_jitter": {"verdict": with_jitter.verdict.value, "why": with_jitter.why},
    }


def _comparison(judged: JudgedComparison) -> dict[str, Any]:
    c = judged.comparison
    return {
        "label": c.label,
        "topology": c.topology,
        "unit": c.unit or "1",
        "side": c.side,
        "null": c.null,
        **estimated(c.values),
        "p": judged.p,
        "p_holm": judged.p_holm,
        "outcome": judged.outcome,
        "opposite": judged.opposite,
        "obstacle": c.obstacle,
    }


def _number(judged: JudgedNumber) -> dict[str, Any]:
    n = judged.number
    return {
        "label": n.label,
        "topology": n.topology,
        "unit": n.unit or "1",
        "paper": n.paper,
        "where": n.where,
        **estimated(n.values),
        "prediction95": [judged.prediction.lo, judged.prediction.hi],
        "inside": judged.inside,
    }


def _placebo(report: Report) -> list[dict[str, Any]]:
    claims = report.paper.module("claims")
    rows = []
    for setup in report.paper.setups:
        for jitter in (False, True):
            for c in claims.placebo_comparisons(report.paper, report.cells, setup["id"], jitter):
                rows.append(
                    {
                        "setup": setup["id"],
                        "topology": c.topology,
                        "jitter": jitter,
                        "compared": c.label,
                        "differs": _excludes_zero(c),
                        **estimated(c.values),
                    }
                )
    return rows


def _excludes_zero(c: Comparison) -> bool:
    interval = ci95(c.values)
    return interval is not None and 0.0 not in interval
