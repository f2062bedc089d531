"""Measured circumstances beside paper C's claims: they help to understand a verdict and don't change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...metrics.quantity import mean_pm
from .. import Paper
from ..claim import of_link
from .experiments import swept
from .frontiers import THIRDS, Frontier, beyond, log_ratio
from .runs import Flows, ProbeRuns


def notes(claim: str, paper: Paper, runs: ProbeRuns, js: list[Flows]) -> list[str]:
    """Sentences about a claim, made of what was measured in one set-up."""
    return [*_beside(claim, paper, runs, js), *_readings(claim, paper, runs)]


def told(claim: str, paper: Paper, js: list[Flows]) -> str:
    """What a table of verdicts gives beside the word, of claims that have bounds: the measured figures."""
    if claim == "C1":
        words = "the marker's delay relative to the placebo's, low to high goodput"
        leads = [_beside_blind(j) for j in js if ("others", j.id, "blind") in j.runs]
        return f"{words}: {'; '.join(leads)}" if leads else ""
    if claim == "C4":
        lost = [_range(js[0].frontier(scheme)["loss_out"].mean(axis=1)) for scheme in ("soft-one", "soft")]
        cuts = [_mean(js[0].ratio(scheme)) for scheme in ("soft-one", "soft")]
        cut = [f"{100 * np.expm1(x):+.0f} %".replace("-", "−") for x in cuts if x is not None]
        delays = f"delay {cut[0]} with A+1, {cut[1]} with 2A+1; " if len(cut) == len(cuts) else ""
        return f"{delays}{lost[0]} and {lost[1]} of OUT packets lost"
    if claim == "C5":
        shares = [j.fair_share(how, "free-in").mean() for j in js for how in ("soft", "hard")]
        return f"{_range(shares)} of a fair share"
    if claim == "C6":
        ratios = [float(np.mean(j.over_free(scheme))) for j in js for scheme in ("out-30-90", "out-2-6")]
        severe = [float(np.mean(j.over_free("out-0.1-0.3"))) for j in js]
        return f"ratios of {_between(ratios)}; {_between(severe)} with 0.1, 0.3, 1"
    if claim == "C9":
        changes = "; ".join(
            f"{words} {_change(js, scheme, study, paper)}"
            for words, scheme, study in (
                ("bucket", "bucket", "others"),
                ("every n-th", "every-nth", "others"),
                ("probe", "hard", "frontier"),
            )
        )
        return f"goodput less that of all IN, in % of the link, with 10 and 40 flows: {changes}"
    if claim == "C10":
        ratio = _mean(js[0].high_load(paper.top.word("bin")))
        return "" if ratio is None else f"variance {np.exp(ratio):.2f} of that where all are IN"
    return ""


def _beside_blind(j: Flows) -> str:
    """C1: the marker's delay less its placebo's, where that gets as far, at each third of the goodputs."""
    leads = [_mean(beyond(*j.beside_blind("frontier"), at)) for _, at in THIRDS]
    told = ", ".join("–" if x is None else _signed_to(float(100 * np.expm1(x)), 0) for x in leads)
    return f"{told} % ({j.title})"


def _change(js: list[Flows], scheme: str, study: str, paper: Paper) -> str:
    """C9: the most goodput of a scheme less that of all IN, of the link, with ten and with forty flows."""
    effect = of_link(paper.top.number("capacity"))
    reach = [j.reach("", scheme, "none", "below", study, effect=effect) for j in js]
    found = [_signed_to(float(100 * np.mean(c.values) / paper.top.number("capacity")), 1) for c in reach]
    return " and ".join(found)


def _signed_to(x: float, digits: int) -> str:
    """With its sign, unless it is none.

    >>> _signed_to(-0.04, 1), _signed_to(-0.06, 1), _signed_to(0.4, 0), _signed_to(12.4, 0)
    ('0.0', '−0.1', '0', '+12')
    """
    text = f"{x:+.{digits}f}".replace("-", "−")
    return text if float(text[1:]) else text[1:]


def _range(shares: Iterable[float]) -> str:
    """From the least to the greatest share, in per cent."""
    values = [100 * float(x) for x in shares]
    return f"{min(values):.0f} to {max(values):.0f} %"


def _between(ratios: Iterable[float]) -> str:
    values = [float(x) for x in ratios]
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _signed(x: float) -> str:
    return f"{x:+.2f}".replace("-", "−")


def _mean(values: list[float]) -> float | None:
    """Over the seeds that have one."""
    known = [x for x in values if not np.isnan(x)]
    return float(np.mean(known)) if known else None


def _percent(x: float, digits: int = 0) -> str:
    return f"{100 * x:.{digits}f} %".replace("-", "−")


def _swept(paper: Paper, runs: ProbeRuns, sweep: str, value: str, scheme: str) -> Frontier | None:
    """One value of a sweep, if it was run."""
    entry = paper.find("sweeps", sweep) if any(s.id == sweep for s in paper.sweeps) else None
    if entry is None:
        return None
    key = (swept(entry, value), entry.word("topology"), scheme)
    return runs.frontier(*key) if key in runs else None


def _readings(claim: str, paper: Paper, runs: ProbeRuns) -> Iterator[str]:
    """What another reading of the marker's rules would give: see the sweeps."""
    if claim == "C5":
        f = _swept(paper, runs, "rules-free", "A+1", "hard")
        if f is not None:
            share = f["goodput_marked"] / f["goodput_tcp"]
            yield (
                f"With the rule A+1 marked flows get {_percent(share.mean(), 1)} of the fair share"
                " (10 flows, hard, min_in 24), which suggests that what starves them is how often they probe."
            )
    if claim == "C7":
        f = _swept(paper, runs, "rules-udp", "once per window", "soft")
        ratio = None if f is None else log_ratio(f, runs.frontier("udp-1", "forty", "none"))
        if ratio is not None:
            yield (
                f"Where a loss counts once per window, ln(delay, probe / all IN) is"
                f" {_signed(float(np.mean(ratio)))} with 40 flows, soft, 1 s, which suggests that a timeout's"
                " repeated packets drive A down there."
            )


