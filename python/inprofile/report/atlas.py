"""A paper's atlas as its page shows it: shares, what decides, the nearest point, and a map for each claim.

Maps are tables: they need no script, and print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..atlas.answers import BINS, PER_BIN
from ..judge import Verdict
from ..papers import Entry

__all__ = ["atlas_context"]

_HOLDS = ("reproduced", "mostly")


def atlas_context(found: Mapping[str, Any], claims: Sequence[Entry]) -> dict[str, Any]:
    """What the page's section shows of an `atlas.json`; `claims` are the paper's."""
    titles = {f["id"]: f["title"] for f in found["factors"]}
    text = {c.id: c.text for c in claims}
    return {
        "points": found["points"],
        "sobol": found["sobol"],
        "seeds": found["seeds"],
        "invalid": [
            {"point": _point(found, p["point"]) or "the default", "why": p["why"]}
            for p in found["invalid_points"]
        ],
        "claims": [
            {
                "id": c["id"],
                "text": text[c["id"]],
                "shares": [
                    {"name": name, "percent": 100 * c[f"share_{name}"]}
                    for name in ("holds", "open", "opposite", "undecidable")
                ],
                "decisive": [titles[d] for d in c["decisive"]],
                "nearest": _nearest(found, c),
                "confirmed": _confirmed(c),
                "map": _map(found, c),
            }
            for c in found["claims"]
        ],
        "factors": [_factor(f) for f in found["factors"]],
    }


def _name(factor: Mapping[str, Any], value: object) -> str:
    """A choice in words: an alternative's title, or the number."""
    if "choices" in factor:
        return str(factor["titles"][factor["choices"].index(value)])
    return f"{value:g}" if isinstance(value, float) else str(value)


def _point(found: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    by = {f["id"]: f for f in found["factors"]}
    return "; ".join(f"{by[k]['title']}: {_name(by[k], v)}" for k, v in point.items())


def _nearest(found: Mapping[str, Any], claim: Mapping[str, Any]) -> str:
    nearest = claim["nearest"]
    if nearest is None:
        return "at none of the points"
    return _point(found, nearest["point"]) or "at the default"


def _confirmed(claim: Mapping[str, Any]) -> list[str]:
    """The best and the worst point with fresh seeds."""
    said = []
    for which in ("best", "worst"):
        point = claim[which]
        if point is not None and point["fresh_seeds"] is not None:
            fresh = point["fresh_seeds"]
            if "invalid" in fresh:
                said.append(f"{which} point, fresh seeds: could not be measured, {fresh['invalid']}")
                continue
            words = Verdict(fresh["verdict"]).words
            said.append(
                f"{which} point, fresh seeds: {words} ({fresh['counts'][1]} of {fresh['counts'][3]} hold)"
            )
    return said


def _factor(factor: Mapping[str, Any]) -> dict[str, Any]:
    if "choices" in factor:
        box = ", ".join(factor["titles"])
    else:
        box = f"{factor['low']:g} to {factor['high']:g}, {factor['scale']}"
    return {
        "title": factor["title"],
        "kind": factor["kind"],
        "default": _name(factor, factor["default"]),
        "box": box,
    }


def _map(found: Mapping[str, Any], claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """Share of points that hold over the two most important factors; None with fewer than two."""
    ranked = list(claim["importance"])[:2]
    if len(ranked) < 2:
        return None
    ids = [f["id"] for f in found["factors"]]
    axes = [ids.index(name) for name in ranked]
    sampled = [d for d in found["design"] if d["claims"] and d["kind"] == "sobol"]
    if not sampled:
        return None
    labelled = [_labels(found["factors"][axis], [d["values"][axis] for d in sampled]) for axis in axes]
    holds = [d["claims"][claim["id"]][0] in _HOLDS for d in sampled]
    names = [names for names, _ in labelled]
    places = list(zip(labelled[0][1], labelled[1][1], strict=True))
    return {
        "across": {"title": found["factors"][axes[0]]["title"], "names": names[0]},
        "down": {"title": found["factors"][axes[1]]["title"]},
        "rows": [
            {
                "name": row,
                "cells": [
                    _cell([h for h, at in zip(holds, places, strict=True) if at == (x, y)])
                    for x in range(len(names[0]))
                ],
            }
            for y, row in enumerate(names[1])
        ],
    }


def _cell(holds: Sequence[bool]) -> dict[str, Any]:
    return {"n": len(holds), "holds": sum(holds), "share": sum(holds) / len(holds) if holds else None}


def _labels(factor: Mapping[str, Any], values: Sequence[Any]) -> tuple[list[str], list[int]]:
    """Names of a factor's alternatives or bins, and in which of them each value lies."""
    if "choices" in factor:
        return list(factor["titles"]), [factor["choices"].index(v) for v in values]
    ordered = sorted(values)
    count = max(1, min(BINS, 4, len(values) // PER_BIN))
    edges = [ordered[round(i * len(ordered) / count)] for i in range(1, count)]
    lows, highs = [factor["low"], *edges], [*edges, factor["high"]]
    names = [f"{low:.3g}–{high:.3g}" for low, high in zip(lows, highs, strict=True)]
    return names, [sum(v >= edge for edge in edges) for v in values]
