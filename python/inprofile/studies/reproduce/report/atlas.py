"""A paper's atlas as its page shows it: shares, what decides, the nearest point, and a map for each claim.

Maps are tables: they need no script, and print.

Which claims an atlas with its few seeds cannot show, though more seeds do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....papers import Paper
from ....papers.claim import Verdict
from ....papers.judge import earlier
from ....papers.judge_text import listed
from ...atlas.answers import BINS, PER_BIN

if TYPE_CHECKING:
    from ....papers.report import Report


_HOLDS = ("reproduced", "mostly")


def atlas_context(found: Mapping[str, Any], paper: Paper) -> dict[str, Any]:
    """The part of the paper's `atlas.json` that the page's section shows."""
    units = {f.id: f.unit_name for f in paper.factors}
    found = {**found, "factors": [{**f, "unit": units.get(f["id"], "")} for f in found["factors"]]}
    titles = {f["id"]: f["title"] for f in found["factors"]}
    text = {c.id: c.text for c in paper.claims}
    return {
        "points": found["points"],
        "sobol": found["sobol"],
        "seeds": found["seeds"],
        "earlier": earlier(found),
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
                "apart": [_apart(found, one) for one in c.get("apart", ())],
                "left_out": sum(one["points"] for one in c.get("apart", ())),
                "decisive": [titles[d] for d in c["decisive"]],
                "nearest": _nearest(found, c),
                "confirmed": _confirmed(c),
                "map": _map(found, c),
            }
            for c in found["claims"]
        ],
        "foremost": _foremost(found, titles),
        "factors": [_factor(f) for f in found["factors"]],
        "lacks": [c.id for c in paper.claims if c.id not in {known["id"] for known in found["claims"]}],
    }


def _foremost(found: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The two factors that explain most of a claim alone: how much, of which, and whether chance would."""
    most: dict[str, tuple[float, str, bool]] = {}
    for claim in found["claims"]:
        for factor, share in claim["importance"].items():
            if share > most.get(factor, (0.0,))[0]:
                most[factor] = (share, claim["id"], factor in claim["decisive"])
    if not most:
        return "No factor explains any of the variation between points."
    said = [
        f"{titles[factor]} ({100 * share:.0f} % of {claim}, {'decisive' if sure else 'which may be chance'})"
        for factor, (share, claim, sure) in sorted(most.items(), key=lambda one: one[1], reverse=True)
    ]
    return f"What explains most of how a claim varies between points: {'; '.join(said[:2])}."


def _name(factor: Mapping[str, Any], value: object) -> str:
    """A choice in words: an alternative's title, or the number."""
    if "choices" in factor:
        return str(factor["titles"][factor["choices"].index(value)])
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{text} {factor['unit']}".rstrip()


