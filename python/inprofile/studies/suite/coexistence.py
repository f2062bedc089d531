"""Coexistence maps: for each pair of senders and discipline a grid of rate and round trip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...metrics.quantity import number, quantity
from .matrix import Point, Published
from .outcome import Entry, Suite
from .scenarios import Definition

#: Where a balance has its full colour: ten times as much, or a tenth; and the range of delays in seconds.
_MOST, _SHORTEST, _LONGEST = 10.0, 0.0005, 0.3
#: Red, green and blue: a has more, b has more, a long wait.
_A, _B, _LONG = (33, 102, 172), (178, 24, 43), (153, 82, 4)


def maps(suite: Suite, definition: Definition) -> Iterator[dict[str, Any]]:
    """For each pair its senders and points, and for each discipline grids of balance and both delays."""
    for (a, b), points in _pairs(suite, definition).items():
        rates, rtts = (list(dict.fromkeys(getattr(p, of) for p in points)) for of in ("rate", "rtt"))
        names = [suite.plan.about.senders[name].title for name in (a, b)]
        panels = []
        for contestant in suite.plan.contestants:
            found = {
                (p.rate, p.rtt): e
                for p in points
                for e in suite.entries(definition, p.name)
                if e.cell.contestant == contestant.id
            }
            if not found:
                continue
            panels.append(
                {
                    "title": contestant.title,
                    "balance": _grid(rates, rtts, found, _balance),
                    "a": _grid(rates, rtts, found, lambda e: _wait(e, "a")),
                    "b": _grid(rates, rtts, found, lambda e: _wait(e, "b")),
                }
            )
        yield {"a": names[0], "b": names[1], "rtts": rtts, "panels": panels, "points": points}


def _pairs(suite: Suite, definition: Definition) -> dict[tuple[str, str], list[Point]]:
    """Points that were run, by pair."""
    found: dict[tuple[str, str], list[Point]] = {}
    ran = {c.variant for c in suite.found if c.scenario == definition.id}
    for point in definition.matrix.points() if definition.matrix else ():
        if point.name in ran:
            found.setdefault((point.a, point.b), []).append(point)
    return found


def _grid(
    rates: Sequence[str], rtts: Sequence[str], found: dict[Any, Entry], cell: Any
) -> list[dict[str, Any]]:
    """Rows from the fastest link down."""
    return [
        {"rate": rate, "cells": [cell(found[rate, rtt]) if (rate, rtt) in found else None for rtt in rtts]}
        for rate in reversed(rates)
    ]


def balance(entry: Entry) -> float | None:
    """Geometric mean over the seeds of a's goodput over b's; None where one of them never got anything."""
    if "ratio:a/b" not in entry:
        return None
    ratios = np.asarray(entry.values("ratio:a/b"))
    return float(np.exp(np.mean(np.log(ratios)))) if (ratios > 0).all() else None


def _balance(entry: Entry) -> dict[str, str]:
    ratio = balance(entry)
    if ratio is None:
        return {"text": "–", "style": "", "tip": "one of the two got nothing"}
    share = min(1.0, abs(np.log(ratio)) / np.log(_MOST))
    a, b = (quantity(entry[f"goodput:{g}"].mean, "bit/s", 3) for g in "ab")
    low, high = min(entry.values("ratio:a/b")), max(entry.values("ratio:a/b"))
    tip = (
        f"{a} and {b}; ratio {number(low, 3)} to {number(high, 3)} over the seeds;"
        f" utilisation {100 * entry['utilisation'].mean:.0f} %"
    )
    text = number(ratio, 2) if ratio >= 1 else f"1/{number(1 / ratio, 2)}"
    return {
        "text": "1" if text in ("1.0", "1/1", "1/1.0") else text,
        "style": _shade(_A if ratio > 1 else _B, share),
        "tip": tip,
    }


def _wait(entry: Entry, group: str) -> dict[str, str]:
    name = f"delay_p99:{group}"
    if name not in entry:
        return {"text": "–", "style": "", "tip": "nothing was sent"}
    seconds = entry[name].mean
    share = np.log(max(seconds, _SHORTEST) / _SHORTEST) / np.log(_LONGEST / _SHORTEST)
    middle = quantity(entry[f"delay_p50:{group}"].mean, "s", 3)
    tip = f"median {middle}, 99th percentile {quantity(seconds, 's', 3)}"
    return {"text": number(1e3 * seconds, 2), "style": _shade(_LONG, min(1.0, float(share))), "tip": tip}


def _shade(colour: tuple[int, int, int], share: float) -> str:
    """A background between white and a colour, and a text that can be read on it."""
    red, green, blue = (round(255 + (c - 255) * share) for c in colour)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 140
    return f"background:rgb({red},{green},{blue});color:{'#fff' if dark else '#111'}"


def overview(suite: Suite, definition: Definition) -> list[list[str]]:
    """A row for each pair and discipline: balances, longest waits, least utilisation."""
    rows = []
    for (a, b), points in _pairs(suite, definition).items():
        names = " / ".join(suite.plan.about.senders[name].title for name in (a, b))
        for contestant in suite.plan.contestants:
            entries = [
                e
                for p in points
                for e in suite.entries(definition, p.name)
                if e.cell.contestant == contestant.id
            ]
            ratios = sorted(r for e in entries if (r := balance(e)) is not None)
            if not ratios:
                continue
            waits = [max(e[f"delay_p99:{g}"].mean for e in entries if f"delay_p99:{g}" in e) for g in "ab"]
            rows.append(
                [
                    names,
                    contestant.title,
                    number(float(np.exp(np.median(np.log(ratios)))), 2),
                    f"{number(ratios[0], 2)} to {number(ratios[-1], 2)}",
                    f"{sum(0.5 <= r <= 2 for r in ratios)} of {len(ratios)}",
                    *(quantity(w, "s", 2) for w in waits),
                    f"{100 * min(e['utilisation'].mean for e in entries):.0f} %",
                ]
            )
    return rows


def beside_published(
    suite: Suite, definition: Definition, points: Sequence[Published]
) -> list[dict[str, Any]]:
    """Every published point that was run too: both ratios, and how far they are apart."""
    rows = []
    for one in points:
        entries = [e for e in suite.entries(definition, one.point.name) if e.cell.contestant == one.aqm]
        if not entries or (ours := balance(entries[0])) is None:
            continue
        theirs = float(np.exp(np.mean(np.log(one.ratios))))
        a, b = (suite.plan.about.senders[name].title for name in (one.point.a, one.point.b))
        far = max(ours / theirs, theirs / ours)
        rows.append(
            {
                "cells": [
                    f"{a} / {b}",
                    one.point.rate,
                    one.point.rtt,
                    suite.title(one.aqm),
                    ", ".join(number(r, 3) for r in one.ratios),
                    number(ours, 3),
                    f"{number(far, 2)} ×",
                ],
                "far": far,
                "source": one.source,
            }
        )
    return rows
