"""How many contracts may be sold, in words and as one object.

The picture: contracts sold, and the share of them that is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....metrics.quantity import bracketed, quantity
from ....metrics.summary import text_table
from .answer import Answer, Point


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as one object."""
    market, who, shown = answer.market, answer.activity, answer.shown
    return {
        "title": market.scenario.title,
        "file": market.scenario.file,
        "groups": [{"group": g.name, "contract": g.contract} for g in market.groups],
        "kept": market.kept,
        "activity": {"by_hour": list(who.by_hour), "on": who.on, "off": who.off, "periods": who.periods},
        "margin": answer.margin,
        "fills_the_link": market.at_most,
        "met": shown is not None,
        "sell": answer.sell,
        "shown": None if shown is None else _point(answer, shown),
        "shown_to_miss": answer.missed,
        "tested": [_point(answer, p) for p in answer.tested],
        "curve": [_point(answer, p) for p in answer.curve],
        "always_sending": [_point(answer, p) for p in answer.room.points],
        "by_hour": [
            {"hour": hour, "active": share, "estimated": answer.estimated(shown.sold, share)}
            for hour, share in enumerate(who.by_hour)
        ]
        if shown is not None and len(who.by_hour) > 1
        else [],
        "runs": answer.runs,
    }


def _point(answer: Answer, point: Point) -> dict[str, Any]:
    return {
        "sold": point.sold,
        "groups": dict(
            zip((g.name for g in answer.market.groups), answer.market.shared(point.sold), strict=True)
        ),
        "runs": point.runs,
        "runs_all_kept": point.whole,
        "share_kept": {"mean": point.share, "ci95": list(point.interval), "n": point.runs},
        "lower_bound": point.lower(answer.crowd(point)),
        "wanted": sum(point.wanted) / point.runs,
        "delay_mean": None if math.isnan(point.delay) else point.delay,
        "best_effort": None if math.isnan(point.best_effort) else point.best_effort,
        "others_kept": None if math.isnan(point.others) else point.others,
    }


def as_text(answer: Answer) -> str:
    """The sentence, what it rests on, and the curve."""
    return "\n\n".join(
        part for part in (_head(answer), _sentence(answer), _curve(answer), _hours(answer)) if part
    )


def _head(answer: Answer) -> str:
    market, who = answer.market, answer.activity
    contracts = " and ".join(f"{g.name} ({quantity(g.contract, 'bit/s')})" for g in market.groups)
    if who.always:
        there = "who always send"
    elif who.on is not None and who.off is not None:
        there = (
            f"who come for {quantity(who.on, 's')} and go for {quantity(who.off, 's')} ({who.periods}):"
            f" {100 * who.busiest:.3g} % of them are there at a time"
        )
    elif len(who.by_hour) > 1:
        hour = who.by_hour.index(who.busiest)
        there = f"of whom {100 * who.busiest:.3g} % are there in the busiest hour, {hour}:00"
    else:
        there = f"of whom {100 * who.busiest:.3g} % are there at a time"
    others = f" beside {quantity(market.promised, 'bit/s')} of other contracts" if market.promised else ""
    return (
        f"{market.scenario.title}\nContracts of {contracts} at {market.place.link},"
        f" {market.place.rate}{others}, for customers {there}.\n"
        f"Goal: {100 * market.kept:g} % of the contracts that are wanted at a time are kept."
    )


def _sentence(answer: Answer) -> str:
    market, shown = answer.market, answer.shown
    if shown is None:
        tested = ", ".join(f"{p.sold} ({_share(p)})" for p in answer.tested) or "none"
        return (
            f"No number of contracts was shown to keep {100 * market.kept:g} % of them."
            f" Tested on fresh seeds: {tested}. `inprofile plan {market.scenario.file}` looks for"
            " settings of markers and queue with which they are."
        )
    lines = [
        f"Sell at most {_sold(answer, shown.sold)}: {_share(shown)} of the contracts that were wanted were"
        f" kept in {shown.runs:,} runs with fresh seeds, at least"
        f" {100 * shown.lower(answer.crowd(shown)):.2f} %, 95 % sure.",
        _between(answer, shown),
        f"With a margin of {100 * answer.margin:g} %, sell {_sold(answer, answer.sell)}: what was shown for"
        f" {shown.sold} covers {100 * answer.margin:g} % more demand than is assumed here.",
    ]
    load = shown.sold * market.contract
    capacity = market.link_rate - market.promised
    fills = f"{market.at_most} contracts fill the link where everybody sends"
    if load > capacity:
        fills += f"; sold is {load / capacity:.2f} times as much as there is"
    lines.append(f"{fills}.")
    if not math.isnan(shown.others):
        lines.append(
            f"Beside them, {100 * shown.others:.2f} % of the contracts of groups that are not sold here were"
            " kept."
        )
    return "\n".join(lines)


def _between(answer: Answer, shown: Point) -> str:
    if answer.missed is None:
        return "No number that was run is shown to miss the goal."
    return (
        f"The most that may be sold lies between {shown.sold}, shown to reach the goal, and {answer.missed},"
        " shown to miss it."
    )