def _beside(claim: str, paper: Paper, runs: ProbeRuns, js: list[Flows]) -> Iterator[str]:
    """Overflow drops, the spread over seeds, the other number of flows, what a marker's share was."""
    if claim == "C1":
        yield _overflow(runs)
        yield _spread(runs)
    if claim == "C3":
        last = js[1].frontier("hard").points[-1]
        yield (
            f"With 40 flows {_percent(last['loss_out'].mean())} of OUT packets and"
            f" {_percent(last['loss_in'].mean(), 2)} of IN packets are lost there."
        )
        lost = js[0].frontier("hard", "highest").points[-1]["loss_out"]
        if lost.min() == lost.max() == 1.0:
            yield (
                f"With 10 flows every OUT packet is lost in all {lost.size} seeds. Equal values leave only a"
                f" sign test, whose p is {2 * 0.5**lost.size:.2g}."
            )
    if claim == "C4":
        means = [
            f"{_percent(float(js[0].frontier(scheme)['loss_out'].mean()))} of OUT packets with {rule}"
            for scheme, rule in (("soft-one", "A+1"), ("soft", "2A+1"))
        ]
        yield f"Over the thresholds a mean of {' and '.join(means)} is lost under soft differentiation."
        if (ratio := _mean(js[1].ratio("soft-one", "soft"))) is not None:
            yield f"With 40 flows, soft, ln(delay, A+1 / 2A+1) at equal goodput is {_signed(ratio)}."
    if claim == "C6":
        yield from (_severe(j) for j in js)
    if claim == "C7":
        yield _slower(js[0])
    if claim == "C12":
        yield from (_same_thresholds(j) for j in js)
    if claim == "C9":
        for j in js:
            yield from _others(j)
    if claim == "C10":
        ratio = _mean(js[1].ratio("hard", name=f"load_variance:{paper.top.word('bin')}"))
        if ratio is not None:
            yield f"With 40 flows ln(variance of the load, probe / all IN) is {_signed(ratio)}."


