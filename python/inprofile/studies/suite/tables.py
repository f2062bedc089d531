"""A suite's figures as tables: the checklist, each scenario beside drop-tail, what can be set; as text.

A suite's tables for a paper: each scenario's contestants, with intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...metrics.latex import Column, Table
from ...metrics.quantity import number, scale, together
from ...metrics.stats import ci95
from ...metrics.summary import text_table
from .coexistence import balance, overview
from .contestants import DROP_TAIL, Contestant
from .matrix import Point
from .measure import better, per_cent, title, unit
from .outcome import Entry, Suite
from .scenarios import Definition

#: Of drop-tail's goodput, what little is lost to.
_ENOUGH = 0.95
#: Signs beside a figure, against drop-tail.
SIGNS = {"better": "▲", "worse": "▼", "alike": "", "": ""}


def parts(entry: Entry, name: str) -> tuple[str, str]:
    """Mean with its unit, and the 95 % interval in the same, as far as it is a thousandth of the mean.

    Shares are per cent but for the index of fairness. Where every seed has the same value there is no
    interval; where not every run has a value, it says how many have one.
    """
    if name not in entry:
        return "–", ""
    mean, interval = _interval(entry, name)
    runs, have = len(entry.measures.seeds), len(entry.values(name))
    if have < runs:
        return mean, f"{interval}, {have} of {runs} runs".removeprefix(", ")
    return mean, interval if runs > 1 else "1 run"


def _interval(entry: Entry, name: str) -> tuple[str, str]:
    found = entry[name]
    size = max(abs(found.mean), found.half or 0.0) if math.isfinite(found.half or 0.0) else abs(found.mean)
    factor, word = (0.01, "%") if per_cent(name) else scale(unit(name), size)
    text = f"{number(found.mean / factor, 4)} {word}".rstrip()
    if len(set(entry.values(name))) == 1 or found.ci95 is None:
        return text, ""
    lo, hi = (x / factor for x in found.ci95)
    mean = found.mean / factor
    if max(hi - mean, mean - lo) < 0.001 * abs(mean):
        return text, "± under 0.1 %"
    digits = max(0, min(8, 1 - math.floor(math.log10(max(hi - mean, mean - lo)))))
    middle, low, high = together(mean, lo, hi, decimals=digits)
    if hi - mean > 1.2 * (mean - lo) or mean - lo > 1.2 * (hi - mean):
        return f"{middle} {word}".rstrip(), f"{low} to {high}"
    return f"{middle} {word}".rstrip(), f"± {hi - mean:.{digits}f}"


def cell(entry: Entry | None, name: str) -> dict[str, str]:
    """A figure as a table shows it: mean, interval and how many it is of, and all of them as a text."""
    if entry is None:
        return _plain("–")
    mean, interval = parts(entry, name)
    verdict = entry.verdict(name)
    count = _count(entry, name)
    beside = "; ".join(text for text in (interval, count) if text)
    return {
        "text": f"{mean} ({beside})" if beside else mean,
        "mean": mean,
        "interval": interval,
        "count": count,
        "verdict": verdict,
        "sign": SIGNS[verdict],
    }


def _count(entry: Entry, name: str) -> str:
    """Beside a mean time: of how many transfers or pages it is, how many were unfinished; else empty."""
    what, _, group = name.partition(":")
    if what not in ("completion", "page") or f"completed:{group}" not in entry:
        return ""
    texts = []
    for count in ("completed", "unfinished"):
        sign = SIGNS[entry.verdict(f"{count}:{group}")]
        texts.append(f"{number(entry[f'{count}:{group}'].mean, 3)} {count} {sign}".rstrip())
    return ", ".join(texts)


def _plain(text: str) -> dict[str, str]:
    return {"text": text, "mean": text, "interval": "", "count": "", "verdict": "", "sign": ""}


def tables(suite: Suite, definition: Definition) -> Iterator[dict[str, Any]]:
    """For each variant: heading and rows, drop-tail first."""
    if definition.matrix is not None:
        return
    if definition.sensitivity:
        yield _sensitivity(suite, definition)
        return
    if definition.control:
        yield from _by_control(suite, definition)
        return
    for variant in definition.variants:
        entries = suite.entries(definition, variant)
        if not entries:
            continue
        measures = [m for m in definition.measures if any(m in e for e in entries)]
        yield {
            "variant": variant_title(suite, definition, variant),
            "measures": [title(m) for m in measures],
            "rows": [
                {"title": suite.title(e.cell.contestant), "cells": [cell(e, m) for m in measures]}
                for e in entries
            ],
        }


def pair_figures(suite: Suite, definition: Definition, points: Sequence[Point]) -> dict[str, Any]:
    """Every measure of a pair's points: a row for each discipline, rate and round trip."""
    entries = [(p, e) for p in points for e in suite.entries(definition, p.name)]
    measures = [m for m in definition.measures if any(m in e for _, e in entries)]
    order = {c.id: n for n, c in enumerate(suite.plan.contestants)}
    entries.sort(key=lambda found: order[found[1].cell.contestant])
    return {
        "measures": [title(m) for m in measures],
        "rows": [
            {
                "title": suite.title(e.cell.contestant),
                "rate": p.rate,
                "rtt": p.rtt,
                "cells": [_ratio(e) if m == "ratio:a/b" else cell(e, m) for m in measures],
            }
            for p, e in entries
        ],
    }