def _point(found: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    by = {f["id"]: f for f in found["factors"]}
    return "; ".join(f"{by[k]['title']}: {_name(by[k], v)}" for k, v in point.items())


def _apart(found: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What it comes to under an alternative that the reading rejects."""
    where = _point(found, {one["factor"]: one["value"]})
    share = f"{100 * one['share_holds']:.0f} %"
    return f"apart, as the reading rejects it ({where}): holds at {share} of {one['points']} points"


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
            lead = "not confirmed: " if claim["id"] in unconfirmed([claim]) and which == "best" else ""
            said.append(
                f"{lead}{which} point, fresh seeds: {words}"
                f" ({fresh['counts'][1]} of {fresh['counts'][3]} hold)"
            )
    return said


def unconfirmed(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Claims that held at their best point with the atlas's seeds and not with fresh ones."""
    return [
        c["id"]
        for c in claims
        if c.get("best") is not None
        and c["best"]["fresh_seeds"] is not None
        and c["best"]["fresh_seeds"].get("verdict") not in _HOLDS
    ]


def _factor(factor: Mapping[str, Any]) -> dict[str, Any]:
    if "choices" in factor:
        box = ", ".join(factor["titles"])
    else:
        unit = f" {factor['unit']}" if factor["unit"] else ""
        box = f"{factor['low']:g} to {factor['high']:g}{unit}, {factor['scale']}"
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
    apart = [(ids.index(one["factor"]), one["value"]) for one in claim.get("apart", ())]
    sampled = [
        d
        for d in found["design"]
        if d["claims"] and d["kind"] == "sobol" and not any(d["values"][i] == value for i, value in apart)
    ]
    if not sampled:
        return None
    # The default is placed as a point is: what is nearest to it is marked.
    labelled = [
        _labels(f, [d["values"][axis] for d in sampled], f["default"])
        for axis in axes
        for f in [found["factors"][axis]]
    ]
    holds = [d["claims"][claim["id"]][0] in _HOLDS for d in sampled]
    (across, xs), (down, ys) = labelled
    places = list(zip(xs, ys, strict=False))[:-1]
    default = (xs[-1], ys[-1])
    return {
        "across": {"title": _axis(found["factors"][axes[0]]), "names": across, "default": default[0]},
        "down": {"title": _axis(found["factors"][axes[1]]), "default": default[1]},
        "rows": [
            {
                "name": row,
                "cells": [
                    {
                        **_cell([h for h, at in zip(holds, places, strict=True) if at == (x, y)]),
                        "default": (x, y) == default,
                    }
                    for x in range(len(across))
                ],
            }
            for y, row in enumerate(down)
        ],
    }


def _axis(factor: Mapping[str, Any]) -> str:
    """A factor's title, with the unit of its numbers."""
    return f"{factor['title']} ({factor['unit']})" if factor["unit"] else str(factor["title"])


def _cell(holds: Sequence[bool]) -> dict[str, Any]:
    n, held = len(holds), sum(holds)
    # A mark beside the colour: none, less than half, half or more, all.
    mark = "○" if not held else "●" if held == n else "◔" if 2 * held < n else "◕"
    return {"n": n, "holds": held, "share": held / n if n else None, "mark": mark}


def _labels(factor: Mapping[str, Any], values: Sequence[Any], default: object) -> tuple[list[str], list[int]]:
    """Names of a factor's alternatives or bins, and in which of them each value lies, the default last."""
    if "choices" in factor:
        return list(factor["titles"]), [factor["choices"].index(v) for v in (*values, default)]
    ordered = sorted(values)
    count = max(1, min(BINS, 4, len(values) // PER_BIN))
    edges = [ordered[round(i * len(ordered) / count)] for i in range(1, count)]
    lows, highs = [factor["low"], *edges], [*edges, factor["high"]]
    names = [f"{low:.3g}–{high:.3g}" for low, high in zip(lows, highs, strict=True)]
    return names, [sum(v >= edge for edge in edges) for v in (*values, default)]


def too_few_seeds(report: Report, atlas: Mapping[str, Any] | None) -> str:
    """Say which claims hold in the primary set-up, but not at the atlas's default point with its few seeds.

    Their shares tell how much so few runs can show; not where the claim holds. Empty if there are none.
    """
    design = [] if atlas is None else atlas.get("design", [])
    default = next((d["claims"] for d in design if d["kind"] == "default" and d["claims"]), None)
    if atlas is None or default is None:
        return ""
    first = report.setups[0].id
    hold = [j.claim for j in report.judged if j.setup == first and j.verdict.sound]
    lost = [c for c in hold if c in default and not Verdict(default[c][0]).sound]
    if not lost:
        return ""
    one = len(lost) == 1
    return (
        f"With {atlas['seeds']} seeds a point, {listed(lost)} {'is' if one else 'are'} not shown even at the"
        f" default, where more seeds show {'it' if one else 'them'}: {'its' if one else 'their'} share"
        f"{'' if one else 's'} would be larger with more."
    )