def _sold(answer: Answer, sold: int) -> str:
    market = answer.market
    rate = quantity(sold * market.contract, "bit/s")
    if len(market.groups) == 1:
        return f"{sold} contracts ({rate})"
    each = ", ".join(f"{count} {g.name}" for count, g in zip(market.shared(sold), market.groups, strict=True))
    return f"{sold} contracts ({each}; {rate})"


def _share(point: Point) -> str:
    return bracketed(point.share, point.interval, 2, "%", 0.01)


def _curve(answer: Answer) -> str:
    points = sorted([*answer.curve, *answer.tested], key=lambda p: (p.sold, p.runs))
    others = bool(answer.market.place.free) and answer.activity.on is None
    promised = any(not math.isnan(p.others) for p in points)
    rows = [[str(p.sold), *_row(answer, p, others, promised)] for p in points]
    heading = [
        "sold",
        "of the link",
        "wanted at a time",
        "contracts kept",
        "estimate",
        "runs, all kept",
        "delay",
    ]
    heading += ["others' contracts kept"] * promised + ["best effort"] * others
    return text_table(heading, rows)


def _row(answer: Answer, p: Point, others: bool, promised: bool) -> Sequence[str]:
    market = answer.market
    cells = [
        f"{100 * (p.sold * market.contract + market.promised) / market.link_rate:.0f} %",
        f"{sum(p.wanted) / p.runs:.1f}",
        _share(p),
        f"{100 * answer.estimated(p.sold):.2f} %",
        f"{p.whole} of {p.runs}",
        "–" if math.isnan(p.delay) else quantity(p.delay, "s", 3),
    ]
    if promised:
        cells.append("–" if math.isnan(p.others) else f"{100 * p.others:.2f} %")
    if others:
        cells.append("–" if math.isnan(p.best_effort) else quantity(p.best_effort, "bit/s", 3))
    return cells


def _hours(answer: Answer) -> str:
    """What the estimate says of every hour."""
    hours, shown = answer.activity.by_hour, answer.shown
    if len(hours) == 1 or shown is None:
        return ""
    rows = [
        [f"{hour}:00", f"{100 * share:.3g} %", f"{100 * answer.estimated(shown.sold, share):.2f} %"]
        for hour, share in enumerate(hours)
    ]
    return text_table(["hour", "are there", f"kept of {shown.sold}, estimate"], rows)


def picture(answer: Answer) -> str:
    """Runs with their intervals, the estimate, the goal, and the number that may be sold, as SVG."""
    import altair as alt
    import vl_convert

    from ....charts.theme import themed

    market = answer.market
    fresh = {id(p) for p in answer.tested}
    runs = [
        {
            "sold": p.sold,
            "kept": 100 * p.share,
            "lo": 100 * p.interval.lo,
            "hi": 100 * p.interval.hi,
            "runs": "fresh seeds" if id(p) in fresh else "the curve's seeds",
        }
        for p in (*answer.curve, *answer.tested)
    ]
    most = max(p.sold for p in (*answer.curve, *answer.tested))
    step = max(1, most // 100)
    line = [{"sold": n, "kept": 100 * answer.estimated(n)} for n in range(1, most + 1, step)]
    y = alt.Y("kept:Q", title="contracts kept, of those wanted (%)", scale=alt.Scale(domain=[0, 100]))
    x = alt.X("sold:Q", title="contracts sold", scale=alt.Scale(zero=False, nice=False))
    colour = alt.Color(
        "runs:N",
        title="",
        scale=alt.Scale(domain=["the curve's seeds", "fresh seeds"], range=["#0072b2", "#d55e00"]),
    )
    dots = alt.Chart(alt.Data(values=runs)).mark_point(filled=True, size=50).encode(x=x, y=y, color=colour)
    bars = alt.Chart(alt.Data(values=runs)).mark_rule().encode(x=x, y=alt.Y("lo:Q"), y2="hi:Q", color=colour)
    curve = alt.Chart(alt.Data(values=line)).mark_line(strokeDash=[4, 3], color="#777777").encode(x=x, y=y)
    goal = alt.Chart(alt.Data(values=[{"kept": 100 * market.kept}])).mark_rule(strokeDash=[2, 2]).encode(y=y)
    layers = [curve, bars, dots, goal]
    if answer.shown is not None:
        at = alt.Data(values=[{"sold": answer.shown.sold, "text": f"at most {answer.shown.sold}"}])
        layers.append(alt.Chart(at).mark_rule(color="#d55e00", opacity=0.5).encode(x=x))
        layers.append(
            alt.Chart(at).mark_text(align="right", dx=-6, y=140, color="#d55e00").encode(x=x, text="text:N")
        )
    chart = alt.layer(*layers).properties(width=420, height=260, title=market.scenario.title)
    return str(vl_convert.vegalite_to_svg(themed(chart).to_dict()))
