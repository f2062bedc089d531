"""Paper A: what stands beside a verdict, the circumstances that it rests on and the figures of its table."""

from __future__ import annotations

import numpy as np

from ...metrics.quantity import mean_pm
from ..claim import ratios
from .schemes import Schemes, level, of_rank


def circumstances(claim: str, s: Schemes) -> list[str]:
    """Circumstances behind a verdict: an inert marker, who is greedy, where the level should be."""
    notes = []
    for scheme in ("arm", "ard"):
        if (scheme == "ard" or claim in ("A1", "A2", "A3")) and (reason := s.inert(scheme)):
            notes.append(f"With {s.title} {reason}.")
    if claim == "A3":
        shares = " and ".join(
            f"{s.titles[x]} has {mean_pm(ratios(s[x], s['rio'], 'lambda_in'))} times {s.titles['rio']}'s"
            for x in ("arm", "ard")
        )
        notes.append(f"Input IN rate at ER, with {s.title}: {shares}.")
    if claim == "A9":
        told = " and ".join(
            f"{s.titles[x]} {mean_pm(s.from_contract(x, 'total'))}"
            f" ({mean_pm(s.from_contract(x, 'in'))} of IN)"
            for x in ("rio", "arm", "ard")
        )
        notes.append(
            f"Distance from the contract as a share of it, with {s.title}: {told}; equal shares of a full"
            f" link would be {s.share / s.stated.number('contract') - 1:.2f} from it."
        )
    if claim in ("A5", "A7", "A10") and s.inert("ard") is None:
        notes.append(_level_words(s))
    if claim == "A6":
        rio = s["rio"]
        damaged, greedy = (float(of_rank(s, "rio", which).mean()) / 1e3 for which in (1, 0))
        picked = [float(rio[name].mean()) / 1e3 for name in ("best", "worst")]
        share = float(rio["total"].mean()) / s.flows / 1e3
        notes.append(
            f"Under {s.titles['rio']}, with {s.title}, the flow that was greediest before the TPR is set gets"
            f" {greedy:.0f} kbit/s, the most damaged {damaged:.0f}; picked by the measured interval itself"
            f" {picked[0]:.0f} and {picked[1]:.0f}. An equal share of what gets through is {share:.0f}."
        )
    return notes


def _level_words(s: Schemes) -> str:
    """Input, admitted and level beside what §2.1 makes of the input."""
    ard = s["ard"]
    expected = level(ard["lambda_in"], ard["tpr"], s.stated, s.stated.number("p_drop"))
    inside = expected[np.isfinite(expected)]
    text = (
        f"With {s.title} λ_IN arrives at {ard['lambda_in_over_tpr'].mean():.2f} times the TPR and"
        f" {ard['admitted_over_tpr'].mean():.3f} times the TPR is admitted; mean token level"
        f" {ard['tokens_mean'].mean():.1f}"
    )
    if not len(inside):
        return f"{text}, where Eq. (1) has no level inside the region in any seed."
    return (
        f"{text}, {inside.mean():.1f} by the fixed point of Eq. (1) in the {len(inside)} of"
        f" {len(expected)} seeds that have one."
    )


def shown(claim: str, s: Schemes) -> str:
    """The figures that the table of verdicts gives beside the word, of one topology."""
    marked = ("rio", "arm", "ard")
    if claim == "A1":
        indices = ", ".join(f"{s[x]['fi'].mean():.3f}" for x in marked)
        return f"{s.title}: {indices}"
    if claim == "A3":
        used = ", ".join(f"{100 * s[x]['used'].mean():.1f}" for x in marked)
        ins = ", ".join(f"{100 * np.mean(ratios(s[x], s['rio'], 'total_in')):.1f}" for x in marked[1:])
        return f"{s.title}: link used {used} %, IN {ins} % of {s.titles['rio']}'s"
    if claim == "A12":
        rates = ("lambda_in_before", "lambda_out_before", "tpr")
        means = ", ".join(f"{s['ard'][rate].mean() / 1e3:.0f}" for rate in rates)
        return f"{s.title}: {means} kbit/s"
    return ""