def _ratio(entry: Entry) -> dict[str, str]:
    """The ratio of a map: a geometric mean, with the interval of the logarithms."""
    middle = balance(entry)
    if middle is None:
        return _plain("–")
    logs = [math.log(x) for x in entry.values("ratio:a/b")]
    interval = "" if (found := ci95(logs)) is None else " to ".join(number(math.exp(x), 2) for x in found)
    return {**_plain(number(middle, 3)), "interval": interval}


def variant_title(suite: Suite, definition: Definition, variant: str) -> str:
    """The name of a variant; empty where there is only one."""
    if definition.vary:
        return f"{definition.vary['key']} = {variant}"
    if definition.beside is not None and definition.beside.contestants:
        return f"{suite.title(variant)} at the first router"
    return f"{variant} times its value" if variant else ""


def _by_control(suite: Suite, definition: Definition) -> Iterator[dict[str, Any]]:
    """A table for each measure: a row a contestant, a column for each factor of what sets its delay."""
    by = {v: {e.cell.contestant: e for e in suite.entries(definition, v)} for v in definition.variants}
    for name in definition.measures:
        rows = []
        for contestant in suite.plan.contestants:
            found = [by[v].get(contestant.id) for v in definition.variants]
            if any(e is not None for e in found):
                cells = [cell(e, name) for e in found]
                own = _plain(_controls(contestant))
                rows.append({"title": contestant.title, "cells": [own, *cells]})
        if rows:
            heads = ["parameter varied", *(f"× {v}" for v in definition.variants)]
            yield {"variant": title(name), "measures": heads, "rows": rows}


def _controls(contestant: Contestant) -> str:
    if not contestant.control:
        return "nothing"
    if contestant.control == "T":
        return "T = 30 ms"
    found = contestant.scheme.queue.get(contestant.control) or contestant.default(contestant.control)
    return f"{contestant.control} = {str(found).strip(chr(34))}"


def settings_table(suite: Suite) -> list[dict[str, str]]:
    """RFC 7928 §4.5, §4.6, §11.2 and §12.2: what there is to set of each contestant, and where it decides."""
    rows = []
    for c in suite.plan.contestants:
        numeric = [n for n, kind in c.parameters.items() if kind not in ("flag", "choice")]
        given = [f"{n} = {v}" for n, v in _flat(c.scheme.queue).items() if n not in ("aqm", "limit")]
        rows.append(
            {
                "title": c.title,
                "decides": c.decides,
                "ecn": "yes" if c.has_ecn else "no",
                "control": _controls(c),
                "numbers": str(len(numeric)),
                "given": ", ".join(given) or "none",
            }
        )
    return rows


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        found.update(_flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {before + key: value})
    return found


