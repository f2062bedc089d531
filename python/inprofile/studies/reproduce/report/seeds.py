"""Which claims an atlas with its few seeds cannot show, though more seeds do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....papers.judge import Verdict
from ....papers.judge_text import listed

if TYPE_CHECKING:
    from ....papers.report import Report

__all__ = ["too_few_seeds"]


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