def _overflow(runs: ProbeRuns) -> str:
    lost = sum(m["overflow"].sum() for key in runs.keys() for m in runs.points(*key).values())  # noqa: SIM118
    if lost == 0:
        return "No packet was lost to a full queue in any run, as the paper says of its own."
    return f"{lost:.0f} packets were lost to a full queue, which the paper rules out."


def _spread(runs: ProbeRuns) -> str:
    """§3: the standard deviation over runs is below 1 % of the value."""
    kept = total = 0
    worst = 0.0
    for key in runs.keys():  # noqa: SIM118
        if key[0] == "frontier":
            for m in runs.points(*key).values():
                for name in ("goodput", "delay"):
                    spread = float(m[name].std(ddof=1) / m[name].mean()) if m[name].size > 1 else 0.0
                    kept, total, worst = kept + (spread < 0.01), total + 1, max(worst, spread)
    return (
        f"The standard deviation over seeds is below 1 % of goodput or delay, as in the paper, in"
        f" {kept} of {total} values of Fig. 3–6; the largest is {_percent(worst, 1)}."
    )


def _severe(j: Flows) -> str:
    """C6: the marked flows' ratio by threshold, at the setting that the paper calls pathological."""
    f = j.frontier("out-0.1-0.3", "two-domains")
    ratios = (f["goodput_marked"] / f["goodput_free"]).mean(axis=1)
    told = ", ".join(f"{r:.2f} at {at}" for at, r in zip(f.values, ratios, strict=True))
    return f"With {j.title} and OUT 0.1, 0.3, 1 marked over free flows by domain 2's min_th: {told}."


def _slower(j: Flows) -> str:
    """C7: §4.1 adds that at the same thresholds goodput is lower with the marker."""
    told = []
    for study in ("udp-0.05", "udp-1", "udp-5"):
        ours, theirs = (j.runs.points(study, j.id, scheme) for scheme in ("hard", "none"))
        common = sorted(at for at in ours if at in theirs)
        lost = np.stack([100 * (ours[at]["goodput"] / theirs[at]["goodput"] - 1) for at in common])
        told.append(f"{mean_pm(lost.mean(axis=0))} %".replace("-", "−"))
    return (
        "§4.1 adds that, as activity time increases, goodput is lower with the marker for a given"
        f" configuration. Goodput of the hard marker less that of all IN at the same thresholds, {j.title}:"
        f" {', '.join(told)} at 0.05, 1 and 5 s."
    )


def _same_thresholds(j: Flows) -> str:
    """C12 by the other way to compare: the configuration kept instead of the delay."""
    told = [
        f"{100 * np.mean(j.beside_all_in('utilisation', how, 'udp-1')):+.2f} points ({how})".replace("-", "−")
        for how in ("soft", "hard")
    ]
    return f"At the same thresholds, with {j.title}, utilisation differs by {' and '.join(told)}."


def _others(j: Flows) -> Iterator[str]:
    """C9: how much each marker sends OUT, and its delay."""
    shares = [
        _percent(1 - j.frontier(s, study)["share_in"].mean(), 1)
        for s, study in (("hard", "frontier"), ("bucket", "others"), ("every-nth", "others"))
    ]
    yield (
        f"With {j.title} {shares[0]} of the probe marker's packets are OUT, {shares[1]} of the token"
        f" bucket's and {shares[2]} of the every-n-th marker's."
    )
    ratios = [
        (words, _mean(j.ratio(scheme, study="others")))
        for scheme, words in (("bucket", "the token bucket"), ("every-nth", "the every-n-th marker"))
    ]
    told = [f"{_signed(r)} for {words}" for words, r in ratios if r is not None]
    if told:
        yield f"Where goodputs can be matched ln(delay / all IN) is {' and '.join(told)}."