def _sensitivity(suite: Suite, definition: Definition) -> dict[str, Any]:
    """Least and greatest mean over the settings, and the setting that has the greatest delay."""
    rows = []
    for contestant in suite.plan.contestants:
        entries = suite.settings(definition, contestant.id)
        cells = []
        for name in definition.measures:
            means = [(e[name].mean, e.cell.setting) for e in entries if name in e]
            if not means:
                cells.append(_plain("–"))
                continue
            own = next((m for m, setting in means if setting is None), means[0][0])
            (low, at_low), (high, at_high) = min(means, key=lambda m: m[0]), max(means, key=lambda m: m[0])
            factor, word = scale(unit(name), own)
            worst = at_high if better(name) < 0 else at_low
            where = f" (at {worst[0]} = {worst[1]})" if worst and low != high else ""
            shown = [number(x / factor, 3) for x in (low, own, high)]
            text = f"{shown[0]} … {shown[1]} … {shown[2]} {word}{where}"
            cells.append(_plain(text))
        if any(c["text"] != "–" for c in cells):
            cells.append(_plain(str(len(entries) - 1)))
            rows.append({"title": contestant.title, "cells": cells})
    measures = [f"{title(m)}: least … own … greatest" for m in definition.measures]
    return {"variant": "", "measures": [*measures, "settings"], "rows": rows}


def checklist(suite: Suite) -> list[dict[str, Any]]:
    """RFC 7928, Figure 4: each scenario with drop-tail's figures, and who does better for little goodput."""
    rows = []
    for definition in suite.plan.definitions:
        if definition.matrix is not None:
            continue
        row: dict[str, Any] = {"definition": definition, "why": suite.plan.absent.get((definition.id, ""))}
        entries = [e for v in definition.variants for e in suite.entries(definition, v)]
        of_drop_tail = [e for e in entries if e.cell.contestant == DROP_TAIL]
        if of_drop_tail:
            first = of_drop_tail[0]
            row["delay"], row["goodput"] = (parts(first, m)[0] for m in ("delay_p99", "goodput"))
            others = [e for e in entries if e.baseline is not None and e.cell.variant == first.cell.variant]
            less = [e for e in others if e.verdict("delay_mean") == "better"]
            floor = _ENOUGH * first["goodput"].mean if "goodput" in first else 0.0
            free = [e for e in less if "goodput" in e and e["goodput"].mean >= floor]
            row["less"], row["free"], row["others"] = len(less), len(free), len(others)
            if least := [e for e in others if "delay_p99" in e]:
                best = min(least, key=lambda e: e["delay_p99"].mean)
                row["least"] = f"{suite.title(best.cell.contestant)}: {parts(best, 'delay_p99')[0]}"
                row["its_goodput"] = parts(best, "goodput")[0]
        rows.append(row)
    return rows


def as_text(suite: Suite) -> str:
    """The report as plain text: the checklist, then every table."""
    made = suite.plan
    head = [
        f"{made.about.title}",
        f"{len(made.contestants)} contestants, {made.seeds} seeds"
        + f", {made.tcp.title}"
        + (", quick: fewer seeds and shorter runs, do not quote" if made.quick else ""),
    ]
    body = [
        [
            f"{r['definition'].section} {r['definition'].id}",
            r["definition"].weight,
            *(
                [r["delay"], r["goodput"], f"{r['less']}, {r['free']} of {r['others']}", r.get("least", "–")]
                if "delay" in r
                else [r["why"] or "not run", "", "", ""]
            ),
        ]
        for r in checklist(suite)
    ]
    heading = [
        "scenario", made.about.words["weight"], "drop-tail: 99th percentile of delay", "its goodput",
        "less mean delay, with 95 % of the goodput", "least 99th percentile",
    ]  # fmt: skip
    parts = ["\n".join(head), *([text_table(heading, body)] if body else [])]
    for definition in made.definitions:
        if definition.matrix is not None and (rows := overview(suite, definition)):
            heads = ["", "", "median ratio", "range", "between 1/2 and 2", "highest p99 delay of the first"]
            heads += ["… of the second", "lowest utilisation"]
            parts.append(
                f"{definition.section} {definition.id}: {definition.text}\n{text_table(heads, rows)}"
            )
        for table in tables(suite, definition):
            name = f"{definition.section} {definition.id}" + (
                f", {table['variant']}" if table["variant"] else ""
            )
            rows = [
                [r["title"], *(f"{c['text']} {c['sign']}".rstrip() for c in r["cells"])]
                for r in table["rows"]
            ]
            parts.append(f"{name}: {definition.text}\n{text_table(['', *table['measures']], rows)}")
    parts += [f"{s}{f', {c}' if c else ''}: {why}" for (s, c), why in made.absent.items()]
    parts.append("▲ better, ▼ worse than drop-tail: the 95 % interval of the paired difference excludes 0.")
    return "\n\n".join(parts)


