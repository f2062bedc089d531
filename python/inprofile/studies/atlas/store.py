"""An atlas as JSON: what `atlas --json` prints, and what a paper's folder keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...papers import Paper
from ...papers.factors import Factor
from ...papers.judge import RULES
from ...papers.rerun import Answer
from ...run.storage import record_lines, replace_text
from . import Atlas, Confirmed
from .answers import ClaimAnswer, distance
from .visit import Visited

#: The file in a paper's folder.
NAME = "atlas.json"


def atlas_json(atlas: Atlas) -> dict[str, Any]:
    """One entry of the list `papers` that `atlas --json` prints."""
    planned = atlas.plan
    return {
        "paper": planned.paper.name,
        "setup": planned.paper.setups[0].id,
        "seeds": planned.seeds,
        "rules": RULES,
        "points": len(atlas.visited),
        "sobol": sum(v.planned.kind == "sobol" for v in atlas.visited),
        "invalid": len(atlas.invalid),
        "invalid_points": [
            {"point": v.planned.changed(planned.factors), "why": v.invalid} for v in atlas.invalid
        ],
        "claims": [_claim(atlas, a) for a in atlas.answers],
        "factors": [_factor(f) for f in planned.factors],
        "design": [
            {
                "kind": v.planned.kind,
                "values": [v.planned.point[f.id].value for f in planned.factors],
                "claims": {c: _answer(a) for c, a in v.answers.items() if c in planned.claims},
            }
            for v in atlas.visited
        ],
    }


def _claim(atlas: Atlas, a: ClaimAnswer) -> dict[str, Any]:
    confirmed = {c.which: c for c in atlas.confirmed if c.claim == a.id}
    return {
        "id": a.id,
        **{f"share_{name}": round(share, 6) for name, share in a.shares.items()},
        **apart_json(a),
        "applies": list(a.applies),
        "decisive": list(a.decisive),
        "importance": a.importance,
        "nearest": None if a.nearest is None else _point(atlas, a, a.nearest),
        "best": None if a.best is None else _confirmed(atlas, a, a.best, confirmed.get("best")),
        "worst": None if a.worst is None else _confirmed(atlas, a, a.worst, confirmed.get("worst")),
    }


def apart_json(a: ClaimAnswer) -> dict[str, Any]:
    """What a claim comes to under alternatives that the reading rejects; nothing where there are none."""
    made = [
        {
            "factor": one.factor,
            "value": one.value,
            "points": one.points,
            **{f"share_{name}": round(share, 6) for name, share in one.shares.items()},
        }
        for one in a.apart
    ]
    return {"apart": made} if made else {}


def _point(atlas: Atlas, a: ClaimAnswer, visited: Visited) -> dict[str, Any]:
    """A point by what of it the claim's experiments contain."""
    factors = [f for f in atlas.plan.factors if f.id in a.applies]
    return {
        "point": visited.planned.changed(factors),
        "distance": round(distance(factors, visited), 4),
        "verdict": visited.answers[a.id].verdict.value,
    }


def _confirmed(atlas: Atlas, a: ClaimAnswer, visited: Visited, found: Confirmed | None) -> dict[str, Any]:
    return {**_point(atlas, a, visited), "fresh_seeds": None if found is None else _fresh(found)}


def _fresh(found: Confirmed) -> dict[str, Any]:
    if found.fresh is None:
        return {"invalid": found.invalid}
    return {"verdict": found.fresh.verdict.value, "counts": _answer(found.fresh)}


def _answer(a: Answer) -> list[str | int]:
    """Verdict, comparisons that hold, that are opposite, and all."""
    return [a.verdict.value, a.holds, a.opposite, a.total]


def _factor(f: Factor) -> dict[str, Any]:
    box: dict[str, Any] = {"low": f.low, "high": f.high, "scale": "log" if f.log else "linear"}
    lists: dict[str, Any] = {"choices": [c.value for c in f.choices], "titles": [c.title for c in f.choices]}
    return {
        "id": f.id,
        "title": f.title,
        "kind": f.kind,
        "default": f.default.value,
        **(lists if f.choices else box),
    }


def _varied(factor: dict[str, Any]) -> dict[str, Any]:
    """A factor without its titles, which say the same in other words."""
    return {key: value for key, value in factor.items() if key not in ("title", "titles")}


def write(atlas: Atlas, path: Path) -> None:
    """Write it, whole or not at all: see `write_json`."""
    write_json(atlas_json(atlas), path)


def write_json(data: dict[str, Any], path: Path) -> None:
    """Write what `atlas_json` made, a line a point."""
    replace_text(path, record_lines(data))


def committed(paper: Paper) -> dict[str, Any] | None:
    """The atlas in the paper's folder; None where there is none."""
    place = paper.folder / NAME
    if not place.exists():
        return None
    found: dict[str, Any] = json.loads(place.read_text("utf-8"))
    if not stale(paper, found):
        # Titles as the paper's file has them now.
        found["factors"] = [_factor(f) for f in paper.factors]
    return found


def stale(paper: Paper, found: dict[str, Any]) -> str:
    """Say what of the paper has changed since its atlas was made; empty where nothing has."""
    if [_varied(f) for f in found["factors"]] != [_varied(_factor(f)) for f in paper.factors]:
        return "its readings or inputs"
    if [c["id"] for c in found["claims"]] != [c.id for c in paper.claims if c.flag("atlas", True)]:
        return "its claims"
    if found["setup"] != paper.setups[0].id:
        return "its primary set-up"
    return ""
