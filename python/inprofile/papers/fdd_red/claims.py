"""How paper D's claims are judged: FDD-RED against RED, seed by seed. `besides` has D7 to D13."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...metrics.measures import Measures
from ...metrics.stats import FREE, SHARE, UNLIKE, jain
from .. import Cell, Entry, Paper
from ..claim import INDEX, Comparison, Effect, Finding, Number, Pair, Room, of_base
from . import cost
from .besides import d7, d8, d9, d11, d12, d13, over_random
from .experiments import DROP_TAIL
from .measure import FLOWS, RATE, STEP
from .tables import more, rates, table
from .view import Cells, View

__all__ = ["findings", "more", "rests_on", "table"]

BOUNDS = {"fi": SHARE, "drops": (0.0, np.inf)}


def _d1(v: View) -> list[Comparison]:
    label = "fairness index, FDD-RED − RED"
    return [p.compare(label, "fi", "above", bounds=UNLIKE, effect=INDEX, room=_unfair(p)) for p in v.pairs()]


def _unfair(pair: Pair) -> Room:
    return Room([1 - float(x) for x in pair.base["fi"]], "from RED's index to 1 there are")


def _d2(v: View) -> list[Comparison]:
    label = "packets dropped, FDD-RED − RED"
    why = "a tenth of RED's drops; the paper prints 55 % (149 and 67)"
    return [
        p.compare(label, "drops", "below", "packets", effect=of_base(p.base["drops"], 0.1, why))
        for p in (*v.pairs(), *v.points())
    ]


def _d3(v: View) -> list[Comparison]:
    return [
        p.compare(
            "throughput at the link, FDD-RED − RED",
            "link",
            "above",
            "bit/s",
            effect=_half_the_gain(v, topology),
            room=Room([v.rate - float(x) for x in p.base["link"]], "RED leaves at the link"),
        )
        for topology, p in zip([t.id for t in v.paper.topologies], v.pairs(), strict=True)
    ]


def _half_the_gain(v: View, topology: str) -> Effect:
    """Half of what Table 2 prints the sum to gain, in proportion to the link."""
    red, fdd = (sum(rates(v.paper, topology, scheme)) * v.rate / RATE for scheme in ("red", "fdd"))
    of = "" if v.rate == RATE else f", of {v.rate / 1e6:g} Mbit/s"
    return Effect((fdd - red) / 2, f"half of the {(fdd - red) / 1e3:.1f} kbit/s that Table 2 prints{of}")


def _d4(v: View) -> list[Comparison]:
    pair = v.pair("equal")
    why = 'a quarter of RED\'s: "obviously lower" in a trace'
    return [
        pair.compare(
            f"{words}, FDD-RED − RED",
            measure,
            "below",
            "packets",
            effect=of_base(pair.base[measure], 0.25, why),
        )
        for words, measure in (("standard deviation of the queue", "queue_std"), ("mean queue", "queue_mean"))
    ]


def _d5(v: View) -> list[Comparison]:
    pair = v.pair("equal")
    if "full_from" not in pair.base.values:
        return []
    label = "time from which the link stays full, FDD-RED − RED"
    step = Effect(STEP, "one step of the measure")
    late = Room([float(x) for x in pair.base["full_from"]], "under RED it stays full from")
    return [pair.compare(label, "full_from", "below", "s", effect=step, room=late)]


def _d6(v: View) -> list[Comparison]:
    kinds = (("standard deviation", "_packets", "packets"), ("relative standard deviation", "", ""))
    of = (
        (v.pair("equal"), "drops", {"_packets": "spread_packets", "": "spread_drops"}),
        (v.pair("unequal"), "drops · RTT/avgRTT", {"_packets": "spread_goal_packets", "": "spread_goal"}),
    )
    why = 'a quarter of RED\'s: "uniformly"'
    whole = [
        pair.compare(
            f"{words} of {what} over flows, FDD-RED − RED",
            names[kind],
            "below",
            unit,
            effect=of_base(pair.base[names[kind]], 0.25, why),
        )
        for pair, what, names in of
        for words, kind, unit in kinds
    ]
    label = "flows that lose packets in a loss event, over those of a random choice, FDD-RED − RED"
    equal = v.pair("equal")
    tenth = Effect(0.1, "a tenth of what a random choice hits")
    missed = Room(
        [1 - float(x) for x in equal.base["in_event"]], "of the flows that a random choice hits RED misses"
    )
    return [*whole, equal.compare(label, "in_event", "above", effect=tenth, room=missed)]


_CLAIMS: Mapping[str, Callable[[View], list[Comparison]]] = {
    "D1": _d1,
    "D2": _d2,
    "D3": _d3,
    "D4": _d4,
    "D5": _d5,
    "D6": _d6,
    "D7": d7,
    "D8": d8,
    "D9": d9,
    "D11": d11,
    "D12": d12,
    "D13": d13,
}


def _mean(m: Measures, name: str) -> float:
    return float(m[name].mean())


#: Claims that no variant of FDD-RED's changes: of RED, of drop-tail, and of what stands beside the variants.
_NOT_OF_VARIANTS = ("D9", "D11", "D12", "D13")


def _notes(claim: str, v: View) -> list[str]:
    """Circumstances behind a verdict."""
    equal, unequal = v.pair("equal"), v.pair("unequal")
    if claim == "D1":
        spread = float(equal.base["fi"].std(ddof=1))
        notes = [
            f"RED's own index, {equal.title}, is {_mean(equal.base, 'fi'):.3f} with a standard deviation of"
            f" {spread:.3f} from seed to seed."
        ]
        if not v.long:
            odd = [(k, jain(rates(v.paper, *k))) for k in (("equal", "red"), ("unequal", "fdd"))]
            words = " and ".join(
                f"{x:.4f} ({v.paper.find('schemes', s).title}, {v.paper.find('topologies', t).title})"
                for (t, s), x in odd
            )
            notes.append(
                f"Two of the four printed indices disagree with the printed rates, which give {words}."
            )
        return notes
    if claim == "D2":
        over, all_ = _mean(equal.base, "drops_overflow"), _mean(equal.base, "drops")
        return [
            f"With {equal.title}, {over:.0f} of RED's {all_:.0f} drops are overflow,"
            " not decided by RED's average.",
            *_placebo_drops(v, equal),
        ]
    if claim == "D3":
        used = " and ".join(f"{100 * _mean(p.base, 'utilisation'):.1f} % ({p.title})" for p in v.pairs())
        return [
            f"Under RED the link's utilisation is already {used}.",
            f"Receivers, who count in order and without repeated packets, get {_more(v)} than under RED.",
        ]
    if claim == "D8":
        gains = [_printed_gain(v.paper, t.id) for t in v.paper.topologies]
        left = ", ".join(f"{1 - _mean(p.base, 'fi'):.3f} with {p.title}" for p in v.pairs())
        from_rates = [
            jain(rates(v.paper, t.id, "fdd")) - jain(rates(v.paper, t.id, "red")) for t in v.paper.topologies
        ]
        return [
            f"Table 2 prints a gain of {gains[0]:.3f} with equal ones and {gains[1]:.3f} with unequal; its"
            f" rates give {from_rates[0]:.3f} and {from_rates[1]:.3f}, as the text has it.",
            f"What RED leaves to gain: {left}.",
        ]
    if claim == "D9":
        told = ", ".join(f"{np.mean(x):.2f} {who}" for who, p in _of_both(equal) if (x := over_random(p)))
        if not told:
            return []
        return [
            f"With {equal.title}, the variance of drops over flows is, over that of drops at random, {told}."
        ]
    if claim == "D6":
        eq1, goal = (
            f"{_mean(unequal.base, name):.2f} under RED and {_mean(unequal.ours, name):.2f} under FDD-RED"
            for name in ("spread_eq1", "spread_goal")
        )
        return [
            "Fig. 2 evens out penalties, not drops: a flow is charged for every decision at its own arrivals"
            " and for every time it is the partner. A flow at whose arrivals RED decides more often goes on"
            " losing more.",
            "Eq. (1) as printed would even out drops · avgRTT/RTT, and so give short round-trip times"
            f" fewer drops; the text and Fig. 2 do the opposite. With {unequal.title} its variation over"
            f" flows is {eq1}; that of drops · RTT/avgRTT {goal}.",
        ]
    return []


def _more(v: View) -> str:
    """How much more receivers get under FDD-RED, in each network."""
    gains = [(p.title, float(np.mean(p.difference("total")))) for p in v.pairs()]
    return " and ".join(
        f"{abs(gain) / 1e3:.1f} kbit/s {'more' if gain > 0 else 'less'} ({title})" for title, gain in gains
    )


def _printed_gain(paper: Paper, topology: str) -> float:
    red, fdd = (paper.printed("fi", topology, scheme) for scheme in ("red", "fdd"))
    return (fdd or 0.0) - (red or 0.0)


def _of_both(pair: Pair) -> list[tuple[str, Measures]]:
    return [("under RED", pair.base), ("under FDD-RED", pair.ours)]


def _placebo_drops(v: View, equal: Pair) -> list[str]:
    """What the placebos drop beside the ledger, where they were run."""
    topology = v.paper.topologies[0].id
    shown = [
        f"{variant.title.removeprefix('placebo: ')} {_mean(m, 'drops'):.1f}"
        for variant in v.paper.variants
        if variant.flag("placebo") and (m := v.cells.get(Cell(v.setup, topology, "fdd", variant.id)))
    ]
    if v.variant or not shown:
        return []
    return [
        f"Most of the fall is due to which packet is dropped. Without any ledger, {equal.title}:"
        f" {', '.join(shown)} drops; FDD-RED {_mean(equal.ours, 'drops'):.1f}."
    ]


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim's verdict in a set-up needs this cell: D2 needs Fig. 10 and 11 too, D11 drop-tail."""
    if claim == "D11":
        return cell.sweep == DROP_TAIL[0]
    points = [p.id for p in paper.top.tables("points")] if claim == "D2" else []
    return claim != "D10" and cell.sweep in ("", *points)


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim in every set-up, in the order of the paper's tables.

    `variant` is one of the paper's, or a cell of the crossed readings; set-ups without its runs are skipped,
    and claims of which nothing is measured there.
    """
    found = []
    for claim in paper.claims:
        for setup in paper.setups:
            view = View(paper, cells, setup.id, variant)
            if not view.ran or (variant and claim.id in _NOT_OF_VARIANTS):
                continue
            if claim.id == "D10":
                found.append(Finding(claim.id, setup.id, [], notes=cost.words(), obstacle=cost.UNSAID))
                continue
            comparisons = _CLAIMS[claim.id](view)
            if not comparisons:
                continue
            # The paper's numbers are of 20 s.
            numbers = [] if view.long else [_number(view, entry) for entry in claim.tables("numbers")]
            if claim.id == "D1" and not view.long:
                numbers += _flows(view)
            found.append(Finding(claim.id, setup.id, comparisons, numbers, _notes(claim.id, view)))
    return found


def _flows(view: View) -> Iterator[Number]:
    """Table 2's rates, flow by flow, where flows differ by their round-trip times."""
    pair = view.pair("unequal")
    for scheme, m in (("red", pair.base), ("fdd", pair.ours)):
        for i, printed in enumerate(rates(view.paper, "unequal", scheme)):
            yield Number(
                f"throughput of Flow{i}, {view.paper.find('schemes', scheme).title}",
                [float(x) for x in m[f"flow{i}"]],
                printed,
                "Table 2",
                "bit/s",
                pair.title,
                (0.0, np.inf),
                rival=[RATE / FLOWS] * 2,
                rival_words="an equal share",
            )


def _number(view: View, entry: Entry) -> Number:
    measure, scheme = entry.word("measure"), entry.word("scheme")
    pair = view.pair(entry.word("topology"))
    m = pair.base if scheme == "red" else pair.ours
    about = view.paper.top.table("measures").table(measure)
    other = pair.ours if scheme == "red" else pair.base
    return Number(
        f"{about.word('words')}, {view.paper.find('schemes', scheme).title}",
        [float(x) for x in m[measure]],
        entry.number("value"),
        entry.where,
        about.word("unit"),
        pair.title,
        BOUNDS.get(measure, FREE),
        rival=[float(x) for x in other[measure]],
    )
