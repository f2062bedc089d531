"""The picture of a plan: which settings keep the contracts, and what the others get under them."""

from __future__ import annotations

import altair as alt

from ...charts.theme import themed
from ...metrics.quantity import scale
from .contracts import Answer
from .search import Tried

__all__ = ["picture"]


def picture(answer: Answer) -> str:
    """Every setting that was tried, as SVG: T, what best effort gets, and whether the goal is met."""
    import vl_convert

    question = answer.question
    factor, unit = scale("bit/s", question.link_rate)
    others = bool(question.place.free)

    def row(one: Tried) -> dict[str, object]:
        return {
            "scheme": one.scheme.title,
            "T": 1e3 * one.settings["T"],
            "cost": one.judged.best_effort / factor if others else 1e3 * one.judged.delay,
            "goal": "met" if one.judged.violation == 0 else "missed",
        }

    rows = [row(t) for found in answer.tried.values() for t in found]
    cost = f"best effort ({unit})" if others else "queueing delay (ms)"
    dots = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=40)
        .encode(
            x=alt.X("T:Q", title="T (ms)", scale=alt.Scale(type="log")),
            y=alt.Y("cost:Q", title=cost, scale=alt.Scale(zero=True)),
            color=alt.Color(
                "goal:N",
                title="goal",
                scale=alt.Scale(domain=["met", "missed"], range=["#0072b2", "#d55e00"]),
            ),
            shape=alt.Shape("goal:N", scale=alt.Scale(domain=["met", "missed"], range=["circle", "cross"])),
        )
        .properties(width=220, height=150)
    )
    chart = dots.facet("scheme:N", columns=3, title=question.scenario.title)
    return str(vl_convert.vegalite_to_svg(themed(chart).to_dict()))
