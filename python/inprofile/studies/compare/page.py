"""The comparison's page: who wins where, in words and as a table; frontiers; every scheme at equal delay.

A comparison's tables for a paper: every scheme at its best setting, and all at equal delay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...charts.curves import frontier
from ...charts.page import Charts, environment, page_parts
from ...charts.theme import colour_of
from ...metrics.latex import Column, Table
from ...metrics.quantity import bracketed, number, quantity
from ...metrics.stats import POSITIVE, SHARE, Estimate, estimate
from ...run.storage import replace_files
from ..reproduce.report import write_overview
from .advice import advice
from .comparison import Compared, Comparison
from .measure import ENOUGH, MEASURES, RANKED, Measure

if TYPE_CHECKING:
    from .frontier import Ranking


#: What frontiers are drawn of.
DRAWN = ("kept", "fairness", "utilisation", "loss_in")
DELAY = "queueing delay (ms)"


def write(comparison: Comparison, out: Path) -> Path:
    """Write `compare/index.html`, its data beside it, and the overview; return the page's path."""
    folder = out / "compare"
    data = {"short": list(in_short(comparison)), "advice": advice(comparison), **comparison.to_json()}
    # All of it first: who is interrupted here keeps the earlier page whole.
    texts = {
        f"settings/{one.study.id}-{best.scheme.id}.toml": best.experiment
        for one in comparison.outcomes
        for best in comparison.tuned(one)
    }
    texts |= {
        "results.json": json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1) + "\n",
        "measures.csv": comparison.measures_csv(),
        "index.html": render(comparison),
    }
    (folder / "settings").mkdir(parents=True, exist_ok=True)
    replace_files({folder / name: text.encode() for name, text in texts.items()})
    write_overview(out)
    return folder / "index.html"


def render(comparison: Comparison) -> str:
    """The whole page as HTML; it needs no network and no other file."""
    charts: Charts = {}
    titles = [s.title for s in comparison.plan.schemes]
    views = [_view(comparison, one, charts) for one in comparison.outcomes]
    experiments = {o.study.experiment: o.study.title for o in comparison.outcomes}
    return (
        environment(Path(__file__).parent, charts=charts)
        .get_template("page.html.j2")
        .render(
            comparison=comparison,
            short=list(in_short(comparison)),
            matrix=list(_matrix(comparison)),
            tcps=list(dict.fromkeys((o.study.tcp, o.study.tcp_title) for o in comparison.outcomes)),
            experiments=experiments,
            tally=[(comparison.title(s), *counts) for s, *counts in comparison.tally()],
            legend=list(zip(titles, colour_of(titles), strict=True)),
            views=views,
            measures=list(MEASURES.values()),
            seeds=sorted({len(o.seeds) for o in comparison.outcomes}),
            settings=sorted({len(o.study.lengths) for o in comparison.outcomes}),
            enough=f"{ENOUGH:.0%}".replace("%", " %"),
            **page_parts(charts),
        )
    )


def shown(measure: Measure, values: Sequence[float], interval: bool = True) -> str:
    """A mean with its 95 % interval, as the page and the command write it.

    >>> shown(MEASURES["kept"], [0.98, 0.99]), shown(MEASURES["fairness"], [0.9876, 0.9876])
    ('98.5 [47.1, 100.0] %', '0.9876 in all 2 seeds')
    """
    from ...metrics.stats import SHARE, estimate

    e = estimate(values, SHARE)
    decimals, unit, factor = (1, "%", 0.01) if measure.percent else (4, "", 1.0)
    same = min(values) == max(values)
    ci95 = e.ci95 if interval and not same else None
    text = bracketed(e.mean, ci95, decimals, unit, factor)
    return f"{text} in all {len(values)} seeds" if interval and e.ci95 is not None and same else text


def _names(comparison: Comparison, schemes: Sequence[str]) -> str:
    titles = [comparison.title(s) for s in schemes]
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"


