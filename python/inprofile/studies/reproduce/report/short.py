"""The opening of a paper's page: what holds, when, and why not otherwise, from verdicts and the atlas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....papers.judge import Judged, Verdict
from ....papers.judge_text import describe, listed
from .atlas import unconfirmed

if TYPE_CHECKING:
    from ....papers import Entry
    from ....papers.report import Report

__all__ = ["in_three", "too_few_seeds"]

#: So many claims are named with their reasons; all are in the matrix.
NAMED = 3

_FITTED = " (found after seeing the paper's numbers)"
#: After a claim whose verdict is committed, not of this run.
_KEPT = "†"
_ARE = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.MOSTLY: "mostly reproduced",
    Verdict.IN_PART: "reproduced in part",
}
_FALLS_SHORT = {
    Verdict.OPPOSITE: "is significantly opposite",
    Verdict.IN_PART: "holds only in part",
    Verdict.NOT_SHOWN: "is not shown",
    Verdict.NO_EFFECT: "has no effect",
    Verdict.UNDECIDABLE: "is undecidable",
}


def in_three(report: Report, atlas: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The three sentences, each with its heading; `atlas` is the paper's committed one."""
    by = {(j.setup, j.claim): j for j in report.judged}
    claims = list(dict.fromkeys(j.claim for j in report.judged))
    return [
        ("What holds", _what(report, claims, by)),
        ("When", _when(report, claims, atlas)),
        ("Why not otherwise", _why_not(report, claims, by)),
    ]


def _title(setup: Entry) -> str:
    return f"“{setup.title}”"


def _what(report: Report, claims: Sequence[str], by: Mapping[tuple[str, str], Judged]) -> str:
    first = report.setups[0]
    found = [by[first.id, c] for c in claims if (first.id, c) in by]
    parts = [
        f"{listed(ids)} {'is' if len(ids) == 1 else 'are'} {words}"
        for verdict, words in _ARE.items()
        if (ids := [j.claim for j in found if j.verdict is verdict])
    ]
    numbers, inside = sum(j.counted for j in found), sum(j.inside for j in found)
    printed = f"; {inside} of {numbers} printed numbers lie in our prediction intervals" if numbers else ""
    said = f"of {len(found)} claims {', '.join(parts)}"
    if parts and not any(j.verdict.sound for j in found):
        said = f"none of {len(found)} claims is reproduced, {', '.join(parts)}"
    if all(j.verdict is Verdict.REPRODUCED for j in found):
        said = f"all {len(found)} claims are reproduced"
    if not parts:
        said = f"none of {len(found)} claims holds, even in part"
    told = _FITTED if first.fitted else ""
    return f"In the primary set-up, {_title(first)}{told}, {said}{printed}."


def _when(report: Report, claims: Sequence[str], atlas: Mapping[str, Any] | None) -> str:
    first, *others = report.shown
    kept = {key: Verdict(found["verdict"]) for key, found in report.kept.items()}
    by = {**kept, **{(j.claim, j.setup): j.verdict for j in report.judged}}
    here = {c for c in claims if (c, first.id) in by and by[c, first.id].sound}
    parts = []
    for setup in others:
        judged = {c: by[c, setup.id] for c in claims if (c, setup.id) in by}
        there = {c for c, verdict in judged.items() if verdict.sound}
        told = _FITTED if setup.fitted else ""
        unsure = {c for c, verdict in judged.items() if verdict is Verdict.UNDECIDABLE}
        more = _in_order(claims, there - here)
        fewer = _in_order(claims, (here & judged.keys()) - there - unsure)
        lost = _in_order(claims, here & unsure)
        said = [f"{_marked(more, setup, kept)} {_verb(more)} too"] if more else []
        said += [f"{_marked(fewer, setup, kept)} no longer {_verb(fewer)}"] if fewer else []
        text = " but ".join(said)
        if lost:
            text += f"{' and ' if text else ''}{_marked(lost, setup, kept)} cannot be decided"
        if text:
            parts.append(f"under {_title(setup)}{told} {text}")
    text = "; ".join(parts) + "." if parts else ""
    if not others:
        text = "One set-up was run."
    elif not parts:
        which = "the other set-up" if len(others) == 1 else f"all {len(others)} other set-ups"
        text = f"The same claims hold in {which}." if here else f"None holds in {which} either."
    if _KEPT in text and report.committed is not None:
        text += f" {_KEPT} Committed {report.committed['date']} with --full; not run here."
    return f"{text[0].upper()}{text[1:]} {_box(atlas)} {too_few_seeds(report, atlas)}".rstrip()


