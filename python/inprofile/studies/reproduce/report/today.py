"""A paper under today's TCP senders (`papers.today`), as its page and the overview show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....metrics.quantity import pm, quantity
from ....metrics.stats import Estimate, Interval
from ....papers import Paper
from ....papers.judge import Verdict, earlier
from ....papers.verdicts import BECAUSE

__all__ = ["counts_of", "today_context"]


def today_context(found: Mapping[str, Any], paper: Paper) -> dict[str, Any]:
    """The part of the paper's `today.json` that the page's section shows."""
    known = {c["id"]: c["verdicts"] for c in found["claims"]}
    names = [s["id"] for s in found["senders"]]
    return {
        "seeds": found["seeds"],
        "version": found["version"],
        "earlier": earlier(found),
        "senders": found["senders"],
        "setup": paper.find("setups", found["setup"]).title,
        "invalid": [
            (s["title"], found["invalid"][s["id"]]) for s in found["senders"] if s["id"] in found["invalid"]
        ],
        "claims": [
            {
                "id": claim.id,
                "text": claim.text,
                "answers": [_answer(known[claim.id].get(name)) for name in names],
            }
            for claim in paper.claims
            if claim.id in known
        ],
        "rows": [
            {
                "what": row["what"].replace("_", " "),
                "label": row["label"],
                "table": row["table"],
                "paper": "–" if row["paper"] is None else quantity(row["paper"], row["unit"]),
                "figures": [_figure(row["senders"].get(name), row["unit"]) for name in names],
            }
            for row in found["rows"]
        ],
        "shortened": paper.about.get("today", ""),
        "advised": _advised(found.get("advised")),
    }


def _advised(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the page advises under each sender: a row a figure; None where nothing was run."""
    if found is None:
        return None
    names = [s["id"] for s in found["senders"]]
    return {
        "senders": found["senders"],
        "invalid": [
            (s["title"], found["invalid"][s["id"]]) for s in found["senders"] if s["id"] in found["invalid"]
        ],
        "rows": [
            {"words": row["words"], "figures": [_figure(row["senders"].get(n), row["unit"]) for n in names]}
            for row in found["rows"]
        ],
    }


def counts_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many claims have which verdict under each sender."""
    return [
        {
            "title": sender["title"],
            "counts": [
                (v, sum(c["verdicts"].get(sender["id"], [""])[0] == v.value for c in found["claims"]))
                for v in Verdict
            ],
        }
        for sender in found["senders"]
    ]


def _answer(answer: list[Any] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    verdict, holds, opposite, total = Verdict(answer[0]), *answer[1:]
    # Beside no placebo, only the correction makes it another word than the counts do.
    why = "" if verdict in _by_counts(holds, opposite, total) else BECAUSE["correction"]
    return {"verdict": verdict, "holds": holds, "opposite": opposite, "total": total, "why": why}


def _by_counts(holds: int, opposite: int, total: int) -> set[Verdict]:
    """What the counts alone would give, before Holm's correction over the claim's comparisons.

    >>> sorted(v.value for v in _by_counts(3, 0, 4)), sorted(v.value for v in _by_counts(1, 1, 2))
    (['in_part', 'mostly'], ['mixed'])
    """
    if holds and opposite:
        return {Verdict.MIXED}
    if holds:
        return {Verdict.REPRODUCED} if holds == total else {Verdict.MOSTLY, Verdict.IN_PART}
    if opposite:
        return {Verdict.OPPOSITE}
    return {Verdict.NOT_SHOWN, Verdict.NO_EFFECT, Verdict.UNDECIDABLE}


def _figure(figure: Mapping[str, Any] | None, unit: str) -> str:
    if figure is None:
        return "–"
    ci95 = None if figure["ci95"] is None else Interval(*figure["ci95"])
    return pm(Estimate(figure["mean"], ci95, figure["n"]), unit).replace("-", "−")