def _alike(comparison: Comparison, ranking: Ranking) -> str:
    if not ranking.alike:
        return ", ahead of every other scheme"
    if len(ranking.first) == len(ranking.order):
        return ", statistically tied with every other scheme"
    return f"; statistically tied: {_names(comparison, ranking.alike)}"


def in_short(comparison: Comparison) -> Iterator[str]:
    """Say who wins: over all rankings, then who keeps the contracts in each study."""
    tally = comparison.tally()
    top = [s for s, _, _, first in tally if first == tally[0][3]]
    if len(top) < len(tally):
        counts = "; ".join(
            f"{comparison.title(s)} {first} of {n}" for s, n, _, first in tally[: max(4, len(top))]
        )
        yield (
            f"{_names(comparison, top)} {'is' if len(top) == 1 else 'are'} most often at the top,"
            f" alone or statistically tied with the best: {counts}."
        )
    for one in comparison.outcomes:
        place = f"{one.study.title}, {one.study.tcp_title}"
        ranking = one.rankings.get("kept") or one.rankings.get("fairness")
        if ranking is None:
            yield f"{place}: no two schemes reach the same delays."
            continue
        measure = MEASURES["kept" if "kept" in one.rankings else "fairness"]
        what = "keeps contracts best" if measure.id == "kept" else "is fairest"
        worst = ranking.order[-1]
        yield (
            f"{place}: {comparison.title(ranking.best)} {what}"
            f" ({shown(measure, ranking.values[ranking.best])})"
            + _alike(comparison, ranking)
            + (
                "."
                if worst in ranking.alike
                else f"; last is {comparison.title(worst)} ({shown(measure, ranking.values[worst])})."
            )
        )


