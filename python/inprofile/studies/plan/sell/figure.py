"""The picture: contracts sold, and the share of them that is kept."""

from __future__ import annotations

import altair as alt

from ....charts.theme import themed
from .answer import Answer

__all__ = ["picture"]


def picture(answer: Answer) -> str:
    """Runs with their intervals, the estimate, the goal, and the number that may be sold, as SVG."""
    import vl_convert

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