def tables_of(suite: Suite) -> Iterator[Table]:
    """A table for each scenario and variant; where one parameter is varied, for each measure.

    The settings of the sensitivity scenario have none: they are ranges, not means.
    """
    for definition in suite.plan.definitions:
        if definition.matrix is not None:
            yield from _matrix(suite, definition)
        elif definition.control:
            yield from _control(suite, definition)
        elif not definition.sensitivity:
            for variant in definition.variants:
                if entries := suite.entries(definition, variant):
                    names = [_names(suite, entries)]
                    more = variant_title(suite, definition, variant)
                    yield _table(suite, definition, variant, more, names, entries)


def _table(
    suite: Suite,
    definition: Definition,
    variant: str,
    more: str,
    first: Sequence[Column],
    entries: Sequence[Entry],
) -> Table:
    measures = [m for m in definition.measures if any(m in e for e in entries)]
    return Table(
        _caption(suite, definition, more),
        _label(suite, definition, variant),
        [*first, *(_figures(title(m), m, entries) for m in measures)],
    )


def _names(suite: Suite, entries: Sequence[Entry]) -> Column:
    return Column("", [suite.title(e.cell.contestant) for e in entries])


def _figures(heading: str, measure: str, entries: Sequence[Entry | None]) -> Column:
    cells = [e[measure] if e is not None and measure in e else None for e in entries]
    return Column(heading, cells, unit(measure), per_cent(measure))


def _control(suite: Suite, definition: Definition) -> Iterator[Table]:
    by = {v: {e.cell.contestant: e for e in suite.entries(definition, v)} for v in definition.variants}
    there = [c for c in suite.plan.contestants if any(c.id in found for found in by.values())]
    for measure in definition.measures:
        columns = [_figures(f"× {v}", measure, [found.get(c.id) for c in there]) for v, found in by.items()]
        if there:
            first = Column("", [c.title for c in there])
            yield Table(
                _caption(suite, definition, title(measure)),
                _label(suite, definition, measure),
                [first, *columns],
            )


def _matrix(suite: Suite, definition: Definition) -> Iterator[Table]:
    assert definition.matrix is not None  # noqa: S101 (whoever asks has looked)
    pairs: dict[tuple[str, str], list[tuple[str, str, Entry]]] = {}
    for point in definition.matrix.points():
        for entry in suite.entries(definition, point.name):
            pairs.setdefault((point.a, point.b), []).append((point.rate, point.rtt, entry))
    order = {c.id: n for n, c in enumerate(suite.plan.contestants)}
    for (a, b), found in pairs.items():
        found.sort(key=lambda one: order[one[2].cell.contestant])
        entries = [entry for _, _, entry in found]
        first = [
            _names(suite, entries),
            Column("rate", [rate for rate, _, _ in found]),
            Column("round trip", [rtt for _, rtt, _ in found]),
        ]
        senders = " beside ".join(suite.plan.about.senders[name].title for name in (a, b))
        yield _table(suite, definition, f"{a}-{b}", senders, first, entries)


def _caption(suite: Suite, definition: Definition, more: str) -> str:
    of = f"{definition.heading}, {more}" if more else definition.heading
    seeds = suite.plan.seeds
    shown = f"Mean and 95 % confidence interval of {seeds} seeds." if seeds > 1 else "One seed."
    return f"{of}. {definition.text} {shown}"


def _label(suite: Suite, definition: Definition, more: str) -> str:
    return "-".join(part for part in (suite.plan.about.name, definition.id, more) if part)
