"""How paper C's claims are measured and judged: frontiers, shares and losses, paired by seed.

What the text states is compared literally: a sign, a range. Where it has a word without a number
("starves", "almost the same") the bound is ours, and the claim's text says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from ...metrics.stats import FREE, SHARE, UNLIKE
from .. import Cell, Entry, Paper
from ..claim import Comparison, Effect, Finding, of_base, of_link
from ..report import TableRow, row
from .frontiers import MATCHED, THIRDS, beyond
from .notes import notes, told
from .runs import Cells, Flows, ProbeRuns, minus, per_seed

#: What of the marker's rules C13 varies, by the names of the sweep's values.
ROBUST = ("alpha = 0.25", "alpha = 0.75", "A_0 = 2", "A_0 = 50", "A+1", "A/(1-alpha)")
#: The studies with on/off UDP.
UDP = ("udp-0.05", "udp-1", "udp-5")
HOW = ("soft", "hard")
FLOWS = ("ten", "forty")
#: Of the logarithm of a ratio of delays.
DELAY = Effect(0.05, "5 % of the delay")
#: At this min_in, in packets, OUT thresholds are 2 and 6 under soft differentiation too; below, hard is mild.
ALIKE = 6


def _c1(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        for how in HOW:
            # The gain along the frontier, which one mean hides.
            for words, at in THIRDS:
                label = f"ln(delay, probe / all IN) at equal {words} goodput, {how}"
                gain = j.compare(label, j.ratio(how, at=at), "below", effect=DELAY)
                yield replace(gain, placebos=_blind(j, at)) if how == "hard" else gain
        more = minus(*(j.ratio(how, above=ALIKE) for how in ("hard", "soft")))
        label = f"ln(delay, probe / all IN) at equal goodput, min_in above {ALIKE}, hard less soft"
        yield j.compare(label, more, "below", effect=DELAY)
    ten, forty = js
    # Said of Fig. 3 and 4, which are soft.
    more = minus(forty.ratio("soft"), ten.ratio("soft"))
    label = "ln(delay, probe / all IN) at equal goodput, soft, 40 flows less 10"
    yield forty.compare(label, more, "below", effect=DELAY)


def _blind(j: Flows, at: slice, value: str = "frontier") -> dict[str, list[float]]:
    """How far the probe's delay is above that of as many OUT packets placed blindly, where these get as far.

    At the goodputs of `at` that probe and all IN share; with the probe as a sweep's value has it. A blind
    marker that reaches none of them is none.
    """
    if ("others", j.id, "blind") not in j.runs:
        return {}
    lead = beyond(*j.beside_blind(value), at)
    return {} if np.isnan(lead).any() else {"every n-th packet OUT": lead}


def _c2(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    about = paper.top.table("bounds").number("about")
    for j in js:
        low, high = paper.top.table("printed").table("share_in").numbers(j.id)
        for how in HOW:
            share = j.frontier(how)["share_in"]
            least, greatest = (
                [float(x) for x in values] for values in (share.min(axis=0), share.max(axis=0))
            )
            words = f"share of IN packets over the thresholds, {how}"
            yield j.within(f"least {words}", least, low - about, low + about, SHARE)
            if j.id == "ten":
                yield j.compare(f"greatest {words}", greatest, "above", high, bounds=SHARE)
            else:
                yield j.within(f"greatest {words}", greatest, high - about, high + about, SHARE)
            rise = [float(x) for x in share[-1] - share[0]]
            yield j.compare(
                f"share of IN packets, highest thresholds less lowest, {how}",
                rise,
                "above",
                bounds=UNLIKE,
                effect=Effect(0.005, "half of the least rise that §4 prints, from 98 to 99 %"),
            )


def _c3(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    # Fig. 7 is of 10 flows; high goodput: the highest thresholds.
    j = js[0]
    last, bounds = j.frontier("hard", "highest").points[-1], paper.top.table("bounds")
    label = "loss of {} packets at the highest thresholds"
    # Without a share's bounds: where all are lost in some seeds, its own scale has no end to measure from.
    yield j.compare(label.format("OUT"), list(last["loss_out"]), "above", bounds.number("near_all"))
    small = bounds.number("very_small")
    yield j.compare(label.format("IN"), list(last["loss_in"]), "below", small, bounds=SHARE)


def _c4(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    label = "ln(delay, A+1 / 2A+1) at equal goodput, {}"
    # "almost doubled in comparison to" Fig. 3, which is of 10 flows.
    j = js[0]
    yield j.compare(label.format("soft"), j.ratio("soft-one", "soft"), "below", effect=DELAY)
    one, two = j.ratio("soft-one"), j.ratio("soft")
    low, high = paper.top.table("bounds").numbers("almost_doubled")
    yield _doubled(j, one, two, low, high)
    for scheme, rule in (("soft-one", "A+1"), ("soft", "2A+1")):
        low, high = paper.top.table("printed").table("loss_out").numbers(scheme)
        about = paper.top.table("bounds").number("about")
        loss = j.frontier(scheme)["loss_out"]
        for words, extreme in (("least", loss.min(axis=0)), ("greatest", loss.max(axis=0))):
            yield j.within(
                f"{words} loss of OUT packets over the thresholds, {rule}, soft",
                [float(x) for x in extreme],
                low - about,
                high + about,
                SHARE,
            )
    for each in js:
        yield each.compare(label.format("hard"), each.ratio("hard-one", "hard"), "above", effect=DELAY)
        # What equal goodputs do not see: a frontier that ends earlier.
        label_most = "greatest goodput, A+1 less 2A+1, hard"
        yield each.reach(label_most, "hard-one", "hard", "below", effect=_link(paper))


def _doubled(j: Flows, one: list[float], two: list[float], low: float, high: float) -> Comparison:
    """C4: the delay cut by A+1 over that by 2A+1, where the latter cuts any: a ratio of means.

    Seed by seed it is the mean's first order, whose interval is that of the ratio: no seed is divided by.
    """
    label = "delay cut by A+1 over that by 2A+1, soft, ratio of the means"
    cuts = np.array([-np.expm1(np.asarray(x)) for x in (one, two)])
    cuts = cuts[:, ~np.isnan(cuts).any(axis=0)]
    if 2 * cuts.shape[1] <= len(one):
        return j.compare(label, [np.nan] * len(one), "above")
    ours, base = cuts
    if base.mean() < DELAY.size:
        why = (
            f"2A+1 cuts {_points(base.mean())} of the delay, less than the {_points(DELAY.size)} that count:"
            " there is nothing to double"
        )
        return replace(j.within(label, [low] * len(base), low, high), obstacle=why, measured=False)
    ratio = ours.mean() / base.mean()
    return j.within(label, [float(x) for x in ratio + (ours - ratio * base) / base.mean()], low, high)


def _points(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-", "−")


def _c5(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    starves = paper.top.table("bounds").number("starves")
    for j in js:
        for how in HOW:
            share = per_seed(j.fair_share(how, "free-in"))
            label = f"a marked flow's goodput over the fair share, {how}"
            less = Effect(0.05, "5 % of the fair share")
            far = Effect(1 - starves, f'{100 * starves:g} % of the fair share at most: "starves" (ours)')
            yield j.compare(f"{label}: less than it", share, "below", 1.0, effect=less)
            yield j.compare(f"{label}: starving", share, "below", 1.0, effect=far)


def _c6(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    bounds = paper.top.table("bounds")
    low, high = bounds.numbers("alike")
    third, half = bounds.numbers("two_to_three")
    for j in js:
        for scheme, words in (("out-30-90", "OUT 30, 90, 0.2"), ("out-2-6", "OUT 2, 6, 0.2")):
            yield j.within(f"goodput of marked over free flows, {words}", j.over_free(scheme), low, high)
        label, ratio = "goodput of marked over free flows, OUT 0.1, 0.3, 1", j.over_free("out-0.1-0.3")
        less = Effect(1.0 - low, "beyond what counts as almost the same")
        yield j.compare(f"{label}: less", ratio, "below", 1.0, effect=less)
        yield j.within(f"{label}: a half to a third", ratio, third, half)


def _c7(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    helped = {
        ("ten", "hard"): UDP,
        ("forty", "hard"): UDP,
        ("ten", "soft"): UDP[:1],
        ("forty", "soft"): UDP[:2],
    }
    for j in js:
        for how in ("hard", "soft"):
            # "except that for very low thresholds": the lowest of the ten goodputs is judged apart.
            at = slice(1, None) if (j.id, how) == ("forty", "hard") else slice(None)
            for study in helped[j.id, how]:
                period = study.removeprefix("udp-")
                label = f"ln(delay, probe / all IN) at equal goodput, {how}, {period} s"
                yield j.compare(label, j.ratio(how, study=study, at=at), "below", effect=DELAY)
    forty = js[1]
    values = per_seed(np.array([forty.ratio("hard", study=study, at=slice(1)) for study in UDP]))
    label = "ln(delay, probe / all IN) at the lowest goodput, hard, mean of the three periods"
    yield forty.compare(label, values, "above", effect=DELAY)


def _c8(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        for how in HOW:
            for words, out, into in (("free TCP", "free-out", "free-in"), ("UDP", "udp-out", "udp-1")):
                gain = j.difference("goodput_marked", how, out, into)
                label = f"goodput of a marked flow with {words} OUT less with it IN, {how}"
                marked = j.frontier(how, into)["goodput_marked"].mean(axis=0)
                counts = of_base(marked, 0.02, "2 % of a marked flow's goodput")
                compared = j.compare(label, gain, "above", unit="bit/s", effect=counts)
                plain = _less(j, f"in-{how}", out, "none", into)
                lead = [a - b for a, b in zip(gain, plain, strict=True)]
                yield replace(compared, placebos={"TCP without the marker": lead})
        f, base = j.frontier("hard", "udp-1"), j.frontier("none", "udp-1")
        gains = [f[name] / base[name] for name in ("goodput_udp", "goodput_marked")]
        label = "UDP's relative gain from the marker less TCP's, hard"
        counts = Effect(0.02, "2 % of the goodput without the marker")
        yield j.compare(label, per_seed(gains[0] - gains[1]), "above", effect=counts)


def _less(j: Flows, scheme: str, study: str, base: str, into: str) -> list[float]:
    """A marked flow's goodput under one scheme and study less that under another, where both were run."""
    ours, theirs = j.frontier(scheme, study), j.frontier(base, into)
    at = [x for x in ours.values if x in theirs.values]
    a, b = (
        np.stack([f.points[f.values.index(x)]["goodput_marked"] for x in at]).mean(axis=0)
        for f in (ours, theirs)
    )
    return [float(x) for x in a - b]