def _marked(claims: Sequence[str], setup: Entry, kept: Mapping[tuple[str, str], Verdict]) -> str:
    """List claims, those with a committed verdict marked."""
    return listed([f"{c}{_KEPT if (c, setup.id) in kept else ''}" for c in claims])


def _verb(ids: Sequence[str]) -> str:
    return "holds" if len(ids) == 1 else "hold"


def _box(atlas: Mapping[str, Any] | None) -> str:
    """The atlas in a sentence: which claims hold nearly everywhere or hardly anywhere; what decides."""
    if atlas is None:
        return ""
    shares = {c["id"]: c["share_holds"] for c in atlas["claims"]}
    kinds = [
        (listed(ids), words)
        for ids, words in (
            ([c for c, x in shares.items() if x >= 0.9], "at nine tenths of them or more"),
            ([c for c, x in shares.items() if 0.1 <= x < 0.9], "at some"),
            ([c for c, x in shares.items() if 0 < x < 0.1], "at less than a tenth"),
            ([c for c, x in shares.items() if x == 0], "at none"),
        )
        if ids
    ]
    decisive: dict[str, int] = {}
    titles = {f["id"]: f["title"] for f in atlas.get("factors", ())}
    for claim in atlas["claims"]:
        for name in claim["decisive"][:1]:
            decisive[titles.get(name, name)] = decisive.get(titles.get(name, name), 0) + 1
    top = sorted(decisive, key=lambda name: (-decisive[name], name))[:2]
    said = ", ".join(f"{ids} {words}" for ids, words in kinds)
    if lost := unconfirmed(atlas["claims"]):
        said += f" (with fresh seeds not even at the best point: {listed(lost)})"
    decides = f"; most decisive: {listed([f'“{name}”' for name in top])}" if top else ""
    points = f"{atlas['points']} points of readings and unstated inputs"
    return f"Over {points}, claims hold as follows: {said}{decides}."


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


def _why_not(report: Report, claims: Sequence[str], by: Mapping[tuple[str, str], Judged]) -> str:
    first = report.setups[0].id
    found = [by[first, c] for c in claims if (first, c) in by and not _sound(by[first, c])]
    if not found:
        return "No claim falls short in the primary set-up."
    order = (
        Verdict.OPPOSITE,
        Verdict.NO_EFFECT,
        Verdict.IN_PART,
        Verdict.NOT_SHOWN,
        Verdict.UNDECIDABLE,
    )
    found.sort(key=lambda j: order.index(j.verdict))
    said = [f"{j.claim} {_FALLS_SHORT[j.verdict]} ({_reason(j)})" for j in found[:NAMED]]
    rest = [j.claim for j in found[NAMED:]]
    more = f"; {listed(rest)} {'falls' if len(rest) == 1 else 'fall'} short too" if rest else ""
    return f"{'; '.join(said)}{more}."


def _reason(judged: Judged) -> str:
    """The comparison that tells most against it."""
    for outcome in ("opposite", "no_effect", "open", "undecidable"):
        against = [c for c in judged.comparisons if c.outcome == outcome]
        if against:
            # The one that is furthest from what is claimed: the largest p of the claimed side.
            return describe(max(against, key=lambda c: c.p))
    return judged.summary.rstrip(".")


def _sound(judged: Judged | None) -> bool:
    return judged is not None and judged.verdict.sound


def _in_order(claims: Sequence[str], some: Iterable[str]) -> list[str]:
    wanted = set(some)
    return [c for c in claims if c in wanted]