def _matrix(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Rows: experiment × measure; a cell for each way of doing TCP."""
    by = {(o.study.experiment, o.study.tcp): o for o in comparison.outcomes}
    tcps = list(dict.fromkeys(o.study.tcp for o in comparison.outcomes))
    for experiment in dict.fromkeys(o.study.experiment for o in comparison.outcomes):
        for measure in RANKED:
            rankings = [
                (by[experiment, tcp].rankings.get(measure.id), by[experiment, tcp].study.tcp_title)
                for tcp in tcps
            ]
            if any(r for r, _ in rankings):
                yield {
                    "experiment": experiment,
                    "measure": measure,
                    "cells": [
                        {"tcp": tcp, **(_winner(comparison, measure, r) if r else {})} for r, tcp in rankings
                    ],
                }


def _winner(comparison: Comparison, measure: Measure, ranking: Ranking) -> dict[str, Any]:
    everybody = len(ranking.first) == len(ranking.order)
    return {
        "best": comparison.title(ranking.best),
        "figure": shown(measure, ranking.values[ranking.best]),
        "alike": ", ".join(comparison.title(s) for s in ranking.alike),
        "everybody": everybody,
    }


def _view(comparison: Comparison, one: Compared, charts: Charts) -> dict[str, Any]:
    """One study: its frontiers, and every scheme at equal delay."""
    titles = {s.id: s.title for s in comparison.plan.schemes}
    measures = [m for m in MEASURES.values() if any(m.id in f for f in one.frontiers.values())]
    found = {m.id: one.at_equal_delay(m.id) for m in measures}
    delays = [number(1e3 * d, 3) for d in one.delays]
    return {
        "study": one.study,
        "seeds": len(one.seeds),
        "lengths": [number(1e3 * t, 3) for t in one.study.lengths],
        "delays": delays,
        "measures": measures,
        "rows": [
            {
                "scheme": titles[s],
                "cells": [
                    {
                        "text": shown(m, found[m.id][s]) if s in found[m.id] else "–",
                        "first": m.id in one.rankings and s in one.rankings[m.id].first,
                    }
                    for m in measures
                ],
            }
            for s in one.reaching
        ],
        "absent": [
            f"{titles[s]} ({_reach(f.reach)})" for s, f in one.frontiers.items() if s not in one.reaching
        ],
        "charts": [
            {"name": _frontiers(one, titles, m, charts), "title": m.title, "text": m.text}
            for m in measures
            if m.id in DRAWN
        ],
    }


def _reach(reach: tuple[float, float]) -> str:
    low, high = (number(1e3 * x, 3) for x in reach)
    return f"{low} to {high} ms" if reach[0] < reach[1] else "no range that every seed reaches"


def _frontiers(one: Compared, titles: dict[str, str], measure: Measure, charts: Charts) -> str:
    from ...metrics.stats import POSITIVE, SHARE, estimate

    scale = 100 if measure.percent else 1
    rows = []
    for s, f in one.frontiers.items():
        if measure.id not in f:
            continue
        for t, delay, values in zip(f.settings, f["delay"], f[measure.id], strict=True):
            x, y = estimate((1e3 * delay).tolist(), POSITIVE), estimate(values.tolist(), SHARE)
            x_range, y_range = x.ci95 or (x.mean, x.mean), y.ci95 or (y.mean, y.mean)
            rows.append(
                {
                    "scheme": titles[s],
                    "label": f"T = {number(1e3 * t, 3)} ms",
                    "order": t,
                    "x": x.mean,
                    # A logarithmic axis ends above 0.
                    "x_lo": max(x_range[0], x.mean / 10),
                    "x_hi": x_range[1],
                    "y": scale * y.mean,
                    "y_lo": scale * y_range[0],
                    "y_hi": scale * y_range[1],
                }
            )
    name = f"{one.study.id}-{measure.id}"
    unit = f"{measure.title.lower() if not measure.title.startswith('IN') else measure.title}"
    up = f"{unit} (%)" if measure.percent else unit
    charts[name] = frontier(rows, list(titles.values()), x=DELAY, y=up, log=(True, False), legend=False)
    return name


_BEST = ("kept", "fairness", "best_effort", "utilisation", "delay")


def tables_of(comparison: Comparison) -> Iterator[Table]:
    """Of each experiment two tables."""
    for one in comparison.outcomes:
        yield _best(comparison, one)
        if table := _equal(comparison, one):
            yield table


def _best(comparison: Comparison, one: Compared) -> Table:
    found = comparison.tuned(one)
    points = []
    for best in found:
        frontier = one.frontiers[best.scheme.id]
        points.append(frontier.points[list(frontier.settings).index(best.length)].values)
    columns = [
        Column("scheme", [best.scheme.title for best in found]),
        Column("T", [quantity(best.length, "s", 3) for best in found]),
    ]
    for name in _BEST:
        cells = [
            estimate(p[name].tolist(), POSITIVE if name == "delay" else SHARE) if name in p else None
            for p in points
        ]
        if any(cells):
            columns.append(_column(name, cells))
    return Table(
        f"{_where(one)}: every scheme at the setting that keeps contracts best. {_seeds(one)}",
        f"compare-{one.study.id}-best",
        columns,
    )


def _equal(comparison: Comparison, one: Compared) -> Table | None:
    there = [s.id for s in comparison.plan.schemes if s.id in one.reaching]
    columns = [Column("scheme", [comparison.title(s) for s in there])]
    for name in MEASURES:
        if found := one.at_equal_delay(name):
            columns.append(_column(name, [estimate(found[s], SHARE) if s in found else None for s in there]))
    if not there or len(columns) == 1:
        return None
    delays = ", ".join(f"{1e3 * d:.3g}" for d in one.delays)
    return Table(
        f"{_where(one)}: schemes at equal mean queueing delay ({delays} ms). {_seeds(one)}",
        f"compare-{one.study.id}-equal-delay",
        columns,
    )


def _column(name: str, cells: Sequence[Estimate | None]) -> Column:
    if name == "delay":
        return Column("Queueing delay", cells, "s")
    return Column(MEASURES[name].title, cells, percent=MEASURES[name].percent)


def _where(one: Compared) -> str:
    return f"{one.study.title}, {one.study.tcp_title}"


def _seeds(one: Compared) -> str:
    return f"Mean and 95 % confidence interval of {len(one.seeds)} seeds."
