"""The answers of an atlas, derived again from the counts that it keeps: nothing is run.

    python -m inprofile.studies.atlas.rejudge rio-plus-out

Needed where the rules of `answers` or `applies` have changed and the runs have not. Best and worst points
stay those that were run again with fresh seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ...papers import Paper
from ...papers import load as load_paper
from ...papers.claim import Verdict
from ...papers.factors import Factor, Point
from ...papers.rerun import Answer
from .answers import ClaimAnswer, answer, applying, distance
from .store import NAME, apart_json, committed, stale, write_json
from .visit import Planned, Visited


def rejudged(paper: Paper, found: Mapping[str, Any]) -> dict[str, Any]:
    """The atlas `found` of this paper with its claims judged again.

    Raises ValueError where it is of other readings, inputs or claims than the paper has now.
    """
    if why := stale(paper, dict(found)):
        raise ValueError(f"the atlas of {paper.name} is of other {why}: it has to be run again")
    factors = paper.factors
    visited = [_visited(factors, point) for point in found["design"]]
    contained = applying(paper, factors, [c["id"] for c in found["claims"]])
    claims = [
        _claim(c, answer(c["id"], contained[c["id"]], visited), contained[c["id"]]) for c in found["claims"]
    ]
    return {**found, "claims": claims}


def _visited(factors: Sequence[Factor], point: Mapping[str, Any]) -> Visited:
    chosen: Point = {f.id: f.find(value) for f, value in zip(factors, point["values"], strict=True)}
    answers = {
        claim: Answer(Verdict(verdict), holds, opposite, total)
        for claim, (verdict, holds, opposite, total) in point["claims"].items()
    }
    return Visited(Planned(point["kind"], chosen), answers, "" if answers else "not kept")


def _claim(before: Mapping[str, Any], a: ClaimAnswer, factors: Sequence[Factor]) -> dict[str, Any]:
    return {
        "id": a.id,
        **{f"share_{name}": round(share, 6) for name, share in a.shares.items()},
        **apart_json(a),
        "applies": list(a.applies),
        "decisive": list(a.decisive),
        "importance": a.importance,
        "nearest": None if a.nearest is None else _nearest(a, a.nearest, factors),
        "best": _within(before["best"], factors),
        "worst": _within(before["worst"], factors),
    }


def _nearest(a: ClaimAnswer, visited: Visited, factors: Sequence[Factor]) -> dict[str, Any]:
    return {
        "point": visited.planned.changed(factors),
        "distance": round(distance(factors, visited), 4),
        "verdict": visited.answers[a.id].verdict.value,
    }


def _within(point: Mapping[str, Any] | None, factors: Sequence[Factor]) -> dict[str, Any] | None:
    """A point by what of it the claim's experiments contain; none under what the reading rejects since."""
    if point is None or any(f.find(point["point"][f.id]).rejected for f in factors if f.id in point["point"]):
        return None
    changed = {f.id: point["point"][f.id] for f in factors if f.id in point["point"]}
    far = sum((f.distance(f.find(changed[f.id])) for f in factors if f.id in changed), 0.0)
    return {**point, "point": changed, "distance": round(far, 4)}


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m inprofile.studies.atlas.rejudge", description=__doc__)
    parser.add_argument("papers", nargs="+")
    for name in parser.parse_args().papers:
        paper = load_paper(name)
        found = committed(paper)
        if found is None:
            sys.exit(f"{name} has no {NAME}: run inprofile atlas {name}")
        write_json(rejudged(paper, found), paper.folder / NAME)


if __name__ == "__main__":
    _main()
