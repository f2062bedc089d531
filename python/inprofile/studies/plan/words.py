"""A plan's answer in words and as one object.

The picture of a plan: which settings keep the contracts, and what the others get under them.
"""

from __future__ import annotations

from typing import Any

from ...metrics.quantity import number, pm, quantity, scale
from ...metrics.stats import Estimate, paired
from ...metrics.summary import text_table
from .contracts import TRIALS, Answer
from .question import Question
from .search import Confirmed, Judged, Tried, figure_of
from .store import RunFigures


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as one object."""
    question, chosen = answer.question, answer.chosen
    goal = question.goal
    return {
        "title": question.scenario.title,
        "file": question.scenario.file,
        "goal": {"kept": goal.kept, "delay": goal.delay, "best_effort": goal.best_effort},
        "met": chosen is not None,
        "chosen": None if chosen is None else {**_tried(chosen.tried), "fresh": _fresh(chosen)},
        "nearest": None if chosen is not None else _tried(answer.nearest),
        "tested": [{**_tried(one.tried), "fresh": _fresh(one)} for one in answer.tested],
        "schemes": [
            {
                "id": scheme.id,
                "title": scheme.title,
                "tried": len(answer.tried[scheme.id]),
                "met": sum(t.judged.violation == 0 for t in answer.tried[scheme.id]),
                "best": _tried(max(answer.tried[scheme.id], key=lambda t: t.judged.score)),
            }
            for scheme in question.schemes
        ],
        "finalists": [_tried(t) for t in answer.finalists],
        "today": _runs(answer.today),
        "sensitivity": [
            {"key": n.key, "value": n.value, "factor": n.factor, **_judged(n.judged), **_runs(n.runs)}
            for n in answer.near
        ],
        "more_customers": [
            {"group": r.group, "more": r.more, **_judged(r.judged), **_runs(r.runs)} for r in answer.room
        ],
        "changes": [
            {
                "what": c.what,
                "lever": c.lever,
                "factor": c.factor,
                "meets_the_goal": c.met,
                "settings": dict(c.settings),
                **_runs(c.runs),
            }
            for c in answer.changes
        ],
        "runs": answer.runs,
        "searched_on_one_in": answer.scale,
    }


def _tried(one: Tried) -> dict[str, Any]:
    return {
        "scheme": one.scheme.id,
        "title": one.scheme.title,
        "settings": dict(one.settings),
        **_judged(one.judged),
        **_runs(one.runs),
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "meets_the_goal": judged.violation == 0,
        "margin": judged.margin,
        "falls_short_by": judged.violation,
    }


def _runs(runs: RunFigures) -> dict[str, Any]:
    names = (
        "all_contracts_kept",
        "contracts_kept",
        "assurance_worst",
        "best_effort",
        "delay_mean",
        "utilisation",
    )
    found: dict[str, Any] = {"runs": len(runs.seeds), "runs_all_kept": runs.kept}
    for name in names:
        if not (runs[name] == runs[name]).all():
            continue
        e = figure_of(runs, name)
        found[name] = {"mean": e.mean, "ci95": list(e.ci95 or (None, None)), "n": e.n}
    return found


def _fresh(one: Confirmed) -> dict[str, Any]:
    return {
        **_runs(one.runs),
        "failures": one.failures,
        "allowed": one.allowed,
        "wanted": one.wanted,
        "lower_bound": one.lower,
        "met": one.met,
    }


def as_text(answer: Answer) -> str:
    """The answer, the schemes beside it, how sensitive it is, and more customers."""
    parts = [_head(answer.question), _answer(answer), _schemes(answer)]
    if answer.near:
        parts.append(_near(answer))
    if answer.room:
        parts.append(_room(answer))
    if answer.changes:
        parts.append(_changes(answer))
    return "\n\n".join(parts)


def _head(question: Question) -> str:
    goal, place = question.goal, question.place
    groups = question.scenario.check().effective["flows"]
    count = sum(g["count"] for g in groups if g["name"] in place.contracted)
    bought = question.bought
    wanted = [f"every contract kept in {100 * goal.kept:g} % of runs"]
    if goal.delay is not None:
        wanted.append(f"mean queueing delay up to {quantity(goal.delay, 's')}")
    if goal.best_effort > 0:
        wanted.append(f"best effort at least {quantity(goal.best_effort, 'bit/s')}")
    return (
        f"{question.scenario.title}\n{count} contracts, together"
        f" {quantity(bought, 'bit/s')} of {place.rate} at {place.link}"
        f" ({100 * bought / question.link_rate:.0f} %).\nGoal: {', '.join(wanted)}."
    )


def _answer(answer: Answer) -> str:
    chosen = answer.chosen
    if chosen is None:
        return _short(answer)
    runs, tried = chosen.runs, chosen.tried
    lines = [
        f"{tried.scheme.title}, with",
        *_settings(answer.question, tried),
        f"Kept every contract in {runs.kept} of {len(runs.seeds)} runs with fresh seeds: in at least"
        f" {100 * chosen.lower:.2f} % of all, 95 % sure.",
        f"Least assurance ratio of a run: {pm(figure_of(runs, 'assurance_worst'))}."
        f" Queueing delay: {pm(figure_of(runs, 'delay_mean'), 's')}.",
    ]
    lines.append(_price(answer, runs))
    return "\n".join(line for line in lines if line)


def _price(answer: Answer, runs: RunFigures) -> str:
    if not answer.question.place.free:
        return f"Link used: {_used(runs)}; as the file has it today {_used(answer.today)}."
    rate = answer.question.link_rate
    got, today = figure_of(runs, "best_effort"), figure_of(answer.today, "best_effort")
    kept = f"{answer.today.kept} of {len(answer.today.seeds)} runs"
    return (
        f"Price: best effort gets {pm(got, 'bit/s')} ({100 * got.mean / rate:.1f} % of the link)."
        f" As the file has it today it gets {pm(today, 'bit/s')}, and every contract is kept in {kept}."
    )


def _settings(question: Question, tried: Tried) -> list[str]:
    named = {s.key: s for s in tried.scheme.settings}
    lines = []
    for key, x in tried.settings.items():
        packets = x / question.place.packet_time if key == "T" else 0.0
        words = f"{quantity(x, 's', 3)} ({number(packets, 3)} packets)" if key == "T" else named[key].words(x)
        lines.append(f"  {key} = {words}")
    return lines


def _short(answer: Answer) -> str:
    """By how much everything falls short."""
    question, near = answer.question, answer.nearest
    lines = [f"No setting that was tried meets the goal. {near.scheme.title} comes nearest, with"]
    lines += _settings(question, near)
    kept = figure_of(near.runs, "all_contracts_kept")
    worst = figure_of(near.runs, "assurance_worst")
    lines.append(
        f"It keeps every contract in {near.runs.kept} of {len(near.runs.seeds)} runs ({_percent(kept)});"
        f" the least assurance ratio of a run is {pm(worst)}, most often that of {_most_often(near.runs)}."
    )
    if near.judged.margin < 0:
        lines.append(
            f"Contracts fall short by {-100 * near.judged.margin:.1f} %: so much less would be kept in"
            f" {100 * question.goal.kept:g} % of runs."
        )
    goal = question.goal
    if goal.delay is not None and near.judged.delay > goal.delay:
        lines.append(
            f"The mean queueing delay is {quantity(near.judged.delay, 's', 3)};"
            f" {quantity(goal.delay, 's')} is asked for."
        )
    if goal.best_effort > 0 and near.judged.best_effort < goal.best_effort:
        lines.append(
            f"Best effort gets {quantity(near.judged.best_effort, 'bit/s', 3)},"
            f" {quantity(goal.best_effort, 'bit/s')} is asked for."
        )
    fewest = max(len(tried) for tried in answer.tried.values())
    bought = question.bought
    if bought > question.link_rate:
        lines.append(
            f"The contracts are {quantity(bought - question.link_rate, 'bit/s', 3)} more than the link has:"
            " no setting can keep them all."
        )
    elif fewest < TRIALS:
        lines.append(
            f"{fewest} settings a scheme were tried: --trials {TRIALS}, the default, may find one that does."
        )
    for one in answer.tested:
        if one.failures <= one.allowed:
            lines.append(
                f"Tested and failed: {one.tried.scheme.title} keeps the contracts on fresh seeds,"
                " but not the delay or best effort that is asked for."
            )
            continue
        lines.append(
            f"Tested and failed: {one.tried.scheme.title}, {one.failures} of {len(one.runs.seeds)} fresh runs"
            f" missed a contract, {one.allowed} are allowed."
        )
    return "\n".join(lines)


def _most_often(runs: RunFigures) -> str:
    return max(sorted(set(runs.worst_flow)), key=runs.worst_flow.count)


def _percent(e: Estimate) -> str:
    if e.ci95 is None:
        return f"{100 * e.mean:.0f} %"
    return f"95 %: {100 * e.ci95.lo:.0f} to {100 * e.ci95.hi:.0f} %"


def _schemes(answer: Answer) -> str:
    others = bool(answer.question.place.free)
    rows = []
    last = {t.scheme.id: t for t in reversed(answer.finalists)}
    for scheme in sorted(answer.question.schemes, key=lambda s: -_best(answer, s.id).judged.score):
        best = last.get(scheme.id, _best(answer, scheme.id))
        met = sum(t.judged.violation == 0 for t in answer.tried[scheme.id])
        rows.append(
            [
                scheme.title,
                f"{met} of {len(answer.tried[scheme.id])}",
                f"{best.runs.kept} of {len(best.runs.seeds)}",
                pm(figure_of(best.runs, "assurance_worst")),
                quantity(best.judged.best_effort, "bit/s", 3) if others else _used(best.runs),
                quantity(best.judged.delay, "s", 3),
            ]
        )
    heading = ["scheme, at its best", "settings that meet it", "runs, all kept", "least ratio"]
    return text_table([*heading, "best effort" if others else "link used", "delay"], rows)


def _best(answer: Answer, scheme: str) -> Tried:
    return max(answer.tried[scheme], key=lambda t: t.judged.score)


def _row(judged: Judged, runs: RunFigures, others: bool) -> list[str]:
    return [
        f"{runs.kept} of {len(runs.seeds)}",
        pm(figure_of(runs, "assurance_worst")),
        pm(figure_of(runs, "best_effort"), "bit/s") if others else _used(runs),
        quantity(judged.delay, "s", 3),
        "met" if judged.violation == 0 else "missed",
    ]


def _columns(others: bool) -> list[str]:
    return ["runs, all kept", "least ratio", "best effort" if others else "link used", "delay", "goal"]


def _used(runs: RunFigures) -> str:
    return f"{100 * float(runs['utilisation'].mean()):.1f} %"


def _near(answer: Answer) -> str:
    """How sensitive the answer is."""
    assert answer.chosen is not None  # noqa: S101
    others = bool(answer.question.place.free)
    named = {s.key: s for s in answer.chosen.tried.scheme.settings}
    rows = []
    for one in answer.near:
        value = quantity(one.value, "s", 3) if one.key == "T" else named[one.key].words(one.value)
        rows.append([f"{one.key} = {value}", f"× {one.factor:.2g}", *_row(one.judged, one.runs, others)])
    table = text_table(["one setting changed", "", *_columns(others)], rows)
    share = 100 * answer.question.goal.kept
    return f"{table}\nGoal: met where these runs say, 95 % sure, that {share:g} % of all keep every contract."


def _room(answer: Answer) -> str:
    """The outcome with more customers."""
    others = bool(answer.question.place.free)
    rows = [[f"{r.more} more in {r.group}", *_row(r.judged, r.runs, others)] for r in answer.room]
    text = text_table(["more customers", *_columns(others)], rows)
    if not others:
        return text
    assert answer.chosen is not None  # noqa: S101
    base = answer.chosen.tried.runs
    if answer.scale > 1:
        return (
            f"{text}\nRuns of a network with one in {answer.scale} flows, those of the settings changed too."
        )
    costs = [
        f"one more in {r.group} costs best effort {pm(_difference(base, r.runs, 'best_effort'), 'bit/s')}"
        for r in answer.room
        if r.more == 1
    ]
    said = "; ".join(costs)
    return f"{text}\n{said[:1].upper()}{said[1:]}."


def _difference(a: RunFigures, b: RunFigures, name: str) -> Estimate:
    """Of a figure, a less b on the same seeds."""
    first, second = (dict(zip(runs.seeds, runs[name].tolist(), strict=True)) for runs in (a, b))
    return paired(first, second).difference


def _changes(answer: Answer) -> str:
    """The changes that would be needed."""
    others = bool(answer.question.place.free)
    rows = [[c.what, *_row(c.judged, c.runs, others)] for c in answer.changes]
    said = f"{answer.nearest.scheme.title} was tuned anew for each faster link and each smaller contract."
    return f"{text_table(['what would help', *_columns(others)], rows)}\n{said}"


def picture(answer: Answer) -> str:
    """Every setting that was tried, as SVG: T, what best effort gets, and whether the goal is met."""
    import altair as alt
    import vl_convert

    from ...charts.theme import themed

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
