"""Traces in mahimahi's format (Netravali et al. 2015): into an experiment, and out of one.

A line for each opportunity to send 1,500 bytes, with its time in whole milliseconds; the last is the trace's
length, after which it starts over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from .._input import visible
from .scenario import Scenario

#: Bits that an opportunity delivers.
BITS = 12_000
#: The longest trace that is written for a link whose rate does not start over, in ms.
_LONGEST = 3_600_000
#: The most opportunities that are written.
_MOST = 2_000_000


class TraceError(ValueError):
    """What is no trace, or a link that has none."""


def opportunities(scenario: Scenario, link: str) -> str:
    """A link of an experiment as a trace: its own where it has one, otherwise its rate, step by step.

    Each opportunity is at the first whole millisecond by which 1,500 bytes more could have been sent. A rate
    that does not start over is written for the duration of the experiment. Raises TraceError.
    """
    found = {one["name"]: one for one in scenario.check().effective["links"]}
    if link not in found:
        raise TraceError(f"there is no link {visible(link)}: its links are {', '.join(found)}")
    if "trace" in found[link]:
        return _own(scenario, link)
    if "access" in found[link]:
        raise TraceError(f"{link} sends in {found[link]['access']['kind']}: when depends on what comes")
    steps = [(Fraction(0), _bits(found[link]["rate"]))]
    capacity = found[link].get("capacity", {})
    steps += [(_ms(step["at"]), _bits(step["rate"])) for step in capacity.get("steps", [])]
    end = _ms(capacity["repeat"]) if "repeat" in capacity else _ms(scenario.check().effective["duration"])
    return "".join(f"{at}\n" for at in _times(steps, min(end, Fraction(_LONGEST))))


def _times(steps: list[tuple[Fraction, Fraction]], end: Fraction) -> Iterator[int]:
    """Times of opportunities in ms, of a rate in bits per ms from each of these times on.

    >>> list(_times([(Fraction(0), Fraction(6_000))], Fraction(10)))
    [2, 4, 6, 8, 10]
    >>> list(_times([(Fraction(0), Fraction(24_000)), (Fraction(2), Fraction(4_000))], Fraction(8)))
    [1, 1, 2, 2, 5, 8]
    >>> list(_times([(Fraction(0), Fraction(12_000)), (Fraction(2), Fraction(1))], Fraction(10)))
    [1, 2, 10]
    """
    sent, number, last = Fraction(0), 1, 0
    for (at, rate), until in zip(steps, [*(s[0] for s in steps[1:]), end], strict=True):
        until = min(until, end)
        while at < until and (when := at + (number * BITS - sent) / rate) <= until:
            if number > _MOST:
                raise TraceError(
                    f"more than {_MOST:,} opportunities: write a shorter duration or a lower rate"
                )
            last = -(-when.numerator // when.denominator)
            yield last
            number += 1
        sent += rate * max(until - at, Fraction(0))
    if number == 1:
        raise TraceError("the link sends less than 1,500 bytes in all that time: write a longer duration")
    # The last time is the length: where nothing is sent at the end, one more opportunity says when it is.
    if last < (whole := -(-end.numerator // end.denominator)):
        yield whole


def _own(scenario: Scenario, link: str) -> str:
    """The trace that the file gives a link or its reverse."""
    name, _, way = link.partition(".")
    links = scenario.as_written.get("links", [])
    table: dict[str, Any] | None = next((one for one in links if one.get("name") == name), None)
    if table is None:
        raise TraceError(f"{visible(link)} is a tree's link: its trace stands at the tree's level")
    if way:
        table = table["reverse"]
    return "".join(f"{int(line)}\n" for line in str(table["trace"]).split())


_UNITS = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
_TIMES = {"s": 3, "ms": 0, "us": -3, "ns": -6, "ps": -9}


def _bits(rate: str) -> Fraction:
    """Bits per millisecond of a rate as it is shown.

    >>> _bits("1.2 Mbit/s")
    Fraction(1200, 1)
    """
    number, unit = rate.split()
    return Fraction(number) * _UNITS[unit] / 1000


def _ms(time: str) -> Fraction:
    """Milliseconds of a time as it is shown.

    >>> _ms("0.5 s")
    Fraction(500, 1)
    """
    number, unit = time.split()
    return Fraction(number) * Fraction(10) ** _TIMES[unit]


def with_trace(file: Path | str, link: str, trace: Path, out: Path) -> str:
    """An experiment that extends `file`, to be written to `out`, in which `link` sends by a trace.

    What the trace says is checked when the experiment is read. Raises TraceError for what is no trace at all.
    """
    try:
        lines = [line.strip() for line in trace.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{visible(str(trace))} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.isascii() or not line.isdigit():
            raise TraceError(
                f"{visible(str(trace))}: entry {number}, {visible(line[:40])!r}, is no whole number of ms"
            )
    base = os.path.relpath(file, out.parent)
    name, _, way = link.partition(".")
    key = "trace" if not way else f"{way}.trace"
    body = "\n".join(lines)
    return (
        f"# The link {name} sends by the trace {visible(trace.name)}.\n"
        f"extends = {json.dumps(base, ensure_ascii=False)}\n\n"
        f'[[links]]\nname = {json.dumps(name)}\n{key} = """\n{body}\n"""\n'
    )