def _c9(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        for scheme, words in (("bucket", "token bucket"), ("every-nth", "every n-th")):
            label = f"greatest goodput, {words} less all IN, hard"
            yield j.reach(label, scheme, "none", "below", "others", effect=_link(paper))
        kept = Effect(0.0, "1 % of the link less is what we take for a loss")
        label, least = "greatest goodput, probe less all IN, hard", -_link(paper).size
        yield j.reach(label, "hard", "none", "above", effect=kept, null=least)


def _c10(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    # Said of Fig. 7, which is of 10 flows, "for high goodput values": the upper half of what both reach.
    label = "ln(variance of the load, probe / all IN) at equal high goodput, hard"
    ratio, highly = js[0].high_load(paper.top.word("bin")), paper.top.table("bounds").number("highly")
    tenth = Effect(0.1, "10 % of the variance")
    far = Effect(-math.log(highly), f'{100 * highly:g} % of the variance at most: "highly reduced" (ours)')
    yield js[0].compare(f"{label}: less", ratio, "below", effect=tenth)
    yield js[0].compare(f"{label}: highly reduced", ratio, "below", effect=far)


def _c11(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        for how in HOW:
            for study, words in (("frontier", ""), ("udp-1", ", with on/off UDP")):
                label = f"share of IN packets lost, probe less all IN, {how}{words}"
                lost = j.beside_all_in("loss_in", how, study)
                base = j.frontier("none", study)["loss_in"].mean(axis=0)
                counts = of_base(base, 0.1, "a tenth of the share lost where all are IN")
                yield j.compare(label, lost, "below", bounds=UNLIKE, effect=counts)
            for words, out, into in (("free TCP", "free-out", "free-in"), ("UDP", "udp-out", "udp-1")):
                label = f"share of the marker's OUT packets lost, with {words} OUT less with it IN, {how}"
                more = j.difference("loss_probes", how, out, into)
                if why := _no_more_out(j, how, words, out, into):
                    unmeasured = j.compare(label, [0.0] * len(more), "above")
                    yield replace(unmeasured, obstacle=why, measured=False)
                else:
                    counts = Effect(0.02, "two in a hundred OUT packets")
                    yield j.compare(label, more, "above", bounds=UNLIKE, effect=counts)


def _no_more_out(j: Flows, how: str, words: str, out: str, into: str) -> str | None:
    """Why more OUT packets cannot be lost: all are, or there are no more of them, as §4.2 supposes."""
    lost = [f["loss_probes"].min() for f in (j.frontier(how, out), j.frontier(how, into))]
    if min(lost) == 1.0:
        return "every OUT packet is lost either way"
    if np.mean(j.difference("arrived_out", how, out, into)) > 0:
        return None
    shares = [100 * j.frontier(how, study)["arrived_out"].mean() for study in (out, into)]
    return (
        f"{shares[0]:.1f} % of the packets that come to the bottleneck are OUT with {words} OUT,"
        f" {shares[1]:.1f} % with it IN: there are no more of them"
    )


def _c12(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        # §4.1 claims no advantage for 10 flows under soft differentiation at 1 s.
        for how in HOW if j.id == "forty" else ("hard",):
            label = f"utilisation with on/off UDP marked IN, probe less all IN at equal delay, {how}"
            more = j.at_equal_delay("utilisation", how, "udp-1")
            counts = Effect(0.01, "1 % of the link")
            yield j.compare(label, more, "above", bounds=UNLIKE, effect=counts)


def _c13(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    # Of the flows and differentiation that the sweep has. α and A_0 are varied one at a time, up and down.
    for j in js:
        for value in ROBUST:
            for how in (how for how in HOW if (f"rules: {value}", j.id, how) in j.runs):
                label = f"ln(delay, probe / all IN) at equal goodput, {value}, {how}"
                gain = j.compare(label, j.swept(how, f"rules: {value}"), "below", effect=DELAY)
                placebos = _blind(j, slice(MATCHED), f"rules: {value}") if how == "hard" else {}
                yield replace(gain, placebos=placebos)


def _c14(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    for j in js:
        lost = {study: j.beside_all_in("goodput", "hard", study) for study in UDP}
        label = "goodput at equal thresholds, probe less all IN, hard, 5 s"
        yield j.compare(label, lost["udp-5"], "below", unit="bit/s", effect=_link(paper))
        label = "the same, 5 s less 0.05 s"
        more = minus(lost["udp-5"], lost["udp-0.05"])
        yield j.compare(label, more, "below", unit="bit/s", effect=_link(paper))


def _c15(paper: Paper, js: list[Flows]) -> Iterator[Comparison]:
    # One value a seed, the mean over domain 2's thresholds: those of a seed are not independent.
    for j in js:
        for scheme, words in (("out-30-90", "OUT 30, 90, 0.2"), ("out-2-6", "OUT 2, 6, 0.2")):
            f = j.frontier(scheme, "two-domains")
            if "domain_1_lost_out" not in f.points[0].values:
                return
            label = f"share of domain 1's OUT packets that it drops, {words}"
            none = Effect(0.0, "1 % is what we take for none")
            yield j.compare(label, per_seed(f["domain_1_lost_out"]), "below", 0.01, effect=none)
        f = j.frontier("out-0.1-0.3", "two-domains")
        label = "share of domain 1's OUT packets that it drops, OUT 0.1, 0.3, 1"
        half = Effect(0.0, "a half is what we take for the pathological")
        yield j.compare(label, per_seed(f["domain_1_lost_out"]), "above", 0.5, effect=half)


def _link(paper: Paper) -> Effect:
    return of_link(paper.top.number("capacity"))


_CLAIMS: Mapping[str, Callable[[Paper, list[Flows]], Iterator[Comparison]]] = {
    "C1": _c1,
    "C2": _c2,
    "C3": _c3,
    "C4": _c4,
    "C5": _c5,
    "C6": _c6,
    "C7": _c7,
    "C8": _c8,
    "C9": _c9,
    "C10": _c10,
    "C11": _c11,
    "C12": _c12,
    "C13": _c13,
    "C14": _c14,
    "C15": _c15,
}


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim, in each set-up in which what it needs was run.

    Under a variant: about the claims that it is for, from other measures of the same runs.
    """
    asked = paper.claims
    if variant:
        entry = paper.find("variants", variant)
        asked = [claim for claim in asked if claim.id in entry.words("claims")]
        paper = replace(paper, about={**paper.about, "bin": entry.word("bin")})
    found = []
    for setup in paper.setups:
        runs = ProbeRuns(cells, setup.id)
        js = [Flows(runs, topology) for topology in paper.topologies]
        for claim in asked:
            if all(key in runs for key in _needs(claim, setup.id)):
                comparisons = list(_CLAIMS[claim.id](paper, js))
                nothing = None if comparisons else "What it is about was not measured here."
                beside = notes(claim.id, paper, runs, js)
                short = told(claim.id, paper, js)
                found.append(Finding(claim.id, setup.id, comparisons, [], beside, nothing, short))
    return found


def _needs(claim: Entry, setup: str) -> Iterator[tuple[str, str, str]]:
    """Studies, numbers of flows and schemes that a claim is about in a set-up."""
    if "elsewhere" in claim and setup in claim.table("elsewhere"):
        claim = claim.table("elsewhere").table(setup)
    needs = claim.table("needs")
    for topology in claim.words("topologies") if "topologies" in claim else FLOWS:
        for study in needs:
            yield from ((study, topology, scheme) for scheme in needs.words(study))


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict needs this cell: one of the studies, flows and schemes that it names."""
    return (cell.sweep, cell.topology, cell.scheme) in set(_needs(paper.find("claims", claim), cell.setup))


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Fig. 3–7 in a few figures: delay at equal goodput, share of IN packets, loss of OUT packets.

    Every point of every figure is among the measures.
    """
    rows: list[TableRow] = []
    for setup in paper.setups:
        runs = ProbeRuns(cells, setup.id)
        for j in (Flows(runs, topology) for topology in paper.topologies):
            for scheme in ("soft", "soft-one", "hard", "hard-one"):
                if ("frontier", j.id, scheme) in runs:
                    rows += _rows(paper, setup.id, j, scheme)
    return rows


def _rows(paper: Paper, setup: str, j: Flows, scheme: str) -> Iterator[TableRow]:
    """One scheme's rows of the table."""
    f, ratio = j.frontier(scheme), j.ratio(scheme)
    seeds = f.points[0].seeds
    known = [not np.isnan(r) for r in ratio]
    delays = [float(np.exp(r)) for r in ratio if not np.isnan(r)]
    for what, values, bounds in (
        ("delay over that of all IN, at equal goodput", delays, FREE),
        ("share of IN packets, mean over thresholds", per_seed(f["share_in"]), SHARE),
        ("share of OUT packets lost, mean over thresholds", per_seed(f["loss_out"]), SHARE),
    ):
        if values:
            yield row(
                Cell(setup, j.id, scheme),
                [s for s, has in zip(seeds, known, strict=True) if has] if values is delays else seeds,
                values,
                table="Fig. 3–7",
                what=what,
                label=f"{j.title}, {paper.find('schemes', scheme).title}",
                bounds=bounds,
            )
